"""Semismooth Newton steps on the projected optimality system, between steps of projected gradient.

    minimise  f(M) = (smoothed loss) + (lam/2) |M|^2   over the cone;   optimal:  Y = M - eta grad f(M),  M = [Y]_+

One step minimises the quadratic model q(D) = <grad f, D> + <D, (lam + H) D>/2 over M + D in the cone, H the Hessian of
the loss (`Curvature`, only pairs of quadratic triplets). The model's own optimality system G(Y) = (Y - [Y]_+)/eta +
grad q([Y]_+) = 0 is solved by semismooth Newton: with W the weights of the projection's derivative in Y's eigenbasis,
dM = W dY solves

    (lam + (1/W - 1)/eta + H) dM = -G    where W > 0

(a symmetric positive definite system, by conjugate gradients), and dY = dM/W there, -eta (G + H dM) where W = 0.
Solving the model over the cone and not on the current face alone is what makes full steps possible where the rank of M
changes. The step to the model's best point is a descent direction by convexity; a search on the segment (sweeps only,
no pair work) and the gradient steps in between make the method converge from anywhere, whatever the model does.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from triscreen.curvature import Curvature
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
    max_inner : int
        Newton iterations on one model.
    enough : float
        Stop on a model when an iteration lowers it by less than this share of the whole.
    cg_tol, max_cg :
        Relative residual of the conjugate gradients, and steps at most.
    """

    first: int = 3
    between: int = 3
    max_inner: int = 8
    enough: float = 0.3
    cg_tol: float = 0.3
    max_cg: int = 250
    gradient: BarzilaiBorwein = field(default_factory=BarzilaiBorwein)

    def run(self, engine, lam, evaluation, monitor):
        """Iterate from an evaluation until the monitor stops it; return the engine and evaluation it ended with."""
        engine, now, eta, done = self.gradient.iterate(engine, lam, evaluation, monitor, self.first)
        while not done:
            after = self._step(engine, lam, now, eta, monitor)
            if after is not None:
                now = after
                if monitor.saw(now, 1.0 / lam):
                    break
                engine, now = monitor.refresh(engine, now)
            engine, now, eta, done = self.gradient.iterate(engine, lam, now, monitor, self.between)
        return engine, now

    def _step(self, engine, lam, now, eta, monitor):
        """Return the evaluation after one Newton step, or None where the model leads nowhere."""
        curvature = Curvature(engine, now)

        def hessian(V):
            monitor.passes += curvature.share
            return curvature.times(V)

        gradient = lam * now.M - now.A
        with np.errstate(over="ignore", invalid="ignore"):  # a model that overflows leads nowhere
            M = self._model_minimum(engine.cone, lam, now.M, gradient, eta, hessian, curvature.mean)
        if M is None:
            return None
        trial = engine.cone.project(M)
        slope = float(np.vdot(gradient, trial.plus - now.M))
        if not slope < 0.0:
            return None
        dist = engine.distances(trial.factor)
        monitor.passes += engine.share
        return self.gradient.accept(engine, lam, now, trial.plus, dist, slope, now.objective)[0]

    def _model_minimum(self, cone, lam, M, gradient, eta, hessian, mean):
        """Return the best point found of the quadratic model over the cone, or None if none is below its value at M."""
        Y = M - eta * gradient
        lowest, best = 0.0, None
        for inner in range(self.max_inner + 1):
            if not np.isfinite(Y).all():
                break
            face = cone.face(Y)
            D = face.plus - M
            bent = lam * D + hessian(D)
            value = float(np.vdot(gradient, D) + 0.5 * np.vdot(D, bent))
            if value < lowest:
                gain, lowest, best = lowest - value, value, face.plus
                if inner and gain < -self.enough * value:
                    break
            elif inner > 1 or not np.isfinite(value):
                break
            if inner < self.max_inner:
                Y = Y + face.out(self._newton(lam, face, (Y - face.plus) / eta + gradient + bent, eta, hessian, mean))
        return best

    def _newton(self, lam, face, G, eta, hessian, mean):
        """Return dY, in the face's basis, by preconditioned conjugate gradients."""
        G = face.into(G)
        free = face.weight > 1e-14
        inverse = np.where(free, 1.0 / np.where(free, face.weight, 1.0), 0.0)
        diagonal = np.where(free, lam + (inverse - 1.0) / eta, 0.0)
        scale = np.where(free, 1.0 / np.where(free, diagonal + mean, 1.0), 0.0)
        dM, bent = np.zeros_like(G), np.zeros_like(G)
        rest = np.where(free, -G, 0.0)
        z = scale * rest
        p, rz = z, float(np.vdot(rest, z))
        wanted = self.cg_tol**2 * rz
        for _ in range(self.max_cg):
            if not rz > wanted:
                break
            Hp = face.into(hessian(face.out(p)))
            Ap = diagonal * p + np.where(free, Hp, 0.0)
            curve = float(np.vdot(p, Ap))
            if not curve > 0.0:  # overflow, or nothing but rounding
                break
            length = rz / curve
            dM, bent, rest = dM + length * p, bent + length * Hp, rest - length * Ap
            z = scale * rest
            before, rz = rz, float(np.vdot(rest, z))
            p = z + (rz / before) * p
        return np.where(free, inverse * dM, -eta * (G + bent))
