"""The pair engine: seconds and bytes of one evaluation (loss, gradient, dual, gap), next to one triplet at a time.

    python benchmarks/engine.py [startup] [data] [threads] [solve]

How they grow with n, d and k: `python benchmarks/run.py scaling`. Times are the best of several runs, side by side in
one process; only their ratios mean anything. Data sets of the paper are read from the folder TRISCREEN_DATA and left
out where they are missing.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np

import triscreen as ts
from triscreen._utils.threads import cpu_count, single_threaded_blas

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script

from benchmarks.datasets import Missing, load, subsample, synthetic
from benchmarks.solvers.per_triplet import PerTriplet


def best_of(function, seconds=1.0, at_least=3):
    """Best time of several calls, for about so many seconds."""
    best, begin, calls = np.inf, time.perf_counter(), 0
    while calls < at_least or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        function()
        best, calls = min(best, time.perf_counter() - start), calls + 1
    return best


def evaluation(problem, lam, M):
    """One evaluation as solvers do it: from a factor of M to loss, gradient, dual and gap."""
    core, _ = problem.to_core(M)
    factor = problem.cone.project(core).factor

    def call():
        with single_threaded_blas():
            return problem.evaluate(core, problem.distances(factor), lam, problem.loss.gamma)

    return call


def per_triplet(baseline, lam, M):
    """The straightforward evaluation: differences, margins and gradient triplet by triplet, O(d^2) each, in GEMMs."""

    def call():
        with single_threaded_blas():  # its blocks run side by side already
            return baseline.evaluate(M, lam)

    return call


def startup():
    print("\n## start-up")
    code = "import time; t = time.perf_counter(); import triscreen; print(time.perf_counter() - t)"
    seconds = min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5))
    print(f"import triscreen: {seconds:.2f} s")
    work = """
import time, numpy as np, triscreen as ts
import sklearn.metrics
rng = np.random.default_rng(0); X = rng.normal(size=(60, 3)); y = np.arange(60) % 2; X += 2 * y[:, None]
t = time.perf_counter()
lists = ts.knn_triplets(X, y, 3), ts.given_triplets(ts.knn_triplets(X, y, 3).indices(), np.ones(540))
for T in (*lists, ts.all_triplets(X, y)):
    for cone in ("psd", "diagonal"):
        p = ts.Problem(X, T, cone=cone)
        sol = ts.solve(p, 0.1 * p.lambda_max(), solver="newton")
        rule = "semidefinite" if T.lists_triplets else "sphere"
        if T.lists_triplets:
            p.certificate(sol.M, sol.lam, np.ones(p.triplets.n_triplets)); p.norms
            ts.solve(p, 0.1 * p.lambda_max(), solver="dual", tol=0.1)
        every = ts.Screening(("rrpb", "gb", "pgb", "cdgb", "mid"), rule=rule, every=2)
        ts.solve(p, 0.05 * p.lambda_max(), tol=1e-9, start=sol, screening=every)
        ts.solve_path(p, ratio=0.7, n_lambdas=8)
print(time.perf_counter() - t)
"""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache}
        cold, warm = (float(subprocess.check_output([sys.executable, "-c", work], env=environment)) for _ in "ab")
    print(f"every kernel, cold cache: {cold:.1f} s; from the cache: {warm:.1f} s")


def data():
    print("\n## one evaluation on real data (all threads), next to per-triplet numpy")
    print("data       triplets    pairs  points  dims   ms     per-triplet ms  ratio  ns/triplet  peak MB (numpy)")
    for name, k in (("segment", 20), ("satimage", 15), ("phishing", 7)):
        try:
            X, y = subsample(*load(name))
        except Missing as error:
            print(error)
            continue
        T = ts.knn_triplets(X, y, k)
        problem = ts.Problem(X, T)
        lam = 1e-3 * problem.lambda_max()
        M = ts.solve(problem, lam, tol=1e-3).M
        ours, theirs = evaluation(problem, lam, M), per_triplet(PerTriplet(X, T.indices(), 0.05), lam, M)
        assert abs(ours().primal / theirs().primal - 1) < 1e-10
        a, b = best_of(ours), best_of(theirs)
        tracemalloc.start()
        ours()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        theirs()
        peak_theirs = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(
            f"{name:8s} {T.n_triplets:10,d} {T.n_pairs:8,d} {len(X):7,d} {problem.points.shape[1]:5d}  {1e3 * a:6.2f} "
            f"{1e3 * b:11.1f} {b / a:10.0f}x {1e9 * a / T.n_triplets:9.2f}     {peak / 1e6:6.1f} "
            f"({peak_theirs / 1e6:.0f})"
        )
    print("\n## bytes")
    X, y = synthetic(2000, 10)
    few, many = ts.knn_triplets(X, y, 10), ts.knn_triplets(X, y, 20)
    per_pair = (many.nbytes - few.nbytes) / (many.n_pairs - few.n_pairs)
    print(f"nearest-k set: {per_pair:.0f} per pair, 0 per triplet, {few.nbytes / 2000 - 12 * 20:.0f} per point")
    indices = many.indices()
    given, half = ts.given_triplets(indices), ts.given_triplets(indices[::2])
    print(
        f"given set:     {(given.nbytes - half.nbytes - 12 * (given.n_pairs - half.n_pairs)) / (len(indices) / 2):.0f} "
        "per triplet (16 with weights), 12 per pair"
    )
    print("an evaluation: 16 per pair (distance, weight), 8 d per point (points) + 8 rank(M) per point (embedded)")
    print(f"norms |H|:     {ts.Problem(X, many).norms.nbytes / many.n_triplets:.0f} per triplet, once they are needed")
    print(f"peak of this process so far: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def burn(stop):
    while not stop.is_set():
        sum(range(10_000))


def _segment():
    try:
        return load("segment")
    except Missing:
        return synthetic(2310, 19)


def threads():
    cores = cpu_count()
    print(f"\n## threads ({cores} cores): seconds of one solve, median of 15, one thread next to all")
    for name, X, y, k in (
        ("2,310 x 19, k=20", *_segment(), 20),
        ("20,000 x 50, k=10", *synthetic(20_000, 50), 10),
    ):
        T = ts.knn_triplets(X, y, k)
        lam = 1e-3 * ts.Problem(X, T).lambda_max()

        def both(T=T, X=X, lam=lam):
            seconds = np.empty((15, 2))
            for turn in range(len(seconds)):
                for which, jobs in enumerate((1, None)):
                    problem = ts.Problem(X, T, n_jobs=jobs)  # a new one: it has not yet seen how busy the machine is
                    start = time.perf_counter()
                    ts.solve(problem, lam)
                    seconds[turn, which] = time.perf_counter() - start
            return np.median(seconds, axis=0)

        one, every = both()
        print(f"{name}, idle: {one:.3f} and {every:.3f}: {one / every:.2f} times faster with threads")
        stop = multiprocessing.Event()
        burners = [multiprocessing.Process(target=burn, args=(stop,), daemon=True) for _ in range(cores)]
        for burner in burners:
            burner.start()
        time.sleep(1)
        one, every = both()
        stop.set()
        for burner in burners:
            burner.join()
        print(f"{name}, all cores busy: {one:.3f} and {every:.3f}: {every / one:.2f} of the time of one thread")


def solve():
    print("\n## ts.solve on segment (k=20, 90 %), from M = 0")
    try:
        X, y = subsample(*load("segment"))
    except Missing as error:
        print(error)
        return
    problem = ts.Problem(X, ts.knn_triplets(X, y, 20))
    top = problem.lambda_max()
    print(f"lambda_max {top:.3g}")
    for ratio in (1e-1, 1e-3, 1e-5):
        for tol in (1e-6, 1e-10):
            sol = ts.solve(problem, ratio * top, tol=tol)
            print(
                f"lambda_max * {ratio:.0e}: relative gap {sol.rel_gap:.1e} (tol {tol:.0e}), {sol.n_iter} iterations, "
                f"{sol.passes:.1f} passes, {sol.seconds:.2f} s"
            )


if __name__ == "__main__":
    parts = {f.__name__: f for f in (startup, data, threads, solve)}
    for wanted in sys.argv[1:] or parts:
        parts[wanted]()
