"""Time and memory against n, d, k and threads, on synthetic data; one process each, so the peak is its own."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import numpy as np

import triscreen as ts
from benchmarks.datasets import synthetic


def peak_megabytes(anew=False):
    """Peak of this process alone, from now on if anew: what getrusage tells begins with that of the parent process."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if anew:
        Path("/proc/self/clear_refs").write_text("5")  # the peak becomes what is in use now
    return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024


def measure(context, n, d, k, threads=None, triplets="nearest"):
    """Return seconds of set-up, one pass and one solve (lambda_max / 100, relative gap 1e-6), and peak bytes."""
    for size in (300, n):  # the first one loads kernels
        X, y = synthetic(size, d)
        before, begin = peak_megabytes(anew=True), time.perf_counter()
        T = ts.all_triplets(X, y) if triplets == "all" else ts.knn_triplets(X, y, k)
        problem = ts.Problem(X, T, n_jobs=threads)
        lam = 1e-2 * problem.lambda_max()
        setup, begin = time.perf_counter() - begin, time.perf_counter()
        sol = ts.solve(problem, lam, max_seconds=context.limit)
        solve = time.perf_counter() - begin
    passes = []
    for _ in range(5 if solve < 10 else 2):
        begin = time.perf_counter()
        problem.certificate(sol.M, lam)
        passes.append(time.perf_counter() - begin)
    return {
        "n": n, "d": d, "k": k, "cut": not sol.converged, "triplets": T.n_triplets, "pairs": T.n_pairs,
        "setup": setup, "solve": solve, "pass": float(np.min(passes)), "passes": sol.passes, "rel_gap": sol.rel_gap,
        "megabytes": peak_megabytes() - before, "estimated_megabytes": problem.estimate().bytes / 1e6,
    }  # fmt: skip
