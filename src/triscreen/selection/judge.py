"""What is decided about held-out predictions for every lambda between two ends.

A `Verdict` is what followed from an `Interval` (`triscreen.selection.stretches`), and which points may still be among
the nearest of the queries that are open. Whatever holds on an interval holds on its parts, so these need to look at
open queries and at such points only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from triscreen._kernels.certain import certain_comparisons, certain_votes, near_enough
from triscreen._utils.archive import fingerprint
from triscreen._utils.threads import single_threaded_blas
from triscreen.path.balls import Between
from triscreen.path.chain import Chain
from triscreen.problem.units import POINT
from triscreen.selection.stretches import Interval, Run, Seen

_BLOCK = 1 << 19  # numbers of a block of queries times points; smaller ones make slow products
# Where more points than this (or so many times the votes) may be among the nearest of a query, they are not kept, but
# looked for again where that may say more: memory stays a few kilobytes a query.
_MOST, _TIMES = 1024, 4
_KEPT = 1 << 25  # numbers of such points, of all intervals that are looked at together


class Points:
    """Points and those that ask for neighbours among them, around the mean, as they are inside; the same ones."""

    def __init__(self, problem, X, queries=None):
        X = problem.units.into(X, POINT)
        middle = X.mean(axis=0)
        self.X, self.queries = X - middle, None if queries is None else problem.units.into(queries, POINT) - middle
        _, self.first, twins = np.unique(X, axis=0, return_index=True, return_inverse=True)
        self.twins = twins.ravel()  # the same number: the same point


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

    @single_threaded_blas()
    def decide(self, first, second, parent=None):
        """Return the `Verdict` for every lambda between two ends; parent: that of an interval around them."""
        between = Between(self.problem, first, second)
        centers = np.array([ball.center for ball in between.balls])
        seen = Seen(self.problem, centers, [ball.doubt for ball in between.balls], between.squares, [between.k])
        return self.look(Interval.between(self._points, seen, 0), parent)

    def fingerprint(self):
        """Return a hash of all that is asked."""
        points = self._points
        own = [] if points.queries is None else [points.queries]
        return fingerprint(points.X, points.twins, *own, *self._subject.arrays())

    def run(self, ends):
        """Return a `Run` of neighbouring ends, whose stretches `look` decides about."""
        chain = Chain(self.problem, ends)
        return Run(self._points, Seen(self.problem, chain.centers, chain.doubts, chain.squares, chain.ks))

    @property
    def at_once(self):
        """So many intervals can `begin` together."""
        return self._subject.at_once

    def begin(self, intervals):
        """Return for each of some intervals, one after the other, a `Verdict` around it that decides nothing."""
        nothing = np.zeros(self._subject.count, dtype=np.int8)
        return [Verdict(nothing, left) for left in self._subject.all_of(intervals)]

    def look(self, interval, parent=None, begun=False):
        """Return the `Verdict` for all metrics of an `Interval`; parent: that of one around it, or what was begun."""
        everything = parent is None or parent.left is None
        left = self._subject.all_of([interval])[0] if everything else parent.left
        found, left = self._subject.decide(interval, left, everything or begun)
        if everything:
            return Verdict(found, left)
        outcomes = parent.outcomes.copy()
        outcomes[outcomes == 0] = found
        return Verdict(outcomes, left)


class Votes:
    """Predictions by the vote of the k nearest points."""

    def __init__(self, points, codes, wanted, n_classes, k):
        self.points, self.codes, self.wanted, self.n_classes, self.k = points, codes, wanted, n_classes, k
        # Points that are the same one after the other: where, and how many of them may be among the k nearest.
        self._order, counts = np.argsort(points.twins, kind="stable"), np.bincount(points.twins)
        self._starts, self._copies = np.cumsum(counts) - counts, np.minimum(counts, k)

    @property
    def count(self):
        """Of predictions."""
        return len(self.wanted)

    def arrays(self):
        """Return what makes these predictions these, beside the points."""
        return self.codes, self.wanted, np.array([self.n_classes, self.k])

    @property
    def _most(self):
        return max(_MOST, _TIMES * self.k)

    @property
    def at_once(self):
        """So many intervals can be begun together."""
        return max(1, _KEPT // (self._most * max(1, self.count)))

    def all_of(self, intervals):
        """Return, for each, (all queries, and as below the points that may be among the nearest of each)."""
        asked = np.arange(self.count)
        return [(asked, *found) for found in self._candidates(intervals, asked)]

    def _candidates(self, intervals, asked):
        """Return (ptr, candidates) for each interval: distinct points with their copies, as many as may count."""
        found = []
        for counts, distinct in _candidates(intervals, asked, self._copies, self.k, self._most):
            lengths = self._copies[distinct]
            ends = np.concatenate([[0], np.cumsum(lengths)])
            places = np.arange(ends[-1]) + np.repeat(self._starts[distinct] - ends[:-1], lengths)
            found.append((ends[np.concatenate([[0], np.cumsum(counts)])], self._order[places]))
        return found

    def _looked_for_again(self, interval, left):
        """Return what is left, with the points of those that had too many in a larger interval."""
        asked, ptr, candidates = left
        lost = np.diff(ptr) == 0
        if not lost.any():
            return left
        (again, more), known = self._candidates([interval], asked[lost])[0], asked[~lost]
        order = np.argsort(np.concatenate([known, asked[lost]]), kind="stable")
        counts = np.concatenate([np.diff(ptr)[~lost], np.diff(again)])[order]
        starts = np.concatenate([ptr[:-1][~lost], len(candidates) + again[:-1]])[order]
        ends = np.concatenate([[0], np.cumsum(counts)])
        places = np.arange(ends[-1]) + np.repeat(starts - ends[:-1], counts)
        return asked, ends, np.concatenate([candidates, more])[places]

    def decide(self, interval, left, own=False):
        """Return (outcomes of the queries that are left, what is left of these: their numbers, ptr, candidates).

        One without candidates had too many of them; own: in this very interval.
        """
        asked, ptr, candidates = left if own else self._looked_for_again(interval, left)
        out, counts = np.zeros(len(asked), dtype=np.int8), np.zeros(len(asked), dtype=np.int64)
        if not len(asked):
            return out, left
        points = self.points
        numbers, places = _renumbered(candidates, len(points.X))
        X, queries = points.X[numbers], points.queries[asked]
        moved = [Z @ Q for Z in (X, queries) for Q in interval.centers]
        kept = np.empty(len(candidates), dtype=np.int64)
        total = certain_votes(
            X, *moved[:2], queries, *moved[2:], self.codes[numbers], points.twins[numbers], self.wanted[asked],
            ptr, places, self.k, self.n_classes, interval.balls, interval.radius, interval.trace, interval.relative,
            self._most, out, counts, kept,
        )  # fmt: skip
        is_open = out == 0
        return out, (asked[is_open], np.concatenate([[0], np.cumsum(counts[is_open])]), candidates[kept[:total]])


class Comparisons:
    """Is a closer to b than to c?"""

    def __init__(self, points, rows):
        self.points, self.rows = points, rows

    at_once = _KEPT

    @property
    def count(self):
        """Of comparisons."""
        return len(self.rows)

    def arrays(self):
        """Return what makes these comparisons these, beside the points."""
        return (self.rows,)

    def all_of(self, intervals):
        """Return all rows, in a tuple, for each."""
        return [(self.rows,)] * len(intervals)

    def decide(self, interval, left, own=False):
        """Return (outcomes of the rows that are left, those of them that are open)."""
        (rows,) = left
        out = np.empty(len(rows), dtype=np.int8)
        moved = [self.points.X @ Q for Q in interval.centers]
        certain_comparisons(
            self.points.X, *moved, rows, self.points.twins, interval.balls, interval.trace, interval.relative, out
        )
        return out, (rows[out == 0],)


def _renumbered(candidates, n):
    """Return (the points that are among these, the place of each candidate in that)."""
    if 8 * len(candidates) < n:
        return np.unique(candidates, return_inverse=True)
    taken = np.zeros(n, dtype=bool)
    taken[candidates] = True
    return np.flatnonzero(taken), (np.cumsum(taken) - 1)[candidates]


def _candidates(intervals, asked, copies, k, most):
    """Return (how many, numbers) of the distinct points that may be among the nearest, for each of some intervals.

    For the queries that are asked; none for those that have more than ``most``.

    These follow one another, so that the second end of each is the first one of the next: products of queries and
    points are made once for each end, in blocks.
    """
    points = intervals[0].points
    X, dim = points.X[points.first], points.X.shape[1]
    n, ends = len(X), [interval.ends[0] for interval in intervals] + [intervals[-1].ends[1]]
    matrices = [np.eye(dim), *ends]
    lengths = [_forms(X, Q) for Q in matrices]
    step = max(1, _BLOCK // n)
    room = min(step, len(asked)) * n
    blocks, numbers = np.empty((3, room)), np.empty(room, np.int32)
    counts, parts = [[] for _ in intervals], [[] for _ in intervals]
    for begin in range(0, len(asked), step):
        queries = points.queries[asked[begin : begin + step]]
        plain, first, second = blocks[:, : len(queries) * n].reshape(3, len(queries), n)
        own = [_forms(queries, Q) for Q in matrices]
        np.matmul(queries, X.T, out=plain)
        np.matmul(queries @ ends[0], X.T, out=first)
        for number, interval in enumerate(intervals):
            np.matmul(queries @ ends[number + 1], X.T, out=second)
            found, where = np.empty(len(queries), np.int64), (0, number + 1, number + 2)
            total = near_enough(
                plain, first, second, *(lengths[i] for i in where), *(own[i] for i in where), interval.scale, copies,
                interval.radius, interval.error, k, most, found, numbers,
            )  # fmt: skip
            counts[number].append(found)
            parts[number].append(numbers[:total].copy())
            first, second = second, first
    return [(np.concatenate(count), np.concatenate(part)) for count, part in zip(counts, parts, strict=True)]


def _forms(X, Q):
    """Return x'Qx of every row."""
    return np.einsum("ij,ij->i", X @ Q, X)
