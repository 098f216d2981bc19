"""Blocks of positives times negatives over listed pairs, worked on by order: O(pairs), however many triplets."""

from __future__ import annotations

import numpy as np

from triscreen._kernels.ordered import decide_ordered, hessian_ordered, sweep_ordered
from triscreen._utils.lazy import cached_property
from triscreen._utils.threads import chunk_bounds, count_chunks
from triscreen.triplets._all_distances import grain_of
from triscreen.triplets.base import Reduction, Sums, add_up
from triscreen.triplets.blocks import BlockTriplets
from triscreen.triplets.never_listed import NeverListed

_WORK = 60  # elementary operations a pair, about


class OrderedTriplets(NeverListed, BlockTriplets):
    """What is left of all triplets once pairs have gone: 12 bytes a pair, 0 a triplet.

    Parameters
    ----------
    second, n_positive, n_negative : arrays
        As for `BlockTriplets`.
    anchor_weights : array
        One per point: the weight of each triplet that it is the anchor of.
    """

    def __init__(self, second, n_positive, n_negative, anchor_weights):
        super().__init__(second, n_positive, n_negative)
        self.anchor_weights = anchor_weights
        self.total_weight = float(anchor_weights @ (n_positive.astype(float) * n_negative))
        self._most = int(np.diff(self._ptr).max(initial=0))

    def identity(self):
        """Return (kind, arrays); see `TripletSet.identity`."""
        return "ordered blocks", (*super().identity()[1], self.anchor_weights)

    def identity_1(self):
        """Return the arrays of format 1; see `TripletSet.identity_1`."""
        *blocks, first, second = super().identity_1()
        return (*blocks, self.anchor_weights, first, second)

    def weights_of(self, start=0, stop=None):
        """Return the weights of the triplets start <= t < stop: those of their anchors."""
        return self.anchor_weights[self.local_indices(start, stop)[:, 0]]

    def sweep(self, dist, smoothing, threads, grains=None):
        """Return (Sums, pair weights) for alpha = clip((1 - margin) / smoothing, 0, 1)."""
        pair_weights = np.empty(self.n_pairs)
        bounds = self._chunks
        sums = np.zeros((len(bounds) - 1, 2, 3))
        grains = grains or self._grains(dist, smoothing)
        arguments = (dist, self._ptr, self._split, self.anchor_weights, *grains)

        def task(c):
            sweep_ordered(*arguments, pair_weights, sums[c], bounds[c], bounds[c + 1])

        threads.run("sweep", task, len(sums))
        return Sums(smoothing, *add_up(sums)), pair_weights

    def hessian_weights(self, dist, change, smoothing, threads):
        """Return the pair weights of the loss's Hessian times a step."""
        pair_weights = np.empty(self.n_pairs)
        bounds = self._chunks
        arguments = (dist, change, self._ptr, self._split, self.anchor_weights, *self._grains(dist, smoothing))

        def task(c):
            hessian_ordered(*arguments, pair_weights, bounds[c], bounds[c + 1])

        threads.run("hessian", task, len(bounds) - 1)
        return pair_weights

    def reduce(self, ends, radii, error, offset, low, both, smoothing, threads, most=1.0):
        """Let go what is decided in two balls at once; see `NeverListed.reduce`."""
        used = np.empty(self.n_pairs, dtype=bool)
        bounds = self._chunks
        counts = np.zeros((len(bounds) - 1, 2), dtype=np.int64)
        lengths = ends[0] if max(radii) == 0 else self.euclid(threads) * (1 + 1e-12) + offset
        grains = self._grains(ends[0], smoothing)
        arguments = (*ends, lengths, np.array(radii), error, low, both, grains[2], self._ptr, self._split, used)

        def task(c):
            decide_ordered(*arguments, counts[c], bounds[c], bounds[c + 1])

        threads.run("decide", task, len(counts))
        counts = tuple(int(count) for count in counts.sum(axis=0))
        if np.count_nonzero(used) > most * self.n_pairs:
            return Reduction(counts)
        # What goes is all that there is, less what stays.
        less, pairs = self.restrict(used)
        sums, weights = self.sweep(ends[0], smoothing, threads, grains)
        staying, part = less.sweep(ends[0][pairs], smoothing, threads, grains)
        weights[pairs] -= part
        return Reduction(counts, less, pairs, weights, sums.alpha - staying.alpha, sums.alpha + staying.alpha)

    def quadratic_part(self, dist, smoothing, threads):
        """Return (a set with all quadratic triplets, its pairs, the number of these triplets)."""
        part = self.reduce((dist, dist), (0.0, 0.0), 0.0, 0.0, 1 - smoothing, True, smoothing, threads)
        return part.triplets, part.pairs, self.n_triplets - sum(part.counts)

    def _like(self, second, n_positive, n_negative, points):
        return OrderedTriplets(second, n_positive, n_negative, self.anchor_weights[points])

    def quantum(self, largest, gamma):
        """Bound on what rounding to whole grains does to a margin."""
        return 2 * grain_of(largest, max(1.0, gamma), self._most)[0]

    def _grains(self, dist, smoothing):
        grain, one, width = grain_of(float(np.abs(dist).max(initial=0.0)), smoothing, self._most)
        return one, width, grain, smoothing

    @cached_property
    def _chunks(self):
        """Bounds of chunks of anchors with nearly equal numbers of pairs."""
        chunks = count_chunks(self.n_points, _WORK * self.n_pairs / max(1, self.n_points))
        bounds = np.searchsorted(self._ptr, chunk_bounds(self.n_pairs, chunks), side="left")
        bounds[0], bounds[-1] = 0, self.n_points
        return bounds
