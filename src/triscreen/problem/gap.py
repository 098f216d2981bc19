"""What a gap is relative to, and when it is good enough: the one definition of both."""

from __future__ import annotations


class Gap:
    """For whatever has a ``primal`` and a ``gap``: of an evaluation, a certificate, a solution, a lambda of a path."""

    @property
    def scale(self):
        """What the gap is relative to: |primal|."""
        return abs(self.primal)

    @property
    def rel_gap(self):
        """gap / |primal|."""
        return self.gap / self.scale

    def within(self, tol, rounding=0.0):
        """Is the gap, and what rounding may have hidden of it, at most tol |primal|?"""
        return bool(max(self.gap, rounding) <= tol * self.scale)
