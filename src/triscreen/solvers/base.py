"""What every solver shares: how it is watched, stopped, and what comes back.

A solver is an object with numbers for attributes and one method,

    run(engine, lam, evaluation, monitor) -> (engine, Evaluation)

that starts from an `Evaluation` (whose smoothing it keeps), calls ``monitor.saw(evaluation, step)`` after each
iteration and returns when that says True; otherwise it goes on with what ``monitor.refresh(engine, evaluation)``
returns, a smaller engine where screening has decided triplets. It counts its pair work in ``monitor.passes``, a whole
evaluation as ``engine.share``. It declares what it needs: ``needs = ("triplets",)`` if it looks at triplets one by one,
as "dual" does, so that it is refused for sets that are never listed; nothing, if it has no such attribute. Nothing it
claims is believed: the result is certified again from M alone.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from triscreen._utils.display import html_table
from triscreen.problem.gap import Gap
from triscreen.problem.units import LAMBDA, STEP
from triscreen.screening.by_pair import PairScreener
from triscreen.screening.by_triplet import Screener

# Stop when this many iterations in a row have not brought the gap down.
_PATIENCE = 2000


def wants_stop(answer):
    """Does a callback's answer say stop? True does (numpy's too); any other, a number say, is no answer."""
    return isinstance(answer, bool | np.bool_) and bool(answer)


@dataclass(frozen=True)
class State(Gap):
    """What a callback sees after each iteration; returning True stops the solver.

    Attributes
    ----------
    lam, primal, gap, rel_gap, step, passes, seconds : float
    n_iter : int
    """

    lam: float
    n_iter: int
    primal: float
    gap: float
    step: float
    passes: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Solution(Gap):
    """A metric and the proof of how good it is.

    Attributes
    ----------
    lam : float
    M : array
        (d, d); for the diagonal cone the vector (d,).
    primal, dual, gap, rel_gap : float
        Exactly what ``problem.certificate(M, lam)`` returns (of a path: up to rounding, and for the hinge with the
        alphas that the path ended with; and where there was no time left for that certificate, a larger but true gap);
        |M - M*|_F <= `radius`.
    tol : float
        The relative gap that was asked for.
    rounding : float
        Bound on what rounding may have hidden of the gap; tiny unless the data mix very different scales.
    converged : bool
        The gap, and its rounding, are at most tol |primal|.
    stopped_by : str
        "converged", "max_iter", "max_seconds", "callback", "stalled", "rounding" or "interrupt". Where it is not
        "converged", M is the iterate with the lowest objective (of equal ones, the one with the smallest gap).
    n_iter : int
    passes : float
        Pair work: distances of every pair count 1/2, weights of every pair into a matrix 1/2. The final certificate is
        not counted.
    seconds : float
    screening : list of dict
        What each sphere and rule decided: n_iter, sphere, rule, radius, L, R (newly decided), tried, undecided, pairs
        (of the engine at the time), seconds.
    smoothing : float
        Of the alphas that the solver ended with (for the smoothed hinge its gamma); a later solve may start from there.
    history : dict of arrays
        One entry for the start and one per iteration: n_iter, primal, gap, step, passes, seconds, undecided. A rough
        walk to a small lam comes before: it is counted, but not in here.
    """

    lam: float
    M: np.ndarray = field(repr=False)
    primal: float
    dual: float
    gap: float
    rounding: float
    tol: float
    stopped_by: str
    n_iter: int
    passes: float
    seconds: float
    history: dict = field(repr=False)
    screening: list = field(repr=False)
    smoothing: float = field(repr=False)

    @property
    def converged(self):
        """Whether the relative gap is at most tol, and rounding cannot have hidden more than that."""
        return self.within(self.tol, self.rounding)

    @property
    def radius(self):
        """The optimal metric lies within this distance of M: sqrt(2 (gap + rounding) / lam)."""
        return float(np.sqrt(2 * (self.gap + self.rounding) / self.lam))

    def _repr_html_(self):
        """What a notebook shows."""
        said = f"{'Converged' if self.converged else 'Not converged'} after {self.n_iter} iterations, stopped by: "
        names = ("lambda", "objective", "relative gap", "asked for", "optimum within", "passes", "seconds")
        cells = (self.lam, self.primal, self.rel_gap, self.tol, self.radius, self.passes, self.seconds)
        return html_table(said + self.stopped_by, names, [[f"{cell:.4g}" for cell in cells]])


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
