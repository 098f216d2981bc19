"""What every solver keeps to, whatever it does inside."""

from __future__ import annotations

import signal
import warnings

import numpy as np
import pytest

import triscreen as ts
from problems import make_case
from triscreen.solvers.api import SOLVERS

CONES = ["psd", "diagonal"]
EVERY = [name for name in SOLVERS if name != "auto"]


@pytest.mark.parametrize("solver", EVERY)
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_units_of_x_do_not_matter(solver, scale):
    """Every step is the same, up to rounding."""
    reference, case = make_case(5), make_case(5, scale=scale)
    a = ts.solve(reference.problem, 1e-2 * reference.problem.lambda_max(), tol=1e-8, solver=solver)
    b = ts.solve(case.problem, 1e-2 * case.problem.lambda_max(), tol=1e-8, solver=solver)
    assert b.converged
    assert (b.n_iter, b.passes) == (a.n_iter, a.passes)
    assert b.primal == pytest.approx(a.primal, rel=1e-7)


@pytest.mark.parametrize("solver", EVERY)
def test_a_weight_of_two_is_the_triplet_twice(solver):
    case = make_case(3, m=30)
    rows = np.asarray(case.indices)
    w = np.where(np.arange(30) < 10, 2.0, 1.0)
    once = ts.Problem(case.X, ts.given_triplets(rows, w))
    twice = ts.Problem(case.X, ts.given_triplets(np.vstack([rows, rows[:10]])))
    lam = 1e-2 * once.lambda_max()
    a, b = (ts.solve(problem, lam, tol=1e-10, solver=solver, screening=None) for problem in (once, twice))
    assert a.n_iter == b.n_iter
    assert np.allclose(a.M, b.M, rtol=1e-6, atol=0)


@pytest.mark.parametrize("solver", EVERY)
@pytest.mark.parametrize("cone", CONES)
def test_where_zero_is_optimal_and_where_all_points_are_the_same(solver, cone):
    X = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0], [0.1, 0.0], [0.0, 0.1]])
    for points in (X, np.ones_like(X)):
        problem = ts.Problem(points, ts.given_triplets([[0, 1, 3], [0, 2, 4]]), cone=cone)
        sol = ts.solve(problem, 1.0, solver=solver, start=np.eye(2) if cone == "psd" else np.ones(2))
        assert sol.converged
        assert np.abs(sol.M).max() <= 1e-3


@pytest.mark.parametrize("solver", EVERY)
def test_an_impossible_tolerance_ends(solver):
    case = make_case(2)
    with pytest.warns(ts.ConvergenceWarning):
        sol = ts.solve(case.problem, 1e-2 * case.problem.lambda_max(), tol=1e-30, solver=solver)
    assert sol.stopped_by in ("stalled", "max_iter")
    assert sol.rel_gap < 1e-13


@pytest.mark.parametrize("solver", EVERY)
def test_too_few_iterations_are_said_so(solver):
    case = make_case(9, n=40, d=6, m=400)
    with pytest.warns(ts.ConvergenceWarning, match="max_iter after 3 iter"):
        sol = ts.solve(case.problem, 1e-3 * case.problem.lambda_max(), tol=1e-10, max_iter=3, solver=solver)
    assert (sol.n_iter, sol.stopped_by, sol.converged) == (3, "max_iter", False)
    assert sol.passes < 3 * 20
    assert all(len(column) == 4 for column in sol.history.values())


@pytest.mark.parametrize("solver", EVERY)
def test_a_callback_sees_every_iteration_and_can_stop(solver):
    case = make_case(9, n=40, d=6, m=400)
    seen = []

    def watch(state):
        seen.append(state)
        return state.n_iter == 5

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sol = ts.solve(case.problem, 1e-3 * case.problem.lambda_max(), tol=1e-12, callback=watch, solver=solver)
    assert [state.n_iter for state in seen] == [1, 2, 3, 4, 5]
    assert sol.stopped_by == "callback"
    assert np.all(np.diff([state.passes for state in seen]) > 0)


@pytest.mark.parametrize("solver", EVERY)
def test_an_interrupt_keeps_the_best_so_far(solver):
    case = make_case(9, n=40, d=6, m=400)

    def press_ctrl_c(state):
        if state.n_iter == 7:
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(ts.Interrupted) as caught:
        ts.solve(case.problem, 1e-3 * case.problem.lambda_max(), tol=1e-12, callback=press_ctrl_c, solver=solver)
    signal.signal(signal.SIGINT, before)
    sol = caught.value.result
    assert (sol.stopped_by, sol.converged) == ("interrupt", False)
    assert sol.primal <= sol.history["primal"].min() * (1 + 1e-9)


@pytest.mark.parametrize("solver", EVERY)
@pytest.mark.parametrize("gamma", [0.05, 0.0])
def test_a_good_start_is_the_end(solver, gamma):
    case = make_case(9, gamma=gamma, n=40, d=6, m=400)
    lam = 0.1 * case.problem.lambda_max()
    cold = ts.solve(case.problem, lam, tol=1e-5, solver=solver)
    assert cold.n_iter > 0
    assert ts.solve(case.problem, lam, tol=1e-5, solver=solver, start=cold).n_iter == 0


@pytest.mark.parametrize("solver", EVERY)
@pytest.mark.parametrize("options", [{}, {"kind": "knn"}])
def test_any_number_of_threads_gives_the_same_solution_to_the_bit(solver, options):
    one, more = (make_case(9, n=300, d=5, m=20_000, n_jobs=jobs, **options).problem for jobs in (1, 3))
    lam = 1e-2 * one.lambda_max()
    a, b = (ts.solve(problem, lam, solver=solver) for problem in (one, more))
    assert np.array_equal(a.M, b.M)
