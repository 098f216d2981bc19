"""How spheres and rules stay safe in floating point.

Each radius is enlarged by what the errors bounded in `triscreen.problem.rounding` do to its theorem; rules add the
errors of the pair distances to a triplet's margin and enlarge its norm. With dA and dM the errors of A and of M's
distances, e_gap that of the gap, and o = 64 s u (|Q| + r) + dM for the arithmetic on the centre itself:

    GB           r + dA/lam + o
    PGB          sqrt(r^2 + 2 r_GB (dA/lam + o) + (dA/lam + o)^2) + o: the enlarged GB, projected
    DGB          sqrt(r^2 + 2 e_gap/lam) + o
    MID          sqrt(r^2 + e_gap/lam) + dA/(2 lam) + o
    CDGB         sqrt(r^2 + e/lam) + dA/lam + o, e = 2 W (error of a margin under M(a)) + |M(a)| dA + dA^2/(2 lam)
    RPB, RRPB    r + o; RRPB's eps is made from the gap at lam0 plus its error
"""

from __future__ import annotations

import numpy as np

from triscreen.problem.rounding import U


def gap_error(rounding, evaluation, lam):
    """Bound on how much the exact gap of an evaluation at lam may exceed the computed one."""
    engine = rounding.engine
    gap = evaluation.slack + engine.cone.gap(evaluation.M, evaluation.dual_point, lam)
    own = evaluation.sums.smoothing == engine.loss.gamma
    plus, weight = evaluation.dual_point.plus, evaluation.sums.alpha
    return rounding.gap(evaluation.M, evaluation.A, plus, evaluation.dist, gap, weight, lam, own)


def safe_radius(rounding, sphere, evaluation, lam):
    """Return the sphere's radius, enlarged so that the exact M* is inside."""
    r, size = sphere.radius, float(np.linalg.norm(sphere.center))
    own = 64 * len(sphere.center) * U * (size + r) + rounding.element(evaluation.M)
    dA = rounding.matrix(evaluation.A, evaluation.sums.alpha) / lam
    if sphere.name == "gb":
        return r + dA + own
    if sphere.name == "pgb":
        gb = 0.5 * float(np.linalg.norm(evaluation.M - evaluation.A / lam)) + np.sqrt(evaluation.slack / lam)
        return float(np.sqrt(r * r + 2 * gb * (dA + own) + (dA + own) ** 2)) + own
    if sphere.name == "dgb":
        return float(np.sqrt(r * r + 2 * gap_error(rounding, evaluation, lam) / lam)) + own
    if sphere.name == "mid":
        return float(np.sqrt(r * r + gap_error(rounding, evaluation, lam) / lam)) + 0.5 * dA + own
    if sphere.name == "cdgb":
        term = sphere.terms[0]
        margin = rounding.margin(term.dist, term.trace) * term.coefficient
        error = 2 * rounding.engine.triplets.total_weight * margin + size * dA * lam + 0.5 * dA * dA * lam
        return float(np.sqrt(r * r * (1 + 1e-13) + error / lam)) + dA + own
    return r + own
