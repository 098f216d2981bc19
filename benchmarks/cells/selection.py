"""What it takes to prove a lambda best: a path, bounds on the held-out error between its lambdas, a search.

A tenth of the points is held out, three neighbours vote, one thread; seconds of the processor.
"""

from __future__ import annotations

import time
import warnings

import numpy as np

import triscreen as ts
from benchmarks import datasets

LAMBDAS, DECADES = 18, 5


def measure(context, data, seed, eps=0.01, points=None, k=None):
    """Return seconds of path, bounds and search, what was decided, and what is proven in the end."""
    X, y = datasets.load(data, context.folder, context.fetch, points)
    order = np.random.default_rng(seed).permutation(len(X))
    known, asking = np.split(order, [int(0.9 * len(X))])
    parts = X[known], y[known], X[asking], y[asking]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes smaller than k
        problem = ts.Problem(parts[0], ts.knn_triplets(*parts[:2], k or datasets.DATA[data].k or 20), n_jobs=1)
        grid = problem.lambda_max() * np.geomspace(1, 10.0**-DECADES, LAMBDAS)
        ts.validation_bounds(ts.solve_path(problem, lambdas=grid[:3]), *parts)  # loads kernels
        context.start()
        path, solving = _timed(ts.solve_path, problem, lambdas=grid)
        bounds, bounding = _timed(ts.validation_bounds, path, *parts)
        found, searching = _timed(ts.select, path, bounds, eps, max_seconds=context.limit / 2)
    return {
        "n": len(known), "d": X.shape[1], "held_out": len(asking), "cut": found.gap > eps, "eps": eps,
        "decided": float((bounds.outcomes != 0).mean()), "error": float(found.error), "gap": float(found.gap),
        "solved": int(found.n_solved), "evaluated": int(found.n_evaluated),
        "path": solving, "bounds": bounding, "search": searching,
    }  # fmt: skip


def _timed(work, *arguments, **named):
    begin = time.process_time()
    return work(*arguments, **named), time.process_time() - begin
