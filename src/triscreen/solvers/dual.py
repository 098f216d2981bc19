"""Accelerated projected ascent on the dual: one alpha per triplet, one eigendecomposition per step.

    primal  P(M) = sum_t w_t l(m_t(M)) + (lam/2) |M|^2                                  over M in the cone
    dual    D(a) = sum_t w_t (a_t - (s/2) a_t^2) - |[A(a)]_+|^2 / (2 lam),   A(a) = sum_t w_t a_t H_t,  0 <= a_t <= 1
    gap     P(M(a)) - D(a) = sum_t w_t [l(m_t) - a_t (1 - m_t) + (s/2) a_t^2],   M(a) = [A(a)]_+ / lam,  m_t = m_t(M(a))
    stop    when the monitor says so about the evaluation at M(a), whose alphas are those of the margins, not these

s is the smoothing of the evaluation to start from: gamma for the smoothed hinge; for the hinge the current one of those
that `solve` goes through. With the same s, the alphas here and those of the margins meet at the same optimum.

* In the norm |d|_w^2 = sum_t w_t d_t^2 the gradient is 1 - s a_t - m_t(M(a)) and D is s-strongly concave, whatever the
  weights. A step maximises D over the box with |[A]_+|^2 / (2 lam) replaced by its tangent plus (L/2) |d|_w^2.
* What that function rises above its tangent is <-[A(a+d)]_-, M(a)> + (lam/2) |M(a) - M(a+d)|^2: terms >= 0 that need
  nothing but the projection of A(a+d). So it is known, without a difference of large numbers and in any units of X,
  whether L is large enough (L is doubled until it is, and lowered a little after every step) and what a step gains.
* Momentum is that of an s-strongly concave function. A step with momentum that does not gain is not taken: the momentum
  starts anew, with a step without from the same point. So D never falls.
* All points are in the box, so each has a true gap. A step costs one pass; what the monitor sees half a pass more, so
  it sees a point only when the gap promises the end, and every `steps` steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_EPS = np.finfo(float).eps
# A step must gain this share of L |d|_w^2; one without momentum gains half of that.
_GAIN = 1e-3
_SLOWEST = 0.999


@dataclass(frozen=True)
class DualAscent:
    """The solver ``"dual"``; what it calls an iteration is up to ``steps`` steps.

    Parameters
    ----------
    steps : int
        The monitor (callback, limits, screening) sees one point in so many, and those that may be the last.
    decay : float
        L is lowered by this factor after each step, at first; by less each time that it was lowered too much.
    """

    steps: int = 10
    decay: float = 0.9

    needs = ("triplets",)  # one by one

    def run(self, engine, lam, evaluation, monitor):
        """Ascend from an evaluation until the monitor stops it; return the engine and evaluation it ended with."""
        ascent = Ascent(engine, lam, evaluation, self.decay, monitor)
        wanted = np.inf
        while True:
            wanted = min(wanted, monitor.tol * monitor.last.scale)
            moved = self._some_steps(ascent, wanted)
            if ascent.gap <= wanted:
                wanted = 0.5 * ascent.gap  # the monitor may not agree: do not ask it again for the same
            evaluation = ascent.evaluate()
            if monitor.saw(evaluation, 1.0 / (ascent.smoothing + ascent.curvature)):
                return engine, evaluation
            if not moved:
                monitor.stop("stalled")
                return engine, evaluation
            before = monitor.numbers
            smaller, evaluation = monitor.refresh(engine, evaluation)
            if smaller is not engine:
                engine = smaller
                kept = monitor.numbers if before is None else np.searchsorted(before, monitor.numbers)
                ascent = ascent.continued(engine, evaluation, kept)

    def _some_steps(self, ascent, wanted):
        """Step until the monitor should have a look; False: there is no step to take."""
        for _ in range(self.steps):
            if not ascent.step():
                return False
            if ascent.gap <= wanted:
                break
        return True


class Ascent:
    """A point of the dual and the way upwards from it.

    Parameters
    ----------
    engine, lam
    evaluation : Evaluation
        Gives the smoothing and, by its margins, the alphas to start from.
    decay : float
        See `DualAscent`.
    monitor : Monitor
        Pair work is counted there.
    alpha : array, optional
        Other alphas to start from.

    Attributes
    ----------
    alpha : array
        The point; always in [0, 1].
    M, dist : arrays
        M(alpha) and the pair distances there.
    curvature : float
        L.
    gap : float
        P(M(alpha)) - D(alpha) of the smoothed problem, for the point that the last step began from.
    """

    def __init__(self, engine, lam, evaluation, decay, monitor, alpha=None):
        self.engine, self.lam, self.decay, self.monitor = engine, lam, decay, monitor
        self.smoothing = evaluation.sums.smoothing
        self.curvature, self.gap = 0.0, np.inf
        if alpha is None:
            nothing = np.zeros(engine.triplets.n_triplets)
            # A step with neither curvature nor momentum leads to the alphas of the margins.
            _, _, alpha, _ = self._ascend(evaluation.dist, nothing, nothing, 0.0)
            self._move(alpha, evaluation.dual_point)
        else:
            _, pair_weights = engine.triplets.sweep_alpha(evaluation.dist, alpha, self.smoothing, engine.threads)
            self._move(alpha, engine.cone.project(self._pull(pair_weights)))
        self._restart()

    def continued(self, engine, evaluation, kept):
        """Return the ascent that goes on with the kept triplets, which are those of a smaller engine."""
        other = Ascent(engine, self.lam, evaluation, self.decay, self.monitor, self.alpha[kept])
        other.curvature = self.curvature
        return other

    def evaluate(self):
        """Return the engine's evaluation at M(alpha)."""
        self.monitor.count(0.5 * self.engine.share)
        return self.engine.evaluate(self.M, self.dist, self.lam, self.smoothing)

    def step(self):
        """Go to a point with a higher dual; False: there is none, or rounding hides it."""
        cone, lam = self.engine.cone, self.lam
        while True:
            momentum, t = self._next_momentum()
            sums, pair_weights, goal, following = self._ascend(self.dist, self.alpha, self._previous, momentum)
            _, _, self.gap, linear_gain, square = sums
            if square == 0:
                if momentum == 0:
                    return False
                self._restart()
                continue
            pull = self._pull(pair_weights)
            projection = cone.project(pull)
            above_tangent = cone.gap(self.M, projection, lam)
            noise = 8 * _EPS * float(np.linalg.norm(pull)) * float(np.linalg.norm(self.M))
            if momentum == 0 and above_tangent > 0.5 * self.curvature * square + noise:
                self.curvature = max(2 * self.curvature, 2 * above_tangent / square)
                continue
            if linear_gain - above_tangent < _GAIN * self.curvature * square - noise:
                if momentum == 0:
                    return False
                self.curvature = max(self.curvature, 2 * above_tangent / square)
                self.decay = min(np.sqrt(self.decay), _SLOWEST)
                self._restart()
                continue
            self._move(following, projection)
            self._previous, self._t = goal, t
            self.curvature *= self.decay
            return True

    def _next_momentum(self):
        """Return the momentum of the next step, and the t of Nesterov's sequence that goes with it."""
        if self.curvature == 0:
            return 0.0, 1.0
        ratio = self.smoothing / self.curvature
        rest = 1 - ratio / (1 + ratio) * self._t**2
        t = 0.5 * (rest + np.sqrt(rest**2 + 4 * self._t**2))
        return max(0.0, (self._t - 1) / t * (1 + ratio * (1 - t))), t

    def _restart(self):
        self._previous, self._t = self.alpha, 1.0

    def _ascend(self, dist, alpha, previous, momentum):
        engine = self.engine
        return engine.triplets.ascend(dist, alpha, previous, self.smoothing, self.curvature, momentum, engine.threads)

    def _pull(self, pair_weights):
        self.monitor.count(0.5 * self.engine.share)
        A = self.engine.assemble(pair_weights)
        A = A if self.engine.linear_matrix is None else A + self.engine.linear_matrix
        return self.engine.pull(A, self.lam)

    def _move(self, alpha, projection):
        self.monitor.count(0.5 * self.engine.share)
        self.alpha, self.M = alpha, projection.plus / self.lam
        self.dist = self.engine.distances(projection.factor) / self.lam
