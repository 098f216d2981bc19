"""Spheres that contain the optimal metric M*, one function per theorem of the paper, and one more.

The formulas are those of exact arithmetic; `triscreen.screening.rounding` makes a radius safe in floating point.
Where a function takes an evaluation, it is one of the problem whose M* is meant: of all triplets, for any lam; or of a
problem reduced at lam, for that lam only (both problems have the same optimum there). For the hinge, evaluations carry
a *slack* > 0 because their alpha is no subgradient at M; GB, PGB and MID account for it.

A centre is kept as a sum of coefficient * F F', because that is how its pair distances are computed: terms whose
distances are already known cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from triscreen.problem.units import FACTOR, METRIC

BOUNDS = ("gb", "pgb", "dgb", "cdgb", "rpb", "rrpb", "mid")


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
        The centre as a sum; None: it is decomposed when needed.
    normal : array or None
        Factor of P, positive semi-definite: the half-space <P, X> >= 0 contains the cone. P is what a projection just
        cut off, -[.]_-, so that the half-space supports the cone near M*.
    """

    center: np.ndarray = field(repr=False)
    radius: float
    name: str = "own"
    terms: tuple | None = field(default=None, repr=False)
    normal: np.ndarray | None = field(default=None, repr=False)

    def into(self, units):
        """Return a user's sphere as it is inside."""
        if not units.exponent:
            return self
        center, radius = units.into(self.center, METRIC), units.into(self.radius, METRIC)
        return Sphere(center, radius, self.name, None, units.into(self.normal, FACTOR))


def trace(M):
    """Trace of a core element."""
    return float(M.sum() if M.ndim == 1 else np.trace(M))


def gb(cone, evaluation, lam):
    """Gradient bound (Theorem GB): Q = M - grad P(M)/(2 lam), r = |grad P(M)|/(2 lam); hinge: r^2 + slack/lam."""
    M, A = evaluation.M, evaluation.A
    radius = np.sqrt(_square(M - A / lam) / 4 + evaluation.slack / lam)
    plus, minus = evaluation.dual_point.factor, cone.negative_factor(evaluation.dual_point)
    terms = (_at(evaluation, 0.5), _term(0.5 / lam, plus), _term(-0.5 / lam, minus))
    center = (M + A / lam) / 2
    return Sphere(center, float(radius), "gb", terms, normal_of(cone, cone.project(center)))


def pgb(cone, evaluation, lam):
    """Projected gradient bound (Theorem PGB): [Q_GB]_+, r^2 = |M - [Q]_+|^2 + 2 <M, -[Q]_->; zero at the optimum."""
    projection = cone.project((evaluation.M + evaluation.A / lam) / 2)
    square = _square(evaluation.M - projection.plus) + 2 * cone.cut_off_inner(projection, evaluation.M)
    radius = float(np.sqrt(square + evaluation.slack / lam))
    terms = (_term(1.0, projection.factor),)
    return Sphere(projection.plus, radius, "pgb", terms, normal_of(cone, projection))


def dgb(cone, evaluation, lam):
    """Duality gap bound (Theorem DGB): Q = M, r^2 = 2 (P(M) - D(a)) / lam."""
    gap = evaluation.slack + cone.gap(evaluation.M, evaluation.dual_point, lam)
    return Sphere(
        evaluation.M,
        float(np.sqrt(2 * gap / lam)),
        "dgb",
        (_at(evaluation, 1.0),),
        normal_of(cone, evaluation.dual_point),
    )


def cdgb(cone, evaluation, lam, gap):
    """Constrained duality gap bound (Theorem CDGB): Q = M(a), r^2 = (P(M(a)) - D(a)) / lam; gap: that difference."""
    point = evaluation.dual_point
    terms = (_term(1 / lam, point.factor),)
    return Sphere(point.plus / lam, float(np.sqrt(gap / lam)), "cdgb", terms, normal_of(cone, evaluation.dual_point))


def rpb(M0, lam0, lam):
    """Regularization path bound (Theorem RPB), from the exact optimum M0 at lam0."""
    center = (lam0 + lam) / (2 * lam) * M0
    return Sphere(center, abs(lam0 - lam) / (2 * lam) * float(np.linalg.norm(M0)), "rpb")


def rrpb(M0, lam0, lam, eps, dist=None, normal=None):
    """Relaxed regularization path bound (Theorem RRPB), from M0 with |M0 - M0*| <= eps at lam0; dist: M0's, if any."""
    change, scale = abs(lam0 - lam), (lam0 + lam) / (2 * lam)
    radius = change / (2 * lam) * float(np.linalg.norm(M0)) + (change + lam0 + lam) / (2 * lam) * eps
    terms = None if dist is None else (Term(scale, None, dist, trace(M0)),)
    return Sphere(scale * M0, radius, "rrpb", terms, normal)


def mid(cone, evaluation, lam):
    """The sphere between M and M(a): add P(M) - P* >= (lam/2)|M - M*|^2 and P* - D(a) >= (lam/2)|M(a) - M*|^2.

    Q = (M + M(a))/2 and r^2 = gap/lam - |M - M(a)|^2/4, which is (slack + <-[A]_-, M>)/lam + |M - M(a)|^2/4. It lies
    inside DGB, equals RPB at an optimum for another lambda, and is never larger than RRPB where M = M(a).
    """
    point = evaluation.dual_point
    square = (evaluation.slack + cone.cut_off_inner(point, evaluation.M)) / lam
    square += _square(evaluation.M - point.plus / lam) / 4
    terms = (_at(evaluation, 0.5), _term(0.5 / lam, point.factor))
    return Sphere(
        (evaluation.M + point.plus / lam) / 2,
        float(np.sqrt(square)),
        "mid",
        terms,
        normal_of(cone, evaluation.dual_point),
    )


def known(sphere, dist):
    """Return a sphere of one term whose pair distances are known."""
    return replace(sphere, terms=(replace(sphere.terms[0], dist=dist),))


def split(cone, center):
    """Return the terms of any centre: its positive part minus its negative part."""
    projection = cone.project(center)
    return _term(1.0, projection.factor), _term(-1.0, cone.negative_factor(projection))


def normal_of(cone, projection):
    """Return the factor of what a projection cut off, or None if that is nothing but rounding."""
    factor = cone.negative_factor(projection)
    kept, cut = np.linalg.norm(projection.plus), np.linalg.norm(projection.negative[0])
    return factor if cut > 1e-10 * kept else None


def _square(M):
    return float(np.vdot(M, M))


def _term(coefficient, factor):
    return Term(coefficient, factor, None, float(np.vdot(factor, factor)))


def _at(evaluation, coefficient):
    return Term(coefficient, None, evaluation.dist, trace(evaluation.M))
