"""Blocks of positives times negatives over listed pairs: triplets are implied, and counted one by one."""

from __future__ import annotations

import math

import numpy as np

from triscreen._kernels.blocks import (
    block_hull,
    block_indices,
    block_pairs,
    corner_blocks,
    departing_blocks,
    hessian_blocks,
    kept_blocks,
    largest_margin_blocks,
    leaving_blocks,
    narrow_blocks,
    quadratic_blocks,
    sphere_blocks,
    sweep_blocks,
    undecided_blocks,
)
from triscreen._kernels.long_blocks import narrow_order, sweep_long_blocks
from triscreen._utils.lazy import cached_property
from triscreen._utils.threads import Threads, chunk_bounds, count_chunks
from triscreen.errors import InputError
from triscreen.triplets.base import Departure, Sums, add_up
from triscreen.triplets.listed import ListedTriplets
from triscreen.triplets.pairs import ListedPairs

# Triplets for each pair from which on sweeps go by order.
_LONG = 14
_IN_ORDER = 16  # elementary operations a pair then, about


class BlockTriplets(ListedPairs):
    """Blocks of positives times negatives, one per anchor: 0 bytes per triplet; make one with `knn_triplets`.

    The triplets are counted anchor by anchor, positive by positive, negative by negative.
    """

    _lengths = None  # made when first needed

    def __init__(self, second, n_positive, n_negative):
        """For each point its positives, then its negatives, all in one array; neither for a point that is no anchor."""
        n_points = len(n_positive)
        counts = n_positive + n_negative
        first = np.repeat(np.arange(n_points, dtype=np.int32), counts)
        self._set_pairs(n_points, first, second, np.concatenate([[0], np.cumsum(counts)]))
        self._split = self._ptr[:-1] + n_positive
        self._count = np.concatenate([[0], np.cumsum(n_positive * n_negative)])
        self.n_triplets = int(self._count[-1])
        self.total_weight = float(self.n_triplets)
        self._orders = []  # of long blocks: places by distance at the last sweep, one for each thread that sweeps

    def identity(self):
        """Return (kind, arrays); see `TripletSet.identity`."""
        return "blocks", (self.second, self._ptr, self._split)

    def identity_1(self):
        """Return the arrays of format 1; see `TripletSet.identity_1`."""
        return *self._by_second, self._count, self._ptr, self._split, self.first, self.second

    def check_points(self, n_points):
        """Refuse X with another number of points than the triplets were made from."""
        if n_points != self.n_points:
            raise InputError(f"X has {n_points} points: these triplets were made from {self.n_points} points")

    def local_indices(self, start=0, stop=None):
        """Return the triplets start <= t < stop as rows (i, j, l)."""
        start, stop, _ = slice(start, stop).indices(self.n_triplets)
        out = np.empty((max(0, stop - start), 3), dtype=np.int32)
        if len(out):
            anchor = int(np.searchsorted(self._count, start, side="right")) - 1
            block_indices(self._ptr, self._split, self.second, anchor, start - self._count[anchor], out)
        return out

    def sweep(self, dist, smoothing, threads):
        """Return (Sums, pair weights) for alpha = clip((1 - margin) / smoothing, 0, 1)."""
        if self._is_long:
            return self._sweep_in_order(dist, smoothing, threads)
        bounds = self._chunks
        pair_weights, sums = np.empty(self.n_pairs), np.zeros((len(bounds) - 1, 2, 3))

        def task(c):
            sweep_blocks(dist, self._ptr, self._split, smoothing, pair_weights, sums[c], bounds[c], bounds[c + 1])

        threads.run("sweep", task, len(sums))
        return Sums(smoothing, *add_up(sums)), pair_weights

    def _sweep_in_order(self, dist, smoothing, threads):
        bounds = self._point_bounds(_IN_ORDER)
        pair_weights, sums, order = np.empty(self.n_pairs), np.zeros((len(bounds) - 1, 2, 3)), self._take_order()

        def task(c):
            sweep_long_blocks(
                dist, self._ptr, self._split, order, smoothing, pair_weights, sums[c], bounds[c], bounds[c + 1]
            )

        threads.run("sweep", task, len(sums))
        self._orders.append(order)
        return Sums(smoothing, *add_up(sums)), pair_weights

    def _take_order(self):
        """Return places by distance, as far as they are known: nobody else has them meanwhile."""
        try:
            return self._orders.pop()
        except IndexError:
            begin = np.where(self._is_positive, self._ptr[self.first], self._split[self.first])
            return (np.arange(self.n_pairs) - begin).astype(np.int32)

    @cached_property
    def _is_long(self):
        """Have anchors so many more triplets than pairs that these had better be put in order?"""
        return self.n_triplets > _LONG * self.n_pairs

    @property
    def _is_positive(self):
        return np.arange(self.n_pairs) < self._split[self.first]

    @cached_property
    def _list(self):
        """The same triplets as a list, 8 bytes each: for what takes alphas one by one anyway."""
        positive, negative = self.pair_numbers(np.ones(self.n_triplets, dtype=bool))
        return ListedTriplets(self.n_points, self.first, self.second, positive, negative, np.empty(0))

    def sweep_alpha(self, dist, alpha, gamma, threads):
        """Return ((loss, dual sum, slack), pair weights) for alphas given one by one."""
        return self._list.sweep_alpha(dist, alpha, gamma, threads)

    def ascend(self, dist, alpha, previous, gamma, curvature, momentum, threads):
        """Take a step of dual ascent; see `TripletSet.ascend`."""
        return self._list.ascend(dist, alpha, previous, gamma, curvature, momentum, threads)

    def pair_numbers(self, keep):
        """Return (positive, negative) pair numbers of the triplets that the mask keeps."""
        positive, negative = np.empty((2, np.count_nonzero(keep)), dtype=np.int32)
        block_pairs(self._ptr, self._split, keep, positive, negative)
        return positive, negative

    def undecided_in(self, ends, squares, radius, error, low, both, zones, threads):
        """Select the pairs of triplets that are not proven to keep their zone; see `TripletSet.undecided_in`."""
        used = np.empty(self.n_pairs, dtype=bool)
        zones = np.empty(0, dtype=np.int8) if zones is None else zones
        bounds = self._chunks

        def task(c):
            start, stop = bounds[c], bounds[c + 1]
            undecided_blocks(
                *ends, squares, self._ptr, self._split, radius, error, low, both, zones, self._count[start], used,
                start, stop,
            )  # fmt: skip

        threads.run("undecided", task, len(bounds) - 1)
        return used

    def quadratic(self, dist, smoothing):
        """Select the pairs of the triplets in the quadratic part of the loss."""
        used = np.empty(self.n_pairs, dtype=bool)
        return used, quadratic_blocks(dist, self._ptr, self._split, smoothing, used)

    def hessian_weights(self, dist, change, smoothing, threads):
        """Return the pair weights of the loss's Hessian times a step."""
        pair_weights = np.empty(self.n_pairs)
        bounds = self._chunks

        def task(c):
            hessian_blocks(dist, change, self._ptr, self._split, smoothing, pair_weights, bounds[c], bounds[c + 1])

        threads.run("hessian", task, len(bounds) - 1)
        return pair_weights

    def restrict(self, selection):
        """Return (the blocks of the selected pairs over the points they need, the numbers of these pairs)."""
        here, sizes = np.empty(self.n_points, dtype=bool), np.empty((self.n_points, 2), dtype=np.int64)
        # One more: the first pair after the last one is written, too, and not counted.
        pairs, second = np.empty(self.n_pairs + 1, dtype=np.int64), np.empty(self.n_pairs + 1, dtype=np.int32)
        count = narrow_blocks(self._ptr, self._split, self.second, selection, pairs, second, sizes, here)
        points, pairs = np.flatnonzero(here), pairs[:count].copy()
        place = np.cumsum(here, dtype=np.int32) - 1
        made = self._like(place[second[:count]], *sizes[points].T, points)
        made = self._share_pairs(self._share_points(made, points), pairs, points)
        if self._lengths is not None:
            made._lengths = self._lengths[pairs]
        if self._orders and made._is_long:
            order, narrow = self._take_order(), np.empty(count, dtype=np.int32)
            narrow_order(self._ptr, self._split, order, selection, narrow)
            self._orders.append(order)
            made._orders.append(narrow)
        return made, pairs

    def _like(self, second, n_positive, n_negative, points):
        """Return blocks of this kind over some of the points."""
        return BlockTriplets(second, n_positive, n_negative)

    def let_go(self, zones, dist, smoothing, whole=None, threads=None):
        """Let decided triplets go; those of two pairs that others need stay, they cost next to nothing there."""
        used = np.empty(self.n_pairs, dtype=bool)
        whole = np.zeros(self.n_pairs, dtype=np.int8) if whole is None else whole
        bounds = self._chunks
        counts = np.zeros((len(bounds) - 1, 2), dtype=np.int64)
        arguments = (dist, self._ptr, self._split, zones, whole, smoothing, used)

        def task(c):
            start, stop = bounds[c], bounds[c + 1]
            leaving_blocks(*arguments, counts[c], start, stop, self._count[start])

        (threads or Threads(1)).run("let go", task, len(counts))
        linear, off = counts.sum(axis=0)
        smaller, pairs = self.restrict(used)

        def look():
            """Return (pair weights of what goes, whether any of it strays), each triplet looked at once more."""
            weights = np.empty(self.n_pairs)
            off = departing_blocks(dist, self._ptr, self._split, zones, smoothing, used, weights)
            return weights, bool(off)

        def numbers():
            found = np.empty(smaller.n_triplets, dtype=np.int64)
            block_hull(self._ptr, self._split, used, found)
            return found

        def kept(zones, norms):
            found = np.empty(smaller.n_triplets, dtype=np.int8), np.empty(smaller.n_triplets)
            kept_blocks(self._ptr, self._split, used, zones, norms, *found)
            return found

        return Departure(smaller, pairs, lambda: look()[0], float(linear), bool(off) and look()[1], numbers, kept)

    def corner_change(self, dist, other, gamma, threads):
        """Return how much the alphas change that are within (0, 1) at both ends; see `TripletSet.corner_change`."""
        bounds = self._chunks
        parts = np.zeros(len(bounds) - 1)

        def task(c):
            parts[c] = corner_blocks(dist, other, self._ptr, self._split, gamma, bounds[c], bounds[c + 1])

        threads.run("corner", task, len(parts))
        return math.fsum(parts)

    def cross_slack(self, dist, smoothing, other, gamma, threads):
        """Return the slack at the margins of other of the alphas from the margins of dist."""
        return self._list.cross_slack(dist, smoothing, other, gamma, threads)

    def most_triplets_at_a_pair(self):
        """Return an upper bound of the number of triplets that one pair belongs to."""
        return int(max((self._split - self._ptr[:-1]).max(initial=0), (self._ptr[1:] - self._split).max(initial=0)))

    def decide(self, values, errors, norms, radius, zones, gamma, threads, whole=None):
        """Apply the sphere rule to the triplets without a zone; see `TripletSet.decide`."""
        bounds = self._chunks
        counts = np.zeros((len(bounds) - 1, 2), dtype=np.int64)
        whole = np.empty(self.n_pairs, dtype=np.int8) if whole is None else whole
        if self._lengths is None:
            # A hair more than |delta|^2; what is wrong with the points themselves is in the errors.
            self._lengths = self.euclid(threads) * (1 + 1e-12)
        arguments = (values, errors, self._lengths, self._ptr, self._split, norms, radius, gamma, zones, whole)

        def task(c):
            start, stop = bounds[c], bounds[c + 1]
            sphere_blocks(*arguments, counts[c], start, stop, self._count[start])

        threads.run("decide", task, len(counts))
        return counts.sum(axis=0)

    def largest_margin(self, dist):
        """Return the largest margin over the triplets."""
        return float(largest_margin_blocks(dist, self._ptr, self._split))

    @cached_property
    def _chunks(self):
        """Bounds of chunks of anchors with nearly equal numbers of triplets."""
        chunks = count_chunks(self.n_points, 2 * (self.n_triplets + self.n_pairs) / max(1, self.n_points))
        bounds = np.searchsorted(self._count, chunk_bounds(self.n_triplets, chunks), side="left").tolist()
        bounds[0], bounds[-1] = 0, self.n_points
        return bounds
