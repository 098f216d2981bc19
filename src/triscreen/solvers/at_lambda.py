"""One lambda: the first evaluation, the smoothing schedule, screening, the loop, the certificate."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np

from triscreen._utils.threads import deadline
from triscreen.errors import OutOfTime
from triscreen.problem.rounding import gap_error
from triscreen.problem.units import LAMBDA
from triscreen.solvers.bb import BarzilaiBorwein
from triscreen.solvers.contract import Solution
from triscreen.solvers.dual import DualAscent
from triscreen.solvers.newton import Newton

# So many seconds after Ctrl-C or the end of max_seconds a certificate of the best point may take.
_MOMENT = 1.0


def solve_at(problem, lam, tol, solver, screening, M, lam0, smoothing, monitor):
    """Return the certified solution at lam; M: where to begin, a solution for lam0 (None: for none)."""
    dist = problem.distances(problem.cone.project(M).factor)
    monitor.passes += 0.5
    smoothings, now = first_smoothing(problem, lam, M, dist, smoothing, monitor)
    engine = problem
    if screening is not None and not now.within(tol):
        monitor.watch(problem, screening)
        if screening.at_start:
            engine, now = monitor.screen_start(now, lam0)

    def certify():
        included = screening is not None and screening.include_solution and is_ours(solver)
        if included and monitor.stopped_by == "converged":
            # What the monitor saw, not what the solver returned: nothing that a solver claims is believed.
            seen = monitor.last
            rounding = problem.rounding if monitor.screener is None else monitor.screener.rounding
            return _solution(problem, seen.M, seen, gap_error(rounding, seen, lam), tol, monitor)
        return certified(problem, monitor.best.M, tol, monitor)

    solution = run(engine, lam, solver, now, smoothings, monitor, certify)
    if solution.stopped_by == "converged" and not solution.converged:
        return replace(solution, stopped_by="rounding" if solution.rel_gap <= tol else "stalled")
    return solution


def run(engine, lam, solver, now, smoothings, monitor, certify):
    """Run a solver, smoothing by smoothing, until the monitor stops it and what it found is certified.

    ``certify()`` returns something with a gap and a primal, over all that matters to the caller; where its gap is not
    what the monitor believed it to be, the solver goes on.
    """
    tol = monitor.tol
    while True:
        monitor.can_sharpen = bool(smoothings)
        if not monitor.saw_start(now):
            n_iter = monitor.n_iter
            engine, now = solver.run(engine, lam, now, monitor)
            if monitor.n_iter == n_iter and monitor.stopped_by is None:
                monitor.stopped_by = "stalled"  # a solver that does nothing would do so for ever
        if monitor.stopped_by == "converged":
            result = certify()
            if result.within(tol) or monitor.tol <= 0.1 * tol:
                return result
            # Rounding between the two coordinate systems ate the last digit: ask for a little more.
            monitor.stopped_by = None
            monitor.tol *= 0.5
        elif monitor.stopped_by is not None:
            return certify()
        elif smoothings:
            now = engine.evaluate(now.M, now.dist, lam, smoothings.pop())
            monitor.passes += 0.5 * engine.share


def first_smoothing(problem, lam, M, dist, smoothing, monitor):
    """Return (the smoothings to go on with, last one first; the evaluation at the first).

    The hinge is smoothed generously at first, and four times less whenever the smoothing is what holds the gap up. A
    start that was the end of another solve may be good already with the smoothing it ended with.
    """
    grid = problem.loss.smoothings
    if len(grid) == 1:
        tried, rest = grid[:1], []
    elif smoothing in grid:
        place = grid.index(smoothing)
        tried, rest = (grid[place], grid[max(2, place - 2)]), list(grid[: max(2, place - 2) : -1])
    elif M.any():
        tried, rest = grid[2::3], list(grid[:2:-1])
    else:
        tried, rest = grid[2:3], list(grid[:2:-1])
    best = None
    for s in tried:
        now = problem.evaluate(M, dist, lam, s)
        monitor.passes += 0.5
        best = now if best is None or now.gap < best.gap else best
        if now.within(monitor.tol):
            return rest, now
    if len(grid) > 1:
        rest = [s for s in rest if s < best.sums.smoothing]
    return rest, best


def certified(problem, core, tol, monitor):
    """Return the solution with this core element, certified from M alone."""
    certificate = problem.certificate(problem.from_core(core), problem.units.out(monitor.lam, LAMBDA))
    return _solution(problem, core, certificate, certificate.rounding, tol, monitor)


def best_so_far(problem, lam, tol, solver, M, monitor, stopped_by):
    """Return the best point, certified, if a moment is enough for that; else the best one whose gap is known anyway."""
    if monitor.lam != lam:  # on the way down
        monitor.turn_to(lam, tol)
    best, whole = monitor.best or monitor.before, monitor.whole
    monitor.stopped_by = stopped_by
    with contextlib.suppress(OutOfTime), deadline(_MOMENT, extend=True):
        return certified(problem, M if best is None else best.M, tol, monitor)
    if whole is None or not is_ours(solver):
        now = problem.nothing(lam)
        return _solution(problem, now.M, now, 1e-12 * now.primal, tol, monitor)
    with deadline(None, extend=True):
        now = problem.evaluate(whole.M, whole.dist, lam, whole.sums.smoothing, (whole.sums, whole.weights), whole.A)
        return _solution(problem, now.M, now, gap_error(problem.rounding, now, lam), tol, monitor)


def _solution(problem, core, certificate, rounding, tol, monitor):
    return Solution(
        lam=problem.units.out(monitor.lam, LAMBDA),
        M=np.array(problem.from_core(core)),
        primal=certificate.primal,
        dual=certificate.dual,
        gap=certificate.gap,
        rounding=float(rounding),
        tol=tol,
        stopped_by=monitor.stopped_by,
        n_iter=monitor.n_iter,
        passes=monitor.passes,
        seconds=monitor.seconds,
        history=monitor.history(),
        screening=[] if monitor.screener is None else monitor.screener.events,
        smoothing=problem.loss.gamma if monitor.best is None else monitor.best.sums.smoothing,
    )


def is_ours(solver):
    """Are the evaluations that a solver shows to the monitor those of the engine? Of an own one nothing is believed."""
    return type(solver) in (BarzilaiBorwein, DualAscent, Newton)
