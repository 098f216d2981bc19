"""What is known of all metrics of a stretch of lambdas: two centres, and how far any of them is from the line between.

Between two neighbouring ends that are the balls of `triscreen.path.balls`. A longer stretch, from the end a to the end
b with others in between, has a **tube**: each centre Q_i in between is (1 - t_i) Qa + t_i Qb + E_i with 0 <= t_i <= 1,
so the balls between the i-th and the next one, of radius r_i at most, lie within

    R = max_i ( r_i + max(|E_i|, |E_i+1|) )    of the line from Qa to Qb,

which bends little: over a factor of two in lambda R is a few times r_i, where the ball between a and b alone would be
thirty times as large. Neighbours do not change with the scale of a metric, so the second centre is divided by a c > 0:
with s = (1 - p) + p c and q = p c/s, the metric (1 - p) Q1 + p Q2 is s ((1 - q) Q1 + q Q2/c), and radii go with it.

Ours.
"""

from __future__ import annotations

import numpy as np

from triscreen.problem.rounding import U
from triscreen.problem.units import METRIC

_HAIR = 1 + 1e-12


class Seen:
    """The balls of neighbouring ends in the coordinates of X, as they are inside.

    Parameters
    ----------
    problem : Problem
    centers, doubts : arrays
        Core elements, and bounds of their errors.
    squares, ks : arrays
        Of the radii; k between neighbours.
    """

    def __init__(self, problem, centers, doubts, squares, ks):
        prior, basis = problem.prior, problem.basis
        if basis is not None:
            centers = basis @ centers @ basis.T
        if prior is not None and prior.outside is not None:
            centers = centers + problem.units.into(prior.outside, METRIC)
        if centers.ndim == 2:
            flat, centers = centers, np.zeros((*centers.shape, centers.shape[1]))
            np.einsum("ijj->ij", centers)[:] = flat
        self.dim = centers.shape[1]
        self.centers = centers
        flat = centers.reshape(len(centers), -1)
        self.sizes = np.sqrt(np.einsum("ij,ij->i", flat, flat))
        self.traces = np.maximum(np.einsum("ijj->i", centers), self.sizes)
        of_prior = 0.0 if prior is None else prior.error
        self.offs = np.asarray(doubts) + of_prior + 128 * self.dim * U * self.sizes
        self.squares, self.ks = np.asarray(squares) * _HAIR, np.asarray(ks) + 1e-12 * np.abs(ks)


class Interval:
    """What all metrics of an interval are near to.

    Attributes
    ----------
    ends, centers : tuples of two arrays
        Q1 and Q2; Q1 and Q2/c.
    scale : float
        c.
    balls : tuple of float
        r1^2, r2^2, k, and what may be wrong with each centre.
    radius : float
        No metric is farther from the line between the centres.
    trace, relative, error : float
        Of the larger centre, or its norm; bound of the error of |x - y|^2, relative to (|x| + |y|)^2; of a distance.
    """

    def __init__(self, points, seen, ends, squares, k, offs):
        self.points = points
        one, two = (seen.centers[end] for end in ends)
        (size, other), inner = seen.sizes[list(ends)], float(np.vdot(one, two))
        scale = inner / size**2 if inner > 1e-3 * size * other > 0 else 1.0
        self.ends, self.scale = (one, two), scale
        self.centers = one, two if scale == 1 else two / scale
        (s1, s2), (off1, off2) = squares, offs
        s2, k, off2 = s2 / scale**2, k / scale, off2 / scale
        reach = float(np.sqrt(max(s1, s2, 0.5 * k))) * _HAIR
        more = 128 * seen.dim * U * (reach + other / scale)
        self.balls = tuple(float(v) for v in (s1 * _HAIR, s2 * _HAIR, k + 1e-12 * abs(k), off1 + more, off2 + more))
        self.radius = reach + max(self.balls[3:])
        self.trace = float(max(seen.traces[ends[0]], seen.traces[ends[1]] / scale)) * _HAIR
        self.relative = (64 * seen.dim + 128) * U
        self.error = self.relative * self.trace

    @classmethod
    def between(cls, points, seen, number):
        """Make that of an end and the next one."""
        ends = number, number + 1
        return cls(points, seen, ends, seen.squares[[*ends]], seen.ks[number], seen.offs[[*ends]])


class Run:
    """Neighbouring ends, of which any two have an `Interval`."""

    def __init__(self, points, seen):
        self._points, self._seen = points, seen
        self._reaches = np.sqrt(np.maximum(np.maximum(seen.squares[:-1], seen.squares[1:]), 0.5 * seen.ks)) * _HAIR

    def interval(self, first, last):
        """Return what is known of all metrics from one end to another."""
        if last == first + 1:
            return Interval.between(self._points, self._seen, first)
        square = self.tube(first, last) ** 2
        return Interval(self._points, self._seen, (first, last), (square, square), 2 * square, (0.0, 0.0))

    def tube(self, first, last):
        """Return R: how far any metric from one end to another may be from the line between their centres."""
        seen, some = self._seen, slice(first, last + 1)
        Q = seen.centers[some].reshape(last - first + 1, -1)
        line = Q[-1] - Q[0]
        square, away = float(line @ line), Q - Q[0]
        shares = np.clip(away @ line / square, 0.0, 1.0) if square > 0 else np.zeros(len(Q))
        away -= shares[:, None] * line
        bends = np.sqrt(np.einsum("ij,ij->i", away, away)) * _HAIR + seen.offs[some]
        bends += 16 * U * (seen.sizes[first] + seen.sizes[last] + seen.sizes[some])
        return float((self._reaches[first:last] + np.maximum(bends[:-1], bends[1:])).max()) * _HAIR
