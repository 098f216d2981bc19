"""What two balls of metrics, and all between them, say about neighbours: decided, or open.

Ball 1 at the first end, ball 2 at the second; at p in between the centre is (1 - p) Q1 + p Q2 and the square of the
radius at most (1 - p)^2 r1^2 + p^2 r2^2 + p (1 - p) k. With f1, f2 the margins <H, Q1>, <H, Q2> (less their errors), a
margin is positive in every ball if (1 - p) f1 + p f2 > |H| r(p) for every p: a quadratic form in (1 - p, p) that is
positive where neither is negative,

    f1 > r1 |H|,  f2 > r2 |H|,  f1 f2 + sqrt((f1^2 - r1^2 |H|^2) (f2^2 - r2^2 |H|^2)) > |H|^2 k / 2.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from triscreen._kernels.common import compiled, inner

# The arithmetic of the test itself, relative.
_HAIR = 1e-12


@inner()
def _positive(f1, f2, size, s1, s2, k, off1, off2):
    """Is the margin positive in every ball? ``size`` is |H|^2, or more; s1, s2 are r1^2, r2^2."""
    length = sqrt(size)
    f1 -= off1 * length
    f2 -= off2 * length
    if not (f1 > 0.0 and f2 > 0.0):
        return False
    a = f1 * f1 * (1.0 - _HAIR) - s1 * size
    c = f2 * f2 * (1.0 - _HAIR) - s2 * size
    return a > 0.0 and c > 0.0 and (f1 * f2 + sqrt(a * c)) * (1.0 - _HAIR) > 0.5 * k * size


@inner()
def _nearer(d1, d2, other1, other2, s, other_s, dot, doubt, trace, s1, s2, k, off1, off2):
    """Is a point, at the first distances, surely nearer than another one? s: |delta|^2; dot: delta'delta of the two.

    ``doubt`` bounds the error of |H|, and trace times that the one of <H, Q>.
    """
    f1, f2 = other1 - d1 - trace * doubt, other2 - d2 - trace * doubt
    if not (f1 > 0.0 and f2 > 0.0):
        return False
    # |H|^2 = |u|^4 + |v|^4 - 2 (u'v)^2, and a little more for rounding.
    size = (s * s + other_s * other_s) * (1.0 + 1e-9) - 2.0 * dot * dot
    size = (sqrt(size) + doubt) ** 2
    return _positive(f1, f2, size, s1, s2, k, off1, off2)


@compiled()
def certain_votes(
    X, G1, G2, queries, Q1, Q2, codes, twins, wanted, ptr, candidates, n_neighbors, n_classes, balls, radius, trace,
    error, out,
):  # fmt: skip
    """out[q] = 1 where the vote of the nearest neighbours is surely ``wanted[q]``, -1 where surely not, else 0.

    Parameters
    ----------
    X, G1, G2 : arrays
        Points, and these under the factors of the two centres; ``queries``, ``Q1``, ``Q2`` the same of those that ask.
    codes, twins : int arrays
        The class of each point; points with the same number are the same point, of which the first comes first.
    ptr, candidates : int arrays
        The points that may be among the nearest of each query.
    balls : array
        r1^2, r2^2, k, and what may be wrong with each centre.
    radius : float
        Of the largest ball around either centre.
    trace, error : float
        Of the larger centre; of |x - y|^2, relative to (|x| + |y|)^2, and that times trace of a distance.
    """
    s1, s2, k, off1, off2 = balls
    dim = X.shape[1]
    most = 0
    for q in range(wanted.size):
        most = max(most, ptr[q + 1] - ptr[q])
    delta = np.empty((most, dim))
    d1, d2, s, doubt, upper = np.empty(most), np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    some = np.empty(most, np.int64)
    nearer, farther = np.empty(most, np.int64), np.empty(most, np.int64)
    sure, maybe = np.empty(n_classes, np.int64), np.empty(n_classes, np.int64)
    for q in range(wanted.size):
        m = ptr[q + 1] - ptr[q]
        own = 0.0
        for c in range(dim):
            own += queries[q, c] * queries[q, c]
        for i in range(m):
            t = candidates[ptr[q] + i]
            some[i] = t
            s[i] = length = d1[i] = d2[i] = 0.0
            for c in range(dim):
                delta[i, c] = X[t, c] - queries[q, c]
                s[i] += delta[i, c] * delta[i, c]
                length += X[t, c] * X[t, c]
            for c in range(G1.shape[1]):
                d1[i] += (G1[t, c] - Q1[q, c]) ** 2
            for c in range(G2.shape[1]):
                d2[i] += (G2[t, c] - Q2[q, c]) ** 2
            doubt[i] = error * (sqrt(own) + sqrt(length)) ** 2
            upper[i] = max(d1[i], d2[i]) + radius * s[i] * (1.0 + 1e-9) + (trace + radius) * doubt[i]
        # Those that come as near as the k-th one, here.
        limit = np.partition(upper[:m], n_neighbors - 1)[n_neighbors - 1]
        left = 0
        for i in range(m):
            if min(d1[i], d2[i]) - radius * s[i] * (1.0 + 1e-9) - (trace + radius) * doubt[i] <= limit:
                some[left], s[left], d1[left], d2[left], doubt[left] = some[i], s[i], d1[i], d2[i], doubt[i]
                delta[left] = delta[i]
                nearer[left] = farther[left] = 0
                left += 1
        m = left
        for i in range(m):
            for j in range(i + 1, m):
                if twins[some[i]] == twins[some[j]]:
                    first = some[i] < some[j]
                    second = not first
                else:
                    off = doubt[i] + doubt[j]
                    first = d1[i] < d1[j]
                    second = d1[j] < d1[i]
                    if first or second:
                        dot = 0.0
                        for c in range(dim):
                            dot += delta[i, c] * delta[j, c]
                        if first:
                            first = _nearer(
                                d1[i], d2[i], d1[j], d2[j], s[i], s[j], dot, off, trace, s1, s2, k, off1, off2
                            )
                        else:
                            second = _nearer(
                                d1[j], d2[j], d1[i], d2[i], s[j], s[i], dot, off, trace, s1, s2, k, off1, off2
                            )
                if first:
                    farther[i] += 1
                    nearer[j] += 1
                elif second:
                    farther[j] += 1
                    nearer[i] += 1
        sure[:] = 0
        maybe[:] = 0
        left, open_ones = n_neighbors, 0
        for i in range(m):
            if nearer[i] >= n_neighbors:
                continue
            if m - 1 - farther[i] < n_neighbors:  # fewer than that many are not surely farther
                sure[codes[some[i]]] += 1
                left -= 1
            else:
                maybe[codes[some[i]]] += 1
                open_ones += 1
        y = wanted[q]
        right, wrong = True, False
        least = sure[y] + max(0, left - (open_ones - maybe[y]))
        largest = sure[y] + min(left, maybe[y])
        for c in range(n_classes):
            if c != y:
                other_most = sure[c] + min(left, maybe[c])
                other_least = sure[c] + max(0, left - (open_ones - maybe[c]))
                right &= least > other_most or (least == other_most and y < c)
                wrong |= other_least > largest or (other_least == largest and c < y)
        out[q] = 1 if right else -1 if wrong else 0


@compiled()
def certain_comparisons(X, G1, G2, rows, twins, balls, trace, error, out):
    """out[t] = 1 where "a is closer to b than to c" is surely so, -1 where surely not, else 0."""
    s1, s2, k, off1, off2 = balls
    dim = X.shape[1]
    for t in range(len(rows)):
        a, b, c = rows[t]
        if twins[b] == twins[c]:
            out[t] = -1  # as near as each other is not closer
            continue
        s = other = dot = d1 = d2 = e1 = e2 = 0.0
        length = 0.0
        for j in range(dim):
            u, v = X[b, j] - X[a, j], X[c, j] - X[a, j]
            s += u * u
            other += v * v
            dot += u * v
            length = max(length, max(abs(X[a, j]), max(abs(X[b, j]), abs(X[c, j]))))
        for j in range(G1.shape[1]):
            d1 += (G1[b, j] - G1[a, j]) ** 2
            e1 += (G1[c, j] - G1[a, j]) ** 2
        for j in range(G2.shape[1]):
            d2 += (G2[b, j] - G2[a, j]) ** 2
            e2 += (G2[c, j] - G2[a, j]) ** 2
        off = 8.0 * error * dim * length * length
        if _nearer(d1, d2, e1, e2, s, other, dot, off, trace, s1, s2, k, off1, off2):
            out[t] = 1
        elif _nearer(e1, e2, d1, d2, other, s, dot, off, trace, s1, s2, k, off1, off2):
            out[t] = -1
        else:
            out[t] = 0
