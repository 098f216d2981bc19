"""The engine that a solver works on, and how screening makes it smaller."""

from __future__ import annotations

from triscreen.screening.by_pair import PairScreener
from triscreen.screening.by_triplet import Screener


class Screened:
    """An engine that becomes smaller while screening decides triplets; without screening, the engine as it is.

    Its screener is made when it is first needed: it keeps numbers for each triplet, and short solves end before.

    Parameters
    ----------
    base : Engine
        What there is to solve, before anything is decided.
    screening : Screening or None
    lam : float
    """

    def __init__(self, base, screening, lam):
        self.base, self.screening, self.lam = base, screening, lam
        self._on, self._screener = False, None

    @property
    def engine(self):
        """What is left of the base."""
        return self.base if self._screener is None else self._screener.engine

    @property
    def is_whole(self):
        """Is that all of it?"""
        return self.engine is self.base

    @property
    def includes_solution(self):
        """Does what was decided hold at the solution, too, not only at the optimum, by proofs that are ours?"""
        return self.screening is not None and self.screening.include_solution and not self.screening.own_parts

    @property
    def undecided(self):
        """Triplets that are not screened."""
        return self.base.triplets.n_triplets if self._screener is None else self._screener.undecided

    @property
    def numbers(self):
        """The numbers of the base's triplets that the engine still has; None: all."""
        return None if self._screener is None else self._screener.numbers

    @property
    def events(self):
        """What each sphere and rule decided."""
        return [] if self._screener is None else self._screener.events

    def switch_on(self):
        """Screen from now on, when it is due."""
        self._on = True

    def is_due(self, n_iter):
        """Is it time to screen after this iteration?"""
        return self._on and n_iter % self.screening.every == 0

    def start(self, evaluation, lam0, tol):
        """Screen before the first iteration; lam0: the lambda that the evaluation's M is a solution for, or None.

        Returns the evaluation on what is left, and the passes that this took.
        """
        self.switch_on()
        return self._screen(tol, lambda screener: screener.start(evaluation, lam0))

    def step(self, evaluation, n_iter, tol):
        """Screen after an iteration; returns the evaluation on what is left, and the passes that this took."""
        return self._screen(tol, lambda screener: screener.step(evaluation, n_iter))

    def _screen(self, tol, work):
        if self._screener is None:
            kind = Screener if self.base.triplets.lists_triplets else PairScreener
            self._screener = kind(self.base, self.screening, self.lam, tol)
        screener = self._screener
        evaluation = work(screener)
        passes, screener.passes = screener.passes, 0.0
        return evaluation, passes
