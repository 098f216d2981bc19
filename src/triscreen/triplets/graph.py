"""Graphs of neighbours that somebody else has made: from arrays and sparse matrices to positives and negatives."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from triscreen._utils.validation import shortened
from triscreen.errors import InputError, NoAnchorWarning

_ADVICE = "scikit-learn's searches cut rows only, TripletMetricCV takes the part of each fold itself"


class Lists(NamedTuple):
    """Of every point a list of others, the nearest first: of point i these are others[ptr[i] : ptr[i + 1]]."""

    ptr: np.ndarray
    others: np.ndarray

    @classmethod
    def of(cls, rows, others, n):
        """Make lists of entries (row, other), sorted by row."""
        return cls(np.searchsorted(rows, np.arange(n + 1)), others.astype(np.int32, copy=False))

    @classmethod
    def of_table(cls, table):
        """Make lists of a table: a row a point, -1 where it ends."""
        there = table >= 0
        return cls(np.concatenate([[0], np.cumsum(there.sum(axis=1))]), table[there])

    def rows(self):
        """Return the point that each entry belongs to."""
        return np.repeat(np.arange(len(self.ptr) - 1, dtype=np.int32), np.diff(self.ptr))

    def part(self, points):
        """Return the lists of some of the points, among these, by their new numbers."""
        place = np.full(len(self.ptr) - 1, -1, dtype=np.int32)
        place[points] = np.arange(len(points))
        lengths = np.diff(self.ptr)[points]
        rows, before = np.repeat(np.arange(len(points)), lengths), np.cumsum(lengths) - lengths
        others = place[self.others[np.arange(len(rows)) + (self.ptr[points] - before)[rows]]]
        return Lists.of(rows[others >= 0], others[others >= 0], len(points))

    def table(self, k=None, width=None):
        """Return the first k of every list, a row a point, -1 where it ends; k None: all.

        It is as wide as the longest of them, or as asked for.
        """
        rows = self.rows()
        rank = np.arange(len(rows)) - self.ptr[rows]
        longest = int(np.diff(self.ptr).max(initial=0))
        keep = slice(None) if k is None or k >= longest else rank < k
        width = min(longest, k or longest) if width is None else width
        table = np.full((len(self.ptr) - 1, width), -1, dtype=np.int32)
        table[rows[keep], rank[keep]] = self.others[keep]
        return table


@dataclass(frozen=True)
class Given:
    """Positives and negatives of every point as they were given."""

    same: Lists
    other: Lists

    @classmethod
    def of(cls, neighbors, codes):
        """Take neighbours apart by the classes ``codes`` of points, or refuse what is wrong with them."""
        n = len(codes)
        if not _is_pair(neighbors):
            rows, others = _entries(neighbors, n, "neighbors")
            same = codes[rows] == codes[others]
            return cls(*(Lists.of(rows[kind], others[kind], n) for kind in (same, ~same)))
        made = []
        for place, wanted in enumerate((True, False)):
            rows, others = _entries(neighbors[place], n, f"neighbors[{place}]")
            wrong = (codes[rows] == codes[others]) != wanted
            if wrong.any():
                t = int(np.argmax(wrong))
                raise InputError(
                    f"neighbors[{place}] has point {others[t]} for point {rows[t]}: "
                    + ("positives must be of the point's own class" if wanted else "negatives must be of other classes")
                )
            made.append(Lists.of(rows, others, n))
        return cls(*made)

    def part(self, points):
        """Return the neighbours of some of the points among these."""
        return Given(self.same.part(points), self.other.part(points))

    def tables(self, k, every_negative=False):
        """Return (positives, negatives), at most k a point (None: all); neither for points that are no anchors.

        every_negative: a point needs no negatives of its own to be one.
        """
        same, other = self.same.table(k), self.other.table(k)
        idle = ~(same >= 0).any(axis=1)
        if not every_negative:
            idle |= ~(other >= 0).any(axis=1)
        missing = "positive" if every_negative else "positive or no negative"
        if idle.all():
            raise InputError(f"neighbors gives no triplet: every point has no {missing} there")
        if idle.any():
            warnings.warn(
                f"neighbors: {np.count_nonzero(idle)} of {len(idle)} points have no {missing} there, and are no "
                "anchors",
                NoAnchorWarning,
                stacklevel=3,
            )
        same[idle] = other[idle] = -1
        return same, other


@dataclass(frozen=True)
class Found:
    """Positives and negatives (None: not asked for) as our own search has found them: none is missing."""

    same: np.ndarray
    other: np.ndarray | None


def as_given(neighbors, codes):
    """Return neighbours as `Given`; `Given` and `Found` stay what they are."""
    return neighbors if isinstance(neighbors, Given | Found) else Given.of(neighbors, codes)


def _is_pair(neighbors):
    """Tell (positives, negatives) from one array: each of the two has two dimensions of its own."""
    if not isinstance(neighbors, tuple | list) or len(neighbors) != 2:
        return False
    return all(_is_sparse(part) or getattr(part, "ndim", None) == 2 or _is_nested(part) for part in neighbors)


def _is_nested(part):
    return isinstance(part, list | tuple) and len(part) > 0 and all(isinstance(row, list | tuple) for row in part)


def _is_sparse(graph):
    return hasattr(type(graph), "tocsr")


def _entries(graph, n, name):
    """Return (rows, others), row by row in the order given, without points that are their own neighbours."""
    rows, others = _of_graph(graph, n, name) if _is_sparse(graph) else _of_array(graph, n, name)
    keep = rows != others
    rows, others = rows[keep], others[keep]
    _refuse_twice(rows, others, n, name)
    return rows, others


def _of_array(array, n, name):
    try:
        array = np.asarray(array)
    except ValueError as err:
        raise InputError(f"{name} is no rectangular array ({err}): let rows end with -1") from None
    if array.ndim != 2 or len(array) != n:
        raise InputError(
            f"{name} has shape {array.shape}: it must be (n, m) numbers of points, a row for each of the {n} points "
            f"({_ADVICE})"
        )
    if array.dtype.kind not in "iu":
        raise InputError(
            f"{name} has dtype {array.dtype}: it must hold whole numbers of points, or be a scipy.sparse graph of "
            "distances"
        )
    bad = (array < -1) | (array >= n)
    if bad.any():
        row, col = (int(place[0]) for place in np.nonzero(bad))
        raise InputError(
            f"{name}[{row}, {col}] is {array[row, col]}: numbers must lie between 0 and {n - 1}, and -1 ends a row "
            f"({_ADVICE})"
        )
    there = np.logical_and.accumulate(array >= 0, axis=1)
    rows = np.repeat(np.arange(n, dtype=np.int32), there.sum(axis=1))
    return rows, array[there].astype(np.int32, copy=False)


def _of_graph(graph, n, name):
    """Take a sparse matrix of distances: a row by rising distance, equal ones as they are stored."""
    if graph.shape != (n, n):
        raise InputError(f"{name} has shape {graph.shape}: a graph of {n} points has shape ({n}, {n}) ({_ADVICE})")
    graph = graph.tocsr()
    distances, others = graph.data, graph.indices
    if distances.dtype.kind not in "biuf":
        raise InputError(f"{name} has dtype {distances.dtype}: its entries must be distances, real numbers")
    rows = np.repeat(np.arange(n, dtype=np.int32), np.diff(graph.indptr))
    bad = ~(np.isfinite(distances) & (distances >= 0))
    if bad.any():
        t = int(np.argmax(bad))
        raise InputError(
            f"{name}[{rows[t]}, {others[t]}] is {distances[t]}: its entries must be distances, finite and not negative"
        )
    if len(others) and not (others.min() >= 0 and others.max() < n):
        raise InputError(f"{name} is a damaged sparse matrix: it has entries outside of its shape {graph.shape}")
    if ((np.diff(distances) < 0) & (np.diff(rows) == 0)).any():
        others = others[np.lexsort((distances, rows))]
    return rows, others.astype(np.int32, copy=False)


def _refuse_twice(rows, others, n, name):
    order = np.lexsort((others, rows))
    again = (np.diff(others[order]) == 0) & (np.diff(rows[order]) == 0)
    if again.any():
        t = order[int(np.argmax(again))]
        raise InputError(
            f"{name} has point {shortened(int(others[t]))} twice for point {rows[t]}: a neighbour is named once"
        )
