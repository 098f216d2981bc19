"""Screening: what each sphere and rule decides, what it costs, and what it saves.

    python benchmarks/screening.py [rules] [semidefinite] [work]

Data sets of the paper are read from the folder TRISCREEN_DATA; synthetic data stands in where they are missing.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import triscreen as ts
from triscreen._utils.threads import single_threaded_blas
from triscreen.screening import rules
from triscreen.screening.by_triplet import Screener

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script

from benchmarks.datasets import Missing, load, subsample, synthetic

SETS = (("segment", 20, 2310, 19), ("phishing", 7, 4000, 40))


def problem_of(name, k, n, d):
    try:
        loaded = load(name)
    except Missing as error:
        print(f"{error}: synthetic data of a similar size instead")
        loaded = synthetic(n, d)
    X, y = subsample(*loaded)
    return ts.Problem(X, ts.knn_triplets(X, y, k))


def rates():
    print("\n## from the solution at lam/0.9 (relative gap 1e-6): sphere x rule, one after the other from nothing")
    for name, *size in SETS:
        problem = problem_of(name, *size)
        total = problem.triplets.n_triplets
        for ratio in (1e-1, 1e-2, 1e-3, 1e-4):
            lam = ratio * problem.lambda_max()
            start = ts.solve(problem, lam / 0.9, screening=None)
            core, _ = problem.to_core(start.M)
            with single_threaded_blas():
                dist = problem.distances(problem.cone.project(core).factor)
                e = problem.evaluate(core, dist, lam, problem.loss.gamma)
            print(f"{name}, lambda_max * {ratio:g}: {total:,} triplets, {problem.triplets.n_pairs:,} pairs")
            for bound in ("gb", "pgb", "dgb", "cdgb", "rrpb", "mid"):
                # GB's centre is not in the cone: its semidefinite rule takes an eigendecomposition a step.
                wanted = rules.RULES[: 2 if bound == "gb" else 3]
                screener = Screener(problem, ts.Screening(bound, rule=wanted[-1]), lam, 1e-6)
                with single_threaded_blas():
                    screener.start(e, start.lam)
                line = f"  {bound:5s} r = {screener.events[0]['radius']:8.2e} "
                for event in screener.events[: len(wanted)]:
                    decided = 1 - event["undecided"] / total
                    each = 1e9 * event["seconds"] / max(event["tried"], 1)
                    line += (
                        f"| {event['rule'][:6]:6s} {decided:7.3%} {1e3 * event['seconds']:7.1f} ms {each:7.1f} ns each "
                    )
                print(line + f"| pairs left {screener.engine.share:.0%}")


def semidefinite():
    print("\n## the semidefinite rule: secular equation (PSD centre) next to an eigendecomposition a step")
    rng = np.random.default_rng(0)
    for d in (10, 20, 40, 80):
        X, y = synthetic(400, d)
        problem = ts.Problem(X, ts.knn_triplets(X, y, 5))
        lam = 1e-2 * problem.lambda_max()
        M = ts.solve(problem, lam, tol=1e-2, screening=None).M
        core, _ = problem.to_core(M)
        with single_threaded_blas():
            e = problem.evaluate(core, problem.distances(problem.cone.project(core).factor), lam, problem.loss.gamma)
            screener = Screener(problem, ts.Screening("mid"), lam, 1e-6)
            sphere = screener._sphere("mid", e)
            region, _ = rules.prepare(problem, sphere, sphere.radius, problem.rounding)
            zones = np.zeros(problem.triplets.n_triplets, dtype=np.int8)
            rules.sphere_rule(problem, region, problem.norms, zones)
            left = np.flatnonzero(zones == 0)
            hq = region.values
            positive, negative = problem.triplets.pair_numbers(zones == 0)
            margins = hq[negative] - hq[positive]
            open_ones = left[(margins > 1) | (margins < 1 - problem.loss.gamma)]
            before = zones.copy()
            start = time.perf_counter()
            rules.semidefinite(problem, region, problem.norms, zones)
            fast = (time.perf_counter() - start) / len(open_ones)
            some = rng.choice(open_ones, min(30, len(open_ones)), replace=False)
            keep = np.zeros(len(zones), dtype=bool)
            keep[some] = True
            p, n = problem.triplets.pair_numbers(keep)
            out = np.zeros(len(p), dtype=np.int8)
            corners = problem.triplets.corners()(keep)
            start = time.perf_counter()
            rules.by_eigendecompositions(
                corners, sphere.center, hq[n] - hq[p], region.errors[n] + region.errors[p],
                problem.norms[keep] * region.norm_factor, region.radius, problem.loss.gamma, out,
            )  # fmt: skip
            slow = (time.perf_counter() - start) / len(p)
        same = int((out == zones[keep]).sum())
        more = int((zones > 0).sum() - (before > 0).sum())
        print(
            f"d = {d:3d}: {1e6 * fast:7.2f} us a triplet, {1e6 * slow:8.0f} us by eigendecompositions: "
            f"{slow / fast:6.0f} times; {more} of {len(open_ones)} more decided; {same} of {len(p)} alike"
        )


def work():
    print("\n## ts.solve from the solution at lam/0.9, relative gap 1e-6: pair work and seconds, off and on")
    print("(the middle of the paper's path: segment lambda_max * 1.3e-3, phishing * 6.4e-3)")
    for name, *size in SETS:
        problem = problem_of(name, *size)
        problem.norms, problem.rounding  # noqa: B018  (made once per problem)
        for ratio in (1e-1, 1e-2, 6.4e-3, 1.3e-3, 1e-4):
            lam = ratio * problem.lambda_max()
            start = ts.solve(problem, lam / 0.9, screening=None)
            line, base = f"{name:8s} lambda_max * {ratio:g}: ", None
            ways = {"off": None, "auto": "auto"}
            ways |= {f"{'+'.join(b)} every {n}": ts.Screening(b, every=n) for b in (("rrpb", "mid"),) for n in (3, 10)}
            for label, screening in ways.items():
                seconds = np.inf
                for _ in range(5):
                    begin = time.perf_counter()
                    sol = ts.solve(problem, lam, start=start, screening=screening)
                    seconds = min(seconds, time.perf_counter() - begin)
                base = base or (sol.passes, seconds)
                gain, speed = base[0] / sol.passes, base[1] / seconds
                line += f"| {label} {sol.passes:.1f} passes ({gain:.1f}x) {seconds:.3f} s ({speed:.2f}x) "
            print(line)


if __name__ == "__main__":
    parts = {"rules": rates, "semidefinite": semidefinite, "work": work}
    for wanted in sys.argv[1:] or parts:
        parts[wanted]()
