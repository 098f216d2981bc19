"""Every kind of problem twice: plain, and in shards."""

from __future__ import annotations

import numpy as np

import triscreen as ts
from triscreen.triplets.labelled import labelled_triplets

KINDS = ("knn", "lmnn", "all", "given", "knn weighted", "all weighted", "given weighted")


def labelled(seed=0, n=120, d=5, classes=3):
    """Noisy classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return rng.normal(size=(n, d)) + 1.2 * rng.normal(size=(classes, d))[y], y


def noisy(seed=0, n=90):
    """Classes that two features tell apart and two large ones do not: there is something to learn."""
    X, y = labelled(seed, n, 2)
    return np.column_stack([3.0 * X, 6.0 * np.random.default_rng(seed).normal(size=(n, 2))]), y


def arguments(kind, X, y, k=3):
    """Return (the plain set, positional arguments after X, named arguments of the problem in shards)."""
    rng = np.random.default_rng(len(kind))
    name, weighted = kind.split()[0], kind.endswith("weighted")
    if name == "given":
        rows = ts.knn_triplets(X, y, k).indices()[::2]
        weights = rng.uniform(0.3, 3.0, len(rows)) if weighted else None
        return ts.given_triplets(rows, weights), (), {"comparisons": rows, "weights": weights}
    weights = rng.uniform(0.3, 3.0, len(X)) * (np.arange(len(X)) % 5 > 0) if weighted else None
    return labelled_triplets(X, y, name, k, weights), (y, name, k), {"weights": weights}


def both(kind, client=None, seed=0, n=48, d=4, n_shards=3, **more):
    """Return (the plain problem, the same in shards)."""
    X, y = labelled(seed, n, d)
    T, given, named = arguments(kind, X, y)
    return ts.Problem(X, T, **more), ts.distributed.problem(client, X, *given, n_shards=n_shards, **named, **more)
