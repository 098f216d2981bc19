"""Work per triplet, O(1) each: from pair distances to loss, dual sums and pair weights.

The triplets of an anchor are all its positives times all its negatives: implied, never listed. With b = 1 - margin and
smoothing s > 0, alpha = clip(b / s, 0, 1). A sweep adds to ``sums``

    sums[:, 0] += w (alpha b - (s/2) alpha^2)      the smoothed hinge loss
    sums[:, 1] += w alpha
    sums[:, 2] += w alpha (1 - alpha)

(row 0 the totals, row 1 the errors made in adding them)

and gives each pair its weight: the sum of w alpha over triplets where it is the negative pair, minus the same
where it is the positive one (w = 1 here).

Which triplets may leave their zone: two ends of a tube of metrics give two distances per pair; margins are linear in M,
so over the tube's axis a margin lies between its values at the ends, and off the axis it moves by at most radius * |H|.
The norm is bounded by pairs alone: |H|^2 = |u|^4 + |v|^4 - 2 (u'v)^2 <= |u|^4 + |v|^4.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from triscreen._kernels.common import SUMS, UNDECIDED, compiled, join, off_zone, sphere_rule


@compiled(fastmath=SUMS)
def sweep_blocks(dist, ptr, split, smoothing, pair_weights, sums, start, stop):
    """Sweep the anchors start <= i < stop; their pairs are ptr[i]..split[i] (positive)..ptr[i + 1] (negative)."""
    inverse = 1.0 / smoothing
    half = 0.5 * smoothing
    part = np.zeros(3)
    for i in range(start, stop):
        loss = 0.0
        linear = 0.0
        spread = 0.0
        begin, middle, end = ptr[i], split[i], ptr[i + 1]
        negative = dist[middle:end]
        negative_weights = pair_weights[middle:end]
        negative_weights[:] = 0.0
        nearest = np.inf
        for n in range(end - middle):
            nearest = min(nearest, negative[n])
        for p in range(begin, middle):
            positive = dist[p]
            total = 0.0
            if nearest - positive < 1.0:  # otherwise every triplet of this pair has zero loss
                for n in range(end - middle):
                    b = 1.0 - (negative[n] - positive)
                    a = b * inverse
                    a = 0.0 if a < 0.0 else a
                    a = 1.0 if a > 1.0 else a
                    loss += a * (b - half * a)
                    total += a
                    spread += a * (1.0 - a)
                    negative_weights[n] += a
            pair_weights[p] = -total
            linear += total
        part[0], part[1], part[2] = loss, linear, spread
        join(sums, part)


@compiled()
def largest_margin_blocks(dist, ptr, split):
    """The largest margin of any triplet: per anchor the farthest negative minus the nearest positive."""
    best = -np.inf
    for i in range(split.size):
        if ptr[i] < split[i] and split[i] < ptr[i + 1]:
            nearest = dist[ptr[i]]
            for p in range(ptr[i], split[i]):
                nearest = min(nearest, dist[p])
            for n in range(split[i], ptr[i + 1]):
                best = max(best, dist[n] - nearest)
    return best


@compiled()
def block_indices(ptr, split, second, start_anchor, start, out):
    """Write the triplets start, start + 1, ... of a block set into the rows of out; returns nothing."""
    t = 0
    skip = start
    for i in range(start_anchor, split.size):
        for p in range(ptr[i], split[i]):
            for n in range(split[i], ptr[i + 1]):
                if skip > 0:
                    skip -= 1
                    continue
                if t == out.shape[0]:
                    return
                out[t, 0] = i
                out[t, 1] = second[p]
                out[t, 2] = second[n]
                t += 1


@compiled()
def block_pairs(ptr, split, keep, positive, negative):
    """Write the two pair numbers of every triplet of a block set that the mask keeps."""
    t = 0
    n_kept = 0
    for i in range(split.size):
        for p in range(ptr[i], split[i]):
            for n in range(split[i], ptr[i + 1]):
                if keep[t]:
                    positive[n_kept] = p
                    negative[n_kept] = n
                    n_kept += 1
                t += 1


@compiled()
def sphere_blocks(values, errors, ptr, split, norms, radius, gamma, zones, counts, start, stop, offset):
    """The sphere rule for the anchors start <= i < stop of a block set; offset: their first triplet."""
    t = offset
    for i in range(start, stop):
        for p in range(ptr[i], split[i]):
            for n in range(split[i], ptr[i + 1]):
                if zones[t] == UNDECIDED:
                    error = errors[p] + errors[n]
                    sphere_rule(t, values[p], values[n], error, radius * norms[t], gamma, zones, counts)
                t += 1


@compiled()
def block_used(ptr, split, keep, used):
    """Mark the pairs of those triplets of a block set that the mask keeps."""
    t = 0
    for i in range(split.size):
        used[split[i] : ptr[i + 1]] = False
        for p in range(ptr[i], split[i]):
            here = False
            for n in range(split[i], ptr[i + 1]):
                here |= keep[t]
                used[n] |= keep[t]
                t += 1
            used[p] = here


@compiled()
def block_hull(ptr, split, used, numbers):
    """Write the numbers of the triplets of a block set whose two pairs are both used."""
    t = 0
    n_found = 0
    for i in range(split.size):
        for p in range(ptr[i], split[i]):
            if used[p]:
                for n in range(split[i], ptr[i + 1]):
                    if used[n]:
                        numbers[n_found] = t + n - split[i]
                        n_found += 1
            t += ptr[i + 1] - split[i]


@compiled()
def off_zone_blocks(dist, ptr, split, zones, smoothing):
    """Is there a decided triplet whose alpha at these distances is not that of its zone?"""
    t = 0
    inverse = 1.0 / smoothing
    for i in range(split.size):
        for p in range(ptr[i], split[i]):
            for n in range(split[i], ptr[i + 1]):
                if off_zone(dist[n] - dist[p], zones[t], inverse):
                    return True
                t += 1
    return False


@njit(inline="always")
def _stays(low_1, high_1, low_2, high_2, reach, error, low, both):
    """Do margins between these bounds, at the two ends of a tube, stay above 1 or below low while they move by reach?

    ``reach`` is the square of that. One test for one triplet and for many at once: rounding is monotone, so whatever is
    true of bounds is true of each margin between them.
    """
    above = (low_1 if low_1 < low_2 else low_2) - 1.0 - error
    below = low - (high_1 if high_1 > high_2 else high_2) - error
    away = below if both & (below > above) else above
    return (away > 0.0) & (away * away > reach)


@compiled()
def undecided_blocks(
    first, second, squares, ptr, split, radius, error, low, both, zones, offset, used, start, stop
):  # fmt: skip
    """used[p] = 1 for every pair of an anchor's triplets that are not proven to keep their zone.

    Proven: above 1 everywhere, or (if ``both``) below ``low`` everywhere, or decided in zones (if there are any; the
    anchors' first triplet is number ``offset``). ``first`` and ``second`` are the distances at the two ends, and
    ``squares`` the pairs' |delta|^4.

    Each positive pair is tried with all negative ones at once, then each negative pair with all positive ones that are
    left. Only triplets of two pairs that are left are looked at one by one, some tenth of them.
    """
    square = radius * radius
    longest = 0
    for i in range(start, stop):
        longest = max(longest, ptr[i + 1] - ptr[i])
    rows, columns, seen = np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(longest, np.bool_)
    far_1, far_2, far = np.empty(longest), np.empty(longest), np.empty(longest)
    t = offset
    for i in range(start, stop):
        begin, middle, end = ptr[i], split[i], ptr[i + 1]
        n_rows = n_columns = 0
        low_1 = low_2 = np.inf
        high_1 = high_2 = -np.inf
        most = 0.0
        for n in range(middle, end):
            a, b, c = first[n], second[n], squares[n]
            low_1 = a if a < low_1 else low_1
            high_1 = a if a > high_1 else high_1
            low_2 = b if b < low_2 else low_2
            high_2 = b if b > high_2 else high_2
            most = c if c > most else most
            used[n] = False
        for p in range(begin, middle):
            a, b = first[p], second[p]
            reach = square * (most + squares[p])
            used[p] = False
            rows[n_rows] = p
            n_rows += not _stays(low_1 - a, high_1 - a, low_2 - b, high_2 - b, reach, error, low, both)
        if n_rows > 0:
            low_1 = low_2 = np.inf
            high_1 = high_2 = -np.inf
            most = 0.0
            for r in range(n_rows):
                a, b, c = first[rows[r]], second[rows[r]], squares[rows[r]]
                low_1 = a if a < low_1 else low_1
                high_1 = a if a > high_1 else high_1
                low_2 = b if b < low_2 else low_2
                high_2 = b if b > high_2 else high_2
                most = c if c > most else most
            for n in range(middle, end):
                a, b, c = first[n], second[n], squares[n]
                reach = square * (c + most)
                columns[n_columns], seen[n_columns] = n, False
                far_1[n_columns], far_2[n_columns], far[n_columns] = a, b, c
                n_columns += not _stays(a - high_1, a - low_1, b - high_2, b - low_2, reach, error, low, both)
        for r in range(n_rows):
            a, b, c, hit = first[rows[r]], second[rows[r]], squares[rows[r]], False
            place = t + (rows[r] - begin) * (end - middle) - middle
            for k in range(n_columns):
                one, two, reach = far_1[k] - a, far_2[k] - b, square * (far[k] + c)
                flag = not _stays(one, one, two, two, reach, error, low, both)
                if zones.size > 0:
                    flag &= zones[place + columns[k]] == UNDECIDED
                seen[k] |= flag
                hit |= flag
            used[rows[r]] = hit
        for k in range(n_columns):
            used[columns[k]] = seen[k]
        t += (middle - begin) * (end - middle)


@compiled()
def quadratic_blocks(dist, ptr, split, smoothing, used):
    """used[p] = 1 for every pair of a triplet in the quadratic part of the loss; returns the number of triplets."""
    count = 0
    for i in range(split.size):
        used[ptr[i] : ptr[i + 1]] = False
        for p in range(ptr[i], split[i]):
            for n in range(split[i], ptr[i + 1]):
                b = 1.0 - (dist[n] - dist[p])
                if 0.0 < b < smoothing:
                    used[p] = used[n] = True
                    count += 1
    return count


@compiled(fastmath=SUMS)
def hessian_blocks(dist, change, ptr, split, smoothing, pair_weights, start, stop):
    """Pair weights of the Hessian of the loss times a step under which the pairs' distances change so."""
    inverse = 1.0 / smoothing
    for i in range(start, stop):
        begin, middle, end = ptr[i], split[i], ptr[i + 1]
        far, far_change, weights = dist[middle:end], change[middle:end], pair_weights[middle:end]
        weights[:] = 0.0
        for p in range(begin, middle):
            near, near_change = dist[p], change[p]
            total = 0.0
            for n in range(end - middle):
                b = 1.0 - (far[n] - near)
                weight = (far_change[n] - near_change) * inverse if (b > 0.0) & (b < smoothing) else 0.0
                weights[n] += weight
                total += weight
            pair_weights[p] = -total
