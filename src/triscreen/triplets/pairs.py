"""Sets whose pairs are listed: distances and weights are arrays, an entry a pair.

Pairs are sorted by their first point. Index memory: 8 bytes a pair (first and second; 4 more where they must be listed
by their second point, too) and 8 bytes a point; an evaluation adds 16 bytes a pair (distance and weight), a whole path
ten times that.
"""

from __future__ import annotations

import numpy as np

from triscreen._kernels.pairs import (
    add_by_second,
    half_rows,
    laplacian_rows,
    pair_distances,
    pair_products,
    transpose_pairs,
    weighted_squares,
)
from triscreen._utils.lazy import cached_property
from triscreen._utils.threads import LONGEST, Threads, breathe, chunk_bounds, count_chunks
from triscreen.errors import InputError
from triscreen.triplets.base import TripletSet
from triscreen.triplets.once import Once

MOST_PAIRS = 2**31 - 1  # pair numbers are 32 bits wide
# From so many dimensions on, of symmetric products one triangle is computed, by so many columns at a time.
WIDE, _COLUMNS = 256, 128
# How many times as large the bound of the matrix' rounding may become where that halves the work.
_WORSE = 100.0
# Numbers that a few pairs have at most, where they are added up one by one.
_FEW = 1 << 17


class ListedPairs(TripletSet):
    """What sets over listed pairs share; subclasses add the triplets.

    Attributes
    ----------
    first, second : int32 arrays (n_pairs,)
        The points of each pair.
    """

    _halves = None  # is `matrix` made by halves? `extent` decides

    def _set_pairs(self, n_points, first, second, ptr=None):
        if len(first) > MOST_PAIRS:
            raise InputError(f"the triplets have {len(first)} pairs: at most {MOST_PAIRS} can be listed")
        self.n_points = n_points
        self.first, self.second = first, second
        # Pairs that begin with point i: _ptr[i] .. _ptr[i + 1].
        self._ptr = np.searchsorted(first, np.arange(n_points + 1)).astype(np.int64) if ptr is None else ptr

    @cached_property
    def _by_second(self):
        """Return (pairs, ptr): the pairs that end with point i are pairs[ptr[i] .. ptr[i + 1]]."""
        ptr, pairs = np.zeros(self.n_points + 1, dtype=np.int64), np.empty(self.n_pairs, dtype=np.int32)
        transpose_pairs(self.second, ptr, pairs)
        return pairs, ptr

    @property
    def n_pairs(self) -> int:
        """Number of listed pairs."""
        return len(self.first)

    def reach(self):
        """Return |x_a| + |x_b| of every pair."""
        sizes = np.sqrt(np.einsum("ij,ij->i", self.points, self.points))
        return sizes[self.first] + sizes[self.second]

    def _needed(self, used):
        """Return (pairs, points, first, second) of a mask of pairs, points counted anew."""
        pairs = np.flatnonzero(used)
        first, second = self.first[pairs], self.second[pairs]
        here = np.zeros(self.n_points, dtype=bool)
        here[first] = here[second] = True
        place = np.cumsum(here, dtype=np.int32) - 1
        return pairs, np.flatnonzero(here), place[first], place[second]

    def most_pairs_at_a_point(self):
        """Return the largest number of pairs that one point belongs to, or more: what a row of `matrix` adds up."""
        most = int((np.diff(self._ptr) + np.bincount(self.second, minlength=self.n_points)).max(initial=0))
        return most if self._once is None else max(most, self._once.pairs.most_pairs_at_a_point() + self._once.most)

    def extent(self, threads):
        """Return the largest extent of a pair, which the rounding of `matrix` follows.

        With R = |x_a| + |x_b| that is |x_a - x_b| R where differences are added up, and (2 |x_a - x_b| + R) R where
        half of them are, with squares for the rest; unless pairs are too short beside the points for that.
        """
        reach, lengths = self.reach(), np.sqrt(self.euclid(threads))
        whole, halves = (float((part * reach).max(initial=0.0)) for part in (lengths, 2 * lengths + reach))
        self._halves = self.dim < WIDE and self.points.dtype == np.float64 and halves <= _WORSE * whole
        return halves if self._halves else whole

    def _share_points(self, other, rows):
        if self.points is not None and self._halves is None:  # a part must not decide otherwise
            self.extent(Threads(1))
        other._halves = self._halves
        return super()._share_points(other, rows)

    @cached_property
    def _once(self):
        """The pairs that differ, each once; None: nearly all of them do."""
        return Once.of(self, ListedPairs)

    def _share_pairs(self, other, pairs, points):
        """Let a smaller set over these of our pairs and points know which of them differ; returns it."""
        if self.points is not None:
            other._once = None if self._once is None else self._once.restrict(pairs, points)
        return other

    def distances_under(self, cone, factor, threads):
        """Return the distances of every pair under F F'."""
        if self._once is not None:
            return self._once.hand_out(self._once.pairs.distances_under(cone, factor, threads), threads)
        return self._distances(cone.embed(self.points, factor, threads), threads)

    def euclid(self, threads):
        """Return |x_a - x_b|^2 of every pair."""
        return self._distances(self.points, threads)

    def _distances(self, G, threads):
        """Return |G_a - G_b|^2 for every pair."""
        dist, bounds = np.empty(self.n_pairs), self._point_bounds(2 + G.shape[1])
        if len(bounds) == 2:
            pair_distances(G, self._ptr, self.second, dist, 0, self.n_points)
            return dist

        def task(c):
            pair_distances(G, self._ptr, self.second, dist, bounds[c], bounds[c + 1])

        threads.run("distances", task, len(bounds) - 1)
        return dist

    def _point_bounds(self, work, most=None):
        """Return bounds of chunks of points with nearly equal numbers of pairs, ``work`` elementary operations each."""
        chunks = count_chunks(self.n_pairs, work, most)
        if chunks == 1:
            return [0, self.n_points]
        bounds = self._ptr.searchsorted(chunk_bounds(self.n_pairs, chunks)).tolist()
        bounds[0], bounds[-1] = 0, self.n_points
        return bounds

    def changes(self, cone, V, threads):
        """Return what a step V does to the distance of every pair: (x_a - x_b)'V (x_a - x_b)."""
        if self._once is not None:
            return self._once.hand_out(self._once.pairs.changes(cone, V, threads), threads)
        X, Y = self.points, cone.spread(self.points, V, threads)
        out = np.empty(self.n_pairs)
        chunks = count_chunks(self.n_pairs, 2 + 2 * X.shape[1])
        bounds = chunk_bounds(self.n_pairs, chunks)

        def task(c):
            pair_products(X, Y, self.first, self.second, out, bounds[c], bounds[c + 1])

        threads.run("changes", task, chunks)
        return out

    def inner(self, pair_weights, change, cone):
        """Return the sum over pairs of weight times change of distance."""
        return float(pair_weights @ change)

    def quadratic_part(self, dist, smoothing, threads):
        """Return (a set with all quadratic triplets, its pairs, the number of these triplets)."""
        selection, count = self.quadratic(dist, smoothing)
        return *self.restrict(selection), count

    def magnitude(self, pair_weights, threads):
        """Return the sum over pairs of |c_p| |delta_p|^2, or more."""
        return float(np.abs(pair_weights) @ self.euclid(threads))

    def typical_square(self, threads):
        """Return about the mean of |delta|^4 over pairs."""
        euclid = self.euclid(threads)
        return float(np.square(euclid).mean()) if len(euclid) else 0.0

    def matrix(self, pair_weights, threads):
        """Return the sum over pairs of c_p (x_a - x_b)(x_a - x_b)' = X' Lap(c) X, in O(pairs d + n d^2)."""
        X, dim = self.points, self.dim
        if self._halves is None:
            self.extent(threads)
        if self._once is not None:
            self._once.pairs._halves = self._halves
            return self._once.pairs.matrix(self._once.add_up(pair_weights), threads)
        if dim >= WIDE or X.dtype == np.float32:
            return symmetric_product(X, self._laplacian(pair_weights, threads), threads)
        bounds, ending = self._matrix_bounds, None
        if self._halves:
            ending = self._weights_by_second(pair_weights, threads)
        parts = np.zeros((len(bounds) - 1, dim, dim))
        stretch = 1 + int(LONGEST / dim**2)

        def task(c):
            for start in range(bounds[c], bounds[c + 1], stretch):
                breathe()
                stop = min(start + stretch, bounds[c + 1])
                rows = np.empty((stop - start, dim))
                if ending is None:
                    self._lay(pair_weights, rows, start, stop)
                else:
                    half_rows(X, self._ptr, self.second, pair_weights, ending, rows, start, stop)
                parts[c] += X[start:stop].T @ rows

        threads.run("matrix", task, len(parts))
        A = parts[0]
        for part in parts[1:]:
            A = A + part
        A = A + A.T
        return A if self._halves else 0.5 * A

    def matrix_of_few(self, pair_weights, count):
        """Return what `matrix` does where so many pairs have a weight, pair by pair; None: there are too many for that.

        With no more pairs than points there are no more terms than `matrix` adds up, and its error bound holds.
        """
        X = self.points
        if count > self.n_points or count * self.dim > _FEW or X.dtype != np.float64:
            return None
        pairs = np.flatnonzero(pair_weights)
        D = X[self.first[pairs]] - X[self.second[pairs]]
        A = D.T @ (pair_weights[pairs, None] * D)
        return 0.5 * (A + A.T)

    @cached_property
    def _matrix_bounds(self):
        """Bounds of chunks of points; the partial matrices together are no larger than X."""
        n, dim = self.points.shape
        most = max(1, min(16, n // dim))
        return chunk_bounds(n, min(count_chunks(n, dim * (dim // 4 + 2 * self.n_pairs / max(n, 1)), most), most))

    def _weights_by_second(self, pair_weights, threads):
        """Return for every point the weights of the pairs that end with it."""
        bounds = self._end_bounds
        parts = np.zeros((len(bounds) - 1, self.n_points))

        def task(c):
            add_by_second(self.second, pair_weights, parts[c], bounds[c], bounds[c + 1])

        threads.run("ends", task, len(parts))
        return parts[0] if len(parts) == 1 else parts.sum(axis=0)

    @cached_property
    def _end_bounds(self):
        """Bounds of chunks of pairs; a number a point for each of them is no more than the points."""
        return chunk_bounds(self.n_pairs, min(count_chunks(self.n_pairs, 2), 8, self.dim))

    def _laplacian(self, pair_weights, threads):
        """Return Lap(c) X."""
        rows = np.empty_like(self.points)
        chunks = count_chunks(len(rows), 2 * rows.shape[1] * (1 + 2 * self.n_pairs / max(len(rows), 1)))
        bounds = chunk_bounds(len(rows), chunks)

        def task(c):
            self._lay(pair_weights, rows[bounds[c] : bounds[c + 1]], bounds[c], bounds[c + 1])

        threads.run("laplacian", task, chunks)
        return rows

    def _lay(self, pair_weights, rows, start, stop):
        """Write the rows start <= i < stop of Lap(c) X."""
        pairs, ptr = self._by_second
        laplacian_rows(self.points, self.first, self.second, self._ptr, ptr, pairs, pair_weights, rows, start, stop)

    def on_axes(self, threads):
        """Return (this set on the principal axes of its points, the axes, the share of squares beyond the first ones).

        In single precision; the axes are orthonormal in double.
        """
        X = self.points.astype(np.float32)
        axes = np.linalg.eigh(symmetric_product(X, X, threads))[1][:, ::-1]
        turned = product(X, axes.astype(np.float32), threads)
        squares = np.einsum("ij,ij->j", turned, turned, dtype=float)
        beyond = np.append(np.cumsum(squares[::-1])[::-1], 0.0) / squares.sum()
        return self.over(turned), axes, beyond

    def turned(self, vectors, threads):
        """Return this set with its points in the coordinates of these vectors, an orthonormal basis."""
        made = self.over(product(self.points, vectors, threads))
        made._halves, made._once = self._halves, None if self._once is None else self._once.over(made.points)
        return made

    def along(self, count):
        """Return this set with so many coordinates of its points, the first ones."""
        return self.over(np.ascontiguousarray(self.points[:, :count]))

    def diagonal(self, pair_weights, threads):
        """Return the diagonal of `matrix`, in O(pairs d)."""
        if self._once is not None:
            return self._once.pairs.diagonal(self._once.add_up(pair_weights), threads)
        X = self.points
        chunks = count_chunks(self.n_pairs, 2 * X.shape[1])
        bounds = chunk_bounds(self.n_pairs, chunks)
        parts = np.zeros((chunks, X.shape[1]))

        def task(c):
            weighted_squares(X, self.first, self.second, pair_weights, parts[c], bounds[c], bounds[c + 1])

        threads.run("diagonal", task, chunks)
        return parts.sum(axis=0)


def product(X, V, threads):
    """Return X V, for points X of many dimensions."""
    out = np.empty((len(X), V.shape[1]), dtype=X.dtype)
    # With few rows at a time most of the work would be to look at V.
    chunks = min(count_chunks(len(X), V.size // 4 + 1), 1 + len(X) // _COLUMNS)
    bounds = chunk_bounds(len(X), chunks)

    def task(c):
        np.matmul(X[bounds[c] : bounds[c + 1]], V, out=out[bounds[c] : bounds[c + 1]])

    threads.run("product", task, chunks)
    return out


def symmetric_product(X, Y, threads):
    """Return X'Y where that is symmetric, in float64: one triangle of it, by columns, for both."""
    n, dim = X.shape
    A = np.zeros((dim, dim))
    stretch = 1 + int(LONGEST / (_COLUMNS * dim))

    def task(c):
        here, beyond = slice(c * _COLUMNS, (c + 1) * _COLUMNS), slice(c * _COLUMNS, None)
        for start in range(0, n, stretch):
            breathe()
            A[here, beyond] += X[start : start + stretch, here].T @ Y[start : start + stretch, beyond]

    blocks = -(-dim // _COLUMNS)
    threads.run("matrix", task, blocks)
    for c in range(blocks):
        here, below = slice(c * _COLUMNS, (c + 1) * _COLUMNS), slice((c + 1) * _COLUMNS, None)
        A[here, here] = 0.5 * (A[here, here] + A[here, here].T)
        A[below, here] = A[here, below].T
    return A
