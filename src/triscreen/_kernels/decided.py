"""Which pairs still matter, for all positives of an anchor times all its negatives, without listing triplets.

|H| <= |u|^2 + |v|^2 is a sum over the two pairs, so a triplet keeps its zone in a ball of radius r around a metric if

    zero loss     p + r |v|^2  <  n - r |u|^2 - 1          linear loss   -p + r |v|^2  <  -n - r |u|^2 + low

Each inequality compares a number of the positive with one of the negative: in the sorted positives, a negative's
decided ones are a prefix. Two balls at a time (the ends of a tube, or of a range of lambda): the prefix in the order of
the first, cut where the running maximum of the second says no. A pair all of whose triplets are decided may leave.
"""

from __future__ import annotations

import numpy as np

from triscreen._kernels.compiled import LINEAR, ZERO, compiled
from triscreen._kernels.ordered import arrange, longest, up_to

_LARGE = 2.0**60  # grains


@compiled()
def _grains(value, inverse):
    """A value in grains, rounded down, within what 64 bits can hold."""
    return np.int64(np.floor(min(max(value * inverse, -_LARGE), _LARGE)))


@compiled()
def decide_ordered(first, second, lengths, radii, error, low, both, grain, ptr, split, used, counts, start, stop):
    """Mark the used pairs, those with undecided triplets, of the anchors start <= i < stop.

    ``first`` and ``second`` are the distances at the two centres, ``lengths`` bounds of |delta|^2; the numbers of
    decided triplets are added to counts: (L, R).
    """
    most, widest = longest(ptr, split, start, stop)
    keys, starts = np.empty(4 * most + 4, np.int64), np.empty(4 * most + 4, np.int64)
    ints = np.empty((5, most + 2), np.int64)
    values, order, highest, hist, decided = ints[0], ints[1], ints[2], ints[3], ints[4]
    left = np.empty(widest, np.int64)
    inverse = 1.0 / grain
    for i in range(start, stop):
        begin, middle, end = ptr[i], split[i], ptr[i + 1]
        count = middle - begin
        for n in range(end - middle):
            left[n] = count
        for j in range(count):
            decided[j] = 0
        for zone in (ZERO, LINEAR):
            if count == 0 or (zone == LINEAR and not both):
                continue
            sign, level = (1.0, -1.0) if zone == ZERO else (-1.0, low)
            for j in range(count):
                p = begin + j
                values[j] = _grains(sign * first[p] + radii[0] * lengths[p], inverse) + 2
            scale, steps = arrange(values[:count], keys, order, starts)
            running = np.int64(-(2**62))
            for j in range(count):
                p = begin + order[j]
                running = max(running, _grains(sign * second[p] + radii[1] * lengths[p], inverse) + 2)
                highest[j], hist[j] = running, 0
            hist[count] = 0
            for n in range(middle, end):
                x = _grains(sign * first[n] - radii[0] * lengths[n] - error + level, inverse) - 1
                k = up_to(x, keys, count, starts, scale, steps)
                x = _grains(sign * second[n] - radii[1] * lengths[n] - error + level, inverse) - 1
                if k > 0 and highest[k - 1] > x:
                    bottom = 0
                    while bottom < k:
                        half = (bottom + k) >> 1
                        if highest[half] <= x:
                            bottom = half + 1
                        else:
                            k = half
                hist[k] += 1
                left[n - middle] -= k
                counts[zone - LINEAR] += k
            above = 0
            for j in range(count - 1, -1, -1):
                above += hist[j + 1]
                decided[order[j]] += above
        for j in range(count):
            used[begin + j] = decided[j] < end - middle
        for n in range(middle, end):
            used[n] = left[n - middle] > 0
