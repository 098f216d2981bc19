"""Paths: passes and seconds, with each thing that saves work switched on and off, in one run.

    python benchmarks/path.py [coarse] [digits] [dense] [large] [guarantee] [checkpoint]

coarse: ratio 0.9 on segment and phishing, every switch; digits: down to lambda 0.05; dense: ratio 0.99 on the same;
large: complete 0.99 paths of satimage, a9a, mnist and cifar10. Data sets of the paper are read from the folder
TRISCREEN_DATA; what is missing is skipped. One pass: distances and gradient of every pair once.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import triscreen as ts
from triscreen.path.api import AUTO

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script

from benchmarks.cells.common import Context, setting
from benchmarks.datasets import DATA, Missing

START = {"segment": 2.5e6, "phishing": 5e3}
LENGTH = {"segment": 127, "phishing": 96}  # at ratio 0.9


def problem_of(name):
    try:
        return setting(Context(), name, seed=0).problem
    except Missing as error:
        print(f"{error}: skipped")
        return None


def range_of(name):
    """The paper's table: lambda_max and lambda_min."""
    paper = DATA[name].paper
    return f"{paper.lambda_max:.3g} to {paper.lambda_min:.3g}"


def measured(problem, repeats=1, **arguments):
    """Return (the path, best seconds of several runs)."""
    best = np.inf
    for _ in range(repeats):
        begin = time.perf_counter()
        path = ts.solve_path(problem, **arguments)
        best = min(best, time.perf_counter() - begin)
    return path, best


def line(name, path, seconds, against=None):
    ratio = "" if against is None else f"  {against / seconds:5.2f}x"
    print(
        f"  {name:26s} {len(path):5d} lambdas {path.passes.sum():8.1f} passes ({path.passes.mean():6.3f} each) "
        f"{path.n_iter.sum():6d} iterations {seconds:7.2f} s{ratio}   decided {path.screening_rates.mean():6.1%} "
        f"scanned {path.scanned.mean():5.2f}   worst gap {path.rel_gaps.max():.1e}",
        flush=True,
    )


def switches():
    quiet = {"ranges": False, "active_set": False}
    return {
        'plain: "bb", none': {"solver": "bb", "screening": None},
        "auto": {},
        '"bb"': {"solver": "bb"},
        '"newton"': {"solver": "newton"},
        "auto solver, none": {"screening": None},
        "no dynamic screening": {"screening": ts.Screening("mid", every=10**6, at_start=False, ranges=False)},
        "with ranges": {"screening": ts.Screening("mid", every=30, at_start=False, ranges=True)},
        "ranges alone": {"screening": ts.Screening("mid", every=30, at_start=False, ranges=True, active_set=False)},
        "paper's active set": {
            "screening": ts.Screening("mid", every=30, at_start=False, ranges=False, active_set="loss")
        },
        "rrpb + mid every 10": {"screening": ts.Screening(("rrpb", "mid"), every=10, **quiet)},
        "mid every 30": {"screening": ts.Screening("mid", every=30, at_start=False, **quiet)},
    }


def coarse():
    print(f"\n## ratio 0.9, relative gap 1e-6; auto is {AUTO}; seconds: best of 3, ratio against plain")
    for name in ("segment", "phishing"):
        problem = problem_of(name)
        if problem is None:
            continue
        print(problem)
        lambdas = START[name] * 0.9 ** np.arange(LENGTH[name])
        ts.solve_path(problem, lambdas[:5])
        plain = None
        for what, arguments in switches().items():
            path, seconds = measured(problem, 3, lambdas=lambdas, **arguments)
            plain = plain or seconds
            line(what, path, seconds, plain)
        found = ts.solve_path(problem)
        print(
            f"  by itself: lambda {found.lambdas[0]:.3g} to {found.lambdas[-1]:.3g} ({found.stopped_by}); the paper: "
            + range_of(name)
        )


def digits():
    print("\n## digits (90 %, X/16, k = 10), from 1e4 down to 0.05 by 0.9")
    problem = problem_of("digits")
    print(problem)
    lambdas = 1e4 * 0.9 ** np.arange(117)
    lambdas = lambdas[lambdas > 0.05]
    for what, arguments in {"auto": {}, '"newton"': {"solver": "newton"}}.items():
        line(what, *measured(problem, lambdas=lambdas, **arguments))
    line('"bb" down to 10', *measured(problem, lambdas=lambdas[lambdas > 10], solver="bb"))
    line("auto down to 10", *measured(problem, lambdas=lambdas[lambdas > 10]))


def dense():
    print("\n## ratio 0.99, relative gap 1e-6")
    for name in ("segment", "phishing"):
        problem = problem_of(name)
        if problem is None:
            continue
        print(problem)
        lambdas = START[name] * 0.99 ** np.arange(int(LENGTH[name] * np.log(0.9) / np.log(0.99)))
        ts.solve_path(problem, lambdas[:5])
        plain, seconds = measured(problem, lambdas=lambdas, solver="bb", screening=None)
        line('plain: "bb", none', plain, seconds)
        line("auto", *measured(problem, lambdas=lambdas), seconds)
        ranges = ts.Screening("mid", every=30, at_start=False, ranges=True, active_set=False)
        line("ranges alone", *measured(problem, lambdas=lambdas, screening=ranges), seconds)


def large():
    print("\n## complete paths by themselves, ratio 0.99, relative gap 1e-6")
    for name in ("satimage", "a9a", "mnist", "cifar10"):
        begin = time.perf_counter()
        problem = problem_of(name)
        if problem is None:
            continue
        print(f"{name}: {problem}, set up in {time.perf_counter() - begin:.1f} s", flush=True)
        path, seconds = measured(problem, ratio=0.99)
        line("auto", path, seconds)
        paper = f"; the paper: {range_of(name)}" if DATA[name].same else ""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"  lambda {path.lambdas[0]:.3g} to {path.lambdas[-1]:.3g} ({path.stopped_by}){paper}; converged "
            f"{path.converged.mean():.1%}; peak memory of the process {peak:.0f} MB",
            flush=True,
        )


def guarantee():
    print("\n## guarantee: how many lambdas until the loss settles")
    problem = problem_of("segment") or problem_of("digits")
    for eps in (0.1, 0.03, 0.01, 3e-3):
        path, seconds = measured(problem, guarantee=eps, tol=min(1e-4, eps / 10))
        worst = max(path.at(lam).rel_gap for lam in np.geomspace(path.lambdas[-1], path.lambdas[0], 2000))
        print(
            f"  guarantee {eps:6g}: {len(path):5d} lambdas, {path.passes.sum():7.1f} passes, {seconds:6.2f} s, "
            f"worst of 2,000 lambdas in between {worst:.2e}"
        )


def checkpoint():
    print("\n## what a checkpoint costs")
    problem = problem_of("segment") or problem_of("digits")
    path, seconds = measured(problem, 3)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        ts.solve_path(problem, checkpoint=folder + "/a")
        kept = time.perf_counter() - begin
        begin = time.perf_counter()
        again = ts.solve_path(problem, checkpoint=folder + "/a")
        print(
            f"  {len(path)} lambdas: {seconds:.2f} s without, {kept:.2f} s with; taking up a finished one "
            f"{time.perf_counter() - begin:.2f} s; same bits: {bool((again.gaps == path.gaps).all())}"
        )


PARTS = (coarse, digits, dense, large, guarantee, checkpoint)

if __name__ == "__main__":
    wanted = sys.argv[1:] or [part.__name__ for part in PARTS]
    for part in PARTS:
        if part.__name__ in wanted:
            part()
