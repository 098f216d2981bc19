"""The validation error of every lambda: how much of it is decided, and what that takes beside the path.

    python benchmarks/selection.py [--data NAME ...] [--ratio R ...]

A tenth of the points is held out; three neighbours vote. Seconds are the processor's, one thread. Data sets of the
paper are read from the folder TRISCREEN_DATA; what is missing is skipped.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import triscreen as ts

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script

from benchmarks.datasets import DATA, Missing, load

NAMES = ("wine", "segment", "satimage")


def held_out(name, seed=0):
    X, y = load(name)[:2]
    order = np.random.default_rng(seed).permutation(len(X))
    known, asking = np.split(order, [int(0.9 * len(X))])
    return X[known], y[known], X[asking], y[asking]


def timed(work):
    begin = time.process_time()
    found = work()
    return found, time.process_time() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=NAMES, choices=list(DATA), metavar="NAME")
    parser.add_argument("--ratio", nargs="+", type=float, default=(0.9, 0.99), metavar="R")
    wanted = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        f"{'':10s} {'ratio':>5s} {'lambdas':>7s} {'path, s':>8s} {'bounds, s':>9s} {'decided':>8s} {'best error':>16s}"
    )
    for name in wanted.data:
        try:
            X, y, X_val, y_val = held_out(name)
        except Missing as error:
            print(f"{error}: skipped")
            continue
        problem = ts.Problem(X, ts.knn_triplets(X, y, DATA[name].k), n_jobs=1)
        for ratio in wanted.ratio:
            path, seconds = timed(lambda ratio=ratio, problem=problem: ts.solve_path(problem, ratio=ratio))
            data = X, y, X_val, y_val
            ts.validation_bounds(path.take([0]), *data, problem=problem)  # loads kernels
            bounds, more = timed(lambda path=path, data=data: ts.validation_bounds(path, *data))
            best = f"{bounds.lower.min():.4f} to {bounds.upper.min():.4f}"
            decided = (bounds.outcomes != 0).mean()
            print(
                f"{name:10s} {ratio:5g} {len(path):7d} {seconds:8.2f} {more:9.2f} {decided:8.1%} {best:>16s}",
                flush=True,
            )


if __name__ == "__main__":
    main()
