"""How soon long work ends: Ctrl-C and max_seconds at random moments of steps that take long.

    python tests/solvers/attack_interrupts.py [rounds]      five minutes for 6 rounds; prints the latest answers

One eigendecomposition is the atom: it is never interrupted, and takes 0.1 s for 500 features, a second for 1,500. The
seconds are what this machine had to offer; nothing here is a test that could fail on a busy one, but for results that
are missing or false.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings

import numpy as np

import triscreen as ts
from triscreen._utils.threads import Threads
from triscreen.triplets.knn import nearest


def blobs(n, d, seed=0, classes=5):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    return rng.normal(size=(n, d)) + 1.2 * rng.normal(size=(classes, d))[y], y


def problem_of(n, d, k, loss=None, seed=0, make=None):
    X, y = blobs(n, d, seed)
    return ts.Problem(X, ts.knn_triplets(X, y, k) if make is None else make(X, y), loss=loss)


def tasks():
    """Name, and a function of max_seconds (None: no limit) that takes far longer than a second."""
    semidefinite = ts.Screening("gb", rule="semidefinite", every=1)
    positive = ts.Screening("pgb", rule="semidefinite", every=1)
    a = problem_of(3000, 30, 10)
    yield "semidefinite rule, eigendecompositions", lambda s: ts.solve(a, lam(a), tol=1e-12, screening=semidefinite,
                                                                       max_seconds=s)  # fmt: skip
    yield "semidefinite rule, secular equation", lambda s: ts.solve(a, lam(a), tol=1e-12, screening=positive,
                                                                    max_seconds=s)  # fmt: skip
    b = problem_of(3000, 300, 10)
    yield "newton, 300 features", lambda s: ts.solve(b, lam(b), tol=1e-13, solver="newton", max_seconds=s)
    c = problem_of(20000, 40, 20, ts.Hinge())
    yield "hinge, 8 million triplets", lambda s: ts.solve(c, lam(c), tol=1e-12, max_seconds=s)
    yield "path of the hinge", lambda s: ts.solve_path(c, tol=1e-9, max_seconds=s)
    d = problem_of(12000, 40, None, make=ts.all_triplets)
    yield "all triplets of 12,000 points", lambda s: ts.solve(d, 1e-9, tol=1e-13, max_seconds=s)
    X, y = blobs(150000, 60)
    yield "neighbours of 150,000 points", lambda s: nearest(X, y, 20, Threads())
    Z, z = blobs(3000, 9000)
    yield "neighbours in 9,000 dimensions", lambda s: [nearest(Z, z, 20, Threads()) for _ in range(20)]
    yield "estimator, 150,000 points", lambda s: ts.TripletMetric(20, max_seconds=s).fit(X, y)
    yield "cross-validation, 150,000 points", lambda s: ts.TripletMetricCV(20, max_seconds=s).fit(X, y)


def lam(problem):
    return 1e-4 * problem.lambda_max()


def attack(work, after, by_signal):
    """Return (seconds from the signal or the deadline to the answer, what it was)."""
    wanted = time.perf_counter() + after
    if by_signal:
        threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        result = work(None if by_signal else after)
    except ts.Interrupted as err:
        result = err.result
    except (KeyboardInterrupt, ts.OutOfTime) as err:
        result = err
    late = time.perf_counter() - wanted
    if by_signal and late < 0:
        try:
            time.sleep(1 - late)  # it was done before the signal came
        except KeyboardInterrupt:
            return 0.0, "done before"
    return late, result


def main(rounds):
    rng, failed = np.random.default_rng(0), False
    warnings.simplefilter("ignore")
    for name, work in tasks():
        for by_signal in (True, False):
            if not by_signal and name.startswith("neighbours"):
                continue  # no limit of its own: that of an estimator is tried below
            lates, kinds = [], set()
            for _ in range(rounds):
                late, result = attack(work, float(rng.uniform(0.3, 3)), by_signal)
                lates.append(late)
                kinds.add(getattr(result, "stopped_by", None) or type(result).__name__)
                failed |= by_signal and name.startswith(("newton", "hinge")) and isinstance(result, KeyboardInterrupt)
            how = "Ctrl-C" if by_signal else "max_seconds"
            print(
                f"{name:42s} {how:12s} latest {max(lates):6.2f} s, median {np.median(lates):5.2f}  {kinds}", flush=True
            )
    return failed


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 6))
