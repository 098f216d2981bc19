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

import math
from dataclasses import dataclass, field, replace

import numpy as np

from triscreen._utils.lazy import cached_property
from triscreen.errors import OutOfTime
from triscreen.path.row import Row, pulled_by
from triscreen.screening.spheres import RRPB, looks_from_other_lambda
from triscreen.screening.working_set import Reference, Tube, WorkingSet
from triscreen.solvers.at_lambda import Start, known_anyway, on_base, schedule, solve_at
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
# What things take, in nanoseconds, about: a pass for each pair, and dimension of it, and for each point and two
# dimensions; a tube, and each pair of it (each triplet takes one), and for three dimensions. What a working set is
# likely to keep of the pairs, and how many lambdas back to look for that.
_A_PAIR, _A_DIMENSION, _A_POINT = 8.0, 0.3, 0.12
_TUBE, _TUBE_PAIR, _TUBE_EIGEN = 4e5, 8.0, 8.0
_SHARE, _RECENT = 0.25, 5
# Bytes that rows may keep to be ends of balls without another pass; none where memory has a budget.
_KEEP = 1 << 26


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
    frugal : bool
        Make a tube only where it is likely to save more than it costs.
    solutions : list of (lam, M, A)
        The last two, with A over all triplets.
    references : list of Reference
        The last two that were evaluated over all pairs.
    working : WorkingSet or None
        Serves down to the lambda ``until``.
    shape : (float, bool) or None
        Radius of its tube, and whether this leads on to what ``until`` may bring.
    error : float
        How far off the last prediction of a tube's end was, relative to |M|.
    scanned : float
        Triplets that proofs and tubes looked at in this step, over all triplets.
    """

    problem: object
    solver: object
    screening: object
    tol: float
    max_iter: int
    frugal: bool = False
    solutions: list = field(default_factory=list)
    references: list = field(default_factory=list)
    working: WorkingSet | None = None
    until: float = np.inf
    shape: tuple | None = None
    error: float = 0.05
    eta: float = np.inf  # the solver's last step size
    last: Last | None = None
    known: bool = False  # is the last point the last reference?
    wait: int = 0  # so many lambdas before the next try, where too much stayed in the working set
    patience: int = 1
    scanned: float = 0.0
    kept: int = 0  # bytes of matrices that rows keep
    _pulls: dict = field(default_factory=dict)  # lambda -> P (see `Row`), of the last two

    def step(self, lam, ahead, max_seconds=None, rows=()):
        """Solve for lam and return its `Row`; the tube, if a new one is needed, shall serve down to ``ahead``.

        rows: of the lambdas before.
        """
        self._rows = rows[-_RECENT:]
        problem, monitor = self.problem, Monitor(self.problem, lam, self.tol, self.max_iter, max_seconds, None)
        self.scanned, before = 0.0, self._pulls_before()
        try:
            _ = problem.rounding  # every certificate needs it: also one that is made when the time is over
            solved, working = self._solve(lam, ahead, monitor)
        except OutOfTime:
            if self.solutions:
                raise
            solved, working = known_anyway(problem, lam, self.solver, monitor), None
            monitor.turn_to(lam, self.tol)
            monitor.stop("max_seconds")
        self.kept += solved.M.nbytes
        self._pulls = {**dict(before[-1:]), lam: pulled_by(problem, lam, solved.proof.dual_point)}
        return Row.of(
            problem,
            lam,
            solved,
            before=before,
            keep=self.kept <= _KEEP and problem.triplets.lists_triplets and problem.memory_budget is None,
            n_iter=monitor.n_iter,
            passes=monitor.passes,
            scanned=self.scanned + sum(event["tried"] for event in monitor.events) / problem.triplets.n_triplets,
            share=problem.share if working is None else working.engine.share,
            undecided=monitor.undecided / problem.triplets.n_triplets,
            seconds=monitor.seconds,
            stopped_by=solved.stopped_by(monitor.stopped_by, self.tol),
            events=_events(working, monitor.events, problem.triplets),
        )

    def _pulls_before(self):
        """Return (lambda, P) of the last two solutions; those that a checkpoint brought are projected again."""
        problem, known = self.problem, self._pulls
        return [
            (lam, known[lam] if lam in known
             else pulled_by(problem, lam, problem.cone.project(problem.pull(A, lam))))
            for lam, _, A in self.solutions
        ]  # fmt: skip

    def _solve(self, lam, ahead, monitor):
        """Return the solution, proven over all triplets, and the working set that it was found on (None: all)."""
        problem, predicted = self.problem, self._predict(lam)
        for attempt in range(_MOST_TUBES + 1):
            working = self._working_set(lam, ahead, attempt, monitor)
            solved = self._solve_on(working, lam, None if attempt else predicted, monitor)
            self._accept(lam, solved)
            # Zones from ranges hold at a solution, not at whatever else.
            proven = monitor.stopped_by == "converged" or not self.screening or not self.screening.ranges
            if working is None or (proven and working.tube.holds(solved.M)):
                break
            reference = self._reference(monitor)
            evaluation, bound = reference.evaluate(problem, lam)
            solved = replace(solved, proof=evaluation, rounding=bound, error=reference.error)
            if evaluation.within(self.tol) or monitor.stopped_by != "converged":
                break
        return solved, working

    def _predict(self, lam):
        """Return the projection of what the last two solutions say about lam."""
        cone = self.problem.cone
        if not self.solutions:
            return self.problem.start(lam)
        lam1, M1, A1 = self.solutions[-1]
        slope = _slope([solution[0] for solution in self.solutions], lam)
        if slope is None:
            return cone.project(M1 if len(self.solutions) > 1 else self.problem.away_from_prior(M1, lam1 / lam))
        _, M0, A0 = self.solutions[-2]
        M = M1 + slope * (M1 - M0)
        if lam > lam1 * math.exp(-_CLOSE):
            # What is left of the last solutions' errors shows in their gradients, and these can be extrapolated too: a
            # step of projected gradient without any pair work.
            A = A1 + slope * (A1 - A0)
            M = M - min(self.eta, 1 / lam) * (lam * M - self.problem.pull(A, lam))
        return cone.project(M)

    def _accept(self, lam, solved):
        if self.solutions and self.solutions[-1][0] == lam:
            self.solutions.pop()
        evaluation = solved.proof
        self.solutions = [*self.solutions[-1:], (lam, evaluation.M, evaluation.A)]
        self.last = Last(evaluation.sums.smoothing, evaluation.primal, solved.error, evaluation.weights)
        self.known = False

    def _solve_on(self, working, lam, predicted, monitor):
        """Solve over the working set (None: all triplets), from what was predicted (None: from the last reference)."""
        base, tol = (self.problem, self.tol) if working is None else (working.engine, _INNER * self.tol)
        start = self._start(working, lam, predicted, monitor)
        solved = solve_at(base, lam, tol, self.solver, self.screening, start, monitor, on_base)
        self.eta = solved.step
        return solved

    def _start(self, working, lam, predicted, monitor):
        # The farther from the last lambda, the coarser the smoothing to begin with.
        smoothing, coarser = None, 0
        if self.last is not None:
            smoothing, coarser = self.last.smoothing, 1 + int(3 * abs(math.log(self.solutions[-1][0] / lam)))
        smoothings = schedule(self.problem.loss.smoothings, smoothing, coarser)
        if predicted is None:
            reference = self.references[-1]
            dist = reference.dist if working is None else reference.dist[working.pairs]
            return Start(reference.M, *smoothings, dist=dist, step=self.eta)
        start = Start(predicted.plus, *smoothings, factor=predicted.factor, step=self.eta)
        if not self._screens_from_the_last(working):
            return start
        reference = self._reference(monitor)
        self.scanned += 1
        return replace(start, lam0=reference.lam, solution=reference.evaluate(self.problem, lam)[0])

    def _screens_from_the_last(self, working):
        screening = self.screening
        return (
            working is None
            and self.last is not None
            and screening is not None
            and screening.at_start
            and any(map(looks_from_other_lambda, screening.bounds))
        )

    def _reference(self, monitor):
        """Return the last solution as a `Reference`, evaluated over all pairs if it is not yet."""
        if self.known:
            return self.references[-1]
        problem, last, (lam, M, A) = self.problem, self.last, self.solutions[-1]
        if self.working is None:
            known = last.weights is not None and problem.triplets.lists_triplets
            made = Reference.at(problem, M, lam, last.smoothing, A if known else None)
            passes = 0.5 if known else 1.0
            if known:
                made, more = made.put_right(problem, last.weights, last.error, self._squares)
                passes += more
            monitor.count(passes)
        else:
            made, passes = self.working.prove(problem, M, lam, last.smoothing, A, last.weights, self._squares)
            monitor.count(passes)
            size = float(np.linalg.norm(M))
            off = float(np.linalg.norm(M - self.working.tube.end)) / size if size > 0 else 0.0
            self.error = max(off, 0.3 * self.error)
        self.scanned += 1
        if made.evaluate(problem, lam)[1] > 1e-3 * self.tol * max(abs(last.primal), problem.floor):
            # A is a sum of many differences by now: add it up anew.
            made = replace(made, A=problem.assemble(made.weights), error=problem.rounding.sum_of_h(made.sums.alpha))
            monitor.count(0.5)
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
        if screening is None or not (screening.active_set or screening.ranges) or not self.solutions:
            return None
        far = lam < self.solutions[-1][0] * math.exp(-_FAR)  # a tube that reaches so far holds next to nothing
        if far and screening.active_set is True and not screening.ranges:
            self.working = None
            return None
        if self.wait > 0 and not attempt:
            self.wait -= 1
            self.working = None
            return None
        problem = self.problem
        serves = self.working is not None and self.until * (1 - 1e-12) <= lam <= self.references[-1].lam
        if self.frugal and not serves and not attempt and not self._pays(lam, ahead):
            self.working = None
            return None
        if not serves or attempt:
            reference = self._reference(monitor)
            if attempt == _MOST_TUBES:
                return None
            self.until = lam if attempt else min(ahead, lam)
            spread = _WIDE if self.until < lam * (1 - 1e-12) else _NARROW
            radius = spread * self.error * float(np.linalg.norm(reference.M)) * 4**attempt
            self.working = self.make_working_set(radius, straight=attempt == 0)
            self.scanned += 1
            monitor.count(0.5 * self.working.engine.share if problem.triplets.lists_triplets else 1.0)
            if self.working is None:
                self.wait = self.patience = min(16, 2 * self.patience)
        return self.working

    def _pays(self, lam, ahead):
        """Would a tube save more than it takes? By counts, not by a clock, so that every run decides alike."""
        pairs, points, takes = self._prices
        shares = [row.share for row in self._rows if row.share < 1]
        share = shares[-1] if shares else _SHARE
        passes = 1 + (sum(row.n_iter for row in self._rows) / len(self._rows) if self._rows else 2)
        step = math.log(self.solutions[-1][0] / lam)
        lambdas = 1 + (math.log(lam / ahead) / step if step > 0 else 0)
        # Of the points a working set keeps more than of the pairs.
        saved = (1 - share) * pairs + (1 - min(1.0, 1.4 * math.sqrt(share))) * points
        return lambdas * passes * saved > takes

    @cached_property
    def _prices(self):
        """What a pass takes for its pairs and for its points, and what a tube takes."""
        triplets = self.problem.triplets
        if not triplets.lists_triplets:
            return math.inf, 0.0, 0.0
        dim = triplets.dim
        pairs, points = triplets.n_pairs * (_A_PAIR + _A_DIMENSION * dim), _A_POINT * triplets.n_points * dim**2
        own = _TUBE + _TUBE_PAIR * triplets.n_pairs + triplets.n_triplets + _TUBE_EIGEN * dim**3
        return pairs, points, own + pairs + 0.5 * points

    def make_working_set(self, radius, straight):
        """Return the working set of a tube around the last reference; straight: and on to what ``until`` may bring."""
        problem, screening, active = self.problem, self.screening, self.screening.active_set
        self.shape = (radius, straight)
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
            scale = (lam0 + lam) / (2 * lam)
            far = RRPB.at(reference.M, lam0, lam, eps, prior=problem.prior).radius
            ends, radii = (reference.dist, problem.scaled(reference.dist, scale)), (eps + away, far + away)
            error = problem.scaled_error(error, scale)
        both = self.screening.active_set != "loss"
        own = reference.sums.smoothing
        return WorkingSet.of_balls(problem, ends, radii, error, tube, own, 1 - smoothing, both)

    def _tube_end(self, reference):
        """Return (M, its pair distances, by how much larger their errors are) as expected at ``until``."""
        slope = _slope([r.lam for r in self.references], self.until)
        if slope is None:
            scale = reference.lam / self.until if len(self.references) == 1 else 1.0
            M, dist = self.problem.away_from_prior(reference.M, scale), self.problem.scaled(reference.dist, scale)
            return M, dist, max(1.0, self._larger(reference, scale))
        other = self.references[-2]
        own = reference.margin_error(self.problem)
        larger = other.margin_error(self.problem) / own if own > 0 else 1.0
        dist = reference.dist - other.dist
        dist *= slope  # in place: these are long
        dist += reference.dist
        return reference.M + slope * (reference.M - other.M), dist, 1 + slope + slope * larger

    def _larger(self, reference, scale):
        """Return by how much larger the error of a margin is at such a scale of the reference."""
        own = reference.margin_error(self.problem)
        return scale if self.problem.prior is None or own == 0 else self.problem.scaled_error(own, scale) / own

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
            radius = (RRPB.at(reference.M, lam0, lam, eps, prior=problem.prior).radius + away) * (1 + 1e-9)
            doubt = problem.scaled_error(error, scale) + radius * rounding.norm_offset
            errors = np.full(triplets.n_pairs, 0.5 * doubt)
            zones = np.zeros(triplets.n_triplets, dtype=np.int8)
            values, radius = problem.scaled(reference.dist, scale), radius * rounding.norm_factor
            triplets.decide(values, errors, problem.norms, radius, zones, smoothing, problem.threads)
            ends.append(zones)
        return np.where(ends[0] == ends[1], ends[0], np.int8(0))


def _events(working, events, triplets):
    """Return what was decided at a lambda: by ranges, then by spheres; safe: for the whole problem, beforehand.

    In a tube a sphere holds the optimum of the smaller problem, which is that of the whole once that is proven.
    """
    events = [{**event, "safe": working is None or working.is_safe} for event in events]
    if working is None or not sum(working.by_ranges):
        return events
    L, R = working.by_ranges
    n, pairs = triplets.n_triplets, working.engine.triplets.n_pairs
    told = {"n_iter": 0, "sphere": "rrpb", "rule": "range", "radius": 0.0, "L": L, "R": R, "tried": n,
            "undecided": n - L - R, "pairs": pairs, "seconds": 0.0, "safe": True}  # fmt: skip
    return [told, *events]


def _slope(lams, lam):
    """Return how much of the last difference to add, linear in log(lambda); None where that says nothing."""
    if len(lams) < 2:
        return None
    back, ahead = math.log(lams[-2] / lams[-1]), math.log(lams[-1] / lam)
    return float(ahead / back) if 0 <= ahead < _FAR and 0 < back < _FAR and ahead <= 2.5 * back else None
