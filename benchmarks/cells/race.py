"""Several methods down the same lambdas, in turns: what disturbs the machine for a while disturbs all of them.

Methods are those of `solvers.runners`. Each goes on from its own last solution. A race that takes too long ends for all
at the same lambda.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.cells.common import grade, graded, rounded, setting
from benchmarks.solvers import runners

_WARM = 5  # lambdas before the race
_MOST = 40  # screenings of one lambda that are kept


def measure(context, data, cases, seed, ratio=0.9, length=None, k="paper", loss="smoothed", points=None, cone=None,
            repeats=1, maps=False):  # fmt: skip
    """Return seconds and rates of each case at each lambda; with repeats, the smallest seconds."""
    made = setting(context, data, seed, k, loss, points, cone)
    lambdas = made.lambdas(data, ratio, length)
    for case in cases:
        for _ in runners.run(made, lambdas[:_WARM], case):
            pass
    context.start()
    laps, reached, wanted = {case: [] for case in cases}, len(lambdas), graded(len(lambdas))
    for turn in range(repeats):
        running = {case: runners.run(made, lambdas, case) for case in cases}
        for t in range(reached):
            if t and time.perf_counter() > context.until:
                reached = t if turn == 0 else reached
                break
            first = t % len(cases)
            for case in (*cases[first:], *cases[:first]):
                lap = next(running[case])
                lap.metric = lap.metric() if turn == 0 and t in wanted else None  # a whole solution is much to keep
                if turn == 0:
                    laps[case].append(lap)
                elif lap.seconds < laps[case][t].seconds:
                    laps[case][t].seconds, laps[case][t].screening = lap.seconds, lap.screening
    return {
        **made.facts,
        "cut": reached < len(lambdas),
        "wanted": len(lambdas),
        "lambdas": [float(f"{lam:.7g}") for lam in lambdas[:reached]],
        "cases": {case: _numbers(made, lambdas, laps[case], maps) for case in cases},
    }


def _numbers(made, lambdas, laps, maps):
    total = made.problem.triplets.n_triplets
    rates = [[1 - left / total for left in lap.undecided] for lap in laps]
    metrics = [(lap.metric, lam, lap.gap) for lap, lam in zip(laps, lambdas, strict=False) if lap.metric is not None]
    return {
        "seconds": rounded((lap.seconds for lap in laps), 5),
        "screening": float(np.sum([lap.screening for lap in laps])),
        "n_iter": int(np.sum([lap.n_iter for lap in laps])),
        "passes": float(np.sum([lap.passes for lap in laps])),
        "converged": int(sum(lap.converged for lap in laps)),
        "first_rate": [round(row[0], 4) if row else None for row in rates],
        "last_rate": [round(row[-1], 4) if row else None for row in rates],
        **({"rates": [rounded(row[:_MOST], 3) for row in rates]} if maps else {}),
        **grade(made, metrics),
    }
