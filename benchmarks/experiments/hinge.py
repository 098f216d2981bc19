"""The plain hinge with PGB (the paper's figure "Performance evaluation of PGB for the hinge loss setting")."""

from __future__ import annotations

from benchmarks.experiments import common
from benchmarks.experiments.common import claim, percent, sig
from benchmarks.experiments.rules import draw, gather, halves, rate_table

TITLE = "The hinge with PGB (segment)"
CASES = ("none", "pgb")


def cells(quick, seeds):
    where = {**common.QUICK, "length": min(12, common.QUICK["length"])} if quick else {"data": "segment"}
    return common.races(CASES, min(seeds, 2), **where, loss="hinge")


def show(results):
    got = gather(results, CASES, cells(results.quick, results.seeds))
    if set(got) != set(CASES):
        return "Not run.\n", {}
    first, later = halves(got["pgb"]["rate"])
    gain = got["none"]["total"] / got["pgb"]["total"]
    facts = got["pgb"]["facts"]
    lines = [
        "With our default solver (gradient, then Newton steps).",
        "",
        rate_table(got),
        "",
        claim("PGB has a high rate with the hinge, too.", (first + later) / 2 > 0.6,
              f"{percent((first + later) / 2)} of the triplets are decided before the first iteration, "
              f"{percent(float(got['pgb']['facts']['last_rate'][-1] or 0))} at the end of the last lambda."),
        claim("and the time is substantially improved.", gain > 1.5,
              f"{sig(gain, 3)} times as fast as without screening. {facts['converged']} of {len(facts['lambdas'])} "
              "lambdas "
              "reached the relative gap 1e-6 of the hinge itself."),
    ]  # fmt: skip
    data = "wine, quick run" if results.quick else "segment"
    return "\n".join(lines) + "\n", {"hinge": draw(got, f"The hinge with PGB, {data}", zoom=False)}
