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

from triscreen._kernels.common import SUMS, compiled, inner

# The arithmetic of the test itself, relative.
_HAIR = 1e-12
# With more points than this (or twice the votes, to a limit) that may be among the nearest, a prediction is open unless
# they are all of one class, or all of them vote.
_CROWD, _LARGEST_CROWD = 32, 256


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


@inner()
def _comes_first(a, b, i, j, delta, d1, d2, s, doubt, lower, upper, some, twins, trace, balls):
    """Is the candidate a, of the i-th delta, surely nearer than b, of the j-th?"""
    if twins[some[a]] == twins[some[b]]:
        return some[a] < some[b]
    if upper[a] < lower[b]:
        return True
    if not (d1[a] < d1[b] and d2[a] < d2[b]):
        return False
    dot = 0.0
    for c in range(delta.shape[1]):
        dot += delta[i, c] * delta[j, c]
    s1, s2, k, off1, off2 = balls
    off = doubt[a] + doubt[b]
    return _nearer(d1[a], d2[a], d1[b], d2[b], s[a], s[b], dot, off, trace, s1, s2, k, off1, off2)


@inner()
def outcome(sure, maybe, left, open_ones, y):
    """1 where the vote is y for sure, -1 where it is another one, else 0.

    sure, maybe: votes of each class that are certain, and that may come; ``left`` of the ``open_ones`` will.
    """
    right, wrong = True, False
    least = sure[y] + max(0, left - (open_ones - maybe[y]))
    largest = sure[y] + min(left, maybe[y])
    for c in range(sure.size):
        if c != y:
            other_most = sure[c] + min(left, maybe[c])
            other_least = sure[c] + max(0, left - (open_ones - maybe[c]))
            right &= least > other_most or (least == other_most and y < c)
            wrong |= other_least > largest or (other_least == largest and c < y)
    return 1 if right else -1 if wrong else 0


@compiled(fastmath=SUMS)
def near_enough(
    inner, inner1, inner2, lengths, lengths1, lengths2, own, own1, own2, scale, copies, radius, error, n_neighbors,
    most, counts, out,
):  # fmt: skip
    """Find the points that may be among the nearest of each query under any metric within radius of any between two.

    Parameters
    ----------
    inner, inner1, inner2 : arrays, shape (queries, points)
        q'x, and that under each of the two metrics; ``lengths``, ``own`` are x'x and q'q, and so on.
    scale : float
        What the second metric, as it is here, is to be divided by.
    copies : int array
        How many of each point there are, or n_neighbors where there are more.
    error : float
        Of a squared distance under a metric, relative to (|x| + |q|)^2 of the longest x.
    most : int
        Of a query that has more than so many none are kept.
    counts, out : int arrays
        How many for each query; their numbers, one query after the other.

    Returns
    -------
    int
        How many in all.
    """
    n, inverse = lengths.size, 1.0 / scale
    longest = sqrt(lengths.max())
    lower, upper, nearest = np.empty(n), np.empty(n), np.empty(n_neighbors)
    total = 0
    for q in range(own.size):
        reach = (longest + sqrt(own[q])) ** 2
        more = 16.0 * error * reach + radius * 1e-10 * reach
        mine, mine1, mine2 = own[q], own1[q], own2[q]
        for t in range(n):
            wide = radius * max(0.0, lengths[t] + mine - 2.0 * inner[q, t]) + more
            d1 = lengths1[t] + mine1 - 2.0 * inner1[q, t]
            d2 = inverse * (lengths2[t] + mine2 - 2.0 * inner2[q, t])
            lower[t] = min(d1, d2) - wide
            upper[t] = max(d1, d2) + wide
        nearest[:] = np.inf
        limit = np.inf
        for t in range(n):
            more_of_it = copies[t]
            while more_of_it > 0 and upper[t] < limit:
                more_of_it -= 1
                k = n_neighbors - 1
                while k > 0 and nearest[k - 1] > upper[t]:
                    nearest[k] = nearest[k - 1]
                    k -= 1
                nearest[k] = upper[t]
                limit = nearest[n_neighbors - 1]
        begin = total
        for t in range(n):
            if lower[t] <= limit:
                out[total] = t
                total += 1
        if total - begin > most:
            total = begin
        counts[q] = total - begin
    return total


@inner(fastmath=SUMS)
def _apart(X, Y1, Y2, queries, Z1, Z2, t, q):
    """Return (x'x, |x - q|^2, and that under each of two metrics) of a point and a query; Y, Z: these times Q."""
    length = s = d1 = d2 = 0.0
    for c in range(X.shape[1]):
        delta = X[t, c] - queries[q, c]
        length += X[t, c] * X[t, c]
        s += delta * delta
        d1 += delta * (Y1[t, c] - Z1[q, c])
        d2 += delta * (Y2[t, c] - Z2[q, c])
    return length, s, d1, d2


@compiled()
def certain_votes(
    X, Y1, Y2, queries, Z1, Z2, codes, twins, wanted, ptr, candidates, n_neighbors, n_classes, balls, radius, trace,
    error, most, out, kept_counts, kept,
):  # fmt: skip
    """out[q] = 1 where the vote of the nearest neighbours is surely ``wanted[q]``, -1 where surely not, else 0.

    Parameters
    ----------
    X, Y1, Y2 : arrays
        Points, and these times the two centres; ``queries``, ``Z1``, ``Z2`` the same of those that ask.
    codes, twins : int arrays
        The class of each point; points with the same number are the same point, of which the first comes first.
    ptr, candidates : int arrays
        The points that may be among the nearest of each query; those that are the same in the order of their numbers.
    balls : array
        r1^2, r2^2, k, and what may be wrong with each centre.
    radius : float
        Of the largest ball around either centre.
    trace, error : float
        Of the larger centre, or its norm; of |x - y|^2, relative to (|x| + |y|)^2, and that times trace of a distance.
    most : int
        Of a query that has more than so many none are kept; one that has none is open.
    kept_counts, kept : int arrays
        Of the queries that are open: the points that may still be among the nearest (as places in ``candidates``).
    """
    dim = X.shape[1]
    room, crowd = 0, max(_CROWD, min(2 * n_neighbors, _LARGEST_CROWD))
    for q in range(wanted.size):
        room = max(room, ptr[q + 1] - ptr[q])
    delta = np.empty((room, dim))
    d1, d2, s, doubt = np.empty(room), np.empty(room), np.empty(room), np.empty(room)
    lower, upper, middle = np.empty(room), np.empty(room), np.empty(room)
    place, some = np.empty(room, np.int64), np.empty(room, np.int64)
    nearest = np.empty(n_neighbors)
    sure, maybe = np.empty(n_classes, np.int64), np.empty(n_classes, np.int64)
    total = 0
    for q in range(wanted.size):
        own = 0.0
        for c in range(dim):
            own += queries[q, c] * queries[q, c]
        nearest[:] = np.inf
        count = ptr[q + 1] - ptr[q]
        if count == 0:
            out[q] = kept_counts[q] = 0
            continue
        for i in range(count):
            t = candidates[ptr[q] + i]
            if i > 0 and twins[t] == twins[candidates[ptr[q] + i - 1]]:
                j = i - 1
                s[i], d1[i], d2[i], doubt[i], lower[i], upper[i] = s[j], d1[j], d2[j], doubt[j], lower[j], upper[j]
            else:
                length, s[i], d1[i], d2[i] = _apart(X, Y1, Y2, queries, Z1, Z2, t, q)
                doubt[i] = error * (sqrt(own) + sqrt(length)) ** 2
                away = radius * s[i] * (1.0 + 1e-9) + (trace + radius) * doubt[i]
                lower[i], upper[i] = min(d1[i], d2[i]) - away, max(d1[i], d2[i]) + away
            if upper[i] < nearest[n_neighbors - 1]:
                j = n_neighbors - 1
                while j > 0 and nearest[j - 1] > upper[i]:
                    nearest[j] = nearest[j - 1]
                    j -= 1
                nearest[j] = upper[i]
        # Those that come as near as the k-th one, here.
        limit = nearest[n_neighbors - 1]
        m = 0
        for i in range(count):
            if lower[i] <= limit:
                place[m], some[m] = ptr[q] + i, candidates[ptr[q] + i]
                s[m], d1[m], d2[m], doubt[m], lower[m], upper[m] = s[i], d1[i], d2[i], doubt[i], lower[i], upper[i]
                middle[m] = d1[m] + d2[m]
                m += 1
        order = np.argsort(middle[:m], kind="mergesort")  # points that are the same stay in their order
        for i in range(m):
            t = some[order[i]]
            for c in range(dim):
                delta[i, c] = X[t, c] - queries[q, c]
        # Whoever has k that are surely nearer is out, and the k nearest are never among these, so that only those who
        # are left count; nobody who comes later in this order is surely nearer. Of too many that may be in, it is only
        # asked whether they are of one class.
        left, single = 0, True
        for j in range(m):
            b = order[j]
            nearer, i = 0, 0
            while n_neighbors <= left <= crowd and i < left and nearer < n_neighbors:
                nearer += _comes_first(
                    order[i], b, i, j, delta, d1, d2, s, doubt, lower, upper, some, twins, trace, balls
                )
                i += 1
            if nearer < n_neighbors:
                order[left] = b
                if left < j:
                    delta[left] = delta[j]
                single &= codes[some[b]] == codes[some[order[0]]]
                left += 1
        y = wanted[q]
        if single:
            out[q] = 1 if codes[some[order[0]]] == y else -1
        elif left > crowd and left > n_neighbors:
            out[q] = 0
        else:
            sure[:] = 0
            maybe[:] = 0
            votes, open_ones = n_neighbors, 0
            for i in range(left):
                a = order[i]
                others = i if left > n_neighbors else 0  # those before it are not surely farther
                for j in range(i + 1, left if left > n_neighbors else 0):
                    others += not _comes_first(
                        a, order[j], i, j, delta, d1, d2, s, doubt, lower, upper, some, twins, trace, balls
                    )
                    if others >= n_neighbors:
                        break
                if others < n_neighbors:
                    sure[codes[some[a]]] += 1
                    votes -= 1
                else:
                    maybe[codes[some[a]]] += 1
                    open_ones += 1
            out[q] = outcome(sure, maybe, votes, open_ones, y)
        kept_counts[q] = 0
        if out[q] == 0 and left <= most:
            kept_counts[q] = left
            chosen = np.sort(place[order[:left]])
            for i in range(left):
                kept[total + i] = chosen[i]
            total += left
    return total


@compiled()
def certain_comparisons(X, Y1, Y2, rows, twins, balls, trace, error, out):
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
            d1 += u * (Y1[b, j] - Y1[a, j])
            d2 += u * (Y2[b, j] - Y2[a, j])
            e1 += v * (Y1[c, j] - Y1[a, j])
            e2 += v * (Y2[c, j] - Y2[a, j])
            length = max(length, max(abs(X[a, j]), max(abs(X[b, j]), abs(X[c, j]))))
        off = 8.0 * error * dim * length * length
        if _nearer(d1, d2, e1, e2, s, other, dot, off, trace, s1, s2, k, off1, off2):
            out[t] = 1
        elif _nearer(e1, e2, d1, d2, other, s, dot, off, trace, s1, s2, k, off1, off2):
            out[t] = -1
        else:
            out[t] = 0
