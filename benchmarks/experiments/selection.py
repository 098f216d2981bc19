"""What it takes to prove a lambda best to within a point of held-out error."""

from __future__ import annotations

from benchmarks.cells.selection import DECADES, LAMBDAS
from benchmarks.experiments import common
from benchmarks.experiments.common import numbers_of
from benchmarks.experiments.verdicts import shares
from benchmarks.experiments.verdicts import show as spread

TITLE = "Seconds of a certified choice of lambda"
SETS = ("wine", "cancer", "digits", "segment", "phishing")


def _cells(quick, seeds, data):
    where = {"eps": 0.05, "points": 80, "k": 3} if quick else {}
    return [{"kind": "selection", "data": data, **where, "seed": seed} for seed in range(seeds)]


def sets(quick):
    return ("wine",) if quick else SETS


def cells(quick, seeds):
    return [cell for data in sets(quick) for cell in _cells(quick, seeds, data)]


def show(results):
    rows, eps = [], 0.01
    for data in sets(results.quick):
        runs = [one for one in map(results.get, _cells(results.quick, results.seeds, data)) if one]
        if not runs:
            continue
        eps, late = runs[0]["eps"], sum(one["cut"] for one in runs)
        rows.append((data, f"{runs[0]['n']:,} x {runs[0]['d']}", runs[0]["held_out"], len(runs),
                     *(spread(numbers_of(runs, key), None) for key in ("path", "bounds", "search")),
                     shares(numbers_of(runs, "decided")), spread(numbers_of(runs, "solved"), "{:.0f}"),
                     shares(numbers_of(runs, "error")), f"{len(runs) - late} of {len(runs)}"))  # fmt: skip
    if not rows:
        return "Not run.\n", {}
    header = ("", "learnt from", "held out", "splits", "path, s", "bounds, s", "search, s", "decided by the path",
              "solutions more", "error", "proven")  # fmt: skip
    lines = [
        f"Nine tenths of the points to learn from, three neighbours vote on the rest. A path of {LAMBDAS} lambdas over "
        f"{DECADES} decades, bounds on the error of every lambda between them (*decided by the path*: held-out points "
        f"whose vote is proven, of all intervals), then `ts.select(path, bounds, eps={eps:g})`. *Proven*: in so many "
        f"splits no lambda of these decades has an error that is lower by more than {100 * eps:g} points. One thread, "
        "seconds of the processor.",
        "",
        common.table(header, rows),
    ]
    return "\n".join(lines) + "\n", {}
