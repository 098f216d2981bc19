"""Paths: passes and seconds, with each thing that saves work switched on and off, in one run.

    python benchmarks/path.py [coarse] [digits] [dense] [large] [guarantee] [checkpoint] [overhead] [bill]
                              [small] [--threads N] [--data NAME ...] [--ratio R ...] [--seconds S] [--problems 200]

coarse: ratio 0.9 on segment and phishing, every switch; digits: down to lambda 0.05; dense: ratio 0.99 on the same;
large: complete 0.99 paths of satimage, a9a, mnist and cifar10; overhead: what complete paths (of --data, at every
--ratio) cost beyond their passes, with the default screening and with none, in turns for --seconds; bill: what these
paths spend their time on, with one thread; small: default against none on iris, wine, digits (50 lambdas) and
--problems small random ones. Data sets of the paper are read from the folder TRISCREEN_DATA; what is missing is
skipped. One pass: distances and gradient of every pair once. With --threads 1 the seconds of overhead and small are the
processor's, otherwise the clock's. Two checkouts next to each other: side_by_side.py.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import triscreen as ts
from triscreen.path.api import AUTO

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script

from benchmarks.cells.common import Context, setting
from benchmarks.cells.speed import in_turns, paths_of
from benchmarks.datasets import DATA, Missing, synthetic

START = {"segment": 2.5e6, "phishing": 5e3}
LENGTH = {"segment": 127, "phishing": 96}  # at ratio 0.9
COMPLETE = ("iris", "wine", "segment", "phishing", "satimage", "a9a")


def problem_of(name, threads=None):
    try:
        return setting(Context(), name, seed=0, threads=threads).problem
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


def clock_of(threads):
    """One thread: seconds of the processor, which other work disturbs less."""
    return time.process_time if threads == 1 else time.perf_counter


def overhead(names=COMPLETE, ratios=(0.9, 0.99), threads=None, seconds=10.0):
    print(f"\n## complete paths, {threads or 'all'} thread(s): overhead = seconds / (passes x seconds of a pass)")
    print(
        f"{'':12s} {'ratio':>5s} {'screening':9s} {'lambdas':>7s} {'passes':>8s} {'seconds':>8s} {'a pass, ms':>10s} "
        f"{'overhead':>8s} {'none/this':>9s}"
    )
    for name in names:
        problem = problem_of(name, threads)
        if problem is None:
            continue
        for ratio in ratios:
            ways = {"default": {"ratio": ratio}, "none": {"ratio": ratio, "screening": None}}
            found = paths_of(problem, ways.values(), seconds, at_least=2, clock=clock_of(threads))
            none = found[-1][1]["seconds"]
            for way, (path, one) in zip(ways, found, strict=True):
                print(
                    f"{name:12s} {ratio:5g} {way:9s} {len(path):7d} {one['passes']:8.1f} {one['seconds']:8.3f} "
                    f"{1e3 * one['pass']:10.3f} {one['overhead']:8.2f} {none / one['seconds']:9.2f}",
                    flush=True,
                )


# What a path does in compiled code or a library, by the functions that do it.
WORK = {
    "distances": ("pair_distances", "pair_products"),
    "sweeps": ("sweep_blocks", "sweep_long_blocks", "hessian_blocks"),
    "rows": ("half_rows", "add_by_second", "laplacian_rows"),
    "products": ("task", "spread"),  # of points with a matrix, and of points with rows: nothing else in these functions
    "eigen": ("eigh",),
    "tubes": ("undecided_blocks", "narrow_blocks", "narrow_order", "strayed_weights"),
}


def bill(names=COMPLETE, ratios=(0.9, 0.99)):
    print("\n## where the milliseconds of complete paths go, one thread; rest: Python, numpy on small arrays")
    print(f"{'':12s} {'ratio':>5s} {'screening':9s} {'all':>7s}", *(f"{kind:>9s}" for kind in (*WORK, "rest")))
    for name in names:
        problem = problem_of(name, 1)
        if problem is None:
            continue
        for ratio in ratios:
            for way, more in {"default": {}, "none": {"screening": None}}.items():

                def work(ratio=ratio, more=more, problem=problem):
                    return ts.solve_path(problem, ratio=ratio, **more)

                (seconds,) = in_turns([work], at_least=3, clock=time.process_time)
                profile = cProfile.Profile(time.process_time)
                profile.runcall(work)
                own = dict.fromkeys(WORK, 0.0)
                for (_, _, function), (_, _, total, _, _) in pstats.Stats(profile).stats.items():
                    for kind, functions in WORK.items():
                        own[kind] += total if function in functions else 0.0
                parts = (*own.values(), seconds - sum(own.values()))
                print(
                    f"{name:12s} {ratio:5g} {way:9s} {1e3 * seconds:7.0f}",
                    *(f"{1e3 * part:9.0f}" for part in parts),
                    flush=True,
                )


def small_problems(count, seed=0):
    """Yield (what it is, X, y, k) of small random problems."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        n, d, classes = rng.integers(20, 151), rng.integers(2, 13), rng.integers(2, 5)
        k = (2, 3, 5, None)[rng.integers(4)]
        yield f"number {number}: {n} x {d}, {classes} classes, k = {k}", *synthetic(n, d, classes, seed=number), k


def small(threads=None, count=200):
    print("\n## small problems, ratio 0.9: seconds without screening / those of the default, best of 3 each, in turns")
    clock = clock_of(threads)

    def compared(problem, n_lambdas=None):
        ways = ({"n_lambdas": n_lambdas}, {"n_lambdas": n_lambdas, "screening": None})
        works = [lambda more=more: ts.solve_path(problem, **more) for more in ways]
        works[0]()  # loads kernels
        return in_turns(works, at_least=3, clock=clock)

    for name, n_lambdas in (("iris", None), ("wine", None), ("digits", 50)):
        default, none = compared(problem_of(name, threads), n_lambdas)
        print(f"{name:8s} default {default:.4f} s, none {none:.4f} s: {none / default:.2f}", flush=True)
    ratios, texts, totals = [], [], np.zeros(2)
    for text, X, y, k in small_problems(count):
        best = compared(ts.Problem(X, ts.knn_triplets(X, y, k), n_jobs=threads))
        totals += best
        ratios.append(best[1] / best[0])
        texts.append(f"{text}, default {1e3 * best[0]:.1f} ms")
    order = np.argsort(ratios)
    print(
        f"{len(ratios)} random problems: median {np.median(ratios):.2f}, worst {ratios[order[0]]:.2f}, best "
        f"{ratios[order[-1]]:.2f}; default slower on {np.mean(np.array(ratios) < 1):.0%}; all together default "
        f"{totals[0]:.2f} s, none {totals[1]:.2f} s"
    )
    for t in order[:5]:
        print(f"  {ratios[t]:.2f}  {texts[t]}")


PARTS = (coarse, digits, dense, large, guarantee, checkpoint, overhead, bill, small)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", choices=[[], *(part.__name__ for part in PARTS)])
    parser.add_argument("--threads", type=int, help="of overhead and small; all by default")
    parser.add_argument(
        "--data", nargs="+", default=COMPLETE, choices=list(DATA), metavar="NAME", help="of overhead, bill"
    )
    parser.add_argument("--ratio", nargs="+", type=float, default=(0.9, 0.99), metavar="R", help="of overhead, bill")
    parser.add_argument("--seconds", type=float, default=10.0, help="of overhead: how long each is repeated")
    parser.add_argument("--problems", type=int, default=200, help="of small: how many random ones")
    wanted = parser.parse_args()
    more = {
        overhead: (wanted.data, wanted.ratio, wanted.threads, wanted.seconds),
        bill: (wanted.data, wanted.ratio),
        small: (wanted.threads, wanted.problems),
    }
    warnings.simplefilter("ignore")  # classes smaller than k, lambdas at the edge of rounding
    for part in PARTS:
        if part.__name__ in (wanted.parts or [part.__name__ for part in PARTS]):
            part(*more.get(part, ()))


if __name__ == "__main__":
    main()
