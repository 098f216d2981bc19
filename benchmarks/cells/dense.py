"""A path by `ts.solve_path`: the paper's active set with screening on top of it, or our own choice."""

from __future__ import annotations

import time
import warnings

import triscreen as ts
from benchmarks.cells.common import grade, graded, rounded, setting
from benchmarks.solvers.triscreen import DENSE


def measure(context, data, case, seed, ratio=0.99, length=None, k="paper", points=None, cone=None, repeats=1):
    """Return totals of a path; a path that took too long says how far it came."""
    made = setting(context, data, seed, k, points=points, cone=cone)
    lambdas = made.lambdas(data, ratio, length)
    options, best = DENSE[case], None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.ConvergenceWarning)
        ts.solve_path(made.problem, lambdas[:6], **options)  # warm
        for _ in range(repeats):
            begin = time.perf_counter()
            left = max(context.until - begin, 1.0)
            path = ts.solve_path(made.problem, lambdas, max_seconds=left, **options)
            seconds = time.perf_counter() - begin
            best = seconds if best is None else min(best, seconds)
    metrics = [(path.M(t), path.lambdas[t], path.gaps[t]) for t in sorted(graded(len(path)))]
    return {
        **made.facts,
        "cut": len(path) < len(lambdas),
        "wanted": len(lambdas),
        "lambdas": len(path),
        "lambda_first": float(path.lambdas[0]),
        "lambda_last": float(path.lambdas[-1]),
        "seconds": best,
        "seconds_each": rounded(path.seconds, 6),
        "passes": float(path.passes.sum()),
        "n_iter": int(path.n_iter.sum()),
        "decided": float(path.screening_rates.mean()),
        "converged": int(path.converged.sum()),
        **grade(made, metrics),
    }
