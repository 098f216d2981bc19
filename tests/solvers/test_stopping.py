"""Starting, watching and stopping a solve."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import triscreen as ts
from problems import is_certified, make_case

CONES = ["psd", "diagonal"]


@pytest.mark.parametrize("cone", CONES)
def test_a_good_start_saves_work(cone):
    case = make_case(9, cone=cone, n=40, d=6, m=400)
    lam = 1e-2 * case.problem.lambda_max()
    cold = ts.solve(case.problem, lam)
    for start in (cold, cold.M):
        warm = ts.solve(case.problem, lam, start=start)
        assert warm.n_iter == 0
        assert warm.converged


def test_the_hinge_starts_well_too():
    case = make_case(9, gamma=0.0, n=40, d=6, m=400)
    lam = 0.1 * case.problem.lambda_max()
    cold = ts.solve(case.problem, lam, tol=1e-5)
    assert ts.solve(case.problem, lam, tol=1e-5, start=cold).n_iter == 0
    assert ts.solve(case.problem, lam, tol=1e-5, start=cold.M).n_iter < cold.n_iter


def test_passes_count_what_was_done():
    """Without a search on a segment: the start, and one evaluation per iteration; the final certificate is apart."""
    case = make_case(9, n=40, d=6, m=400)
    case.problem.certificate(np.eye(6), 1.0)  # bounds on rounding are made once
    counted = []
    real = case.problem.triplets._distances
    case.problem.triplets._distances = lambda *a: counted.append(1) or real(*a)
    sol = ts.solve(case.problem, 1e-2 * case.problem.lambda_max(), screening=None, solver="bb")
    assert sol.passes == sol.n_iter + 1
    assert len(counted) - 4 == sol.n_iter + 1  # three for lambda_max, one for the certificate


def test_small_steady_gains_are_no_stall():
    class Slow:
        def run(self, engine, lam, evaluation, monitor):
            while True:
                M = engine.cone.project(evaluation.M - 5e-4 / lam * (lam * evaluation.M - evaluation.A))
                evaluation = engine.evaluate(M.plus, engine.distances(M.factor), lam, evaluation.sums.smoothing)
                if monitor.saw(evaluation, 5e-4 / lam):
                    return engine, evaluation

    case = make_case(2)
    sol = ts.solve(case.problem, 2 * case.problem.lambda_max(), tol=1e-3, solver=Slow(), max_iter=5000)
    assert sol.n_iter > 2000
    assert sol.converged


def test_a_numpy_true_stops_as_well():
    case = make_case(9, n=40, d=6, m=400)
    sol = ts.solve(case.problem, 1e-3 * case.problem.lambda_max(), callback=lambda s: np.bool_(s.n_iter == 3))
    assert (sol.n_iter, sol.stopped_by) == (3, "callback")


def test_solutions_and_interrupts_can_be_pickled_and_compared():
    case = make_case(2)
    sol = ts.solve(case.problem, 0.1 * case.problem.lambda_max())
    stop = pickle.loads(pickle.dumps(ts.Interrupted("stop", sol)))
    assert np.array_equal(stop.result.M, sol.M)
    assert sol == sol
    assert sol not in [stop.result]
    again = pickle.loads(pickle.dumps(case.problem))
    assert again.certificate(sol.M, sol.lam) == case.problem.certificate(sol.M, sol.lam)


def test_a_start_outside_the_cone_is_refused():
    with pytest.raises(ts.InputError, match="eigenvalue"):
        ts.solve(make_case(0).problem, 1.0, start=-np.eye(3))


def test_too_little_time_is_said_so():
    case = make_case(9, n=40, d=6, m=400)
    with pytest.warns(ts.ConvergenceWarning, match="max_seconds"):
        sol = ts.solve(case.problem, 1e-3 * case.problem.lambda_max(), tol=1e-12, max_seconds=1e-9)
    assert (sol.stopped_by, sol.n_iter) == ("max_seconds", 0)
    is_certified(case.problem, sol)


def test_the_best_point_is_returned_not_the_last():
    case = make_case(9, n=40, d=6, m=400)
    lam = 1e-4 * case.problem.lambda_max()
    for stop_at in range(5, 40):
        with pytest.warns(ts.ConvergenceWarning):
            sol = ts.solve(case.problem, lam, tol=1e-14, max_iter=stop_at, start=np.zeros((6, 6)))
        assert sol.primal <= sol.history["primal"].min() * (1 + 1e-9)


@pytest.mark.parametrize("loss", [ts.SmoothedHinge(0.05), ts.Hinge()])
@pytest.mark.parametrize("solver", ["auto", "bb", "dual"])
def test_a_small_lambda_is_walked_to(loss, solver):
    case = make_case(9, n=40, d=6, m=400)
    problem = ts.Problem(case.X, case.problem.triplets, loss)
    lam, states = 1e-4 * problem.lambda_max(), []
    sol = ts.solve(problem, lam, tol=1e-4, solver=solver, callback=states.append)
    assert sol.converged
    is_certified(problem, sol)
    lams = [state.lam for state in states]
    assert len(set(lams)) > 2
    assert lams == sorted(lams, reverse=True)
    assert lams[-1] == sol.lam == lam
    assert [state.n_iter for state in states] == list(range(1, sol.n_iter + 1))
    assert np.all(np.diff([state.passes for state in states]) > 0)
    assert sol.history["n_iter"][-1] == sol.n_iter
    for first in range(
        0, len(states) - 1, 1 + len(states) // 3
    ):  # ended anywhere on the way, it is a certified solution for lam
        seen = iter(range(first))
        ended = ts.solve(problem, lam, tol=1e-4, solver=solver, callback=lambda _, s=seen: next(s, None) is None)
        assert (ended.lam, ended.stopped_by) == (lam, "callback")
        is_certified(problem, ended)


@pytest.mark.parametrize("bound", ["rpb", "rrpb"])
def test_the_end_of_a_rough_walk_is_no_solution_to_screen_from(bound):
    case = make_case(9, n=40, d=6, m=400)
    sol = ts.solve(case.problem, 1e-4 * case.problem.lambda_max(), screening=ts.Screening((bound, "mid"), every=5))
    assert sol.converged
    assert {event["sphere"] for event in sol.screening} == {"mid"}
    is_certified(case.problem, sol)


def test_ctrl_c_on_the_way_to_a_small_lambda():
    case = make_case(9, n=40, d=6, m=400)
    lam = 1e-6 * case.problem.lambda_max()

    def interrupt(state):
        if state.n_iter == 3:
            raise KeyboardInterrupt

    with pytest.raises(ts.Interrupted) as caught:
        ts.solve(case.problem, lam, callback=interrupt)
    assert (caught.value.result.lam, caught.value.result.stopped_by) == (lam, "interrupt")
    is_certified(case.problem, caught.value.result)


def test_a_callback_that_returns_something_else_does_not_stop():
    case = make_case(2)
    assert ts.solve(case.problem, 0.1 * case.problem.lambda_max(), callback=lambda state: "yes").converged


def test_a_callback_that_fails_is_heard():
    def broken(state):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        ts.solve(make_case(2).problem, 1.0, callback=broken)


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_from_outside_ends_a_long_solve():
    code = """
import numpy as np, triscreen as ts, os, signal, threading
rng = np.random.default_rng(0)
y = rng.integers(0, 3, 3000)
X = rng.normal(size=(3000, 20)) + 3 * np.eye(20)[y]
problem = ts.Problem(X, ts.knn_triplets(X, y, 10))
ts.solve(problem, 1e-2 * problem.lambda_max(), tol=1e-3)
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    ts.solve(problem, 1e-7 * problem.lambda_max(), tol=1e-30)
except ts.Interrupted as stop:
    print("kept", stop.result.stopped_by, stop.result.gap == problem.certificate(stop.result.M, stop.result.lam).gap)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert out.stdout.strip() == "kept interrupt True"


def test_history_has_a_row_for_the_start_and_one_per_iteration():
    case = make_case(9, n=40, d=6, m=400)
    sol = ts.solve(case.problem, 1e-2 * case.problem.lambda_max())
    assert all(len(column) == sol.n_iter + 1 for column in sol.history.values())
    assert sol.passes >= sol.history["passes"][-1]
    assert sol.history["gap"][-1] <= 1e-6 * sol.history["primal"][-1]


@pytest.mark.parametrize("jobs", [2, 3])
def test_any_number_of_threads_gives_the_same_solution_to_the_bit(jobs):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 2000)
    X = rng.normal(size=(2000, 12)) + 3 * np.eye(12)[y]
    T = ts.knn_triplets(X, y, 8)
    one, more = (
        ts.solve(problem, 1e-4 * problem.lambda_max())
        for problem in (ts.Problem(X, T, n_jobs=1), ts.Problem(X, T, n_jobs=jobs))
    )
    assert np.array_equal(one.M, more.M)
    assert one.history["gap"].tolist() == more.history["gap"].tolist()


def test_two_threads_may_solve_at_once():
    case = make_case(9, n=40, d=6, m=400, n_jobs=2)
    lams = [r * case.problem.lambda_max() for r in (1e-1, 1e-2, 1e-3, 1e-4)]
    alone = [ts.solve(case.problem, lam).M for lam in lams]
    results = {}
    workers = [
        threading.Thread(target=lambda lam=lam: results.update({lam: ts.solve(case.problem, lam).M})) for lam in lams
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(np.array_equal(results[lam], M) for lam, M in zip(lams, alone, strict=True))
