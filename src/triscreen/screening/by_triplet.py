"""What is decided at one lambda, and the problem that is left.

A triplet that a safe rule has decided stays decided for this lambda. Decided triplets leave the engine when enough of
them have gathered: those in R vanish, those in L go into a constant matrix. With them go the pairs and points that no
undecided triplet needs.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from triscreen._utils.validation import shortened
from triscreen.errors import InputError
from triscreen.problem.units import LAMBDA, METRIC
from triscreen.screening import rules
from triscreen.screening.fixing import fix_by_difference, fix_by_sum
from triscreen.screening.spheres import BOUNDS, Sphere, looks_from_other_lambda

# Make the problem smaller when the undecided triplets have become fewer by this factor.
_PAYS = 0.7


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
        self._begin()

    def _begin(self):
        """Nothing is decided yet."""
        problem = self.problem
        self._norms = problem.norms
        self._zones = np.zeros(problem.triplets.n_triplets, dtype=np.int8)
        self._whole = None  # positive pairs all of whose triplets the last sphere decided alike
        self._departures = []  # who has left so far, with the zones at the time
        self._undecided = self._last_undecided = len(self._zones)

    @property
    def rounding(self):
        """Bounds on what rounding does to the numbers of what is left."""
        return self.engine.rounding

    @property
    def undecided(self):
        """How many triplets have no zone yet."""
        return self._undecided

    @property
    def numbers(self):
        """The numbers of the problem's triplets that the engine still has; None: all."""
        numbers = None
        for left, _ in self._departures:
            numbers = left.numbers() if numbers is None else numbers[left.numbers()]
        return numbers

    @property
    def zones(self):
        """The zone of every triplet of the problem."""
        self._catch_up()
        zones = self._zones
        for left, before in reversed(self._departures):
            inner, zones = zones, before.copy()
            zones[left.numbers()] = inner
        return zones

    def start(self, evaluation, lam0):
        """Screen with the start; lam0: the lambda that it is a solution for, or None. Returns the new evaluation."""
        other = lam0 is not None and lam0 != self.lam
        for bound in self.screening.bounds:
            if other and looks_from_other_lambda(bound):
                # Before anything has left the engine: these need the start evaluated over all triplets.
                self._apply(self._sphere(bound, evaluation, lam0), evaluation, n_iter=0)
        if other and self.events:
            return self._shrink_if_it_pays(evaluation)  # a sphere around the same M would hardly add to that
        return self.step(evaluation, n_iter=0)

    def step(self, evaluation, n_iter):
        """Screen with the current iterate; returns the new evaluation, on ``self.engine``."""
        for bound in self.screening.bounds:
            if not looks_from_other_lambda(bound):
                self._apply(self._sphere(bound, evaluation), evaluation, n_iter)
                evaluation = self._shrink_if_it_pays(evaluation)
        return evaluation

    def _sphere(self, bound, evaluation, lam0=None):
        if callable(bound):
            return self._own_sphere(bound, evaluation)
        sphere, passes = BOUNDS[bound].make(self.engine, evaluation, self.lam, lam0)
        self.passes += passes
        return sphere

    def _own_sphere(self, bound, evaluation):
        """A user's sphere, asked for and told in the units of X."""
        units = self.problem.units
        sphere = bound(self.problem.cone, evaluation.out_of(units), units.out(self.lam, LAMBDA))
        if not isinstance(sphere, Sphere):
            raise InputError(f"the own bound returned {shortened(sphere)}: it must return a ts.Sphere")
        shape = np.shape(evaluation.M)
        if not sphere.radius >= 0 or np.shape(sphere.center) != shape:
            raise InputError(
                f"the own bound returned a sphere {shortened(sphere.name)} with radius {sphere.radius} and a centre of "
                f"shape {np.shape(sphere.center)}: the radius must be at least 0, the shape {shape}"
            )
        return sphere.into(units)

    def _shrink_if_it_pays(self, evaluation):
        """Let decided triplets go once enough of them have gathered; returns the evaluation to go on with."""
        undecided = self.undecided
        if undecided > _PAYS * self._last_undecided or undecided == self._last_undecided:
            return evaluation
        self._last_undecided = undecided
        return self._shrink(evaluation)

    def _radius(self, sphere, evaluation):
        """Return the sphere's radius, safe in floating point and, if wanted, with the solution inside."""
        radius = sphere.safe_radius(self.rounding, evaluation, self.lam)
        if self.screening.include_solution:
            # Both the gap and its rounding may be tol P at the end, and P no more than now.
            radius += np.sqrt(4 * self.tol * evaluation.scale / ((1 - self.tol) * self.lam))
        return float(radius)

    def _apply(self, sphere, evaluation, n_iter):
        """Run the rules, cheap to dear, on one sphere."""
        if not self.undecided:
            return
        self._catch_up()
        engine, rounding = self.engine, self.rounding
        radius = self._radius(sphere, evaluation)
        if not np.isfinite(radius):
            return
        region, passes = rules.prepare(engine, sphere, radius, rounding)
        self.passes += passes
        names = rules.RULES[: rules.RULES.index(self.screening.rule) + 1] if isinstance(self.screening.rule, str) else (
            "sphere", self.screening.rule)  # fmt: skip
        for name in names:
            tried, begin = self._undecided, time.perf_counter()
            if name == "sphere":
                self._whole = np.empty(engine.triplets.n_pairs, dtype=np.int8)
                gained = rules.sphere_rule(engine, region, self._norms, self._zones, self._whole)
            else:
                before = self._counts()
                if name == "linear":
                    self.passes += rules.linear(engine, region, self._norms, self._zones, rounding)
                elif name == "semidefinite":
                    rules.semidefinite(engine, region, self._norms, self._zones)
                else:
                    name(engine, region, self._norms, self._zones)
                    self._whole = None  # who knows what an own rule does to zones
                gained = self._counts() - before
            self._undecided = tried - int(gained.sum())
            self.events.append(
                {
                    "n_iter": n_iter,
                    "sphere": sphere.name,
                    "rule": name if isinstance(name, str) else "own",
                    "radius": engine.units.out(radius, METRIC),
                    "L": int(gained[0]),
                    "R": int(gained[1]),
                    "tried": tried,
                    "undecided": self._undecided,
                    "pairs": engine.triplets.n_pairs,
                    "seconds": time.perf_counter() - begin,
                }
            )

    def _counts(self):
        return np.array([np.count_nonzero(self._zones == zone) for zone in (rules.LINEAR, rules.ZERO)])

    def _shrink(self, evaluation):
        """Let the decided triplets go that no other one needs the pairs of; returns the evaluation on what is left."""
        old, dist, smoothing = self.engine, evaluation.dist, evaluation.sums.smoothing
        left = old.triplets.let_go(self._zones, dist, smoothing, self._whole, old.threads)
        less, dist = old.restrict(left.triplets, left.pairs), dist[left.pairs]
        swept = less.sweep(dist, smoothing)
        if left.strays:
            self.engine = fix_by_sum(old, less, left)
            if left.linear:
                self.passes += 0.5 * old.share
            self.passes += 0.5 * less.share
            smaller = self.engine.evaluate(evaluation.M, dist, self.lam, smoothing, swept)
        else:
            smaller = self._split_evaluation(evaluation, less, dist, swept, old.linear_weight + left.linear)
        self._departures.append((left, self._zones))
        self._zones = None  # many a solve ends before somebody asks again
        return smaller

    def _catch_up(self):
        """See to it that zones and norms are those of the triplets that are left."""
        if self._zones is None:
            left, zones = self._departures[-1]
            self._zones, self._norms = left.kept(zones, self._norms)
            self._whole = None

    def _split_evaluation(self, evaluation, less, dist, swept, weight):
        """All that leave have the alpha of their zone at M, so both problems have the same A and the same gap there."""
        sums, pair_weights = swept
        error = less.rounding.matrix(evaluation.A, evaluation.sums.alpha)  # of the old A; the bounds are the same
        self.engine = fix_by_difference(less, swept, evaluation.A, error, weight)
        self.passes += 0.5 * less.share
        objective = self.engine.objective(evaluation.M, self.lam, sums)
        return replace(evaluation, dist=dist, sums=sums, weights=pair_weights, objective=objective)
