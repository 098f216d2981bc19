"""Data for benchmarks: the paper's sets from the folder TRISCREEN_DATA, and synthetic ones of any size."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np


def scaled(X):
    """Scale each feature to [-1, 1]; constant ones to 0 (LIBSVM's scaling)."""
    low, high = X.min(axis=0), X.max(axis=0)
    return np.where(high > low, 2 * (X - low) / np.where(high > low, high - low, 1) - 1, 0.0)


def load(name):
    """Return (X, y) of a data set of the paper, prepared as there, or None if its file is not there."""
    folder = os.environ.get("TRISCREEN_DATA")
    file = Path(folder) / f"{name}.npz" if folder else None
    if file is None or not file.exists():
        return None
    with np.load(file) as data:
        if "indptr" in data:
            from scipy.sparse import csr_matrix

            X = csr_matrix((data["data"], data["indices"], data["indptr"]), shape=data["shape"]).toarray()
        else:
            X = data["X"]
        X, y = X.astype(float), data["y"]
    return (scaled(X) if name in ("segment", "satimage") else X), y


def subsample(X, y, share=0.9, seed=0):
    """A random share of the points, in their order."""
    rows = np.sort(np.random.default_rng(seed).permutation(len(X))[: int(share * len(X))])
    return X[rows], y[rows]


def synthetic(n, d, classes=5, seed=0):
    """Overlapping Gaussian classes with some structure in every direction."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    return rng.normal(size=(n, d)) + 2.0 * rng.normal(size=(classes, d))[y] / np.sqrt(d) * 2, y
