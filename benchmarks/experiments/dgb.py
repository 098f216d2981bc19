"""Rules on the duality gap bound (the paper's figure "Screening rule comparison on the segment dataset (DGB)")."""

from __future__ import annotations

from benchmarks.experiments import common
from benchmarks.experiments.common import NAMES, claim, differences, ratios, seconds_of, sig
from benchmarks.experiments.rules import draw, gather, rate_table, whole
from benchmarks.experiments.verdicts import above, all_of, below, shares

TITLE = "Rules on DGB (segment)"
CASES = ("none", "dgb", "dgb+linear", "dgb+semidefinite")


def cells(quick, seeds):
    return common.races(CASES, seeds, **(common.QUICK if quick else {"data": "segment"}))


def show(results):
    got = gather(results, CASES, cells(results.quick, results.seeds))
    if set(got) != set(CASES):
        return "Not run.\n", {}
    rates = {case: whole(got[case]) for case in CASES[1:]}
    more = [differences(rates[case], rates["dgb"]) for case in CASES[2:]]
    slower = [ratios(*(seconds_of(got[name]["runs"]) for name in (case, "dgb"))) for case in CASES[2:]]
    lines = [
        rate_table(got),
        "",
        claim("half-space and cone improve the rate only slightly.",
              all_of(*(all_of(above(one), below(one, 0.05)) for one in more)),
              ", ".join(f"{NAMES[case]} {shares(rate, 2)}" for case, rate in rates.items()) + " on the mean."),
        claim("and bring no clear improvement in time.", all_of(*(above(one, 0.95) for one in slower)),
              ", ".join(f"{NAMES[case]} {sig(got[case]['total'], 3)} s" for case in CASES) + "."),
    ]  # fmt: skip
    data = "wine, quick run" if results.quick else "segment"
    return "\n".join(lines) + "\n", {"dgb": draw(got, f"Rules on DGB, {data}", zoom=False)}
