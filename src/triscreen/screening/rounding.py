"""What rounding can do to margins, norms, gaps and radii, and how a rule stays safe in spite of it.

u = 2^-53, s = dimensions of the core, d = features of X, |x| the Euclidean norm of a (centred) point, F F' a term of a
sphere's centre. Every bound is a constant times u times magnitudes, valid for any order of summation.

* **Points.** The core points differ from the exact ones by at most k u |x|, k = 4, or 4 + 2d where they were rotated.
* **Distances** are |G_a - G_b|^2 with G = X F, a product of length s. With E = (2s + 16 + k) u |F|_F (|x_a| + |x_b|),
  a distance D is off by at most 2 sqrt(D) E + E^2 + (2s + 16) u D. This also covers subtracting two of them, and convex
  combinations of distances (|F|_F^2 is the trace of the combination).
* **Norms** |H| (a sum of non-negative terms) are off by at most (2s + 16) u |H| + 16 k' u x^2 with x the largest |x|
  and k' = 2s + 16 + k.
* **A** = sum_t w_t a_t H_t through pair weights: each entry is a sum over the triplets of a pair, the pairs of a
  point and
  the points, so |dA| <= K u 2 (sum_t w_t a_t) g with g the largest |x_a - x_b| (|x_a| + |x_b|) over pairs and K =
  points +
  most pairs at a point + most triplets at a pair + 8s + k; constant parts of a reduced problem add the bound they were
  made with, and the eigendecomposition 32 s u |A|. The alphas themselves are exact: any number in [0, 1] is feasible.
* **Gap.** As a function of A it has the gradient M(a) - M, so it is off by |M - M(a)| |dA| + |dA|^2/(2 lam) +
  |[A]_-| |dM|
  with |dM| <= 32 s u trace(M) (between M and the factor its distances came from); the alphas, made from rounded margins
  off by e, cost another 3 W e^2/g (smoothed hinge, W the weight of all triplets) or W e (hinge).

Radii are enlarged by what these errors do to the sphere's theorem; rules add the distances' errors to the margin and
enlarge the norms.
"""

from __future__ import annotations

import numpy as np

U = 2.0**-53


class Rounding:
    """Bounds for one engine; ``point_error`` is k above, ``linear_error`` bounds the error of its constant matrix."""

    def __init__(self, engine, point_error, linear_error=0.0):
        self.engine = engine
        self.point_error = point_error
        self.linear_error = linear_error
        triplets, dim = engine.triplets, engine.points.shape[1]
        sizes = np.sqrt(np.einsum("ij,ij->i", engine.points, engine.points))
        self._reach = sizes[triplets.first] + sizes[triplets.second]
        self._distance = (2 * dim + 16 + point_error) * U
        self._relative = (2 * dim + 16) * U
        largest = float(sizes.max(initial=0.0))
        self.norm_factor = 1 + self._relative
        self.norm_offset = 16 * self._distance * largest**2
        euclid = triplets.distances(engine.points, engine.threads)
        terms = len(engine.points) + triplets.most_pairs_at_a_point() + triplets.most_triplets_at_a_pair()
        self._matrix = 2 * (terms + 8 * dim + point_error) * U * float((np.sqrt(euclid) * self._reach).max(initial=0.0))
        self._dim = dim

    def distances(self, dist, trace):
        """Bound on the error of pair distances under F F' with |F|_F^2 = trace."""
        step = self._distance * np.sqrt(max(trace, 0.0)) * self._reach
        return 2 * np.sqrt(np.maximum(dist, 0.0)) * step + step * step + self._relative * np.abs(dist)

    def element(self, M):
        """Bound on |M - F F'| for the factor that M's distances came from."""
        return 32 * self._dim * U * float(M.sum() if M.ndim == 1 else np.trace(M))

    def matrix(self, evaluation):
        """Bound on |A - its exact value| in the Frobenius norm."""
        return (
            self.matrix_of(evaluation.sums.alpha)
            + self.linear_error
            + 32 * self._dim * U * float(np.linalg.norm(evaluation.A))
        )

    def matrix_of(self, weight):
        """Bound on the error of sum_t w_t H_t over triplets of that weight."""
        return self._matrix * weight

    def gap(self, evaluation, lam):
        """Bound on how much the exact gap at lam may exceed the computed one."""
        dA = self.matrix(evaluation)
        plus = evaluation.dual_point.plus
        away = float(np.linalg.norm(evaluation.M - plus / lam))
        minus = float(np.linalg.norm(evaluation.A - plus))
        margin = 2 * float(self.distances(evaluation.dist, max(0.0, _trace(evaluation.M))).max(initial=0.0))
        weight, gamma = self.engine.triplets.total_weight, self.engine.loss.gamma
        slack = weight * margin if gamma == 0 else 3 * weight * (margin + 4 * U * gamma) ** 2 / gamma
        computed = evaluation.slack + self.engine.cone.gap(evaluation.M, evaluation.dual_point, lam)
        return away * dA + dA * dA / (2 * lam) + minus * self.element(evaluation.M) + slack + 1e-8 * computed

    def radius(self, sphere, evaluation, lam):
        """Return the sphere's radius, enlarged so that the exact M* is inside."""
        dM = self.element(evaluation.M)
        own = 64 * self._dim * U * (float(np.linalg.norm(sphere.center)) + sphere.radius) + dM
        dA = self.matrix(evaluation) / lam
        r = sphere.radius
        if sphere.name == "gb":
            return r + dA + own
        if sphere.name == "pgb":
            gb = 0.5 * float(np.linalg.norm(evaluation.M - evaluation.A / lam)) + np.sqrt(evaluation.slack / lam)
            return float(np.sqrt(r * r + 2 * gb * (dA + own) + (dA + own) ** 2)) + own
        if sphere.name == "dgb":
            return float(np.sqrt(r * r + 2 * self.gap(evaluation, lam) / lam)) + own
        if sphere.name == "mid":
            return float(np.sqrt(r * r + self.gap(evaluation, lam) / lam)) + 0.5 * dA + own
        if sphere.name == "cdgb":
            Ma, term = sphere.center, sphere.terms[0]
            margin = 2 * float(self.distances(term.dist, term.trace).max(initial=0.0)) * term.coefficient
            cost = (
                2 * self.engine.triplets.total_weight * margin
                + float(np.linalg.norm(Ma)) * dA * lam
                + dA * dA * lam / 2
            )
            return float(np.sqrt(r * r * (1 + 1e-8) + cost / lam)) + dA + own
        return r + own


def _trace(M):
    return float(M.sum() if M.ndim == 1 else np.trace(M))
