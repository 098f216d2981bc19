"""Where between the ends of some paths the mean of their errors is lowest, to within eps."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from triscreen._utils.progress import progress
from triscreen.errors import Interrupted
from triscreen.selection.journal import Journal

# Pieces are not cut beyond this ratio of lambdas: where predictions switch, that need not end.
_NARROWEST = 1 - 1e-7


class Search:
    """Pieces of several sides, and the lowest mean error that is known.

    Parameters
    ----------
    sides : list of Side
        All from the same first key to the same last one.
    eps : float
    journal : Journal, optional
        Of its steps.
    """

    def __init__(self, sides, eps, journal=None):
        self.sides, self.eps = sides, eps
        self._journal = Journal(None, sides) if journal is None else journal
        self.error, self.key = np.inf, None
        self._judged, self._is_narrow = set(), False
        keys, _, upper = self.curve()
        for place in np.flatnonzero(upper == upper.min()):  # what holds for a whole interval does so at its ends
            self.offer(float(keys[place]), float(upper[place]))

    def curve(self):
        """Return (falling keys, lower bounds of the mean error between these, upper bounds)."""
        parts = [side.arrays() for side in self.sides]
        if len(parts) == 1:
            return parts[0]
        keys = np.unique(np.concatenate([part[0] for part in parts]))[::-1]
        keys = np.repeat(keys, 2) if len(keys) == 1 else keys  # from the only one to itself
        middle = np.sqrt(keys[:-1]) * np.sqrt(keys[1:])
        lower, upper = np.zeros(len(middle)), np.zeros(len(middle))
        for own, low, high in parts:
            place = np.clip(np.searchsorted(-own, -middle) - 1, 0, len(low) - 1)
            lower += low[place]
            upper += high[place]
        return keys, lower / len(parts), upper / len(parts)

    def run(self, max_seconds=None, max_lambdas=None):
        """Cut until no lambda can be better by more than eps, or a limit is reached; return why it ended."""
        begin = time.perf_counter()
        try:
            with progress("selection") as show:
                while True:
                    keys, lower, _ = self.curve()
                    known = self._journal.next
                    for side, key, error in () if known is None else known.points:
                        self.sides[side].learn(key, error)
                    place = self._next(keys, lower)
                    if place is None:
                        return "narrow" if self._is_narrow else "eps"
                    if known is None and max_seconds is not None and time.perf_counter() - begin > max_seconds:
                        return "max_seconds"
                    if not self._cut(keys[place], keys[place + 1], max_lambdas):
                        return "max_lambdas"
                    show(f"error {self.error:.4f}, proven to {self.error - lower.min():.4f}")
        except KeyboardInterrupt:
            raise Interrupted("the selection was interrupted; what was proven so far is the .result", None) from None

    @property
    def n_solved(self):
        """Lambdas that were solved."""
        return sum(side.n_solved for side in self.sides)

    @property
    def n_evaluated(self):
        """Metrics that were evaluated without a solve."""
        return sum(side.n_evaluated for side in self.sides)

    def offer(self, key, error):
        """Tell of an upper bound of the error at a key; of infinity, that is without any learning, equal ones too."""
        if error < self.error or (error == self.error and key == np.inf):
            self.error, self.key = error, key

    def _next(self, keys, lower):
        """Return the number of the interval to cut next, or None; the errors at its ends are known then."""
        for place in np.lexsort((keys[1:] / keys[:-1], lower)):  # the lowest, of these the widest
            for key in keys[place : place + 2].tolist():
                if key not in self._judged:
                    self._judged.add(key)
                    self.offer(key, float(np.mean([side.upper_at(key) for side in self.sides])))
            if lower[place] >= self.error - self.eps:
                return None  # the others are no lower
            if keys[place + 1] < keys[place] * _NARROWEST and self._side_to_cut(*keys[place : place + 2]) is not None:
                return int(place)
            self._is_narrow = True
        return None

    def _cut(self, high, low, max_lambdas):
        """Cut what the side has there that has most open predictions; False: that would be a solve too many."""
        side, place = self._side_to_cut(high, low)
        before, step = side.pieces[place], self._journal.next
        may_solve = max_lambdas is None or self.n_solved < max_lambdas
        if step is None:
            step = side.step(place, may_solve)
            if step is not None:
                step = replace(step, side=self.sides.index(side), points=self._points())
                self._journal.keep(step)
        elif self.sides[step.side] is not side or place not in step.places or not step.fits(side.pieces):
            raise self._journal.refusal("is a step of another search")
        elif step.is_solved and not may_solve:
            step = None
        if step is None:
            return False
        self.sides[step.side].apply(step)
        self._journal.took()
        # What is known at these ends, and in the middle, is better now.
        self._judged -= {before.high, before.low, high, low}
        return True

    def _points(self):
        return [[number, key, error] for number, side in enumerate(self.sides) for key, error in side.points.items()]

    def settle(self):
        """Have a solution at the lambda that was chosen, on every side: what is proven there may be so without one."""
        for number, side in enumerate(self.sides):
            step = self._journal.settled(number, self.key)
            if step is None:
                step = side.settling(self.key)
                if step is None:
                    continue
                step = replace(step, side=number)
                self._journal.keep(step)
            side.settle(step)

    def _side_to_cut(self, high, low):
        """Return the side with most open predictions there, and the number of its piece; None: all are final."""
        middle, best = np.sqrt(high) * np.sqrt(low), (0.0, None)
        for side in self.sides:
            place = side.place(middle)
            piece = side.pieces[place]
            share = piece.verdict.upper - piece.verdict.lower
            if share > best[0] and not piece.final:
                best = share, (side, place)
        return best[1]

    def possible(self):
        """Return the intervals of keys, the largest first, that may hold one that is better by more than eps."""
        keys, lower, _ = self.curve()
        found = []
        for high, low, bound in zip(keys[:-1].tolist(), keys[1:].tolist(), lower, strict=True):
            if bound < self.error - self.eps:
                if found and found[-1][1] == high:
                    high = found.pop()[0]
                found.append((high, low))
        return found

    def gap(self):
        """Return by how much another lambda may be better at most."""
        return max(0.0, self.error - float(self.curve()[1].min())) if np.isfinite(self.error) else np.inf
