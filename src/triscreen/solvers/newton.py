"""Newton steps, scaled so that they stay in the cone, between steps of projected gradient.

    minimise  f(M) = (smoothed loss) + (lam/2) |M|^2   over the cone;   G = grad f(M),  H = the Hessian of the loss

At the optimum G is positive semi-definite and G M = 0: an eigenvector of M has a positive eigenvalue of M or of G, not
both. One step solves, in the eigenbasis of M - eta G (with mu and g the diagonals of M and G there),

    (lam + kappa + H) dM = -G,      kappa_ij = ([g_i]_+ + [g_j]_+) / (mu_i + mu_j)

by conjugate gradients; H costs only the pairs of quadratic triplets (`Curvature`). Where mu_i > 0 and g_i = 0 this is
Newton's system. Between a direction that M has and one that it lacks, kappa is the curvature of the cone's boundary,
and within the directions that M lacks it is infinite: dM = 0 there. A direction that M is about to lose, small mu_i and
g_i > 0, is led to zero and not beyond, where a plain Newton step would be cut off by the projection and spoil the rest
of the step. (The diagonal cone: kappa = [g]_+/m, Coleman and Li's scaling.)

The steps are projected, and searched along the segment (sweeps only, no pair work): the objective never rises. The
gradient steps in between make the method converge from anywhere and find the directions that M lacks; Newton makes it
fast at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from triscreen.problem.curvature import Curvature
from triscreen.solvers.bb import BarzilaiBorwein


@dataclass(frozen=True)
class Newton:
    """The solver ``"newton"``; ``"auto"`` is one that gives projected gradient more time at first.

    Parameters
    ----------
    first : int
        Steps of projected gradient before the first Newton step.
    between : int
        And between two of them.
    cg_tol, max_cg :
        Relative residual of the conjugate gradients, and steps at most.
    gradient : BarzilaiBorwein
    """

    first: int = 3
    between: int = 3
    cg_tol: float = 0.3
    max_cg: int = 250
    gradient: BarzilaiBorwein = field(default_factory=BarzilaiBorwein)

    needs = ()

    def run(self, engine, lam, evaluation, monitor):
        """Iterate from an evaluation until the monitor stops it; return the engine and evaluation it ended with."""
        engine, now, eta, done = self.gradient.iterate(engine, lam, evaluation, evaluation.step, monitor, self.first)
        while not done:
            after = self._step(engine, lam, now, min(eta, 1.0 / lam), monitor)
            if after is not None:
                now = after
                if monitor.saw(now, 1.0 / lam):
                    break
                engine, now = monitor.refresh(engine, now)
            engine, now, eta, done = self.gradient.iterate(engine, lam, now, eta, monitor, self.between)
        return engine, now.going_on(eta)

    def _step(self, engine, lam, now, eta, monitor):
        """Return the evaluation after one Newton step, or None where it leads nowhere."""
        curvature = Curvature(engine, now)
        G = now.gradient(lam)
        with np.errstate(over="ignore", invalid="ignore"):  # a step that overflows leads nowhere
            dM = self._direction(engine.cone, lam, now.M, G, eta, curvature, monitor)
        if not np.isfinite(dM).all():
            return None
        trial = engine.cone.project(now.M + dM)
        slope = float(np.vdot(G, trial.plus - now.M))
        if not slope < 0.0:
            return None
        dist = engine.distances(trial.factor)
        after, _, sweeps = self.gradient.accept(engine, lam, now, trial, dist, slope, now.objective)
        monitor.count(engine.share + (sweeps - 1) * engine.sweep_share)
        return after

    def _direction(self, cone, lam, M, G, eta, curvature, monitor):
        """Return dM by conjugate gradients, with the diagonal of the system (H by its mean) to precondition them."""
        basis = cone.basis(M - eta * G)
        into, out, _ = basis
        hessian = curvature.within(basis)
        G = into(G)
        mu, g = cone.sums(np.maximum(cone.diagonal(into(M)), 0.0)), cone.sums(np.maximum(cone.diagonal(G), 0.0))
        lost = (mu <= 1e-12 * mu.max(initial=0.0)) & (g > 0.0)
        diagonal = lam + np.where(mu > 0.0, g, 0.0) / np.where(mu > 0.0, mu, 1.0)
        scale = np.where(lost, 0.0, 1.0 / (diagonal + curvature.mean))
        dM = np.zeros_like(G)
        rest = -G
        z = scale * rest
        p, rz = z, float(np.vdot(rest, z))
        wanted = self.cg_tol**2 * rz
        for _ in range(self.max_cg):
            if not rz > wanted:
                break
            monitor.count(curvature.share)
            Ap = diagonal * p + hessian(p)
            curve = float(np.vdot(p, Ap))
            if not curve > 0.0:  # overflow, or nothing but rounding
                break
            dM, rest = dM + (rz / curve) * p, rest - (rz / curve) * Ap
            z = scale * rest
            before, rz = rz, float(np.vdot(rest, z))
            p = z + (rz / before) * p
        return out(dM)
