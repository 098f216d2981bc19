"""Sets of triplets that points (or single comparisons) leave, one at a time: what changes, without making them anew.

Where a point leaves the k nearest of another one, the next neighbour moves up: lists have one neighbour more than the
set takes. Of comparisons that were given, those with the point are gone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from triscreen._kernels.leaving import alphas_listed, base_blocks, leave_blocks, leave_listed
from triscreen._utils.lazy import cached_property
from triscreen.errors import InputError
from triscreen.triplets.base import Sums
from triscreen.triplets.blocks import BlockTriplets
from triscreen.triplets.given import GivenTriplets
from triscreen.triplets.knn import in_blocks
from triscreen.triplets.listed import ListedTriplets
from triscreen.triplets.neighbours import nearest

_LIST = 1 << 31  # more neighbours than there are


@dataclass(frozen=True)
class Change:
    """What units take with them: arrays with an entry for each; see `triscreen._kernels.leaving`.

    Attributes
    ----------
    A : array
        Elements of the cone: A of what leaves, less A of what comes.
    size, n_pairs : arrays
        What the rounding of A follows, and the number of pairs that went into it.
    spread : array
        Sum of w a (1 - a) of what comes.
    alpha : array
        Sum of w a of what leaves, less that of what comes.
    """

    A: np.ndarray
    size: np.ndarray
    spread: np.ndarray
    n_pairs: np.ndarray
    alpha: np.ndarray


class _Leaving:
    """What both kinds share.

    Attributes
    ----------
    triplets : TripletSet
        With its points: all pairs that any of the smaller sets has.
    n_units : int
        How many may leave, one at a time.
    """

    def changes(self, units, dist, smoothing, flat):
        """Return the `Change` of some units, with the alphas of these distances; flat: of the diagonal cone."""
        dim = self.triplets.dim
        out, facts = np.empty((len(units), 1 if flat else dim, dim)), np.empty((len(units), 4))
        self._leave(np.asarray(units, dtype=np.int64), dist, flat, smoothing, out, facts)
        return Change(out[:, 0] if flat else out, *facts.T)

    @cached_property
    def _sizes(self):
        return np.sqrt(np.einsum("ij,ij->i", self.triplets.points, self.triplets.points))


class LeavingPoints(_Leaving):
    """Points leave a set of blocks.

    Parameters
    ----------
    triplets : BlockTriplets
        With its points; of each kind the first ``k`` of a list are in the set, the next one would move up.
    k : int or None
        None: all of them are.
    """

    def __init__(self, triplets, k=None):
        self.triplets, self._k = triplets, k or _LIST
        self.n_units = triplets.n_points

    def base(self, dist, smoothing):
        """Return (Sums, weights of all pairs) before anyone leaves."""
        T = self.triplets
        weights, sums = np.empty(T.n_pairs), np.empty((T.n_points, 3))
        base_blocks(dist, T._ptr, T._split, self._k, smoothing, weights, sums)
        return Sums(smoothing, *(math.fsum(column) for column in sums.T)), weights

    def _leave(self, units, dist, flat, smoothing, out, facts):
        T = self.triplets
        leave_blocks(
            T.points, self._sizes, T._ptr, T._split, T.first, T.second, *T._by_second, self._k, units, dist, flat,
            smoothing, out, facts,
        )  # fmt: skip

    @cached_property
    def _taken(self):
        """The pairs that are in the set before anyone leaves."""
        T = self.triplets
        begin = np.where(T._is_positive, T._ptr[T.first], T._split[T.first])
        return np.arange(T.n_pairs) - begin < self._k

    @cached_property
    def whole(self):
        """(The set before anyone leaves, the numbers of its pairs)."""
        T, positive, taken = self.triplets, self.triplets._is_positive, self._taken
        counts = (np.bincount(T.first[taken & kind], minlength=T.n_points) for kind in (positive, ~positive))
        return BlockTriplets(T.second[taken], *counts).over(T.points), np.flatnonzero(taken)

    def select(self, selection):
        """Return pairs of the set before anyone leaves, a mask, as a selection that `part` takes."""
        mask = np.zeros(self.triplets.n_pairs, dtype=bool)
        mask[self.whole[1]] = selection
        return mask

    def part(self, selection, unit):
        """Return (what is selected of the set without a unit, and all that its leaving changes; its pairs)."""
        T, mask = self.triplets, selection.copy()
        numbers, ptr = T._by_second
        touched = numbers[ptr[unit] : ptr[unit + 1]]
        for pair in touched[self._taken[touched]]:
            anchor = T.first[pair]
            for begin, end in ((T._ptr[anchor], T._split[anchor]), (T._split[anchor], T._ptr[anchor + 1])):
                mask[begin : min(end, begin + self._k + (begin <= pair < end))] = True
            mask[pair] = False
        mask[T._ptr[unit] : T._ptr[unit + 1]] = False
        return T.restrict(mask)

    def without(self, unit):
        """Return the triplets that are left without a point, over the same points; None: there are none."""
        T, positive = self.triplets, self.triplets._is_positive
        there = (T.second != unit) & (T.first != unit)
        before = np.cumsum(there) - there
        begin = np.where(positive, T._ptr[T.first], T._split[T.first])
        keep = there & (before - before[begin] < self._k)
        counts = np.stack([np.bincount(T.first[keep & kind], minlength=T.n_points) for kind in (positive, ~positive)])
        anchors = counts.all(axis=0)
        if not anchors.any():
            return None
        return BlockTriplets(T.second[keep & anchors[T.first]], *(counts * anchors))


class LeavingComparisons(_Leaving):
    """Listed triplets leave, one by one, or all that have a point.

    Parameters
    ----------
    triplets : ListedTriplets
        With its points.
    by_point : int or None
        Points that X has: each of them takes its triplets along; None: every triplet leaves alone.
    """

    def __init__(self, triplets, by_point=None):
        self.triplets = triplets
        if by_point is None:
            self.n_units = triplets.n_triplets
            self._ptr = self._members = np.arange(triplets.n_triplets + 1)
            return
        self.n_units = by_point
        rows = triplets.indices()
        points = np.concatenate(rows.T)
        members = np.tile(np.arange(len(rows)), 3)
        once = np.concatenate([np.ones(2 * len(rows), dtype=bool), rows[:, 2] != rows[:, 1]])
        points, members = points[once], members[once]
        order = np.lexsort((members, points))
        self._members = members[order]
        self._ptr = np.searchsorted(points[order], np.arange(by_point + 1))

    def base(self, dist, smoothing):
        """Return (Sums, weights of all pairs) before anyone leaves."""
        T = self.triplets
        a = np.empty(T.n_triplets)
        alphas_listed(dist, T._positive, T._negative, smoothing, a)
        w = np.ones(T.n_triplets) if T.weights is None else T.weights
        b = 1.0 - (dist[T._negative] - dist[T._positive])
        sums = (math.fsum(w * part) for part in (a * b - 0.5 * smoothing * a * a, a, a * (1.0 - a)))
        weights = np.bincount(T._negative, w * a, T.n_pairs) - np.bincount(T._positive, w * a, T.n_pairs)
        return Sums(smoothing, *sums), weights

    def _leave(self, units, dist, flat, smoothing, out, facts):
        T = self.triplets
        leave_listed(
            T.points, self._sizes, T.first, T.second, T._positive, T._negative, T._weights, self._ptr, self._members,
            units, dist, flat, smoothing, out, facts,
        )  # fmt: skip

    @property
    def whole(self):
        """(The set before anyone leaves, the numbers of its pairs)."""
        return self.triplets, slice(None)

    def select(self, selection):
        """Return triplets of the set before anyone leaves, a mask, as a selection that `part` takes."""
        return selection

    def part(self, selection, unit):
        """Return (what is selected of the set without a unit, its pairs)."""
        mask = selection.copy()
        mask[self._members[self._ptr[unit] : self._ptr[unit + 1]]] = False
        return self.triplets.restrict(mask)

    def without(self, unit):
        """Return the triplets that are left without a unit; None: there are none."""
        T = self.triplets
        gone = self._members[self._ptr[unit] : self._ptr[unit + 1]]
        if len(gone) == T.n_triplets:
            return None
        left = np.delete(np.arange(T.n_triplets), gone)
        return GivenTriplets(T.indices().astype(np.int64)[left], None if T.weights is None else T.weights[left])


def leaving_points(triplets, X, codes, threads):
    """Return what leaves a problem's triplets with each point of X, neighbours chosen anew; or refuse the set."""
    if isinstance(triplets, ListedTriplets):
        return LeavingComparisons(triplets, len(X))
    _refuse_never_listed(triplets, "leave_one_out")
    T = triplets
    k = int(max((T._split - T._ptr[:-1]).max(), (T._ptr[1:] - T._split).max()))
    same, other = nearest(X, codes, k + 1, threads)
    other[np.bincount(codes)[codes] == 1] = -1
    wide = in_blocks(same, other)
    first_ones = in_blocks(same[:, :k], other[:, :k])
    if not all(map(np.array_equal, _pairs(T), _pairs(first_ones))):
        raise InputError(
            f"the path's triplets are not those of ts.knn_triplets(X, y, k={k}): leave_one_out chooses neighbours "
            "anew, so X and y must be those that the triplets were made from, without neighbors="
        )
    return LeavingPoints(wide.over(T.points), k)


def leaving_each(triplets):
    """Return what leaves a problem's triplets with each point (of comparisons: with each of these); or refuse them."""
    if isinstance(triplets, ListedTriplets):
        return LeavingComparisons(triplets)
    _refuse_never_listed(triplets, "influence")
    return LeavingPoints(triplets)


def _refuse_never_listed(triplets, verb):
    if not triplets.lists_triplets:
        raise InputError(
            f"the path's triplets are {type(triplets).__name__}, never listed: {verb} needs those of ts.knn_triplets "
            "or ts.given_triplets"
        )


def _pairs(triplets):
    """Return the numbers of positives and negatives of each point, and all pairs in one order."""
    T = triplets
    order = np.lexsort((T.second, ~T._is_positive, T.first))
    return T._ptr, T._split, T.second[order]
