"""Some anchors of a set that is never listed: from inner products to pairs, and from weights to rows.

Private to `triscreen.triplets.all`.
"""

from __future__ import annotations

import numpy as np

from triscreen._kernels.ordered import decide_ordered, gather_rows, scatter_rows, sweep_ordered


class Block:
    """Some anchors of a set, their pairs listed for as long as it takes: anchor by anchor, positives first.

    Attributes
    ----------
    matrix : array, one row per anchor and one column per point
        Inner products, then weights of pairs.
    rows : array
        Sums of the weights of each anchor's pairs.
    """

    def __init__(self, triplets, anchors, columns=None):
        self.anchors, self._columns = anchors, columns
        self._ends, self._near = triplets._ends, triplets._near
        self._anchor_weights = triplets.anchor_weights[anchors]
        self.ptr = np.concatenate([[0], np.cumsum((triplets._n_positive + triplets._n_negative)[anchors])])
        self.split = self.ptr[:-1] + triplets._n_positive[anchors]
        self.matrix = np.empty((len(anchors), triplets.n_points))
        self.weights = np.empty(self.ptr[-1])

    def distances(self, dist):
        """Return the distances of the pairs."""
        dist.products(self.anchors, self.matrix)
        return self._gathered(self.matrix, dist.squares)

    def others(self):
        """Return the other points of the pairs: the same way, with numbers instead of distances."""
        n = self.matrix.shape[1]
        numbers = np.tile(-0.5 * np.arange(n), (len(self.anchors), 1))
        return self._gathered(numbers, np.zeros(n)).astype(np.int32)

    def _gathered(self, products, squares):
        out = np.empty(self.ptr[-1])
        gather_rows(products, squares, self.anchors, self._ends, self._near, self.ptr, out)
        return out

    def kernel(self, kernel, dists, grains, *sums):
        """Run a kernel that writes weights, and put these into the matrix."""
        kernel(*dists, self.ptr, self.split, self._anchor_weights, *grains, self.weights, *sums, 0, len(self.anchors))
        self._scatter()

    def decide(self, arguments, counts):
        """Return which pairs have undecided triplets."""
        used = np.empty(self.ptr[-1], dtype=bool)
        decide_ordered(*arguments, self.ptr, self.split, used, counts, 0, len(self.anchors))
        return used

    def fix(self, dist, used, numbers, grains, sums, staying):
        """Put the weights of the triplets without two used pairs into the matrix: of all, less of those that stay."""
        arguments = (self._anchor_weights, *grains)
        sweep_ordered(dist, self.ptr, self.split, *arguments, self.weights, sums, 0, len(self.anchors))
        ptr = np.concatenate([[0], np.cumsum(numbers.sum(axis=1))])
        part = np.empty(ptr[-1])
        sweep_ordered(dist[used], ptr, ptr[:-1] + numbers[:, 0], *arguments, part, staying, 0, len(self.anchors))
        self.weights[used] -= part
        self._scatter()

    def _scatter(self):
        self.rows = np.empty(len(self.anchors))
        places = (self.anchors, self._ends, self._near, self.ptr)
        scatter_rows(self.weights, *places, self.matrix, self._columns, self.rows)

    def count(self, used):
        """Return how many positive and negative pairs of each anchor are used."""
        places = np.stack([self.ptr[:-1], self.split], axis=1).ravel()
        return np.add.reduceat(used, places, dtype=np.int64).reshape(-1, 2)
