"""Rules on the duality gap bound (the paper's figure "Screening rule comparison on the segment dataset (DGB)")."""

from __future__ import annotations

from benchmarks.experiments import common
from benchmarks.experiments.common import NAMES, claim, percent, sig
from benchmarks.experiments.rules import draw, gather, halves, rate_table

TITLE = "Rules on DGB (segment)"
CASES = ("none", "dgb", "dgb+linear", "dgb+semidefinite")


def cells(quick, seeds):
    return common.races(CASES, min(seeds, 3), **(common.QUICK if quick else {"data": "segment", "repeats": 2}))


def show(results):
    got = gather(results, CASES, cells(results.quick, results.seeds))
    if set(got) != set(CASES):
        return "Not run.\n", {}
    whole = {case: sum(halves(one["rate"])) / 2 for case, one in got.items() if case != "none"}
    more = max(whole.values()) - whole["dgb"]
    lines = [
        rate_table(got),
        "",
        claim("half-space and cone improve the rate only slightly.", 0 <= more < 0.05,
              ", ".join(f"{NAMES[case]} {percent(rate, 2)}" for case, rate in whole.items()) + " on the mean."),
        claim("and bring no clear improvement in time.",
              min(got[case]["total"] for case in CASES[2:]) > 0.95 * got["dgb"]["total"],
              ", ".join(f"{NAMES[case]} {sig(got[case]['total'], 3)} s" for case in CASES) + "."),
    ]  # fmt: skip
    data = "wine, quick run" if results.quick else "segment"
    return "\n".join(lines) + "\n", {"dgb": draw(got, f"Rules on DGB, {data}", zoom=False)}
