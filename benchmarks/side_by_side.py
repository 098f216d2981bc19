"""Two checkouts next to each other, in turns, best of several: is anything slower than it was?

    python benchmarks/side_by_side.py OLD NEW [--turns 5] [--threads 1] [--list] [case ...]

OLD and NEW are folders of checkouts. Each has a process of its own that stays; they take turns case by case, so that
what else the machine does hits both. Printed are the best seconds and the best seconds of processor time of each, and
their ratios (above 1: NEW is faster). Passes must be the same where no algorithm changed. Cases are named as --list
does, or by patterns ("path * 0.99*"); without any, those that take seconds. Data sets of the paper are read from the
folder TRISCREEN_DATA; a case whose data are missing says so.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import subprocess
import sys
import time
import warnings
from fnmatch import fnmatchcase
from pathlib import Path

SETS = ("iris", "wine", "segment", "satimage", "phishing", "a9a")
# Named only by their names: minutes each.
LONG = ("path * 0.99*", "path satimage,*", "path phishing,*", "path a9a*", "solve mnist*", "solve 2,000 x 1,024")


def cases(threads):
    """Name -> function that sets up and returns (the work to time, a number that should not change)."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

    import triscreen as ts

    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from benchmarks.datasets import load, raw, synthetic, table

    def scaled(X):
        spread = np.ptp(X, axis=0)
        return 2 * (X - X.min(axis=0)) / np.where(spread > 0, spread, 1) - 1

    def embedded(loader, k, points=None):
        X, y = loader(return_X_y=True)
        return scaled(X[:points]), y[:points], k

    def read(name, k, points=None):
        X, y = load(name)[:2]
        X = X.toarray() if hasattr(X, "toarray") else np.asarray(X, dtype=float)
        rows = np.random.default_rng(0).permutation(len(X))[:points]
        return X[rows], y[rows], k

    def pixels(points, k):
        X, y = raw("mnist")
        return X[:points] / 255, y[:points], k

    sets = {
        "iris": lambda: embedded(load_iris, None),
        "wine": lambda: embedded(load_wine, None),
        "digits": lambda: embedded(load_digits, 5),
        "cancer": lambda: embedded(load_breast_cancer, 5),
        "sonar": lambda: (*table("sonar")[:2], 5),
        "segment": lambda: read("segment", 20),
        "satimage": lambda: read("satimage", 15),
        "phishing": lambda: read("phishing", 7),
        "a9a": lambda: read("a9a", 5),
        "mnist": lambda: pixels(20_000, 5),
        "synthetic": lambda: (*synthetic(2000, 1024), 5),
    }
    ways = {
        "": {},
        ", no screening": {"screening": None},
        ", paper's walk": {
            "screening": ts.Screening(("rrpb", "pgb"), every=10, rule="sphere", ranges=False, active_set=False)
        },
    }

    @functools.lru_cache(maxsize=1)  # cases that follow each other share it
    def problem(name, make=None):
        X, y, k = sets[name]()
        T = ts.knn_triplets(X, y, k, n_jobs=threads) if make is None else make(X, y)
        return ts.Problem(X, T, n_jobs=threads)

    def path(name, **more):
        def setup():
            made = problem(name)
            return lambda: float(ts.solve_path(made, tol=1e-6, **more).passes.sum())

        return setup

    def solution(name, ratio, make=None, **more):
        def setup():
            made = problem(name, make)
            lam = ratio * made.lambda_max()
            return lambda: ts.solve(made, lam, **more).passes

        return setup

    def evaluation(name, make=None):
        def setup():
            made = problem(name, make)
            M = ts.solve(made, 0.01 * made.lambda_max(), tol=0.1).M
            return lambda: float(made.certificate(M, 1.0).primal)

        return setup

    def fit(name, make):
        def setup():
            X, y, _ = sets[name]()
            return lambda: float(make().fit(X, y).rel_gap_ <= 1e-3)

        return setup

    def fits(kind, names):
        return {f"{kind} {name}": fit(name, lambda: getattr(ts, kind)(n_jobs=threads)) for name in names}

    def all_triplets(X, y):
        return ts.all_triplets(X, y)

    return {
        **{f"path {name}{way}": path(name, **ways[way]) for name in SETS for way in ways},
        "path digits": path("digits"),
        "path segment, 300 dense lambdas": path("segment", ratio=0.99, n_lambdas=300),
        **{f"path {name} 0.99{way}": path(name, ratio=0.99, **ways[way]) for name in SETS for way in ways},
        "solve segment": solution("segment", 1e-3),
        "certificate segment": evaluation("segment"),
        "solve digits, all triplets": solution("digits", 1e-3, all_triplets),
        "certificate digits, all triplets": evaluation("digits", all_triplets),
        "solve mnist, 20,000 x 784": solution("mnist", 1e-2, tol=1e-3),
        "solve 2,000 x 1,024": solution("synthetic", 1e-1, tol=1e-2),  # the gap of the others takes minutes
        **fits("TripletMetric", ("wine", "sonar", "cancer", "digits", "segment")),
        **fits("TripletMetricCV", ("wine", "sonar", "cancer", "digits", "segment")),
    }


def is_long(name):
    return any(fnmatchcase(name, pattern) for pattern in LONG)


def serve(threads):
    """Answer names of cases, a line each, by what they took; the first time of a case warms up."""
    warnings.simplefilter("ignore")
    made, ready = cases(threads), {}
    for line in sys.stdin:
        name = line.strip()
        try:
            if name not in ready:
                ready.clear()
                ready[name] = made[name]()
                ready[name]()
            begin, used = time.perf_counter(), time.process_time()
            told = ready[name]()
            answer = [time.perf_counter() - begin, time.process_time() - used, told]
        except Exception as error:  # a case that one of the checkouts lacks is told, not hidden
            answer = [None, None, f"{type(error).__name__}: {error}"[:200]]
        print(json.dumps(answer), flush=True)


class Checkout:
    """One checkout's process."""

    def __init__(self, folder, threads):
        environment = {**os.environ, "PYTHONPATH": str(Path(folder).resolve() / "src")}
        command = [sys.executable, __file__, "--serve", "--threads", str(threads)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def run(self, name):
        """Return [seconds, seconds of processor time, number]."""
        print(name, file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args()
    if options.serve:
        return serve(options.threads)
    known = list(cases(1))
    if options.list:
        return print(*(f"{name}{' (long)' * is_long(name)}" for name in known), sep="\n")
    if len(options.folders) < 2:
        parser.error("name two folders of checkouts")
    old, new, *patterns = options.folders
    wanted = [name for name in known if any(fnmatchcase(name, pattern) for pattern in patterns)]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in known):
            parser.error(f"{pattern}: no case is called so; --list names them")
    both = [Checkout(folder, options.threads) for folder in (old, new)]
    print(f"{'':34s} {'old':>9s} {'new':>9s} {'ratio':>6s}   {'old cpu':>9s} {'new cpu':>9s} {'ratio':>6s}")
    for name in wanted or (name for name in known if not is_long(name)):
        seen = [[checkout.run(name) for checkout in both] for _ in range(options.turns)]
        failed = [str(answer[2]) for turn in seen for answer in turn if answer[0] is None]
        if failed:
            print(f"{name:34s} {failed[0]}")
            continue
        wall, cpu = ([min(turn[side][part] for turn in seen) for side in (0, 1)] for part in (0, 1))
        same = "" if seen[0][0][2] == seen[0][1][2] else f"   differ: {seen[0][0][2]:g} and {seen[0][1][2]:g}"
        times = [f"{1e3 * a:7.1f}ms {1e3 * b:7.1f}ms {a / b:6.2f}" for a, b in (wall, cpu)]
        print(f"{name:34s} {'   '.join(times)}{same}", flush=True)
    return None


if __name__ == "__main__":
    main()
