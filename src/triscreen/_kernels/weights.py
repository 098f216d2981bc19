"""Work per pair weight."""

from __future__ import annotations

from math import sqrt

from triscreen._kernels.common import compiled


@compiled()
def strayed_weights(own, other, squares, noise, out):
    """out[p] = own[p] - other[p] where that is more than rounding, noise (1 + |other[p]|); 0 elsewhere.

    ``squares`` are the pairs' |delta|^4. Returns (how many differ, the sum of |out|, the sum of |delta|^2 times what
    was left out as rounding).
    """
    count = 0
    size = lost = 0.0
    for p in range(own.size):
        away = own[p] - other[p]
        if away != 0.0:
            if abs(away) <= noise * (1.0 + abs(other[p])):
                lost += abs(away) * sqrt(squares[p])
                away = 0.0
            else:
                size += abs(away)
                count += 1
        out[p] = away
    return count, size, lost
