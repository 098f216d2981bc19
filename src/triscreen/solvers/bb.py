"""Projected gradient with Barzilai-Borwein steps, made robust.

    M+ = [M - eta (lam M - A)]_+,   eta = <dM, dM>/<dM, dG> and <dM, dG>/<dG, dG> in turn

(the paper takes the mean of the two; in turn they need 10 to 30 % fewer iterations where there are many)

* The first step is eta = 1/lam, which leads to M(alpha) = [A]_+/lam (no step size to tune, whatever the units of X), or
  where a solve before left off.
* The objective may rise a little now and then (that is what makes the method fast), but not above its largest value of
  the last iterations. Where it would, the step is cut to a minimum along the segment from M to M+: pair distances are
  linear in M, so a search on the segment costs sweeps over triplets and no pair work.
* eta never exceeds 1/lam, because the objective is lam-strongly convex.
* An iteration takes one eigendecomposition, that of its step: it bounds the gap from below (`PSD.gap_at_least`), and
  only where that does not say "not yet" the gap itself is computed, by another one.

References
----------
T. Yoshida, I. Takeuchi, M. Karasuyama. Safe Triplet Screening for Distance Metric Learning. KDD 2018. arXiv:1802.03923:
section 5 (the base optimizer).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

_EPS = np.finfo(float).eps


@dataclass(frozen=True)
class BarzilaiBorwein:
    """The solver ``"bb"``.

    Parameters
    ----------
    memory : int
        The objective may not rise above its largest value over so many iterations.
    max_search : int
        Sweeps that one search on a segment may take.
    """

    memory: int = 10
    max_search: int = 30

    needs = ()

    def run(self, engine, lam, evaluation, monitor):
        """Iterate from an evaluation until the monitor stops it; return the engine and evaluation it ended with."""
        engine, now, eta, _ = self.iterate(engine, lam, evaluation, evaluation.step, monitor, np.inf)
        return engine, now.going_on(eta)

    def iterate(self, engine, lam, now, eta, monitor, steps):
        """Take so many steps at most; return (engine, evaluation, eta, whether the monitor said stop).

        eta: the size that the next step had better have; that of the first one, or of the one after the last.
        """
        cone, size = engine.cone, min(eta, 1.0 / lam)
        recent = deque([now.objective], maxlen=self.memory)
        gradient, trial = now.gradient(lam), None
        taken = 0
        while taken < steps:
            trial = cone.project(now.M - size * gradient) if trial is None else trial
            slope = float(np.vdot(gradient, trial.plus - now.M))
            if slope >= 0.0:  # the projected step is zero, or nothing but rounding
                if size < 1.0 / lam:
                    size, trial = 1.0 / lam, None
                    continue
                monitor.stop("stalled")
                return engine, now, eta, True
            dist = engine.distances(trial.factor)
            after, share, sweeps = self.accept(engine, lam, now, trial, dist, slope, max(recent))
            monitor.count(engine.share + (sweeps - 1) * engine.sweep_share)
            taken += 1
            before, gradient = gradient, after.gradient(lam)
            eta = size = self._next_eta(after.M - now.M, gradient - before, lam, size * share, taken)
            now, trial, at_least = after, None, None
            recent.append(now.objective)
            if taken < steps and monitor.may_skip_gaps:  # the next projection bounds this gap
                trial = cone.project(now.M - size * gradient)
                at_least = now.slack + cone.gap_at_least(now.M, now.target(lam), trial, lam)
            if monitor.saw(now, eta, at_least):
                return engine, now, eta, True
            smaller, now = monitor.refresh(engine, now)
            if smaller is not engine:
                engine, gradient, trial = smaller, now.gradient(lam), None
                recent.clear()
                recent.append(now.objective)
        return engine, now, eta, False

    def accept(self, engine, lam, now, trial, dist, slope, ceiling):
        """Return (the evaluation at the trial, or lower on the segment to it; how far along that lies; sweeps)."""
        M, smoothing = trial.plus, now.sums.smoothing
        swept = engine.sweep(dist, smoothing)
        objective = engine.objective(M, lam, swept[0])
        allowed = ceiling + 1e-4 * slope + 8 * _EPS * abs(ceiling)
        if objective <= allowed:
            return engine.evaluate(M, dist, lam, smoothing, swept, factor=trial.factor), 1.0, 1
        share, sweeps = self._search(engine, lam, now, M, dist, slope)
        while True:
            sweeps += 1
            point, near = now.M + share * (M - now.M), now.dist + share * (dist - now.dist)
            swept = engine.sweep(near, smoothing)
            if share < 1e-12 or engine.objective(point, lam, swept[0]) <= ceiling + 8 * _EPS * abs(ceiling):
                return engine.evaluate(point, near, lam, smoothing, swept), share, sweeps
            share *= 0.25

    def _search(self, engine, lam, now, M, dist, slope):
        """Return t in (0, 1) near the minimum of the objective on the segment, by its derivative's sign; and sweeps."""
        smoothing = now.sums.smoothing
        step, dist_step = M - now.M, dist - now.dist

        def derivative(t):
            _, pair_weights = engine.sweep(now.dist + t * dist_step, smoothing)
            return engine.slope(now.M + t * step, step, lam, pair_weights, dist_step)

        low, high, at_low = 0.0, 1.0, slope
        t = 0.1
        sweeps = 1
        while sweeps <= self.max_search:
            sweeps += 1
            value = derivative(t)
            if abs(value) <= 0.1 * abs(slope) or high - low <= 1e-3 * high:
                break
            if value < 0:
                low, at_low = t, value
            else:
                high, at_high = t, value
            if high == 1.0:
                t = min(0.5 * (1.0 + low), 4 * t)
            elif low == 0.0 and high > 1e-12:
                t = high * max(0.1, min(0.5, at_low / (at_low - at_high)))
            else:
                t = low + (high - low) * max(0.1, min(0.9, at_low / (at_low - at_high)))
        return t, sweeps

    @staticmethod
    def _next_eta(dM, dG, lam, eta, number):
        mm, mg, gg = float(np.vdot(dM, dM)), float(np.vdot(dM, dG)), float(np.vdot(dG, dG))
        if not (mg > 0.0 and gg > 0.0 and np.isfinite(mm)):
            return eta
        return min(mm / mg if number % 2 else mg / gg, 1.0 / lam)
