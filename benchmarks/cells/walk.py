"""A path as the paper walked it: one lambda after the other, projected gradient, one of the named screenings."""

from __future__ import annotations

from benchmarks.cells.common import grade, graded, rounded, setting
from benchmarks.solvers.triscreen import walk

_MOST = 60  # screenings of one lambda that are kept


def measure(context, data, case, seed, ratio=0.9, length=None, k="paper", loss="smoothed", repeats=1):
    """Return rates and seconds for each lambda; with repeats, the smallest seconds."""
    made = setting(context, data, seed, k, loss)
    lambdas = made.lambdas(data, ratio, length)
    # The hinge is solved by smoothing, ever sharper: at small lambda too much for a gradient method.
    options = {"solver": "auto" if loss == "hinge" else "bb"}
    for _ in walk(made.problem, lambdas[:4], case, **options):
        pass  # warm
    wanted, total = graded(len(lambdas)), made.problem.triplets.n_triplets
    rows, metrics = [], []
    for turn in range(repeats):
        for t, (sol, seconds, screening) in enumerate(
            walk(made.problem, lambdas, case, until=context.until, **options)
        ):
            if turn == 0:
                rows.append({"seconds": seconds, "screening": screening, "n_iter": sol.n_iter, "passes": sol.passes,
                             "converged": sol.converged, "rates": decided(sol.screening, total)})  # fmt: skip
                if t in wanted:
                    metrics.append((sol.M, sol.lam, sol.gap))
            elif seconds < rows[t]["seconds"]:
                rows[t].update(seconds=seconds, screening=screening)
    return {
        **made.facts,
        "cut": len(rows) < len(lambdas),
        "lambdas": lambdas[: len(rows)].tolist(),
        "seconds": rounded((row["seconds"] for row in rows), 6),
        "screening": rounded((row["screening"] for row in rows), 6),
        "n_iter": [row["n_iter"] for row in rows],
        "passes": rounded((row["passes"] for row in rows), 3),
        "converged": sum(row["converged"] for row in rows),
        "first_rate": [row["rates"][0] if row["rates"] else None for row in rows],
        "last_rate": [row["rates"][-1] if row["rates"] else None for row in rows],
        "rates": [row["rates"][:_MOST] for row in rows],
        **grade(made, metrics),
    }


def decided(events, total):
    """Return the share that was decided after each screening, the one before the first iteration first.

    A lambda whose start was optimal already has none.
    """
    return rounded({event["n_iter"]: 1 - event["undecided"] / total for event in events}.values())
