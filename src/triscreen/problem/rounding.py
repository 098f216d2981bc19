"""What rounding can do to distances, margins, norms and gaps.

u = 2^-53, s = dimensions of the core, d = features of X, |x| the Euclidean norm of a (centred) point, M = F F'.
Every bound is a constant times u times magnitudes, valid for any order of summation.

* **Points.** The core points differ from the exact ones by at most k u |x|, k = 4, or 4 + 2d where they were rotated.
* **Distances** are |G_a - G_b|^2 with G = X F, a product of length s. With E = (2s + 16 + k) u |F|_F (|x_a| + |x_b|),
  a distance D is off by at most 2 sqrt(D) E + E^2 + (2s + 16) u D. This also covers subtracting two of them, and convex
  combinations of distances (|F|_F^2 is the trace of the combination).
* **Norms** |H| (a sum of non-negative terms) are off by at most (2s + 16) u |H| + 16 k' u x^2 with x the largest |x|
  and k' = 2s + 16 + k.
* **A** = sum_t w_t a_t H_t through pair weights: an entry is a sum over the triplets of a pair, the pairs of a point
  and the points, so |dA| <= 2 K u (sum_t w_t a_t) g with g the largest extent of a pair (`ListedPairs.extent`) and
  K = points + most pairs at a point + most triplets at a pair + 8s + k; half as much again where one triangle of A
  stands for both, which may add a factor of sqrt(2). Constant parts of a reduced problem add the bound they were made
  with, the eigendecomposition adds 32 s u |A|. The alphas are exact: any number in [0, 1] will do.
  A prior N with an error dN (`triscreen.problem.prior`) makes it |dA| + lam |dN| of A + lam N, which then stands for A.
* **Gap.** As a function of A it has the gradient M(a) - M, so it is off by
  |M - M(a)| |dA| + |dA|^2/(2 lam) + |[A]_-| |dM|, with |dM| <= 32 s u trace(M) between M and the factor that its
  distances came from. Alphas from margins that are off by e cost another 3 W e^2/g (smoothed hinge, W the weight of all
  triplets) or W e (hinge).

`triscreen.screening.spheres` says what these errors do to each radius, `triscreen.screening.rules` to decisions.
"""

from __future__ import annotations

import math
from copy import copy
from typing import Any

import numpy as np

from triscreen._kernels.weights import add_distances
from triscreen.triplets.pairs import WIDE

U = 2.0**-53


class Rounding:
    """Bounds for the numbers of one engine.

    Parameters
    ----------
    triplets : TripletSet
    loss, cone
    point_error : float
        k above.
    threads : Threads
    prior_error : float
        |dN| above.
    """

    def __init__(self, triplets, loss, cone, point_error, threads, prior_error=0.0):
        self.triplets, self.loss, self.cone, self._threads = triplets, loss, cone, threads
        self.prior_error = prior_error
        self.linear_error = 0.0
        dim, largest = triplets.dim, float(np.sqrt(triplets.largest_square))
        self._largest = largest
        self._distance = (2 * dim + 16 + point_error) * U
        self._relative = (2 * dim + 16) * U
        self.norm_factor = 1 + self._relative
        self.norm_offset = 16 * self._distance * largest**2
        terms = triplets.n_points + triplets.most_pairs_at_a_point() + triplets.most_triplets_at_a_pair()
        self._reach = triplets.reach()
        if self._reach is not None:
            self._farthest = float(self._reach.max(initial=0.0))
        triangles = 2 if dim < WIDE else 3
        self._matrix = triangles * (terms + 8 * dim + point_error) * U * triplets.extent(threads)
        self._dim, self._point_error = dim, point_error

    def reduced(self, linear_error, triplets=None, pairs=None):
        """Return the bounds for an engine whose constant matrix is off by linear_error.

        ``triplets``, ``pairs``: over that smaller set, with these pairs of ours. What holds for all pairs and points
        holds for some of them.
        """
        less = copy(self)
        if triplets is not None:
            less.triplets = triplets
            if self._reach is not None:
                less._reach = self._reach[pairs]
            elif triplets.lists_pairs:
                less = Rounding(triplets, self.loss, self.cone, self._point_error, self._threads, self.prior_error)
        less.linear_error = linear_error
        return less

    def distances(self, dist, trace):
        """Bound on the error of pair distances under F F' with |F|_F^2 = trace."""
        step = self._distance * np.sqrt(max(trace, 0.0)) * self._reach
        return 2 * np.sqrt(np.maximum(dist, 0.0)) * step + step * step + self._relative * np.abs(dist)

    def add_distances(self, dist, trace, coefficient, values, errors):
        """Add coefficient times these distances to values, and the bound on the error of that to errors."""
        step = self._distance * np.sqrt(max(trace, 0.0))
        add_distances(dist, self._reach, coefficient, step, self._relative, values, errors)

    def element(self, M):
        """Bound on |M - F F'| for the factor that M's distances came from (a core with a prior: of all of M, too)."""
        return 32 * self._dim * U * trace(M) + self.prior_error

    def sum_of_h(self, weight):
        """Bound on the error of sum_t w_t a_t H_t with sum_t w_t a_t = weight."""
        return self._matrix * weight

    def matrix(self, A, weight):
        """Bound on |A - its exact value|, the eigendecomposition of A included."""
        return self.sum_of_h(weight) + self.linear_error + 32 * self._dim * U * size(A)

    def pull(self, pull, weight, lam):
        """Bound on |A + lam N - its exact value|, its eigendecomposition included."""
        return self.matrix(pull, weight) + lam * self.prior_error

    def margin(self, dist, trace):
        """Bound on the error of any margin under F F' (by the largest distance and the farthest pair)."""
        triplets, gamma = self.triplets, self.loss.gamma
        if self._reach is None:
            error = dist.doubt * self._distance * self._largest**2 * dist.size
            return error + triplets.quantum(dist.largest, gamma)
        longest = float(dist.max(initial=0.0))
        step = self._distance * np.sqrt(max(trace, 0.0)) * self._farthest
        return 2 * (2 * np.sqrt(longest) * step + step * step + self._relative * longest) + triplets.quantum(
            longest, gamma
        )

    def margin_within(self, trace):
        """Bound on the error of any margin under F F' with |F|_F^2 = trace, whatever the distances; listed pairs."""
        return self.margin(np.array([trace * self._farthest**2]), trace)

    def gap(self, M, pull, plus, dist, gap, weight, lam, own_alpha):
        """Bound on how much the exact gap may exceed the computed one.

        Parameters
        ----------
        M, pull, plus, dist : arrays
            Where; A + lam N and its projection; the pair distances under M.
        gap : float
            As computed.
        weight : float
            sum_t w_t a_t, or more.
        own_alpha : bool
            Do the alphas come from the margins of M by the loss's own gamma?
        """
        dA = self.pull(pull, weight, lam)
        away, minus = size(M - plus / lam), size(pull - plus)
        e = self.margin(dist, max(0.0, trace(M)))
        total, gamma = self.triplets.total_weight, self.loss.gamma
        slack = 3 * total * (e + 4 * U * gamma) ** 2 / gamma if own_alpha else total * e
        return away * dA + dA * dA / (2 * lam) + minus * self.element(M) + slack + 1e-13 * gap


def gap_error(rounding: Rounding, evaluation: Any, lam: float) -> float:
    """Return by how much the exact gap of an evaluation at lam may exceed the computed one, at most.

    Parameters
    ----------
    rounding : Rounding
        What the ``safe_radius`` of a sphere is given.
    evaluation : Evaluation
        Of a metric.
    lam : float
        Where it was made.

    Returns
    -------
    float

    References
    ----------
    docs/screening.md, "An own sphere, an own rule"; ours.

    Examples
    --------
    A ball with the radius of the gap, safe in floating point:

    >>> import triscreen as ts
    >>> from triscreen.problem.rounding import gap_error
    >>> class SafeGap(ts.Sphere):
    ...     @classmethod
    ...     def at(cls, cone, evaluation, lam):
    ...         gap = evaluation.slack + cone.gap(evaluation.M, evaluation.dual_point, lam)
    ...         return cls(evaluation.M, (2 * gap / lam) ** 0.5, "safe gap")
    ...     def safe_radius(self, rounding, evaluation, lam):
    ...         more = 2 * gap_error(rounding, evaluation, lam) / lam
    ...         return (self.radius**2 + more) ** 0.5 + self.arithmetic(rounding, evaluation)
    >>> problem = ts.Problem([[0.0], [1.0], [3.0]], ts.given_triplets([[0, 1, 2]]))
    >>> ts.solve(problem, 1.0, screening=ts.Screening(SafeGap.at, every=1)).converged
    True
    """
    gap = evaluation.gap
    if evaluation.at != lam:
        gap = evaluation.slack + rounding.cone.gap(evaluation.M, evaluation.dual_point, lam)
    own = evaluation.sums.smoothing == rounding.loss.gamma
    plus, weight = evaluation.dual_point.plus, evaluation.sums.alpha
    return rounding.gap(evaluation.M, evaluation.pull, plus, evaluation.dist, gap, weight, lam, own)


def trace(M):
    """Return the trace of a core element."""
    return float(M.sum() if M.ndim == 1 else M.trace())


def size(M):
    """Return the norm of a core element."""
    return math.sqrt(np.vdot(M, M))
