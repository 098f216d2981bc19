"""Screening: what each sphere and rule decides, what it costs, and what it saves.

    python benchmarks/screening.py [rules] [semidefinite] [work]

Data sets of the paper are read from the folder TRISCREEN_DATA; synthetic data stands in where they are missing.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from _data import load, subsample, synthetic

import triscreen as ts
from triscreen._threads import single_threaded_blas
from triscreen.screening import rules
from triscreen.screening.state import Screener

SETS = (("segment", 20, 2310, 19), ("phishing", 7, 4000, 40))


def problem_of(name, k, n, d):
    loaded = load(name)
    if loaded is None:
        print(f"{name} not found (set TRISCREEN_DATA): synthetic data of a similar size instead")
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
                    work, time_ratio = base[0] / sol.passes, base[1] / seconds
                line += f"| {label} {sol.passes:.1f} passes ({work:.1f}x) {seconds:.3f} s ({time_ratio:.2f}x) "
            print(line)


if __name__ == "__main__":
    parts = {"rules": rates, "semidefinite": semidefinite, "work": work}
    for wanted in sys.argv[1:] or parts:
        parts[wanted]()
