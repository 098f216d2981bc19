"""The inequality of `triscreen.verification.gaps` from its definition, in fractions: nothing is rounded."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest

import triscreen as ts
from nightly import cases
from triscreen.verification import Verifier

KINDS = ("given", "weighted", "knn", "all", "lmnn")


def exact(array):
    """A matrix of fractions; of a vector the one with that diagonal."""
    array = np.diag(array) if np.ndim(array) == 1 else np.asarray(array)
    return np.array([[Fraction(float(x)) for x in row] for row in array], dtype=object).reshape(array.shape)


def a_problem(seed):
    """A problem of every kind in turn, with numbers of any size, and points that are the same or far from 0."""
    rng = np.random.default_rng(seed)
    n, d = 5 + seed % 2, int(rng.integers(1, 4))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4) + rng.choice([0.0, 0.0, 1e4])
    X[1] = X[0] if seed % 5 == 0 else X[1]
    y = np.arange(n) % 2
    kind, gamma = KINDS[seed % len(KINDS)], (0.0, 0.05, 0.7, 1.0)[seed % 4]
    cone = "diagonal" if seed % 3 == 0 else "psd"
    if kind in ("all", "lmnn"):
        weights = rng.uniform(0.3, 2, n) if seed % 2 else None
        T = ts.all_triplets(X, y, None if kind == "all" else 1, weights=weights)
    elif kind == "knn":
        T = ts.knn_triplets(X, y, 1)
    else:
        rows = np.array([rng.choice(n, 3, replace=False) for _ in range(9)])
        T = ts.given_triplets(rows, rng.uniform(1e-3, 30, len(rows)) if kind == "weighted" else None)
    N = None
    if seed % 7 < 2:
        F = rng.normal(size=(d, d)) / np.ptp(X)
        N = np.square(F[0]) if cone == "diagonal" else F @ F.T
    loss = ts.Hinge() if gamma == 0 else ts.SmoothedHinge(gamma)
    return ts.Problem(X, T, loss=loss, cone=cone, prior=N), X, N, rng


class Exact:
    """P and the dual bound, triplet by triplet."""

    def __init__(self, problem, X, N, lam):
        self.lam, self.gamma, self.diagonal = Fraction(lam), Fraction(problem.loss.gamma), problem.cone.name != "psd"
        self.N = exact(np.zeros((X.shape[1],) * 2) if N is None else N)
        x, T = exact(X), problem.triplets
        w = T.weights_of(0, T.n_triplets)
        self.w = [Fraction(1)] * T.n_triplets if w is None else [Fraction(float(v)) for v in w]
        self.H = []
        for i, j, k in T.indices(0, T.n_triplets).tolist():
            u, v = x[i] - x[k], x[i] - x[j]
            H = np.outer(u, u) - np.outer(v, v)
            self.H.append(np.diag(np.diag(H)) if self.diagonal else H)

    def primal(self, M):
        value = self.lam / 2 * ((M - self.N) ** 2).sum()
        for w, H in zip(self.w, self.H, strict=True):
            b = 1 - (H * M).sum()
            corner = self.gamma and 0 < b < self.gamma
            value += w * (b * b / (2 * self.gamma) if corner else b - self.gamma / 2 if b > 0 else 0)
        return value

    def dual(self, alpha, G):
        """The least of the right-hand side of the proof, which is at C; and C."""
        A = sum(w * a * H for w, a, H in zip(self.w, alpha, self.H, strict=True))
        C = self.N + (A + G) / self.lam
        value = sum(w * (a - self.gamma / 2 * a * a) for w, a in zip(self.w, alpha, strict=True))
        return value - ((A + G) * C).sum() + self.lam / 2 * ((C - self.N) ** 2).sum(), C


@pytest.mark.filterwarnings("ignore::triscreen.DegenerateProblemWarning")
@pytest.mark.parametrize("seed", cases(range(15), range(400)))
def test_a_proof_is_that_of_its_own_factors_in_fractions(seed, monkeypatch):
    """P(M~) - D(C) of the F, K and alphas that were taken lies in [gap_low, gap]; no better metric breaks the bound."""
    problem, X, N, rng = a_problem(seed)
    lam = float(rng.choice([1e-3, 0.1, 1.0, 30.0])) * (problem.lambda_max() or 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.ConvergenceWarning)
        best = ts.solve(problem, lam, tol=1e-9, max_iter=300).M
    truth, roots, honest = Exact(problem, X, N, lam), [], Verifier._root
    monkeypatch.setattr(Verifier, "_root", lambda self, M: roots.append(honest(self, M)) or roots[-1])
    size = float(np.abs(best).max()) or 1.0
    F = rng.normal(size=(X.shape[1],) * 2)
    other = size * (np.square(F[0]) if problem.cone.name == "diagonal" else F @ F.T)
    least = truth.primal(exact(honest(Verifier(problem), best)) @ exact(honest(Verifier(problem), best)).T)
    n = problem.triplets.n_triplets
    for M in (best, other, 0 * best):
        for alpha in (None, rng.choice([0.0, 1.0, 0.25, rng.uniform()], n), np.ones(n)):
            roots.clear()
            proof = ts.verify(problem, M, lam, alpha)
            factors = [exact(root) for root in (roots[1], roots[-1])]  # the first one is that of the check of M
            near, G = (root @ root.T for root in factors)
            primal = truth.primal(near)
            assert Fraction(proof.primal[0]) <= primal <= Fraction(proof.primal[1])
            assert Fraction(proof.gap) >= primal - least
            assert ((exact(M) - near) ** 2).sum() <= Fraction(proof.moved) ** 2
            if alpha is not None:
                dual, C = truth.dual([Fraction(float(a)) for a in alpha], G)
                assert Fraction(proof.gap_low) <= primal - dual <= Fraction(proof.gap)
                floor = Fraction(1e-3) * sum(truth.w) * (1 - truth.gamma / 2 if truth.gamma <= 1 else 0)
                scale = primal if N is None else max(primal, floor)
                assert Fraction(proof.rel_gap) * scale >= primal - dual
                # radius >= |center - (M~ + C)/2| + sqrt(inner), squared twice.
                inner = (primal - dual) / truth.lam - ((near - C) ** 2).sum() / 4
                off, r = ((exact(proof.ball.center) - (near + C) / 2) ** 2).sum(), Fraction(proof.ball.radius)
                assert r * r + off >= inner
                assert (r * r + off - inner) ** 2 >= 4 * r * r * off
                assert Fraction(proof.radius) ** 2 >= 2 * (primal - dual) / truth.lam
