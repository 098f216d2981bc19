"""Triplets from labels: each point's k nearest of its class against its k nearest of other classes."""

from __future__ import annotations

import warnings

import numpy as np

from triscreen._kernels.blocks import (
    bend_blocks,
    block_hull,
    block_indices,
    block_pairs,
    block_used,
    curved_blocks,
    largest_margin_blocks,
    near_blocks,
    off_zone_blocks,
    sphere_blocks,
    sweep_blocks,
)
from triscreen._kernels.neighbours import kth_smallest, nearest_of_kind
from triscreen._utils.lazy import cached_property
from triscreen._utils.threads import LONGEST, Threads, chunk_bounds, count_chunks, single_threaded_blas
from triscreen._utils.validation import as_count, as_labels, as_points
from triscreen.errors import InputError, SmallClassWarning
from triscreen.triplets.base import MOST_PAIRS, Sums, TripletSet, add_up
from triscreen.triplets.listed import ListedTriplets

_DISTANCE_BLOCK = 32 * 2**20  # bytes
_NAMED_CLASSES = 8
_FEW = 64  # neighbours that insertion finds faster than a partition


class KnnTriplets(TripletSet):
    """Blocks of positives times negatives, one per anchor: 0 bytes per triplet; make one with `knn_triplets`.

    The triplets are counted anchor by anchor, positive by positive, negative by negative.
    """

    def __init__(self, second, n_positive, n_negative):
        """For each point its positives, then its negatives, all in one array; neither for a point that is no anchor."""
        n_points = len(n_positive)
        first = np.repeat(np.arange(n_points, dtype=np.int32), n_positive + n_negative)
        self._set_pairs(n_points, first, second)
        self._split = self._ptr[:-1] + n_positive
        self._count = np.concatenate([[0], np.cumsum(n_positive * n_negative)])
        self.n_triplets = int(self._count[-1])
        self.total_weight = float(self.n_triplets)

    def identity(self):
        """Return (kind, arrays); see `TripletSet.identity`."""
        return "blocks", (self.second, self._ptr, self._split)

    def identity_1(self):
        """Return the arrays of format 1; see `TripletSet.identity_1`."""
        return self._back_pair, self._back_ptr, self._count, self._ptr, self._split, self.first, self.second

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
        bounds = self._chunks()
        pair_weights, sums = np.empty(self.n_pairs), np.zeros((len(bounds) - 1, 2, 3))

        def task(c):
            sweep_blocks(dist, self._ptr, self._split, smoothing, pair_weights, sums[c], bounds[c], bounds[c + 1])

        threads.run("sweep", task, len(sums))
        return Sums(smoothing, *add_up(sums)), pair_weights

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

    def near(self, ends, squares, radius, error, low, both, zones, threads):
        """Select the pairs of triplets that are not proven to keep their zone; see `TripletSet.near`."""
        used = np.empty(self.n_pairs, dtype=bool)
        zones = np.empty(0, dtype=np.int8) if zones is None else zones
        bounds = self._chunks()

        def task(c):
            start, stop = bounds[c], bounds[c + 1]
            near_blocks(
                *ends, squares, self._ptr, self._split, radius, error, low, both, zones, self._count[start], used,
                start, stop,
            )  # fmt: skip

        threads.run("near", task, len(bounds) - 1)
        return used

    def curved(self, dist, smoothing):
        """Select the pairs of the triplets in the quadratic part of the loss."""
        used = np.empty(self.n_pairs, dtype=bool)
        return used, curved_blocks(dist, self._ptr, self._split, smoothing, used)

    def bend(self, dist, change, smoothing, threads):
        """Return the pair weights of the loss's Hessian times a step."""
        pair_weights = np.empty(self.n_pairs)
        bounds = self._chunks()

        def task(c):
            bend_blocks(dist, change, self._ptr, self._split, smoothing, pair_weights, bounds[c], bounds[c + 1])

        threads.run("bend", task, len(bounds) - 1)
        return pair_weights

    def restrict(self, selection):
        """Return (the blocks of the selected pairs, the numbers of these pairs, their points)."""
        pairs, points, first, second = self._needed(selection)
        positive = pairs < self._split[self.first[pairs]]
        n_positive, n_negative = (np.bincount(first[side], minlength=len(points)) for side in (positive, ~positive))
        return KnnTriplets(second, n_positive, n_negative), pairs, points

    def take(self, keep):
        """Return the blocks of all kept pairs, which may have decided triplets too: they cost next to nothing there."""
        used = np.empty(self.n_pairs, dtype=bool)
        block_used(self._ptr, self._split, keep, used)
        smaller, pairs, points = self.restrict(used)
        numbers = np.empty(smaller.n_triplets, dtype=np.int64)
        block_hull(self._ptr, self._split, used, numbers)
        return smaller, pairs, points, numbers

    def off_zone(self, dist, zones, smoothing):
        """Is there a decided triplet whose alpha at these distances is not that of its zone?"""
        return bool(off_zone_blocks(dist, self._ptr, self._split, zones, smoothing))

    def cross_slack(self, dist, smoothing, other, gamma, threads):
        """Return the slack at the margins of other of the alphas from the margins of dist."""
        return self._list.cross_slack(dist, smoothing, other, gamma, threads)

    def most_triplets_at_a_pair(self):
        """Return an upper bound of the number of triplets that one pair belongs to."""
        return int(max((self._split - self._ptr[:-1]).max(initial=0), (self._ptr[1:] - self._split).max(initial=0)))

    def decide(self, values, errors, norms, radius, zones, gamma, threads):
        """Apply the sphere rule to the triplets without a zone; see `TripletSet.decide`."""
        bounds = self._chunks()
        counts = np.zeros((len(bounds) - 1, 2), dtype=np.int64)

        def task(c):
            start, stop = bounds[c], bounds[c + 1]
            sphere_blocks(
                values, errors, self._ptr, self._split, norms, radius, gamma, zones, counts[c], start, stop,
                self._count[start],
            )  # fmt: skip

        threads.run("decide", task, len(counts))
        return counts.sum(axis=0)

    def largest_margin(self, dist):
        """Return the largest margin over the triplets."""
        return float(largest_margin_blocks(dist, self._ptr, self._split))

    def _chunks(self):
        """Bounds of chunks of anchors with nearly equal numbers of triplets."""
        chunks = count_chunks(self.n_points, 2 * (self.n_triplets + self.n_pairs) / max(1, self.n_points))
        bounds = np.searchsorted(self._count, chunk_bounds(self.n_triplets, chunks), side="left")
        bounds[0], bounds[-1] = 0, self.n_points
        return bounds


def knn_triplets(X, y, k=20, n_jobs=None):
    """Make triplets from labelled points: k nearest of the same class times k nearest of other classes.

    Neighbours are exact, by Euclidean distance in float64; ties go to the smaller index, so the set is reproducible.
    Small classes are no error: a class of fewer than k + 1 points gives what it has, and a class of one point gives
    no anchor but remains a negative for others; one warning names them all.

    Parameters
    ----------
    X : array, shape (n, d)
    y : array, shape (n,)
        Labels of any type that can be sorted.
    k : int or None
        None: all points of the class times all points of other classes.
    n_jobs : int or None
        Threads for the search.

    Returns
    -------
    KnnTriplets

    Examples
    --------
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> ts.knn_triplets(X, y, k=5)
    <KnnTriplets: 3,750 triplets over 1,500 pairs>
    """
    k = as_count(k, "k", none="all points")
    threads = Threads(n_jobs)
    X = as_points(X)
    codes, classes = as_labels(y, len(X))
    sizes = np.bincount(codes)
    name_small_classes(classes, sizes, k, len(X))
    if k is None:
        if len(X) * (len(X) - 1) > MOST_PAIRS:
            raise InputError(f"k=None for {len(X)} points: all triplets can be listed for at most 46341 points")
        members = [np.flatnonzero(codes == c).astype(np.int32) for c in range(len(classes))]
        others = [np.flatnonzero(codes != c).astype(np.int32) for c in range(len(classes))]
        rows = [part for i, c in enumerate(codes) if sizes[c] > 1 for part in (members[c][members[c] != i], others[c])]
        n_positive, n_negative = sizes[codes] - 1, len(X) - sizes[codes]
        n_negative[n_positive == 0] = 0
        return KnnTriplets(np.concatenate(rows), n_positive, n_negative)
    same, other = nearest(X, codes, k, threads)
    other[sizes[codes] == 1] = -1
    both = np.concatenate([same, other], axis=1)
    return KnnTriplets(both[both >= 0], (same >= 0).sum(axis=1), (other >= 0).sum(axis=1))


def name_small_classes(classes, sizes, k, n_points, every_negative=False):
    """Warn of classes that are smaller than k asks for; refuse labels that give no triplet at all."""
    if (sizes < 2).all():
        raise InputError(
            f"y has {len(classes)} classes of one point each: a triplet needs a class of two points or more"
        )
    single = [f"{c!r}" for c in classes[sizes == 1].tolist()]
    small = [] if k is None else [f"{c!r} ({s})" for c, s in zip(classes.tolist(), sizes, strict=True) if 1 < s <= k]
    few = [] if k is None or every_negative else [
        f"{c!r}" for c, s in zip(classes.tolist(), sizes, strict=True) if n_points - s < k
    ]  # fmt: skip
    parts = []
    if small:
        parts.append(f"fewer than k + 1 = {k + 1} points, all of them used: class {_some(small)}")
    if few:
        parts.append(f"fewer than k = {k} points outside, all of them used: class {_some(few)}")
    if single:
        parts.append(f"one point only, no anchor but still a negative: class {_some(single)}")
    if parts:
        warnings.warn("small classes in y; " + "; ".join(parts), SmallClassWarning, stacklevel=3)


def _some(names):
    more = len(names) - _NAMED_CLASSES
    return ", ".join(names[:_NAMED_CLASSES]) + (f" and {more} more" if more > 0 else "")


def nearest(X, codes, k, threads, kinds=(True, False)):
    """Return index arrays, a row a point: the k nearest of its class and of other classes; -1 where they end."""
    from sklearn import config_context
    from sklearn.metrics.pairwise import euclidean_distances

    n, dim = X.shape
    centred = X - X.mean(axis=0)
    squares = np.einsum("ij,ij->i", centred, centred)
    # |x|^2 + |y|^2 - 2 x'y is wrong by at most this much, point by point.
    error = (2 * dim + 16) * np.finfo(float).eps * squares
    widths = {True: min(k, int(np.bincount(codes).max()) - 1), False: min(k, n - 1)}
    found = [np.empty((n, widths[same]), dtype=np.int32) for same in kinds]

    rows = max(1, min(_DISTANCE_BLOCK // (8 * n), LONGEST // (n * dim)))  # at a time and thread
    chunks = -(-n // rows)
    bounds = chunk_bounds(n, chunks)

    def task(c):
        start, stop = bounds[c], bounds[c + 1]
        with config_context(assume_finite=True):
            block = euclidean_distances(
                centred[start:stop], centred, squared=True, X_norm_squared=squares[start:stop], Y_norm_squared=squares
            )
        for wanted, out in zip(kinds, found, strict=True):
            limits = _limits(block, error, codes, start, out.shape[1], wanted)
            nearest_of_kind(block, error, limits, X, codes, start, wanted, out[start:stop])

    with single_threaded_blas():
        threads.run("neighbours", task, chunks)
    return found


def _limits(block, error, codes, start, k, same):
    """Return the k-th smallest distance plus error to the points (not) of each row's class; infinity if fewer."""
    limits = np.empty(len(block))
    if k <= _FEW:
        kth_smallest(block, error, codes, start, k, same, limits)
        return limits
    rows = np.arange(start, start + len(block))
    wanted = (codes == codes[rows, None]) == same
    wanted[np.arange(len(block)), rows] = False
    return np.partition(np.where(wanted, block + error, np.inf), k - 1, axis=1)[:, k - 1]
