"""A handful of paths and fits on one thread, in a minute: seconds, passes, and what a path costs beyond its passes.

Seconds are those of the processor, which other work on the machine disturbs less than those of the clock.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

import triscreen as ts
from benchmarks import datasets
from benchmarks.cells.common import setting
from triscreen._utils.threads import single_threaded_blas

PATHS = {"iris": {}, "wine": {}, "digits": {"n_lambdas": 50}, "segment": {}}
FITS = {"TripletMetric wine": ts.TripletMetric, "TripletMetricCV wine": ts.TripletMetricCV}
SECONDS = 6.0  # that each case is repeated for


def in_turns(works, seconds=0.0, at_least=3, clock=time.process_time):
    """Call some functions in turns, for about so many seconds; return the best time of each."""
    best, begin, turns = np.full(len(works), np.inf), clock(), 0
    while turns < at_least or clock() - begin < seconds:
        for number, work in enumerate(works):
            start = clock()
            work()
            best[number] = min(best[number], clock() - start)
        turns += 1
    return best


def one_pass(problem, path):
    """Return what evaluates all triplets once, at the middle of a path: distances, sweep, assemble, project."""
    lam, M = path.lambdas[len(path) // 2], path.M(len(path) // 2)
    core, _ = problem.to_core(M)
    factor = problem.cone.project(core).factor

    def evaluate():
        with single_threaded_blas():
            problem.evaluate(core, problem.distances(factor), lam, problem.loss.gamma)

    return evaluate


def paths_of(problem, ways, seconds=0.0, at_least=3, clock=time.process_time):
    """Measure paths with these arguments and one pass in turns; return the path and the numbers of each.

    overhead: the seconds of the path over (its passes x the seconds of one over all triplets).
    """
    made = [ts.solve_path(problem, **arguments) for arguments in ways]  # loads kernels, too
    works = [lambda arguments=arguments: ts.solve_path(problem, **arguments) for arguments in ways]
    best = in_turns([*works, *[one_pass(problem, made[0])] * 5], seconds, at_least, clock)
    each, passes = best[len(works) :].min(), [path.passes.sum() for path in made]
    return [
        (path, {"seconds": float(took), "passes": float(count), "pass": float(each),
                "overhead": float(took / (count * each))})
        for path, took, count in zip(made, best[: len(works)], passes, strict=True)
    ]  # fmt: skip


def measure(context):
    """Return the numbers of every case whose data are there."""
    found = {}
    for name, arguments in PATHS.items():
        try:
            problem = setting(context, name, 0, threads=1).problem
        except datasets.Missing:
            continue
        ((_, numbers),) = paths_of(problem, [arguments], SECONDS)
        found[f"path {name}"] = {key: round(numbers[key], 4) for key in ("seconds", "passes", "overhead")}
    X, y = datasets.load("wine")
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for name, kind in FITS.items():
            kind(n_jobs=1).fit(X, y)
            best = in_turns([lambda kind=kind: kind(n_jobs=1).fit(X, y)], SECONDS)
            found[name] = {"seconds": round(float(best[0]), 4)}
    return {"measured": found}
