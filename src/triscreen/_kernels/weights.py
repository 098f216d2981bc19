"""Work per pair on what is known of it: its weight, its distances under several metrics, their errors."""

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


@compiled()
def add_distances(dist, reach, coefficient, step, relative, values, errors):
    """Add coefficient times the distances to values, and what may be wrong with that to errors.

    A distance D of a pair with |x_a| + |x_b| = reach is off by 2 sqrt(D) E + E^2 + relative D, E = step reach
    (`triscreen.problem.rounding`).
    """
    size = abs(coefficient)
    for p in range(dist.size):
        far, off = dist[p], step * reach[p]
        values[p] += coefficient * far
        errors[p] += size * (2.0 * sqrt(max(far, 0.0)) * off + off * off + relative * abs(far))
