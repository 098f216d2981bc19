"""How a solve is watched: history, best point, pair work, and every reason to stop."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from triscreen.problem.units import LAMBDA, STEP
from triscreen.solvers.contract import State
from triscreen.solvers.screened import Screened

# Stop when this many iterations in a row have not brought the gap down.
_PATIENCE = 2000


def wants_stop(answer):
    """Does a callback's answer say stop? True does (numpy's too); any other, a number say, is no answer."""
    return isinstance(answer, bool | np.bool_) and bool(answer)


class Monitor:
    """Watches a solve, over one lambda or several: history, best point, passes, and every reason to stop.

    Only its methods write to it. A solver calls `saw`, `refresh` and `count`, and `stop` if it can go no further.
    """

    def __init__(self, problem, lam, tol, max_iter, max_seconds, callback, every_gap=False):
        """lam: as it is inside; what is told of it, and of step sizes, is the user's.

        every_gap: know the gap of every iteration, not only where it may be small enough.
        """
        self.problem = problem
        self.may_skip_gaps = callback is None and not every_gap
        self.max_iter, self.max_seconds, self.callback = max_iter, max_seconds, callback
        self.begin = time.perf_counter()
        self.passes = 0.0
        self.n_iter = 0
        self.best = self.before = None  # before: the best at the lambda before this one
        self.whole = None  # the best one that was evaluated over all of the problem
        self._patience = _PATIENCE
        self.wants_stop = False  # what the callback answered last
        self._may_sharpen = False  # is there a smaller smoothing to go on with?
        self._last_gain, self._gain_from = 0, np.inf  # when the gap last fell by 1 %, and from where
        self.turn_to(lam, tol)

    def turn_to(self, lam, tol, screened=None):
        """Watch another lambda, or another engine, from now on; iterations, passes and seconds go on."""
        self.lam, self.tol, self.before = lam, tol, self.best or self.before
        self.best = self.last = self.stopped_by = None
        self._screened = screened or Screened(self.problem, None, lam)
        self._rows = []

    @property
    def seconds(self):
        """Seconds since the solve began."""
        return time.perf_counter() - self.begin

    @property
    def undecided(self):
        """Triplets that are not screened."""
        return self._screened.undecided

    @property
    def numbers(self):
        """The numbers of the problem's triplets that the engine still has; None: all."""
        return self._screened.numbers

    @property
    def events(self):
        """What each sphere and rule decided at this lambda."""
        return self._screened.events

    def count(self, passes):
        """Add pair work: distances of every pair are half a pass, weights of every pair into a matrix the other."""
        self.passes += passes

    def stop(self, reason):
        """End the solve, for this reason."""
        self.stopped_by = reason

    @contextmanager
    def elsewhere(self, out, patience):
        """Watch an engine in other coordinates inside, which ``out`` leads out of, with that much patience.

        Afterwards the best point is one of the problem's; its gap is still the one over there.
        """
        before, self._patience = self._patience, patience
        try:
            yield
        finally:
            self._patience, self.whole = before, None
            if self.best is not None:
                self.best = replace(self.best, M=out(self.best.M), at=np.nan)

    def ask_for_more(self):
        """Go on with half the tolerance: what had converged did not hold when it was certified."""
        self.stopped_by = None
        self.tol *= 0.5

    def saw(self, evaluation, step, at_least=None):
        """Record an iteration; True: stop (``stopped_by`` says why; None: this smoothing has given what it can).

        at_least: a lower bound of its gap. Where that is too large, the gap is not asked for if ``may_skip_gaps``.
        """
        self.n_iter += 1
        return self._record(evaluation, step, self.callback, at_least)

    def saw_start(self, evaluation, may_sharpen):
        """Record where the solver starts; True: it need not. may_sharpen: is there a smaller smoothing for later?"""
        self._may_sharpen = may_sharpen
        self._last_gain, self._gain_from = self.n_iter, np.inf
        return self._record(evaluation, 0.0, None)

    def _record(self, evaluation, step, callback, at_least=None):
        self.last, seconds, scale = evaluation, self.seconds, evaluation.scale
        step = self.problem.units.out(step, STEP)
        known = at_least is None or not self.may_skip_gaps or at_least <= self.tol * scale
        known = known or (self._may_sharpen and at_least < 1.25 * evaluation.slack)
        gap = evaluation.gap if known else np.nan
        if not self._rows or self._rows[-1][0] != self.n_iter:
            self._rows.append((self.n_iter, evaluation.primal, gap, step, self.passes, seconds, self.undecided))
        if self.best is None or self._is_better(evaluation):
            self.best = evaluation
            if self._screened.is_whole:
                self.whole = evaluation
        reached = gap if known else at_least
        if reached < 0.99 * self._gain_from:
            self._last_gain, self._gain_from = self.n_iter, reached
        self.wants_stop = callback is not None and wants_stop(callback(self._state(evaluation, step, seconds)))
        if known and evaluation.within(self.tol):
            self.stopped_by = "converged"
        elif self.wants_stop:
            self.stopped_by = "callback"
        elif self.n_iter >= self.max_iter:
            self.stopped_by = "max_iter"
        elif self.max_seconds is not None and seconds >= self.max_seconds:
            self.stopped_by = "max_seconds"
        elif self.n_iter - self._last_gain >= self._patience:
            self.stopped_by = "stalled"
        sharpen = self._may_sharpen and known and gap - evaluation.slack < 0.25 * evaluation.slack
        return sharpen or self.stopped_by is not None

    def _state(self, evaluation, step, seconds):
        lam = self.problem.units.out(self.lam, LAMBDA)
        return State(lam, self.n_iter, evaluation.primal, evaluation.gap, step, self.passes, seconds, evaluation.floor)

    def _is_better(self, evaluation):
        """A lower objective is better; between objectives that tol does not tell apart, the smaller gap, if known."""
        slack = 0.0 if self.may_skip_gaps else self.tol * evaluation.scale
        if evaluation.primal < self.best.primal - slack:
            return True
        return slack > 0 and evaluation.primal <= self.best.primal + slack and evaluation.gap < self.best.gap

    def refresh(self, engine, evaluation):
        """Screen, if it is due; returns the engine and the evaluation to go on with, the same ones or smaller."""
        if not self._screened.is_due(self.n_iter):
            return engine, evaluation
        evaluation, passes = self._screened.step(evaluation, self.n_iter, self.tol)
        self.count(passes)
        return self._screened.engine, evaluation

    def history(self):
        """Return the history as arrays."""
        names = ("n_iter", "primal", "gap", "step", "passes", "seconds", "undecided")
        columns = zip(*self._rows, strict=True) if self._rows else ([] for _ in names)
        return {name: np.array(column) for name, column in zip(names, columns, strict=True)}
