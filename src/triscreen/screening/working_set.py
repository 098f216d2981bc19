"""A tube of metrics in which almost all triplets keep their zone: the working set, and its proof.

A *reference* is a metric whose pair distances, pair weights and A are known over all triplets. Margins are linear in M,
so the distances at any combination of references cost nothing. Around the segment between two such metrics (where we
are, and where we expect to be some lambdas further) lies a tube of some radius, and a triplet whose margin stays above
1 (or below 1 - s) on the whole of it has zero (or linear) loss for **every** M in the tube. The smaller problem over
the other triplets has the same value, gradient and gap as the whole one for every M in the tube: a solution that ends
in it is proven over all triplets without looking at them.

A tube made too narrow on purpose gives a smaller working set; a solution outside it is then proven by the distances of
all pairs (half a pass), which make it the next reference. Fixed triplets that turn out to have another alpha change A
by their pairs only.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from triscreen._kernels.common import LINEAR, ZERO
from triscreen._kernels.weights import strayed_weights
from triscreen._utils.lazy import cached_property
from triscreen.problem.engine import Engine
from triscreen.problem.rounding import gap_error, size, trace
from triscreen.screening.fixing import fix_by_difference, fix_reduction
from triscreen.triplets import Sums

# Pair weights that differ by so little, relative to 1 + their size, are the same but for rounding.
_NOISE = 1e-12


@dataclass(frozen=True, eq=False)
class Reference:
    """A core metric evaluated over all triplets.

    Attributes
    ----------
    lam : float
        The lambda that it solves.
    M, dist, weights, A : arrays
        Where; distances and weights of all pairs; sum_t w_t alpha_t H_t.
    sums : Sums
        Over all triplets.
    error : float
        Bound on |A - its exact value|.
    factor : array or None
        F with M = F F' that the distances came from, where it is at hand.
    """

    lam: float
    M: np.ndarray = field(repr=False)
    dist: np.ndarray = field(repr=False)
    weights: np.ndarray = field(repr=False)
    A: np.ndarray = field(repr=False)
    sums: Sums
    error: float
    factor: np.ndarray | None = field(default=None, repr=False)

    @classmethod
    def at(cls, problem, M, lam, smoothing, A=None, error=0.0):
        """Evaluate all pairs at M (half a pass); A, with a bound of its error, may be known (else another half)."""
        factor = problem.cone.project(M).factor
        dist = problem.distances(factor)
        sums, weights = problem.sweep(dist, smoothing)
        if A is None:
            A, error = problem.assemble(weights), problem.rounding.sum_of_h(sums.alpha)
        return cls(lam, M, dist, weights, A, sums, error, factor)

    def put_right(self, problem, weights, error, squares):
        """Return (this reference with the A of its own weights, pair work), where A was made of other weights.

        ``error`` bounds the error of that A. Fixed triplets may have strayed, and distances that differ in their last
        digits give other alphas where the smoothing is small. Only the pairs whose weights differ are looked at.
        """
        strayed = np.empty(len(weights))
        count, changed, lost = strayed_weights(self.weights, weights, squares, _NOISE, strayed)
        error += lost
        if not count:
            return replace(self, error=error), 0.0
        error += problem.rounding.sum_of_h(changed)
        A = self.A + problem.cone.assemble_few(problem.triplets, strayed, count, problem.threads)
        return replace(self, A=A, error=error), 0.5 * count / problem.triplets.n_pairs

    def evaluate(self, problem, lam):
        """Return (the `Evaluation` over all triplets at some lambda, the rounding of its gap); no pair work."""
        known = vars(self).get("_known")  # what was asked for last: a path asks again
        if known is None or known[0] is not problem or known[1] != lam:
            swept = self.sums, None
            now = problem.evaluate(self.M, self.dist, lam, self.sums.smoothing, swept, self.A, self.factor)
            known = problem, lam, now, gap_error(problem.rounding.reduced(self.error), now, lam)
            object.__setattr__(self, "_known", known)
        return known[2:]

    def margin_error(self, problem):
        """Bound on the error of any margin here."""
        return problem.rounding.margin(self.dist, trace(self.M))


@dataclass(frozen=True, eq=False)
class Tube:
    """All M within ``radius`` of the segment from ``begin`` to ``end``."""

    begin: np.ndarray = field(repr=False)
    end: np.ndarray = field(repr=False)
    radius: float

    @cached_property
    def _axis(self):
        axis = self.end - self.begin
        return axis, float(np.vdot(axis, axis)), size(self.end)

    def holds(self, M):
        """Is M inside, beyond doubt?"""
        (axis, length, far), away = self._axis, M - self.begin
        share = min(1.0, max(0.0, float(np.vdot(away, axis)) / length)) if length > 0 else 0.0
        doubt = 1e-13 * (size(M) + far)
        return size(away - share * axis) + doubt <= self.radius


@dataclass(frozen=True, eq=False)
class WorkingSet:
    """The triplets that may leave their zone, and what is needed to prove a solution over the rest.

    Attributes
    ----------
    engine : Engine
        Over these triplets; the others are fixed.
    pairs : array
        The engine's pairs in the problem.
    fixed : array or None
        Weight that the fixed triplets give to every pair of the problem; None where these are not listed.
    tube : Tube
    by_ranges : (int, int)
        Of the triplets that are fixed, those whose zone L or R was proven beforehand, whatever the tube is.
    """

    engine: Engine = field(repr=False)
    pairs: np.ndarray = field(repr=False)
    fixed: np.ndarray = field(repr=False)
    tube: Tube
    by_ranges: tuple = (0, 0)

    @property
    def is_safe(self):
        """Has its engine the optimum of the whole problem, beyond doubt, before anything is solved?"""
        return not np.isfinite(self.tube.radius)

    @classmethod
    def around(cls, problem, reference, tube, end, error, squares, low, both=True, zones=None):
        """Fix what keeps its zone in the tube; half a pass over what is left.

        Parameters
        ----------
        reference : Reference
            The beginning of the tube.
        end, error : array, float
            Pair distances at the end of the tube, and a bound of the error of a margin at either end.
        squares : array
            |delta|^4 of all pairs.
        low : float
            Margins below it are linear, with the smoothing of the reference and whatever will be used.
        both : bool
            Fix linear triplets too; False: only those of zero loss (the paper's active set).
        zones : int8 array, optional
            Triplets that are decided anyway.
        """
        if not problem.triplets.lists_triplets:
            radii = (tube.radius, tube.radius)
            return cls.of_balls(problem, (reference.dist, end), radii, error, tube, reference.sums.smoothing, low, both)
        selection = problem.triplets.undecided_in(
            (reference.dist, end), squares, tube.radius, error, low, both, zones, problem.threads
        )
        triplets, pairs = problem.triplets.restrict(selection)
        less = problem.restrict(triplets, pairs)
        sums, weights = less.sweep(reference.dist[pairs], reference.sums.smoothing)
        weight = reference.sums.alpha - sums.alpha
        engine = fix_by_difference(less, (sums, weights), reference.A, reference.error, weight)
        fixed = reference.weights.copy()
        fixed[pairs] -= weights
        safe = (0, 0) if zones is None else tuple(int(np.count_nonzero(zones == zone)) for zone in (LINEAR, ZERO))
        return cls(engine, pairs, fixed, tube, safe)

    @classmethod
    def of_balls(cls, problem, ends, radii, error, tube, smoothing, low, both=True):
        """Fix what keeps its zone in two balls, where triplets have no numbers; None: too much would stay.

        ``ends`` are the pair distances at their centres; at the first, fixed triplets have the alphas of their zones.
        """
        offset = problem.rounding.norm_offset
        found = problem.triplets.reduce(ends, radii, error, offset, low, both, smoothing, problem.threads)
        if found.triplets is None:
            return None
        safe = (0, 0) if np.isfinite(tube.radius) else tuple(found.counts)
        return cls(fix_reduction(problem, found), found.pairs, None, tube, safe)

    def prove(self, problem, M, lam, smoothing, A, weights, squares):
        """Return (the `Reference` at M, pair work): whatever the fixed triplets do there.

        A is what the engine has there, made of these weights of its pairs (None: not known).
        """
        if not problem.triplets.lists_triplets:
            return Reference.at(problem, M, lam, smoothing), 1.0
        engine, passes = self.engine, 0.5
        made = Reference.at(problem, M, lam, smoothing, A)
        sums, fresh = engine.sweep(made.dist[self.pairs], smoothing)
        if weights is None:
            weights = fresh
            made = replace(made, A=engine.linear_matrix + engine.assemble(fresh))
            passes += 0.5 * engine.share
        of_all = self.fixed.copy()
        of_all[self.pairs] += weights
        error = engine.rounding.linear_error + engine.rounding.sum_of_h(sums.alpha)
        made, more = made.put_right(problem, of_all, error, squares)
        return made, passes + more
