"""Triplets as a list of two pair numbers each: those a user gives, and those that screening leaves."""

from __future__ import annotations

import math

import numpy as np

from triscreen._kernels.common import LINEAR, UNDECIDED
from triscreen._kernels.listed import (
    alpha_list,
    ascend_list,
    corner_list,
    cross_list,
    hessian_list,
    off_zone_list,
    quadratic_list,
    sphere_list,
    sweep_list,
    undecided_list,
)
from triscreen._utils.threads import chunk_bounds, count_chunks
from triscreen.triplets.base import Departure, Sums, add_up
from triscreen.triplets.pairs import ListedPairs


class ListedTriplets(ListedPairs):
    """Listed triplets, 8 bytes each and 8 more if weighted.

    Parameters
    ----------
    n_points : int
    first, second : int32 arrays
        The pairs, sorted by their first point.
    positive, negative : int32 arrays
        Each triplet's two pairs.
    weights : array, empty for 1 each
    """

    def __init__(self, n_points, first, second, positive, negative, weights):
        self._set_pairs(n_points, first, second)
        self._positive, self._negative, self._weights = positive, negative, weights
        self.n_triplets = len(positive)
        self.total_weight = float(weights.sum()) if len(weights) else float(len(positive))

    def identity(self):
        """Return (kind, arrays); see `TripletSet.identity`."""
        ids = np.arange(self.n_points) if self.point_ids is None else self.point_ids
        return "listed", (ids, self.first, self.second, self._positive, self._negative, self._weights)

    def identity_1(self):
        """Return the arrays of format 1; see `TripletSet.identity_1`."""
        ids = [] if self.point_ids is None else [self.point_ids]
        pairs = *self._by_second, self._negative, self._positive, self._ptr, self._weights
        return (*pairs, self.first, *ids, self.second)

    @property
    def weights(self):
        """The triplets' weights; None: 1 each."""
        return self._weights if len(self._weights) else None

    def local_indices(self, start=0, stop=None):
        """Return the triplets start <= t < stop as rows of the points that the set speaks of."""
        pos, neg = self._positive[start:stop], self._negative[start:stop]
        ends = np.stack([self.first[pos], self.second[pos], self.first[neg], self.second[neg]], axis=1)
        # The anchor is the point that both pairs share; where both points are shared, j = l and either one will do.
        anchor = np.where((ends[:, 0] == ends[:, 2]) | (ends[:, 0] == ends[:, 3]), ends[:, 0], ends[:, 1])
        j = ends[:, 0] + ends[:, 1] - anchor
        k = ends[:, 2] + ends[:, 3] - anchor
        return np.stack([anchor, j, k], axis=1).astype(np.int32)

    def pair_numbers(self, keep):
        """Return (positive, negative) pair numbers of the triplets that the mask keeps."""
        return self._positive[keep], self._negative[keep]

    def sweep(self, dist, smoothing, threads):
        """Return (Sums, pair weights) for alpha = clip((1 - margin) / smoothing, 0, 1)."""
        sums, pair_weights = self._in_chunks(
            "sweep", sweep_list, (dist, self._positive, self._negative, self._weights, smoothing), threads
        )
        return Sums(smoothing, *sums), pair_weights

    def sweep_alpha(self, dist, alpha, gamma, threads):
        """Return ((loss, dual sum, slack), pair weights) for alphas given one by one."""
        return self._in_chunks(
            "alpha", alpha_list, (dist, self._positive, self._negative, self._weights, alpha, gamma), threads
        )

    def ascend(self, dist, alpha, previous, gamma, curvature, momentum, threads):
        """Take a step of dual ascent; see `TripletSet.ascend`."""
        goal, following = np.empty((2, self.n_triplets))
        arguments = (dist, self._positive, self._negative, self._weights, alpha, previous, gamma, curvature, momentum)
        sums, pair_weights = self._in_chunks("ascend", ascend_list, (*arguments, goal, following), threads, n_sums=5)
        return sums, pair_weights, goal, following

    def largest_margin(self, dist):
        """Return the largest margin over the triplets."""
        best = -np.inf
        for start in range(0, self.n_triplets, 1 << 20):
            part = slice(start, start + (1 << 20))
            best = max(best, float((dist[self._negative[part]] - dist[self._positive[part]]).max()))
        return best

    def _in_chunks(self, kind, kernel, arguments, threads, n_sums=3):
        # Every chunk needs pair weights of its own: few chunks, and one alone where pairs are as many as triplets.
        chunks = int(np.clip(self.n_triplets // max(1, 4 * self.n_pairs), 1, 8))
        bounds = chunk_bounds(self.n_triplets, chunks)
        parts = np.zeros((chunks, self.n_pairs))
        sums = np.zeros((chunks, 2, n_sums))

        def task(c):
            kernel(*arguments, parts[c], sums[c], bounds[c], bounds[c + 1])

        threads.run(kind, task, chunks)
        return add_up(sums), parts[0] if chunks == 1 else parts.sum(axis=0)

    def corner_change(self, dist, other, gamma, threads):
        """Return how much the alphas change that are within (0, 1) at both ends; see `TripletSet.corner_change`."""
        bounds = chunk_bounds(self.n_triplets, count_chunks(self.n_triplets, 6))
        parts = np.zeros(len(bounds) - 1)
        lists = self._positive, self._negative, self._weights

        def task(c):
            parts[c] = corner_list(dist, other, *lists, gamma, bounds[c], bounds[c + 1])

        threads.run("corner", task, len(parts))
        return math.fsum(parts)

    def cross_slack(self, dist, smoothing, other, gamma, threads):
        """Return the slack at the margins of other of the alphas from the margins of dist."""
        chunks = count_chunks(self.n_triplets, 6)
        bounds = chunk_bounds(self.n_triplets, chunks)
        sums = np.zeros((chunks, 2, 3))

        def task(c):
            cross_list(
                dist, other, self._positive, self._negative, self._weights, smoothing, gamma, sums[c], bounds[c],
                bounds[c + 1],
            )  # fmt: skip

        threads.run("cross", task, chunks)
        return add_up(sums)[2]

    def most_triplets_at_a_pair(self):
        """Return an upper bound of the number of triplets that one pair belongs to."""
        return int(np.bincount(self._positive).max(initial=0) + np.bincount(self._negative).max(initial=0))

    def decide(self, values, errors, norms, radius, zones, gamma, threads, whole=None):
        """Apply the sphere rule to the triplets without a zone; see `TripletSet.decide`."""
        chunks = count_chunks(self.n_triplets, 6)
        bounds = chunk_bounds(self.n_triplets, chunks)
        counts = np.zeros((chunks, 2), dtype=np.int64)

        def task(c):
            sphere_list(
                values, errors, self._positive, self._negative, norms, radius, gamma, zones, counts[c], bounds[c],
                bounds[c + 1],
            )  # fmt: skip

        threads.run("decide", task, chunks)
        return counts.sum(axis=0)

    def undecided_in(self, ends, squares, radius, error, low, both, zones, threads):
        """Select the triplets that are not proven to keep their zone; see `TripletSet.undecided_in`."""
        keep = np.empty(self.n_triplets, dtype=bool)
        zones = np.empty(0, dtype=np.int8) if zones is None else zones
        chunks = count_chunks(self.n_triplets, 8)
        bounds = chunk_bounds(self.n_triplets, chunks)

        def task(c):
            undecided_list(
                *ends, squares, self._positive, self._negative, radius, error, low, both, zones, keep, bounds[c],
                bounds[c + 1],
            )  # fmt: skip

        threads.run("undecided", task, chunks)
        return keep

    def quadratic(self, dist, smoothing):
        """Select the triplets in the quadratic part of the loss."""
        keep = np.empty(self.n_triplets, dtype=bool)
        return keep, quadratic_list(dist, self._positive, self._negative, smoothing, keep)

    def hessian_weights(self, dist, change, smoothing, threads):
        """Return the pair weights of the loss's Hessian times a step."""
        pair_weights = np.zeros(self.n_pairs)
        hessian_list(
            dist, change, self._positive, self._negative, self._weights, smoothing, pair_weights, 0, self.n_triplets
        )
        return pair_weights

    def restrict(self, selection):
        """Return (the selected triplets over the pairs and points they need, those pairs)."""
        positive, negative = self._positive[selection], self._negative[selection]
        used = np.zeros(self.n_pairs, dtype=bool)
        used[positive] = used[negative] = True
        pairs, points, first, second = self._needed(used)
        number = np.cumsum(used, dtype=np.int32) - 1
        weights = self._weights[selection] if len(self._weights) else self._weights
        made = ListedTriplets(len(points), first, second, number[positive], number[negative], weights)
        return self._share_pairs(self._share_points(made, points), pairs, points), pairs

    def let_go(self, zones, dist, smoothing, whole=None, threads=None):
        """Let all decided triplets go."""
        keep, linear = zones == UNDECIDED, zones == LINEAR
        positive, negative = self.pair_numbers(linear)
        w = self._weights[linear] if len(self._weights) else np.ones(len(positive))
        return Departure(
            *self.restrict(keep),
            weigh=lambda: np.bincount(negative, w, self.n_pairs) - np.bincount(positive, w, self.n_pairs),
            linear=float(w.sum()),
            strays=bool(off_zone_list(dist, self._positive, self._negative, zones, smoothing)),
            numbers=lambda: np.flatnonzero(keep),
            kept=lambda zones, norms: (zones[keep], norms[keep]),
        )
