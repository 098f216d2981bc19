"""Small random problems for tests, with everything a reference needs to know about them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import triscreen as ts

# Every way of screening a path.
SWITCHES = [
    pytest.param(None, id="none"),
    pytest.param("auto", id="auto"),
    pytest.param(ts.Screening(("rrpb", "mid"), every=3, ranges=False, active_set=False), id="rrpb"),
    pytest.param(ts.Screening("pgb", every=5, ranges=False, active_set=False), id="pgb"),
    pytest.param(ts.Screening("mid", every=5, ranges=True, active_set=False), id="ranges"),
    pytest.param(ts.Screening("mid", every=2, ranges=True, active_set=True), id="ranges and active set"),
    pytest.param(ts.Screening("mid", every=5, at_start=False, ranges=False, active_set="loss"), id="paper's set"),
    pytest.param(ts.Screening("mid", every=3, ranges=False, include_solution=True), id="solution included"),
    pytest.param(ts.Screening("gb", rule="linear", every=4, ranges=True), id="linear rule"),
]


@dataclass
class Case:
    """A problem and its parts."""

    problem: ts.Problem
    X: np.ndarray
    indices: np.ndarray
    w: np.ndarray
    gamma: float
    cone: str
    prior: np.ndarray | None = None


def make_case(
    seed, *, n=14, d=3, m=60, gamma=0.05, cone="psd", weighted=False, scale=1.0, kind="given", n_jobs=1, prior=None
):
    """Two noisy classes; given triplets at random among (same class, other class), or nearest neighbours."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = scale * (rng.normal(size=(n, d)) + 0.7 * y[:, None] * rng.normal(size=d))
    w = np.ones(m)
    if kind == "knn":
        T = ts.knn_triplets(X, y, 3)
        w = np.ones(T.n_triplets)
    else:
        rows = []
        while len(rows) < m:
            i, j, k = rng.choice(n, 3, replace=False)
            if y[i] == y[j] != y[k]:
                rows.append((i, j, k))
        w = rng.uniform(0.2, 3.0, m) if weighted else w
        T = ts.given_triplets(rows, w if weighted else None)
    loss = ts.Hinge() if gamma == 0 else ts.SmoothedHinge(gamma)
    if isinstance(prior, int):  # a random one, of about the size that the triplets ask for
        prior = random_metric(prior, d, cone, 0.3 / scale**2)
        prior = prior if prior.any() else prior + 0.1 / scale**2
    problem = ts.Problem(X, T, loss=loss, cone=cone, n_jobs=n_jobs, prior=prior)
    return Case(problem, X, T.indices(), w, gamma, cone, prior)


def random_metric(seed, d, cone, scale=1.0):
    """A random element of the cone (low rank for even seeds)."""
    rng = np.random.default_rng(seed)
    if cone == "diagonal":
        return scale * np.maximum(rng.normal(size=d), 0)
    F = rng.normal(size=(d, 1 if seed % 2 == 0 else d))
    return scale * F @ F.T


def is_certified(problem, sol):
    certificate = problem.certificate(sol.M, sol.lam)
    assert (sol.primal, sol.dual, sol.gap) == (certificate.primal, certificate.dual, certificate.gap)
    assert sol.rel_gap == certificate.rel_gap
    assert sol.converged == (sol.rel_gap <= sol.tol)


def check_path(problem, path, tol):
    """Every reported gap is the one over all triplets."""
    assert path.converged.all()
    assert (path.rel_gaps <= tol).all()
    for t, certificate in enumerate(path.certify()):
        assert certificate.gap <= path.gaps[t] + 1e-11 * certificate.primal + path[t].rounding
        assert path.primals[t] == pytest.approx(certificate.primal, rel=1e-10)
        if problem.loss.gamma:  # a certificate of the hinge takes the best of many alphas
            assert path.gaps[t] == pytest.approx(certificate.gap, abs=1e-10 * certificate.primal)
            assert path.duals[t] == pytest.approx(certificate.dual, rel=1e-10)


def comparisons(seed, n=25, m=250, d=4):
    """Judgements of somebody who sees two of d features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    rows = rng.integers(0, n, (3 * m, 3))
    rows = rows[(rows[:, 0] != rows[:, 1]) & (rows[:, 0] != rows[:, 2]) & (rows[:, 1] != rows[:, 2])][:m]
    seen = X * np.array([1.0, 0.5] + [0.0] * (d - 2))
    near, far = (np.linalg.norm(seen[rows[:, 0]] - seen[rows[:, k]], axis=1) for k in (1, 2))
    return X, np.where((near < far)[:, None], rows, rows[:, [0, 2, 1]])
