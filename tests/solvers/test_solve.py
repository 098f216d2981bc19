from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import triscreen as ts
from oracles import as_matrix, cvxpy_optimum
from problems import make_case, random_metric

CONES = ["psd", "diagonal"]


def is_certified(problem, sol):
    certificate = problem.certificate(sol.M, sol.lam)
    assert (sol.primal, sol.dual, sol.gap) == (certificate.primal, certificate.dual, certificate.gap)
    assert sol.rel_gap == certificate.rel_gap
    assert sol.converged == (sol.rel_gap <= sol.tol)


# -- the optimum, against an independent solver ----------------------------------------------------------------------


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("gamma", [0.0, 0.05, 1.0])
@pytest.mark.parametrize(
    ("options", "seed", "ratio"),
    [
        pytest.param({}, 24, 0.4, id="plain"),
        pytest.param({"weighted": True}, 24, 0.7, id="weighted"),
        pytest.param({"n": 8, "d": 12, "m": 30}, 30, 0.4, id="d > n"),
        pytest.param({"kind": "knn"}, 24, 0.7, id="knn"),
    ],
)
def test_the_optimum_is_that_of_clarabel(cone, gamma, options, seed, ratio):
    """In each of these the hinge has triplets exactly at its kink (full cone); a smoothed one may have smaller lam."""
    case = make_case(seed, gamma=gamma, cone=cone, **options)
    lam = (0.05 if gamma else ratio) * case.problem.lambda_max()
    M, objective = cvxpy_optimum(case.X, case.indices, case.w, gamma, lam, cone)
    sol = ts.solve(case.problem, lam, tol=1e-11 if gamma else 1e-9)
    assert sol.converged
    is_certified(case.problem, sol)
    assert sol.primal == pytest.approx(objective, rel=1e-7)
    assert np.abs(sol.M - M).max() <= 1e-5


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("gamma", [0.0, 0.05])
@pytest.mark.parametrize("seed", range(4))
def test_random_problems_converge_and_agree_with_their_own_radius(cone, gamma, seed):
    """A loose solution lies within its certified radius of a tight one."""
    case = make_case(seed, gamma=gamma, cone=cone, weighted=seed % 2 == 1)
    for ratio in (0.5, 1e-2, 1e-3) if gamma else (0.5, 1e-1):
        lam = ratio * case.problem.lambda_max()
        loose, tight = (
            ts.solve(case.problem, lam, tol=1e-3),
            ts.solve(case.problem, lam, tol=1e-9 if gamma else 1e-5),
        )
        assert loose.converged
        assert tight.converged
        assert tight.primal <= loose.primal + tight.gap
        assert np.linalg.norm(loose.M - tight.M) <= loose.radius + tight.radius


def test_one_dimension_one_triplet_by_hand():
    """h = 4 - 1 = 3, gamma = 0.5; in the quadratic part -3 (1 - 3m)/0.5 + lam m = 0."""
    for cone in CONES:
        problem = ts.Problem(
            [[0.0], [1.0], [2.0]], ts.given_triplets([[0, 1, 2]]), loss=ts.SmoothedHinge(0.5), cone=cone
        )
        sol = ts.solve(problem, 2.0, tol=1e-14)
        assert sol.M.reshape(()) == pytest.approx(6 / (18 + 2), rel=1e-7)


def test_hinge_by_hand():
    """One triplet, h = 3: min (1 - 3m)_+ + lam m^2/2 is m = 1/3 (the kink) for lam < 9, and 3/lam beyond."""
    problem = ts.Problem([[0.0], [1.0], [2.0]], ts.given_triplets([[0, 1, 2]]), loss=ts.Hinge())
    for lam, m in [(1.0, 1 / 3), (12.0, 0.25), (9.0, 1 / 3)]:
        sol = ts.solve(problem, lam, tol=1e-9)
        assert sol.converged
        assert sol.M[0, 0] == pytest.approx(m, rel=1e-4)


# -- it works everywhere -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_units_of_x_do_not_matter(cone, scale):
    reference = make_case(5, cone=cone)
    case = make_case(5, cone=cone, scale=scale)
    for ratio in (0.3, 1e-2):
        a = ts.solve(reference.problem, ratio * reference.problem.lambda_max(), tol=1e-9)
        b = ts.solve(case.problem, ratio * case.problem.lambda_max(), tol=1e-9)
        assert b.converged
        assert b.primal == pytest.approx(a.primal, rel=1e-8)
        assert b.M * scale**2 == pytest.approx(a.M, rel=1e-3, abs=1e-4 * np.abs(a.M).max())


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("gamma", [0.05, 0.0])
def test_from_lambda_max_down_to_a_billionth_it_ends_honestly(cone, gamma):
    case = make_case(6, gamma=gamma, cone=cone, n=20, d=5, m=150)
    start = case.problem.lambda_max()
    for ratio in 10.0 ** -np.arange(0, 9.1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ts.ConvergenceWarning)
            sol = ts.solve(case.problem, ratio * start, max_iter=400)
        is_certified(case.problem, sol)
        assert np.isfinite(sol.M).all()
        nothing = case.problem.value(np.zeros_like(sol.M), sol.lam)
        assert sol.primal <= nothing * (1 + 1e-12)
        assert sol.n_iter <= 400


@pytest.mark.parametrize("cone", CONES)
def test_where_the_sum_of_h_is_negative_the_answer_is_zero(cone):
    """The negatives are all nearer than the positives."""
    X = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0], [0.1, 0.0], [0.0, 0.1]])
    problem = ts.Problem(X, ts.given_triplets([[0, 1, 3], [0, 2, 4]]), cone=cone)
    with pytest.warns(ts.DegenerateProblemWarning, match="M = 0 is optimal for every lambda"):
        assert problem.lambda_max() == 0.0
    for lam in (1e-3, 1.0, 1e3):
        sol = ts.solve(problem, lam)
        assert sol.converged
        assert not sol.M.any()


@pytest.mark.parametrize("cone", CONES)
def test_points_that_are_all_the_same(cone):
    problem = ts.Problem(np.ones((6, 2)), ts.knn_triplets(np.ones((6, 2)), [0, 0, 0, 1, 1, 1], 2), cone=cone)
    assert ts.solve(problem, 1.0).converged
    with pytest.warns(ts.DegenerateProblemWarning):
        problem.lambda_max()


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda X: np.hstack([X, np.full((len(X), 2), 7.0)]), id="constant features"),
        pytest.param(lambda X: np.vstack([X[:10], X[:5], X[:1]]), id="duplicate points, across classes too"),
        pytest.param(lambda X: np.hstack([X] * 9), id="d > n"),
        pytest.param(lambda X: X[:, :1], id="d = 1"),
        pytest.param(lambda X: (100 * X).astype(int), id="integers"),
        pytest.param(lambda X: X.astype(np.float32), id="float32"),
        pytest.param(np.asfortranarray, id="Fortran order"),
        pytest.param(lambda X: X[::-1], id="negative strides"),
        pytest.param(lambda X: np.broadcast_to(X, X.shape), id="read-only"),
        pytest.param(lambda X: X.tolist(), id="list"),
    ],
)
def test_unusual_data_works(cone, change):
    rng = np.random.default_rng(0)
    y = np.arange(16) % 2
    X = change(rng.normal(size=(16, 2)) + y[:, None])
    problem = ts.Problem(X, ts.knn_triplets(X, y, 3), cone=cone)
    for ratio in (0.5, 0.01):
        sol = ts.solve(problem, ratio * problem.lambda_max(), tol=1e-8)
        assert sol.converged
        is_certified(problem, sol)


def test_a_dataframe_and_string_labels_work():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "b"])
    y = pd.Series(["x", "y", "z"] * 10)
    problem = ts.Problem(frame, ts.knn_triplets(frame, y, 2))
    assert ts.solve(problem, 0.1 * problem.lambda_max()).converged


def test_a_single_triplet():
    case = make_case(0, m=1)
    assert ts.solve(case.problem, 0.1 * case.problem.lambda_max(), tol=1e-10).converged


def test_the_metric_of_reduced_data_is_in_the_original_space():
    case = make_case(3, n=8, d=40, m=40)
    sol = ts.solve(case.problem, 0.01 * case.problem.lambda_max(), tol=1e-9)
    assert sol.converged
    assert sol.M.shape == (40, 40)
    is_certified(case.problem, sol)
    assert np.array_equal(sol.M, sol.M.T)


def test_the_input_is_never_changed():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), np.arange(20) % 2
    before = X.copy()
    M = random_metric(1, 3, "psd")
    start = M.copy()
    problem = ts.Problem(X, ts.knn_triplets(X, y, 3))
    ts.solve(problem, 1.0, start=M)
    assert np.array_equal(X, before)
    assert np.array_equal(M, start)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("far", [1e2, 1e4, 1e6, 1e8])
def test_a_claim_holds_even_where_a_far_pair_eats_the_digits(seed, far):
    """A positive pair that is very long: A has an eigenvalue of -far^2, and float64 may not see the others."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=3)
    X = np.vstack([rng.normal(size=(6, 3)), far * direction])
    indices = np.array([[0, 6, 1], [2, 3, 4], [3, 2, 5], [1, 0, 4]])
    problem = ts.Problem(X, ts.given_triplets(indices))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.ConvergenceWarning)
        sol = ts.solve(problem, 0.3, max_iter=3000)
    if sol.converged:
        # Metrics that ignore the long direction are feasible; none of them may be better than the proof allows.
        long = (X[0] - X[6]) / np.linalg.norm(X[0] - X[6])
        basis = np.linalg.svd(long[None])[2][1:].T
        inner = ts.Problem(X @ basis, ts.given_triplets(indices))
        other = ts.solve(inner, 0.3, tol=1e-9)
        assert other.primal >= sol.primal * (1 - 2 * sol.tol)
    else:
        assert sol.rel_gap > sol.tol or sol.rounding > sol.tol * sol.primal


# -- starting, watching and stopping ----------------------------------------------------------------------------------


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
    real = case.problem.triplets.distances
    case.problem.triplets.distances = lambda *a: counted.append(1) or real(*a)
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


def test_a_solver_that_does_nothing_ends():
    class Idle:
        def run(self, engine, lam, evaluation, monitor):
            return engine, evaluation

    case = make_case(2)
    with pytest.warns(ts.ConvergenceWarning, match="stalled"):
        ts.solve(case.problem, 0.1 * case.problem.lambda_max(), solver=Idle())


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


def test_too_few_iterations_are_said_so():
    case = make_case(9, n=40, d=6, m=400)
    with pytest.warns(ts.ConvergenceWarning, match=r"relative gap .* reached, 1e-10 wanted.*max_iter after 3 iter"):
        sol = ts.solve(case.problem, 1e-3 * case.problem.lambda_max(), tol=1e-10, max_iter=3)
    assert not sol.converged
    assert (sol.n_iter, sol.stopped_by) == (3, "max_iter")
    is_certified(case.problem, sol)


def test_too_little_time_is_said_so():
    case = make_case(9, n=40, d=6, m=400)
    with pytest.warns(ts.ConvergenceWarning, match="max_seconds"):
        sol = ts.solve(case.problem, 1e-3 * case.problem.lambda_max(), tol=1e-12, max_seconds=1e-9)
    assert (sol.stopped_by, sol.n_iter) == ("max_seconds", 0)
    is_certified(case.problem, sol)


def test_an_impossible_tolerance_ends():
    case = make_case(2)
    with pytest.warns(ts.ConvergenceWarning):
        sol = ts.solve(case.problem, 1e-2 * case.problem.lambda_max(), tol=1e-30)
    assert sol.stopped_by in ("stalled", "max_iter")
    assert sol.rel_gap < 1e-13


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


def test_a_callback_sees_every_iteration_and_can_stop():
    case = make_case(9, n=40, d=6, m=400)
    seen = []

    def watch(state):
        seen.append(state)
        return state.n_iter == 5

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the user stopped it: nothing to warn about
        sol = ts.solve(case.problem, 1e-3 * case.problem.lambda_max(), tol=1e-12, callback=watch)
    assert [state.n_iter for state in seen] == [1, 2, 3, 4, 5]
    assert sol.stopped_by == "callback"
    assert sol.history["gap"][1:].tolist() == [state.gap for state in seen]
    assert all(state.rel_gap == state.gap / state.primal for state in seen)
    assert np.all(np.diff([state.passes for state in seen]) > 0)


def test_a_callback_that_returns_something_else_does_not_stop():
    case = make_case(2)
    assert ts.solve(case.problem, 0.1 * case.problem.lambda_max(), callback=lambda state: "yes").converged


def test_a_callback_that_fails_is_heard():
    def broken(state):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        ts.solve(make_case(2).problem, 1.0, callback=broken)


def test_an_interrupt_keeps_the_best_so_far():
    case = make_case(9, n=40, d=6, m=400)

    def press_ctrl_c(state):
        if state.n_iter == 7:
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored where tests run
    with pytest.raises(ts.Interrupted) as caught:
        ts.solve(case.problem, 1e-3 * case.problem.lambda_max(), tol=1e-12, callback=press_ctrl_c)
    signal.signal(signal.SIGINT, before)
    assert isinstance(caught.value, KeyboardInterrupt)
    sol = caught.value.result
    assert (sol.stopped_by, sol.converged) == ("interrupt", False)
    is_certified(case.problem, sol)
    assert sol.primal <= sol.history["primal"].min() * (1 + 1e-9)


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


def test_an_own_solver_can_be_passed_and_is_not_believed():
    class Liar:
        def run(self, problem, lam, evaluation, monitor):
            monitor.saw(evaluation, 0.0)
            monitor.stopped_by = "converged"
            return problem, evaluation

    case = make_case(2)
    with pytest.warns(ts.ConvergenceWarning):
        sol = ts.solve(case.problem, 0.1 * case.problem.lambda_max(), solver=Liar())
    assert not sol.converged
    is_certified(case.problem, sol)


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


# -- the real thing ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [1e-3, 1e-5])
@pytest.mark.parametrize("tol", [1e-6, 1e-10])
def test_segment(segment, ratio, tol):
    X, y = segment
    problem = ts.Problem(X, ts.knn_triplets(X, y, 20))
    assert problem.triplets.n_triplets == 831_600
    sol = ts.solve(problem, ratio * problem.lambda_max(), tol=tol)
    assert sol.converged
    is_certified(problem, sol)


@pytest.mark.parametrize("cone", CONES)
def test_hinge_on_iris(cone):
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    problem = ts.Problem(X, ts.knn_triplets(X, y, 5), loss=ts.Hinge(), cone=cone)
    for ratio in (1e-1, 1e-3):
        sol = ts.solve(problem, ratio * problem.lambda_max())
        assert sol.converged
        is_certified(problem, sol)


def test_as_matrix_of_a_diagonal_solution_is_certified_in_the_full_cone():
    """A diagonal optimum is feasible for the full cone, and no better there than the full optimum."""
    diagonal, full = make_case(4, cone="diagonal"), make_case(4)
    lam = 0.05 * full.problem.lambda_max()
    m, M = ts.solve(diagonal.problem, lam, tol=1e-9), ts.solve(full.problem, lam, tol=1e-9)
    assert full.problem.value(as_matrix(m.M), lam) == pytest.approx(m.primal, rel=1e-12)
    assert M.primal <= m.primal * (1 + 1e-9)


# -- newton ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("options", [{}, {"weighted": True}, {"kind": "knn"}], ids=["given", "weighted", "knn"])
@pytest.mark.parametrize("seed", range(3))
def test_newton_reaches_ten_digits(cone, options, seed):
    case = make_case(seed, n=40, d=5, m=500, cone=cone, **options)
    start = None
    for ratio in (1e-1, 1e-2, 1e-3):
        start = ts.solve(case.problem, ratio * case.problem.lambda_max(), tol=1e-10, solver="newton", start=start)
        assert start.converged
        is_certified(case.problem, start)
        reference = ts.solve(case.problem, start.lam, tol=1e-6, solver="bb", screening=None)
        assert start.primal <= reference.primal + start.gap


def test_newton_reaches_ten_digits_for_the_hinge():
    case = make_case(1, n=40, d=4, m=400, gamma=0.0)
    sol = ts.solve(case.problem, 0.1 * case.problem.lambda_max(), tol=1e-9, solver="newton")
    assert sol.converged


@pytest.mark.parametrize("solver", ["bb", "newton", "auto"])
def test_a_newton_step_never_raises_the_objective_and_a_gradient_step_not_above_the_last_ten(solver):
    for seed, gamma in [(6, 1e-4), (2, 0.05), (4, 1.0)]:
        case = make_case(seed, n=30, d=1 if seed == 6 else 4, m=5 if seed == 6 else 200, gamma=gamma)
        sol = ts.solve(
            case.problem, 1e-2 * case.problem.lambda_max(), solver=solver, screening=None, tol=1e-8, max_iter=500
        )
        primal = sol.history["primal"]
        for t in range(1, len(primal)):
            assert primal[t] <= primal[max(0, t - 10) : t].max() * (1 + 1e-12)


def test_newton_where_no_triplet_is_quadratic():
    """Far above lambda_max there is no curvature but lam's."""
    case = make_case(3)
    sol = ts.solve(case.problem, 5 * case.problem.lambda_max(), tol=1e-12, solver=ts.solvers.Newton(first=0))
    assert sol.converged
