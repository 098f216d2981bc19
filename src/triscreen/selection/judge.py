"""What is decided about held-out predictions for every lambda between two ends.

An `Interval` has what the balls between two ends say, in the coordinates of X; a `Verdict` what followed from it, and
which points may still be among the nearest of the queries that are open. Whatever holds on an interval holds on its
parts, so these need to look at open queries and at such points only.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np

from triscreen._kernels.certain import certain_comparisons, certain_votes, near_enough
from triscreen._utils.threads import single_threaded_blas
from triscreen.path.balls import Between
from triscreen.problem.rounding import U
from triscreen.problem.units import METRIC, POINT

_BLOCK = 1 << 16  # numbers of a block of queries times points
_WIDE = 0.03  # how far the metrics of a stretch may be from its first one, of its size
_VIEWS = 64  # ends whose factors are kept


class Points:
    """Points and those that ask for neighbours among them, around the mean, as they are inside; the same ones."""

    def __init__(self, problem, X, queries=None):
        X = problem.units.into(X, POINT)
        middle = X.mean(axis=0)
        self.X, self.queries = X - middle, None if queries is None else problem.units.into(queries, POINT) - middle
        self.twins = np.unique(X, axis=0, return_inverse=True)[1].ravel()  # the same number: the same point


@dataclass(frozen=True, eq=False)
class Verdict:
    """What is decided on an interval.

    Attributes
    ----------
    outcomes : int8 array
        1: right for sure, -1: wrong for sure, 0: open.
    left : tuple or None
        What is needed to decide more on a part of the interval; None: nobody has looked yet.
    """

    outcomes: np.ndarray
    left: tuple = field(repr=False)

    @property
    def lower(self):
        """The share that is wrong for sure."""
        return np.count_nonzero(self.outcomes < 0) / len(self.outcomes)

    @property
    def upper(self):
        """The share that is not right for sure."""
        return np.count_nonzero(self.outcomes <= 0) / len(self.outcomes)

    @property
    def is_open(self):
        """Is there a prediction that is not decided?"""
        return not self.outcomes.all()


class Judge:
    """Decides about intervals of lambda, one after the other; subject: `Votes` or `Comparisons`."""

    def __init__(self, problem, points, subject):
        self.problem, self._points, self._subject = problem, points, subject
        self._views = OrderedDict()

    @single_threaded_blas()
    def decide(self, first, second, parent=None):
        """Return the `Verdict` for every lambda between two ends; parent: that of an interval around them."""
        between = Between(self.problem, first, second)
        interval = Interval(self._points, between, [self._view(end) for end in (first, second)])
        everything = parent is None or parent.left is None
        left = self._subject.all_of(interval) if everything else parent.left
        found, left = self._subject.decide(interval, left)
        if everything:
            return Verdict(found, left)
        outcomes = parent.outcomes.copy()
        outcomes[outcomes == 0] = found
        return Verdict(outcomes, left)

    def _view(self, end):
        """Return (centre, a bound of its error, factor) of an end's own ball in the coordinates of X."""
        if end not in self._views:
            problem = self.problem
            ball = end.own(None if problem.prior is None else problem.prior.core)[0]
            center = problem.units.into(problem.from_core(ball.center), METRIC)
            dim, size = self._points.X.shape[1], float(np.linalg.norm(center))
            off = ball.doubt + (0.0 if problem.prior is None else problem.prior.error) + 128 * dim * U * size
            if center.ndim == 1:
                view = np.diag(center), off, np.diag(np.sqrt(np.maximum(center, 0.0)))
            else:
                # A centre is the mean of two elements of the cone, so it is one.
                values, vectors = np.linalg.eigh(center)
                view = center, off, vectors * np.sqrt(np.maximum(values, 0.0))
            self._views[end] = view
            if len(self._views) > _VIEWS:
                self._views.popitem(last=False)
        return self._views[end]


class Interval:
    """What all balls between two ends say, in the coordinates of X."""

    def __init__(self, points, between, views):
        self.points = points
        dim, hair, reach = points.X.shape[1], 1 + 1e-12, float(np.sqrt(between.reach))
        self.centers, offs, self.factors = zip(*views, strict=True)
        offs = [off + 128 * dim * U * reach for off in offs]
        self.trace = max(float(np.vdot(F, F)) for F in self.factors)
        self.relative = (64 * dim + 128) * U  # of |x - y|^2; times the trace, of a distance
        self.error = self.relative * self.trace
        s1, s2 = between.squares
        self.balls = tuple(float(v) for v in (s1 * hair, s2 * hair, between.k + 1e-12 * abs(between.k), *offs))
        self.radius = reach * hair + max(offs)


class Votes:
    """Predictions by the vote of the k nearest points."""

    def __init__(self, points, codes, wanted, n_classes, k):
        self.points, self.codes, self.wanted, self.n_classes, self.k = points, codes, wanted, n_classes, k
        self._stretch = None

    def all_of(self, interval):
        """Return (all queries, and as below the points that may be among the nearest of each)."""
        if self._stretch is None or not self._stretch.holds(interval):
            self._stretch = Stretch(interval, self.k)
        return np.arange(len(self.wanted)), *self._stretch.candidates

    def decide(self, interval, left):
        """Return (outcomes of the queries that are left, what is left of these: their numbers, ptr, candidates)."""
        asked, ptr, candidates = left
        out, counts = np.zeros(len(asked), dtype=np.int8), np.zeros(len(asked), dtype=np.int64)
        if not len(asked):
            return out, left
        points = self.points
        taken = np.zeros(len(points.X), dtype=bool)
        taken[candidates] = True
        numbers = np.flatnonzero(taken)
        places = (np.cumsum(taken) - 1)[candidates]
        X, queries = points.X[numbers], points.queries[asked]
        embedded = [Z @ F for Z in (X, queries) for F in interval.factors]
        kept = np.empty(len(candidates), dtype=np.int64)
        total = certain_votes(
            X, *embedded[:2], queries, *embedded[2:], self.codes[numbers], points.twins[numbers], self.wanted[asked],
            ptr, places, self.k, self.n_classes, interval.balls, interval.radius, interval.trace, interval.relative,
            out, counts, kept,
        )  # fmt: skip
        is_open = out == 0
        return out, (asked[is_open], np.concatenate([[0], np.cumsum(counts[is_open])]), candidates[kept[:total]])


class Comparisons:
    """Is a closer to b than to c?"""

    def __init__(self, points, rows):
        self.points, self.rows = points, rows

    def all_of(self, interval):
        """Return all rows, in a tuple."""
        return (self.rows,)

    def decide(self, interval, left):
        """Return (outcomes of the rows that are left, those of them that are open)."""
        (rows,) = left
        out = np.empty(len(rows), dtype=np.int8)
        embedded = [self.points.X @ F for F in interval.factors]
        certain_comparisons(
            self.points.X, *embedded, rows, self.points.twins, interval.balls, interval.trace, interval.relative, out
        )
        return out, (rows[out == 0],)


class Stretch:
    """Intervals whose metrics are all near one: which points may be the nearest is found once for all of them."""

    def __init__(self, interval, k):
        points, factor = interval.points, interval.factors[0]
        self.center = interval.centers[0]
        self.radius = max(1.1 * self._far(interval), _WIDE * float(np.linalg.norm(self.center)))
        self.error = 4 * interval.error  # of centres that are twice as large
        step = max(1, _BLOCK // len(points.X))
        lengths, moved = np.einsum("ij,ij->i", points.X, points.X), points.X @ factor
        lengths_metric, counts, parts = np.einsum("ij,ij->i", moved, moved), [], []
        room = min(step, len(points.queries)) * len(points.X)
        inner, inner_metric, numbers = np.empty(room), np.empty(room), np.empty(room, np.int32)
        for begin in range(0, len(points.queries), step):
            queries = points.queries[begin : begin + step]
            asking, found = queries @ factor, np.empty(len(queries), np.int64)
            own, own_metric = (np.einsum("ij,ij->i", Z, Z) for Z in (queries, asking))
            shape = len(queries), len(points.X)
            products = [block[: shape[0] * shape[1]].reshape(shape) for block in (inner, inner_metric)]
            np.matmul(queries, points.X.T, out=products[0])
            np.matmul(asking, moved.T, out=products[1])
            total = near_enough(
                *products, lengths, lengths_metric, own, own_metric, self.radius, self.error, k, found, numbers
            )
            counts.append(found)
            parts.append(numbers[:total].copy())
        self.candidates = np.concatenate([[0], np.cumsum(np.concatenate(counts))]), np.concatenate(parts)

    def _far(self, interval):
        """How far a metric of the interval may be from the centre here, apart from its scale: that moves no neighbour.

        If Q1 and Q2 are c1 (Q + E1) and c2 (Q + E2), all between them are c (Q + E) with c and |E| between theirs.
        """
        square = float(np.vdot(self.center, self.center))
        scales = [float(np.vdot(Q, self.center)) / square if square > 0 else 0.0 for Q in interval.centers]
        if not min(scales) > 0:
            return np.inf
        away = [float(np.linalg.norm(Q - c * self.center)) / c for Q, c in zip(interval.centers, scales, strict=True)]
        return (interval.radius / min(scales) + max(away)) * (1 + 1e-12)

    def holds(self, interval):
        """Are all metrics of an interval near by?"""
        return self._far(interval) <= self.radius and interval.error <= self.error
