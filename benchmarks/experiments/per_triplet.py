"""The same table where a triplet costs O(d^2), as in the paper's program: our own baseline per triplet."""

from __future__ import annotations

from benchmarks.experiments import common, totals

TITLE = "Total time by bound, per triplet (segment at ratio 0.8)"
CASES = tuple(f"triplet.{case}" for case in totals.CASES[:6])
PAIRS = ("none", "rrpb+pgb", "path.auto")
SETS = {"iris": {}, "wine": {}, "segment": {"ratio": 0.8}}


def races(quick, seeds, data):
    """One subsample only: a path takes minutes, as in the paper."""
    return common.races(
        (*CASES, *PAIRS), 1, **({**common.QUICK, "data": data} if quick else {"data": data, **SETS[data]})
    )


def sets(quick):
    return ("wine",) if quick else tuple(SETS)


def cells(quick, seeds):
    return [cell for data in sets(quick) for cell in races(quick, seeds, data)]


def show(results):
    return totals.shown(
        results.quick, *totals.gather(results, sets(results.quick), races, totals.CASES[:6], "triplet."), "per-triplet"
    )
