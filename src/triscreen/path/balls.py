"""Balls that hold the optimum for every lambda between two metrics of a path.

An *end* is any metric M >= 0 with alphas 0 <= a <= 1 and any G >= 0 (here those of its own margins, and what the
projection of its pull cuts off); it need not be a solution. With A = sum_t w_t a_t H_t, C = N + (A + G)/lam and
s(m, a) = l(m) - a (1 - m) + (g/2) a^2 >= 0:

* **One end** (i), at any lambda: Q = (M + C)/2, r^2 = T/lam + |M - C|^2/4 with T = sum_t w_t s(m_t, a_t) + <G, M>. For
  P(M*) >= Lagrangian(M*; a, G) = D(a, G) + (lam/2) |M* - C|^2 and P(M) - P(M*) >= (lam/2) |M - M*|^2: add these, and
  complete the square.
* **Two ends** (iii), at lam = (1 - th) lam1 + th lam2 with p = th lam2/lam: the metric (1 - p) M1 + p M2, the alphas
  (1 - th) a1 + th a2 and the same of G are an end for lam, with C = (1 - p) C1 + p C2. s is convex in m and in a, so

      Q = (1 - p) Q1 + p Q2,    r^2 <= (1 - p)^2 r1^2 + p^2 r2^2 + p (1 - p) k,
      k = T12/lam2 + T21/lam1 + <M1 - C1, M2 - C2>/2,    T_ij = sum_t w_t s(m_i, a_j) + <G_j, M_i>.

  A triplet in the corner of the loss at both ends is worth (g/2) (a1 - a2)^2 in T12 and in T21, and only
  (g/2) (th - p)^2 (a1 - a2)^2 in truth, at most p (1 - p) lam (g/8) (lam1 - lam2)^2 / (lam1 lam2^2) (a1 - a2)^2: where
  triplets are listed, k is made smaller by that.
  Otherwise T_ij needs no triplets: sum_t w_t s(m_i, a_j) = (loss of M_i) - sum_t w_t (a - (g/2) a^2) of j + <M_i, A_j>.
* **Two balls** hold M* in a smaller one: centre (1 - t) Q1 + t Q2, r^2 = (1 - t) r1^2 + t r2^2 - t (1 - t) D^2 with
  D = |Q1 - Q2|, t = clip((D^2 + r1^2 - r2^2)/(2 D^2), 0, 1).

Ours; one end is MID (`triscreen.screening.spheres`) when the lambda is its own.

**Rounding.** The ball is that of the exact metric behind an end's distances, its alphas as they are, and a G >= 0 that
is exact, too. dM, dA, dG bound how far the numbers here are from these; each T, k and |M - C| is enlarged by what they
can do to it, and the radius by what they do to the centre.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from triscreen._utils.lazy import cached_property
from triscreen.problem.rounding import U, trace

# Rounding of sums and inner products, relative to their terms.
SUM = 1e-13


@dataclass(frozen=True, eq=False)
class End:
    """A metric evaluated over all triplets, with what balls need of it: two matrices of the size of the core.

    Attributes
    ----------
    lam : float
        As it is inside; like all else here.
    M, H : arrays
        The metric; A + G.
    slack, value, dual_term : float
        T, or more where rounding hides it; the loss of M; sum_t w_t (a - (g/2) a^2).
    dM, dH, doubt, prior_error : float
        Bounds of the errors of M, of H, of the loss of M, and of the prior.
    dist, margin_error : array or None, float
        Pair distances, where triplets are listed and the alphas are those of the loss itself; bound of the error of a
        margin.
    """

    lam: float
    M: np.ndarray = field(repr=False)
    H: np.ndarray = field(repr=False)
    slack: float
    value: float
    dual_term: float
    dM: float
    dH: float
    doubt: float
    prior_error: float
    dist: object = field(repr=False)
    margin_error: float

    @classmethod
    def of(cls, problem, M, lam, smoothing, factor=None):
        """Evaluate a core M: one pass."""
        factor = problem.cone.project(M).factor if factor is None else factor
        dist = problem.distances(factor)
        return cls.at(problem, problem.evaluate(M, dist, lam, smoothing), lam)

    @classmethod
    def at(cls, problem, evaluation, lam):
        """Make one of an evaluation over all triplets of a problem."""
        cone, rounding, loss, sums = problem.cone, problem.rounding, problem.loss, evaluation.sums
        M, point = evaluation.M, evaluation.dual_point
        H = point.plus - (evaluation.pull - evaluation.A)  # [A + lam N]_+ - lam N = A + G
        size = float(np.linalg.norm(M))
        G = H - evaluation.A
        e = rounding.margin(evaluation.dist, max(0.0, trace(M)))
        weight, gamma = problem.triplets.total_weight, loss.gamma
        dM = rounding.element(M)
        dH = rounding.pull(evaluation.pull, sums.alpha, lam)
        own = sums.smoothing == gamma
        slack = 3 * weight * (e + 4 * U * gamma) ** 2 / gamma if own else weight * e
        slack += evaluation.slack + cone.cut_off_inner(point, M)
        slack += float(np.linalg.norm(G)) * dM + (size + dM) * dH + SUM * (slack + evaluation.slack)
        value = loss.value(sums)
        return cls(
            lam, M, H, slack, value, loss.dual_term(sums), dM, dH, weight * e + SUM * value,
            0.0 if problem.prior is None else problem.prior.error,
            evaluation.dist if own and problem.triplets.lists_triplets else None, e,
        )  # fmt: skip

    @classmethod
    def kept(cls, problem, row, M, lam):
        """Make one of what a path kept of its evaluation (`Row.pull`), without any pair work."""
        rounding, gamma, weight = problem.rounding, problem.loss.gamma, problem.triplets.total_weight
        H, dH, pulled = row.pull
        size, width = float(np.linalg.norm(M)), max(0.0, trace(M))
        e, dM = rounding.margin_within(width), 2 * rounding.element(M)  # the factor is without columns of rounding size
        doubt = weight * e + size * dH + 2 * rounding.sum_of_h(weight) * width + SUM * row.primal
        slack = 3 * weight * (e + 4 * U * gamma) ** 2 / gamma if row.smoothing == gamma else weight * e
        slack += row.slack + pulled * dM + (size + dM) * dH + SUM * (slack + row.slack)
        C = H / lam
        penalty = 0.5 * lam * float(np.vdot(C, C if problem.prior is None else C + 2 * problem.prior.core))
        dual_term = row.dual + penalty - 10 * SUM * (abs(row.dual) + abs(penalty))
        prior_error = 0.0 if problem.prior is None else problem.prior.error
        return cls(lam, M, H, slack, row.loss, dual_term, dM, dH, doubt, prior_error, None, e)

    def lagrangian(self, lam, N):
        """Return C at another lambda, and the bound of its error."""
        C = self.H / lam if N is None else N + self.H / lam
        return C, self.dH / lam + self.prior_error

    def ball(self, lam, N):
        """Return the `Ball` for any lambda from this end alone."""
        C, dC = self.lagrangian(lam, N)
        away = float(np.linalg.norm(self.M - C)) * (1 + SUM) + self.dM + dC
        square = self.slack / lam + 0.25 * away**2
        return Ball(0.5 * (self.M + C), square, 0.5 * (self.dM + dC))

    def own(self, N):
        """Return (its ball at its own lambda, M - C, |M - C|, a bound of the error of that), made once."""
        if "_own" not in vars(self):
            C, dC = self.lagrangian(self.lam, N)
            D = self.M - C
            object.__setattr__(self, "_own", (self.ball(self.lam, N), D, float(np.linalg.norm(D)), self.dM + dC))
        return self._own

    @cached_property
    def _sizes(self):
        return float(np.linalg.norm(self.M)), float(np.linalg.norm(self.H))

    def cross(self, other):
        """Return T of the margins of this end and the alphas of the other one, or a little more."""
        size, pull = self._sizes[0], other._sizes[1]
        inner = float(np.vdot(self.M, other.H))
        errors = self.doubt + size * other.dH + (pull + other.dH) * self.dM
        errors += SUM * (self.value + abs(other.dual_term)) + products(self.M) * size * pull
        return max(0.0, self.value - other.dual_term + inner) + errors

    @property
    def nbytes(self):
        """Bytes of its arrays."""
        return self.M.nbytes + self.H.nbytes + (0 if self.dist is None else self.dist.nbytes)


@dataclass(frozen=True, eq=False)
class Ball:
    """Core metrics within sqrt(square) of a centre that is off by at most ``doubt``."""

    center: np.ndarray = field(repr=False)
    square: float
    doubt: float

    @property
    def radius(self):
        """A radius with the exact M* inside."""
        size = float(np.linalg.norm(self.center))
        root = float(np.sqrt(self.square)) * (1 + SUM)
        return root + self.doubt + 64 * len(self.center) * U * (size + root)

    def meet(self, other):
        """Return the smallest ball around what lies in both; the smaller one of them where that is no better."""
        small, large = (self, other) if self.radius <= other.radius else (other, self)
        apart = float(np.linalg.norm(small.center - large.center))
        r1, r2, D = small.radius, large.radius, apart * (1 - SUM)
        if not D > 0:
            return small
        t = min(1.0, max(0.0, 0.5 + (r1 - r2) * (r1 + r2) / (2 * D * D)))
        square = (1 - t) * r1 * r1 + t * r2 * r2
        square = square - t * (1 - t) * D * D + 8 * SUM * square
        if t == 0 or not 0 < square < r1 * r1:
            return small
        return Ball((1 - t) * small.center + t * large.center, square, 0.0)


def mixture_share(lam, above, below):
    """Return p: how much of the metric at the lambda below there is in the mixture that stands for lam."""
    return min(1.0, max(0.0, below * (above - lam) / (lam * (above - below)))) if above > below else 0.0


def products(M):
    """Rounding of an inner product of elements like this one, relative to their sizes."""
    return SUM + M.size * U


class Between:
    """Balls for every lambda between two ends, the one of the larger lambda first."""

    def __init__(self, problem, first, second):
        self.first, self.second = first, second
        self.N = None if problem.prior is None else problem.prior.core
        (ball1, D1, n1, e1), (ball2, D2, n2, e2) = (end.own(self.N) for end in (first, second))
        self.balls = ball1, ball2
        cross = first.cross(second) / second.lam + second.cross(first) / first.lam
        inner = float(np.vdot(D1, D2)) + n1 * e2 + n2 * e1 + e1 * e2 + products(D1) * n1 * n2
        saved, doubt = self._corners(problem)
        self.k = cross * (1 + SUM) + 0.5 * inner - saved + 2 * doubt
        self.squares = tuple(ball.square + doubt for ball in self.balls)
        # Nobody needs the distances any more.
        self.first, self.second = (end if end.dist is None else replace(end, dist=None) for end in (first, second))

    def _corners(self, problem):
        """Return by how much k is smaller for triplets in the corner at both ends; what rounding adds to squares."""
        (l1, l2), gamma = (self.first.lam, self.second.lam), problem.loss.gamma
        saved = 0.5 * gamma * (1 / l1 + 1 / l2) - gamma / 8 * (l1 - l2) ** 2 / (l1 * l2 * l2)
        if self.first.dist is None or self.second.dist is None or saved <= 0:
            return 0.0, 0.0
        change = problem.triplets.corner_change(self.first.dist, self.second.dist, gamma, problem.threads)
        e = max(self.first.margin_error, self.second.margin_error)
        return saved * change * (1 - 1e-9), problem.triplets.total_weight * (3 * e + 2 * e * e / gamma) / l2

    @property
    def reach(self):
        """No ball in between has a radius whose square is larger."""
        return max(*self.squares, 0.5 * self.k) * (1 + SUM)

    def share(self, lam):
        """Return p: how much of the second end there is at a lambda."""
        return mixture_share(lam, self.first.lam, self.second.lam)

    def square(self, p):
        """Return the square of the radius at some shares."""
        own = (1 - p) ** 2 * self.squares[0] + p**2 * self.squares[1]
        both = p * (1 - p) * self.k
        # k may be negative, and what is left of the sum smaller than the rounding of its terms.
        return np.maximum(own + both + SUM * (own + abs(both)), 0.0)

    def ball(self, lam):
        """Return the `Ball` at a lambda by both ends together."""
        p, (one, two) = self.share(lam), self.balls
        center = (1 - p) * one.center + p * two.center
        # The share itself is rounded: four units of it.
        doubt = max(one.doubt, two.doubt) + 8 * U * float(np.linalg.norm(one.center - two.center))
        r = float(np.sqrt(self.square(p))) + 8 * U * float(np.sqrt(max(*self.squares, abs(self.k))))
        return Ball(center, r * r, doubt)

    def best(self, lam):
        """Return the smallest ball known at a lambda: by both ends, by either, and what lies in all of them."""
        balls = [self.ball(lam), self.first.ball(lam, self.N), self.second.ball(lam, self.N)]
        balls.sort(key=lambda ball: ball.radius)
        return balls[0].meet(balls[1]).meet(balls[2])
