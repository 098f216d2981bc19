"""Decided predictions and comparisons of data that are hard on purpose, beside optima with their certified radius."""

from __future__ import annotations

import numpy as np
import pytest

import triscreen as ts
from nightly import cases

pytestmark = pytest.mark.filterwarnings("ignore")

SEEDS = cases(2, 40)
QUERIES = 60


def copies(rng, X, n):
    """The same points in several classes, and among those that ask."""
    X[:n] = X[rng.integers(0, max(3, n // 3), n)]
    X[n : n + QUERIES // 2] = X[rng.integers(0, n, QUERIES // 2)]
    return X


def grid(rng, X, n):
    """Many equal distances."""
    return np.round(2 * X) / rng.choice([1, 2, 8])


def offsets(rng, X, n):
    """Features of sizes 1 and 1e6, far from zero."""
    return X * 10.0 ** rng.choice([0, 6], X.shape[1]) + 1e8 * rng.choice([0, 1], X.shape[1])


def binary(rng, X, n):
    """Features that are 0 or 1: few points, of many copies."""
    return (X > 0).astype(float)


def repeated(rng, X, n):
    """Features that repeat, at other places, and one that is far larger."""
    return np.hstack([np.round(X), X[:, :1] + 1e3, 1e6 * (X[:, :1] > 0)])


def clusters(rng, X, n):
    """Points that are far from all others."""
    X[: n // 4] += 1e5
    return X


def plain(rng, X, n):
    """Nothing in particular."""
    return X


KINDS = {
    "copies": copies, "grid": grid, "offsets": offsets, "binary": binary, "repeated": repeated, "clusters": clusters,
    "everybody votes": plain, "classes of one": plain, "hinge": plain, "tiny lambda": plain,
}  # fmt: skip


def made(kind, rng):
    """Return (points, labels, held-out points, their labels, problem)."""
    n, d = int(rng.integers(18, 40)), int(rng.integers(1, 5))
    y = rng.integers(0, int(rng.integers(2, 5)), n + QUERIES)
    X = KINDS[kind](rng, rng.normal(size=(n + QUERIES, d)) + rng.normal(size=(5, d))[y], n)
    if kind == "classes of one":
        y[rng.choice(np.arange(2, n), 4, replace=False)] = 5, 6, 7, 8
    y[:2] = 0, 1
    y[n:] = rng.choice(np.unique(y[:n]), QUERIES)
    X, y, X_val, y_val = X[:n], y[:n], X[n:], y[n:]
    loss = ts.Hinge() if kind == "hinge" else ts.SmoothedHinge(float(rng.choice([1e-3, 0.05, 1])))
    cone = "diagonal" if rng.random() < 0.3 else "psd"
    prior = None
    if rng.random() < 0.3:
        L = rng.normal(size=(X.shape[1], int(rng.integers(1, X.shape[1] + 1))))
        L /= np.sqrt(np.square(X - X.mean(axis=0)).mean())
        prior = np.square(L).sum(axis=1) if cone == "diagonal" else L @ L.T
    T = ts.knn_triplets(X, y, int(rng.integers(1, 5)), n_jobs=1)
    which = rng.integers(4)
    if which == 0 and T.n_triplets:
        rows = T.indices()
        T = ts.given_triplets(rows, 10.0 ** rng.uniform(-2, 1, len(rows)))
    elif which == 1:
        T = ts.all_triplets(X, y, n_jobs=1)
    return X, y, X_val, y_val, ts.Problem(X, T, loss=loss, cone=cone, prior=prior, n_jobs=1)


def extended(M):
    return (np.diag(M) if M.ndim == 1 else M).astype(np.longdouble)


def voted(M, away, X, y, queries, k):
    """Return (predictions, which of them are those of every metric within ``away`` of M)."""
    delta = queries.astype(np.longdouble)[:, None, :] - X.astype(np.longdouble)
    dist, squares = (delta @ extended(M) * delta).sum(axis=2), np.square(delta).sum(axis=2)
    order = np.argsort(dist, axis=1, kind="stable")
    last, rows = order[:, k - 1], np.arange(len(queries))
    predicted = (y[order[:, :k]][:, :, None] == np.arange(y.max() + 1)).sum(axis=1).argmax(axis=1)
    both = squares + squares[rows, last][:, None]
    near = np.abs(dist - dist[rows, last][:, None]) <= both * (away + 1e-15 * np.linalg.norm(M))
    twins = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    others = (near & (twins != twins[last][:, None])).any(axis=1)
    return predicted, ~(others & (near & (y != y[last][:, None])).any(axis=1))


def margins(M, points, rows):
    """Return (margins of comparisons, |H| of each, their rounding)."""
    x = points.astype(np.longdouble)
    u, v = x[rows[:, 0]] - x[rows[:, 2]], x[rows[:, 0]] - x[rows[:, 1]]
    far, near = ((z @ extended(M) * z).sum(axis=1) for z in (u, v))
    square = np.square((u * u).sum(axis=1)) + np.square((v * v).sum(axis=1)) - 2 * np.square((u * v).sum(axis=1))
    return far - near, np.sqrt(np.maximum(square, 0)), 1e-15 * (np.abs(far) + np.abs(near))


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("kind", KINDS)
def test_decisions_are_right(kind, seed):
    top, attempt = 0.0, 0
    while not top > 0:  # some have no path
        rng = np.random.default_rng([seed, list(KINDS).index(kind), attempt])
        X, y, X_val, y_val, problem = made(kind, rng)
        top, attempt = problem.lambda_max(), attempt + 1
    lambdas = top * (np.geomspace(1, 1e-7, 12) if kind == "tiny lambda" else rng.choice([0.5, 0.8]) ** np.arange(8.0))
    path = ts.solve_path(problem, lambdas=lambdas, tol=float(rng.choice([1e-3, 1e-6, 1e-8])), max_iter=2000)
    k = len(X) if kind == "everybody votes" else int(rng.integers(1, 7))
    bounds = ts.validation_bounds(path, X, y, X_val, y_val, k)
    if kind == "everybody votes":
        assert bounds.outcomes.all()
    points = np.concatenate([X, X_val])
    rows = rng.integers(0, len(points), (400, 3))
    compared = ts.comparison_bounds(path, points, rows)
    same = (points[rows[:, 1]] == points[rows[:, 2]]).all(axis=1)
    assert (compared.outcomes[:, same] == -1).all()
    for _ in range(2):
        t = int(rng.integers(len(path) - 1))
        high, low = path.lambdas[[t, t + 1]]
        lam = float(np.clip(high * (low / high) ** rng.choice([0, 1, rng.random()]), low, high))
        exact = ts.solve(problem, lam, tol=1e-10, start=path.M(t), max_iter=3000)
        away = float(np.sqrt(2 * (exact.gap + exact.rounding) / lam))
        ball = path.ball(lam)
        assert np.linalg.norm(exact.M - ball.center) <= (ball.radius + away) * (1 + 1e-12)
        predicted, clear = voted(exact.M, away, X, y, X_val, k)
        outcome, right = bounds.outcomes[t], predicted == y_val
        assert not (clear & (((outcome > 0) & ~right) | ((outcome < 0) & right))).any()
        found, sizes, rounding = margins(exact.M, points, rows)
        outcome = compared.outcomes[t]
        assert not ((np.sign(outcome) * found < -(sizes * away + rounding)) & ~same).any()
