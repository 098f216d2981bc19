"""Which pairs still matter, for all positives of an anchor times all its negatives, without listing triplets.

|H| <= |u|^2 + |v|^2 is a sum over the two pairs, so a triplet keeps its zone in a ball of radius r around a metric if

    zero loss     p + r |v|^2  <  n - r |u|^2 - 1          linear loss   -p + r |v|^2  <  -n - r |u|^2 + low

Each inequality compares a number of the positive with one of the negative: in the sorted positives, a negative's
decided ones are a prefix. Two balls at a time (the ends of a tube, or of a range of lambda): the prefix in the order of
the first, cut where the running maximum of the second says no. A pair all of whose triplets are decided may leave; what
is decided is fixed at the zone's alpha, 0 or 1, and so is its weight.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from triscreen._kernels.margins import _join
from triscreen._kernels.ordered import N_FLOATS, N_INTS, arrange, longest, scale_by, sweep_row, to_grains, up_to

_LARGE = 2.0**60  # grains


@njit(cache=True, nogil=True)
def _grains(value, inverse):
    """A value in grains, rounded down, within what 64 bits can hold."""
    return np.int64(np.floor(min(max(value * inverse, -_LARGE), _LARGE)))


@njit(cache=True, nogil=True)
def decide_row(near, far, radii, error, low, both, inverse, used_pos, used_neg, counts, ints, left):
    """Mark the pairs of an anchor that have undecided triplets; add the numbers of decided ones to counts: (L, R).

    near, far: distances at both ends and |delta|^2 of the positives and of the negatives, a row each.
    """
    count, n_far = near.shape[1], far.shape[1]
    keys, starts, order, values, second, hist, decided = (
        ints[0], ints[1], ints[2], ints[3], ints[4], ints[5], ints[6],
    )  # fmt: skip
    decided[:count] = 0
    left[:n_far] = count
    for zone in range(1, -1, -1):
        if zone == 0 and not both:
            continue
        sign, level = (1.0, -1.0) if zone == 1 else (-1.0, low)
        for j in range(count):
            values[j] = _grains(sign * near[0, j] + radii[0] * near[2, j], inverse) + 2
        scale, steps = arrange(values[:count], keys, order, starts)
        highest = np.iinfo(np.int64).min
        for j in range(count):
            o = order[j]
            highest = max(highest, _grains(sign * near[1, o] + radii[1] * near[2, o], inverse) + 2)
            second[j] = highest
            hist[j] = 0
        hist[count] = 0
        for n in range(n_far):
            x = _grains(sign * far[0, n] - radii[0] * far[2, n] - error + level, inverse) - 1
            k = up_to(x, keys, count, starts, scale, steps)
            x = _grains(sign * far[1, n] - radii[1] * far[2, n] - error + level, inverse) - 1
            if k > 0 and second[k - 1] > x:
                lowest = 0
                while lowest < k:
                    middle = (lowest + k) >> 1
                    if second[middle] <= x:
                        lowest = middle + 1
                    else:
                        k = middle
            hist[k] += 1
            left[n] -= k
            counts[zone] += k
        above = 0
        for j in range(count - 1, -1, -1):
            above += hist[j + 1]
            decided[order[j]] += above
    for j in range(count):
        used_pos[j] = decided[j] < n_far
    for n in range(n_far):
        used_neg[n] = left[n] > 0


@njit(cache=True, nogil=True)
def _pick(values, used, wanted, out):
    count = 0
    for k in range(values.size):
        if used[k] == wanted:
            out[count] = values[k]
            count += 1
    return count


@njit(cache=True, nogil=True)
def fix_row(p, q, used_pos, used_neg, one, width, grain, smoothing, c_pos, c_neg, part, floats, ints, spare):
    """Write the pair weights of the triplets that have a pair without use, and add their sums to part."""
    some_p, some_q, c1, c2 = spare
    scale_by(c_pos, 0, p.size, 0.0)
    scale_by(c_neg, 0, q.size, 0.0)
    # All positives with the negatives that go; then the positives that go with the negatives that stay.
    for stays in (False, True):
        m = _pick(q, used_neg, stays, some_q)
        count = _pick(p, used_pos, False, some_p) if stays else p.size
        if m > 0 and count > 0:
            near = some_p[:count] if stays else p
            sweep_row(near, some_q[:m], one, width, grain, smoothing, c1, c2, part, floats, ints)
            m = count = 0
            for k in range(q.size):
                if used_neg[k] == stays:
                    c_neg[k] = c2[m]
                    m += 1
            for k in range(p.size):
                if not (stays and used_pos[k]):
                    c_pos[k] += c1[count]
                    count += 1


@njit(cache=True, nogil=True)
def reduce_ordered(
    first, second, lengths, radii, error, low, both, ptr, split, weights, one, width, grain, smoothing,
    pair_weights, used, sums, counts, start, stop,
):  # fmt: skip
    """Decide and fix for the anchors start <= i < stop, whose pairs' |delta|^2 are at most ``lengths``.

    ``first`` and ``second`` are the distances at the two centres; ``used`` gets the pairs that stay, ``pair_weights``
    the weights of what is fixed.
    """
    most, widest = longest(ptr, split, start, stop)
    p, q, left = np.empty(most, np.int64), np.empty(widest, np.int64), np.empty(widest, np.int64)
    close, far = np.empty((3, most)), np.empty((3, widest))
    floats, ints = np.empty((N_FLOATS, most + 2)), np.empty((N_INTS, 4 * most + 4), np.int64)
    spare = (np.empty(most, np.int64), np.empty(widest, np.int64), np.empty(most), np.empty(widest))
    part = np.zeros(3)
    for i in range(start, stop):
        begin, middle, end = ptr[i], split[i], ptr[i + 1]
        n_pos, n_neg = middle - begin, end - middle
        if n_pos == 0 or n_neg == 0:
            for k in range(begin, end):
                pair_weights[k], used[k] = 0.0, False
            continue
        for k in range(n_pos):
            close[0, k], close[1, k], close[2, k] = first[begin + k], second[begin + k], lengths[begin + k]
        for k in range(n_neg):
            far[0, k], far[1, k], far[2, k] = first[middle + k], second[middle + k], lengths[middle + k]
        to_grains(close[0], n_pos, 1.0 / grain, p)
        to_grains(far[0], n_neg, 1.0 / grain, q)
        decide_row(
            close[:, :n_pos], far[:, :n_neg], radii, error, low, both, 1.0 / grain, used[begin:middle],
            used[middle:end], counts, ints, left,
        )  # fmt: skip
        fix_row(
            p[:n_pos], q[:n_neg], used[begin:middle], used[middle:end], one, width, grain, smoothing,
            pair_weights[begin:middle], pair_weights[middle:end], part, floats, ints, spare,
        )  # fmt: skip
        scale_by(pair_weights, begin, end, weights[i])
        for k in range(3):
            part[k] *= weights[i]
        _join(sums, part)
