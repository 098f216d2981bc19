"""What a metric is worth, recomputed from M alone: no solver grades itself, and none of its code is used here.

    primal  sum_t w_t l(m_t) + (lam/2) |M|^2,   m_t = u'Mu - v'Mv,   u = x_i - x_l,   v = x_i - x_j
    gap     sum_t w_t [l(m_t) - a_t (1 - m_t) + (g/2) a_t^2] + <-[A]_-, M> + (lam/2) |M - [A]_+/lam|^2

with a_t from the margins of M and A = sum_t w_t a_t (u u' - v v'): plain numpy in float64, straight from M (no factor).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_CHUNK = 1 << 21  # numbers of differences at a time
_HINGE = tuple(4.0**-e for e in range(21))


class Refused(ValueError):
    """A solver returned something that is no metric, or claimed more than its metric is worth."""


@dataclass(frozen=True)
class Score:
    """What M is worth: the objective, and a bound on how far it is from the optimum."""

    primal: float
    gap: float

    @property
    def rel_gap(self):
        """gap / |primal|."""
        return self.gap / abs(self.primal)


class Objective:
    """The problem as data: points, triplets (m, 3) of (i, j, l), gamma (0: the hinge), the cone, weights.

    Examples
    --------
    >>> Objective([[0.0], [1.0], [3.0]], [[0, 1, 2]], gamma=0.5).evaluate([[0.0]], lam=1.0).primal
    0.75
    """

    def __init__(self, X, triplets, gamma=0.05, cone="psd", weights=None):
        X = np.asarray(X, dtype=np.float64)
        self.X, self.gamma, self.cone = X - X.mean(axis=0), float(gamma), cone
        i, j, k = np.asarray(triplets, dtype=np.int64).T
        self.weights = np.ones(len(i)) if weights is None else np.asarray(weights, dtype=np.float64)
        keys, numbers = np.unique(np.concatenate([i * len(X) + j, i * len(X) + k]), return_inverse=True)
        self.first, self.second = np.divmod(keys, len(X))
        self.positive, self.negative = numbers[: len(i)], numbers[len(i) :]

    @classmethod
    def of(cls, problem, X):
        """Take triplets, loss and cone of a triscreen problem; the points as they were before it."""
        triplets = problem.triplets
        return cls(X, triplets.indices(), problem.loss.gamma, problem.cone.name, triplets.weights)

    def evaluate(self, M, lam):
        """Return the `Score` of M at lam; of the hinge's dual points clip((1 - m)/s, 0, 1) the best one counts."""
        M = self._checked(M)
        dist = np.concatenate([self._distances(M, D) for _, D in self._differences()])
        b = 1.0 - (dist[self.negative] - dist[self.positive])
        scores = [self._score(M, lam, b, s) for s in ([self.gamma] if self.gamma > 0 else _HINGE)]
        return min(scores, key=lambda score: score.gap)

    def check(self, M, lam, claimed_gap):
        """Return the `Score` of M; refuse a solver whose claimed gap is smaller than what M is worth."""
        score = self.evaluate(M, lam)
        if not score.gap <= 1.001 * claimed_gap + 1e-11 * abs(score.primal):
            raise Refused(f"gap={claimed_gap:.3g} is claimed at lam={lam:.6g}: recomputed from M it is {score.gap:.3g}")
        return score

    def _score(self, M, lam, b, s):
        w, g = self.weights, self.gamma
        a = np.clip(b / s, 0.0, 1.0)
        loss = a * b - g / 2 * a * a if g > 0 else np.maximum(b, 0.0)
        slack = float(w @ np.maximum(loss - a * b + g / 2 * a * a, 0.0))
        c = np.bincount(self.negative, w * a, len(self.first)) - np.bincount(self.positive, w * a, len(self.first))
        A = sum(self._weighted(c[rows], D) for rows, D in self._differences())
        plus, minus = _parts(A)
        gap = slack + max(float(np.vdot(minus, M)), 0.0) + lam / 2 * float(np.sum((M - plus / lam) ** 2))
        return Score(float(w @ loss) + lam / 2 * float(np.sum(M * M)), gap)

    def _differences(self):
        size = max(1, _CHUNK // self.X.shape[1])
        for start in range(0, len(self.first), size):
            rows = slice(start, start + size)
            yield rows, self.X[self.first[rows]] - self.X[self.second[rows]]

    def _distances(self, M, D):
        return (D * D) @ M if M.ndim == 1 else np.einsum("pd,pd->p", D @ M, D)

    def _weighted(self, c, D):
        return c @ (D * D) if self.cone == "diagonal" else (D * c[:, None]).T @ D

    def _checked(self, M):
        M, d = np.asarray(M, dtype=np.float64), self.X.shape[1]
        shape = (d,) if self.cone == "diagonal" else (d, d)
        if M.shape != shape or not np.isfinite(M).all():
            raise Refused(f"M of shape {M.shape}: M must be finite and of shape {shape}")
        if M.ndim == 2 and np.abs(M - M.T).max() > 1e-12 * max(np.abs(M).max(), 1e-300):
            raise Refused("M is not symmetric: M must be its own transpose")
        values = M if M.ndim == 1 else np.linalg.eigvalsh(M)
        if values.min() < -1e-12 * max(np.abs(values).max(), 1e-300):
            raise Refused(f"M has the eigenvalue {values.min():.3g}: M must be positive semi-definite")
        return M


def _parts(A):
    """Return ([A]_+, -[A]_-)."""
    if A.ndim == 1:
        return np.maximum(A, 0.0), np.maximum(-A, 0.0)
    values, vectors = np.linalg.eigh(A)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T, (vectors * np.maximum(-values, 0.0)) @ vectors.T
