"""The same table where a triplet costs O(d^2), as in the paper's program: our own baseline per triplet."""

from __future__ import annotations

from benchmarks.experiments import common, totals

TITLE = "Total time by bound, per triplet"
CASES = totals.CASES[:6]
SETS = ("iris", "wine", "segment")


def walks(quick, seeds, data, case):
    """One subsample: the seconds of this baseline are those of the paper's, minutes a path."""
    where = {**common.QUICK, "data": data} if quick else {"data": data}
    return common.seeded({"kind": "per_triplet", "case": case, **where}, 1)


def sets(quick):
    return ("wine",) if quick else SETS


def cells(quick, seeds):
    return [cell for data in sets(quick) for case in CASES for cell in walks(quick, seeds, data, case)]


def show(results):
    return totals.shown(results.quick, *totals.gather(results, sets(results.quick), CASES, walks), "per-triplet")
