"""One verb: from a problem and a lambda to a certified solution."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from triscreen._utils.threads import deadline, single_threaded_blas
from triscreen._utils.validation import as_count, as_positive, shortened
from triscreen.errors import InputError, Interrupted, OutOfTime, convergence_warning, interruptible
from triscreen.problem import Problem
from triscreen.problem.units import LAMBDA
from triscreen.screening import Screening
from triscreen.solvers.at_lambda import Start, certified, from_metric, known_anyway, solve_at
from triscreen.solvers.bb import BarzilaiBorwein
from triscreen.solvers.continuation import walk_down
from triscreen.solvers.contract import Solution, Solver, State
from triscreen.solvers.dual import DualAscent
from triscreen.solvers.monitor import Monitor
from triscreen.solvers.newton import Newton
from triscreen.solvers.roughly import roughly

SOLVERS = {
    "auto": lambda: Newton(first=20),  # projected gradient is done by then, or slow
    "bb": BarzilaiBorwein,
    "newton": Newton,
    "dual": DualAscent,
}
MAX_ITER = 10_000
# What a problem can do makes it one, not its class.
_ASKED_OF_A_PROBLEM = ("triplets", "loss", "cone", "units", "evaluate", "certificate", "check_lam")
# The fastest choice measured (benchmarks/screening.py): short solves are over before screening pays.
AUTO = Screening("mid", every=30, at_start=False)
# So many seconds after Ctrl-C or the end of max_seconds a certificate of the best point may take.
_MOMENT = 1.0
# Up to so many dimensions the history of a solve has the gap of every iteration.
_EVERY_GAP = 100


@interruptible
@single_threaded_blas()
def solve(
    problem: Problem,
    lam: float,
    tol: float = 1e-6,
    solver: str | Solver = "auto",
    screening: str | Screening | None = "auto",
    start: Solution | ArrayLike | None = None,
    max_iter: int | None = None,
    max_seconds: float | None = None,
    callback: Callable[[State], object] | None = None,
) -> Solution:
    """Compute the optimal metric for one lambda, with a certificate.

    Parameters
    ----------
    problem : Problem
        What is solved: points, triplets, loss, cone, prior.
    lam : float
        Weight of (lam/2) |M|^2, with a prior N of (lam/2) |M - N|^2; `Problem.lambda_max` gives the scale.
    tol : float
        Relative gap wanted: gap <= tol |primal|.
    solver : str or object
        "bb" (projected gradient with Barzilai-Borwein steps), "newton" (Newton steps between them), "dual" (accelerated
        ascent on the dual), "auto" (20 gradient steps, then Newton: the fastest measured), or an own solver (see
        `triscreen.solvers.contract`).
    screening : "auto", None or Screening
        How to prove on the way which triplets cannot matter; it changes the work, never the answer. "auto": with the
        sphere "mid" every 30 iterations, the fastest choice measured for one lambda.
    start : Solution or array, optional
        Where to begin: a solution for another lambda, or an M. By default M = 0, or the prior; for a lam far below
        lambda_max, what larger lambdas lead to (walked through roughly, far fewer iterations in all). The solution that
        the problem certified last need not be evaluated again.
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

    References
    ----------
    Yoshida, Takeuchi, Karasuyama, KDD 2018, arXiv:1802.03923, sections 2 and 5 (projected gradient, dynamic
    screening); "newton" and "auto" are ours (docs/path.md).

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
    every_gap = problem.triplets.dim <= _EVERY_GAP
    monitor = Monitor(problem, lam, tol, max_iter, max_seconds, callback, every_gap)
    lam0, smoothing = (start.lam, start.smoothing) if isinstance(start, Solution) else (None, None)
    known = problem.certified_at(M) if isinstance(start, Solution) else None
    begin = Start.at(problem, M, smoothing, lam0=problem.units.into(lam0, LAMBDA), known=known)
    solution = None
    try:
        try:
            with deadline(max_seconds):
                _ = problem.rounding  # every certificate needs it: also one that is made when the time is over
                if start is None:
                    begin = walk_down(problem, lam, solver, begin, monitor)
                if monitor.stopped_by is not None:
                    solved = certified(problem, begin.M, lam)
                else:
                    solved = None
                    if screening in (None, AUTO):
                        begin, solved = roughly(problem, lam, tol, solver, begin, monitor)
                    if solved is None:
                        solved = solve_at(problem, lam, tol, solver, screening, begin, monitor, from_metric)
                solution = _solution(problem, solved, tol, monitor)
        except OutOfTime:
            solution = _best_so_far(problem, lam, tol, solver, begin.M, monitor, "max_seconds")
        if not solution.converged and solution.stopped_by != "callback":
            warnings.warn(
                f"relative gap {solution.rel_gap:.2g} reached, {tol:.2g} wanted, at lam={wanted:.6g} (stopped by "
                f"{solution.stopped_by} after {solution.n_iter} iterations): {advice(solution, screening)}",
                convergence_warning(),
                stacklevel=4,
            )
    except KeyboardInterrupt:
        result = solution or _best_so_far(problem, lam, tol, solver, begin.M, monitor, "interrupt")
        raise Interrupted(
            f"interrupted after {monitor.n_iter} iterations at relative gap {result.rel_gap:.2g}; the best so far is "
            "the .result of this exception",
            result,
        ) from None
    return solution


def _core_start(problem, start):
    if start is None:
        return np.zeros(problem.shape) if problem.prior is None else problem.prior.core
    M = start.M if isinstance(start, Solution) else start
    return problem.checked(M, "start")[1]


def _best_so_far(problem, lam, tol, solver, M, monitor, stopped_by):
    """Return the best point, certified, if a moment is enough for that; else the best one whose gap is known anyway."""
    if monitor.lam != lam:  # on the way down
        monitor.turn_to(lam, tol)
    best = monitor.best or monitor.before
    monitor.stop(stopped_by)
    with contextlib.suppress(OutOfTime), deadline(_MOMENT, extend=True):
        return _solution(problem, certified(problem, M if best is None else best.M, lam), tol, monitor)
    return _solution(problem, known_anyway(problem, lam, solver, monitor), tol, monitor)


def _solution(problem, solved, tol, monitor):
    return Solution(
        lam=problem.units.out(monitor.lam, LAMBDA),
        M=np.array(problem.from_core(solved.M)),
        primal=solved.proof.primal,
        dual=solved.proof.dual,
        gap=solved.proof.gap,
        rounding=float(solved.rounding),
        tol=tol,
        stopped_by=solved.stopped_by(monitor.stopped_by, tol),
        n_iter=monitor.n_iter,
        passes=monitor.passes,
        seconds=monitor.seconds,
        history=monitor.history(),
        screening=monitor.events,
        smoothing=problem.loss.gamma if monitor.best is None else monitor.best.sums.smoothing,
        floor=solved.proof.floor,
    ).knowing(problem)


def advice(solution, screening):
    """What to do about a solution that missed its gap."""
    if solution.stopped_by == "rounding":
        proven = solution.rounding / solution.scale
        return (
            f"float64 can prove no more than {proven:.2g} for this data; rescale features or points that dwarf the rest"
        )
    if solution.stopped_by == "stalled" and screening is not None and screening.own_parts:
        return "if screening=None does better, a sphere or rule of your own decided triplets that it should not have"
    if solution.stopped_by == "stalled":
        return "it has stopped getting better; try a start from the solution for a larger lam, or a larger tol"
    return "raise max_iter or max_seconds, or start from the solution for a larger lam"


def check_arguments(problem, solver, screening, auto, callback):
    """Return (solver, screening) as objects; auto: the screening that "auto" stands for."""
    if not all(hasattr(problem, name) for name in _ASKED_OF_A_PROBLEM):
        raise InputError(f"problem is a {type(problem).__name__}: make one with ts.Problem(X, triplets)")
    name, solver = solver, _make_solver(solver)
    if isinstance(screening, str) and screening == "auto":
        screening = auto
    elif screening is not None and not isinstance(screening, Screening):
        raise InputError(f"screening={shortened(screening)}: screening must be 'auto', None or ts.Screening(...)")
    if not problem.triplets.lists_triplets:
        never = f"needs a list of triplets, and {problem.triplets.unlisted}"
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


def _make_solver(solver):
    if isinstance(solver, str) and solver in SOLVERS:
        return SOLVERS[solver]()
    if not isinstance(solver, str) and callable(getattr(solver, "run", None)):
        return solver
    raise InputError(f"solver={solver!r}: solver must be one of {', '.join(map(repr, SOLVERS))}, or have a run method")
