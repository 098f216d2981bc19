"""Work per listed triplet, O(1) each: two pair numbers lead from pair distances to loss, dual sums and pair weights.

The sums and weights are those of `triscreen._kernels.blocks`; here a triplet may also have a weight w, or its own
alpha.

One step of ascent on the dual: with b = 1 - margin at M(alpha), the gradient of the dual in the norm sum_t w_t (.)^2 is
b - gamma alpha, whatever the weights. A step leads to

    goal = clip(alpha + (b - gamma alpha) / (gamma + curvature), 0, 1)
    next = clip(goal + momentum (goal - previous), 0, 1)

and adds to ``sums``

    sums[:, 0..2]  loss, dual sum and slack of alpha, as in `alpha_list`
    sums[:, 3] += w d (b - gamma alpha - (gamma/2) d),  d = next - alpha: what the step gains but for |[A]_+|^2
    sums[:, 4] += w d^2

(row 0 the totals, row 1 the errors made in adding them); pair weights are those of next.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from triscreen._kernels.common import SUMS, UNDECIDED, alpha_at, compiled, given_alpha, join, off_zone, sphere_rule

_STRETCH = 1024  # listed triplets whose sums are added up before they join the compensated total


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
        join(sums, part)
    if start < stop:
        pair_weights[p] -= total


@compiled()
def alpha_list(dist, positive, negative, weights, alpha, gamma, pair_weights, sums, start, stop):
    """Like `sweep_list` for alphas that the caller chose; sums: loss, dual sum, slack."""
    _given_list(dist, dist, positive, negative, weights, alpha, 1.0, gamma, pair_weights, sums, start, stop)


@compiled()
def cross_list(dist, other, positive, negative, weights, smoothing, gamma, sums, start, stop):
    """Like `alpha_list` at the margins of other, for the alphas that the margins of dist give; sums only."""
    none = np.empty(0)
    _given_list(dist, other, positive, negative, weights, none, smoothing, gamma, none, sums, start, stop)


@compiled()
def corner_list(dist, other, positive, negative, weights, gamma, start, stop):
    """Sum of w (a - b)^2 over the triplets start <= t < stop whose alphas are within (0, 1) at the margins of both."""
    inverse = 1.0 / gamma
    total = 0.0
    for t in range(start, stop):
        p, n = positive[t], negative[t]
        a, b = (1.0 - (dist[n] - dist[p])) * inverse, (1.0 - (other[n] - other[p])) * inverse
        if 0.0 < a < 1.0 and 0.0 < b < 1.0:
            total += (weights[t] if weights.size > 0 else 1.0) * (a - b) * (a - b)
    return total


@njit(inline="always")
def _given_list(dist, other, positive, negative, weights, alpha, smoothing, gamma, pair_weights, sums, start, stop):
    """Sums at the margins of other; without an alpha for each, those of the margins of dist."""
    weighted, given, weighs = weights.size > 0, alpha.size > 0, pair_weights.size > 0
    part = np.zeros(3)
    for begin in range(start, stop, _STRETCH):
        for t in range(begin, min(begin + _STRETCH, stop)):
            p, n = positive[t], negative[t]
            w = weights[t] if weighted else 1.0
            a = alpha[t] if given else alpha_at(dist[n] - dist[p], smoothing)
            given_alpha(1.0 - (other[n] - other[p]), a, w, gamma, part)
            if weighs:
                pair_weights[n] += w * a
                pair_weights[p] -= w * a
        join(sums, part)


@njit(inline="always")
def _clip(a):
    a = 0.0 if a < 0.0 else a
    return 1.0 if a > 1.0 else a


@njit(inline="always")
def _ascend(t, b, w, alpha, previous, gamma, rate, momentum, goal, following, sums):
    """Step with one triplet, rate = 1 / (gamma + curvature); returns w times its next alpha."""
    a = alpha[t]
    slope = b - gamma * a
    towards = _clip(a + rate * slope)
    after = _clip(towards + momentum * (towards - previous[t]))
    goal[t] = towards
    following[t] = after
    given_alpha(b, a, w, gamma, sums)
    d = after - a
    sums[3] += w * d * (slope - 0.5 * gamma * d)
    sums[4] += w * d * d
    return w * after


@compiled()
def ascend_list(
    dist, positive, negative, weights, alpha, previous, gamma, curvature, momentum, goal, following, pair_weights,
    sums, start, stop,
):  # fmt: skip
    """Step with the listed triplets start <= t < stop; an empty ``weights`` means 1 for each."""
    weighted = weights.size > 0
    rate = 1.0 / (gamma + curvature)
    part = np.zeros(5)
    for begin in range(start, stop, _STRETCH):
        for t in range(begin, min(begin + _STRETCH, stop)):
            p, n = positive[t], negative[t]
            w = weights[t] if weighted else 1.0
            b = 1.0 - (dist[n] - dist[p])
            wa = _ascend(t, b, w, alpha, previous, gamma, rate, momentum, goal, following, part)
            pair_weights[n] += wa
            pair_weights[p] -= wa
        join(sums, part)


@compiled()
def sphere_list(values, errors, positive, negative, norms, radius, gamma, zones, counts, start, stop):
    """The sphere rule for the listed triplets start <= t < stop."""
    for t in range(start, stop):
        if zones[t] == UNDECIDED:
            p, n = positive[t], negative[t]
            error = errors[p] + errors[n]
            sphere_rule(t, values[p], values[n], error, radius * norms[t], gamma, zones, counts)


@compiled()
def off_zone_list(dist, positive, negative, zones, smoothing):
    """Is there a decided triplet whose alpha at these distances is not that of its zone?"""
    inverse = 1.0 / smoothing
    off = False
    for t in range(positive.size):
        off |= off_zone(dist[negative[t]] - dist[positive[t]], zones[t], inverse)
    return off


@compiled()
def undecided_list(
    first_end, second_end, squares, positive, negative, radius, error, low, both, zones, keep, start, stop
):  # fmt: skip
    """keep[t] = 1 for every listed triplet that is not proven to keep its zone; see `blocks.undecided_blocks`."""
    square = radius * radius
    for t in range(start, stop):
        p, n = positive[t], negative[t]
        one, two = first_end[n] - first_end[p], second_end[n] - second_end[p]
        above, below = min(one, two) - 1.0 - error, low - max(one, two) - error
        away = max(above, below) if both else above
        decided = away > 0.0 and away * away > square * (squares[n] + squares[p])
        keep[t] = not (decided or (zones.size > 0 and zones[t] != UNDECIDED))


@compiled()
def quadratic_list(dist, positive, negative, smoothing, keep):
    """keep[t] = 1 for every listed triplet in the quadratic part of the loss; returns how many those are."""
    count = 0
    for t in range(positive.size):
        b = 1.0 - (dist[negative[t]] - dist[positive[t]])
        keep[t] = 0.0 < b < smoothing
        count += keep[t]
    return count


@compiled()
def hessian_list(dist, change, positive, negative, weights, smoothing, pair_weights, start, stop):
    """Like `blocks.hessian_blocks` for listed triplets; adds to pair_weights."""
    for t in range(start, stop):
        p, n = positive[t], negative[t]
        b = 1.0 - (dist[n] - dist[p])
        if 0.0 < b < smoothing:
            weight = (change[n] - change[p]) / smoothing * (weights[t] if weights.size > 0 else 1.0)
            pair_weights[n] += weight
            pair_weights[p] -= weight
