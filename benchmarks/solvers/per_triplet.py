"""The paper's baseline, honestly done: every triplet costs O(d^2), in matrix products over blocks of triplets.

Projected gradient with the paper's Barzilai-Borwein step, warm starts, and its screening: one of its bounds before the
first iteration and every ten, the sphere rule. Nothing is shared between triplets that have pairs in common; that is
what triscreen's engine is compared with. Blocks are shared out among all cores.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

_BLOCK = 10_000
_SAFE = 1e-9  # relative, added to every radius: far more than rounding
_MOST = 5000  # iterations for one lambda
# The paper's bounds: before the first iteration, and every ten. Once the optimisation runs, its RRPB is DGB.
CASES = {
    "none": (None, None),
    "gb": ("gb", "gb"),
    "pgb": ("pgb", "pgb"),
    "dgb": ("dgb", "dgb"),
    "rrpb": ("rrpb", "dgb"),
    "rrpb+pgb": ("rrpb", "pgb"),
}


@dataclass
class State:
    """An iterate: M, its margins over the triplets that are left, A over all, objective and gap of what is left."""

    M: np.ndarray
    margins: np.ndarray
    A: np.ndarray
    primal: float
    gap: float


class PerTriplet:
    """Points and triplets (m, 3); the smoothed hinge; full metrics."""

    def __init__(self, X, triplets, gamma=0.05):
        self.X, self.gamma = np.asarray(X, dtype=np.float64), gamma
        self.triplets = np.asarray(triplets)
        self.pool = ThreadPoolExecutor(os.cpu_count())
        self.seconds = 0.0  # spent on screening
        self.norms = np.concatenate(self._blocks(self.triplets, lambda rows, u, v: _norms(u, v)))
        d = self.X.shape[1]
        self.reset(np.zeros((d, d)))

    def reset(self, zero):
        """Begin a new lambda: nothing is decided."""
        self.left = np.arange(len(self.triplets))
        self.linear_matrix, self.linear_count = zero, 0

    def _blocks(self, triplets, work):
        """Return what ``work(rows, u, v)`` returns for every block of triplets."""

        def block(start):
            i, j, k = triplets[start : start + _BLOCK].T
            return work(slice(start, start + _BLOCK), self.X[i] - self.X[k], self.X[i] - self.X[j])

        return list(self.pool.map(block, range(0, len(triplets), _BLOCK)))

    def margins(self, M):
        """<M, H_t> of the triplets that are left."""

        def block(rows, u, v):
            return np.einsum("td,td->t", u @ M, u) - np.einsum("td,td->t", v @ M, v)

        return np.concatenate([np.empty(0), *self._blocks(self.triplets[self.left], block)])

    def weighted(self, a, triplets):
        """Sum of a_t H_t."""

        def block(rows, u, v):
            return (u * a[rows, None]).T @ u - (v * a[rows, None]).T @ v

        return sum(self._blocks(triplets, block), np.zeros((self.X.shape[1],) * 2))

    def evaluate(self, M, lam, margins=None):
        """Return the `State` at M."""
        margins = self.margins(M) if margins is None else margins
        b, g = 1 - margins, self.gamma
        a = np.clip(b / g, 0, 1)
        A = self.linear_matrix + self.weighted(a, self.triplets[self.left])
        # Decided linear ones: l = 1 - m - g/2, and their part of M's inner product is in the constant matrix.
        loss = float(np.sum(a * b - g / 2 * a * a)) + (1 - g / 2) * self.linear_count
        loss -= float(np.vdot(self.linear_matrix, M))
        values, vectors = np.linalg.eigh(A)
        plus = (vectors * np.maximum(values, 0)) @ vectors.T
        gap = max(float(np.vdot(plus - A, M)), 0.0) + lam / 2 * float(np.sum((M - plus / lam) ** 2))
        return State(M, margins, A, loss + lam / 2 * float(np.sum(M * M)), gap)

    def screen(self, margins, radius):
        """The sphere rule: margins under the centre, the radius; returns how many are left."""
        reach = radius * self.norms[self.left] * (1 + _SAFE)
        slack = _SAFE * (1 + np.abs(margins))
        zero = margins - reach > 1 + slack
        linear = margins + reach < 1 - self.gamma - slack
        if linear.any():
            gone = self.left[linear]
            self.linear_matrix = self.linear_matrix + self.weighted(np.ones(len(gone)), self.triplets[gone])
            self.linear_count += len(gone)
        keep = ~(zero | linear)
        self.left = self.left[keep]
        return keep

    def solve(self, lam, tol, last=None, case="none", eta=None):
        """Return (State over all triplets, eta, iterations, triplets left); last: (State, lam0) to start from."""
        d = self.X.shape[1]
        self.reset(np.zeros((d, d)))
        first, later = CASES[case]
        if last is None:
            S = self.weighted(np.ones(len(self.triplets)), self.triplets)
            now, eta = self.evaluate(_plus(S / lam), lam), 1 / lam
        else:
            old, lam0 = last
            margins = old.margins
            if first == "rrpb":
                margins = self._rrpb(old, lam0, lam)
            now = self.evaluate(old.M, lam, margins)
            if first not in (None, "rrpb"):
                now = self._screened(first, now, lam)
        steps = 0
        for steps in range(1, _MOST + 1):
            if now.gap <= 0.9 * tol * abs(now.primal):
                break
            if later and steps % 10 == 0:
                now = self._screened(later, now, lam)
            new = self.evaluate(_plus(now.M - eta * (lam * now.M - now.A)), lam)
            dM, dG = new.M - now.M, lam * (new.M - now.M) - (new.A - now.A)
            inner, square = float(np.vdot(dM, dG)), float(np.vdot(dG, dG))
            if inner > 0:
                eta = 0.5 * abs(inner / square + float(np.vdot(dM, dM)) / inner)
            now = new
        left = len(self.left)
        if left < len(self.triplets):  # the proof is over all triplets
            self.reset(np.zeros((d, d)))
            now = self.evaluate(now.M, lam)
        return now, eta, steps - 1, left

    def _rrpb(self, old, lam0, lam):
        """Screen from the last lambda; return the margins of what is left."""
        begin = time.perf_counter()
        eps = np.sqrt(2 * old.gap / lam0) * (1 + _SAFE)
        size, scale = float(np.linalg.norm(old.M)), (lam0 + lam) / (2 * lam)
        radius = abs(lam0 - lam) / (2 * lam) * size + (abs(lam0 - lam) + lam0 + lam) / (2 * lam) * eps
        margins = old.margins[self.screen(scale * old.margins, radius)]
        self.seconds += time.perf_counter() - begin
        return margins

    def _screened(self, bound, now, lam):
        """Screen from the iterate; return it on what is left."""
        begin = time.perf_counter()
        if bound == "dgb":
            margins, radius = now.margins, np.sqrt(2 * now.gap / lam)
        else:
            center = Q = (now.M + now.A / lam) / 2
            if bound == "pgb":
                Q = _plus(center)
            radius = np.sqrt(float(np.sum((now.M - Q) ** 2)) + 2 * max(float(np.vdot(Q - center, now.M)), 0.0))
            margins = self.margins(Q)
        keep = self.screen(margins, radius)
        self.seconds += time.perf_counter() - begin
        return now if keep.all() else self.evaluate(now.M, lam, now.margins[keep])

    def path(self, lambdas, tol=1e-6, case="none"):
        """Yield (State, iterations, triplets left, seconds, those of screening) for each lambda."""
        last = eta = None
        for lam in lambdas:
            begin, self.seconds = time.perf_counter(), 0.0
            with threadpool_limits(1, "blas"):  # the blocks are what runs side by side
                now, eta, steps, left = self.solve(lam, tol, last, case, eta)
            last = (now, lam)
            yield now, steps, left, time.perf_counter() - begin, self.seconds


def _plus(A):
    values, vectors = np.linalg.eigh(A)
    return (vectors * np.maximum(values, 0)) @ vectors.T


def _norms(u, v):
    """|u u' - v v'|_F from q = u - v and s = u + v: positive terms only."""
    q, s = u - v, u + v
    inner = np.einsum("td,td->t", q, s)
    return np.sqrt((np.einsum("td,td->t", q, q) * np.einsum("td,td->t", s, s) + inner * inner) / 2)
