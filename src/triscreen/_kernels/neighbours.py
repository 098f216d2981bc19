"""Exact nearest neighbours within and outside a point's class, from a block of approximate distances."""

from __future__ import annotations

import numpy as np
from numba import njit

_FEW = 64


@njit(cache=True, nogil=True)
def _kth_smallest(row, error, codes, own, skip, same, k):
    """The k-th smallest of row + error over the points (not) of class own; infinity if there are fewer."""
    count = 0
    best = np.empty(k if k <= _FEW else row.size)
    for j in range(row.size):
        if (codes[j] == own) == same and j != skip:
            value = row[j] + error[j]
            if k > _FEW or count < k:
                place = count
                count += 1
            elif value < best[k - 1]:
                place = k - 1
            else:
                continue
            if k <= _FEW:
                while place > 0 and best[place - 1] > value:
                    best[place] = best[place - 1]
                    place -= 1
            best[place] = value
    if count < k:
        return np.inf
    return best[k - 1] if k <= _FEW else np.partition(best[:count], k - 1)[k - 1]


@njit(cache=True, nogil=True)
def nearest_of_kind(approximate, error, X, codes, offset, k, same, out):
    """out[r] = the k nearest points (not) of the class of point i = offset + r, by (distance, index); -1: no more.

    ``approximate`` holds squared distances that are wrong by at most error[i] + error[j]. They only choose the
    candidates; the order is that of the distances computed from differences, in float64, feature by feature.
    """
    dim = X.shape[1]
    candidates = np.empty(approximate.shape[1], np.int64)
    exact = np.empty(approximate.shape[1])
    for r in range(approximate.shape[0]):
        i = offset + r
        row = approximate[r]
        limit = _kth_smallest(row, error, codes, codes[i], i, same, k) + 2.0 * error[i]
        count = 0
        for j in range(row.size):
            if row[j] - error[j] <= limit and (codes[j] == codes[i]) == same and j != i:
                value = 0.0
                for c in range(dim):
                    t = X[i, c] - X[j, c]
                    value += t * t
                candidates[count] = j
                exact[count] = value
                count += 1
        order = np.argsort(exact[:count], kind="mergesort")  # stable: ties stay in the order of their indices
        for place in range(k):
            out[r, place] = candidates[order[place]] if place < count else -1
