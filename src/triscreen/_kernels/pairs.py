"""Work per pair: squared distances, and pair weights back into a matrix."""

from __future__ import annotations

import numpy as np

from triscreen._kernels.common import SUMS, compiled


@compiled(fastmath=SUMS)
def pair_distances(G, ptr, second, out, start, stop):
    """out[p] = |G[i] - G[second[p]]|^2 for the pairs ptr[i] <= p < ptr[i + 1] of the points start <= i < stop."""
    rank = G.shape[1]
    for i in range(start, stop):
        p, end = ptr[i], ptr[i + 1]
        while p + 4 <= end:  # four at a time: their own point is looked up a quarter as often
            a0, a1, a2, a3 = second[p], second[p + 1], second[p + 2], second[p + 3]
            s0 = s1 = s2 = s3 = 0.0
            for c in range(rank):
                g = G[i, c]
                t0, t1, t2, t3 = g - G[a0, c], g - G[a1, c], g - G[a2, c], g - G[a3, c]
                s0 += t0 * t0
                s1 += t1 * t1
                s2 += t2 * t2
                s3 += t3 * t3
            out[p], out[p + 1], out[p + 2], out[p + 3] = s0, s1, s2, s3
            p += 4
        while p < end:
            total = 0.0
            for c in range(rank):
                t = G[i, c] - G[second[p], c]
                total += t * t
            out[p] = total
            p += 1


@compiled(fastmath=SUMS)
def pair_products(X, Y, first, second, out, start, stop):
    """out[p] = (x_a - x_b)'(y_a - y_b) for the pairs start <= p < stop; with Y = X V it is delta' V delta."""
    dim = X.shape[1]
    for p in range(start, stop):
        a, b = first[p], second[p]
        total = 0.0
        for c in range(dim):
            total += (X[a, c] - X[b, c]) * (Y[a, c] - Y[b, c])
        out[p] = total


@compiled()
def add_by_second(second, weights, out, start, stop):
    """out[j] += the weights of the pairs start <= p < stop that end with point j."""
    for p in range(start, stop):
        out[second[p]] += weights[p]


@compiled(fastmath=SUMS)
def half_rows(X, ptr, second, weights, ending, out, start, stop):
    """out[i - start] = row i of V with X'V + V'X = X' Lap(weights) X, for the points start <= i < stop.

    Row i is the sum of weights[p] (x_i - x_other) over the pairs that *begin* with it, and (e - s)/2 x_i: s and e are
    the weights of the pairs that begin with it, and (``ending``) that end with it. Half the work of `laplacian_rows`,
    for digits where pairs are short beside the points.
    """
    dim = X.shape[1]
    most = 0
    for i in range(start, stop):
        most = max(most, ptr[i + 1] - ptr[i])
    other = np.empty(most + 3, np.int64)
    weight = np.empty(most + 3, X.dtype)
    for i in range(start, stop):
        n = 0  # pairs of weight zero are overwritten by the next one
        total = 0.0
        for p in range(ptr[i], ptr[i + 1]):
            other[n], weight[n] = second[p], weights[p]
            n += weights[p] != 0.0
            total += weights[p]
        while n % 4 != 0:
            other[n], weight[n] = i, 0.0
            n += 1
        row, own = out[i - start], 0.5 * (ending[i] - total)
        for c in range(dim):
            row[c] = own * X[i, c]
        for q in range(0, n, 4):  # four at a time: the row is loaded and stored a quarter as often
            a0, a1, a2, a3 = other[q], other[q + 1], other[q + 2], other[q + 3]
            w0, w1, w2, w3 = weight[q], weight[q + 1], weight[q + 2], weight[q + 3]
            for c in range(dim):
                x = X[i, c]
                row[c] += w0 * (x - X[a0, c]) + w1 * (x - X[a1, c]) + w2 * (x - X[a2, c]) + w3 * (x - X[a3, c])


@compiled(fastmath=SUMS)
def laplacian_rows(X, first, second, ptr, back_ptr, back_pair, weights, out, start, stop):
    """out[i - start] = row i of Lap(weights) X, for the points start <= i < stop.

    Row i is the sum of weights[p] (x_i - x_other) over the pairs that point i belongs to: those where it comes
    first (ptr) and those where it comes second (back_ptr, back_pair). It only reads other rows, so chunks of
    points never write to the same place; and it adds differences, so that far-apart clusters cost no digits.
    """
    dim = X.shape[1]
    most = 0
    for i in range(start, stop):
        most = max(most, ptr[i + 1] - ptr[i] + back_ptr[i + 1] - back_ptr[i])
    other = np.empty(most + 3, np.int64)
    weight = np.empty(most + 3, X.dtype)
    for i in range(start, stop):
        n = 0  # pairs of weight zero are overwritten by the next one
        for p in range(ptr[i], ptr[i + 1]):
            other[n], weight[n] = second[p], weights[p]
            n += weights[p] != 0.0
        for e in range(back_ptr[i], back_ptr[i + 1]):
            p = back_pair[e]
            other[n], weight[n] = first[p], weights[p]
            n += weights[p] != 0.0
        while n % 4 != 0:
            other[n], weight[n] = i, 0.0
            n += 1
        row = out[i - start]
        row[:] = 0.0
        for q in range(0, n, 4):  # four at a time: the row is loaded and stored a quarter as often
            a0, a1, a2, a3 = other[q], other[q + 1], other[q + 2], other[q + 3]
            w0, w1, w2, w3 = weight[q], weight[q + 1], weight[q + 2], weight[q + 3]
            for c in range(dim):
                x = X[i, c]
                row[c] += w0 * (x - X[a0, c]) + w1 * (x - X[a1, c]) + w2 * (x - X[a2, c]) + w3 * (x - X[a3, c])


@compiled(fastmath=SUMS)
def weighted_squares(X, first, second, weights, out, start, stop):
    """out += the sum of weights[p] (x_first - x_second)**2, feature by feature."""
    dim = X.shape[1]
    for p in range(start, stop):
        w = weights[p]
        if w != 0.0:
            a, b = first[p], second[p]
            for c in range(dim):
                t = X[a, c] - X[b, c]
                out[c] += w * t * t


@compiled()
def transpose_pairs(second, back_ptr, back_pair):
    """List the pairs by their second point: back_pair[back_ptr[i]:back_ptr[i + 1]] for point i, in pair order."""
    for p in range(second.size):
        back_ptr[second[p] + 1] += 1
    for i in range(1, back_ptr.size):
        back_ptr[i] += back_ptr[i - 1]
    place = back_ptr[:-1].copy()
    for p in range(second.size):
        back_pair[place[second[p]]] = p
        place[second[p]] += 1
