"""One verb: from a problem and a lambda to a certified solution."""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import replace

import numpy as np

from triscreen._utils.threads import deadline, single_threaded_blas
from triscreen._utils.validation import as_count, as_positive, shortened
from triscreen.errors import InputError, Interrupted, OutOfTime, convergence_warning, interruptible
from triscreen.problem import Problem
from triscreen.problem.rounding import gap_error
from triscreen.problem.units import LAMBDA
from triscreen.screening import Screening
from triscreen.solvers.base import Monitor, Solution
from triscreen.solvers.bb import BarzilaiBorwein
from triscreen.solvers.dual import DualAscent
from triscreen.solvers.newton import Newton

SOLVERS = {
    "auto": lambda: Newton(first=20),  # projected gradient is done by then, or slow
    "bb": BarzilaiBorwein,
    "newton": Newton,
    "dual": DualAscent,
}
MAX_ITER = 10_000
# From lam = _SMALL lambda_max on it pays to walk down there, by steps of this factor at most, to such gaps.
_SMALL, _STEP, _ROUGH = 3e-4, 5.0, 0.01
# So many seconds after Ctrl-C or the end of max_seconds a certificate of the best point may take.
_MOMENT = 1.0
# The fastest choice measured (benchmarks/screening.py): short solves are over before screening pays.
AUTO = Screening("mid", every=30, at_start=False)


@interruptible
@single_threaded_blas()
def solve(
    problem,
    lam,
    tol=1e-6,
    solver="auto",
    screening="auto",
    start=None,
    max_iter=None,
    max_seconds=None,
    callback=None,
):
    """Compute the optimal metric for one lambda, with a certificate.

    Parameters
    ----------
    problem : Problem
    lam : float
        Weight of (lam/2) |M|^2; `Problem.lambda_max` gives the scale.
    tol : float
        Relative gap wanted: gap <= tol |primal|.
    solver : str or object
        "bb" (projected gradient with Barzilai-Borwein steps), "newton" (Newton steps between them), "dual" (accelerated
        ascent on the dual), "auto" (20 gradient steps, then Newton: the fastest measured), or an own solver (see
        `triscreen.solvers.base`).
    screening : "auto", None or Screening
        How to prove on the way which triplets cannot matter; it changes the work, never the answer. "auto": with the
        sphere "mid" every 30 iterations, the fastest choice measured for one lambda.
    start : Solution or array, optional
        Where to begin: a solution for another lambda, or an M. By default M = 0; for a lam far below lambda_max, what
        larger lambdas lead to (walked through roughly, far fewer iterations in all).
    max_iter : int, optional
        Iterations at most, 10,000 by default.
    max_seconds : float, optional
        Looked at within iterations too; the certificate of what was found takes a second more at most. Where not even
        one evaluation fits in, the answer is M = 0, with a relative gap of 1.
    callback : callable, optional
        ``callback(state)`` sees a `State` after every iteration (its lam tells which one is worked on); returning True
        stops.

    Returns
    -------
    Solution
        If the gap was not reached, ``converged`` is False and a `ConvergenceWarning` says how far it got.

    Raises
    ------
    Interrupted
        On Ctrl-C; its ``result`` is the best solution so far (None while the arguments are checked).

    Examples
    --------
    >>> import triscreen as ts
    >>> X = [[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [1.0, 2.1]]
    >>> problem = ts.Problem(X, ts.given_triplets([[0, 1, 2], [3, 2, 1]]))
    >>> sol = ts.solve(problem, lam=0.5, tol=1e-8)
    >>> sol.converged, sol.gap == problem.certificate(sol.M, 0.5).gap
    (True, True)
    """
    solver, screening = check_arguments(problem, solver, screening, AUTO, callback)
    lam = problem.check_lam(lam)
    tol = as_positive(tol, "tol")
    max_iter = as_count(max_iter, "max_iter", none="the default") or MAX_ITER
    max_seconds = as_positive(max_seconds, "max_seconds", none="no limit")
    M = _core_start(problem, start)
    wanted, lam = lam, problem.units.into(lam, LAMBDA)
    monitor = Monitor(problem, lam, tol, max_iter, max_seconds, callback)
    lam0, smoothing = (start.lam, start.smoothing) if isinstance(start, Solution) else (None, None)
    lam0 = problem.units.into(lam0, LAMBDA)
    solution = None
    try:
        try:
            with deadline(max_seconds):
                _ = problem.rounding  # every certificate needs it: also one that is made when the time is over
                if start is None:
                    M, smoothing = _walk_down(problem, lam, solver, M, monitor)
                if monitor.stopped_by is None:
                    solution = _solve(problem, lam, tol, solver, screening, M, lam0, smoothing, monitor)
                else:
                    solution = _certified(problem, M, tol, monitor)
        except OutOfTime:
            solution = _best_so_far(problem, lam, tol, solver, M, monitor, "max_seconds")
        if not solution.converged and solution.stopped_by != "callback":
            warnings.warn(
                f"relative gap {solution.rel_gap:.2g} reached, {tol:.2g} wanted, at lam={wanted:.6g} (stopped by "
                f"{solution.stopped_by} after {solution.n_iter} iterations): {advice(solution)}",
                convergence_warning(),
                stacklevel=4,
            )
    except KeyboardInterrupt:
        result = solution or _best_so_far(problem, lam, tol, solver, M, monitor, "interrupt")
        raise Interrupted(
            f"interrupted after {monitor.n_iter} iterations at relative gap {result.rel_gap:.2g}; the best so far is "
            "the .result of this exception",
            result,
        ) from None
    return solution


def _walk_down(problem, lam, solver, M, monitor):
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
        smoothings, now = _first_smoothing(problem, lam0, M, dist, smoothing, monitor)
        run(problem, lam0, solver, now, smoothings, monitor, lambda: monitor.best)
        M, smoothing = monitor.best.M, monitor.best.sums.smoothing
        if monitor.wants_stop or monitor.stopped_by not in ("converged", "stalled"):
            stopped_by = "callback" if monitor.wants_stop else monitor.stopped_by
            break
    monitor.turn_to(lam, tol)
    monitor.stopped_by = stopped_by
    return M, smoothing


def _solve(problem, lam, tol, solver, screening, M, lam0, smoothing, monitor):
    dist = problem.distances(problem.cone.project(M).factor)
    monitor.passes += 0.5
    smoothings, now = _first_smoothing(problem, lam, M, dist, smoothing, monitor)
    engine = problem
    if screening is not None and now.gap > tol * abs(now.primal):
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
        return _certified(problem, monitor.best.M, tol, monitor)

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
            if result.gap <= tol * abs(result.primal) or monitor.tol <= 0.1 * tol:
                return result
            # Rounding between the two coordinate systems ate the last digit: ask for a little more.
            monitor.stopped_by = None
            monitor.tol *= 0.5
        elif monitor.stopped_by is not None:
            return certify()
        elif smoothings:
            now = engine.evaluate(now.M, now.dist, lam, smoothings.pop())
            monitor.passes += 0.5 * engine.share


def _first_smoothing(problem, lam, M, dist, smoothing, monitor):
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
        if now.gap <= monitor.tol * abs(now.primal):
            return rest, now
    if len(grid) > 1:
        rest = [s for s in rest if s < best.sums.smoothing]
    return rest, best


def _certified(problem, core, tol, monitor):
    certificate = problem.certificate(problem.from_core(core), problem.units.out(monitor.lam, LAMBDA))
    return _solution(problem, core, certificate, certificate.rounding, tol, monitor)


def _best_so_far(problem, lam, tol, solver, M, monitor, stopped_by):
    """Return the best point, certified, if a moment is enough for that; else the best one whose gap is known anyway."""
    if monitor.lam != lam:  # on the way down
        monitor.turn_to(lam, tol)
    best, whole = monitor.best or monitor.before, monitor.whole
    monitor.stopped_by = stopped_by
    with contextlib.suppress(OutOfTime), deadline(_MOMENT, extend=True):
        return _certified(problem, M if best is None else best.M, tol, monitor)
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


def _core_start(problem, start):
    if start is None:
        return np.zeros(problem.cone.shape(problem.points.shape[1]))
    M = start.M if isinstance(start, Solution) else start
    return problem.checked(M, "start")[1]


def advice(solution):
    """What to do about a solution that missed its gap."""
    if solution.stopped_by == "rounding":
        proven = solution.rounding / abs(solution.primal)
        return (
            f"float64 can prove no more than {proven:.2g} for this data; rescale features or points that dwarf the rest"
        )
    if solution.stopped_by == "stalled":
        return "it has stopped getting better; try a start from the solution for a larger lam, or a larger tol"
    return "raise max_iter or max_seconds, or start from the solution for a larger lam"


def check_arguments(problem, solver, screening, auto, callback):
    """Return (solver, screening) as objects; auto: the screening that "auto" stands for."""
    if not isinstance(problem, Problem):
        raise InputError(f"problem is a {type(problem).__name__}: make one with ts.Problem(X, triplets)")
    name, solver = solver, _make_solver(solver)
    if isinstance(screening, str) and screening == "auto":
        screening = auto
    elif screening is not None and not isinstance(screening, Screening):
        raise InputError(f"screening={shortened(screening)}: screening must be 'auto', None or ts.Screening(...)")
    if not problem.triplets.lists_triplets:
        never = "needs a list of triplets, and all triplets are never listed"
        if "triplets" in getattr(solver, "needs", ()):
            raise InputError(f"solver={shortened(name)}: it {never}; use 'auto'")
        if screening is not None and screening.rule != "sphere":
            raise InputError(f"rule={shortened(screening.rule)}: it {never}; use rule='sphere'")
    elif "triplets" in getattr(solver, "needs", ()):
        problem.check_one_by_one(f"solver={shortened(name)}")
    elif screening is not None and screening.rule != "sphere":
        problem.check_one_by_one(f"rule={shortened(screening.rule)}")
    if callback is not None and not callable(callback):
        raise InputError(f"callback={callback!r}: callback must be a function of one argument, the state")
    return solver, screening


def is_ours(solver):
    """Are the evaluations that a solver shows to the monitor those of the engine? Of an own one nothing is believed."""
    return type(solver) in (BarzilaiBorwein, DualAscent, Newton)


def _make_solver(solver):
    if isinstance(solver, str) and solver in SOLVERS:
        return SOLVERS[solver]()
    if not isinstance(solver, str) and callable(getattr(solver, "run", None)):
        return solver
    raise InputError(f"solver={solver!r}: solver must be one of {', '.join(map(repr, SOLVERS))}, or have a run method")
