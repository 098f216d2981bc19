"""From one lambda to the next: predict, choose a working set, solve, prove.

1. The start is extrapolated from the last two solutions, linearly in log(lambda), and projected.
2. With ``active_set``, the triplets that keep their zone in a tube of metrics around the way ahead are fixed
   (`triscreen.screening.working_set`); with ``ranges``, those whose zone is proven for every lambda down to the end of
   the tube. What is left is solved; a tube lasts for several lambdas where these are close to each other.
3. A solution inside the tube is proven over all triplets by that alone. Otherwise all pairs are looked at (half a
   pass), which makes it the next reference. If its gap over all triplets is too large, a wider tube is made around it.

Without either, each lambda is solved over all triplets, with the screening that `solve` knows: "rrpb" from the last
solution, then spheres around the iterates.

References
----------
T. Yoshida, I. Takeuchi, M. Karasuyama. Safe Triplet Screening for Distance Metric Learning. KDD 2018. arXiv:1802.03923:
Theorem 3.10 (RRPB), section 4 (ranges); tubes are ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from triscreen._utils.lazy import cached_property
from triscreen._utils.threads import deadline
from triscreen.errors import OutOfTime
from triscreen.problem.engine import Evaluation
from triscreen.problem.rounding import gap_error
from triscreen.problem.units import LAMBDA, MATRIX, METRIC, STEP
from triscreen.screening.spheres import RRPB, looks_from_other_lambda
from triscreen.screening.working_set import Reference, Tube, WorkingSet
from triscreen.solvers.at_lambda import is_ours, run
from triscreen.solvers.monitor import Monitor

# A tube's radius, in prediction errors: for one lambda a solution may end outside, several had better stay inside.
_NARROW, _WIDE = 0.17, 0.5
# The solver's part of the tolerance; fixed triplets that strayed may take the rest.
_INNER = 0.9
_MOST_TUBES = 4
# Beyond this step in log(lambda) the last two solutions say nothing about the next one.
_FAR = 0.7
_APART = 0.035
_CLOSE = 0.05


@dataclass(frozen=True, eq=False)
class Step:
    """One lambda done: the evaluation over all triplets, and what it took."""

    evaluation: Evaluation
    rounding: float
    error: float
    n_iter: int
    passes: float
    scanned: float
    share: float
    undecided: float
    seconds: float
    stopped_by: str
    events: list = field(repr=False)


@dataclass(frozen=True, eq=False)
class Last:
    """What else is known at the last point.

    error: bound of the error of A; weights: the pair weights that A was made of, over the pairs of the problem that was
    solved (None: not known).
    """

    smoothing: float
    primal: float
    error: float
    weights: np.ndarray | None = field(repr=False)


@dataclass
class Walk:
    """Where we are on the path, and what is known there; all of it, lambdas too, in the units inside.

    Attributes
    ----------
    points : list of (lam, M, A)
        The last two solutions, with A over all triplets.
    references : list of Reference
        The last two that were evaluated over all pairs.
    working : WorkingSet or None
        Serves down to the lambda ``until``.
    error : float
        How far off the last prediction of a tube's end was, relative to |M|.
    """

    problem: object
    solver: object
    screening: object
    tol: float
    max_iter: int
    points: list = field(default_factory=list)
    references: list = field(default_factory=list)
    working: WorkingSet | None = None
    until: float = np.inf
    error: float = 0.05
    eta: float = np.inf  # the solver's last step size
    last: Last | None = None
    known: bool = False  # is the last point the last reference?
    wait: int = 0  # so many lambdas before the next try, where too much stayed in the working set
    patience: int = 1

    def step(self, lam, ahead, max_seconds=None):
        """Solve for lam; the tube, if a new one is needed, shall serve down to the lambda ``ahead``."""
        monitor = Monitor(self.problem, lam, self.tol, self.max_iter, max_seconds, None)
        try:
            return self._step(lam, ahead, monitor)
        except OutOfTime:
            if self.points:
                raise
            return self._first_unfinished(lam, monitor)

    def _first_unfinished(self, lam, monitor):
        """Return what is known at the first lambda when the time is over."""
        problem, now = self.problem, monitor.whole if is_ours(self.solver) else None
        with deadline(None, extend=True):
            if now is None:
                now = problem.nothing(lam)
                rounding, error = 1e-12 * now.primal, 0.0
            else:
                rounding, error = gap_error(problem.rounding, now, lam), problem.rounding.matrix(now.A, now.sums.alpha)
        return Step(now, rounding, error, monitor.n_iter, monitor.passes, 0.0, 1.0, 1.0, monitor.seconds,
                    "max_seconds", [])  # fmt: skip

    def _step(self, lam, ahead, monitor):
        problem = self.problem
        _ = problem.rounding  # every certificate needs it: also one that is made when the time is over
        monitor.eta = self.eta
        self._scanned = 0.0
        start = self._predict(lam)
        for attempt in range(_MOST_TUBES + 1):
            working = self._working_set(lam, ahead, attempt, monitor)
            evaluation, rounding = self._solve_on(working, lam, start if attempt == 0 else None, monitor)
            error = rounding.matrix(evaluation.A, evaluation.sums.alpha)
            self._accept_point(lam, evaluation, error)
            bound = gap_error(rounding, evaluation, lam)
            # Zones from ranges hold at a solution, not at whatever else.
            proven = monitor.stopped_by == "converged" or not self.screening or not self.screening.ranges
            if working is None or (proven and working.tube.holds(evaluation.M)):
                break
            reference = self._reference(monitor)
            error = reference.error
            evaluation, bound = reference.evaluate(problem, lam)
            if evaluation.within(self.tol) or monitor.stopped_by != "converged":
                break
            monitor.stopped_by = None
        self.eta = monitor.eta
        stopped_by = monitor.stopped_by
        if stopped_by == "converged" and not evaluation.within(self.tol, bound):
            stopped_by = "rounding" if evaluation.within(self.tol) else "stalled"
        base = problem if working is None else working.engine
        events = [] if monitor.screener is None else monitor.screener.events
        self._scanned += sum(event["tried"] for event in events) / problem.triplets.n_triplets
        left = base.triplets.n_triplets if monitor.screener is None else monitor.screener.undecided
        return Step(
            evaluation=evaluation,
            rounding=bound,
            error=error,
            n_iter=monitor.n_iter,
            passes=monitor.passes,
            scanned=self._scanned,
            share=base.share,
            undecided=left / problem.triplets.n_triplets,
            seconds=monitor.seconds,
            stopped_by=stopped_by,
            events=events,
        )

    def _predict(self, lam):
        """Return the projection of what the last two solutions say about lam."""
        cone = self.problem.cone
        if not self.points:
            return cone.project(self.problem._sum_of_h[1] / lam)
        lam1, M1, A1 = self.points[-1]
        slope = _slope([point[0] for point in self.points], lam)
        if slope is None:
            return cone.project(M1 if len(self.points) > 1 else M1 * (lam1 / lam))
        _, M0, A0 = self.points[-2]
        M = M1 + slope * (M1 - M0)
        if lam > lam1 * np.exp(-_CLOSE):
            # What is left of the last solutions' errors shows in their gradients, and these can be extrapolated too: a
            # step of projected gradient without any pair work.
            A = A1 + slope * (A1 - A0)
            M = M - min(self.eta, 1 / lam) * (lam * M - A)
        return cone.project(M)

    def _accept_point(self, lam, evaluation, error):
        if self.points and self.points[-1][0] == lam:
            self.points.pop()
        self.points = [*self.points[-1:], (lam, evaluation.M, evaluation.A)]
        self.last = Last(evaluation.sums.smoothing, evaluation.primal, error, evaluation.weights)
        self.known = False

    def _solve_on(self, working, lam, start, monitor):
        """Solve over the working set (None: all triplets); return (evaluation, bounds on its rounding)."""
        base = self.problem if working is None else working.engine
        smoothings, smoothing = self._smoothings(lam)
        monitor.tol = self.tol if working is None else _INNER * self.tol
        monitor.make_screener = monitor.screener = monitor.best = monitor.last = None
        engine = base
        if start is None:
            reference = self.references[-1]
            M, dist = reference.M, reference.dist if working is None else reference.dist[working.pairs]
            monitor.passes += 0.5 * base.share
        else:
            if self._screens_from_the_last(working):
                monitor.watch(base, self.screening)
                engine, _ = monitor.screen_start(*self._from_the_last(lam, monitor))
            M, dist = start.plus, engine.distances(start.factor)
            monitor.passes += engine.share
        now = engine.evaluate(M, dist, lam, smoothing)
        screens = self.screening is not None and base.triplets.n_triplets > 0
        if screens and monitor.screener is None and not now.within(monitor.tol):
            monitor.watch(base, self.screening)
            if self.screening.at_start:
                engine, now = monitor.screen_start(now, None)

        bounds = base.rounding

        def certify():
            nonlocal bounds
            done = monitor.stopped_by == "converged"
            seen = monitor.last if done else monitor.best
            if not is_ours(self.solver):
                return self._evaluated_anew(base, seen, lam, monitor)
            if monitor.screener is None or monitor.screener.engine is base:
                return seen
            if done and self.screening.include_solution:
                bounds = monitor.screener.rounding
                return replace(seen, weights=None)  # they are not those of all pairs of the base
            bounds = base.rounding
            dist = base.distances(base.cone.project(seen.M).factor)
            monitor.passes += 0.5 * base.share
            best = None
            # Decided triplets of a hinge lie at one side of its kink, but perhaps not of a smoothed one.
            for s in (s for s in base.loss.smoothings if s <= seen.sums.smoothing):
                now = base.evaluate(seen.M, dist, lam, s)
                monitor.passes += 0.5 * base.share
                if best is not None and now.gap >= best.gap:
                    break
                best = now
                if best.within(monitor.tol):
                    break
            return best

        evaluation = run(engine, lam, self.solver, now, smoothings, monitor, certify)
        return evaluation, bounds

    def _evaluated_anew(self, base, seen, lam, monitor):
        """Return the evaluation at M by the base itself: what an own solver showed is not believed."""
        dist = base.distances(base.cone.project(seen.M).factor)
        monitor.passes += base.share
        return base.evaluate(seen.M, dist, lam, seen.sums.smoothing)

    def _smoothings(self, lam):
        """Return (the smoothings to go on with, the last one first; the first one): the farther, the coarser."""
        grid = self.problem.loss.smoothings
        if len(grid) == 1:
            return [], grid[0]
        first = 2
        if self.last is not None:
            coarser = 1 + int(3 * abs(np.log(self.points[-1][0] / lam)))
            first = max(first, grid.index(self.last.smoothing) - coarser)
        return list(grid[:first:-1]), grid[first]

    def _screens_from_the_last(self, working):
        screening = self.screening
        return (
            working is None
            and self.last is not None
            and screening is not None
            and screening.at_start
            and any(map(looks_from_other_lambda, screening.bounds))
        )

    def _from_the_last(self, lam, monitor):
        reference = self._reference(monitor)
        self._scanned += 1
        return reference.evaluate(self.problem, lam)[0], reference.lam

    def _reference(self, monitor):
        """Return the last solution as a `Reference`, evaluated over all pairs if it is not yet."""
        if self.known:
            return self.references[-1]
        problem, last, (lam, M, A) = self.problem, self.last, self.points[-1]
        if self.working is None:
            known = last.weights is not None and problem.triplets.lists_triplets
            made = Reference.at(problem, M, lam, last.smoothing, A if known else None)
            passes = 0.5 if known else 1.0
            if known:
                made, more = made.put_right(problem, last.weights, last.error, self._squares)
                passes += more
            monitor.passes += passes
        else:
            made, passes = self.working.prove(problem, M, lam, last.smoothing, A, last.weights, self._squares)
            monitor.passes += passes
            size = float(np.linalg.norm(M))
            off = float(np.linalg.norm(M - self.working.tube.end)) / size if size > 0 else 0.0
            self.error = max(off, 0.3 * self.error)
        self._scanned += 1
        if made.evaluate(problem, lam)[1] > 1e-3 * self.tol * abs(last.primal):
            # A is a sum of many differences by now: add it up anew.
            made = replace(made, A=problem.assemble(made.weights), error=problem.rounding.sum_of_h(made.sums.alpha))
            monitor.passes += 0.5
        # The way ahead is read off two references that are not too close to each other.
        if (len(self.references) > 1 and self.references[-1].lam < lam * np.exp(_APART)) or (
            self.references and self.references[-1].lam == lam
        ):
            self.references.pop()
        self.references = [*self.references[-1:], made]
        self.working, self.known = None, True
        return made

    @cached_property
    def _squares(self):
        """|delta|^4 of all pairs, where these are listed."""
        if not self.problem.triplets.lists_pairs:
            return None
        euclid = self.problem.triplets.euclid(self.problem.threads)
        return np.square(euclid * (1 + 1e-12) + self.problem.rounding.norm_offset)

    def _working_set(self, lam, ahead, attempt, monitor):
        """Return the working set to solve on, the old one while it serves; None for all triplets."""
        screening = self.screening
        if screening is None or not (screening.active_set or screening.ranges) or not self.points:
            return None
        far = lam < self.points[-1][0] * np.exp(-_FAR)  # a tube that reaches so far holds next to nothing
        if far and screening.active_set is True and not screening.ranges:
            self.working = None
            return None
        if self.wait > 0 and not attempt:
            self.wait -= 1
            self.working = None
            return None
        problem = self.problem
        serves = self.working is not None and self.until * (1 - 1e-12) <= lam <= self.references[-1].lam
        if not serves or attempt:
            reference = self._reference(monitor)
            if attempt == _MOST_TUBES:
                return None
            self.until = lam if attempt else min(ahead, lam)
            spread = _WIDE if self.until < lam * (1 - 1e-12) else _NARROW
            radius = spread * self.error * float(np.linalg.norm(reference.M)) * 4**attempt
            self.working = self._make_working_set(radius, straight=attempt == 0)
            self._scanned += 1
            monitor.passes += 0.5 * self.working.engine.share if problem.triplets.lists_triplets else 1.0
            if self.working is None:
                self.wait = self.patience = min(16, 2 * self.patience)
        return self.working

    def _make_working_set(self, radius, straight):
        """Return the working set of a tube around the last reference; straight: and on to what ``until`` may bring."""
        problem, screening, active = self.problem, self.screening, self.screening.active_set
        self._shape = (radius, straight)
        reference = self.references[-1]
        error = reference.margin_error(problem)
        end, dist = reference.M, reference.dist
        if active is True and straight:
            end, dist, factor = self._tube_end(reference)
            error *= factor
        radius = radius if active is True else 0.0 if active else np.inf
        smoothing = reference.sums.smoothing * (1 if len(problem.loss.smoothings) == 1 else 4)
        if not problem.triplets.lists_triplets:
            return self._by_balls(reference, Tube(reference.M, end, radius), dist, error, smoothing)
        # Upwards, where a guarantee closes a hole, ranges would have to be looked up otherwise.
        zones = self._range_zones(reference, smoothing) if screening.ranges and self.until <= reference.lam else None
        return WorkingSet.around(
            problem,
            reference,
            Tube(reference.M, end, radius),
            dist,
            error,
            self._squares,
            low=1 - smoothing,
            both=active != "loss",
            zones=zones,
        )

    def _by_balls(self, reference, tube, end, error, smoothing):
        """Return the working set where triplets have no numbers: of the tube, or of ranges where there is none."""
        problem, ends, radii = self.problem, (reference.dist, end), (tube.radius, tube.radius)
        if not np.isfinite(tube.radius):
            if self.until > reference.lam:
                return None
            # Each range of lambda is an interval, so it is enough that RRPB decides at both of its ends.
            eps, away = self._doubts(reference)
            lam0, lam = reference.lam, self.until
            far = RRPB.at(reference.M, lam0, lam, eps).radius
            ends, radii = (reference.dist, (lam0 + lam) / (2 * lam) * reference.dist), (eps + away, far + away)
            error *= (lam0 + lam) / (2 * lam)
        both = self.screening.active_set != "loss"
        own = reference.sums.smoothing
        return WorkingSet.of_balls(problem, ends, radii, error, tube, own, 1 - smoothing, both)

    def _tube_end(self, reference):
        """Return (M, its pair distances, by how much larger their errors are) as expected at ``until``."""
        slope = _slope([r.lam for r in self.references], self.until)
        if slope is None:
            scale = reference.lam / self.until if len(self.references) == 1 else 1.0
            return scale * reference.M, scale * reference.dist, max(1.0, scale)
        other = self.references[-2]
        own = reference.margin_error(self.problem)
        larger = other.margin_error(self.problem) / own if own > 0 else 1.0
        return (
            reference.M + slope * (reference.M - other.M),
            reference.dist + slope * (reference.dist - other.dist),
            1 + slope + slope * larger,
        )

    def _doubts(self, reference):
        """Return how far M* at the reference's lambda, and any solution with the gap wanted down to ``until``, may be.

        The first from the reference, the second from M* at its own lambda.
        """
        evaluation, bound = reference.evaluate(self.problem, reference.lam)
        eps = np.sqrt(2 * (evaluation.gap + bound) / reference.lam) + self.problem.rounding.element(reference.M)
        # Any solution with the gap wanted lies that close to M*; the optimal objective falls with lambda.
        away = np.sqrt(4 * self.tol * evaluation.scale / ((1 - self.tol) * self.until))
        return float(eps), float(away)

    def _range_zones(self, reference, smoothing):
        """Return the zones that RRPB proves down to ``until``, for M* and for any solution with the gap wanted.

        Its centre and radius are linear in 1/lambda, so a triplet that is decided alike at both ends is so in between.
        """
        problem, triplets, rounding = self.problem, self.problem.triplets, self.problem.rounding
        eps, away = self._doubts(reference)
        error, lam0, ends = reference.margin_error(problem), reference.lam, []
        for lam in (lam0, self.until):
            scale = (lam0 + lam) / (2 * lam)
            radius = (RRPB.at(reference.M, lam0, lam, eps).radius + away) * (1 + 1e-9)
            errors = np.full(triplets.n_pairs, 0.5 * (scale * error + radius * rounding.norm_offset))
            zones = np.zeros(triplets.n_triplets, dtype=np.int8)
            triplets.decide(
                scale * reference.dist, errors, problem.norms, radius * rounding.norm_factor, zones, smoothing,
                problem.threads,
            )  # fmt: skip
            ends.append(zones)
        return np.where(ends[0] == ends[1], ends[0], np.int8(0))

    # -- what a checkpoint holds ------------------------------------------------------------------------------------

    def state(self):
        """Return (numbers, arrays) from which `restore` goes on, to the same bits; in the units of the user."""
        last, out = self.last, self.problem.units.out
        meta = {
            "points": [out(point[0], LAMBDA) for point in self.points],
            "references": [[out(r.lam, LAMBDA), r.sums.smoothing, out(r.error, MATRIX)] for r in self.references],
            "until": out(self.until, LAMBDA),
            "error": self.error,
            "eta": out(self.eta, STEP),
            "known": self.known,
            "wait": [self.wait, self.patience],
            "working": None if self.working is None else [out(self._shape[0], METRIC), self._shape[1]],
            "last": [last.smoothing, last.primal, out(last.error, MATRIX)],
        }
        arrays = {} if last.weights is None else {"weights": last.weights}
        for i, (_, M, A) in enumerate(self.points):
            arrays[f"point M{i}"], arrays[f"point A{i}"] = out(M, METRIC), out(A, MATRIX)
        for i, reference in enumerate(self.references):
            arrays[f"reference M{i}"], arrays[f"reference A{i}"] = out(reference.M, METRIC), out(reference.A, MATRIX)
        return meta, arrays

    def restore(self, meta, arrays):
        """Go on from what `state` gave."""
        into = self.problem.units.into

        def pair(kind, i):
            return into(arrays[f"{kind} M{i}"], METRIC), into(arrays[f"{kind} A{i}"], MATRIX)

        self.points = [(into(lam, LAMBDA), *pair("point", i)) for i, lam in enumerate(meta["points"])]
        self.references = []
        for i, (lam, smoothing, error) in enumerate(meta["references"]):
            M, A = pair("reference", i)
            made = Reference.at(self.problem, M, into(lam, LAMBDA), smoothing, A, into(error, MATRIX))
            self.references.append(made)
        self.until, self.eta = into(meta["until"], LAMBDA), into(meta["eta"], STEP)
        self.error, self.known = meta["error"], meta["known"]
        self.wait, self.patience = meta["wait"]
        smoothing, primal, error = meta["last"]
        self.last = Last(smoothing, primal, into(error, MATRIX), arrays.get("weights"))
        if meta["working"] is not None:
            radius, straight = meta["working"]
            self.working = self._make_working_set(into(radius, METRIC), straight)


def _slope(lams, lam):
    """Return how much of the last difference to add, linear in log(lambda); None where that says nothing."""
    if len(lams) < 2:
        return None
    back, ahead = np.log(lams[-2] / lams[-1]), np.log(lams[-1] / lam)
    return float(ahead / back) if 0 <= ahead < _FAR and 0 < back < _FAR and ahead <= 2.5 * back else None
