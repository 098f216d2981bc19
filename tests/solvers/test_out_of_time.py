"""Whenever the time is over, there is an answer, and its gap is true; the moments are counted, no clock is asked."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest

import triscreen as ts
from problems import make_case
from triscreen._utils import threads as _threads
from triscreen._utils.threads import Threads, breathe, deadline
from triscreen.errors import OutOfTime

SETS = {"knn": {}, "given": {"kind": "given"}, "all": {}}
SCREENINGS = {
    "none": None,
    "mid": ts.Screening("mid", every=2),
    "dear": ts.Screening(("gb", "rrpb"), rule="semidefinite"),
}


class Clock:
    """Time is over at the so-many-th look at it, for one moment or for ever."""

    def __init__(self, monkeypatch):
        self.looks, self.over_at, self.for_ever, self.optima = 0, None, False, {}
        monkeypatch.setattr(_threads._Run, "check", lambda run: self.look(run))

    def look(self, run):
        if run.limit is None:
            return
        self.looks += 1
        if self.over_at is not None and (self.looks == self.over_at or (self.for_ever and self.looks > self.over_at)):
            raise OutOfTime("the time is over")

    def moments(self, work):
        """Yield each moment at which the work may be told to stop: the first ones, then some."""
        self.looks, self.over_at = 0, None
        work()
        last, moment = self.looks, 1
        while moment <= last:
            for self.for_ever in (False, True):
                self.looks, self.over_at = 0, moment
                yield moment
            moment += 1 if moment < 12 else moment // 2


@pytest.fixture
def clock(monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.ConvergenceWarning)
        yield Clock(monkeypatch)


def problem_of(kind, gamma, cone="psd"):
    case = make_case(2, n=24, d=3, m=120, gamma=gamma, cone=cone, kind="knn" if kind != "given" else kind)
    if kind == "all":
        T = ts.all_triplets(case.X, [i % 2 for i in range(24)], n_jobs=1)
        return ts.Problem(case.X, T, loss=case.problem.loss, cone=cone, n_jobs=1)
    return case.problem


def is_honest(problem, sol, clock):
    """The primal is that of this M, and the gap a true one: the dual lies below the optimum."""
    clock.over_at = None
    assert sol.primal == pytest.approx(problem.value(sol.M, sol.lam), rel=1e-9)
    key = (id(problem), sol.lam)
    if key not in clock.optima:
        clock.optima[key] = ts.solve(problem, sol.lam, tol=1e-8).primal
    assert sol.dual <= clock.optima[key] * (1 + 1e-12)
    assert sol.gap == pytest.approx(sol.primal - sol.dual, abs=1e-9 * sol.primal)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("screening", SCREENINGS)
@pytest.mark.parametrize("gamma", [0.05, 0.0])
@pytest.mark.parametrize("kind", SETS)
def test_a_solve_ends_whenever_it_has_to_with_a_true_gap(clock, kind, gamma, screening):
    if kind == "all" and screening == "dear":
        return
    problem, screening = problem_of(kind, gamma), SCREENINGS[screening]
    lam = 0.02 * problem.lambda_max()
    made = []

    def work():
        vars(problem).pop("rounding", None)  # as for a new problem
        made.append(ts.solve(problem, lam, tol=1e-5, screening=screening, max_seconds=1e9))

    for moment in clock.moments(work):
        work()
        sol = made[-1]
        # It may happen in the last certificate; or not at all, because norms are known by now.
        assert sol.stopped_by == "max_seconds" or sol.converged, moment
        is_honest(problem, sol, clock)
    assert made[2].rel_gap == 1  # no time for one evaluation: M = 0 and its trivial gap
    assert min(sol.rel_gap for sol in made) <= 1e-5


@pytest.mark.parametrize("solver", ["bb", "newton", "dual"])
def test_every_solver_ends_whenever_it_has_to(clock, solver):
    problem = problem_of("given", 0.05, "diagonal")
    lam = 1e-4 * problem.lambda_max()  # with a walk down
    made = []

    def work():
        made.append(ts.solve(problem, lam, tol=1e-5, solver=solver, max_seconds=1e9))

    for _ in clock.moments(work):
        work()
        assert made[-1].stopped_by == "max_seconds"
        is_honest(problem, made[-1], clock)


@pytest.mark.parametrize("gamma", [0.05, 0.0])
@pytest.mark.parametrize("kind", SETS)
def test_a_path_ends_whenever_it_has_to_with_what_is_done(clock, kind, gamma):
    problem, made = problem_of(kind, gamma), []
    lambdas = problem.lambda_max() * 0.7 ** np.arange(8)

    def work():
        vars(problem).pop("rounding", None)
        made.append(ts.solve_path(problem, lambdas, tol=1e-5, max_seconds=1e9))

    lengths = set()
    for _ in clock.moments(work):
        work()
        path = made[-1]
        assert path.stopped_by == "max_seconds"
        lengths.add(len(path))
        for t, sol in enumerate(path):
            is_honest(problem, sol, clock)
            assert sol.converged or t == 0
    assert len(lengths) > 2


def test_a_path_whose_first_lambda_cannot_be_known_says_so(clock):
    problem = problem_of("given", 0.05)
    clock.over_at, clock.for_ever = 1, True
    with pytest.raises(OutOfTime, match="max_seconds=5: it was over before lambda_max was known"):
        ts.solve_path(problem, max_seconds=5)


def test_deadlines_nest_and_can_be_extended():
    done = []
    with deadline(-1.0):
        with deadline(None), pytest.raises(OutOfTime):
            Threads(1).run("late", done.append, 3)
        with deadline(1e9), pytest.raises(OutOfTime):
            Threads(2).run("late", done.append, 3)
        assert not done
        with deadline(1e9, extend=True):
            Threads(2).run("in time", done.append, 3)
    assert sorted(done) == [0, 1, 2]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_long_chunk_that_breathes_ends_too(jobs):
    """It would take for ever: only breathing ends it, on whatever thread it is."""

    def task(chunk):
        while True:
            breathe()
            time.sleep(1e-3)

    with deadline(0.05), pytest.raises(OutOfTime):
        Threads(jobs).run("long", task, 4)


def test_a_chunk_on_another_thread_ends_when_this_one_is_interrupted():
    import threading

    caller, other_began = threading.get_ident(), threading.Event()

    def task(chunk):
        if threading.get_ident() == caller:
            assert other_began.wait(20)
            raise KeyboardInterrupt
        other_began.set()
        while True:
            breathe()
            time.sleep(1e-3)

    with pytest.raises(KeyboardInterrupt):
        Threads(2).run("interrupted", task, 2)


def test_a_cross_validation_is_not_lost_when_a_later_fold_runs_out_of_time(monkeypatch):
    """Neighbours of the first fold are there in time, those of others are not: these have no scores."""
    from sklearn.datasets import load_iris

    from triscreen.estimators.base import MetricEstimator

    X, y = load_iris(return_X_y=True)
    limited, calls = MetricEstimator._in_time, []

    def late(self, begin):
        calls.append(begin)
        return deadline(-1.0) if len(calls) > 1 else limited(self, begin)

    monkeypatch.setattr(MetricEstimator, "_in_time", late)
    with pytest.warns(ts.ConvergenceWarning, match="time was over in 2 of 3 paths of the folds"):
        model = ts.TripletMetricCV(candidates=["within"], cv=3, ratios=4).fit(X, y)
    assert len(calls) == 3
    assert np.isfinite(model.cv_scores_[0]).any()
    assert np.isnan(model.cv_scores_[1:]).all()
    assert model.components_.any()
    calls.append(None)
    monkeypatch.setattr(MetricEstimator, "_in_time", lambda self, begin: deadline(-1.0))
    with pytest.raises(OutOfTime):
        ts.TripletMetricCV(candidates=["within"], cv=3, ratios=4).fit(X, y)


def test_an_estimator_says_that_its_time_was_over_while_triplets_were_made(clock):
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    clock.over_at, clock.for_ever = 1, True
    for model in (ts.TripletMetric(max_seconds=2), ts.TripletMetricCV(max_seconds=2)):
        with pytest.raises(ts.OutOfTime, match="max_seconds=2: it was over while triplets were made"):
            model.fit(X, y)


def test_ctrl_c_while_helpers_are_woken_ends_their_work(monkeypatch):
    done = []

    class Pool:
        def submit(self, work):
            raise KeyboardInterrupt

    monkeypatch.setattr(_threads, "_helpers", Pool)
    with pytest.raises(KeyboardInterrupt):
        Threads(2).run("woken", done.append, 20)
    assert not done
