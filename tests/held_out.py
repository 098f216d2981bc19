"""Problems with held-out points, and their predictions one by one."""

from __future__ import annotations

import numpy as np

import triscreen as ts


def some_data(seed):
    """Points with held-out ones, of any kind: ties, copies, grids, features that repeat, several classes."""
    rng = np.random.default_rng(seed)
    n, m, d = int(rng.integers(20, 60)), int(rng.integers(5, 25)), int(rng.integers(1, 5))
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


def votes(M, X, y, X_val, k):
    """Predictions under a metric, and by how much they hang on ties: slowly, one by one."""
    M = np.diag(M) if M.ndim == 1 else M
    found, clear = [], []
    for x in X_val:
        delta = X - x
        dist = np.einsum("ij,jk,ik->i", delta, M, delta)
        order = np.argsort(dist, kind="stable")
        counts = np.bincount(y[order[:k]], minlength=y.max() + 1)
        found.append(int(counts.argmax()))
        edge = dist[order[k - 1]]
        others = np.delete(np.arange(len(X)), order[k - 1])
        same = [t for t in others if abs(dist[t] - edge) <= 1e-9 * (dist.max() + 1e-300)]
        clear.append(not any(y[t] != y[order[k - 1]] for t in same))
    return np.array(found), np.array(clear)
