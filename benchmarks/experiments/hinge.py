"""The plain hinge with PGB (the paper's figure "Performance evaluation of PGB for the hinge loss setting")."""

from __future__ import annotations

from benchmarks.experiments import common
from benchmarks.experiments.common import claim
from benchmarks.experiments.rules import draw, gains, gather, rate_table, whole
from benchmarks.experiments.verdicts import above, shares
from benchmarks.experiments.verdicts import show as spread

TITLE = "The hinge with PGB (segment)"
CASES = ("none", "pgb")


def cells(quick, seeds):
    where = {**common.QUICK, "length": min(12, common.QUICK["length"])} if quick else {"data": "segment"}
    return common.races(CASES, seeds, **where, loss="hinge")


def show(results):
    got = gather(results, CASES, cells(results.quick, results.seeds))
    if set(got) != set(CASES):
        return "Not run.\n", {}
    rates, gain, runs = whole(got["pgb"]), gains(got, "pgb"), got["pgb"]["runs"]
    lines = [
        "With our default solver (gradient, then Newton steps).",
        "",
        rate_table(got),
        "",
        claim("PGB has a high rate with the hinge, too.", above(rates, 0.6),
              f"{shares(rates)} of the triplets are decided before the first iteration, "
              f"{shares([float(run['last_rate'][-1] or 0) for run in runs])} at the end of the last lambda."),
        claim("and the time is substantially improved.", above(gain, 1.5),
              f"{spread(gain)} times as fast as without screening. {sum(run['converged'] for run in runs)} of "
              f"{sum(len(run['lambdas']) for run in runs)} lambdas reached the relative gap 1e-6 of the hinge itself."),
    ]  # fmt: skip
    data = "wine, quick run" if results.quick else "segment"
    return "\n".join(lines) + "\n", {"hinge": draw(got, f"The hinge with PGB, {data}", zoom=False)}
