"""The same problem without Dask, and in shards on one and on two worker processes of one thread each."""

from __future__ import annotations

import contextlib
import io
import time

import numpy as np

import triscreen as ts
from benchmarks.datasets import Missing

LAMBDA, TOL = 0.01, 1e-4


def measure(context, n, d, k, repeats=5):
    """Return seconds of a pass, of a lambda (from nothing, relative gap 1e-4), and of a round of idle tasks."""
    try:
        from benchmarks import distributed as shards
    except ImportError as error:
        raise Missing(f"Dask is not installed ({error})", "kind") from None
    X, y = shards.points_of(n, d)
    _work(ts.Problem(X[:500], ts.knn_triplets(X[:500], y[:500], k), n_jobs=1), 1)  # loads kernels
    found = {}
    for workers in (0, 1, 2):
        with shards.cluster_of(workers) if workers else contextlib.nullcontext() as client:
            begin = time.perf_counter()
            if workers:
                problem = ts.distributed.problem(client, X, y, k=k)
            else:
                problem = ts.Problem(X, ts.knn_triplets(X, y, k), n_jobs=1)
            made = time.perf_counter() - begin
            found[str(workers)] = {"setup": made, **_work(problem, repeats)}
            if workers == 2:
                with contextlib.redirect_stdout(io.StringIO()):
                    rounds = [[*key, seconds] for key, seconds in shards.rounds(client).items()]
    return {"cut": False, "n": n, "d": d, "k": k, "triplets": problem.triplets.n_triplets,
            "pairs": problem.triplets.n_pairs, "workers": found, "rounds": rounds}  # fmt: skip


def _work(problem, repeats):
    scales, dim = iter(range(1, 1000)), problem.n_features

    def a_pass():
        problem.value((1 + 0.01 * next(scales)) * 0.01 * np.eye(dim), 1.0)  # what was asked last is known

    lam = LAMBDA * problem.lambda_max()
    return {
        "pass": _seconds(a_pass, repeats),
        "solve": _seconds(lambda: ts.solve(problem, lam, tol=TOL), max(1, repeats // 2)),
    }


def _seconds(work, repeats):
    """Return the seconds of some calls, after a first one."""
    work()
    spent = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        spent.append(time.perf_counter() - begin)
    return spent
