"""A certificate that needs no trust in the rest of triscreen: to audit it, read this file.

It shares no code with engine, solvers and kernels, and computes in ball arithmetic (Arb, by python-flint): every number
is an interval that holds the exact one, whatever the rounding. The problem is data here: the points X, the list of
triplets (i, j, l) with weights w, the loss l of width g (``gamma``), lam, the prior N (or 0) and the cone. With
m_t(M) = u'Mu - v'Mv, u = x_i - x_l, v = x_i - x_j,

    P(M) = sum_t w_t l(m_t(M)) + (lam/2) |M - N|^2   over M >= 0,   l(m) = max_a a (1 - m) - (g/2) a^2, 0 <= a <= 1.

**What is proven.** For any F, any K and any alphas 0 <= a_t <= 1, with M~ = F F', G = K K',
A = sum_t w_t a_t (uu' - vv'), C = N + (A + G)/lam and s(m, a) = l(m) - a (1 - m) + (g/2) a^2:

    P(M~) - min P  <=  gap  =  sum_t w_t s(m_t(M~), a_t) + <G, M~> + (lam/2) |M~ - C|^2.

**Proof.** Each l(m) is at least a (1 - m) - (g/2) a^2, and <G, M> >= 0 for M >= 0. So for every M >= 0

    P(M)  >=  sum_t w_t (a_t - (g/2) a_t^2) - <A + G, M> + (lam/2) |M - N|^2,

whose right side is smallest at M = C. Subtract that smallest value from P(M~).  QED

F, K and the alphas come from floating point and need no trust: M~ and G are positive semi-definite by the way they are
made, without a verified eigendecomposition. F is a factor of the M that is asked about, and |M - M~| is told. For the
diagonal cone F and K are diagonal, and so are A and C. The same two inequalities give a ball that holds the optimum,
|M* - (M~ + C)/2|^2 <= (sum_t w_t s + <G, M~>)/lam + |M~ - C|^2/4, and `margins_in` says what every metric in a ball
makes of three points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from triscreen._utils.validation import as_alpha, as_numbers, as_positive, shortened
from triscreen.errors import InputError
from triscreen.verification.balls import BITS, dot, floats, high, load_flint, low, root

MOST = 100_000_000  # triplets that are looked at one by one: about a microsecond each
_CHUNK = 1 << 18  # triplets at a time
_FLOOR = 1e-3  # with a prior, a gap is relative to this share of the loss of M = 0 at least


class Ball(NamedTuple):
    """Metrics within ``radius`` (Frobenius norm) of ``center``; for the diagonal cone that is a vector.

    Attributes
    ----------
    center : array
    radius : float

    References
    ----------
    docs/reliability.md; ours.

    Examples
    --------
    >>> import triscreen as ts
    >>> problem = ts.Problem([[0.0], [1.0], [3.0]], ts.given_triplets([[0, 1, 2]]))
    >>> center, radius = ts.verify(problem, [[0.2]], lam=1.0).ball
    >>> sol = ts.solve(problem, lam=1.0, tol=1e-12)
    >>> bool(abs(sol.M - center).max() <= radius)
    True
    """

    center: np.ndarray
    radius: float


@dataclass(frozen=True, eq=False)
class Verification:
    """What was proven of a metric M; every number is rounded to the safe side.

    Attributes
    ----------
    lam : float
    gap : float
        P(M~) is larger than the optimum by no more than this, M~ = F F' the exact square of a floating factor of M.
    gap_low : float
        The lower end of the same ball: how far the arithmetic can tell (it is no bound of the distance to the optimum).
    rel_gap : float
        At least gap / P(M~) (with a prior: or over 1e-3 times the loss of M = 0, where that is larger).
    primal : (float, float)
        P(M~) lies between these.
    moved : float
        |M - M~| is at most this.
    radius : float
        |M - M*| is at most this.
    ball : Ball
        It holds the optimum M*.
    n_triplets : int

    References
    ----------
    docs/reliability.md; ours. Arb, by python-flint.

    Examples
    --------
    >>> import triscreen as ts
    >>> problem = ts.Problem([[0.0], [1.0], [3.0]], ts.given_triplets([[0, 1, 2]]))
    >>> proof = ts.verify(problem, [[0.2]], lam=1.0)
    >>> 0 <= proof.gap_low <= proof.gap, proof.primal[0] <= proof.primal[1]
    (True, True)
    """

    lam: float
    gap: float
    gap_low: float
    rel_gap: float
    primal: tuple[float, float]
    moved: float
    radius: float
    ball: Ball = field(repr=False)
    n_triplets: int


def verify(problem: Any, M: ArrayLike, lam: float, alpha: ArrayLike | None = None) -> Verification:
    """Prove how far a metric is from optimal, in ball arithmetic and without the code that solves.

    Parameters
    ----------
    problem : Problem
        Its points as they were given, its list of triplets, loss, cone and prior are taken as data. Points that have
        been changed since are refused.
    M : array
        In the coordinates of X: (d, d), or the vector (d,) for the diagonal cone.
    lam : float
        Of the problem that M is a metric of.
    alpha : array, shape (n_triplets,), optional
        A dual point; by default it is taken from the margins of M.

    Returns
    -------
    Verification

    References
    ----------
    docs/reliability.md; ours. Arb, by python-flint.

    Examples
    --------
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> problem = ts.Problem(X, ts.knn_triplets(X, y, k=3))
    >>> sol = ts.solve(problem, lam=0.01 * problem.lambda_max(), tol=1e-8)
    >>> proof = ts.verify(problem, sol.M, sol.lam)
    >>> proof.rel_gap <= 1e-8, bool(proof.moved <= 1e-13 * abs(sol.M).max())
    (True, True)
    """
    return Verifier(problem)(M, lam, alpha)


class Verifier:
    """A problem as data, to verify any number of metrics of it.

    Parameters
    ----------
    problem : Problem
        See `verify`.

    References
    ----------
    docs/reliability.md; ours. Arb, by python-flint.

    Examples
    --------
    >>> import triscreen as ts
    >>> problem = ts.Problem([[0.0], [1.0], [3.0]], ts.given_triplets([[0, 1, 2]]))
    >>> verifier = ts.verification.Verifier(problem)
    >>> [verifier(ts.solve(problem, lam).M, lam).rel_gap < 1e-6 for lam in (1.0, 2.0)]
    [True, True]
    """

    def __init__(self, problem: Any):
        self.flint = load_flint()
        self.triplets = T = problem.triplets
        if T.n_triplets > MOST:
            raise InputError(
                f"problem has {T.n_triplets:,} triplets: verify looks at them one by one, at most {MOST:,}; verify a "
                "problem over fewer points, or trust problem.certificate(M, lam)"
            )
        self.x = problem.given_points()  # refused if they have changed
        self.gamma, self.diagonal = float(problem.loss.gamma), problem.cone.name == "diagonal"
        self.shape = (self.x.shape[1],) * (1 if self.diagonal else 2)
        self.prior = None if problem.prior is None else problem.prior.matrix
        with self.flint.ctx.workprec(BITS):
            self.X = self._exact(self.x)
            self.rows = self.X.tolist()

    def __call__(
        self, M: ArrayLike, lam: float, alpha: ArrayLike | None = None, smoothing: float | None = None
    ) -> Verification:
        """Return the `Verification`; smoothing: of alphas for the hinge, by default the best of a grid."""
        lam, M = as_positive(lam, "lam"), self._metric(M)
        alpha = None if alpha is None else as_alpha(alpha, self.triplets.n_triplets)
        F = self._root(M)
        if self.gamma > 0 or alpha is not None:
            smoothing = self.gamma or 1.0
        elif not smoothing:
            smoothing = min((4.0**-e for e in range(21)), key=lambda s: self._about(F, lam, s))
        with self.flint.ctx.workprec(BITS):
            return self._proven(M, F, lam, *self._sums(F, alpha, smoothing))

    def _proven(self, M, F, lam, slack, dual, A):
        """Put gap, primal and ball together; slack = sum_t w_t s, dual = sum_t w_t (a - (g/2) a^2)."""
        N = np.zeros(self.shape) if self.prior is None else self.prior
        K = self._root(-(floats(A) + lam * self._square(N)))
        (M, N), (F, K) = (self._exact(self._square(m)) for m in (M, N)), (self._exact(m) for m in (F, K))
        near, G, one = F * F.transpose(), K * K.transpose(), self.flint.arb(lam)
        C = N + (A + G) / one
        rest, outside = slack + dot(G, near), dot(near - C, near - C)
        gap = rest + one / 2 * outside
        primal = slack + dual - dot(A, near) + one / 2 * dot(near - N, near - N)
        scale = low(abs(primal))
        if self.prior is not None:
            scale = max(scale, low(_FLOOR * self._total() * self._loss(self.flint.arb(1))))
        moved = root(dot(M - near, M - near))
        middle = floats((near + C) / 2)
        off = self._exact(middle) - (near + C) / 2
        radius = root(rest / one + outside / 4) + root(dot(off, off))
        return Verification(
            lam=lam,
            gap=high(gap),
            gap_low=max(0.0, low(gap)),
            rel_gap=high(self.flint.arb(high(gap)) / scale) if scale > 0 else math.inf,
            primal=(low(primal), high(primal)),
            moved=high(moved),
            radius=high(root(2 * gap / one) + moved),
            ball=Ball(np.diag(middle).copy() if self.diagonal else middle, high(radius)),
            n_triplets=self.triplets.n_triplets,
        )

    def _sums(self, F, alpha, smoothing):
        """Return (sum_t w_t s, sum_t w_t (a - (g/2) a^2), A), triplet by triplet over the distances of their pairs."""
        arb, G = self.flint.arb, (self.X * self._exact(F)).tolist()
        slack, dual, L = arb(0), arb(0), [[arb(0)] * self.X.ncols() for _ in self.rows]
        for first, second, pos, neg, w, start in self._chunks():
            D = [sum(((p - q) * (p - q) for p, q in zip(G[i], G[j], strict=True)), arb(0))
                 for i, j in zip(first.tolist(), second.tolist(), strict=True)]  # fmt: skip
            given = None if alpha is None else alpha[start : start + len(pos)]
            more, gain, weights = self._sweep(D, pos, neg, w, given, smoothing)
            slack, dual = slack + more, dual + gain
            for i, j, c in zip(first.tolist(), second.tolist(), weights, strict=True):
                if not c.is_zero():  # sum_p c_p delta_p delta_p' = X'L, L_i = sum of c_p delta_p over the pairs of i
                    z = [c * (p - q) for p, q in zip(self.rows[i], self.rows[j], strict=True)]
                    L[i] = [p + q for p, q in zip(L[i], z, strict=True)]
                    L[j] = [p - q for p, q in zip(L[j], z, strict=True)]
        A = self.X.transpose() * self.flint.arb_mat(L)
        if self.diagonal:
            A = self.flint.arb_mat(
                [[a if r == c else arb(0) for c, a in enumerate(row)] for r, row in enumerate(A.tolist())]
            )
        return slack, dual, A

    def _sweep(self, D, pos, neg, w, alpha, smoothing):
        """Return the two sums of one chunk, and for each pair the w a where it is negative minus those where positive.

        Most triplets are decided by the ends of their margins in floating point, rounded outwards: where m >= 1 and
        a = 0, or m <= 1 - g and a = 1, s is zero.
        """
        arb, half = self.flint.arb, self.flint.arb(self.gamma) / 2
        least, most = np.array([low(d) for d in D]), np.array([high(d) for d in D])
        with np.errstate(all="ignore"):  # what overflows is not decided
            zero = np.nextafter(least[neg] - most[pos], -np.inf) >= 1
            one = np.nextafter(most[neg] - least[pos], np.inf) <= np.nextafter(1 - max(self.gamma, smoothing), -np.inf)
        if alpha is not None:
            zero, one = zero & (alpha == 0), one & (alpha == 1)
        slack, dual, weights = arb(0), arb(0), [arb(0)] * len(D)
        for t in np.flatnonzero(~zero).tolist():
            p, q, weight, a = pos[t], neg[t], arb(1 if w is None else w[t]), arb(1)
            if not one[t]:
                b = 1 - (D[q] - D[p])
                a = float((b / smoothing).mid()) if alpha is None else float(alpha[t])
                a = arb(min(max(a, 0.0), 1.0))
                slack += weight * (self._loss(b) - a * b + half * a * a)
            dual += weight * (a - half * a * a)
            weights[p], weights[q] = weights[p] - weight * a, weights[q] + weight * a
        return slack, dual, weights

    def _loss(self, b):
        """l(1 - b)."""
        if self.gamma == 0:
            return b.max(self.flint.arb(0))
        a = (b / self.gamma).max(self.flint.arb(0)).min(self.flint.arb(1))
        return a * b - self.flint.arb(self.gamma) / 2 * a * a

    def _chunks(self):
        """Give triplets: points of their pairs, positive and negative pair of each, weights, the first one's number."""
        n = len(self.x)
        for start in range(0, self.triplets.n_triplets, _CHUNK):
            stop = min(start + _CHUNK, self.triplets.n_triplets)
            i, j, k = self.triplets.indices(start, stop).T.astype(np.int64)
            pairs, places = np.unique(np.concatenate([i * n + j, i * n + k]), return_inverse=True)
            places = places.reshape(2, -1)
            yield *np.divmod(pairs, n), *places, self.triplets.weights_of(start, stop), start

    def _total(self):
        """The sum of the weights, or a little less."""
        sums = [stop if w is None else math.fsum(w) for *_, p, _, w, _ in self._chunks() for stop in (len(p),)]
        return self.flint.arb(math.fsum(sums)) * (1 - 2.0**-50)

    def _about(self, F, lam, smoothing):
        """About the gap of the hinge with alphas of some smoothing, in floating point: it only helps to choose one."""
        M, slack, A = F @ F.T, 0.0, np.zeros((len(F), len(F)))
        for first, second, pos, neg, w, _ in self._chunks():
            delta = self.x[first] - self.x[second]
            D = np.square(delta @ F).sum(axis=1)
            b = 1 - (D[neg] - D[pos])
            a = np.clip(b / smoothing, 0, 1) * (1.0 if w is None else w)
            slack += float((np.maximum(b, 0) * (1.0 if w is None else w) - a * b).sum())
            A += (delta.T * (np.bincount(neg, a, len(D)) - np.bincount(pos, a, len(D)))) @ delta
        B = (np.diag(np.diag(A)) if self.diagonal else A) + lam * self._square(
            0 * M if self.prior is None else self.prior
        )
        K = self._root(-B)
        G = K @ K.T
        return slack + float(np.vdot(G, M)) + 0.5 * lam * float(np.square(M - (B + G) / lam).sum())

    def _metric(self, M):
        """Return M as an array that is nearly one of the cone's, or refuse it."""
        M = as_numbers(M, "M")
        if self.diagonal and M.ndim == 2 and M.shape == 2 * self.shape and not (M - np.diag(np.diag(M))).any():
            M = np.diag(M)
        if M.shape != self.shape or not np.isfinite(M).all():
            raise InputError(f"M has shape {M.shape}: M must be an array of finite numbers of shape {self.shape}")
        F = self._root(M)
        off = float(np.linalg.norm(self._square(M) - F @ F.T))
        if off > 1e-6 * float(np.linalg.norm(M)):
            raise InputError(
                f"M lies {shortened(off)} from the nearest metric: M must be symmetric and positive semi-definite"
            )
        return M

    def _square(self, M):
        """Return a matrix, of a vector the one with that diagonal."""
        return np.diag(M) if M.ndim == 1 else M

    def _root(self, M):
        """Return F with F F' about the positive part of M."""
        if self.diagonal:
            return np.diag(np.sqrt(np.maximum(np.diag(M) if M.ndim == 2 else M, 0.0)))
        values, vectors = np.linalg.eigh(0.5 * (M + M.T))
        keep = values > 0
        keep[-1] = True  # one column at least
        return vectors[:, keep] * np.sqrt(np.maximum(values[keep], 0.0))

    def _exact(self, array):
        """Return floats as balls of radius 0."""
        return self.flint.arb_mat(array.tolist())
