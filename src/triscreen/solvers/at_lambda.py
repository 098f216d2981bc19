"""One lambda: the first evaluation, the smoothing schedule, screening, the loop, the certificate, the reason to stop.

`solve`, its walk down to a small lambda and every step of a path go through `solve_at`. They differ in where they begin
(a `Start`), in what is solved (all triplets, or a working set), and in how the end is proven: over all triplets from M
alone (`from_metric`), by the engine that was solved (`on_base`), or not at all (`unproven`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from triscreen._utils.threads import deadline
from triscreen.problem.engine import Evaluation
from triscreen.problem.rounding import gap_error
from triscreen.problem.units import LAMBDA
from triscreen.solvers.bb import BarzilaiBorwein
from triscreen.solvers.dual import DualAscent
from triscreen.solvers.newton import Newton
from triscreen.solvers.screened import Screened


@dataclass(frozen=True, eq=False)
class Start:
    """Where to begin.

    Attributes
    ----------
    M : array
    tried, rest : tuples of float
        Smoothings to begin with, one after the other until one is good enough; those to go on with, last one first.
    factor, dist : array or None
        F with M = F F', and the pair distances under M, where these are known.
    step : float
        Of the first gradient step, at most.
    lam0 : float or None
        The other lambda that M is a solution for, or if there is one, ``solution``: spheres may look from there.
    solution : Evaluation or None
        A solution for lam0, evaluated at the new lambda: screen with it before M is looked at.
    known : tuple or None
        What the last certificate of the problem knows of M (`Problem.certified_at`).
    """

    M: np.ndarray = field(repr=False)
    tried: tuple
    rest: tuple
    factor: np.ndarray | None = field(default=None, repr=False)
    dist: np.ndarray | None = field(default=None, repr=False)
    step: float = np.inf
    lam0: float | None = None
    solution: Evaluation | None = field(default=None, repr=False)
    known: tuple | None = field(default=None, repr=False)

    @classmethod
    def at(cls, problem, M, smoothing=None, **more):
        """Begin with any M; smoothing: the one that another solve ended there with, where it may be good already."""
        grid = problem.loss.smoothings
        tried, rest = schedule(grid, smoothing, 2)
        if smoothing in grid and rest:
            tried = (smoothing, *tried)
        elif M.any() and rest:
            tried = grid[2::3]
        return cls(M, tried, rest, **more)


def schedule(grid, last, coarser):
    """Return the smoothing to begin with (as a tuple) and those to go on with, the last one first.

    The hinge is smoothed generously at first, and four times less whenever the smoothing is what holds the gap up;
    ``last``: the smoothing that a solve before ended with, if any: begin so many places coarser than that.
    """
    first = 0 if len(grid) == 1 else max(2, grid.index(last) - coarser) if last in grid else 2
    return grid[first : first + 1], grid[:first:-1]


@dataclass(frozen=True, eq=False)
class Solved:
    """What one lambda came to.

    Attributes
    ----------
    M : array
    proof : Evaluation or Certificate
        Its primal, dual and gap.
    rounding : float
        Bound on what rounding may hide of that gap.
    error : float
        Bound of the error of A, where the proof has one.
    step : float
        Where the next gradient step would begin.
    """

    M: np.ndarray = field(repr=False)
    proof: object = field(repr=False)
    rounding: float
    error: float = 0.0
    step: float = np.inf

    def stopped_by(self, ended, tol):
        """Return why the solve ended: what the monitor said, unless that was "converged" and is not proven."""
        if ended != "converged" or self.proof.within(tol, self.rounding):
            return ended
        return "rounding" if self.proof.within(tol) else "stalled"


def solve_at(base, lam, tol, solver, screening, start, monitor, prove):
    """Run a solver at one lambda, smoothing by smoothing, until the monitor stops it and what it found is proven.

    Parameters
    ----------
    base : Engine
        What to solve.
    lam, tol : float
        Where the gap that is proven is larger than tol, and the monitor believed it to be small enough, the solver goes
        on.
    solver, screening
    start : Start
    monitor : Monitor
        Afterwards it has the history, the best point, the passes and why it stopped.
    prove : callable
        ``prove(lam, screened, monitor, believed)`` returns a `Solved`; believed: are the evaluations that the monitor
        saw those of the engine?

    Returns
    -------
    Solved
    """
    screened = Screened(base, screening, lam)
    monitor.turn_to(lam, tol, screened)
    now, smoothings = _begin(screened, start, monitor)
    engine, step = screened.engine, start.step
    while True:
        if not monitor.saw_start(now, bool(smoothings)):
            n_iter = monitor.n_iter
            engine, now = solver.run(engine, lam, now.going_on(step), monitor)
            step = now.step
            if monitor.n_iter == n_iter and monitor.stopped_by is None:
                monitor.stop("stalled")  # a solver that does nothing would do so for ever
        if monitor.stopped_by is not None:
            solved = prove(lam, screened, monitor, is_ours(solver))
            if monitor.stopped_by != "converged" or solved.proof.within(tol) or monitor.tol <= 0.1 * tol:
                return replace(solved, step=step)
            # Rounding between the two coordinate systems ate the last digit: ask for a little more.
            monitor.ask_for_more()
        elif smoothings:
            now = engine.evaluate(now.M, now.dist, lam, smoothings.pop())
            monitor.count(0.5 * engine.share)


def _begin(screened, start, monitor):
    """Return the evaluation that the solver starts from, and the smoothings to go on with, last one first."""

    def screen(evaluation):
        evaluation, passes = screened.start(evaluation, start.lam0, monitor.tol)
        monitor.count(passes)
        return evaluation

    if start.solution is not None:
        screen(start.solution)
    now, smoothings = _first_evaluation(screened.engine, start, monitor)
    screens = start.solution is None and screened.screening is not None and screened.base.triplets.n_triplets > 0
    if screens and not now.within(monitor.tol):
        screened.switch_on()
        if screened.screening.at_start:
            now = screen(now)
    return now, smoothings


def _first_evaluation(engine, start, monitor):
    dist, factor, passes, best = start.dist, start.factor, 0.5, None
    swept, A = None, None
    if start.known is not None:
        _, dist, swept, A, factor = start.known
    elif dist is None:
        factor = engine.cone.project(start.M).factor if factor is None else factor
        dist, passes = engine.distances(factor), 1.0
    for smoothing in start.tried:
        if swept is not None and swept[0].smoothing == smoothing:
            now, passes = engine.evaluate(start.M, dist, monitor.lam, smoothing, swept, A, factor), 0.0
        else:
            now = engine.evaluate(start.M, dist, monitor.lam, smoothing, factor=factor)
        monitor.count(passes * engine.share)
        passes = 0.5
        if now.within(monitor.tol):
            return now, list(start.rest)
        best = now if best is None or now.gap < best.gap else best
    return best, [s for s in start.rest if s < best.sums.smoothing]


# -- how the end is proven --------------------------------------------------------------------------------------------


def from_metric(lam, screened, monitor, believed):
    """Over all triplets, from M alone; or by spheres that hold the solution, too."""
    if believed and monitor.stopped_by == "converged" and screened.includes_solution:
        return evaluated(monitor.last, screened.engine.rounding, lam)
    return certified(screened.base, monitor.best.M, lam)


def certified(problem, M, lam):
    """Return a core M with its certificate."""
    certificate = problem.certificate(problem.from_core(M), problem.units.out(lam, LAMBDA))
    return Solved(M, certificate, certificate.rounding)


def on_base(lam, screened, monitor, believed):
    """Over all triplets of what was solved, by an evaluation there: what a path goes on from."""
    base, done = screened.base, monitor.stopped_by == "converged"
    seen = monitor.last if done else monitor.best
    if not believed:
        dist = base.distances(base.cone.project(seen.M).factor)
        monitor.count(base.share)
        seen = base.evaluate(seen.M, dist, lam, seen.sums.smoothing)
    elif not screened.is_whole and done and screened.includes_solution:
        seen = replace(seen, weights=None)  # they are not those of all pairs of the base
        return evaluated(seen, screened.engine.rounding, lam)
    elif not screened.is_whole:
        seen = _over_all(base, seen, lam, monitor)
    return evaluated(seen, base.rounding, lam)


def _over_all(base, seen, lam, monitor):
    """Return the evaluation by the base of what was seen on a part of it.

    Decided triplets of a hinge lie at one side of its kink, but perhaps not of a smoothed one: smaller smoothings too.
    """
    dist, best = base.distances(base.cone.project(seen.M).factor), None
    monitor.count(0.5 * base.share)
    for smoothing in (s for s in base.loss.smoothings if s <= seen.sums.smoothing):
        now = base.evaluate(seen.M, dist, lam, smoothing)
        monitor.count(0.5 * base.share)
        if best is not None and now.gap >= best.gap:
            break
        best = now
        if best.within(monitor.tol):
            break
    return best


def unproven(lam, screened, monitor, believed):
    """What the monitor saw: good enough to begin another lambda with."""
    return Solved(monitor.best.M, monitor.best, 0.0)


def known_anyway(problem, lam, solver, monitor):
    """Return the best point whose gap over all triplets is known without pair work; M = 0 where there is none."""
    seen = monitor.whole if is_ours(solver) else None
    with deadline(None, extend=True):
        if seen is None:
            now = problem.nothing(lam)
            return Solved(now.M, now, 1e-12 * now.primal)
        now = problem.evaluate(seen.M, seen.dist, lam, seen.sums.smoothing, (seen.sums, seen.weights), seen.A)
        return evaluated(now, problem.rounding, lam)


def evaluated(evaluation, bounds, lam):
    """Return a `Solved` by an evaluation over all triplets."""
    error = bounds.matrix(evaluation.A, evaluation.sums.alpha)
    return Solved(evaluation.M, evaluation, gap_error(bounds, evaluation, lam), error)


def is_ours(solver):
    """Are the evaluations that a solver shows to the monitor those of the engine? Of an own one nothing is believed."""
    return type(solver) in (BarzilaiBorwein, DualAscent, Newton)
