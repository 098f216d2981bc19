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
"""

from __future__ import annotations

import numpy as np
from numba import njit

from triscreen._kernels.margins import _join

N_FLOATS, N_INTS = 4, 10  # rows of an anchor's work space


@njit(cache=True, nogil=True)
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
        for j in range(gap, count):
            key, own = keys[j], order[j]
            k = j
            while k >= gap and keys[k - gap] > key:
                keys[k], order[k] = keys[k - gap], order[k - gap]
                k -= gap
            keys[k], order[k] = key, own
        gap //= 3
    steps = 0
    while (1 << steps) <= most:
        steps += 1
    keys[count : count + (1 << steps)] = np.iinfo(np.int64).max
    return scale, steps


@njit(cache=True, nogil=True)
def up_to(x, keys, count, starts, scale, steps):
    """How many of the arranged keys are at most x."""
    near = min(max(x, keys[0]), keys[count - 1])
    place = starts[int((near - keys[0]) * scale)]
    half = (1 << steps) >> 1
    while half > 0:  # no branches: the processor looks for the next ones meanwhile
        place += half if keys[place + half - 1] <= x else 0
        half >>= 1
    return place


@njit(cache=True, nogil=True)
def sweep_row(positives, negatives, one, width, grain, smoothing, c_pos, c_neg, part, floats, ints):
    """Write one anchor's pair weights, and add its loss, sum of alpha and of alpha (1 - alpha) to part.

    ``one`` and ``width`` are 1 and the smoothing (rounded up) in grains.
    """
    count = positives.size
    base, sum1, sum2, tail = floats[0], floats[1], floats[2], floats[3]
    keys, starts, order, stop, total, linear, curved, shift = (
        ints[0], ints[1], ints[2], ints[3], ints[4], ints[5], ints[6], ints[7],
    )  # fmt: skip
    scale, steps = arrange(positives, keys, order, starts)
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
        linear[j] = curved[j] = shift[j] = 0
    linear[count] = curved[count] = shift[count] = 0
    base[count], tail[count], stop[count] = 0.0, 0.0, count
    for j in range(count - 1, -1, -1):
        tail[j] = tail[j + 1] + (count - 1 - j) * ((keys[j + 1] - keys[j]) * grain) if j < count - 1 else 0.0
        stop[j] = stop[j + 1] if j < count - 1 and base[j] == base[j + 1] else j + 1
    inverse = 1.0 / smoothing
    loss = sum_alpha = spread = 0.0
    top = keys[count - 1]
    for n in range(negatives.size):
        x = negatives[n] - one
        if x >= top:
            c_neg[n] = 0.0
            continue
        begin = up_to(x, keys, count, starts, scale, steps)
        end = up_to(x + width - 1, keys, count, starts, scale, steps)
        rest = count - end
        linear[end] += 1
        weight = float(rest)
        if rest > 0:
            loss += tail[end] + weight * ((keys[end] - x) * grain - 0.5 * smoothing)
        m = end - begin
        if m > 0:
            curved[begin] += 1
            curved[end] -= 1
            shift[begin] += x
            shift[end] -= x
            a = (total[end] - total[begin] - m * x) * grain
            middle = min(end, stop[begin])
            off = base[begin] - x * grain
            inner = begin > 0 and base[begin] == base[begin - 1]
            s1 = sum1[middle] - (sum1[begin] if inner else 0.0)
            s2 = sum2[middle] - (sum2[begin] if inner else 0.0)
            square = s2 + off * (2.0 * s1 + (middle - begin) * off)
            if middle < end:
                off = base[middle] - x * grain
                square += sum2[end] + off * (2.0 * sum1[end] + (end - middle) * off)
            a *= inverse
            square *= inverse
            weight += a
            loss += 0.5 * square
            spread += max(0.0, a - square * inverse)
        c_neg[n] = weight
        sum_alpha += weight
    n_linear = n_curved = inside = 0
    for j in range(count):
        n_linear += linear[j]
        n_curved += curved[j]
        inside += shift[j]
        c_pos[order[j]] = -(n_linear + (n_curved * keys[j] - inside) * grain * inverse)
    part[0] += loss
    part[1] += sum_alpha
    part[2] += spread


@njit(cache=True, nogil=True)
def bend_row(positives, negatives, near_change, far_change, one, width, smoothing, c_pos, c_neg, floats, ints):
    """Write one anchor's pair weights of the loss's Hessian times a step; returns its quadratic triplets' number."""
    count = positives.size
    before, shift = floats[0], floats[1]
    keys, starts, order, curved = ints[0], ints[1], ints[2], ints[3]
    scale, steps = arrange(positives, keys, order, starts)
    before[0] = 0.0
    for j in range(count):
        before[j + 1] = before[j] + near_change[order[j]]
        shift[j], curved[j] = 0.0, 0
    shift[count], curved[count] = 0.0, 0
    inverse = 1.0 / smoothing
    n_quadratic = 0
    for n in range(negatives.size):
        x = negatives[n] - one
        c_neg[n] = 0.0
        if x < keys[count - 1]:
            begin = up_to(x, keys, count, starts, scale, steps)
            end = up_to(x + width - 1, keys, count, starts, scale, steps)
            if begin < end:
                n_quadratic += end - begin
                c_neg[n] = ((end - begin) * far_change[n] - (before[end] - before[begin])) * inverse
                curved[begin] += 1
                curved[end] -= 1
                shift[begin] += far_change[n]
                shift[end] -= far_change[n]
    m = 0
    far = 0.0
    for j in range(count):
        m += curved[j]
        far = far + shift[j] if m > 0 else 0.0
        c_pos[order[j]] = (m * near_change[order[j]] - far) * inverse
    return n_quadratic


@njit(cache=True, nogil=True)
def scale_by(values, begin, end, factor):
    """Multiply a stretch of values by a factor; 0 clears whatever is there. (Array expressions compile for seconds.)"""
    for k in range(begin, end):
        values[k] = values[k] * factor if factor != 0.0 else 0.0


@njit(cache=True, nogil=True)
def to_grains(values, count, inverse, out):
    """Round values to whole grains."""
    for k in range(count):
        out[k] = np.int64(np.floor(values[k] * inverse + 0.5))


@njit(cache=True, nogil=True)
def longest(ptr, split, start, stop):
    """The largest numbers of positives and of negatives of an anchor."""
    most = widest = 1
    for i in range(start, stop):
        most, widest = max(most, split[i] - ptr[i]), max(widest, ptr[i + 1] - split[i])
    return most, widest


@njit(cache=True, nogil=True)
def sweep_ordered(dist, ptr, split, weights, one, width, grain, smoothing, pair_weights, sums, start, stop):
    """Sweep the anchors start <= i < stop; their pairs are ptr[i]..split[i] (positive)..ptr[i + 1] (negative).

    ``weights`` are the anchors'.
    """
    most, widest = longest(ptr, split, start, stop)
    p, q = np.empty(most, np.int64), np.empty(widest, np.int64)
    floats, ints = np.empty((N_FLOATS, most + 2)), np.empty((N_INTS, 4 * most + 4), np.int64)
    part = np.zeros(3)
    for i in range(start, stop):
        begin, middle, end = ptr[i], split[i], ptr[i + 1]
        if begin == middle or middle == end:
            scale_by(pair_weights, begin, end, 0.0)
            continue
        to_grains(dist[begin:middle], middle - begin, 1.0 / grain, p)
        to_grains(dist[middle:end], end - middle, 1.0 / grain, q)
        sweep_row(
            p[: middle - begin], q[: end - middle], one, width, grain, smoothing, pair_weights[begin:middle],
            pair_weights[middle:end], part, floats, ints,
        )  # fmt: skip
        scale_by(pair_weights, begin, end, weights[i])
        for k in range(3):
            part[k] *= weights[i]
        _join(sums, part)


@njit(cache=True, nogil=True)
def bend_ordered(dist, change, ptr, split, weights, one, width, grain, smoothing, pair_weights, start, stop):
    """Like `sweep_ordered` for `bend_row`."""
    most, widest = longest(ptr, split, start, stop)
    p, q = np.empty(most, np.int64), np.empty(widest, np.int64)
    floats, ints = np.empty((N_FLOATS, most + 2)), np.empty((N_INTS, 4 * most + 4), np.int64)
    for i in range(start, stop):
        begin, middle, end = ptr[i], split[i], ptr[i + 1]
        if begin == middle or middle == end:
            scale_by(pair_weights, begin, end, 0.0)
            continue
        to_grains(dist[begin:middle], middle - begin, 1.0 / grain, p)
        to_grains(dist[middle:end], end - middle, 1.0 / grain, q)
        bend_row(
            p[: middle - begin], q[: end - middle], change[begin:middle], change[middle:end], one, width, smoothing,
            pair_weights[begin:middle], pair_weights[middle:end], floats, ints,
        )  # fmt: skip
        scale_by(pair_weights, begin, end, weights[i])


# -- rows of a matrix of inner products, and back ----------------------------------------------------------------------


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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
