"""One path of a search: its pieces of lambda, each with what is decided there, and how they are cut.

Keys stand for lambdas: lambdas themselves, or lam / lambda_max where several paths are searched together.
"""

from __future__ import annotations

import bisect
import warnings
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from triscreen.errors import ConvergenceWarning
from triscreen.path.balls import Between, End
from triscreen.path.row import Row
from triscreen.problem.units import LAMBDA
from triscreen.selection.journal import CUT, FINAL, SETTLE, SHARPEN, Made, Step
from triscreen.selection.judge import Verdict
from triscreen.solvers import solve
from triscreen.solvers.at_lambda import evaluated

# An end without a solve is good enough if its own ball is so much smaller than the one between its neighbours.
_SMALLER = 0.5
# How much smaller gaps of solves here are than those before, and the smallest one.
_SHARPER, _SHARPEST = 1e-3, 1e-12


@dataclass(frozen=True, eq=False)
class Piece:
    """What is decided for every lambda between two keys; final: it cannot be cut, its ends are as sharp as can be."""

    high: float
    low: float
    verdict: Verdict
    final: bool = False


class Side:
    """A path, the bounds of its error, and the ends that were made since.

    Parameters
    ----------
    bounds : Bounds
        With their judge and path.
    keys : array, optional
        Of the lambdas of the path; by default these themselves.
    scale : float
        lambda of a key: scale times the key.
    """

    def __init__(self, bounds, keys=None, scale=1.0):
        self.path, self.judge, self.scale = bounds.path, bounds.judge, scale
        self.problem = self.judge.problem
        lambdas = self.path.lambdas.tolist()
        keys = lambdas if keys is None else [float(key) for key in keys]
        self.rows = dict(zip(keys, self.path._rows, strict=True))
        self._numbers = {key: number for number, key in enumerate(keys)}
        pairs = pairwise(keys) if len(keys) > 1 else [(keys[0], keys[0])]
        self.pieces = [
            Piece(high, low, Verdict(*known))
            for (high, low), *known in zip(pairs, bounds.outcomes, bounds.left, strict=True)
        ]
        self._made, self._ends, self._points, self._tols = {}, {}, {}, {}
        self.n_solved = self.n_evaluated = 0

    def arrays(self):
        """Return (falling keys, lower bounds, upper bounds) of the pieces."""
        keys = np.array([self.pieces[0].high, *(piece.low for piece in self.pieces)])
        lower, upper = zip(*((piece.verdict.lower, piece.verdict.upper) for piece in self.pieces), strict=True)
        return keys, np.array(lower), np.array(upper)

    def place(self, key):
        """Return the number of the piece that has this key in it; of two the one below."""
        lows = [-piece.low for piece in self.pieces]
        return min(bisect.bisect_right(lows, -key), len(self.pieces) - 1)

    def upper_at(self, key):
        """Return an upper bound of the error at one lambda: by the ball of its own, if it is an end, or its piece's."""
        found = [piece.verdict for piece in self.pieces if piece.low <= key <= piece.high]
        best = min(found, key=lambda verdict: verdict.upper)
        if not best.is_open or not (key in self._made or key in self.rows):
            return best.upper
        if key not in self._points:
            end = self._end(key)
            self._points[key] = self.judge.decide(end, end, best).upper
        return min(best.upper, self._points[key])

    @property
    def points(self):
        """The errors at single lambdas that are known: key -> at most this."""
        return dict(self._points)

    def learn(self, key, error):
        """Take up the error at a single lambda, as `upper_at` has found it."""
        self._points[key] = error

    def _end(self, key):
        if key not in self._ends:
            if key in self._made:  # by a run before this one
                made = self._made[key]
                end = End.of(self.problem, made.M, self._inside(key), made.smoothing, made.factor)
            else:
                end = self.path._end(self._numbers[key], self.problem)
            self._ends[key] = end
        return self._ends[key]

    def _inside(self, key):
        lam = self.rows[key].lam if key in self.rows else self.scale * key
        return self.problem.units.into(lam, LAMBDA)

    def step(self, place, may_solve):
        """Return the `Step` that cuts a piece in two, or makes one of its ends better; None: that takes a solve."""
        piece = self.pieces[place]
        key = float(np.sqrt(piece.high) * np.sqrt(piece.low))
        problem, inside = self.problem, self._inside(key)
        first, second = self._end(piece.high), self._end(piece.low)
        between = Between(problem, first, second)
        radius = between.ball(inside).radius
        for other, end in ((piece.high, first), (piece.low, second)):
            if end.own(between.N)[0].radius > _SMALLER * radius:
                return self._sharper(place, other, end, may_solve)
        p = between.share(inside)
        M = (1 - p) * first.M + p * second.M
        made = Made(key, M, problem.cone.project(M).factor, problem.loss.smoothings[-1])
        end = End.of(problem, M, inside, made.smoothing, made.factor)
        if end.ball(inside, between.N).radius > _SMALLER * radius:
            if not may_solve:
                return None
            made, end = self._solve(key, M, _SHARPER * self.path.tol)
        halves = ((first, end), (end, second))
        verdicts = [self.judge.decide(*both, piece.verdict) for both in halves]
        self._ends[key] = end
        return Step(CUT, [place], made, verdicts)

    def _sharper(self, place, key, end, may_solve):
        """Return the `Step` that solves again at an end, or says that it is as sharp as can be; None: see `step`."""
        before = self._tols.get(key, self.path.tol)
        if before <= _SHARPEST:
            return Step(FINAL, [place])
        if not may_solve:
            return None
        made, end = self._solve(key, end.M, _SHARPER * before)
        places, verdicts = [], []
        for number, piece in enumerate(self.pieces):
            if key in (piece.high, piece.low):
                ends = (end if other == key else self._end(other) for other in (piece.high, piece.low))
                places.append(number)
                verdicts.append(self.judge.decide(*ends, piece.verdict))
        self._ends[key] = end
        return Step(SHARPEN, places, made, verdicts)

    def apply(self, step):
        """Take a `Step`."""
        if step.kind == FINAL:
            (place,) = step.places
            self.pieces[place] = replace(self.pieces[place], final=True)
            return
        made = step.made
        self._keep(made)
        if step.kind == CUT:
            (place,) = step.places
            piece = self.pieces[place]
            ends = (piece.high, made.key), (made.key, piece.low)
            self.pieces[place : place + 1] = [
                Piece(high, low, verdict) for (high, low), verdict in zip(ends, step.verdicts, strict=True)
            ]
            self.n_evaluated += made.row is None
        else:
            self._points.pop(made.key, None)
            for place, verdict in zip(step.places, step.verdicts, strict=True):
                self.pieces[place] = replace(self.pieces[place], verdict=verdict)

    def _keep(self, made):
        self._made[made.key] = made
        if made.row is not None:
            self.rows[made.key], self._tols[made.key] = made.row, made.tol
            self.n_solved += 1

    def settling(self, key):
        """Return the `Step` that has a solution at this key, or None if there is one."""
        if key in self.rows:
            return None
        place = self.place(key)
        start = self._end(key) if key in self._made else self._end(self.pieces[place].high)
        made, self._ends[key] = self._solve(key, start.M, _SHARPER * self.path.tol)
        return Step(SETTLE, [place], made)

    def settle(self, step):
        """Take the `Step` that `settling` gave: what is proven stays as it is."""
        self._keep(step.made)

    def _solve(self, key, M, tol):
        """Solve at a key; return what was `Made`, and the `End` there."""
        problem, inside = self.problem, self._inside(key)
        tol = max(_SHARPEST, tol)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # its ball has the gap that was reached
            start = problem.from_core(problem.cone.project(M).plus)
            sol = solve(problem, problem.units.out(inside, LAMBDA), tol=tol, start=start)
        projection = problem.cone.project(problem.to_core(sol.M)[0])
        evaluation = problem.evaluate(
            projection.plus, problem.distances(projection.factor), inside, sol.smoothing, factor=projection.factor
        )
        row = Row.of(
            problem, inside, evaluated(evaluation, problem.rounding, inside), n_iter=sol.n_iter, passes=sol.passes,
            scanned=0.0, share=1.0, undecided=1.0, seconds=sol.seconds, stopped_by=sol.stopped_by, events=[],
        )  # fmt: skip
        made = Made(key, projection.plus, projection.factor, sol.smoothing, row, tol)
        return made, End.at(problem, evaluation, inside)

    def new_path(self):
        """Return the path with all that was solved."""
        return self.path._of(list(self.rows.values()), self.problem)
