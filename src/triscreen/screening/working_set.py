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

from triscreen._kernels.weights import strayed_weights
from triscreen.problem.engine import Engine
from triscreen.problem.rounding import gap_error, trace
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
    """

    lam: float
    M: np.ndarray = field(repr=False)
    dist: np.ndarray = field(repr=False)
    weights: np.ndarray = field(repr=False)
    A: np.ndarray = field(repr=False)
    sums: Sums
    error: float

    @classmethod
    def at(cls, problem, M, lam, smoothing, A=None, error=0.0):
        """Evaluate all pairs at M (half a pass); A, with a bound of its error, may be known (else another half)."""
        dist = problem.distances(problem.cone.project(M).factor)
        sums, weights = problem.sweep(dist, smoothing)
        if A is None:
            A, error = problem.assemble(weights), problem.rounding.sum_of_h(sums.alpha)
        return cls(lam, M, dist, weights, A, sums, error)

    def put_right(self, problem, weights, error, squares):
        """Return (this reference with the A of its own weights, pair work), where A was made of other weights.

        ``error`` bounds the error of that A. Fixed triplets may have strayed, and distances that differ in their last
        digits give other alphas where the smoothing is small. Only the pairs whose weights differ are looked at.
        """
        strayed = np.empty(len(weights))
        count, size, lost = strayed_weights(self.weights, weights, squares, _NOISE, strayed)
        error += lost
        if not count:
            return replace(self, error=error), 0.0
        error += problem.rounding.sum_of_h(size)
        return replace(self, A=self.A + problem.assemble(strayed), error=error), 0.5 * count / problem.triplets.n_pairs

    def evaluate(self, problem, lam):
        """Return (the `Evaluation` over all triplets at some lambda, the rounding of its gap); no pair work."""
        evaluation = problem.evaluate(self.M, self.dist, lam, self.sums.smoothing, (self.sums, None), self.A)
        return evaluation, gap_error(problem.rounding.reduced(self.error), evaluation, lam)

    def margin_error(self, problem):
        """Bound on the error of any margin here."""
        return problem.rounding.margin(self.dist, trace(self.M))


@dataclass(frozen=True, eq=False)
class Tube:
    """All M within ``radius`` of the segment from ``begin`` to ``end``."""

    begin: np.ndarray = field(repr=False)
    end: np.ndarray = field(repr=False)
    radius: float

    def holds(self, M):
        """Is M inside, beyond doubt?"""
        axis, away = self.end - self.begin, M - self.begin
        length = float(np.vdot(axis, axis))
        share = min(1.0, max(0.0, float(np.vdot(away, axis)) / length)) if length > 0 else 0.0
        doubt = 1e-13 * (float(np.linalg.norm(M)) + float(np.linalg.norm(self.end)))
        return float(np.linalg.norm(away - share * axis)) + doubt <= self.radius


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
    """

    engine: Engine = field(repr=False)
    pairs: np.ndarray = field(repr=False)
    fixed: np.ndarray = field(repr=False)
    tube: Tube

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
        return cls(engine, pairs, fixed, tube)

    @classmethod
    def of_balls(cls, problem, ends, radii, error, tube, smoothing, low, both=True):
        """Fix what keeps its zone in two balls, where triplets have no numbers; None: too much would stay.

        ``ends`` are the pair distances at their centres; at the first, fixed triplets have the alphas of their zones.
        """
        offset = problem.rounding.norm_offset
        found = problem.triplets.reduce(ends, radii, error, offset, low, both, smoothing, problem.threads)
        if found.triplets is None:
            return None
        return cls(fix_reduction(problem, found), found.pairs, None, tube)

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
