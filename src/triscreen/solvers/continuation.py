"""Far below lambda_max: not at a leap, but over larger lambdas."""

from __future__ import annotations

import numpy as np

from triscreen.solvers.at_lambda import first_smoothing, run

# From lam = _SMALL lambda_max on it pays to walk down there, by steps of this factor at most, to such gaps.
_SMALL, _STEP, _ROUGH = 3e-4, 5.0, 0.01


def walk_down(problem, lam, solver, M, monitor):
    """Return (M, smoothing) to begin with: zero, or the end of a rough walk over larger lambdas.

    It is no solution for any lambda: spheres that look from one ("rpb" would believe it to be exact) must not see it.
    """
    if "_lambda_max" not in vars(problem):
        monitor.passes += 1.5
    smoothing = stopped_by = None
    top, tol = problem._lambda_max, monitor.tol
    lambdas = []
    if lam < _SMALL * top:
        lambdas = np.geomspace(0.5 * top, lam, 2 + int(np.log(0.5 * top / lam) / np.log(_STEP)))[:-1].tolist()
    for lam0 in lambdas:
        monitor.turn_to(lam0, max(tol, _ROUGH))
        dist = problem.distances(problem.cone.project(M).factor)
        monitor.passes += 0.5
        smoothings, now = first_smoothing(problem, lam0, M, dist, smoothing, monitor)
        run(problem, lam0, solver, now, smoothings, monitor, lambda: monitor.best)
        M, smoothing = monitor.best.M, monitor.best.sums.smoothing
        if monitor.wants_stop or monitor.stopped_by not in ("converged", "stalled"):
            stopped_by = "callback" if monitor.wants_stop else monitor.stopped_by
            break
    monitor.turn_to(lam, tol)
    monitor.stopped_by = stopped_by
    return M, smoothing
