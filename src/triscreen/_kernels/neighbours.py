"""Exact nearest neighbours within and outside a point's class, from a block of approximate distances."""

from __future__ import annotations

import numpy as np

from triscreen._kernels.common import compiled


@compiled()
def kth_smallest(block, error, codes, offset, k, same, limits):
    """limits[r] = the k-th smallest of block[r] + error over the points (not) of the class of point i = offset + r.

    By insertion, for small k; infinity where there are fewer than k.
    """
    best = np.empty(k)
    for r in range(block.shape[0]):
        i = offset + r
        count = 0
        for j in range(block.shape[1]):
            value = block[r, j] + error[j]
            if count == k and value >= best[k - 1]:
                continue
            if (codes[j] == codes[i]) == same and j != i:
                place = min(count, k - 1)
                count = min(count + 1, k)
                while place > 0 and best[place - 1] > value:
                    best[place] = best[place - 1]
                    place -= 1
                best[place] = value
        limits[r] = best[k - 1] if count == k else np.inf


@compiled()
def _sort(values, order, count, spare):
    """Put the first entries of order into the order of their values; equal ones keep theirs (merge sort)."""
    width = 1
    while width < count:
        for begin in range(0, count, 2 * width):
            middle, end = min(begin + width, count), min(begin + 2 * width, count)
            a, b = begin, middle
            for place in range(begin, end):
                if a < middle and (b >= end or values[order[a]] <= values[order[b]]):
                    spare[place] = order[a]
                    a += 1
                else:
                    spare[place] = order[b]
                    b += 1
        for place in range(count):
            order[place] = spare[place]
        width *= 2


@compiled()
def nearest_of_kind(block, error, limits, X, codes, offset, same, out):
    """out[r] = the nearest points (not) of the class of point i = offset + r, by (distance, index); -1: no more.

    ``block`` holds squared distances that are wrong by at most error[i] + error[j]. They only choose the candidates,
    from limits[r], the k-th smallest of them plus error; the order is that of the distances computed from differences,
    in float64, feature by feature.
    """
    dim = X.shape[1]
    candidates = np.empty(block.shape[1], np.int64)
    exact = np.empty(block.shape[1])
    order = np.empty(block.shape[1], np.int64)
    spare = np.empty(block.shape[1], np.int64)
    for r in range(block.shape[0]):
        i = offset + r
        limit = limits[r] + 2.0 * error[i]
        count = 0
        for j in range(block.shape[1]):
            if block[r, j] - error[j] <= limit and (codes[j] == codes[i]) == same and j != i:
                value = 0.0
                for c in range(dim):
                    t = X[i, c] - X[j, c]
                    value += t * t
                candidates[count] = j
                exact[count] = value
                order[count] = count
                count += 1
        _sort(exact, order, count, spare)
        for place in range(out.shape[1]):
            out[r, place] = candidates[order[place]] if place < count else -1
