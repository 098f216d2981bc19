"""Problems with held-out points, and their predictions one by one."""

from __future__ import annotations

import numpy as np

import triscreen as ts


def some_data(seed, queries=None):
    """Points with held-out ones, of any kind: ties, copies, grids, features that repeat, several classes."""
    rng = np.random.default_rng(seed)
    n, m, d = int(rng.integers(20, 60)), int(rng.integers(5, 25)), int(rng.integers(1, 5))
    m = queries or m
    y = rng.integers(0, int(rng.integers(2, 4)), n + m)
    X = rng.normal(size=(n + m, d)) + 1.2 * rng.normal(size=(4, d))[y]
    kind = rng.integers(5)
    if kind == 0:
        X = np.round(X)  # many equal distances
    elif kind == 1:
        X[n // 2 : n] = X[: n - n // 2]  # copies, some of another class
    elif kind == 2:
        X = np.hstack([X, X[:, :1]])
    elif kind == 3:
        X += 1e3
    y[:2] = 0, 1
    return rng, X[:n], y[:n], X[n:], np.where(np.isin(y[n:], y[:n]), y[n:], 0)


def some_problem(rng, X, y):
    loss = ts.Hinge() if rng.random() < 0.2 else ts.SmoothedHinge(float(rng.choice([0.05, 0.5])))
    cone = "diagonal" if rng.random() < 0.3 else "psd"
    prior = None
    if rng.random() < 0.3:
        size = 0.3 / np.square(X - X.mean(axis=0)).mean()
        prior = size * (np.ones(X.shape[1]) if cone == "diagonal" else np.eye(X.shape[1]))
    T = ts.knn_triplets(X, y, int(rng.integers(1, 4)))
    return ts.Problem(X, T, loss=loss, cone=cone, prior=prior, n_jobs=1)


def compare(seed, n_lambdas=8, tries=2, ratio=None, queries=None):
    """Return (decided predictions that were compared, how many decisions or bounds were wrong, all).

    Lambdas drawn at random are solved far more accurately; predictions that hang on a tie there say nothing.
    """
    rng, X, y, X_val, y_val = some_data(seed, queries)
    problem = some_problem(rng, X, y)
    if problem.lambda_max() == 0:
        return 0, 0, 0
    k = int(rng.integers(1, 6))
    path = ts.solve_path(problem, ratio=ratio or float(rng.choice([0.5, 0.8, 0.95])), n_lambdas=n_lambdas, tol=1e-7)
    bounds = ts.validation_bounds(path, X, y, X_val, y_val, k)
    compared = wrong = total = 0
    for _ in range(tries):
        t = int(rng.integers(max(1, len(path) - 1)))
        low, high = path.lambdas[min(t + 1, len(path) - 1)], path.lambdas[t]
        lam = float(rng.choice([low, high, rng.uniform(low, high)]))
        exact = ts.solve(problem, lam, tol=1e-11, start=path.at(lam).M, max_iter=3000)
        found, clear = votes(exact.M, X, y, X_val, k)
        outcome = bounds.outcomes[min(t, len(bounds.outcomes) - 1)]
        right = found == y_val
        wrong += np.count_nonzero(clear & (((outcome > 0) & ~right) | ((outcome < 0) & right)))
        compared += np.count_nonzero((outcome != 0) & clear)
        total += len(outcome)
        lower, upper = bounds.at(lam)
        wrong += not lower <= upper
        wrong += bool(clear.all() and not lower - 1e-12 <= np.mean(~right) <= upper + 1e-12)
    return compared, wrong, total


def votes(M, X, y, X_val, k):
    """Predictions under a metric, and which of them hang on no tie; from the definition, without any product."""
    M = np.diag(M) if M.ndim == 1 else M
    delta = X_val[:, None, :] - X
    dist = np.einsum("qij,jk,qik->qi", delta, M, delta, optimize=True)
    order = np.argsort(dist, axis=1, kind="stable")
    counts = (y[order[:, :k]][:, :, None] == np.arange(y.max() + 1)).sum(axis=1)
    last = order[:, k - 1]
    rows = np.arange(len(X_val))
    near = np.abs(dist - dist[rows, last][:, None]) <= 1e-9 * (dist.max(axis=1, keepdims=True) + 1e-300)
    return counts.argmax(axis=1), ~(near & (y != y[last][:, None])).any(axis=1)
