"""What a ball of metrics says about the neighbours of a point that is left out: the class they vote for, or open.

i is nearer than j for sure where <H, Q> > r |H|, H = v v' - u u' of the two differences, in the ball around Q of radius
r. Which points may be among the nearest is found by one metric near all the balls, whose distances are quick.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from triscreen._kernels.certain import outcome
from triscreen._kernels.common import SUMS, compiled, inner


@inner()
def _tally(some, nearer, farther, m, n_neighbors, codes, sure, maybe):
    """Count the votes of each class that are certain and that may come; returns (how many will come, of how many)."""
    for c in range(sure.size):
        sure[c] = maybe[c] = 0
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
    return left, open_ones


@inner(fastmath=SUMS)
def _squares(X, point, out):
    """out[i] = |x_i - x_point|^2."""
    for i in range(len(X)):
        total = 0.0
        for c in range(X.shape[1]):
            t = X[i, c] - X[point, c]
            total += t * t
        out[i] = total


@inner(fastmath=SUMS)
def _form(Q, X, i, point, flat):
    """delta'Q delta of two points."""
    total = 0.0
    for c in range(X.shape[1]):
        t = X[i, c] - X[point, c]
        if flat:
            total += Q[0, c] * t * t
        else:
            part = 0.0
            for e in range(X.shape[1]):
                part += Q[c, e] * (X[i, e] - X[point, e])
            total += part * t
    return total


@inner()
def _candidates(base, square, sizes, point, reach, norm, error, smallest, some):
    """Write the points that may be among the nearest ones under a metric within ``reach`` of that of ``base``.

    Returns how many there are; -1: more than there is room for. norm: with reach, more than the size of any of these.
    """
    k = smallest.size
    for t in range(k):
        smallest[t] = np.inf
    for i in range(base.size):
        if i != point:
            off = reach * square[i] * (1.0 + 1e-9) + (norm + reach) * error * (sizes[point] + sizes[i]) ** 2
            upper = base[i] + off
            base[i] -= off
            if upper < smallest[k - 1]:
                t = k - 1
                while t > 0 and smallest[t - 1] > upper:
                    smallest[t] = smallest[t - 1]
                    t -= 1
                smallest[t] = upper
    m = 0
    for i in range(base.size):
        if i != point and base[i] <= smallest[k - 1]:
            if m == some.size:
                return -1
            some[m] = i
            m += 1
    return m


@inner()
def _length(u, v, s, other, flat):
    """|u u' - v v'|, or a little more; of the diagonals only, where these are all there is."""
    total = 0.0
    if flat:
        for c in range(u.size):
            t = u[c] * u[c] - v[c] * v[c]
            total += t * t
        return sqrt(total) * (1.0 + 1e-9)
    for c in range(u.size):
        total += u[c] * v[c]
    return sqrt(max(0.0, (s * s + other * other) * (1.0 + 1e-9) - 2.0 * total * total))


@compiled()
def certain_classes(
    X, sizes, G, trace, reach, queries, centers, radii, norms, flat, codes, twins, n_neighbors, n_classes, error, most,
    out,
):  # fmt: skip
    """out[q] = the class that the nearest neighbours of a point, itself left out, vote for in all of a ball; -1: open.

    Parameters
    ----------
    X, sizes, G : arrays
        Points, their norms, and points under the factor of a metric near all the balls.
    trace : float
        Of that metric.
    reach : array
        No metric of the ball of a query is farther than this from that one.
    queries : int array
        The points that ask.
    centers, radii, norms : arrays
        One ball for each of them: (d, d), or (1, d) for the diagonal cone, where it may be any matrix; its norm.
    codes, twins : int arrays
        As for `certain_votes`.
    error : float
        Of |x - y|^2, relative to (|x| + |y|)^2, and that times a norm of a distance.
    most : int
        Where more points than this may be among the nearest, the vote is open.
    """
    n, dim = X.shape
    base, square = np.empty(n), np.empty(n)
    smallest = np.empty(n_neighbors)
    delta = np.empty((most, dim))
    d, s, doubt = np.empty(most), np.empty(most), np.empty(most)
    some, nearer, farther = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    sure, maybe = np.empty(n_classes, np.int64), np.empty(n_classes, np.int64)
    for q in range(queries.size):
        point, radius, norm = queries[q], radii[q], norms[q]
        out[q] = -1
        _squares(X, point, square)
        _squares(G, point, base)
        m = _candidates(base, square, sizes, point, reach[q], trace, error, smallest, some)
        if m < 0 and radius < 0.25 * reach[q]:  # then its own centre says more
            for i in range(n):
                base[i] = _form(centers[q], X, i, point, flat)
            m = _candidates(base, square, sizes, point, radius, norm, error, smallest, some)
        if m < n_neighbors:
            continue
        for i in range(m):
            for c in range(dim):
                delta[i, c] = X[some[i], c] - X[point, c]
            s[i] = square[some[i]]
            d[i] = _form(centers[q], X, some[i], point, flat)
            doubt[i] = error * (sizes[point] + sizes[some[i]]) ** 2
            nearer[i] = farther[i] = 0
        for i in range(m):
            for j in range(i + 1, m):
                if twins[some[i]] == twins[some[j]]:
                    first = some[i] < some[j]
                    second = not first
                else:
                    off = doubt[i] + doubt[j]
                    apart = abs(d[i] - d[j]) - norm * off
                    sure_of_it = apart > 0.0 and apart > radius * (_length(delta[i], delta[j], s[i], s[j], flat) + off)
                    first = sure_of_it and d[i] < d[j]
                    second = sure_of_it and d[j] < d[i]
                if first:
                    farther[i] += 1
                    nearer[j] += 1
                elif second:
                    farther[j] += 1
                    nearer[i] += 1
        left, open_ones = _tally(some, nearer, farther, m, n_neighbors, codes, sure, maybe)
        for c in range(n_classes):
            if outcome(sure, maybe, left, open_ones, c) == 1:
                out[q] = c
