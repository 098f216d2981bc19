"""The solver "dual": the same optimum as every other way to it, and a dual that never falls."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import triscreen as ts
from oracles import alpha_of, cvxpy_optimum, dual, loss_values, matrices, plus
from problems import make_case
from triscreen.problem.engine import Engine
from triscreen.solvers.dual import Ascent, DualAscent

CONES = ["psd", "diagonal"]
KINDS = [
    pytest.param({}, id="given"),
    pytest.param({"weighted": True}, id="weighted"),
    pytest.param({"kind": "knn"}, id="knn"),
]


def start_of(engine, lam, smoothing):
    """The evaluation at M = 0."""
    dim = engine.triplets.dim
    return engine.evaluate(np.zeros(engine.cone.shape(dim)), np.zeros(engine.triplets.n_pairs), lam, smoothing)


def ascent_of(engine, lam, smoothing):
    return Ascent(engine, lam, start_of(engine, lam, smoothing), 0.9, SimpleNamespace(count=lambda passes: None))


# -- the optimum ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("gamma", [0.0, 0.05, 1.0])
@pytest.mark.parametrize("options", KINDS)
def test_the_optimum_is_that_of_clarabel_and_of_bb(cone, gamma, options):
    case = make_case(24, gamma=gamma, cone=cone, **options)
    lam = (0.05 if gamma else 0.4) * case.problem.lambda_max()
    M, objective = cvxpy_optimum(case.X, case.indices, case.w, gamma, lam, cone)
    sol = ts.solve(case.problem, lam, tol=1e-10 if gamma else 1e-7, solver="dual")
    other = ts.solve(case.problem, lam, tol=1e-10 if gamma else 1e-7, solver="bb")
    assert sol.converged
    assert sol.gap == case.problem.certificate(sol.M, lam).gap
    assert sol.primal == pytest.approx(objective, rel=1e-7)
    assert sol.primal == pytest.approx(other.primal, rel=1e-9 if gamma else 2e-7)
    assert np.abs(sol.M - M).max() <= (1e-5 if gamma else 1e-3) * max(1.0, np.abs(M).max())


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("gamma", [0.0, 0.05])
@pytest.mark.parametrize("ratio", [0.3, 1e-2, 1e-3])
def test_it_converges_where_it_should(cone, gamma, ratio):
    case = make_case(9, n=40, d=6, m=400, gamma=gamma, cone=cone, weighted=True)
    lam = ratio * case.problem.lambda_max()
    sol = ts.solve(case.problem, lam, tol=1e-6 if gamma else 1e-4, solver="dual")
    assert sol.converged
    other = ts.solve(case.problem, lam, tol=1e-9 if gamma else 1e-5)
    assert np.linalg.norm(sol.M - other.M) <= sol.radius + other.radius


def test_segment(segment):
    X, y = segment
    problem = ts.Problem(X, ts.knn_triplets(X, y, 20))
    for ratio in (1e-2, 1e-4):
        assert ts.solve(problem, ratio * problem.lambda_max(), solver="dual").converged


# -- steps ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("smoothing", [1.0, 0.05, 1e-3])
@pytest.mark.parametrize("options", KINDS)
def test_the_dual_never_falls_and_the_gap_is_its_gap(cone, smoothing, options):
    """By brute force over triplets; 150 steps take in many a restart."""
    case = make_case(24, gamma=smoothing, cone=cone, **options)
    lam = 1e-3 * case.problem.lambda_max()
    ascent = ascent_of(case.problem, lam, smoothing)
    assert np.array_equal(ascent.alpha, np.ones(len(case.indices)))
    H, values = matrices(case.X, case.indices), []
    for _ in range(150):
        alpha = ascent.alpha
        assert alpha.min() >= 0
        assert alpha.max() <= 1
        values.append(dual(case.X, case.indices, case.w, smoothing, alpha, lam, cone))
        M = plus(np.einsum("t,tij->ij", case.w * alpha, H), cone) / lam
        primal = case.w @ loss_values(np.einsum("tij,ij->t", H, M), smoothing) + lam / 2 * np.sum(M**2)
        if not ascent.step():
            break
        assert ascent.gap == pytest.approx(primal - values[-1], rel=1e-6, abs=1e-9 * primal)
    # A dual that is nearly all difference, at first, is known to fewer digits.
    noise = 1e-13 * (case.w.sum() + np.abs(values[:-1]))
    assert np.all(np.diff(values) >= -noise)
    assert values[-1] > values[0]


def test_the_steps_are_accelerated():
    """L / s is about 1e4 here: without momentum 600 steps are nothing (a gap of 0.5; 6e-4 with it)."""
    case = make_case(9, n=40, d=6, m=400)
    lam = 1e-3 * case.problem.lambda_max()
    fast, plain = (ascent_of(case.problem, lam, 0.05) for _ in range(2))
    plain._next_momentum = lambda: (0.0, 1.0)
    for ascent in (fast, plain):
        for _ in range(600):
            ascent.step()
    assert fast.gap < 0.05 * plain.gap


@pytest.mark.parametrize("cone", CONES)
def test_an_engine_with_fixed_triplets(cone):
    """Fixing the triplets that an optimum has in the zones L and R leaves the optimum as it is."""
    case = make_case(24, cone=cone, m=80, weighted=True)
    lam = 0.05 * case.problem.lambda_max()
    best = ts.solve(case.problem, lam, tol=1e-12)
    alpha = alpha_of(case.X, case.indices, case.gamma, best.M)
    linear, free = np.flatnonzero(alpha == 1)[::2], alpha > 0
    free[linear] = False
    assert len(linear) > 3
    assert not free.all()
    T = case.problem.triplets
    left = T.let_go(np.where(free, 0, 2).astype(np.int8), np.zeros(T.n_pairs), 1.0)
    kept, pairs = left.triplets, left.pairs
    assert np.array_equal(left.numbers(), np.flatnonzero(free))
    H = np.einsum("t,tij->ij", case.w[linear], matrices(case.X, case.indices[linear]))
    H = np.diag(H).copy() if cone == "diagonal" else H
    problem = case.problem
    assert problem.basis is None
    engine = Engine(
        kept, problem.loss, problem.cone, problem.threads, H, float(case.w[linear].sum()),
        len(pairs) / problem.triplets.n_pairs,
    )  # fmt: skip
    ascent = ascent_of(engine, lam, case.gamma)
    for _ in range(400):
        if not ascent.step():
            break
    evaluation = ascent.evaluate()
    assert evaluation.gap <= 1e-8 * evaluation.primal
    assert evaluation.primal == pytest.approx(best.primal, rel=1e-7)
    assert np.abs(ascent.M - best.M).max() <= 1e-3 * np.abs(best.M).max()


# -- with screening ---------------------------------------------------------------------------------------------------


def test_the_alphas_survive_when_triplets_leave():
    """Twice in a row: the second time the numbers of the problem's triplets are no longer those of the engine."""
    case = make_case(9, n=40, d=4, m=600, weighted=True)
    sizes = []
    real = Ascent.continued

    def continued(ascent, engine, evaluation, kept):
        other = real(ascent, engine, evaluation, kept)
        here, there = ascent.engine.triplets, engine.triplets
        assert np.array_equal(here.points[here.local_indices()[kept]], there.points[there.local_indices()])
        assert np.array_equal(here.indices()[kept], there.indices())
        assert np.array_equal(ascent.alpha[kept], other.alpha)
        sizes.append((here.n_triplets, there.n_triplets))
        return other

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ascent, "continued", continued)
        sol = ts.solve(
            case.problem,
            0.05 * case.problem.lambda_max(),
            tol=1e-9,
            solver=DualAscent(steps=3),
            screening=ts.Screening("mid", every=1),
        )
    assert sol.converged
    assert len(sizes) >= 2
    assert all(after < before for before, after in sizes)
