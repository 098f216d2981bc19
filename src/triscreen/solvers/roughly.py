"""The way to the solution of a large problem, on few axes and in single precision."""

from __future__ import annotations

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
    finest = max(_MARGIN * tol, _FINEST)
    todo = steps(problem, finest)
    patience, monitor.patience = monitor.patience, _PATIENCE
    try:
        for rough in todo[-1:] if start.M.any() else todo:
            there = Start.at(rough.engine, rough.into(start.M))
            wanted = max(finest, _GAP * rough.aside)
            try:
                solved = solve_at(rough.engine, lam, wanted, solver, None, there, monitor, unproven)
            finally:
                monitor.lift(rough.out)
            start = Start.at(problem, monitor.best.M, monitor.best.sums.smoothing, step=solved.step)
            if monitor.wants_stop or monitor.stopped_by not in ("converged", "stalled"):
                return start, certified(problem, start.M, lam)
    finally:
        monitor.patience = patience
    if monitor.stopped_by == "converged" and tol >= _FINEST:
        solved = certified(problem, start.M, lam)
        if solved.proof.within(tol):
            return start, solved
    return start, None
