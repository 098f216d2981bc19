"""The same table where a triplet costs O(d^2), as in the paper's program: our own baseline per triplet."""

from __future__ import annotations

from benchmarks.experiments import common, totals

TITLE = "Total time by bound, per triplet (ratio 0.8)"
CASES = tuple(f"triplet.{case}" for case in totals.CASES[:6])
PAIRS = ("none", "rrpb+pgb", "path.auto")
# So many points, drawn first: a whole path of every method takes a minute or two, so that there can be several.
SETS = {
    "iris": {"points": 100, "ratio": 0.8},
    "wine": {"points": 100, "ratio": 0.8},
    "segment": {"points": 400, "ratio": 0.8},
}


# With all points, one subsample each, where a run has time left.
LARGE = {"iris": {}, "wine": {}, "segment": {"ratio": 0.8}}


def large(quick, seeds, data):
    return common.races((*CASES, *PAIRS), 1, data=data, **LARGE[data])


def more(quick):
    """The cells for the time that is left."""
    return [] if quick else [cell for data in LARGE for cell in large(quick, 1, data)]


def races(quick, seeds, data):
    return common.races(
        (*CASES, *PAIRS), seeds, **({**common.QUICK, "data": data} if quick else {"data": data, **SETS[data]})
    )


def sets(quick):
    return ("wine",) if quick else tuple(SETS)


def cells(quick, seeds):
    return [cell for data in sets(quick) for cell in races(quick, seeds, data)]


def show(results):
    text, figures = totals.shown(
        results.quick, *totals.gather(results, sets(results.quick), races, totals.CASES[:6], "triplet."), "per-triplet"
    )
    if results.quick:
        return text, figures
    bigger, far = totals.gather(results, tuple(LARGE), large, totals.CASES[:6], "triplet.")
    if bigger:
        text += "\nAll points, one subsample; segment at ratio 0.8, iris and wine at 0.9" + totals.short_of(far)
        text += ":\n\n" + totals.faster_table(False, bigger, totals.CASES[:6]) + "\n"
    if not figures:
        return text, figures
    few = ", ".join(f"{where['points']} of {data}'s" for data, where in SETS.items())
    return f"So many points, drawn first: {few}.\n\n{text}", figures
