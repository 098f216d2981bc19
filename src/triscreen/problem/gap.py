"""What a gap is relative to, and when it is good enough: the one definition of both."""

from __future__ import annotations


class Gap:
    """For whatever has a ``primal`` and a ``gap``: of an evaluation, a certificate, a solution, a lambda of a path.

    ``floor``: what a gap is relative to at least; zero without a prior (`triscreen.problem.prior`).
    """

    floor = 0.0

    @property
    def scale(self) -> float:
        """What the gap is relative to: |primal|, or the floor where that is larger."""
        return max(abs(self.primal), self.floor)

    @property
    def rel_gap(self) -> float:
        """gap / scale."""
        return self.gap / self.scale

    def within(self, tol: float, rounding: float = 0.0) -> bool:
        """Is the gap, and what rounding may have hidden of it, at most tol times the scale?"""
        return bool(max(self.gap, rounding) <= tol * self.scale)
