"""What is decided at one lambda, and the problem that is left.

A triplet that a safe rule has decided stays decided for this lambda. Decided triplets leave the engine when enough of
them have gathered: those in R vanish, those in L go into a constant matrix. With them go the pairs and points that no
undecided triplet needs.
"""

from __future__ import annotations

import time
from itertools import chain

import numpy as np

from triscreen._threads import Threads
from triscreen.engine import Engine
from triscreen.rounding import Rounding, U
from triscreen.screening import rules, spheres
from triscreen.screening.rounding import gap_error, safe_radius
from triscreen.triplets.listed import take

# A list costs about three times as much per triplet as a block of nearest neighbours: leave blocks when that pays.
_LEAVE_BLOCKS, _SHORTEN_LIST = 0.4, 0.75


class Screener:
    """Screens one problem at one lambda.

    Parameters
    ----------
    problem : Problem
    screening : Screening
    lam : float
    tol : float
        Relative gap that the solution will have; matters where the spheres must include it.

    Attributes
    ----------
    engine : Engine
        The problem that is left.
    events : list of dict
        What each sphere and rule decided, and what it cost.
    """

    def __init__(self, problem, screening, lam, tol):
        self.problem, self.screening, self.lam, self.tol = problem, screening, lam, tol
        self.engine = problem
        self.events = []
        self.passes = 0.0
        self._norms = problem.norms
        self._zones = np.zeros(problem.triplets.n_triplets, dtype=np.int8)
        self.rounding = problem.rounding
        self._gone = np.zeros(
            0, dtype=np.int8
        )  # zones of all triplets when some left, and the numbers of those that stay
        self._numbers = None

    @property
    def undecided(self):
        """How many triplets have no zone yet."""
        return int(np.count_nonzero(self._zones == rules.UNDECIDED))

    @property
    def zones(self):
        """The zone of every triplet of the problem."""
        if self._numbers is None:
            return self._zones
        zones = self._gone.copy()
        zones[self._numbers] = self._zones
        return zones

    def start(self, evaluation, lam0):
        """Screen with the start; lam0: the lambda that it is a solution for, or None. Returns the new evaluation."""
        other = lam0 is not None and lam0 != self.lam
        found = [
            self._from_other_lambda(bound, evaluation, lam0)
            for bound in self.screening.bounds
            if other and bound in ("rpb", "rrpb")
        ]
        return self._screen(evaluation, chain(found, self._spheres(evaluation)), n_iter=0)

    def step(self, evaluation, n_iter):
        """Screen with the current iterate; returns the new evaluation, on ``self.engine``."""
        return self._screen(evaluation, self._spheres(evaluation), n_iter)

    def _spheres(self, evaluation):
        cone = self.problem.cone
        for bound in self.screening.bounds:
            if callable(bound):
                yield bound(cone, evaluation, self.lam)
            elif bound == "cdgb":
                yield self._cdgb(evaluation)
            elif bound in ("gb", "pgb", "dgb", "mid"):
                yield getattr(spheres, bound)(cone, evaluation, self.lam)

    def _from_other_lambda(self, bound, evaluation, lam0):
        """RPB or RRPB; the start was evaluated over all triplets, so its gap at lam0 is known."""
        M0, cone = evaluation.M, self.problem.cone
        if bound == "rpb":
            sphere = spheres.rpb(M0, lam0, self.lam)
        else:
            gap = evaluation.slack + cone.gap(M0, evaluation.dual_point, lam0)
            eps = np.sqrt(2 * (gap + gap_error(self.rounding, evaluation, lam0)) / lam0) + self.rounding.element(M0)
            normal = spheres.normal_of(cone, evaluation.dual_point)
            sphere = spheres.rrpb(M0, lam0, self.lam, float(eps), evaluation.dist, normal)
        return sphere

    def _cdgb(self, evaluation):
        engine, lam = self.engine, self.lam
        dist = engine.distances(evaluation.dual_point.factor)
        self.passes += 0.5 * engine.share
        gap = engine.triplets.cross_slack(
            evaluation.dist, evaluation.sums.smoothing, dist / lam, engine.loss.gamma, engine.threads
        )
        sphere = spheres.cdgb(engine.cone, evaluation, lam, gap)
        term = sphere.terms[0]
        return spheres.Sphere(
            sphere.center,
            sphere.radius,
            "cdgb",
            (spheres.Term(term.coefficient, term.factor, dist, term.trace),),
            sphere.normal,
        )

    def _screen(self, evaluation, found, n_iter):
        for sphere in found:
            self._apply(sphere, evaluation, n_iter)
        limit = _SHORTEN_LIST if self.engine is not self.problem or self.problem.triplets.listed else _LEAVE_BLOCKS
        if self.undecided <= limit * len(self._zones) and self.undecided < len(self._zones):
            evaluation = self._shrink(evaluation)
        return evaluation

    def _apply(self, sphere, evaluation, n_iter):
        """Run the rules, cheap to dear, on one sphere."""
        if not self.undecided:
            return
        engine, rounding = self.engine, self.rounding
        radius = safe_radius(rounding, sphere, evaluation, self.lam)
        if self.screening.include_solution:
            radius += np.sqrt(2 * self.tol * abs(evaluation.primal) / ((1 - self.tol) * self.lam))
        if not np.isfinite(radius):
            return
        region, passes = rules.prepare(engine, sphere, radius, rounding)
        self.passes += passes
        names = rules.RULES[: rules.RULES.index(self.screening.rule) + 1] if isinstance(self.screening.rule, str) else (
            "sphere", self.screening.rule)  # fmt: skip
        for name in names:
            before = self._counts()
            begin = time.perf_counter()
            if name == "sphere":
                rules.sphere_rule(engine, region, self._norms, self._zones)
            elif name == "linear":
                self.passes += rules.linear(engine, region, self._norms, self._zones, rounding)
            elif name == "semidefinite":
                rules.semidefinite(engine, region, self._norms, self._zones)
            else:
                name(engine, region, self._norms, self._zones)
            gained = self._counts() - before
            self.events.append(
                {
                    "n_iter": n_iter,
                    "sphere": sphere.name,
                    "rule": name if isinstance(name, str) else "own",
                    "radius": radius,
                    "L": int(gained[0]),
                    "R": int(gained[1]),
                    "tried": int(len(self._zones) - before.sum()),
                    "undecided": int(len(self._zones) - (before + gained).sum()),
                    "pairs": engine.triplets.n_pairs,
                    "seconds": time.perf_counter() - begin,
                }
            )

    def _counts(self):
        return np.bincount(self._zones, minlength=3)[1:]

    def _shrink(self, evaluation):
        """Let the decided triplets go; returns the evaluation on the smaller engine."""
        old, triplets = self.engine, self.engine.triplets
        left = self._zones == rules.UNDECIDED
        linear = self._zones == rules.LINEAR
        matrix, weight, error = old.linear_matrix, old.linear_weight, self.rounding.linear_error
        if linear.any():
            positive, negative = triplets.pair_numbers(linear)
            w = np.ones(len(positive)) if triplets.weights is None else triplets.weights[linear]
            c = np.bincount(negative, w, triplets.n_pairs) - np.bincount(positive, w, triplets.n_pairs)
            added = old.assemble(c)
            self.passes += 0.5 * old.share
            matrix = added if matrix is None else matrix + added
            weight += float(w.sum())
            error += self.rounding.sum_of_h(float(w.sum())) + U * float(np.linalg.norm(matrix))
        if self._numbers is None:
            self._gone, self._numbers = self._zones, np.flatnonzero(left)
        else:
            self._gone[self._numbers] = self._zones
            self._numbers = self._numbers[left]
        problem = self.problem
        kept, pairs, points = take(triplets, left)
        self.engine = Engine(
            old.points[points],
            kept,
            problem.loss,
            problem.cone,
            Threads(problem.threads.n_jobs),
            matrix,
            weight,
            len(pairs) / problem.triplets.n_pairs,
        )
        self.engine.point_error = problem.point_error
        self._norms = self._norms[left]
        self._zones = np.zeros(len(self._norms), dtype=np.int8)
        self.rounding = Rounding(self.engine, problem.point_error, error)
        self.passes += 0.5 * self.engine.share
        return self.engine.evaluate(evaluation.M, evaluation.dist[pairs], self.lam, evaluation.sums.smoothing)
