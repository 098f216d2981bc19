"""What the sum of all H loses when a point leaves, or a comparison does: dA = A before - A after; rows of a Hessian.

Alphas are clip((1 - margin) / smoothing, 0, 1) at one metric, for triplets that leave and for those that come in their
place; those that stay keep theirs, so that only the pairs of the others are looked at. ``out`` gets dA, one for each
that leaves: (d, d), or (1, d) for the diagonal cone. ``facts`` gets

    [0]   sum over pairs of (sum of the alphas that went into its weight) |delta| (|x_a| + |x_b|): rounding follows it
    [1]   sum of a (1 - a) over the triplets that come
    [2]   pairs that were looked at
    [3]   sum of w a over the triplets that leave, less that over those that come

No order of a sum may be changed where alphas are made: the same two distances give the same alpha everywhere.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from triscreen._kernels.common import SUMS, compiled, inner


@inner()
def _alpha(near, far, inverse):
    a = (1.0 - (far - near)) * inverse
    a = 0.0 if a < 0.0 else a
    return 1.0 if a > 1.0 else a


@compiled()
def base_blocks(dist, ptr, split, most, smoothing, weights, sums):
    """Weights of all pairs, and the sums (loss, alpha, spread) of every anchor, of the first ``most`` of each kind."""
    inverse = 1.0 / smoothing
    weights[:] = 0.0
    sums[:] = 0.0
    for i in range(split.size):
        for p in range(ptr[i], min(split[i], ptr[i] + most)):
            for n in range(split[i], min(ptr[i + 1], split[i] + most)):
                b = 1.0 - (dist[n] - dist[p])
                a = _alpha(dist[p], dist[n], inverse)
                weights[p] -= a
                weights[n] += a
                sums[i, 0] += a * b - 0.5 * smoothing * a * a
                sums[i, 1] += a
                sums[i, 2] += a * (1.0 - a)


@compiled()
def alphas_listed(dist, positive, negative, smoothing, out):
    """The alpha of every listed triplet."""
    inverse = 1.0 / smoothing
    for t in range(positive.size):
        out[t] = _alpha(dist[positive[t]], dist[negative[t]], inverse)


@inner(fastmath=SUMS)
def _add(X, a, b, weight, flat, delta, out):
    """Add weight delta delta' to the upper triangle of out; returns |delta|^2."""
    square = 0.0
    for c in range(delta.size):
        delta[c] = X[a, c] - X[b, c]
        square += delta[c] * delta[c]
    if weight != 0.0:
        if flat:
            for c in range(delta.size):
                out[0, c] += weight * delta[c] * delta[c]
        else:
            for c in range(delta.size):
                one = weight * delta[c]
                for e in range(c, delta.size):
                    out[c, e] += one * delta[e]
    return square


@inner()
def _mirror(out):
    for c in range(out.shape[0]):
        for e in range(c):
            out[c, e] = out[e, c]


@compiled()
def leave_blocks(
    X, sizes, ptr, split, first, second, by_second, by_ptr, most, units, dist, flat, smoothing, out, facts
):  # fmt: skip
    """Points leave, in any role; the next neighbour of each kind moves up where one leaves a list of ``most``."""
    inverse = 1.0 / smoothing
    longest = 0
    for i in range(split.size):
        longest = max(longest, ptr[i + 1] - ptr[i])
    weight, size = np.zeros(longest), np.zeros(longest)
    delta = np.empty(X.shape[1])
    for u in range(units.size):
        point = units[u]
        out[u] = 0.0
        facts[u] = 0.0
        for q in range(by_ptr[point], by_ptr[point + 1] + 1):
            own = q == by_ptr[point + 1]  # the triplets that it is the anchor of, at last
            place = 0 if own else by_second[q]
            i = point if own else first[place]
            begin, middle, end = ptr[i], split[i], ptr[i + 1]
            last_positive, last_negative = min(middle, begin + most), min(end, middle + most)
            if not own and (last_positive <= place < middle or place >= last_negative):
                continue  # it was next to move up
            near_from, near_to, far_from, far_to = begin, last_positive, middle, last_negative
            if not own and place < middle:
                near_from, near_to = place, place + 1
            elif not own:
                far_from, far_to = place, place + 1
            for p in range(near_from, near_to):
                for n in range(far_from, far_to):
                    a = _alpha(dist[p], dist[n], inverse)
                    weight[p - begin] -= a
                    weight[n - begin] += a
                    size[p - begin] += a
                    size[n - begin] += a
                    facts[u, 3] += a
            comes = False
            if not own and place < middle and last_positive < middle:
                near_from, near_to, comes = last_positive, last_positive + 1, True
            elif not own and place >= middle and last_negative < end:
                far_from, far_to, comes = last_negative, last_negative + 1, True
            if comes:
                for p in range(near_from, near_to):
                    for n in range(far_from, far_to):
                        a = _alpha(dist[p], dist[n], inverse)
                        weight[p - begin] += a
                        weight[n - begin] -= a
                        size[p - begin] += a
                        size[n - begin] += a
                        facts[u, 1] += a * (1.0 - a)
                        facts[u, 3] -= a
            for p in range(begin, end):
                t = p - begin
                if size[t] > 0.0:
                    square = _add(X, i, second[p], weight[t], flat, delta, out[u])
                    facts[u, 0] += size[t] * sqrt(square) * (sizes[i] + sizes[second[p]])
                    facts[u, 2] += 1.0
                weight[t] = size[t] = 0.0
        if not flat:
            _mirror(out[u])


@compiled()
def leave_listed(
    X, sizes, first, second, positive, negative, weights, ptr, triplets, units, dist, flat, smoothing, out, facts
):  # fmt: skip
    """Listed triplets leave: those of each unit are triplets[ptr[u] : ptr[u + 1]]; none comes."""
    inverse = 1.0 / smoothing
    delta = np.empty(X.shape[1])
    for u in range(units.size):
        out[u] = 0.0
        facts[u] = 0.0
        for q in range(ptr[units[u]], ptr[units[u] + 1]):
            t = triplets[q]
            p, n = positive[t], negative[t]
            w = weights[t] if weights.size > 0 else 1.0
            a = w * _alpha(dist[p], dist[n], inverse)
            for pair, sign in ((p, -1.0), (n, 1.0)):
                square = _add(X, first[pair], second[pair], sign * a, flat, delta, out[u])
                facts[u, 0] += a * sqrt(square) * (sizes[first[pair]] + sizes[second[pair]])
                facts[u, 2] += 1.0
            facts[u, 3] += a
        if not flat:
            _mirror(out[u])


@compiled(fastmath=SUMS)
def quadratic_rows(X, dist, first, second, positive, negative, weights, smoothing, rows, columns, scale, out):
    """out[m] = sqrt(w/s) H of the m-th triplet with 0 < alpha < 1, at some places of it; returns how many there are.

    weights: of every triplet, or empty; rows, columns, scale: the places, and what entries there are multiplied by.
    """
    m, dim = 0, X.shape[1]
    u, v = np.empty(dim), np.empty(dim)
    for t in range(positive.size):
        p, n = positive[t], negative[t]
        b = 1.0 - (dist[n] - dist[p])
        if not 0.0 < b < smoothing:
            continue
        for c in range(dim):
            u[c] = X[first[n], c] - X[second[n], c]
            v[c] = X[first[p], c] - X[second[p], c]
        root = sqrt((weights[t] if weights.size > 0 else 1.0) / smoothing)
        for e in range(rows.size):
            i, j = rows[e], columns[e]
            out[m, e] = root * scale[e] * (u[i] * u[j] - v[i] * v[j])
        m += 1
    return m
