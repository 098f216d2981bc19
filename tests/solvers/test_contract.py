"""What every solver keeps to, on every kind of set: ours, and own ones that keep to it, lie, or need triplets."""

from __future__ import annotations

import ast
import functools
import signal
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import triscreen as ts
from problems import is_certified, make_case
from triscreen.solvers.api import SOLVERS
from triscreen.solvers.at_lambda import Start, on_base, solve_at
from triscreen.solvers.dual import DualAscent
from triscreen.solvers.monitor import Monitor
from triscreen.solvers.screened import Screened
from triscreen.triplets.labelled import labelled_triplets

CONES = ["psd", "diagonal"]
EVERY = list(SOLVERS)

# -- own solvers ------------------------------------------------------------------------------------------------------


class Towards:
    """Keeps to the contract: along the segment from M to M(alpha)."""

    def run(self, engine, lam, now, monitor):
        while True:
            M, dist = now.dual_point.plus / lam, engine.distances(now.dual_point.factor / np.sqrt(lam))
            share, after = 1.0, None
            while after is None or (after.objective > now.objective and share > 1e-9):
                point, there = now.M + share * (M - now.M), now.dist + share * (dist - now.dist)
                after = engine.evaluate(point, there, lam, now.sums.smoothing)
                share /= 2
            now = after
            monitor.count(engine.share)
            if monitor.saw(now, share):
                return engine, now
            engine, now = monitor.refresh(engine, now)


class Liar:
    """Says that it has converged."""

    def run(self, engine, lam, evaluation, monitor):
        monitor.saw(evaluation, 0.0)
        monitor.stop("converged")
        return engine, evaluation


class Idle:
    """Does nothing."""

    def run(self, engine, lam, evaluation, monitor):
        return engine, evaluation


@dataclass(frozen=True)
class OneByOne:
    """Looks at triplets one by one and, like many, says nothing about it."""

    method: str = "sweep_alpha"

    def run(self, engine, lam, evaluation, monitor):
        alpha = np.zeros(engine.triplets.n_triplets)
        arguments = {
            "sweep_alpha": (evaluation.dist, alpha, 0.05, engine.threads),
            "ascend": (evaluation.dist, alpha, alpha, 0.05, 1.0, 0.0, engine.threads),
            "pair_numbers": (alpha == 0,),
        }[self.method]
        getattr(engine.triplets, self.method)(*arguments)
        return Towards().run(engine, lam, evaluation, monitor)


class Declared(OneByOne):
    """The same, with a declaration."""

    needs = ("triplets",)


HONEST = {**{name: name for name in EVERY}, "own": Towards(), "own, declared": Declared()}

# -- kinds of sets ----------------------------------------------------------------------------------------------------

Y = np.arange(24) % 3
X = np.random.default_rng(0).normal(size=(24, 3)) + np.array([3.0, 1.0, 0.0]) * Y[:, None]
W = np.random.default_rng(2).uniform(0.5, 2, 24)
ROWS = ts.knn_triplets(X, Y, 4).indices()[::4]
SETS = {
    "given": lambda: ts.given_triplets(ROWS),
    "given, weighted": lambda: ts.given_triplets(ROWS, np.linspace(0.5, 2, len(ROWS))),
    "knn blocks": lambda: ts.knn_triplets(X, Y, 3),
    "knn listed": lambda: labelled_triplets(X, Y, "knn", 3, W),
    "all": lambda: ts.all_triplets(X, Y),
    "lmnn": lambda: ts.all_triplets(X, Y, 2, W),
}
# What screening leaves of some of them.
LEFT = {"given, restricted": "given", "knn, restricted": "knn blocks", "all, ordered": "all", "lmnn, ordered": "lmnn"}
NEVER_LISTED = ("all", "lmnn")
OFTEN = ts.Screening("mid", every=1)


@functools.cache
def problem_of(kind, gamma=0.05, cone="psd"):
    return ts.Problem(X, SETS[kind](), ts.SmoothedHinge(gamma) if gamma else ts.Hinge(), cone, n_jobs=1)


@functools.cache
def optimum_of(kind, gamma=0.05, cone="psd"):
    problem = problem_of(kind, gamma, cone)
    return ts.solve(problem, 0.1 * problem.lambda_max(), tol=1e-9 if gamma else 1e-5)


def is_optimal(sol, best):
    return sol.converged and np.linalg.norm(sol.M - best.M) <= sol.radius + best.radius


@functools.cache
def left_of(kind):
    """The engine that screening leaves near the optimum."""
    problem, lam = problem_of(kind), optimum_of(kind).lam
    M = problem.to_core(ts.solve(problem, lam, tol=1e-2).M)[0]
    now = problem.evaluate(M, problem.distances(problem.cone.project(M).factor), lam, problem.loss.gamma)
    screened = Screened(problem, OFTEN, lam)
    screened.start(now, None, 1e-6)
    assert not screened.is_whole
    return screened.engine


def needs_of(solver):
    return getattr(SOLVERS[solver]() if isinstance(solver, str) else solver, "needs", ())


def pairs_of(*names):
    """Solvers, and the sets that they take."""
    return [(name, kind) for name in names for kind in SETS if kind not in NEVER_LISTED or not needs_of(HONEST[name])]


# -- every solver on every kind of set --------------------------------------------------------------------------------


def test_every_solver_of_ours_declares():
    for make in SOLVERS.values():
        assert make().needs in ((), ("triplets",))


@pytest.mark.parametrize("verb", ["solve", "path"])
@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("solver", HONEST)
def test_a_solver_finds_the_certified_optimum_or_is_refused_in_a_sentence(solver, kind, verb):
    problem, best, solver = problem_of(kind), optimum_of(kind), HONEST[solver]

    def call():
        if verb == "solve":
            return ts.solve(problem, best.lam, tol=1e-4, solver=solver)
        return ts.solve_path(problem, lambdas=[3 * best.lam, best.lam], tol=1e-4, solver=solver)[-1]

    assert problem.triplets.lists_triplets == (kind not in NEVER_LISTED)
    if needs_of(solver) and kind in NEVER_LISTED:
        sentence = r"^solver=.*: it needs a list of triplets, and all triplets are never listed; use 'auto'$"
        with pytest.raises(ts.InputError, match=sentence):
            call()
        return
    sol = call()
    assert is_optimal(sol, best)
    assert sol.stopped_by == "converged"
    assert sol.passes > 0
    if verb == "solve":
        is_certified(problem, sol)
        assert all(len(column) == sol.n_iter + 1 for column in sol.history.values())
        assert np.all(np.diff(sol.history["passes"]) > 0)


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("gamma", [0.2, 0.05, 0.0])
@pytest.mark.parametrize(("solver", "kind"), pairs_of(*EVERY, "own"))
def test_screening_changes_the_work_and_not_the_answer(solver, kind, gamma, cone):
    problem, best, screening = problem_of(kind, gamma, cone), optimum_of(kind, gamma, cone), OFTEN
    if solver == "dual":  # M is M(alpha) throughout: cdgb's centre
        solver, screening = DualAscent(steps=2), ts.Screening("cdgb", every=1)
    sol = ts.solve(
        problem, best.lam, tol=1e-6 if gamma else 1e-3, solver=HONEST.get(solver, solver), screening=screening
    )
    assert is_optimal(sol, best)
    is_certified(problem, sol)
    if gamma:
        assert sol.screening[-1]["undecided"] < 0.7 * problem.triplets.n_triplets


@pytest.mark.parametrize("kind", LEFT)
@pytest.mark.parametrize("solver", HONEST)
def test_a_solver_works_on_what_screening_leaves_or_meets_a_sentence(solver, kind):
    problem, best, engine = problem_of(LEFT[kind]), optimum_of(LEFT[kind]), left_of(LEFT[kind])
    solver = SOLVERS[solver]() if isinstance(HONEST[solver], str) else HONEST[solver]
    start = Start.at(problem, np.zeros(problem.cone.shape(3)))
    monitor = Monitor(problem, best.lam, 1e-4, 1000, None, None)

    def call():
        return solve_at(engine, best.lam, 1e-4, solver, None, start, monitor, on_base)

    if needs_of(solver) and LEFT[kind] in NEVER_LISTED:
        with pytest.raises(ts.InputError, match=r"^\w+ looks at triplets one by one, and .* never listed; [^.]*$"):
            call()
        return
    solved = call()
    assert solved.stopped_by(monitor.stopped_by, 1e-4) == "converged"
    assert solved.proof.primal == pytest.approx(best.primal, rel=2e-4)  # it has the same optimum


@pytest.mark.parametrize("kind", NEVER_LISTED)
@pytest.mark.parametrize("method", ["sweep_alpha", "ascend", "pair_numbers"])
def test_an_own_solver_that_declares_nothing_meets_a_sentence_too(kind, method):
    problem = problem_of(kind)
    with pytest.raises(ts.InputError, match=rf"^{method} looks at triplets one by one.*needs = \('triplets',\)$"):
        ts.solve(problem, 0.1 * problem.lambda_max(), solver=OneByOne(method))


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("solver", [Liar(), Idle()], ids=["liar", "idle"])
def test_nothing_that_a_solver_claims_is_believed(solver, kind):
    problem = problem_of(kind)
    lam = 0.1 * problem.lambda_max()
    with pytest.warns(ts.ConvergenceWarning, match="stalled"):
        sol = ts.solve(problem, lam, solver=solver)
    is_certified(problem, sol)
    with pytest.warns(ts.ConvergenceWarning, match="stalled"):
        path = ts.solve_path(problem, lambdas=[2 * lam, lam], solver=solver)
    for told in (sol, path[1]):
        assert not told.converged
        assert told.gap >= 0.99 * (told.primal - optimum_of(kind).primal)


class Held:
    """A solver whose every word to the monitor is checked."""

    def __init__(self, solver):
        self.solver, self.needs, self.sets = solver, needs_of(solver), set()

    def run(self, engine, lam, evaluation, monitor):
        witness = Witness(engine, lam, evaluation.sums.smoothing, monitor, self.sets)
        engine, now = self.solver.run(engine, lam, evaluation, witness)
        assert witness.over or monitor.stopped_by == "stalled"
        assert engine is witness.engine
        assert witness.seen is None or np.array_equal(now.M, witness.seen.M)
        return engine, now


class Witness:
    """Stands between a solver and its monitor."""

    def __init__(self, engine, lam, smoothing, monitor, sets):
        self.engine, self.lam, self.smoothing, self.monitor, self.sets = engine, lam, smoothing, monitor, sets
        self.over, self.seen, self.told = False, None, monitor.passes
        sets.add(type(engine.triplets).__name__)

    def __getattr__(self, name):
        return getattr(self.monitor, name)

    def saw(self, evaluation, step, at_least=None):
        engine = self.engine
        dist = engine.distances(engine.cone.project(evaluation.M).factor)
        again = engine.evaluate(evaluation.M, dist, self.lam, self.smoothing)
        assert not self.over
        assert evaluation.sums.smoothing == self.smoothing
        assert evaluation.primal == pytest.approx(again.primal, rel=1e-9)
        assert evaluation.gap == pytest.approx(again.gap, rel=1e-3, abs=1e-9 * again.primal)
        assert at_least is None or at_least <= again.gap + 1e-9 * again.primal
        assert step > 0
        assert self.monitor.passes > self.told
        self.seen, self.told = evaluation, self.monitor.passes
        self.over = self.monitor.saw(evaluation, step, at_least)
        return self.over

    def refresh(self, engine, evaluation):
        assert not self.over
        assert engine is self.engine
        self.engine, now = self.monitor.refresh(engine, evaluation)
        self.told = self.monitor.passes
        self.sets.add(type(self.engine.triplets).__name__)
        return self.engine, now


@pytest.mark.parametrize("gamma", [0.05, 0.0])
@pytest.mark.parametrize(("solver", "kind"), pairs_of(*HONEST))
def test_what_the_monitor_sees_is_true_on_the_engine_that_it_handed_out(solver, kind, gamma):
    problem, best = problem_of(kind, gamma), optimum_of(kind, gamma)
    solver = Held(SOLVERS[solver]() if isinstance(HONEST[solver], str) else HONEST[solver])
    sol = ts.solve(problem, best.lam, tol=1e-4 if gamma else 1e-2, solver=solver, screening=OFTEN)
    assert is_optimal(sol, best)
    if gamma:
        assert ("OrderedTriplets" in solver.sets) == (kind in NEVER_LISTED)


@pytest.mark.parametrize("kind", ["given", "given, weighted", "knn blocks", "knn listed"])
@pytest.mark.parametrize("solver", ["bb", "dual"])
def test_passes_count_what_was_done(solver, kind):
    problem = ts.Problem(X, SETS[kind](), n_jobs=1)
    lam = 1e-2 * problem.lambda_max()
    problem.certificate(np.eye(3), lam)  # bounds on rounding are made once
    counted = []
    triplets = problem.triplets
    for name in ("distances_under", "matrix"):
        real = getattr(triplets, name)
        setattr(triplets, name, lambda *a, real=real: counted.append(1) or real(*a))
    sol = ts.solve(problem, lam, solver=solver, screening=None)
    assert sol.passes == 0.5 * (len(counted) - 2)  # the certificate's two


def test_nothing_but_the_monitor_itself_writes_to_a_monitor():
    """Whoever holds one calls its methods: `count`, `stop`, `turn_to` and so on."""
    found = []
    for file in Path(ts.__file__).parent.rglob("*.py"):
        if file.name != "monitor.py":
            found += [f"{file.name}:{node.lineno} {node.attr}" for node in _writes(ast.parse(file.read_text()))]
    assert not found
    code = "monitor.passes += 1\nself.monitor.tol, x = 1, 2\ndel monitor.eta\nmonitor.count(1)"
    caught = list(_writes(ast.parse(code)))
    assert {node.attr for node in caught} == {"passes", "eta", "tol"}


def _writes(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            owner = node.value
            if "monitor" in (getattr(owner, "id", None), getattr(owner, "attr", None)):
                yield node


# -- whatever a solver does inside ------------------------------------------------------------------------------------


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
        sol = ts.solve(case.problem, 1e-2 * case.problem.lambda_max(), tol=1e-30, solver=solver, max_iter=500)
    assert sol.stopped_by in ("stalled", "max_iter", "rounding")  # by luck a computed gap may be as small
    assert not sol.converged
    assert sol.rel_gap < 1e-13


@pytest.mark.parametrize("solver", EVERY)
def test_too_few_iterations_are_said_so(solver):
    case = make_case(9, n=40, d=6, m=400)
    with pytest.warns(ts.ConvergenceWarning, match=r"relative gap .* reached, 1e-10 wanted.*max_iter after 3 iter"):
        sol = ts.solve(case.problem, 1e-3 * case.problem.lambda_max(), tol=1e-10, max_iter=3, solver=solver)
    assert (sol.n_iter, sol.stopped_by, sol.converged) == (3, "max_iter", False)
    is_certified(case.problem, sol)
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
        warnings.simplefilter("error")  # the user stopped it: nothing to warn about
        sol = ts.solve(case.problem, 1e-3 * case.problem.lambda_max(), tol=1e-12, callback=watch, solver=solver)
    assert [state.n_iter for state in seen] == [1, 2, 3, 4, 5]
    assert sol.stopped_by == "callback"
    assert sol.history["gap"][1:].tolist() == [state.gap for state in seen]
    assert all(state.rel_gap == state.gap / state.primal for state in seen)
    assert np.all(np.diff([state.passes for state in seen]) > 0)


@pytest.mark.parametrize("solver", EVERY)
def test_an_interrupt_keeps_the_best_so_far(solver):
    case = make_case(9, n=40, d=6, m=400)

    def press_ctrl_c(state):
        if state.n_iter == 7:
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored where tests run
    with pytest.raises(ts.Interrupted) as caught:
        ts.solve(case.problem, 1e-3 * case.problem.lambda_max(), tol=1e-12, callback=press_ctrl_c, solver=solver)
    signal.signal(signal.SIGINT, before)
    assert isinstance(caught.value, KeyboardInterrupt)
    sol = caught.value.result
    assert (sol.stopped_by, sol.converged) == ("interrupt", False)
    is_certified(case.problem, sol)
    assert sol.primal <= sol.history["primal"].min() * (1 + 1e-9)


@pytest.mark.parametrize("solver", EVERY)
@pytest.mark.parametrize("gamma", [0.05, 0.0])
def test_a_good_start_is_the_end(solver, gamma):
    case = make_case(9, gamma=gamma, n=40, d=6, m=400)
    lam = 0.1 * case.problem.lambda_max()
    cold = ts.solve(case.problem, lam, tol=1e-5, solver=solver)
    assert cold.n_iter > 0
    assert ts.solve(case.problem, lam, tol=1e-5, solver=solver, start=cold).n_iter == 0


@functools.cache
def many(kind, jobs):
    y = np.arange(300) % 2
    points = np.random.default_rng(9).normal(size=(300, 5)) + 0.7 * y[:, None]
    T = ts.knn_triplets(points, y, 9)
    return ts.Problem(points, T if kind == "knn" else ts.given_triplets(T.indices()), n_jobs=jobs)


@pytest.mark.parametrize("solver", EVERY)
@pytest.mark.parametrize("kind", ["given", "knn"])
def test_any_number_of_threads_gives_the_same_solution_to_the_bit(solver, kind):
    lam = 1e-2 * many(kind, 1).lambda_max()
    a, b = (ts.solve(many(kind, jobs), lam, solver=solver) for jobs in (1, 3))
    assert a.n_iter > 0
    assert np.array_equal(a.M, b.M)
