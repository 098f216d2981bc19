"""Large problems go most of their way on principal axes in single precision; what they end with is as true as ever."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import triscreen as ts
from triscreen.problem import rough
from triscreen.solvers import roughly
from triscreen.triplets import pairs


@pytest.fixture(autouse=True)
def small_is_large(monkeypatch):
    """Small problems do as large ones."""
    monkeypatch.setattr(rough, "_DIMENSIONS", 4)
    monkeypatch.setattr(rough, "_WORK", 0.0)


def make(seed=0, n=120, d=12, scale=1.0, loss=None, n_jobs=1, kind="knn"):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = (rng.normal(size=(n, d)) + rng.normal(size=(3, d))[y]) * np.geomspace(1, 0.02, d) * scale
    T = ts.knn_triplets(X, y, 4)
    if kind == "given":
        T = ts.given_triplets(T.indices()[::2], rng.uniform(0.1, 2, -(-T.n_triplets // 2)))
    return ts.Problem(X, T, loss=loss, n_jobs=n_jobs)


def plain(problem, lam, monkeypatch, **how):
    with monkeypatch.context() as patch:
        patch.setattr(rough, "_DIMENSIONS", 10**9)
        return ts.solve(problem, lam, **how)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("kind", ["knn", "given"])
@pytest.mark.parametrize("loss", [None, ts.Hinge()])
@pytest.mark.parametrize(("ratio", "tol"), [(0.1, 1e-3), (1e-2, 1e-4), (1e-2, 1e-8), (1e-3, 1e-6), (1e-4, 1e-4)])
def test_the_end_is_certified_and_the_same(kind, loss, ratio, tol, monkeypatch):
    problem = make(loss=loss, kind=kind)
    lam = ratio * problem.lambda_max()
    sol = ts.solve(problem, lam, tol=tol)
    assert sol.converged
    assert sol.rel_gap <= tol
    assert sol.gap == problem.certificate(sol.M, lam).gap
    exact = plain(problem, lam, monkeypatch, tol=1e-9 if loss is None else 1e-6)
    assert np.linalg.norm(sol.M - exact.M) <= sol.radius + exact.radius


def test_few_axes_come_first():
    problem = make(d=20)
    problem.lambda_max()
    first, last = rough.steps(problem, 1e-3)
    assert first.axes.shape[1] < 0.6 * last.axes.shape[1]
    np.testing.assert_allclose(first.axes.T @ first.axes, np.eye(first.axes.shape[1]), atol=1e-13)


def test_on_the_axes_it_is_the_same_problem():
    problem = make(n=60, d=8)
    lam = 0.01 * problem.lambda_max()
    last = rough.steps(problem, 1e-9)[-1]
    F = np.random.default_rng(3).normal(size=(len(last.axes.T), 3)).astype(np.float32)
    Q = F.astype(float) @ F.T.astype(float)
    there = last.engine.evaluate(Q, last.engine.distances(F), lam, problem.loss.gamma)
    here = problem.certificate(last.out(Q), lam)
    np.testing.assert_allclose([there.primal, there.gap], [here.primal, here.gap], rtol=1e-5)


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1e3, 1e8, 1e30])
def test_any_scale(scale):
    problem = make(scale=scale)
    sol = ts.solve(problem, 1e-2 * problem.lambda_max(), tol=1e-4)
    assert sol.converged


def test_where_single_precision_is_not_enough_double_goes_on():
    """Pairs within clusters that are a million times as far apart."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = rng.normal(size=(120, 8)) + 1e6 * rng.normal(size=(6, 8))[np.arange(120) // 20]
    problem = ts.Problem(X, ts.knn_triplets(X, y, 3), n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.ConvergenceWarning)
        sol = ts.solve(problem, 1e-2 * problem.lambda_max(), tol=1e-4)
    assert sol.stopped_by in ("converged", "rounding")
    assert sol.gap == problem.certificate(sol.M, sol.lam).gap


@pytest.mark.parametrize("stop_at", range(1, 12, 2))
@pytest.mark.parametrize("how", ["callback", "max_iter", "interrupt"])
@pytest.mark.parametrize("ratio", [1e-3, 1e-4])
def test_stopped_anywhere_it_gives_what_it_has(stop_at, how, ratio):
    problem = make()
    lam = ratio * problem.lambda_max()

    def callback(state):
        if state.n_iter >= stop_at and how == "interrupt":
            raise KeyboardInterrupt
        return state.n_iter >= stop_at and how == "callback"

    arguments = {"max_iter": stop_at} if how == "max_iter" else {"callback": callback}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.ConvergenceWarning)
        try:
            sol = ts.solve(problem, lam, tol=1e-9, **arguments)
        except ts.Interrupted as interrupted:
            sol = interrupted.result
    assert sol.n_iter == stop_at
    assert sol.stopped_by == how
    assert sol.gap == problem.certificate(sol.M, lam).gap


def test_a_good_start_is_seen_to_be_one():
    problem = make()
    lam = 1e-2 * problem.lambda_max()
    cold = ts.solve(problem, lam, tol=1e-4)
    for start in (cold, cold.M):
        assert ts.solve(problem, lam, tol=1e-4, start=start).n_iter == 0


@pytest.mark.parametrize("wide", [4, 10**9])
def test_threads_do_not_change_bits(wide, monkeypatch):
    monkeypatch.setattr(pairs, "WIDE", wide)
    results = []
    for n_jobs in (1, 2, 3):
        problem = make(n=700, d=24, n_jobs=n_jobs)
        results.append(ts.solve(problem, 1e-3 * problem.lambda_max(), tol=1e-5))
    for other in results[1:]:
        np.testing.assert_array_equal(results[0].M, other.M)
        assert (results[0].gap, results[0].n_iter, results[0].passes) == (other.gap, other.n_iter, other.passes)


def test_own_screening_and_solvers_have_all_of_it(monkeypatch):
    monkeypatch.setattr(roughly, "steps", lambda *_: pytest.fail("not asked for"))
    problem = make()
    lam = 1e-1 * problem.lambda_max()
    assert ts.solve(problem, lam, tol=1e-3, screening=ts.Screening("mid", every=2)).converged
    assert ts.solve(problem, lam, tol=1e-3, solver="dual").converged
