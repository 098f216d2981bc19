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
        self._ends, self._points, self._tols = {}, {}, {}
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
        if not best.is_open or not (key in self._ends or key in self.rows):
            return best.upper
        if key not in self._points:
            end = self._end(key)
            self._points[key] = self.judge.decide(end, end, best).upper
        return min(best.upper, self._points[key])

    def _end(self, key):
        if key not in self._ends:
            self._ends[key] = self.path._end(self._numbers[key], self.problem)
        return self._ends[key]

    def _inside(self, key):
        lam = self.rows[key].lam if key in self.rows else self.scale * key
        return self.problem.units.into(lam, LAMBDA)

    def cut(self, place, may_solve):
        """Cut a piece in two, or make one of its ends better; False: that takes a solve, and none may be done."""
        piece = self.pieces[place]
        key = float(np.sqrt(piece.high) * np.sqrt(piece.low))
        problem, inside = self.problem, self._inside(key)
        first, second = self._end(piece.high), self._end(piece.low)
        between = Between(problem, first, second)
        radius = between.ball(inside).radius
        for other, end in ((piece.high, first), (piece.low, second)):
            if end.own(between.N)[0].radius > _SMALLER * radius:
                return self._sharpen(place, other, end, may_solve)
        p = between.share(inside)
        M = (1 - p) * first.M + p * second.M
        end = End.of(problem, M, inside, problem.loss.smoothings[-1])
        if end.ball(inside, between.N).radius > _SMALLER * radius:
            if not may_solve:
                return False
            end = self._solve(key, M, _SHARPER * self.path.tol)
        else:
            self.n_evaluated += 1
        self._ends[key] = end
        halves = ((piece.high, key, first, end), (key, piece.low, end, second))
        self.pieces[place : place + 1] = [
            Piece(high, low, self.judge.decide(one, two, piece.verdict)) for high, low, one, two in halves
        ]
        return True

    def _sharpen(self, place, key, end, may_solve):
        """Solve again at an end, and look at its two pieces again; where that is as sharp as can be, it is final."""
        before = self._tols.get(key, self.path.tol)
        if before <= _SHARPEST:
            self.pieces[place] = replace(self.pieces[place], final=True)
            return True
        if not may_solve:
            return False
        self._ends[key] = self._solve(key, end.M, _SHARPER * before)
        self._points.pop(key, None)
        for place, piece in enumerate(self.pieces):
            if key in (piece.high, piece.low):
                ends = self._end(piece.high), self._end(piece.low)
                self.pieces[place] = replace(piece, verdict=self.judge.decide(*ends, piece.verdict))
        return True

    def settle(self, key):
        """Have a solution at this key: what is proven there may be so without one."""
        if key not in self.rows:
            place = self.pieces[self.place(key)]
            start = self._ends[key] if key in self._ends else self._end(place.high)
            self._ends[key] = self._solve(key, start.M, _SHARPER * self.path.tol)

    def _solve(self, key, M, tol):
        """Solve at a key, keep the row, and return the `End` there."""
        problem, inside = self.problem, self._inside(key)
        tol = self._tols[key] = max(_SHARPEST, tol)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # its ball has the gap that was reached
            start = problem.from_core(problem.cone.project(M).plus)
            sol = solve(problem, problem.units.out(inside, LAMBDA), tol=tol, start=start)
        projection = problem.cone.project(problem.to_core(sol.M)[0])
        evaluation = problem.evaluate(
            projection.plus, problem.distances(projection.factor), inside, sol.smoothing, factor=projection.factor
        )
        self.rows[key] = Row.of(
            problem, inside, evaluated(evaluation, problem.rounding, inside), n_iter=sol.n_iter, passes=sol.passes,
            scanned=0.0, share=1.0, undecided=1.0, seconds=sol.seconds, stopped_by=sol.stopped_by, events=[],
        )  # fmt: skip
        self.n_solved += 1
        return End.at(problem, evaluation, inside)

    def new_path(self):
        """Return the path with all that was solved."""
        return self.path._of(list(self.rows.values()), self.problem)
