"""All positives of an anchor times all its negatives, by order instead of one by one.

With p and n the distances of a positive and a negative, b = 1 - (n - p) and smoothing s, alpha = clip(b / s, 0, 1).
Let x = n - 1. In the sorted positives, those up to x have alpha 0, those from x + s on have alpha 1, and those between
them are this negative's *window*. Two searches per negative find it; running sums over the sorted positives give the
negative's weight and loss, and differences at the window's ends, added up afterwards, the weights of the positives:
O(p + q) for p q triplets, but for the sorting.

Nothing cancels. Distances are whole numbers of a small power of two (the *grain*), so sums of them and of alphas are
exact (64 bits wrap around on the way, never in a result): every alpha is one number in [0, 1], whichever pair it is
counted for. Squares are added up in floating point, in stretches of positives no longer than s, each relative to its
first (a window meets two of them at most); the linear part of the loss is a sum of positive gaps.

Which pairs still matter: |H| <= |u|^2 + |v|^2 is a sum over the two pairs, so a triplet keeps its zone in a ball of
radius r around a metric if

    zero loss     p + r |v|^2  <  n - r |u|^2 - 1          linear loss   -p + r |v|^2  <  -n - r |u|^2 + low

Each inequality compares a number of the positive with one of the negative: in the sorted positives, a negative's
decided ones are a prefix. Two balls at a time (the ends of a tube, or of a range of lambda): the prefix in the order of
the first, cut where the running maximum of the second says no. A pair all of whose triplets are decided may leave.
"""

from __future__ import annotations

import numpy as np

from triscreen._kernels.common import LINEAR, ZERO, compiled, join, sort_by_gap

_LARGE = 2.0**60  # grains


@compiled()
def arrange(values, keys, order, starts):
    """Sort whole numbers into keys (order: where they came from) by buckets; returns (scale, steps) for `up_to`.

    Bucket b, for (value - lowest) * scale between b and b + 1, is keys[starts[b]:starts[b + 1]]; none has 2**steps keys
    or more, and so many keys of the highest number follow the last one.
    """
    count = values.size
    low = high = values[0]
    for j in range(count):
        low, high = min(low, values[j]), max(high, values[j])
    scale = (4 * count - 1) / (high - low) if high > low else 0.0
    buckets = 4 * count
    starts[: buckets + 2] = 0
    for j in range(count):
        starts[int((values[j] - low) * scale) + 2] += 1
    most = 0
    for b in range(buckets):
        most = max(most, starts[b + 2])
        starts[b + 2] += starts[b + 1]
    for j in range(count):
        b = int((values[j] - low) * scale) + 1
        place = starts[b]
        starts[b] += 1
        keys[place], order[place] = values[j], j
    gap = 1
    while 3 * gap + 1 < most:
        gap = 3 * gap + 1
    while gap > 0 and most > 1:  # Shell's sort; no key has far to go
        sort_by_gap(keys[:count], order[:count], gap, np.iinfo(np.int64).max)
        gap //= 3
    steps = 0
    while (1 << steps) <= most:
        steps += 1
    keys[count : count + (1 << steps)] = np.iinfo(np.int64).max
    return scale, steps


@compiled()
def up_to(x, keys, count, starts, scale, steps):
    """How many of the arranged keys are at most x."""
    near = min(max(x, keys[0]), keys[count - 1])
    place = starts[int((near - keys[0]) * scale)]
    half = (1 << steps) >> 1
    while half > 0:  # no branches: the processor looks for the next ones meanwhile
        place += half if keys[place + half - 1] <= x else 0
        half >>= 1
    return place


@compiled()
def longest(ptr, split, start, stop):
    """The largest numbers of positives and of negatives of an anchor."""
    most = widest = 1
    for i in range(start, stop):
        most, widest = max(most, split[i] - ptr[i]), max(widest, ptr[i + 1] - split[i])
    return most, widest


@compiled()
def sweep_ordered(dist, ptr, split, weights, one, width, grain, smoothing, pair_weights, sums, start, stop):
    """Sweep the anchors start <= i < stop; their pairs are ptr[i]..split[i] (positive)..ptr[i + 1] (negative).

    ``weights`` are the anchors'; ``one`` and ``width`` are 1 and the smoothing (rounded up) in grains.
    """
    most = longest(ptr, split, start, stop)[0]
    keys, starts = np.empty(4 * most + 4, np.int64), np.empty(4 * most + 4, np.int64)
    ints, floats = np.empty((7, most + 2), np.int64), np.empty((4, most + 2))
    values, order, stops, total, linear, quadratic, shift = (
        ints[0], ints[1], ints[2], ints[3], ints[4], ints[5], ints[6],
    )  # fmt: skip
    base, sum1, sum2, tail = floats[0], floats[1], floats[2], floats[3]
    part = np.zeros(3)
    inverse, grains = 1.0 / smoothing, 1.0 / grain
    for i in range(start, stop):
        begin, middle, end = ptr[i], split[i], ptr[i + 1]
        count = middle - begin
        if count == 0:
            for n in range(middle, end):
                pair_weights[n] = 0.0
            continue
        for j in range(count):
            values[j] = np.int64(np.floor(dist[begin + j] * grains + 0.5))
        scale, steps = arrange(values[:count], keys, order, starts)
        # sum1[j], sum2[j]: over the positives of the stretch of j - 1 up to that one; total[j]: over all before j.
        first = keys[0]
        a1 = a2 = 0.0
        total[0] = 0
        for j in range(count):
            if keys[j] - first > width:
                first = keys[j]
                a1 = a2 = 0.0
            t = (keys[j] - first) * grain
            a1 += t
            a2 += t * t
            base[j], sum1[j + 1], sum2[j + 1] = first * grain, a1, a2
            total[j + 1] = total[j] + keys[j]
            linear[j] = quadratic[j] = shift[j] = 0
        linear[count] = quadratic[count] = shift[count] = 0
        base[count], tail[count - 1], stops[count - 1] = 0.0, 0.0, count
        for j in range(count - 2, -1, -1):
            tail[j] = tail[j + 1] + (count - 1 - j) * ((keys[j + 1] - keys[j]) * grain)
            stops[j] = stops[j + 1] if base[j] == base[j + 1] else j + 1
        loss = sum_alpha = spread = 0.0
        top, weight = keys[count - 1], weights[i]
        for n in range(middle, end):
            x = np.int64(np.floor(dist[n] * grains + 0.5)) - one
            if x >= top:
                pair_weights[n] = 0.0
                continue
            low = up_to(x, keys, count, starts, scale, steps)
            high = up_to(x + width - 1, keys, count, starts, scale, steps)
            linear[high] += 1
            c = float(count - high)
            if high < count:
                loss += tail[high] + c * ((keys[high] - x) * grain - 0.5 * smoothing)
            if low < high:
                quadratic[low] += 1
                quadratic[high] -= 1
                shift[low] += x
                shift[high] -= x
                a = (total[high] - total[low] - (high - low) * x) * grain * inverse
                cut = min(high, stops[low])
                off = base[low] - x * grain
                inner = low > 0 and base[low] == base[low - 1]
                s1 = sum1[cut] - (sum1[low] if inner else 0.0)
                s2 = sum2[cut] - (sum2[low] if inner else 0.0)
                square = s2 + off * (2.0 * s1 + (cut - low) * off)
                if cut < high:
                    off = base[cut] - x * grain
                    square += sum2[high] + off * (2.0 * sum1[high] + (high - cut) * off)
                square *= inverse
                c += a
                loss += 0.5 * square
                spread += max(0.0, a - square * inverse)
            pair_weights[n] = weight * c
            sum_alpha += c
        n_linear = n_quadratic = inside = 0
        for j in range(count):
            n_linear += linear[j]
            n_quadratic += quadratic[j]
            inside += shift[j]
            c = n_linear + (n_quadratic * keys[j] - inside) * grain * inverse
            pair_weights[begin + order[j]] = -weight * c
        part[0], part[1], part[2] = weight * loss, weight * sum_alpha, weight * spread
        join(sums, part)


@compiled()
def hessian_ordered(dist, change, ptr, split, weights, one, width, grain, smoothing, pair_weights, start, stop):
    """Pair weights of the loss's Hessian times a step under which the pairs' distances change so."""
    most = longest(ptr, split, start, stop)[0]
    keys, starts = np.empty(4 * most + 4, np.int64), np.empty(4 * most + 4, np.int64)
    ints, floats = np.empty((3, most + 2), np.int64), np.empty((2, most + 2))
    values, order, quadratic = ints[0], ints[1], ints[2]
    before, shift = floats[0], floats[1]
    grains = 1.0 / grain
    for i in range(start, stop):
        begin, middle, end = ptr[i], split[i], ptr[i + 1]
        count = middle - begin
        if count == 0:
            for n in range(middle, end):
                pair_weights[n] = 0.0
            continue
        for j in range(count):
            values[j] = np.int64(np.floor(dist[begin + j] * grains + 0.5))
        scale, steps = arrange(values[:count], keys, order, starts)
        before[0] = 0.0
        for j in range(count):
            before[j + 1] = before[j] + change[begin + order[j]]
            shift[j], quadratic[j] = 0.0, 0
        shift[count], quadratic[count] = 0.0, 0
        top, factor = keys[count - 1], weights[i] / smoothing
        for n in range(middle, end):
            x = np.int64(np.floor(dist[n] * grains + 0.5)) - one
            pair_weights[n] = 0.0
            if x < top:
                low = up_to(x, keys, count, starts, scale, steps)
                high = up_to(x + width - 1, keys, count, starts, scale, steps)
                if low < high:
                    pair_weights[n] = ((high - low) * change[n] - (before[high] - before[low])) * factor
                    quadratic[low] += 1
                    quadratic[high] -= 1
                    shift[low] += change[n]
                    shift[high] -= change[n]
        m = 0
        far = 0.0
        for j in range(count):
            m += quadratic[j]
            far = far + shift[j] if m > 0 else 0.0
            pair = begin + order[j]
            pair_weights[pair] = (m * change[pair] - far) * factor


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


# -- rows of a matrix of inner products, and back ----------------------------------------------------------------------


@compiled()
def gather_rows(products, squares, anchors, ends, near, ptr, out):
    """Write the distances s_i + s_l - 2 products of anchors' pairs one after the other, positives first.

    ``ends[i]`` are the bounds of point i's class, ``near[i]`` its positives (one column of -1: all of the class).
    """
    n = products.shape[1]
    for r in range(anchors.size):
        i = anchors[r]
        begin, end, square = ends[i, 0], ends[i, 1], squares[i]
        place = ptr[r]
        every = near[i, 0] < 0
        for k in range(end - begin if every else near.shape[1]):
            j = begin + k if every else near[i, k]
            if j != i and j >= 0:
                out[place] = square + squares[j] - 2.0 * products[r, j]
                place += 1
        for j in range(begin):
            out[place + j] = square + squares[j] - 2.0 * products[r, j]
        place -= end - begin
        for j in range(end, n):
            out[place + j] = square + squares[j] - 2.0 * products[r, j]


@compiled()
def scatter_rows(pair_weights, anchors, ends, near, ptr, out, columns, rows):
    """Write the weights of anchors' pairs into rows of a matrix; add up its columns, and its rows."""
    n = out.shape[1]
    for r in range(anchors.size):
        i = anchors[r]
        begin, end = ends[i, 0], ends[i, 1]
        place = ptr[r]
        every = near[i, 0] < 0
        for j in range(begin, end):
            out[r, j] = 0.0
        for k in range(end - begin if every else near.shape[1]):
            j = begin + k if every else near[i, k]
            if j != i and j >= 0:
                out[r, j] = pair_weights[place]
                place += 1
        for j in range(begin):
            out[r, j] = pair_weights[place + j]
        place -= end - begin
        for j in range(end, n):
            out[r, j] = pair_weights[place + j]
        total = 0.0
        for j in range(n):
            total += out[r, j]
            columns[j] += out[r, j]
        rows[r] = total
