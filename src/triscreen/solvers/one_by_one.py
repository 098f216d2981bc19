"""A solution, triplet by triplet: margins, dual variables, and the zones that are proven for the optimum."""

from __future__ import annotations

import numpy as np

from triscreen._utils.threads import single_threaded_blas
from triscreen.errors import InputError
from triscreen.problem.rounding import U
from triscreen.problem.units import METRIC
from triscreen.screening.rules import prepare, sphere_rule
from triscreen.screening.spheres import Sphere

_AT_ONCE = 1 << 20  # numbers of points that are looked at at a time


def check_problem(known, given):
    """Return the problem whose triplets are meant, or refuse: none is known, or it lists none."""
    problem = known if given is None else given
    if problem is None:
        raise InputError("problem=None: a solution from a file, or an estimator's, does not know its problem: pass it")
    if not problem.triplets.lists_triplets:
        raise InputError("problem has triplets that are never listed: there is no number for each of them")
    return problem


@single_threaded_blas()
def margins(problem, M):
    """Return d(i, l)^2 - d(i, j)^2 under M for every triplet, in the order of ``problem.triplets.indices()``."""
    _, core, _ = problem.checked(M)
    G = problem.cone.embed(problem.points, problem.cone.project(core).factor, problem.threads)
    found, step = np.empty(problem.triplets.n_triplets), max(1, _AT_ONCE // max(1, G.shape[1]))
    for start in range(0, len(found), step):
        i, j, k = problem.triplets.local_indices(start, min(start + step, len(found))).T
        far, near = G[i] - G[k], G[i] - G[j]
        found[start : start + step] = np.einsum("ij,ij->i", far, far) - np.einsum("ij,ij->i", near, near)
    return found


@single_threaded_blas()
def zones(problem, M, radius):
    """Return the zone of every triplet for all metrics within a distance of M: 1 linear, 2 zero, 0 not decided."""
    M, core, _ = problem.checked(M)
    # Between the coordinates of the user and those inside, the last digits of M change.
    radius = problem.units.into(radius, METRIC) + 64 * problem.n_features * U * float(np.linalg.norm(core))
    region, _ = prepare(problem, Sphere(core, radius), radius, problem.rounding)
    found = np.zeros(problem.triplets.n_triplets, dtype=np.int8)
    sphere_rule(problem, region, problem.norms, found)
    return found
