"""Newton steps from the solution of a whole to the optimum without a unit.

What is left without a unit is solved in a ball around the solution M0 of the whole, in which almost all triplets keep
their zones (`triscreen.screening.working_set`): these are fixed, and what leaves and comes with the unit, and the few
others, make a small engine. It has the same value, gradient and gap as the whole of what is left for every M in that
ball, so each step there is an end of the smaller problem (`triscreen.path.balls`), with a ball of its own.

The steps are those of `triscreen.solvers.newton`, with the system as a matrix (few quadratic triplets, not too many
dimensions). The first one takes the system at M0, the same for all units: it is factorised once, and is close already.
"""

from __future__ import annotations

import numpy as np

from triscreen._kernels.leaving import quadratic_rows
from triscreen.path.balls import End
from triscreen.problem.rounding import U
from triscreen.screening.fixing import fix_by_difference
from triscreen.solvers.bb import BarzilaiBorwein

# Newton steps at most, gradient steps between two of them; a relative gap that makes further ones pointless.
_STEPS, _BETWEEN, _TOL = 60, 2, 1e-13
# The ball around the solution, in lengths of the first step; how much larger the next one is, and how often.
_AROUND, _LARGER, _TRIES = 2.0, 4.0, 6
# Numbers of the system at most, and of the quadratic triplets at a time.
_LARGEST, _BLOCK = 1 << 22, 1 << 22


class Steps:
    """What all steps share."""

    def __init__(self, whole):
        self.whole, self.lam = whole, whole.lam
        now, engine, leaving = whole.evaluation, whole.engine, whole.leaving
        triplets, pairs = leaving.whole
        self._now, self._euclid = now, engine.triplets.euclid(engine.threads)
        self._triplets, self._pairs = triplets, pairs
        self._squares = np.square(self._euclid * (1 + 1e-12) + engine.rounding.norm_offset)[pairs]
        self._margin = engine.rounding.margin(now.dist, max(0.0, float(np.square(whole.factor).sum())))
        self._selections = {}
        self._system = System(engine.cone, triplets, now.dist[pairs], now, self.lam, 1.0 / self.lam)
        self._search = BarzilaiBorwein()

    @classmethod
    def of(cls, whole):
        """Return the steps for a whole, or None where they would not pay: the hinge, too many dimensions."""
        size = whole.M.size if whole.flat else len(whole.M) * (len(whole.M) + 1) // 2
        return None if whole.problem.loss.gamma == 0 or size * size > _LARGEST else cls(whole)

    def run(self, units, decide):
        """Yield (unit, steps taken, class or -1) for each unit; ``decide(unit, center, radius)`` votes."""
        change, error = self.whole.change(units)
        directions = self._system.directions(self._now.gradient(self.lam) + change.A)
        for number, unit in enumerate(units):
            A = self._now.A - change.A[number]
            alpha = self._now.sums.alpha - change.alpha[number]
            yield unit, *self._walk(unit, A, error[number], alpha, directions[number], decide)

    def _walk(self, unit, A, error, alpha, direction, decide):
        """Return (steps taken, class or -1)."""
        taken, found, last = 0, -1, None
        radius = _AROUND * float(np.linalg.norm(direction))
        for _ in range(_TRIES):
            ball = Around(self, unit, radius, A, error, alpha)
            steps, found, last, left = ball.walk(direction if last is None else None, last, decide, self._search)
            taken += steps
            if not left:
                break
            radius = max(_LARGER * radius, _AROUND * float(np.linalg.norm(last - self.whole.M)))
        return taken, found

    def selection(self, radius):
        """Return (what may leave its zone within some distance of the solution, a distance no smaller)."""
        floor = 1e-9 * float(np.linalg.norm(self.whole.M)) + 1e-300
        level = int(np.ceil(2 * np.log2(max(radius, floor))))
        radius = 2.0 ** (0.5 * level) * (1 + 1e-9)
        if level not in self._selections:
            dist, low = self._now.dist[self._pairs], 1 - self.whole.problem.loss.gamma
            found = self._triplets.undecided_in(
                (dist, dist), self._squares, radius, self._margin, low, True, None, self.whole.engine.threads
            )
            self._selections[level] = self.whole.leaving.select(found)
        return self._selections[level], radius


class Around:
    """What is left without a unit, for every metric within some distance of the solution of the whole."""

    def __init__(self, steps, unit, radius, A, error, alpha):
        whole, now, self.lam = steps.whole, steps._now, steps.lam
        selection, self.radius = steps.selection(radius)
        triplets, pairs = whole.leaving.part(selection, unit)
        less, dist, gamma = whole.engine.restrict(triplets, pairs), now.dist[pairs], whole.problem.loss.gamma
        swept = sums, _ = less.sweep(dist, gamma)
        error = error + whole.engine.rounding.sum_of_h(now.sums.alpha)
        # The alphas of the whole and of the part come from the same distances, by other sums.
        longest, widest = float(now.dist.max(initial=0.0)), float(steps._euclid.max(initial=0.0))
        error += 8 * U * (1 + 2 * longest) / gamma * triplets.total_weight * 2 * widest
        self.unit, self.gamma, self.center = unit, gamma, now.M
        self.engine = fix_by_difference(less, swept, A, error, alpha - sums.alpha)
        self._start = self.engine.evaluate(now.M, dist, self.lam, gamma, swept, A, whole.factor)
        self._N = None if less.prior is None else less.prior.core

    def walk(self, direction, M, decide, search):
        """Return (steps taken, class or -1, where they ended, whether that is too far away).

        From the solution of the whole along a direction, or from any M.
        """
        engine, lam, eta = self.engine, self.lam, 1.0 / self.lam
        now = self._start
        if M is not None:
            trial = engine.cone.project(M)
            now = engine.evaluate(trial.plus, engine.distances(trial.factor), lam, self.gamma)
        for taken in range(1, _STEPS + 1):
            if direction is None:
                direction = System(engine.cone, engine.triplets, now.dist, now, lam, eta).directions(
                    now.gradient(lam)[None]
                )[0]
            before, now = now, self._towards(now, now.M + direction, search)
            eta, direction = self._eta(before, now, eta, 1), None
            if not self._holds(now.M):
                return taken, -1, now.M, True
            found = self._vote(now, decide)
            if found >= 0 or now.gap <= _TOL * now.scale:
                return taken, found, now.M, False
            for number in range(_BETWEEN):  # steps of projected gradient find directions that M lacks
                before = now
                now = self._towards(now, now.M - eta * now.gradient(lam), search)
                eta = self._eta(before, now, eta, number)
            if not self._holds(now.M):
                return taken, -1, now.M, True
        return taken, -1, now.M, False

    def _eta(self, before, now, eta, number):
        """Return the size of the next gradient step."""
        change = now.gradient(self.lam) - before.gradient(self.lam)
        return BarzilaiBorwein._next_eta(now.M - before.M, change, self.lam, eta, number)

    def _towards(self, now, goal, search):
        """Return the evaluation at the goal, projected, or lower on the way there; the same one if it is no way."""
        trial = self.engine.cone.project(goal)
        slope = float(np.vdot(now.gradient(self.lam), trial.plus - now.M))
        if not slope < 0.0:
            return now
        dist = self.engine.distances(trial.factor)
        return search.accept(self.engine, self.lam, now, trial, dist, slope, now.objective)[0]

    def _holds(self, M):
        doubt = 2 * self.engine.rounding.element(M)  # of M and the centre
        return float(np.linalg.norm(M - self.center)) * (1 + 1e-9) + doubt <= self.radius

    def _vote(self, now, decide):
        end = End.at(self.engine, now, self.lam)
        ball = end.ball(self.lam, self._N)
        return decide(self.unit, ball.center, ball.radius)


class System:
    """The Newton system at an evaluation, as a matrix: (lam + kappa + H) dM = -gradient, in a basis (see the solver).

    Parameters
    ----------
    cone
    triplets, dist : TripletSet, array
        With its points, over listed pairs; the distances of these.
    now : Evaluation
    lam, eta : float
        The basis is the eigenbasis of M - eta gradient.
    """

    def __init__(self, cone, triplets, dist, now, lam, eta):
        from scipy.linalg import cho_factor, cho_solve

        M = now.M
        into, _, self._vectors = cone.basis(M - min(eta, 1.0 / lam) * now.gradient(lam))
        mu = cone.sums(np.maximum(cone.diagonal(into(M)), 0.0))
        g = cone.sums(np.maximum(cone.diagonal(into(now.gradient(lam))), 0.0))
        lost = (mu <= 1e-12 * mu.max(initial=0.0)) & (g > 0.0)
        diagonal = lam + np.where(mu > 0.0, g, 0.0) / np.where(mu > 0.0, mu, 1.0)
        self._shape = M.shape
        self._places = np.triu_indices(len(M)) if M.ndim == 2 else (np.arange(len(M)),)
        off = self._places[0] != self._places[-1]
        self._kept = ~lost[self._places]
        self._places = tuple(place[self._kept] for place in self._places)
        self._scale = np.where(off, np.sqrt(2.0), 1.0)[self._kept]
        H = self._hessian(triplets, dist, now.sums.smoothing)
        H[np.diag_indices_from(H)] += diagonal[self._places]
        self._factor, self._solve = cho_factor(H, check_finite=False), cho_solve

    def _hessian(self, triplets, dist, gamma):
        H, V = np.zeros((len(self._scale), len(self._scale))), self._vectors
        selection, count = triplets.quadratic(dist, gamma)
        if not count:
            return H
        part, pairs = triplets.restrict(selection)
        points = part.points if V is None else part.points @ V
        positive, negative = part.pair_numbers(np.ones(part.n_triplets, dtype=bool))
        dist, weights = dist[pairs], np.empty(0) if part.weights is None else part.weights
        step = max(1, _BLOCK // max(1, len(self._scale)))
        Z = np.empty((min(step, part.n_triplets), len(self._scale)))
        for start in range(0, part.n_triplets, step):
            some = slice(start, start + step)
            count = quadratic_rows(
                points, dist, part.first, part.second, positive[some], negative[some], weights[some], gamma,
                self._places[0], self._places[-1], self._scale, Z,
            )  # fmt: skip
            H += Z[:count].T @ Z[:count]
        return H

    def directions(self, gradients):
        """Return the Newton steps for a stack of gradients."""
        V = self._vectors
        turned = gradients if V is None else V.T @ gradients @ V
        flat = (turned[(slice(None), *self._places)] * self._scale).T
        flat = (-self._solve(self._factor, flat, check_finite=False)).T / self._scale
        out = np.zeros((len(gradients), *self._shape))
        out[(slice(None), *self._places)] = flat
        if V is None:
            return out
        out[(slice(None), *self._places[::-1])] = flat
        return V @ out @ V.T
