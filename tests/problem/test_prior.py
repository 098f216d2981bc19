"""A prior: (lam/2) |M - N|^2 in place of (lam/2) |M|^2."""

from __future__ import annotations

import numpy as np
import pytest

import triscreen as ts
from oracles import alpha_of, cvxpy_optimum, dual, primal
from problems import make_case, random_metric

CONES = ["psd", "diagonal"]


def solve_quietly(*arguments, **named):
    sol = ts.solve(*arguments, **named)
    assert sol.converged
    return sol


@pytest.mark.parametrize("ratio", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("kind", ["given", "knn"])
@pytest.mark.parametrize("gamma", [0.05, 0.0, 0.7])
@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("seed", [1, 2])  # of full rank, of rank one
def test_the_optimum_is_that_of_an_interior_point_method(seed, cone, gamma, kind, ratio):
    case = make_case(seed, cone=cone, gamma=gamma, kind=kind, weighted=kind == "given", prior=seed)
    lam = ratio * case.problem.lambda_max()
    sol = solve_quietly(case.problem, lam, tol=1e-7 if gamma else 1e-5)
    _, best = cvxpy_optimum(case.X, case.indices, case.w, gamma, lam, cone, case.prior)
    assert sol.primal == pytest.approx(primal(case.X, case.indices, case.w, gamma, sol.M, lam, case.prior), rel=1e-9)
    assert sol.primal - 1e-6 * sol.scale <= best + sol.gap
    assert best <= sol.primal + 1e-6 * sol.scale
    if gamma:
        alpha = alpha_of(case.X, case.indices, gamma, sol.M)
        below = dual(case.X, case.indices, case.w, gamma, alpha, lam, cone, case.prior)
        size = lam * np.sum(np.square(case.prior)) + sol.scale
        assert sol.dual == pytest.approx(below, abs=1e-11 * size)
        assert sol.primal - below == pytest.approx(sol.gap, abs=1e-11 * size)


@pytest.mark.parametrize("solver", ["bb", "newton", "dual"])
@pytest.mark.parametrize("cone", CONES)
def test_every_solver_finds_it(cone, solver):
    case = make_case(3, cone=cone, prior=1)
    lam = 1e-3 * case.problem.lambda_max()
    best = solve_quietly(case.problem, lam, tol=1e-9)
    sol = solve_quietly(case.problem, lam, tol=1e-6, solver=solver)
    assert np.linalg.norm(sol.M - best.M) <= sol.radius + best.radius


@pytest.mark.parametrize("cone", CONES)
def test_a_prior_of_zero_is_none_to_the_bit(cone):
    X, y = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % 3
    T = ts.knn_triplets(X, y, 3)
    none, zero = (ts.Problem(X, T, cone=cone, prior=prior) for prior in (None, np.zeros((4, 4))))
    assert none.lambda_max() == zero.lambda_max()
    a, b = (ts.solve(problem, 0.01 * none.lambda_max()) for problem in (none, zero))
    assert np.array_equal(a.M, b.M)
    assert (a.gap, a.primal, a.n_iter, a.passes) == (b.gap, b.primal, b.n_iter, b.passes)


@pytest.mark.parametrize("cone", CONES)
def test_identity_is_the_identity(cone):
    case = make_case(4, cone=cone)
    N = np.ones(3) if cone == "diagonal" else np.eye(3)
    T = ts.given_triplets(case.indices)
    a, b = (ts.Problem(case.X, T, cone=cone, prior=prior) for prior in ("identity", N))
    assert a.lambda_max() == b.lambda_max()
    assert np.array_equal(ts.solve(a, 1.0).M, ts.solve(b, 1.0).M)


@pytest.mark.parametrize("gamma", [0.05, 0.0])
@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("seed", range(5))
def test_at_lambda_max_the_optimum_is_within_a_hundredth_of_the_prior(seed, cone, gamma):
    case = make_case(seed, cone=cone, gamma=gamma, prior=seed + 10)
    lam = case.problem.lambda_max()
    sol = solve_quietly(case.problem, lam, tol=1e-9 if gamma else 1e-6)
    size = np.linalg.norm(case.prior)
    assert np.linalg.norm(sol.M - case.prior) <= 0.01 * size + sol.radius
    # and it is not needlessly far up
    below = solve_quietly(case.problem, lam / 1e4, tol=1e-6)
    assert np.linalg.norm(below.M - case.prior) > 0.01 * size


def test_a_prior_that_satisfies_all_is_the_answer_for_every_lambda():
    X = np.array([[0.0], [0.1], [5.0], [5.1]])
    problem = ts.Problem(X, ts.given_triplets([[0, 1, 2], [3, 2, 1]]), prior=[[1.0]])
    with pytest.warns(ts.DegenerateProblemWarning, match="the prior satisfies every triplet"):
        assert problem.lambda_max() == 0
    sol = ts.solve(problem, 0.3)
    assert sol.converged
    assert sol.M.item() == pytest.approx(1.0)
    assert sol.primal == 0
    assert sol.rel_gap < 1e-20
    path = ts.solve_path(problem)
    assert (len(path), path.M(0).item(), path.converged.all()) == (1, pytest.approx(1.0), True)
    seen = []
    ts.solve(problem, 0.3, callback=lambda state: seen.append(state.rel_gap))
    ts.solve_path(problem, lambdas=[0.3, 0.2], callback=lambda state: seen.append(state.rel_gap))
    assert max(seen) < 1e-20
    # Beside it the gap is relative to a thousandth of the loss of M = 0.
    aside = problem.certificate([[1.0 + 1e-6]], 0.3)
    assert aside.scale == pytest.approx(1e-3 * 2 * (1 - 0.025))
    assert aside.rel_gap == aside.gap / aside.scale


@pytest.mark.parametrize("cone", CONES)
def test_certificate_gradient_and_value_agree_with_brute_force(cone):
    case = make_case(5, cone=cone, weighted=True, prior=1)
    problem, lam = case.problem, 0.7
    M = random_metric(3, 3, cone, 0.2)
    told = primal(case.X, case.indices, case.w, 0.05, M, lam, case.prior)
    assert problem.value(M, lam) == pytest.approx(told, rel=1e-12)
    alpha = np.random.default_rng(0).uniform(size=len(case.indices))
    proof = problem.certificate(M, lam, alpha)
    below = dual(case.X, case.indices, case.w, 0.05, alpha, lam, cone, case.prior)
    assert proof.dual == pytest.approx(below, rel=1e-10)
    assert proof.gap == pytest.approx(told - below, rel=1e-10)
    G, h = problem.gradient(M, lam), 1e-6
    step = np.random.default_rng(1).normal(size=M.shape)
    step = step + step.T if cone == "psd" else step
    M = M + (np.eye(3) if cone == "psd" else 1.0)
    G = problem.gradient(M, lam)
    slope = (problem.value(M + h * step, lam) - problem.value(M - h * step, lam)) / (2 * h)
    assert slope == pytest.approx(float(np.vdot(G, step)), rel=1e-5)


@pytest.mark.parametrize("prior", ["identity", "within", "random"])
def test_reduction_to_the_span_where_the_prior_allows_it(prior):
    """More features than points: the same answer as cvxpy's, in fewer dimensions if nothing crosses."""
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(8, 12)), np.arange(8) % 2
    T = ts.knn_triplets(X, y, 2)
    centred = X - X.mean(axis=0)
    within = np.linalg.inv(centred.T @ centred + 2 * np.eye(12))
    N = {"identity": 0.02 * np.eye(12), "within": 0.1 * within, "random": random_metric(1, 12, "psd", 0.002)}[prior]
    problem = ts.Problem(X, T, prior=N)
    assert (problem.basis is None) == (prior == "random")
    lam = 1e-3 * problem.lambda_max()
    sol = solve_quietly(problem, lam, tol=1e-8)
    ref, best = cvxpy_optimum(X, T.indices(), np.ones(T.n_triplets), 0.05, lam, "psd", N)
    assert sol.primal == pytest.approx(best, rel=1e-6)
    assert np.linalg.norm(sol.M - ref) <= sol.radius + np.sqrt(2 * 1e-6 * best / lam)
    proof = problem.certificate(sol.M, lam)
    assert (proof.primal, proof.gap) == (sol.primal, sol.gap)
    # What differs from the prior outside the span costs, and is seen.
    if problem.basis is not None:
        other = sol.M + 1e-2 * (np.eye(12) - problem.basis @ problem.basis.T)
        extra = problem.certificate(other, lam)
        assert extra.primal == pytest.approx(
            primal(X, T.indices(), np.ones(T.n_triplets), 0.05, other, lam, N), rel=1e-9
        )
        assert extra.gap > sol.gap + 0.4 * lam * 1e-4


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("n_positives", [None, 2])
def test_triplets_that_are_never_listed_have_the_same_optimum(n_positives, cone):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(24, 3)), np.arange(24) % 3
    X += 0.8 * rng.normal(size=(3, 3))[y]
    T, N = ts.all_triplets(X, y, n_positives), random_metric(1, 3, cone, 0.1)
    problem, listed = (ts.Problem(X, t, cone=cone, prior=N) for t in (T, ts.given_triplets(T.indices())))
    assert problem.lambda_max() == pytest.approx(listed.lambda_max(), rel=1e-9)
    for ratio in (1.0, 1e-3):
        lam = ratio * problem.lambda_max()
        for screening in (None, ts.Screening(("mid", "pgb", "cdgb"), every=2)):
            a, b = (solve_quietly(p, lam, tol=1e-7, screening=screening) for p in (problem, listed))
            assert np.linalg.norm(a.M - b.M) <= a.radius + b.radius


@pytest.mark.parametrize("cone", CONES)
def test_units_change_no_digit(cone):
    case = make_case(2, cone=cone, prior=1)
    T, scale = ts.given_triplets(case.indices), 2.0**60
    small = ts.Problem(case.X, T, cone=cone, prior=case.prior)
    large = ts.Problem(case.X * scale, T, cone=cone, prior=case.prior / scale**2)
    assert large.units.exponent != 0
    assert large.lambda_max() == small.lambda_max() * scale**4
    lam = 2.0 ** np.round(np.log2(1e-3 * small.lambda_max()))
    a, b = ts.solve(small, lam), ts.solve(large, lam * scale**4)
    assert np.array_equal(a.M, b.M * scale**2)
    assert (a.gap, a.primal, a.n_iter) == (b.gap, b.primal, b.n_iter)


@pytest.mark.parametrize(
    ("prior", "cone", "said"),
    [
        (np.diag([1.0, -1.0, 1.0]), "psd", "prior has the eigenvalue -1: it must be positive semi-definite"),
        ([[1.0, 2.0, 0], [0, 1, 0], [0, 0, 1]], "psd", "prior differs from its transpose by 2: it must be symmetric"),
        (np.full((3, 3), np.nan), "psd", "prior holds NaN or infinity: it must be finite"),
        (np.eye(4), "psd", r"prior has shape \(4, 4\): X has 3 features, so it must have shape \(3, 3\)"),
        (np.ones(3), "psd", r"prior has shape \(3,\): X has 3 features, so it must have shape \(3, 3\)"),
        ([1.0, -2.0, 0.0], "diagonal", "prior has the diagonal entry -2: the entries must not be negative"),
        (np.ones((3, 3)), "diagonal", "prior has entries off its diagonal: the cone is 'diagonal'"),
        ("euclid", "psd", "prior='euclid': prior must be None, 'identity' or an array"),
        ({"a": 1}, "psd", "prior"),
    ],
)
def test_what_is_no_prior_is_refused_in_a_sentence(prior, cone, said):
    X = np.random.default_rng(0).normal(size=(5, 3))
    with pytest.raises(ts.InputError, match=said):
        ts.Problem(X, ts.given_triplets([[0, 1, 2]]), cone=cone, prior=prior)


def test_it_is_a_keyword():
    with pytest.raises(TypeError):
        ts.Problem([[0.0], [1.0], [3.0]], ts.given_triplets([[0, 1, 2]]), None, "psd", None, None, "identity")


def test_a_prior_that_contradictions_leave_where_it_is_is_not_said_to_satisfy_them():
    problem = ts.Problem([[0.0], [0.1], [0.2]], ts.given_triplets([[0, 1, 2], [0, 2, 1]]), prior=[[1.0]])
    with pytest.warns(ts.DegenerateProblemWarning, match="pulled nowhere by the triplets: it is optimal"):
        assert problem.lambda_max() == 0
    assert ts.solve_path(problem).M(0).item() == pytest.approx(1.0)


@pytest.mark.parametrize("scale", [1.0, 1e60, 1e-60])
@pytest.mark.parametrize("size", [1e-170, 1e-100, 1e100, 1e170])
def test_a_prior_of_no_ordinary_size_for_its_points_is_refused_in_a_sentence(size, scale):
    X = np.random.default_rng(0).normal(size=(5, 3)) * scale
    with pytest.raises(ts.InputError, match=r"prior has a largest magnitude of \S+: .*it must lie between \S+ and \S+"):
        ts.Problem(X, ts.given_triplets([[0, 1, 2], [3, 2, 1]]), prior=np.diag([size / scale**2] * 3))


def test_the_error_of_a_prior_covers_eigenvalues_below_zero():
    """What is accepted need not be positive semi-definite to the last digit; distances are those of its projection."""
    N = np.diag([1.0, 1.0, -9e-14])
    X = np.random.default_rng(0).normal(size=(6, 3))
    prior = ts.Problem(X, ts.given_triplets([[0, 1, 2], [3, 4, 5]]), prior=N).prior
    assert np.linalg.norm(prior.core - prior.factor @ prior.factor.T) <= prior.error
