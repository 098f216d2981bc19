"""The unit of length inside: a power of two, so that points of every accepted scale are points of ordinary scale.

With points in units of 2^e every number inside is the user's times a power of 2^e, its *power*: 1 for points, 2 for H
and A, -2 for M, 4 for lambda (M = A/lam), -4 for a step size; losses, objectives and gaps are the same. Multiplying by
a power of two is exact, so the unit changes no digit of any result; it keeps squares and products of squares (|H|^2 is
|x|^4, its square |x|^8) from over- and underflowing, where no bound of rounding would hold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from triscreen._utils.validation import blocks_of_rows

POINT, MATRIX, FACTOR, METRIC, LAMBDA, STEP = 1, 2, -1, -2, 4, -4
# Points between 2^-30 and 2^30 stay as they are.
_ORDINARY = 30


@dataclass(frozen=True)
class Units:
    """Lengths inside are the user's divided by 2^exponent."""

    exponent: int = 0

    @classmethod
    def of(cls, points):
        """Return the units in which the largest coordinate is of ordinary size."""
        largest = max((np.abs(points[rows]).max(initial=0.0) for rows in blocks_of_rows(points)), default=0.0)
        exponent = int(np.frexp(largest)[1])
        return cls(exponent if abs(exponent) > _ORDINARY else 0)

    def into(self, value, power):
        """Return a user's number or array as it is inside."""
        return self._times(value, -power)

    def out(self, value, power):
        """Return a number or array from inside as the user's."""
        return self._times(value, power)

    def _times(self, value, power):
        if not self.exponent or value is None:
            return value
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.ldexp(value, power * self.exponent)
        return scaled if isinstance(value, np.ndarray) else float(scaled)
