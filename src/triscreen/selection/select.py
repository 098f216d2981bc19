"""The best lambda of a whole path to within eps, with a proof.

Every interval of lambda has a lower bound of its validation error (`triscreen.selection.bounds`). One whose lower bound
is at least the best error known minus eps is *closed*: no lambda in it is better by more than eps. The open interval
with the lowest bound is cut in two, until none is left or a limit is reached: first at the mixture of its two ends,
which takes a pass and no solve (any metric will do as an end); where the ball of that is hardly smaller, at a solution.
Where it is an end itself whose ball is large, because its metric is only nearly optimal, that one is solved again.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field

import numpy as np

from triscreen._utils.threads import single_threaded_blas
from triscreen._utils.validation import as_count, as_positive
from triscreen.errors import ConvergenceWarning, InputError, Interrupted, interruptible
from triscreen.path.balls import Between, End
from triscreen.path.result import Path, Row
from triscreen.problem.units import LAMBDA
from triscreen.selection.bounds import Bounds
from triscreen.solvers import solve
from triscreen.solvers.at_lambda import evaluated

# An end without a solve is good enough if its own ball is so much smaller than the one between its neighbours.
_SMALLER = 0.5
# How much smaller gaps of solves here are than those of the path, and the smallest one.
_SHARPER, _SHARPEST = 1e-3, 1e-10
# Intervals are not cut beyond this ratio of lambdas: where predictions switch, that need not end.
_NARROWEST = 1 - 1e-7


@dataclass(frozen=True, eq=False)
class Selection:
    """The lambda that was chosen, and what is proven about all others.

    Attributes
    ----------
    lam : float
        The error of the optimal metric there is at most ``error``.
    error : float
    gap : float
        No lambda between the ends of the path has an error that is lower than ``error`` by more than this.
    possible : list of (float, float)
        Intervals of lambda, largest first, that may hold one that is better by more than eps: empty if there is none.
    path : Path
        With the lambdas that were solved on the way.
    bounds : Bounds
        Over all intervals as they are now.
    n_solved, n_evaluated : int
        Lambdas that were solved, and metrics that were evaluated without a solve.
    stopped_by : str
        "eps", "max_lambdas", "max_seconds", "interrupt", or "narrow": what is left cannot be cut any further.
    """

    lam: float
    error: float
    gap: float
    possible: list
    path: Path = field(repr=False)
    bounds: Bounds = field(repr=False)
    n_solved: int
    n_evaluated: int
    stopped_by: str


@interruptible
@single_threaded_blas()
def select(path, bounds, eps, max_seconds=None, max_lambdas=None):
    """Find the lambda with the lowest validation error between the ends of a path, to within eps.

    Parameters
    ----------
    path : Path
        That the bounds were made of.
    bounds : Bounds
        From `validation_bounds` or `comparison_bounds`.
    eps : float
        Stop when no lambda can have an error that is lower by more than this.
    max_seconds : float, optional
        Stop after so many seconds, and say what is left.
    max_lambdas : int, optional
        Solve at so many further lambdas at most, and at the one that is chosen if it has no solution yet.

    Returns
    -------
    Selection

    Examples
    --------
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> X = (X - X.mean(0)) / X.std(0)
    >>> train, held_out = slice(0, None, 2), slice(1, None, 2)
    >>> problem = ts.Problem(X[train], ts.knn_triplets(X[train], y[train], k=3))
    >>> path = ts.solve_path(problem, ratio=0.8, n_lambdas=15)
    >>> bounds = ts.validation_bounds(path, X[train], y[train], X[held_out], y[held_out])
    >>> found = ts.select(path, bounds, eps=0.05)
    >>> found.gap <= 0.05, found.possible
    (True, [])
    """
    if not isinstance(bounds, Bounds) or bounds.judge is None or bounds.judge.path is not path:
        raise InputError(
            "bounds must be those of this path: validation_bounds(path, ...) or comparison_bounds(path, ...)"
        )
    eps = as_positive(eps, "eps")
    limit = as_positive(max_seconds, "max_seconds", none="no limit")
    most = as_count(max_lambdas, "max_lambdas", none="no limit")
    return _Search(path, bounds, eps).run(limit, most)


class _Search:
    """Intervals as they are cut."""

    def __init__(self, path, bounds, eps):
        self.path, self.judge, self.problem, self.eps = path, bounds.judge, bounds.judge.problem, eps
        self.rows, self.n_solved, self.n_evaluated = list(path._rows), 0, 0
        lambdas = bounds.lambdas.tolist()
        # lambda, lambda, outcomes; of those with two ends by their numbers on the path, until they are cut
        self.pieces = [
            (high, low, found) for high, low, found in zip(lambdas[:-1], lambdas[1:], bounds.outcomes, strict=True)
        ]
        self.ends = {}
        self.best = (np.inf, None)
        for piece in self.pieces:
            self._see(piece)
        self.judged, self.sharp = set(), set()
        self.narrow = False

    def run(self, max_seconds, max_lambdas):
        begin, stopped = time.perf_counter(), "eps"
        try:
            while True:
                place = self._next()
                if place is None:
                    stopped = "narrow" if self.narrow else "eps"
                    break
                if max_seconds is not None and time.perf_counter() - begin > max_seconds:
                    stopped = "max_seconds"
                    break
                if not self._cut(place, max_lambdas):
                    stopped = "max_lambdas"
                    break
            self._settle()
        except KeyboardInterrupt:
            message = "select was interrupted; what was proven so far is the .result"
            raise Interrupted(message, self._selection("interrupt")) from None
        return self._selection(stopped)

    def _lower(self):
        return np.array([np.count_nonzero(found < 0) for *_, found in self.pieces]) / len(self.pieces[0][2])

    def _next(self):
        """Return the number of the piece to cut next, or None; the errors at its ends are known then."""
        lower = self._lower()
        widths = [high / low for high, low, _ in self.pieces]
        for place in np.lexsort((np.negative(widths), lower)):  # the lowest, of these the widest
            high, low, _ = self.pieces[place]
            for lam in (high, low):
                self._judge_at(lam)
            if lower[place] >= self.best[0] - self.eps:
                return None  # the others are no lower
            if low < high * _NARROWEST:
                return int(place)
            self.narrow = True
        return None

    def _see(self, piece):
        """What is proven for a whole interval is so at its ends."""
        high, low, found = piece
        error = float((found <= 0).mean())
        if error < self.best[0]:
            self.best = (error, high if self._number(high) is not None else low)

    def _settle(self):
        """Have a solution at the lambda that was chosen: what is proven there may be so without one."""
        _, lam = self.best
        if self._number(lam) is None:
            self._solve(self.ends[lam].M, lam, self.ends[lam].lam)

    def _judge_at(self, lam):
        """Know the error at the solution of one lambda."""
        if lam in self.judged or self._number(lam) is None:
            return
        self.judged.add(lam)
        end = self._end(lam)
        upper = float((self.judge.decide(Between(self.problem, end, end)) <= 0).mean())
        if upper < self.best[0]:
            self.best = (upper, lam)

    def _number(self, lam):
        return next((t for t, row in enumerate(self.rows) if row.lam == lam), None)

    def _end(self, lam):
        if lam not in self.ends:
            number = next(t for t, row in enumerate(self.path._rows) if row.lam == lam)
            self.ends[lam] = self.path._end(number, self.problem)
        return self.ends[lam]

    def _cut(self, place, max_lambdas):
        """Cut a piece in two; False: that would take a solve too many."""
        high, low, _ = self.pieces[place]
        problem, lam = self.problem, float(np.sqrt(high) * np.sqrt(low))
        first, second = self._end(high), self._end(low)
        between, inside = Between(problem, first, second), problem.units.into(lam, LAMBDA)
        for lam_of, end in ((high, first), (low, second)):
            own = end.ball(end.lam, between.N).radius
            if lam_of not in self.sharp and own > _SMALLER * between.ball(inside).radius:
                return self._sharpen(lam_of, end, max_lambdas)
        p = between.share(inside)
        M = (1 - p) * first.M + p * second.M
        end = End.of(problem, M, inside, problem.loss.smoothings[-1])
        if end.ball(inside, between.N).radius > _SMALLER * between.ball(inside).radius:
            if max_lambdas is not None and self.n_solved >= max_lambdas:
                return False
            end = self._solve(M, lam, inside)
            self.sharp.add(lam)
        else:
            self.n_evaluated += 1
        self.ends[lam] = end
        parts = [(high, lam, Between(problem, first, end)), (lam, low, Between(problem, end, second))]
        self.pieces[place : place + 1] = [(a, b, self.judge.decide(both)) for a, b, both in parts]
        for piece in self.pieces[place : place + 2]:
            self._see(piece)
        self._judge_at(lam)
        return True

    def _sharpen(self, lam, end, max_lambdas):
        """Solve again at an end, and look at its two pieces again; False: that would be a solve too many."""
        if max_lambdas is not None and self.n_solved >= max_lambdas:
            return False
        self.sharp.add(lam)
        self.ends[lam] = self._solve(end.M, lam, end.lam)
        for place, (high, low, _) in enumerate(self.pieces):
            if lam in (high, low):
                between = Between(self.problem, self._end(high), self._end(low))
                self.pieces[place] = (high, low, self.judge.decide(between))
                self._see(self.pieces[place])
        self.judged.discard(lam)
        self._judge_at(lam)
        return True

    def _solve(self, M, lam, inside):
        problem, tol = self.problem, max(_SHARPEST, _SHARPER * self.path.tol)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # its ball has the gap that was reached
            sol = solve(
                problem, lam, tol=min(tol, self.path.tol), start=problem.from_core(problem.cone.project(M).plus)
            )
        core = problem.to_core(sol.M)[0]
        projection = problem.cone.project(core)
        evaluation = problem.evaluate(
            projection.plus, problem.distances(projection.factor), inside, sol.smoothing, factor=projection.factor
        )
        row = Row.of(
            problem, inside, evaluated(evaluation, problem.rounding, inside), n_iter=sol.n_iter, passes=sol.passes,
            scanned=0.0, share=1.0, undecided=1.0, seconds=sol.seconds, stopped_by=sol.stopped_by, events=[],
        )  # fmt: skip
        self.rows = [*(other for other in self.rows if other.lam != row.lam), row]
        self.n_solved += 1
        return End.at(problem, evaluation, inside)

    def _selection(self, stopped):
        lower, (error, lam) = self._lower(), self.best
        path = Path(
            self.rows, cone=self.path.cone, basis=self.path._basis, n_features=self.path.n_features,
            n_triplets=self.path.n_triplets, tol=self.path.tol, guarantee=None, stopped_by=self.path.stopped_by,
            outside=self.path._outside, problem=self.path._problem,
        )  # fmt: skip
        possible = []
        for (high, low, _), bound in zip(self.pieces, lower, strict=True):
            if bound < error - self.eps:
                if possible and possible[-1][1] == high:
                    high = possible.pop()[0]
                possible.append((high, low))
        lambdas = np.array([self.pieces[0][0], *(low for _, low, _ in self.pieces)])
        bounds = Bounds(lambdas, np.array([found for *_, found in self.pieces]))
        gap = max(0.0, error - float(lower.min())) if np.isfinite(error) else np.inf
        return Selection(lam, error, gap, possible, path, bounds, self.n_solved, self.n_evaluated, stopped)
