"""Work per triplet, O(1) each: from pair distances to loss, dual sums and pair weights.

With b = 1 - margin and smoothing s > 0, alpha = clip(b / s, 0, 1). A sweep adds to ``sums``

    sums[:, 0] += w (alpha b - (s/2) alpha^2)      the smoothed hinge loss
    sums[:, 1] += w alpha
    sums[:, 2] += w alpha (1 - alpha)

(row 0 the totals, row 1 the errors made in adding them)

and gives each pair its weight: the sum of w alpha over triplets where it is the negative pair, minus the same
where it is the positive one. Two shapes of sets: *blocks* (an anchor's positives times its negatives, implied)
and *lists* (two pair numbers per triplet).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from triscreen._kernels.compiled import LINEAR, SUMS, UNDECIDED, ZERO, compiled

_STRETCH = 1024  # listed triplets whose sums are added up before they join the compensated total


@compiled()
def _join(sums, part):
    """Add part to the totals sums[0], the errors of these additions to sums[1] (Neumaier); part becomes zero."""
    for k in range(part.size):
        total = sums[0, k] + part[k]
        if abs(sums[0, k]) >= abs(part[k]):
            sums[1, k] += (sums[0, k] - total) + part[k]
        else:
            sums[1, k] += (part[k] - total) + sums[0, k]
        sums[0, k] = total
        part[k] = 0.0


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
        _join(sums, part)


@compiled(fastmath=SUMS)
def sweep_list(dist, positive, negative, weights, smoothing, pair_weights, sums, start, stop):
    """Sweep the listed triplets start <= t < stop; an empty ``weights`` means 1 for each.

    Triplets of one positive pair usually follow each other: its weight is added up beside and written once.
    """
    inverse = 1.0 / smoothing
    half = 0.5 * smoothing
    weighted = weights.size > 0
    part = np.zeros(3)
    p = positive[start] if start < stop else 0
    near = dist[p] if start < stop else 0.0
    total = 0.0
    for begin in range(start, stop, _STRETCH):
        loss = 0.0
        linear = 0.0
        spread = 0.0
        for t in range(begin, min(begin + _STRETCH, stop)):
            if positive[t] != p:
                pair_weights[p] -= total
                p = positive[t]
                near = dist[p]
                total = 0.0
            n = negative[t]
            b = 1.0 - (dist[n] - near)
            if b > 0.0:
                a = b * inverse
                a = 1.0 if a > 1.0 else a
                w = weights[t] if weighted else 1.0
                wa = w * a
                loss += wa * (b - half * a)
                linear += wa
                spread += wa * (1.0 - a)
                pair_weights[n] += wa
                total += wa
        part[0], part[1], part[2] = loss, linear, spread
        _join(sums, part)
    if start < stop:
        pair_weights[p] -= total


@njit(inline="always")
def _given_alpha(b, a, w, gamma, sums):
    """Add one triplet with its own alpha: loss, dual sum, and loss - alpha b + (g/2) alpha^2 >= 0 zone by zone."""
    if b >= gamma:
        loss = b - 0.5 * gamma
        slack = (1.0 - a) * (b - 0.5 * gamma * (1.0 + a))
    elif b > 0.0:
        loss = 0.5 * b * b / gamma
        slack = 0.5 * gamma * (a - b / gamma) ** 2
    else:
        loss = 0.0
        slack = 0.5 * gamma * a * a - a * b
    sums[0] += w * loss
    sums[1] += w * (a - 0.5 * gamma * a * a)
    sums[2] += w * slack


@compiled()
def alpha_list(dist, positive, negative, weights, alpha, gamma, pair_weights, sums, start, stop):
    """Like `sweep_list` for alphas that the caller chose; sums: loss, dual sum, slack."""
    weighted = weights.size > 0
    part = np.zeros(3)
    for begin in range(start, stop, _STRETCH):
        for t in range(begin, min(begin + _STRETCH, stop)):
            p, n = positive[t], negative[t]
            w = weights[t] if weighted else 1.0
            _given_alpha(1.0 - (dist[n] - dist[p]), alpha[t], w, gamma, part)
            pair_weights[n] += w * alpha[t]
            pair_weights[p] -= w * alpha[t]
        _join(sums, part)


@njit(inline="always")
def _alpha(margin, smoothing):
    a = (1.0 - margin) / smoothing
    a = 0.0 if a < 0.0 else a
    return 1.0 if a > 1.0 else a


@compiled()
def cross_list(dist, other, positive, negative, weights, smoothing, gamma, sums, start, stop):
    """Like `alpha_list` at the margins of other, for the alphas that the margins of dist give; sums only."""
    weighted = weights.size > 0
    part = np.zeros(3)
    for begin in range(start, stop, _STRETCH):
        for t in range(begin, min(begin + _STRETCH, stop)):
            p, n = positive[t], negative[t]
            w = weights[t] if weighted else 1.0
            _given_alpha(1.0 - (other[n] - other[p]), _alpha(dist[n] - dist[p], smoothing), w, gamma, part)
        _join(sums, part)


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


@njit(inline="always")
def _sphere_rule(t, low, high, error, reach, gamma, zones, counts):
    """Zone of one triplet whose margin at the centre is high - low, off by error, and moves by at most reach."""
    margin = high - low
    doubt = error + reach
    if margin - doubt > 1.0:
        zones[t] = ZERO
        counts[1] += 1
    elif margin + doubt < 1.0 - gamma:
        zones[t] = LINEAR
        counts[0] += 1


@compiled()
def sphere_blocks(values, errors, ptr, split, norms, radius, gamma, zones, counts, start, stop, offset):
    """The sphere rule for the anchors start <= i < stop of a block set; offset: their first triplet."""
    t = offset
    for i in range(start, stop):
        for p in range(ptr[i], split[i]):
            for n in range(split[i], ptr[i + 1]):
                if zones[t] == UNDECIDED:
                    error = errors[p] + errors[n]
                    _sphere_rule(t, values[p], values[n], error, radius * norms[t], gamma, zones, counts)
                t += 1


@compiled()
def sphere_list(values, errors, positive, negative, norms, radius, gamma, zones, counts, start, stop):
    """The sphere rule for the listed triplets start <= t < stop."""
    for t in range(start, stop):
        if zones[t] == UNDECIDED:
            p, n = positive[t], negative[t]
            error = errors[p] + errors[n]
            _sphere_rule(t, values[p], values[n], error, radius * norms[t], gamma, zones, counts)


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


@njit(inline="always")
def _off_zone(margin, zone, inverse):
    """Does a decided triplet have another alpha than its zone says (1 in L, 0 in R)?"""
    b = 1.0 - margin
    return (zone == LINEAR and b * inverse < 1.0) or (zone == ZERO and b > 0.0)


@compiled()
def off_zone_blocks(dist, ptr, split, zones, smoothing):
    """Is there a decided triplet whose alpha at these distances is not that of its zone?"""
    t = 0
    inverse = 1.0 / smoothing
    for i in range(split.size):
        for p in range(ptr[i], split[i]):
            for n in range(split[i], ptr[i + 1]):
                if _off_zone(dist[n] - dist[p], zones[t], inverse):
                    return True
                t += 1
    return False


@compiled()
def off_zone_list(dist, positive, negative, zones, smoothing):
    """Is there a decided triplet whose alpha at these distances is not that of its zone?"""
    inverse = 1.0 / smoothing
    off = False
    for t in range(positive.size):
        off |= _off_zone(dist[negative[t]] - dist[positive[t]], zones[t], inverse)
    return off
