"""How the loss bends: products with its Hessian, over the pairs of the quadratic triplets only.

    H(V) = (1/s) sum over triplets with 0 < alpha < 1 of w_t H_t <H_t, V>

A product costs what an evaluation costs, on far fewer pairs: distances change by delta' V delta, their differences over
s are weights of triplets, and these go into a matrix.
"""

from __future__ import annotations

from copy import copy

import numpy as np

from triscreen.triplets.pairs import WIDE, ListedPairs

# Points for each dimension, up to which it is quicker to turn these once than a matrix four times for each product.
_FEW = 16


class Curvature:
    """The Hessian of the smoothed loss (without lam) at an evaluation.

    Attributes
    ----------
    share : float
        What one product counts as a pass.
    mean : float
        About the mean eigenvalue of the Hessian; 0 where no triplet is quadratic.
    """

    def __init__(self, engine, evaluation):
        self._smoothing = evaluation.sums.smoothing
        triplets, pairs, count = engine.triplets.quadratic_part(evaluation.dist, self._smoothing, engine.threads)
        self._triplets, self._dist = triplets, evaluation.dist[pairs]
        self._cone, self._threads = engine.cone, engine.threads
        self.share = engine.share * triplets.n_pairs / max(1, engine.triplets.n_pairs)
        dim = engine.triplets.dim
        unknowns = dim if evaluation.M.ndim == 1 else dim * (dim + 1) / 2
        weight = triplets.total_weight / triplets.n_triplets if triplets.n_triplets else 0.0
        square = 2 * triplets.typical_square(self._threads)
        self.mean = weight * count * square / (self._smoothing * unknowns)

    def times(self, V):
        """Return H(V)."""
        if not self._triplets.n_pairs:
            return np.zeros_like(V)
        change = self._triplets.changes(self._cone, V, self._threads)
        weights = self._triplets.hessian_weights(self._dist, change, self._smoothing, self._threads)
        return self._cone.assemble(self._triplets, weights, self._threads)

    def within(self, basis):
        """Return the product with the Hessian in the coordinates of a basis (of the cone: into it, out of it, vectors).

        Where there are many dimensions, or few points for each, the points go into the basis once, in place of every V.
        """
        into, out, vectors = basis
        triplets = self._triplets
        many = triplets.dim >= WIDE or triplets.n_points <= _FEW * triplets.dim
        if vectors is None or not many or not isinstance(triplets, ListedPairs):
            return lambda V: into(self.times(out(V)))
        turned = copy(self)
        turned._triplets = triplets.turned(vectors, self._threads)
        return turned.times
