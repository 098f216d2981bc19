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


def steps_of(problem, lam, tol, solver):
    """Return the problem on few axes, if these are enough to begin with, and on nearly all; nothing, if none pays."""
    if type(solver) not in (BarzilaiBorwein, Newton) or not pays(problem, lam):
        return []
    return steps(problem, tol)


def on_axes(problem, rough, lam, tol, solver, start, monitor):
    """Solve a `Rough` problem at lam; return where to go on from."""
    there = replace(start, M=rough.into(start.M), lam0=None, known=None)
    with monitor.elsewhere(rough.out, _PATIENCE):
        solved = solve_at(rough.engine, lam, tol, solver, None, there, monitor, unproven)
    return Start.at(problem, monitor.best.M, monitor.best.sums.smoothing, step=solved.step)


def roughly(problem, lam, tol, solver, start, monitor):
    """Return (where to begin at lam, what that came to if it is proven to be the end already).

    A start that knows something is put right on nearly all axes, one from nothing comes from fewer.
    """
    knows = start.M.any()  # and may be good enough as it is
    finest = max(tol if knows else _MARGIN * tol, _FINEST)
    todo = steps_of(problem, lam, finest, solver)
    for rough in todo[-1:] if knows else todo:
        start = replace(start, step=np.inf)  # what was a good size of a step on fewer axes is none on more
        start = on_axes(problem, rough, lam, max(finest, _GAP * rough.aside), solver, start, monitor)
        if monitor.wants_stop or monitor.stopped_by not in ("converged", "stalled"):
            return start, certified(problem, start.M, lam)
    if todo and monitor.stopped_by == "converged" and tol >= _FINEST:
        solved = certified(problem, start.M, lam)
        if solved.proof.within(tol):
            return start, solved
    return start, None
