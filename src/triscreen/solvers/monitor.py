"""How a solve is watched: history, best point, pair work, and every reason to stop."""

from __future__ import annotations

import time

import numpy as np

from triscreen.problem.units import LAMBDA, STEP
from triscreen.screening.by_pair import PairScreener
from triscreen.screening.by_triplet import Screener
from triscreen.solvers.contract import State

# Stop when this many iterations in a row have not brought the gap down.
_PATIENCE = 2000


def wants_stop(answer):
    """Does a callback's answer say stop? True does (numpy's too); any other, a number say, is no answer."""
    return isinstance(answer, bool | np.bool_) and bool(answer)


class Monitor:
    """Watches one solve: history, best point, and every reason to stop."""

    def __init__(self, problem, lam, tol, max_iter, max_seconds, callback):
        """lam: as it is inside; what is told of it, and of step sizes, is the user's."""
        self.n_triplets, self.units = problem.triplets.n_triplets, problem.units
        self.lam, self.tol = lam, tol
        self.max_iter, self.max_seconds, self.callback = max_iter, max_seconds, callback
        self.begin = time.perf_counter()
        self.passes = 0.0
        self.n_iter = 0
        self.best = self.last = self.before = None  # before: the best at the lambda before this one
        self.whole = None  # the best one that was evaluated over all of the problem
        self.stopped_by = None
        self.wants_stop = False  # what the callback answered last
        self.eta = np.inf  # the last step size: where the next gradient step begins
        self.can_sharpen = False  # is there a smaller smoothing to go on with?
        self.make_screener, self.screener, self.every = None, None, 1  # made when first needed
        self._last_gain, self._gain_from = 0, np.inf  # when the gap last fell by 1 %, and from where
        self._rows = []

    def turn_to(self, lam, tol):
        """Watch another lambda from now on; iterations, passes and seconds go on."""
        self.lam, self.tol, self.before = lam, tol, self.best or self.before
        self.best = self.last = self.stopped_by = None
        self._rows = []

    @property
    def seconds(self):
        """Seconds since the solve began."""
        return time.perf_counter() - self.begin

    @property
    def undecided(self):
        """Triplets that are not screened."""
        return self.n_triplets if self.screener is None else self.screener.undecided

    @property
    def numbers(self):
        """The numbers of the problem's triplets that the engine still has; None: all."""
        return None if self.screener is None else self.screener.numbers

    def saw(self, evaluation, step):
        """Record an iteration; True: stop (``stopped_by`` says why; None: this smoothing has given what it can)."""
        self.n_iter += 1
        return self._record(evaluation, step, self.callback)

    def saw_start(self, evaluation):
        """Record where the solver starts; True: it need not."""
        self._last_gain, self._gain_from = self.n_iter, np.inf
        return self._record(evaluation, 0.0, None)

    def _record(self, evaluation, step, callback):
        self.last = evaluation
        lam, step = self.units.out(self.lam, LAMBDA), self.units.out(step, STEP)
        state = State(lam, self.n_iter, evaluation.primal, evaluation.gap, step, self.passes, self.seconds)
        if not self._rows or self._rows[-1][0] != self.n_iter:
            self._rows.append(
                (state.n_iter, state.primal, state.gap, step, state.passes, state.seconds, self.undecided)
            )
        if self.best is None or self._is_better(evaluation):
            self.best = evaluation
            if self.screener is None or self.screener.engine is self.screener.problem:
                self.whole = evaluation
        if evaluation.gap < 0.99 * self._gain_from:
            self._last_gain, self._gain_from = self.n_iter, evaluation.gap
        answer = None if callback is None else callback(state)
        self.wants_stop = wants_stop(answer)
        if evaluation.within(self.tol):
            self.stopped_by = "converged"
        elif self.wants_stop:
            self.stopped_by = "callback"
        elif self.n_iter >= self.max_iter:
            self.stopped_by = "max_iter"
        elif self.max_seconds is not None and state.seconds >= self.max_seconds:
            self.stopped_by = "max_seconds"
        elif self.n_iter - self._last_gain >= _PATIENCE:
            self.stopped_by = "stalled"
        sharpen = self.can_sharpen and evaluation.gap - evaluation.slack < 0.25 * evaluation.slack
        return sharpen or self.stopped_by is not None

    def _is_better(self, evaluation):
        """A lower objective is better; between objectives that tol does not tell apart, the smaller gap."""
        slack = self.tol * evaluation.scale
        if evaluation.primal < self.best.primal - slack:
            return True
        return evaluation.primal <= self.best.primal + slack and evaluation.gap < self.best.gap

    def watch(self, engine, screening):
        """Screen this engine from now on."""
        self.every = screening.every
        kind = Screener if engine.triplets.lists_triplets else PairScreener
        self.make_screener = lambda: kind(engine, screening, self.lam, self.tol)

    def screen_start(self, evaluation, lam0):
        """Screen before the first iteration; returns the engine and the evaluation to start with."""
        self.screener = self.make_screener()
        return self._screened(self.screener.start(evaluation, lam0))

    def refresh(self, engine, evaluation):
        """Screen, if it is time; returns the engine and the evaluation to go on with, the same ones or smaller."""
        if self.make_screener is None or self.n_iter % self.every:
            return engine, evaluation
        if self.screener is None:
            self.screener = self.make_screener()
        return self._screened(self.screener.step(evaluation, self.n_iter))

    def _screened(self, evaluation):
        self.passes += self.screener.passes
        self.screener.passes = 0.0
        return self.screener.engine, evaluation

    def history(self):
        """Return the history as arrays."""
        names = ("n_iter", "primal", "gap", "step", "passes", "seconds", "undecided")
        columns = zip(*self._rows, strict=True) if self._rows else ([] for _ in names)
        return {name: np.array(column) for name, column in zip(names, columns, strict=True)}
