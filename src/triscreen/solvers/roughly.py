"""The way to the solution of a large problem, on few axes and in single precision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from triscreen.problem.rough import pays, steps
from triscreen.solvers.at_lambda import Start, certified, solve_at, unproven
from triscreen.solvers.bb import BarzilaiBorwein
from triscreen.solvers.newton import Newton

# A gap that single precision can find, relative; and how much of the wanted one to ask for.
_FINEST, _MARGIN = 1e-5, 0.95
# The gap to reach on few axes, over the share of the variance that they leave aside: well below what that costs.
_GAP = 0.1
# Iterations without progress after which single precision is at its end.
_PATIENCE = 25


def roughly(problem, lam, tol, solver, start, monitor):
    """Return (where to begin at lam, what that came to if it is proven to be the end already).

    A start that knows something is put right on nearly all axes, one from nothing comes from fewer.
    """
    if type(solver) not in (BarzilaiBorwein, Newton) or not pays(problem, lam):
        return start, None
    knows = start.M.any()  # and may be good enough as it is
    finest = max(tol if knows else _MARGIN * tol, _FINEST)
    todo = steps(problem, finest)
    for rough in todo[-1:] if knows else todo:
        # What was a good size of a step on fewer axes is none on more.
        there = replace(start, M=rough.into(start.M), step=np.inf, lam0=None)
        wanted = max(finest, _GAP * rough.aside)
        with monitor.elsewhere(rough.out, _PATIENCE):
            solved = solve_at(rough.engine, lam, wanted, solver, None, there, monitor, unproven)
        best, ended = monitor.best, monitor.stopped_by
        start = Start.at(problem, best.M, best.sums.smoothing, step=solved.step)
        if monitor.wants_stop or ended not in ("converged", "stalled"):
            return start, certified(problem, start.M, lam)
    if ended == "converged" and tol >= _FINEST:
        solved = certified(problem, start.M, lam)
        if solved.proof.within(tol):
            return start, solved
    return start, None
