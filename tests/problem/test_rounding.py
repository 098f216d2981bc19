"""The bounds on rounding hold, and are not vacuous: compared with extended precision."""

from __future__ import annotations

import numpy as np
import pytest

import triscreen as ts
from problems import make_case, random_metric
from triscreen.problem.rounding import Rounding, U, gap_error, trace
from triscreen.screening.by_triplet import Screener


def problem_of(seed, cone):
    rng = np.random.default_rng(seed)
    y = np.arange(40) % 2
    X = (rng.normal(size=(40, 5)) + y[:, None]) * 10.0 ** rng.uniform(-3, 3, 5) + 10.0 ** rng.uniform(0, 6)
    return ts.Problem(X, ts.knn_triplets(X, y, 4), cone=cone), X.astype(np.longdouble)


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
@pytest.mark.parametrize("seed", range(8))
def test_distances_norms_and_sums(cone, seed):
    problem, X = problem_of(seed, cone)
    T, rounding = problem.triplets, problem.rounding
    M = random_metric(2 * seed + 1, 5, cone)
    factor = problem.cone.project(M).factor
    F = np.diag(factor) if cone == "diagonal" else factor
    delta = X[T.first] - X[T.second]
    exact = np.square(delta @ F.astype(np.longdouble)).sum(axis=1)
    got = problem.distances(factor)
    bound = rounding.distances(got, float(np.square(factor).sum()))
    assert (np.abs(got - exact) <= bound).all()
    assert (bound > 0).all()
    assert np.median(bound / exact) < 1e-6
    i, j, k = T.indices().T
    u, v = X[i] - X[k], X[i] - X[j]
    H = u[:, :, None] * u[:, None, :] - v[:, :, None] * v[:, None, :]
    if cone == "diagonal":
        H = np.einsum("tii->ti", H)
    norms = np.sqrt(np.square(H).reshape(len(H), -1).sum(axis=1))
    assert (norms <= problem.norms * rounding.norm_factor + rounding.norm_offset).all()
    alpha = np.clip((1 - np.random.default_rng(seed).uniform(-1, 2, len(H))) / 0.5, 0, 1)
    _, c = T.sweep_alpha(got, alpha, 0.05, problem.threads)
    A = problem.assemble(c)
    exact = np.tensordot(alpha.astype(np.longdouble), H, axes=1)
    error = float(np.sqrt(np.square(A - exact).sum()))
    assert error <= rounding.sum_of_h(float(alpha.sum()))


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
def test_the_constant_matrix_of_a_reduced_problem(cone):
    for seed in range(6):
        problem, X = problem_of(seed, cone)
        lam = 0.05 * (problem._lambda_max or 1.0)
        sol = ts.solve(problem, lam, tol=1e-4, screening=None)
        core, _ = problem.to_core(sol.M)
        screener = Screener(problem, ts.Screening("mid"), lam, 1e-6)
        screener.start(problem.evaluate(core, problem.distances(problem.cone.project(core).factor), lam, 0.05), None)
        if screener.engine is problem:
            continue
        gone = screener.zones == 1
        gone[screener.numbers] = False
        i, j, k = problem.triplets.indices()[gone].T
        u, v = X[i] - X[k], X[i] - X[j]
        exact = u.T @ u - v.T @ v
        exact = np.diag(exact) if cone == "diagonal" else exact
        error = float(np.sqrt(np.square(screener.engine.linear_matrix - exact).sum()))
        assert error <= screener.rounding.linear_error
        assert screener.rounding.linear_error > 0


@pytest.mark.parametrize("own_alpha", [True, False])
@pytest.mark.parametrize("cone", ["psd", "diagonal"])
def test_every_bound_has_all_terms_of_the_header(cone, own_alpha):
    """Written down again from the text of the module; what is small beside the rest is compared alone."""
    problem = make_case(3, cone=cone, weighted=True, n=20, m=80).problem
    T, gamma, k, dN = problem.triplets, problem.loss.gamma, 7.0, 0.125
    rounding = Rounding(T, problem.loss, problem.cone, k, problem.threads, dN)
    s, x = T.dim, np.sqrt(np.square(T.points).sum(axis=1))
    unit, relative = (2 * s + 16 + k) * U, (2 * s + 16) * U
    assert rounding.norm_factor == 1 + relative
    assert rounding.norm_offset == pytest.approx(16 * unit * x.max() ** 2, rel=1e-12)
    reach = x[T.first] + x[T.second]
    M = random_metric(4, s, cone, 0.3)
    dist = problem.distances(problem.cone.project(M).factor)

    def of(dist, size, reach):
        E = unit * np.sqrt(size) * reach
        return 2 * np.sqrt(dist) * E + E * E + relative * dist

    for values, size in ((dist, trace(M)), (0 * dist, 1e-3), (1e-30 + 0 * dist, 1e-8)):
        np.testing.assert_allclose(rounding.distances(values, size), of(values, size, reach), rtol=1e-12)
    values, errors = np.ones_like(dist), np.full_like(dist, 1e-3)
    rounding.add_distances(dist, trace(M), -2.5, values, errors)
    np.testing.assert_allclose(values, 1 - 2.5 * dist, rtol=1e-12, atol=1e-12)
    assert (errors >= 1e-3 + 2.5 * of(dist, trace(M), reach) * (1 - 1e-6)).all()
    pairs = np.bincount(np.concatenate([T.first, T.second]), minlength=T.n_points).max()
    K = T.n_points + 8 * s + k
    assert K + T.most_triplets_at_a_pair() < (per := rounding.sum_of_h(1.0) / (2 * U * T.extent(problem.threads)))
    assert per <= K + T.most_triplets_at_a_pair() + pairs * (1 + 1e-12)
    assert rounding.sum_of_h(3.0) == pytest.approx(3 * rounding.sum_of_h(1.0), rel=1e-12)
    less = rounding.reduced(0.25)
    assert less.matrix(M, 2.0) == pytest.approx(rounding.sum_of_h(2.0) + 0.25 + 32 * s * U * np.linalg.norm(M))
    assert rounding.matrix(M, 0.0) == pytest.approx(32 * s * U * np.linalg.norm(M), rel=1e-12)
    assert less.pull(M, 2.0, 3.0) == pytest.approx(less.matrix(M, 2.0) + 3 * dN, rel=1e-14)
    assert rounding.element(M) - dN == pytest.approx(32 * s * U * trace(M), abs=U)
    quantum = T.quantum(float(dist.max()), gamma)
    margin = 2 * of(dist.max(), trace(M), reach.max()) + quantum
    assert rounding.margin(dist, trace(M)) == pytest.approx(margin, rel=1e-12)
    assert rounding.margin_within(0.5) == pytest.approx(
        rounding.margin(np.array([0.5 * reach.max() ** 2]), 0.5), rel=1e-12
    )
    # The gap: each term where it is the largest.
    pull, lam, weight = random_metric(6, s, cone, 2.0), 0.7, 5.0
    plus = 0.5 * pull
    for less, gap in (
        (rounding.reduced(0.25), 0.0),
        (Rounding(T, problem.loss, problem.cone, k, problem.threads), 9.0),
    ):
        dA = less.pull(pull, weight, lam)
        e = less.margin(dist, trace(M))
        slack = 3 * T.total_weight * (e + 4 * U * gamma) ** 2 / gamma if own_alpha else T.total_weight * e
        wanted = np.linalg.norm(M - plus / lam) * dA + dA**2 / (2 * lam)
        wanted += np.linalg.norm(pull - plus) * less.element(M) + slack + 1e-13 * gap
        found = less.gap(M, pull, plus, dist, gap, weight, lam, own_alpha)
        assert found == pytest.approx(wanted, rel=1e-10)


def test_the_error_of_a_gap_is_that_of_its_own_alphas():
    problem = make_case(3).problem
    M, lam = random_metric(4, 3, "psd", 0.3), 1.0
    dist = problem.distances(problem.cone.project(M).factor)
    for smoothing, own in ((problem.loss.gamma, True), (0.7, False)):
        e = problem.evaluate(M, dist, lam, smoothing)
        gap = e.slack + problem.cone.gap(M, e.dual_point, lam)
        wanted = problem.rounding.gap(M, e.pull, e.dual_point.plus, dist, gap, e.sums.alpha, lam, own)
        assert gap_error(problem.rounding, e, lam) == wanted
