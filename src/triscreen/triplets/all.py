"""Every triplet of labelled points, never listed: at the cost of pairs, in blocks of anchors."""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import ArrayLike

from triscreen._kernels.blocks import largest_margin_blocks
from triscreen._kernels.ordered import hessian_ordered, sweep_ordered
from triscreen._kernels.pairs import pair_distances
from triscreen._utils.progress import searching
from triscreen._utils.threads import Threads, breathe, chunk_bounds, count_chunks
from triscreen._utils.validation import as_count, as_labels, as_numbers, as_points, shortened
from triscreen.errors import InputError
from triscreen.triplets._all_blocks import Block
from triscreen.triplets._all_distances import PairList, Quadratic, grain_of
from triscreen.triplets.base import Reduction, Sums, TripletSet, add_up
from triscreen.triplets.graph import Given, as_given
from triscreen.triplets.knn import name_small_classes
from triscreen.triplets.neighbours import nearest
from triscreen.triplets.never_listed import NeverListed
from triscreen.triplets.ordered import OrderedTriplets

_BLOCK = 8 * 2**20  # bytes of a block of distances
_BLOCKS = 7  # so many are alive at a time where most are: when pairs are let go
_CHUNKS = 32
_KEPT = 22  # arrays of the size of the points that are alive at a time where most are: on a path
_WORK = 60  # elementary operations a pair, about
_LISTED_PAIR = 200  # bytes that a pair takes once it is listed: indices; distances, weights and bounds, some of each
_LIST_AT_MOST = 2**30  # bytes, where the user sets no budget
# A product of matrices reaches a pair faster than a list does: fewer pairs have to be left before listing them pays.
_WORTH_LISTING = 0.5


class AllTriplets(NeverListed, TripletSet):
    """All (or the k nearest) points of the anchor's class against every point of other classes.

    Distances are a `Quadratic`, worked off in blocks of anchors; pair weights are never kept either: each block of them
    goes into rows T with sym(X' T) = sum_p c_p delta_p delta_p', and T stands for the weights. Bytes: 64 a point (and 8
    for each of n_positives), and blocks.

    Attributes
    ----------
    point_ids : array
        The points, class by class: the order of everything here.
    anchors : array
        Those with at least one positive and one negative, and a weight.
    anchor_weights : array
        One per point.

    Notes
    -----
    All that begins with an underscore is private to this class and to the `Block` of `_all_blocks`, which reads where
    each anchor's class begins and ends (``_ends``), its positives (``_near``) and their numbers.
    """

    lists_pairs = False
    advice = "raise the budget, take fewer points or features, or a smaller n_jobs"

    def __init__(self, codes, near, anchor_weights):
        """Take codes of the classes, the positives of each point (-1 where they end) or None, and weights or None."""
        n = len(codes)
        self.n_points = n
        self.point_ids = np.argsort(codes, kind="stable")
        sizes = np.bincount(codes)
        stops = np.cumsum(sizes)
        self._ends = np.stack([stops - sizes, stops], axis=1)[codes[self.point_ids]]
        if near is None:
            self._near = np.full((n, 1), -1, dtype=np.int64)
        else:
            place = np.empty(n + 1, dtype=np.int64)
            place[self.point_ids], place[-1] = np.arange(n), -1
            self._near = np.ascontiguousarray(place[near[self.point_ids]])
        self.anchor_weights = np.ones(n) if anchor_weights is None else anchor_weights[self.point_ids]
        size = self._ends[:, 1] - self._ends[:, 0]
        self._n_positive = size - 1 if near is None else (self._near >= 0).sum(axis=1)
        self._n_negative = n - size
        self._set_anchors(np.flatnonzero((self._n_positive > 0) & (self.anchor_weights > 0)))
        self._block, self._list_at_most = _BLOCK, _LIST_AT_MOST

    def _set_anchors(self, anchors):
        self.anchors = anchors
        n_positive, n_negative = self._n_positive[anchors], self._n_negative[anchors]
        self._most_positive = int(n_positive.max(initial=1))
        self._pairs = int(n_positive.sum()) + int(n_negative.sum())
        # Whole numbers of Python's: they do not overflow.
        self.n_triplets = sum(int(p) * int(q) for p, q in zip(n_positive, n_negative, strict=True))
        self.total_weight = float((self.anchor_weights[anchors] * n_positive) @ n_negative)

    @property
    def n_pairs(self) -> int:
        """Number of (anchor, other point) pairs; none of them is listed."""
        return self._pairs

    def within(self, budget, dim, n_jobs):
        """Return this set with blocks and lists that a memory budget allows, for points of dim dimensions."""
        made = copy(self)
        left = budget - self.bytes_needed(dim, n_jobs, rows=0)
        made._block = int(min(_BLOCK, max(0.5 * left / (_BLOCKS * n_jobs), 8 * self.n_points)))
        made._list_at_most = max(0.0, 0.4 * left)
        return made

    def list_at_most(self, n_bytes):
        """Let lists of what is left take no more than this."""
        self._list_at_most = min(self._list_at_most, n_bytes)

    def bytes_needed(self, dim, n_jobs=1, rows=1):
        """Return the bytes that a solve or a path takes at most, beside the points.

        With blocks of so many rows (None: its own).
        """
        rows = self._rows_at_once() if rows is None else rows
        # T and both sides of a Quadratic for each evaluation that is kept, sums of columns; blocks and an anchor's work
        # space for each thread.
        thread = 8 * (_BLOCKS * self.n_points * rows + 8 * self.n_points + 50 * self._most_positive)
        return self.nbytes + 8 * self.n_points * (_KEPT * dim + 2 * _CHUNKS) + n_jobs * thread

    def identity(self):
        """Return (kind, arrays); see `TripletSet.identity`."""
        return "all", (self.point_ids, self._ends, self._near, self.anchor_weights, self.anchors)

    def identity_1(self):
        """Return the arrays of format 1; see `TripletSet.identity_1`."""
        counts = self._n_negative, self._n_positive
        return (self._ends, *counts, self._near, self.anchor_weights, self.anchors, self.point_ids)

    def check_points(self, n_points):
        """Refuse X with another number of points than the triplets were made from."""
        if n_points != self.n_points:
            raise InputError(f"X has {n_points} points: these triplets were made from {self.n_points} points")

    def local_indices(self, start=0, stop=None):
        """Return the triplets start <= t < stop as rows (i, j, l), anchor by anchor, for looking at a few of them."""
        start, stop, _ = slice(start, stop).indices(self.n_triplets)
        n_positive, n_negative = self._n_positive, self._n_negative
        rows, before = [np.empty((0, 3), dtype=np.int64)], 0
        for i in self.anchors:
            count = int(n_positive[i]) * int(n_negative[i])
            t = np.arange(max(start, before), min(stop, before + count)) - before
            if len(t):
                begin, end = self._ends[i]
                mine = self._near[i][: n_positive[i]]
                if mine[0] < 0:
                    mine = np.delete(np.arange(begin, end), i - begin)
                negative = t % n_negative[i]
                rows.append(
                    np.stack(
                        [np.full(len(t), i), mine[t // n_negative[i]], negative + (end - begin) * (negative >= begin)],
                        axis=1,
                    )
                )
            before += count
            if before >= stop:
                break
        return np.concatenate(rows).astype(np.int32)

    def weights_of(self, start=0, stop=None):
        """Return the weights of the triplets start <= t < stop: those of their anchors."""
        return self.anchor_weights[self.local_indices(start, stop)[:, 0]]

    # -- one evaluation -------------------------------------------------------------------------------------------

    def distances_under(self, cone, factor, threads):
        """Return the distances of all pairs under F F', as a `Quadratic`."""
        return Quadratic(self.points, cone.element(factor), factor)

    def distances_of(self, M):
        """Return the distances of all pairs under M, in the cone or not, as a `Quadratic`."""
        return Quadratic(self.points, M)

    def sweep(self, dist, smoothing, threads):
        """Return (Sums, pair weights as rows T) for alpha = clip((1 - margin) / smoothing, 0, 1)."""
        sums = np.zeros((self._chunk_count(), 2, 3))
        grains = self._grains((dist,), smoothing)

        def work(block, c):
            block.kernel(sweep_ordered, (block.distances(dist),), grains, sums[c])

        T = self._joined(*self._in_blocks("sweep", work, threads))
        return Sums(smoothing, *add_up(sums)), T

    def hessian_weights(self, dist, change, smoothing, threads):
        """Return the pair weights (as T) of the loss's Hessian times a step."""
        grains = self._grains((dist,), smoothing)

        def work(block, c):
            block.kernel(hessian_ordered, (block.distances(dist), block.distances(change)), grains)

        return self._joined(*self._in_blocks("hessian", work, threads))

    def changes(self, cone, V, threads):
        """Return (x_a - x_b)'V (x_a - x_b) for all pairs."""
        return Quadratic.of_sides(self.points, cone.spread(self.points, V, threads))

    def largest_margin(self, dist):
        """Return the largest margin over the triplets."""
        blocks = (Block(self, anchors) for anchors in self._blocks(self.anchors))
        return float(max(largest_margin_blocks(block.distances(dist), block.ptr, block.split) for block in blocks))

    def matrix(self, pair_weights, threads):
        """Return the sum over pairs of c_p (x_a - x_b)(x_a - x_b)'."""
        A = self.points.T @ pair_weights
        return 0.5 * (A + A.T)

    def diagonal(self, pair_weights, threads):
        """Return the diagonal of `matrix`."""
        return np.einsum("ij,ij->j", self.points, pair_weights)

    def inner(self, pair_weights, change, cone):
        """Return the sum over pairs of weight times change of distance: an inner product of matrices."""
        return float(np.vdot(cone.assemble(self, pair_weights, None), change.M))

    def magnitude(self, pair_weights, threads):
        """Return sum_t w_t (|u|^2 + |v|^2), which is no less than the sum over pairs of |c_p| |delta_p|^2."""
        X = self.points
        squares = np.einsum("ij,ij->i", X, X)
        own = np.empty(len(X))
        for begin, end in np.unique(self._ends, axis=0):
            own[begin:end] = _to_all(X[begin:end], squares[begin:end])
        far = _to_all(X, squares) - own
        if self._near[self.anchors[0], 0] >= 0:
            own = self._to_near()
        return float((self.anchor_weights * (own * self._n_negative + far * self._n_positive))[self.anchors].sum())

    def _to_near(self):
        """Return the sum of |x_i - x_j|^2 over the positives j of each point, in blocks of points."""
        X = self.points
        width, total = self._near.shape[1], np.empty(len(X))
        rows = max(1, self._block // (24 * width))
        for start in range(0, len(X), rows):
            near = self._near[start : start + rows]
            ptr, out = width * np.arange(-start, len(X) - start + 1), np.empty(near.size)
            pair_distances(X, ptr, np.maximum(near, 0).ravel(), out, start, start + len(near))
            total[start : start + rows] = np.where(near >= 0, out.reshape(near.shape), 0.0).sum(axis=1)
        return total

    def typical_square(self, threads):
        """Return about the mean of |delta|^4 over pairs."""
        X = self.points
        rng = np.random.default_rng(0)
        a, b = rng.integers(len(X), size=(2, 1000))
        return float(np.square(np.square(X[a] - X[b]).sum(axis=1)).mean())

    # -- what may go ----------------------------------------------------------------------------------------------

    def reduce(self, ends, radii, error, offset, low, both, smoothing, threads, most=1.0):
        """Let go what is decided in two balls at once; see `NeverListed.reduce`."""
        n_chunks, n = self._chunk_count(), self.n_points
        sums, staying = np.zeros((2, n_chunks, 2, 3))
        counts = np.zeros((n_chunks, 2), dtype=np.int64)
        gone, gone_columns = np.zeros(n_chunks), np.zeros((n_chunks, n))
        lists = [[] for _ in range(n_chunks)]
        n_found = np.zeros((n, 2), dtype=np.int64)
        limit = min(min(most, _WORTH_LISTING) * self.n_pairs, self._list_at_most / _LISTED_PAIR)
        grains = self._grains(ends, smoothing)
        euclid = Quadratic(self.points, np.ones(self.dim), np.ones(self.dim))

        def work(block, c):
            first = block.distances(ends[0])
            second = first if ends[1] is ends[0] else block.distances(ends[1])
            lengths = first if max(radii) == 0 else np.maximum(block.distances(euclid), 0.0) * (1 + 1e-12) + offset
            used = block.decide((first, second, lengths, np.array(radii), error, low, both, grains[2]), counts[c])
            n_found[block.anchors] = numbers = block.count(used)
            if n_found.sum() <= limit:
                lists[c].append(block.others()[used])
            block.fix(first, used, numbers, grains, sums[c], staying[c])
            leaves = numbers.sum(axis=1) == 0
            gone_columns[c] += block.matrix[leaves].sum(axis=0)
            gone[c] += np.maximum(block.matrix[leaves], 0.0).sum()

        rows, columns = self._in_blocks("reduce", work, threads)
        counts = tuple(sum(int(count) for count in column) for column in counts.T)
        stay = np.flatnonzero(n_found.sum(axis=1))
        before, after = add_up(sums)[1], add_up(staying)[1]
        if n_found.sum() <= limit:
            weights = self._joined(rows, columns)
            return Reduction(counts, *self._listed(n_found, lists), weights, before - after, before + after)
        if len(stay) <= min(most, 0.7) * len(self.anchors):
            rows[stay] = 0.0
            weights, alpha = self._joined(rows, gone_columns.sum(axis=0)), float(gone.sum())
            return Reduction(counts, self.of_anchors(stay), slice(None), weights, alpha, alpha)
        return Reduction(counts)

    def _listed(self, n_found, lists):
        """Return (the set of the pairs found, these pairs)."""
        second = np.concatenate([block for chunk in lists for block in chunk] + [np.empty(0, dtype=np.int32)])
        # The lists go by anchors, which rise.
        first = np.repeat(np.arange(self.n_points, dtype=np.int32), n_found.sum(axis=1))
        here = np.zeros(self.n_points, dtype=bool)
        here[first] = here[second] = True
        points = np.flatnonzero(here)
        place = np.cumsum(here, dtype=np.int32) - 1
        triplets = OrderedTriplets(place[second], *n_found[points].T, self.anchor_weights[points])
        return self._share_points(triplets, points), PairList(first, second)

    def of_anchors(self, anchors):
        """Return this set with some of its anchors; all points stay."""
        less = copy(self)
        less._set_anchors(anchors)
        return less

    def quadratic_part(self, dist, smoothing, threads):
        """Return (a set with all quadratic triplets, its pairs, the number of these triplets)."""
        part = self.reduce((dist, dist), (0.0, 0.0), 0.0, 0.0, 1 - smoothing, True, smoothing, threads)
        count = self.n_triplets - sum(part.counts)
        if part.triplets is None:
            return self, slice(None), count
        return part.triplets, part.pairs, count

    def quantum(self, largest, gamma):
        """Bound on what rounding to whole grains does to a margin."""
        return 2 * grain_of(largest, max(1.0, gamma), self.n_points)[0]

    def most_triplets_at_a_pair(self):
        """Return an upper bound of the number of triplets that one pair belongs to."""
        return self.n_points

    def most_pairs_at_a_point(self):
        """Return an upper bound of the number of pairs that one point belongs to."""
        return 2 * self.n_points

    # -- blocks -----------------------------------------------------------------------------------------------------

    def _chunk_count(self):
        return count_chunks(len(self.anchors), _WORK * self.n_points, most=_CHUNKS)

    def _rows_at_once(self):
        return min(len(self.anchors), max(1, self._block // (8 * self.n_points)))

    def sample(self, n_anchors):
        """Return this set with a few of its anchors, evenly chosen."""
        return self.of_anchors(self.anchors[:: max(1, len(self.anchors) // n_anchors)])

    def _blocks(self, anchors):
        rows = self._rows_at_once()
        return [anchors[start : start + rows] for start in range(0, len(anchors), rows)]

    def _in_blocks(self, kind, work, threads):
        """Call ``work(block, chunk)`` for blocks of all anchors; it leaves weights c_il in the block's matrix.

        Returns (rows, columns), for `_joined`, of T_i = (sum_l c_il + sum_l c_li) x_i - 2 sum_l c_il x_l.
        """
        X = self.points
        chunks = self._chunk_count()
        bounds = chunk_bounds(len(self.anchors), chunks)
        columns, out = np.zeros((chunks, self.n_points)), np.zeros(X.shape)

        def task(c):
            for anchors in self._blocks(self.anchors[bounds[c] : bounds[c + 1]]):
                breathe()
                block = Block(self, anchors, columns[c])
                work(block, c)
                out[anchors] = block.rows[:, None] * X[anchors] - 2.0 * (block.matrix @ X)

        threads.run(kind, task, chunks)
        return out, columns.sum(axis=0)

    def _joined(self, rows, columns):
        """Return T: the rows of the anchors, and what the columns' sums add to every point."""
        return rows + columns[:, None] * self.points

    def _grains(self, dists, smoothing):
        grain, one, width = grain_of(max(dist.largest for dist in dists), smoothing, self.n_points)
        return one, width, grain, smoothing


def _to_all(X, squares):
    """Return the sum of |x_i - x_l|^2 over all points l, for each point i."""
    return np.maximum(len(X) * squares + squares.sum() - 2 * (X @ X.sum(axis=0)), 0.0)


def all_triplets(
    X: ArrayLike,
    y: ArrayLike,
    n_positives: int | None = None,
    weights: ArrayLike | None = None,
    n_jobs: int | None = None,
    neighbors: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
) -> AllTriplets:
    """Make the set of every triplet of labelled points: no list, no sampling, at the cost of pairs.

    For n points in c classes of equal size these are about n^3 (c - 1)/c^2 triplets; an evaluation takes
    O(n^2 (d + log n)) operations and memory for blocks of rows only. With ``n_positives=k``, the k nearest points of
    the anchor's class (by Euclidean distance, exact) against *every* point of other classes: the constraints of LMNN.

    Parameters
    ----------
    X : array, shape (n, d)
        The points; their labels are y.
    y : array, shape (n,)
        Labels of any type that can be sorted.
    n_positives : int, optional
        That many nearest points of the class; None: all of them.
    weights : array, shape (n,), optional
        One per point: the weight of each triplet that it is the anchor of. 0: it is no anchor.
    n_jobs : int or None
        Threads for the search of nearest points.
    neighbors : int array (n, m), sparse matrix (n, n), or a pair of these, optional
        As for `knn_triplets`: the first n_positives of the point's class are its positives, instead of a search.

    Returns
    -------
    AllTriplets

    References
    ----------
    Ours: docs/all-triplets.md. LMNN: K. Weinberger, L. Saul, JMLR 10 (2009).

    Examples
    --------
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> T = ts.all_triplets(X, y)
    >>> T
    <AllTriplets: 735,000 triplets over 22,350 pairs>
    >>> sol = ts.solve(ts.Problem(X, T), lam=1000.0)
    >>> sol.converged
    True
    """
    n_positives = as_count(n_positives, "n_positives", none="all points of the class")
    threads = Threads(n_jobs)
    X = as_points(X, narrow=True)
    codes, classes = as_labels(y, len(X))
    weights = _anchor_weights(weights, len(X))
    if neighbors is not None and n_positives is None:
        raise InputError("neighbors is given: every triplet has no use for them, say n_positives too")
    neighbors = None if neighbors is None else as_given(neighbors, codes)
    if isinstance(neighbors, Given):
        near = neighbors.tables(n_positives, every_negative=True)[0]
    else:
        name_small_classes(classes, np.bincount(codes), n_positives, len(X), every_negative=True)
        near = None if n_positives is None else _nearest_of_class(X, codes, n_positives, neighbors, threads)
    made = AllTriplets(codes, near, weights)
    if not made.n_triplets:
        raise InputError("weights are 0 for every point of a class of two points or more: no triplet is left")
    return made


def _nearest_of_class(X, codes, k, found, threads):
    if found is not None:
        return found.same
    with searching("neighbours") as tell:
        return nearest(X, codes, k, threads, kinds=(True,), progress=tell)[0]


def triplet_count(y: ArrayLike, n_positives: int | None = None) -> int:
    """Return how many triplets labels have: a whole number of any size, at once.

    Parameters
    ----------
    y : array, shape (n,)
        Labels.
    n_positives : int, optional
        Count the nearest so many points of a class only, as for `all_triplets`.

    Returns
    -------
    int

    References
    ----------
    Ours: docs/all-triplets.md.

    Examples
    --------
    >>> import triscreen as ts
    >>> ts.triplet_count(["a", "a", "b", "b", "b"])
    18
    """
    n_positives = as_count(n_positives, "n_positives", none="all points of the class")
    if not hasattr(y, "__len__"):
        raise InputError(f"y={shortened(y)}: y must be one-dimensional, one label per point")
    sizes = [int(size) for size in np.bincount(as_labels(y, len(y))[0])]
    n = sum(sizes)
    return sum(size * min(size - 1, n_positives or n) * (n - size) for size in sizes)


def _anchor_weights(weights, n):
    if weights is None:
        return None
    w = as_numbers(weights, "weights").copy()
    if w.shape != (n,):
        raise InputError(f"weights has shape {w.shape}: one weight for each of the {n} points is needed")
    bad = ~(np.isfinite(w) & (w >= 0))
    if bad.any():
        i = int(np.argmax(bad))
        raise InputError(f"weights[{i}] is {w[i]}: weights must be finite and not negative")
    return w
