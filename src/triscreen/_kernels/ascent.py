"""One step of ascent on the dual, O(1) per triplet: every triplet has an alpha of its own.

With b = 1 - margin at M(alpha), the gradient of the dual in the norm sum_t w_t (.)^2 is b - gamma alpha, whatever the
weights. A step leads to

    goal = clip(alpha + (b - gamma alpha) / (gamma + curvature), 0, 1)
    next = clip(goal + momentum (goal - previous), 0, 1)

and adds to ``sums``

    sums[:, 0..2]  loss, dual sum and slack of alpha, as in `triscreen._kernels.margins.alpha_list`
    sums[:, 3] += w d (b - gamma alpha - (gamma/2) d),  d = next - alpha: what the step gains but for |[A]_+|^2
    sums[:, 4] += w d^2

(row 0 the totals, row 1 the errors made in adding them); pair weights are those of next. The triplets are listed.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from triscreen._kernels.compiled import compiled
from triscreen._kernels.margins import _STRETCH, _given_alpha, _join


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
    _given_alpha(b, a, w, gamma, sums)
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
        _join(sums, part)
