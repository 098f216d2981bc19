"""Rigorous proofs of whole paths: every lambda of one on wine, every tenth of one on segment (`make verify-demo`).

    python benchmarks/verify.py

Both with the paper's settings: features in [-1, 1], the 20 nearest of each kind, lambdas by 0.9, relative gaps of 1e-6.
Without TRISCREEN_DATA, the folder that holds segment.npz, there is wine only.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_wine

import triscreen as ts
from triscreen.verification import check_neighbours


def scaled(X):
    """Return features in [-1, 1]; constant ones are 0."""
    low, high = X.min(axis=0), X.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    return np.where(high > low, 2 * (X - low) / width - 1, 0.0)


def prove(name, X, y, every, k=20):
    """Solve a path, verify it, and tell; return how many of its metrics are not proven."""
    T = ts.knn_triplets(X, y, k=k)
    path = ts.solve_path(ts.Problem(X, T))
    begin = time.perf_counter()
    found = check_neighbours(X, y, T, k, k)
    searched = time.perf_counter() - begin
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.ConvergenceWarning)
        proofs = path.verify(every=every)
    seconds = time.perf_counter() - begin - searched
    missed = sum(not proof.rel_gap <= path.tol for proof in proofs)
    more = sum(proof.gap_low > path[t * every].gap + path[t * every].rounding for t, proof in enumerate(proofs))
    print(f"{name}: {T.n_triplets:,} triplets, {len(path)} lambdas solved in {path.seconds.sum():.2g} s")
    print(
        f"  {len(proofs)} verified in {seconds:.2g} s, {len(proofs) - missed} proven to have a relative gap of at most "
        f"{path.tol:g}; the largest {max(proof.rel_gap for proof in proofs):.4g}, {more} above what was claimed\n"
        f"  neighbours of {found.anchors} anchors in {searched:.2g} s, {found.exact} searches by exact arithmetic",
        flush=True,
    )
    return missed + more


def main():
    """Prove both paths."""
    wine = load_wine()
    missed = prove("wine, every lambda", scaled(wine.data), wine.target, 1)
    file = Path(os.environ.get("TRISCREEN_DATA", "")) / "segment.npz"
    if not file.is_file():
        print("segment: TRISCREEN_DATA names no folder with segment.npz")
        return missed
    with np.load(file) as data:
        return missed + prove("segment, every tenth", scaled(data["X"].astype(float)), data["y"], 10)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
