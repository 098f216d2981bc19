"""Sweeps of blocks that are long: positives and negatives in the order of their distances.

The sums and weights are those of `triscreen._kernels.blocks`. For one positive, the negatives in order are first those
of linear loss, then those in the corner, then those of zero loss; from one positive to the next both borders only move
on. The linear ones need a running sum (relative to the nearest negative, so that nothing large cancels), and only those
in the corner are looked at one by one: O(p + q) for p q triplets, and each alpha is one number for both of its pairs.

From one sweep to the next the order hardly changes, so it is kept and put right. It is a hint: equal distances may
stand either way without a digit of difference, so results do not depend on what was swept before.
"""

from __future__ import annotations

import numpy as np

from triscreen._kernels.common import SUMS, compiled, join, sort_by_gap

# Moves for each key before a sort that likes order gives way to one that does not mind.
_PATIENCE = 16


@compiled()
def put_in_order(keys, order):
    """Sort keys, which are nearly sorted, and order with them: by insertion, or where that takes long Shell's way."""
    if sort_by_gap(keys, order, 1, _PATIENCE * keys.size):
        return
    gap = 1
    while 3 * gap + 1 < keys.size:
        gap = 3 * gap + 1
    while gap > 0:
        sort_by_gap(keys, order, gap, np.iinfo(np.int64).max)
        gap //= 3


@compiled()
def narrow_order(ptr, split, order, used, out):
    """Write the order of the pairs that are used, each counted among those of its anchor and side."""
    place = np.empty(order.size, np.int32)
    here = 0
    for i in range(split.size):
        for begin, end in ((ptr[i], split[i]), (split[i], ptr[i + 1])):
            count = 0
            for p in range(begin, end):
                place[p] = count
                count += used[p]
            for j in range(begin, end):
                p = begin + order[j]
                if used[p]:
                    out[here] = place[p]
                    here += 1


@compiled(fastmath=SUMS)
def sweep_long_blocks(dist, ptr, split, order, smoothing, pair_weights, sums, start, stop):
    """Sweep the anchors start <= i < stop; ``order``: places of positives, and of negatives, by distance."""
    most = 1
    for i in range(start, stop):
        most = max(most, ptr[i + 1] - ptr[i])
    near, far, own = np.empty(most), np.empty(most), np.empty(most)
    before, rows = np.empty(most + 1), np.empty(most + 1)
    inverse, half, low = 1.0 / smoothing, 0.5 * smoothing, 1.0 - smoothing
    part = np.zeros(3)
    for i in range(start, stop):
        begin, middle, end = ptr[i], split[i], ptr[i + 1]
        n_near, n_far = middle - begin, end - middle
        nearest, farthest = np.inf, -np.inf
        for p in range(begin, middle):
            farthest = max(farthest, dist[p])
        for n in range(middle, end):
            nearest = min(nearest, dist[n])
        if not nearest - farthest < 1.0:  # every triplet has zero loss
            pair_weights[begin:end] = 0.0
            continue
        # What is too far from the other side has no weight. By the order of last time most of it comes first among the
        # positives, and last among the negatives: it is left alone there.
        skipped = 0
        while not nearest - dist[begin + order[begin + skipped]] < 1.0:
            pair_weights[begin + order[begin + skipped]] = 0.0
            skipped += 1
        while not dist[middle + order[middle + n_far - 1]] - farthest < 1.0:
            n_far -= 1
            pair_weights[middle + order[middle + n_far]] = 0.0
        n_near -= skipped
        near_order, far_order = order[begin + skipped : middle], order[middle : middle + n_far]
        for j in range(n_near):
            near[j] = dist[begin + near_order[j]]
        put_in_order(near[:n_near], near_order)
        for j in range(n_far):
            far[j] = dist[middle + far_order[j]]
        put_in_order(far[:n_far], far_order)
        total = 0.0  # before[n]: the sum of far - nearest over the first n; rows[n]: positives with n linear negatives
        for n in range(n_far):
            before[n], rows[n], own[n] = total, 0.0, 0.0
            total += far[n] - nearest
        before[n_far], rows[n_far] = total, 0.0
        loss = linear = spread = 0.0
        n_linear = n_positive = 0
        for j in range(n_near):
            v = near[j]
            while n_linear < n_far and far[n_linear] - v <= low:
                n_linear += 1
            n_positive = max(n_positive, n_linear)
            while n_positive < n_far and far[n_positive] - v < 1.0:
                n_positive += 1
            weight = float(n_linear)
            loss += n_linear * ((1.0 - half) - (nearest - v)) - before[n_linear]
            for n in range(n_linear, n_positive):
                b = 1.0 - (far[n] - v)
                a = min(b * inverse, 1.0)
                loss += a * (b - half * a)
                spread += a * (1.0 - a)
                weight += a
                own[n] += a
            rows[n_linear] += 1.0
            linear += weight
            pair_weights[begin + near_order[j]] = -weight
        more = 0.0
        for n in range(n_far - 1, -1, -1):
            more += rows[n + 1]
            pair_weights[middle + far_order[n]] = more + own[n]
        part[0], part[1], part[2] = loss, linear, spread
        join(sums, part)
