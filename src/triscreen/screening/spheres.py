"""Spheres that contain the optimal metric M*: one class per theorem of the paper, and one more.

A class is all of its theorem: `at` gives centre and radius by the formulas of exact arithmetic, `safe_radius` enlarges
the radius by what floating point may have done to it, `make` gets what the theorem needs from an engine. `BOUNDS` finds
it by its name. An own sphere is a function that returns a `Sphere`, or a class like those here, put into `BOUNDS`.

Where a theorem takes an evaluation, it is one of the problem whose M* is meant: of all triplets, for any lam; or of a
problem reduced at lam, for that lam only (both problems have the same optimum there). For the hinge, evaluations carry
a *slack* > 0 because their alpha is no subgradient at M; GB, PGB and MID account for it. Q, r are centre and radius,
M(a) = [A]_+/lam is the metric of the dual point.

Rounding: dA and dM are the errors of A and of M's distances, e_gap that of the gap (`triscreen.problem.rounding`
bounds them), and o = 64 s u (|Q| + r) + dM that of the arithmetic on the centre itself. Rules add the errors of the
pair distances to a triplet's margin and enlarge its norm.

References
----------
T. Yoshida, I. Takeuchi, M. Karasuyama, "Safe Triplet Screening for Distance Metric Learning", KDD 2018,
arXiv:1802.03923. Theorems GB, PGB, DGB, CDGB, RPB and RRPB are named as there; MID is ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from triscreen.problem.engine import Engine, Evaluation
from triscreen.problem.rounding import Rounding, U, gap_error, trace
from triscreen.problem.units import FACTOR, METRIC, Units


@dataclass(frozen=True)
class Term:
    """One part of a centre: coefficient * F F', with its pair distances if they are known.

    Attributes
    ----------
    coefficient : float
    factor : array or None
        F; needed unless the distances are known.
    dist : array or None
        Pair distances under F F'.
    trace : float
        |F|_F^2, for the bound on the distances' rounding error.
    """

    coefficient: float
    factor: np.ndarray | None = field(repr=False)
    dist: np.ndarray | None = field(repr=False)
    trace: float


@dataclass(frozen=True)
class Sphere:
    """All X with |X - center| <= radius; M* is one of them.

    Attributes
    ----------
    center : array
        A core element (see `triscreen.problem.engine`), not necessarily in the cone.
    radius : float
    name : str
    terms : tuple of Term, or None
        The centre as a sum, because that is how its pair distances are computed: terms whose distances are already
        known cost nothing. None: it is decomposed when needed.
    normal : array or None
        Factor of P, positive semi-definite: the half-space <P, X> >= 0 contains the cone. P is what a projection just
        cut off, -[.]_-, so that the half-space supports the cone near M*.

    References
    ----------
    Yoshida, Takeuchi, Karasuyama, KDD 2018, arXiv:1802.03923, section 3.2; "mid" and the balls between two solutions
    are ours.

    Examples
    --------
    >>> import numpy as np
    >>> import triscreen as ts
    >>> ts.Sphere(np.eye(2), 0.5, "my bound").radius
    0.5
    """

    center: np.ndarray = field(repr=False)
    radius: float
    name: str = "own"
    terms: tuple[Any, ...] | None = field(default=None, repr=False)
    normal: np.ndarray | None = field(default=None, repr=False)

    from_other_lambda = False  # looks from a solution at another lambda: used once, and at the start only

    @classmethod
    def make(
        cls, engine: Engine, evaluation: Evaluation, lam: float, lam0: float | None = None
    ) -> tuple[Sphere, float]:
        """Return (the sphere, passes spent) from an engine's evaluation; lam0: the lambda that it solves, if any."""
        return cls.at(engine.cone, evaluation, lam), 0.0

    def safe_radius(self, rounding: Rounding, evaluation: Evaluation, lam: float) -> float:
        """Return a radius with the exact M* inside, where only the arithmetic on the centre is in doubt: r + o.

        Whose radius is in doubt too has its own. All numbers are those inside (`triscreen.problem.units`).
        """
        return self.radius + self.arithmetic(rounding, evaluation)

    def arithmetic(self, rounding: Rounding, evaluation: Evaluation) -> float:
        """Return o: what rounding may have done to the centre."""
        size = float(np.linalg.norm(self.center))
        return 64 * len(self.center) * U * (size + self.radius) + rounding.element(evaluation.M)

    def into(self, units: Units) -> Sphere:
        """Return a user's sphere as it is inside."""
        if not units.exponent:
            return self
        center, radius = units.into(self.center, METRIC), units.into(self.radius, METRIC)
        return replace(self, center=center, radius=radius, terms=None, normal=units.into(self.normal, FACTOR))


class GB(Sphere):
    """Gradient bound (Theorem GB): Q = M - grad P(M)/(2 lam), r = |grad P(M)|/(2 lam); hinge: r^2 + slack/lam.

    Safe: r + dA/lam + o.
    """

    @classmethod
    def at(cls, cone, evaluation, lam):
        """Return the sphere; grad P(M) = lam (M - target)."""
        M, target, point = evaluation.M, evaluation.target(lam), evaluation.dual_point
        radius = np.sqrt(_square(M - target) / 4 + evaluation.slack / lam)
        minus = _term(-0.5 / lam, cone.negative_factor(point))
        center = (M + target) / 2
        terms = (_at(evaluation, 0.5), _projected(evaluation, 0.5, lam), minus)
        return cls(center, float(radius), "gb", terms, normal_of(cone, cone.project(center)))

    def safe_radius(self, rounding, evaluation, lam):
        """r + dA/lam + o."""
        return self.radius + _error_of_a(rounding, evaluation, lam) + self.arithmetic(rounding, evaluation)


class PGB(Sphere):
    """Projected gradient bound (Theorem PGB): [Q_GB]_+, r^2 = |M - [Q]_+|^2 + 2 <M, -[Q]_->; zero at the optimum.

    Safe: sqrt(r^2 + 2 r_GB (dA/lam + o) + (dA/lam + o)^2) + o: the enlarged GB, projected.
    """

    @classmethod
    def at(cls, cone, evaluation, lam):
        """Return the sphere (hinge: r^2 + slack/lam)."""
        projection = cone.project((evaluation.M + evaluation.target(lam)) / 2)
        square = _square(evaluation.M - projection.plus) + 2 * cone.cut_off_inner(projection, evaluation.M)
        radius = float(np.sqrt(square + evaluation.slack / lam))
        terms = (_term(1.0, projection.factor),)
        return cls(projection.plus, radius, "pgb", terms, normal_of(cone, projection))

    def safe_radius(self, rounding, evaluation, lam):
        """sqrt(r^2 + 2 r_GB (dA/lam + o) + (dA/lam + o)^2) + o."""
        r, dA, own = self.radius, _error_of_a(rounding, evaluation, lam), self.arithmetic(rounding, evaluation)
        gb = 0.5 * float(np.linalg.norm(evaluation.M - evaluation.target(lam))) + np.sqrt(evaluation.slack / lam)
        return float(np.sqrt(r * r + 2 * gb * (dA + own) + (dA + own) ** 2)) + own


class DGB(Sphere):
    """Duality gap bound (Theorem DGB): Q = M, r^2 = 2 (P(M) - D(a)) / lam.

    Safe: sqrt(r^2 + 2 e_gap/lam) + o.
    """

    @classmethod
    def at(cls, cone, evaluation, lam):
        """Return the sphere."""
        gap = evaluation.slack + cone.gap(evaluation.M, evaluation.dual_point, lam)
        normal = normal_of(cone, evaluation.dual_point)
        return cls(evaluation.M, float(np.sqrt(2 * gap / lam)), "dgb", (_at(evaluation, 1.0),), normal)

    def safe_radius(self, rounding, evaluation, lam):
        """sqrt(r^2 + 2 e_gap/lam) + o."""
        r, error = self.radius, gap_error(rounding, evaluation, lam)
        return float(np.sqrt(r * r + 2 * error / lam)) + self.arithmetic(rounding, evaluation)


class CDGB(Sphere):
    """Constrained duality gap bound (Theorem CDGB): Q = M(a), r^2 = (P(M(a)) - D(a)) / lam.

    Safe: sqrt(r^2 + e/lam) + dA/lam + o, e = 2 W (error of a margin under M(a)) + |M(a)| dA + dA^2/(2 lam).
    """

    @classmethod
    def at(cls, cone, evaluation, lam, gap, dist=None):
        """Return the sphere; gap: P(M(a)) - D(a), dist: the pair distances under [A]_+, if they are known."""
        term = replace(_projected(evaluation, 1.0, lam), dist=dist)
        normal = normal_of(cone, evaluation.dual_point)
        return cls(evaluation.projected(lam), float(np.sqrt(gap / lam)), "cdgb", (term,), normal)

    @classmethod
    def make(cls, engine, evaluation, lam, lam0=None):
        """Half a pass for the distances under M(a), and a sweep there."""
        triplets, smoothing = engine.triplets, evaluation.sums.smoothing
        dist = engine.distances(evaluation.dual_point.factor)
        if triplets.lists_triplets:
            gap = triplets.cross_slack(evaluation.dist, smoothing, dist / lam, engine.loss.gamma, engine.threads)
            return cls.at(engine.cone, evaluation, lam, gap, dist), 0.5 * engine.share
        # Both objectives subtracted: their slack, triplet by triplet, is not known.
        there = engine.evaluate(evaluation.projected(lam), dist / lam, lam, smoothing)
        size = abs(there.primal) + abs(evaluation.dual) + engine.linear_weight
        if engine.prior is not None:  # its part of both is a difference of squares
            size += lam * (_square(engine.prior.core) + _square(there.M))
        gap = max(0.0, there.primal - evaluation.dual) + 1e-12 * size
        return cls.at(engine.cone, evaluation, lam, gap, dist), engine.share

    def safe_radius(self, rounding, evaluation, lam):
        """sqrt(r^2 + e/lam) + dA/lam + o."""
        r, (term,), dA = self.radius, self.terms, _error_of_a(rounding, evaluation, lam)
        margin = rounding.margin(term.dist, term.trace) * term.coefficient
        size = float(np.linalg.norm(self.center))
        error = 2 * rounding.triplets.total_weight * margin + size * dA * lam + 0.5 * dA * dA * lam
        return float(np.sqrt(r * r * (1 + 1e-13) + error / lam)) + dA + self.arithmetic(rounding, evaluation)


class RPB(Sphere):
    """Regularization path bound (Theorem RPB), from the exact optimum M0 at lam0.

    Q = (lam0 + lam)/(2 lam) M0, r = |lam0 - lam|/(2 lam) |M0|; with a prior N the same of M0 - N, around N.
    Safe: r + o, if the optimum were exact.
    """

    from_other_lambda = True

    @classmethod
    def at(cls, M0, lam0, lam, prior=None):
        """Return the sphere."""
        center, away = _from_prior(M0, (lam0 + lam) / (2 * lam), prior)
        return cls(center, abs(lam0 - lam) / (2 * lam) * float(np.linalg.norm(away)), "rpb")

    @classmethod
    def make(cls, engine, evaluation, lam, lam0=None):
        """Believe the evaluation to be at the optimum for lam0."""
        return cls.at(evaluation.M, lam0, lam, engine.prior), 0.0


class RRPB(Sphere):
    """Relaxed regularization path bound (Theorem RRPB), from M0 with |M0 - M0*| <= eps at lam0.

    Q = (lam0 + lam)/(2 lam) M0, r = |lam0 - lam|/(2 lam) |M0| + (|lam0 - lam| + lam0 + lam)/(2 lam) eps; with a prior N
    the same of M0 - N, around N. Safe: r + o + (|lam0 - lam|/lam) |dN|, with an eps that is made from the gap at lam0
    plus its error (by DGB), and dN the error of N.
    """

    from_other_lambda = True

    @classmethod
    def at(cls, M0, lam0, lam, eps, dist=None, normal=None, prior=None):
        """Return the sphere; dist: the pair distances under M0, if they are known."""
        change, scale = abs(lam0 - lam), (lam0 + lam) / (2 * lam)
        center, away = _from_prior(M0, scale, prior)
        radius = change / (2 * lam) * float(np.linalg.norm(away)) + (change + lam0 + lam) / (2 * lam) * eps
        terms = None if dist is None else (Term(scale, None, dist, trace(M0)),)
        if prior is not None:
            radius += change / lam * prior.error
            terms = None if dist is None else (*terms, _term(1 - scale, prior.factor))
        return cls(center, radius, "rrpb", terms, normal)

    @classmethod
    def make(cls, engine, evaluation, lam, lam0=None):
        """Take eps from the gap at lam0, which an evaluation over all triplets knows."""
        evaluation = engine.at_lambda(evaluation, lam0)
        M0, cone, rounding = evaluation.M, engine.cone, engine.rounding
        gap = evaluation.slack + cone.gap(M0, evaluation.dual_point, lam0)
        eps = np.sqrt(2 * (gap + gap_error(rounding, evaluation, lam0)) / lam0) + rounding.element(M0)
        normal = normal_of(cone, evaluation.dual_point)
        return cls.at(M0, lam0, lam, float(eps), evaluation.dist, normal, engine.prior), 0.0


class MID(Sphere):
    """The sphere between M and M(a): add P(M) - P* >= (lam/2)|M - M*|^2 and P* - D(a) >= (lam/2)|M(a) - M*|^2.

    Q = (M + M(a))/2 and r^2 = gap/lam - |M - M(a)|^2/4, which is (slack + <-[A]_-, M>)/lam + |M - M(a)|^2/4. It lies
    inside DGB, equals RPB at an optimum for another lambda, and is never larger than RRPB where M = M(a).

    Safe: sqrt(r^2 + e_gap/lam) + dA/(2 lam) + o.
    """

    @classmethod
    def at(cls, cone, evaluation, lam):
        """Return the sphere."""
        M, there, point = evaluation.M, evaluation.projected(lam), evaluation.dual_point
        square = (evaluation.slack + cone.cut_off_inner(point, M)) / lam
        square += _square(M - there) / 4
        terms = (_at(evaluation, 0.5), _projected(evaluation, 0.5, lam))
        return cls((M + there) / 2, float(np.sqrt(square)), "mid", terms, normal_of(cone, point))

    def safe_radius(self, rounding, evaluation, lam):
        """sqrt(r^2 + e_gap/lam) + dA/(2 lam) + o."""
        r, error, dA = self.radius, gap_error(rounding, evaluation, lam), _error_of_a(rounding, evaluation, lam)
        return float(np.sqrt(r * r + error / lam)) + 0.5 * dA + self.arithmetic(rounding, evaluation)


BOUNDS = {"gb": GB, "pgb": PGB, "dgb": DGB, "cdgb": CDGB, "rpb": RPB, "rrpb": RRPB, "mid": MID}


def looks_from_other_lambda(bound):
    """Is this one of `Screening.bounds` a sphere from the solution for another lambda?"""
    return not callable(bound) and BOUNDS[bound].from_other_lambda


def split(cone, center):
    """Return the terms of any centre: its positive part minus its negative part."""
    projection = cone.project(center)
    return _term(1.0, projection.factor), _term(-1.0, cone.negative_factor(projection))


def normal_of(cone, projection):
    """Return the factor of what a projection cut off, or None if that is nothing but rounding."""
    factor = cone.negative_factor(projection)
    kept, cut = np.linalg.norm(projection.plus), np.linalg.norm(projection.negative[0])
    return factor if cut > 1e-10 * kept else None


def _from_prior(M0, scale, prior):
    """Return (N + scale (M0 - N), M0 - N)."""
    if prior is None:
        return scale * M0, M0
    return prior.core + scale * (M0 - prior.core), M0 - prior.core


def _square(M):
    return float(np.vdot(M, M))


def _term(coefficient, factor):
    return Term(coefficient, factor, None, float(np.vdot(factor, factor)))


def _at(evaluation, coefficient):
    return Term(coefficient, None, evaluation.dist, trace(evaluation.M))


def _projected(evaluation, coefficient, lam):
    """Return coefficient * M(a) as a term."""
    return _term(coefficient / lam, evaluation.dual_point.factor)


def _error_of_a(rounding, evaluation, lam):
    """Bound on the error of the target."""
    return rounding.pull(evaluation.pull, evaluation.sums.alpha, lam) / lam
