"""Norms of H = u u' - v v', O(d) per triplet, once.

With q = u - v = x_j - x_l and s = u + v both norms are sums of non-negative terms, so nothing cancels when x_j is
near x_l: |H|_F^2 = (|q|^2 |s|^2 + (q's)^2) / 2, and on the diagonal |h|^2 = sum_c (q_c s_c)^2.
"""

from __future__ import annotations

import math

from triscreen._kernels.common import SUMS, compiled


@compiled(fastmath=SUMS)
def full_norms(X, triplets, out):
    """out[t] = |H_t|_F for the rows (i, j, l) of triplets."""
    dim = X.shape[1]
    for t in range(triplets.shape[0]):
        i, j, k = triplets[t, 0], triplets[t, 1], triplets[t, 2]
        qq = 0.0
        ss = 0.0
        qs = 0.0
        for c in range(dim):
            q = X[j, c] - X[k, c]
            s = (X[i, c] - X[k, c]) + (X[i, c] - X[j, c])
            qq += q * q
            ss += s * s
            qs += q * s
        out[t] = math.sqrt(0.5 * (qq * ss + qs * qs))


@compiled(fastmath=SUMS)
def diagonal_norms(X, triplets, out):
    """out[t] = |h_t|_2, h = u*u - v*v, for the rows (i, j, l) of triplets."""
    dim = X.shape[1]
    for t in range(triplets.shape[0]):
        i, j, k = triplets[t, 0], triplets[t, 1], triplets[t, 2]
        total = 0.0
        for c in range(dim):
            q = X[j, c] - X[k, c]
            s = (X[i, c] - X[k, c]) + (X[i, c] - X[j, c])
            total += (q * s) ** 2
        out[t] = math.sqrt(total)
