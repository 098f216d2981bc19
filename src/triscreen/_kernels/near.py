"""Which triplets may leave their zone, and how the quadratic ones bend: work per triplet, O(1) each.

Two ends of a tube of metrics give two distances per pair; margins are linear in M, so over the tube's axis a margin
lies between its values at the ends, and off the axis it moves by at most radius * |H|. The norm is bounded by pairs
alone: |H|^2 = |u|^4 + |v|^4 - 2 (u'v)^2 <= |u|^4 + |v|^4.
"""

from __future__ import annotations

import numpy as np

from triscreen._kernels.compiled import SUMS, UNDECIDED, compiled


@compiled(fastmath=SUMS)
def near_blocks(
    first_end, second_end, squares, ptr, split, radius, error, low, both, zones, offset, used, start, stop
):  # fmt: skip
    """used[p] = 1 for every pair of an anchor's triplets that are not proven to keep their zone.

    Proven: above 1 everywhere, or (if ``both``) below ``low`` everywhere, or decided in zones (if there are any; the
    anchors' first triplet is number ``offset``). ``squares`` are the pairs' |delta|^4.
    """
    square = radius * radius
    longest = 0
    for i in range(start, stop):
        longest = max(longest, ptr[i + 1] - split[i])
    flags = np.empty(longest)
    t = offset
    has_zones = zones.size > 0
    for i in range(start, stop):
        begin, middle, end = ptr[i], split[i], ptr[i + 1]
        width = end - middle
        flags[:width] = 0.0
        a, b, far = first_end[middle:end], second_end[middle:end], squares[middle:end]
        for p in range(begin, middle):
            pa, pb, near = first_end[p], second_end[p], squares[p]
            most = 0.0
            for n in range(width):
                one = a[n] - pa
                two = b[n] - pb
                above = min(one, two) - 1.0 - error
                below = low - max(one, two) - error
                away = max(above, below) if both else above
                flag = 0.0 if (away > 0.0) & (away * away > square * (far[n] + near)) else 1.0
                if has_zones and zones[t + n] != UNDECIDED:
                    flag = 0.0
                flags[n] = max(flags[n], flag)
                most = max(most, flag)
            t += width
            used[p] = most > 0.0
        for n in range(width):
            used[middle + n] = flags[n] > 0.0


@compiled()
def near_list(
    first_end, second_end, squares, positive, negative, radius, error, low, both, zones, keep, start, stop
):  # fmt: skip
    """keep[t] = 1 for every listed triplet that is not proven to keep its zone; see `near_blocks`."""
    square = radius * radius
    for t in range(start, stop):
        p, n = positive[t], negative[t]
        one, two = first_end[n] - first_end[p], second_end[n] - second_end[p]
        above, below = min(one, two) - 1.0 - error, low - max(one, two) - error
        away = max(above, below) if both else above
        decided = away > 0.0 and away * away > square * (squares[n] + squares[p])
        keep[t] = not (decided or (zones.size > 0 and zones[t] != UNDECIDED))


@compiled()
def curved_blocks(dist, ptr, split, smoothing, used):
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


@compiled()
def curved_list(dist, positive, negative, smoothing, keep):
    """keep[t] = 1 for every listed triplet in the quadratic part of the loss; returns how many those are."""
    count = 0
    for t in range(positive.size):
        b = 1.0 - (dist[negative[t]] - dist[positive[t]])
        keep[t] = 0.0 < b < smoothing
        count += keep[t]
    return count


@compiled(fastmath=SUMS)
def bend_blocks(dist, change, ptr, split, smoothing, pair_weights, start, stop):
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
                bend = (far_change[n] - near_change) * inverse if (b > 0.0) & (b < smoothing) else 0.0
                weights[n] += bend
                total += bend
            pair_weights[p] = -total


@compiled()
def bend_list(dist, change, positive, negative, weights, smoothing, pair_weights, start, stop):
    """Like `bend_blocks` for listed triplets; adds to pair_weights."""
    for t in range(start, stop):
        p, n = positive[t], negative[t]
        b = 1.0 - (dist[n] - dist[p])
        if 0.0 < b < smoothing:
            bend = (change[n] - change[p]) / smoothing * (weights[t] if weights.size > 0 else 1.0)
            pair_weights[n] += bend
            pair_weights[p] -= bend
