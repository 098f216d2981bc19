"""A complete path as users ask for it, with the default screening and without any, in turns."""

from __future__ import annotations

import time

from benchmarks.cells.common import grade, graded, setting
from benchmarks.cells.speed import paths_of

WAYS = {"default": {}, "none": {"screening": None}}


def measure(context, data, seed, ratio=0.9, k="paper", n_lambdas=None):
    """Return the seconds, passes and overhead of both, all threads, the better of two turns."""
    made = setting(context, data, seed, k)
    ways = [{"ratio": ratio, "n_lambdas": n_lambdas, **more} for more in WAYS.values()]
    found = paths_of(made.problem, ways, at_least=2, clock=time.perf_counter)
    return {
        **made.facts,
        "cut": False,
        "ways": {
            way: {**numbers, "lambdas": len(path), "worst_gap": float(path.rel_gaps.max()), **_graded(made, path)}
            for way, (path, numbers) in zip(WAYS, found, strict=True)
        },
    }


def _graded(made, path):
    return grade(made, [(path.M(t), path.lambdas[t], path.gaps[t]) for t in sorted(graded(len(path)))])
