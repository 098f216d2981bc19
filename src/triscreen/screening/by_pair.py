"""Screening where triplets have no numbers: pairs leave, and triplets are counted.

A sphere and the separable bound of |H| decide triplets (`triscreen._kernels.ordered`); a pair all of whose triplets are
decided leaves the problem, its weight a constant, and anchors without pairs leave altogether. Only the sphere rule:
the others would have to look at triplets one by one.
"""

from __future__ import annotations

import time

import numpy as np

from triscreen.problem.units import METRIC
from triscreen.screening import rules
from triscreen.screening.by_triplet import Screener
from triscreen.screening.fixing import fix_reduction

# Pairs leave when no more than this share of them would stay.
_PAYS = 0.7
# The hinge has no quadratic part; fixed triplets keep this far from its corner.
_CORNER = 1e-6


class PairScreener(Screener):
    """Screens one problem at one lambda; like `Screener`, with what it decides counted and not remembered.

    In its events, L and R are the triplets of the engine that this sphere decides, whether or not another one has
    decided them before.
    """

    numbers = zones = None  # triplets have no numbers, so they have no zone each

    def _begin(self):
        self._undecided = self.problem.triplets.n_triplets
        self._reduction = None

    @property
    def undecided(self):
        """How many triplets no sphere has decided yet."""
        return self._undecided

    def _apply(self, sphere, evaluation, n_iter):
        """Decide by one sphere, and see what may leave."""
        engine, rounding = self.engine, self.rounding
        before = engine.triplets.n_triplets
        radius = self._radius(sphere, evaluation)
        if not np.isfinite(radius) or not before:
            return
        begin = time.perf_counter()
        values, error = self._values(sphere, radius)
        smoothing = max(engine.loss.gamma, _CORNER)
        found = engine.triplets.reduce(
            (values, values),
            (radius, radius),
            error,
            rounding.norm_offset,
            1 - smoothing,
            True,
            smoothing,
            engine.threads,
            most=_PAYS,
        )
        self.passes += engine.share  # |delta|^2, and the weights of what is decided
        self._undecided = min(self._undecided, before - sum(found.counts))
        self._reduction = None if found.triplets is None else found
        self.events.append(
            {
                "n_iter": n_iter,
                "sphere": sphere.name,
                "rule": "sphere",
                "radius": engine.units.out(radius, METRIC),
                "L": found.counts[0],
                "R": found.counts[1],
                "tried": before,
                "undecided": self._undecided,
                "pairs": engine.triplets.n_pairs,
                "seconds": time.perf_counter() - begin,
            }
        )

    def _values(self, sphere, radius):
        """Return (pair distances under the centre, a bound on the error of their differences)."""
        engine, rounding = self.engine, self.rounding
        if engine.triplets.lists_pairs:
            region, passes = rules.prepare(engine, sphere, radius, rounding)
            self.passes += passes
            return region.values, 2 * float(region.errors.max()) + engine.triplets.quantum(
                float(np.abs(region.values).max()), engine.loss.gamma
            )
        self.passes += 0.5 * engine.share
        values = engine.triplets.distances_of(sphere.center)
        return values, rounding.margin(values, None)

    def _shrink_if_it_pays(self, evaluation):
        if self._reduction is None:
            return evaluation
        found, self._reduction = self._reduction, None
        engine = self.engine = fix_reduction(self.engine, found)
        dist = engine.distances(engine.cone.project(evaluation.M).factor)
        self.passes += engine.share
        return engine.evaluate(evaluation.M, dist, self.lam, evaluation.sums.smoothing)
