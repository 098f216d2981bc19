"""Far below lambda_max: not at a leap, but over larger lambdas."""

from __future__ import annotations

import numpy as np

from triscreen.solvers.at_lambda import Start, solve_at, unproven
from triscreen.solvers.roughly import on_axes, steps_of

# From lam = _SMALL lambda_max on it pays to walk down there, by steps of this factor at most, to such gaps.
_SMALL, _STEP, _ROUGH = 3e-4, 5.0, 0.01


def walk_down(problem, lam, solver, start, monitor):
    """Return where to begin at lam: at the start, or at the end of a rough walk over larger lambdas.

    That is no solution for any lambda: spheres that look from one ("rpb" would believe it to be exact) must not see it.
    """
    if "_lambda_max" not in vars(problem):
        monitor.count(1.5)
    top, tol, stopped_by = problem._lambda_max, monitor.tol, None
    lambdas = []
    if lam < _SMALL * top:
        lambdas = np.geomspace(0.5 * top, lam, 2 + int(np.log(0.5 * top / lam) / np.log(_STEP)))[:-1].tolist()
    rough = steps_of(problem, lam, max(tol, _ROUGH), solver)[:1] if lambdas else []
    for lam0 in lambdas:
        if rough:
            start = on_axes(problem, *rough, lam0, max(tol, _ROUGH), solver, start, monitor)
        else:
            solved = solve_at(problem, lam0, max(tol, _ROUGH), solver, None, start, monitor, unproven)
            start = Start.at(problem, solved.M, solved.proof.sums.smoothing, step=solved.step)
        if monitor.wants_stop or monitor.stopped_by not in ("converged", "stalled"):
            stopped_by = "callback" if monitor.wants_stop else monitor.stopped_by
            break
    monitor.turn_to(lam, tol)
    if stopped_by is not None:
        monitor.stop(stopped_by)
    return start
