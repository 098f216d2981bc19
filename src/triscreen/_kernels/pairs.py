"""Work per pair: squared distances, and pair weights back into a matrix."""

from __future__ import annotations

from numba import njit

SUMS = {"reassoc", "contract"}


@njit(cache=True, nogil=True, fastmath=SUMS)
def pair_distances(G, first, second, out, start, stop):
    """out[p] = |G[first[p]] - G[second[p]]|^2 for the pairs start <= p < stop."""
    rank = G.shape[1]
    for p in range(start, stop):
        a, b = first[p], second[p]
        total = 0.0
        for c in range(rank):
            t = G[a, c] - G[b, c]
            total += t * t
        out[p] = total


@njit(cache=True, nogil=True, fastmath=SUMS)
def laplacian_rows(X, first, second, ptr, back_ptr, back_pair, weights, out, start, stop):
    """out[i - start] = row i of Lap(weights) X, for the points start <= i < stop.

    Row i is the sum of weights[p] (x_i - x_other) over the pairs that point i belongs to: those where it comes
    first (ptr) and those where it comes second (back_ptr, back_pair). It only reads other rows, so chunks of
    points never write to the same place; and it adds differences, so that far-apart clusters cost no digits.
    """
    dim = X.shape[1]
    for i in range(start, stop):
        row = out[i - start]
        row[:] = 0.0
        for p in range(ptr[i], ptr[i + 1]):
            w = weights[p]
            if w != 0.0:
                other = second[p]
                for c in range(dim):
                    row[c] += w * (X[i, c] - X[other, c])
        for e in range(back_ptr[i], back_ptr[i + 1]):
            p = back_pair[e]
            w = weights[p]
            if w != 0.0:
                other = first[p]
                for c in range(dim):
                    row[c] += w * (X[i, c] - X[other, c])


@njit(cache=True, nogil=True, fastmath=SUMS)
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


@njit(cache=True, nogil=True)
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
