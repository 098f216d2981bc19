"""Seconds of complete paths as `ts.solve_path` gives them, with its default screening and without any."""

from __future__ import annotations

from benchmarks.experiments import common
from benchmarks.experiments.common import ratios
from benchmarks.experiments.verdicts import HOLDS, MISSED, above
from benchmarks.experiments.verdicts import show as spread

TITLE = "Seconds of complete paths"
SETS = {0.9: ("iris", "wine", "segment", "satimage", "phishing", "a9a"), 0.99: ("iris", "wine", "segment", "phishing")}
_ANSWER = {HOLDS: "yes", MISSED: "**no**"}


def _cells(quick, seeds, data, ratio):
    where = {"k": common.QUICK["k"], "n_lambdas": 6, "ratio": 0.7} if quick else {"ratio": ratio}
    return [{"kind": "path", "data": data, **where, "seed": seed} for seed in range(seeds)]


def sets(quick):
    return [("wine", 0.7)] if quick else [(data, ratio) for ratio, names in SETS.items() for data in names]


def cells(quick, seeds):
    return [cell for data, ratio in sets(quick) for cell in _cells(quick, seeds, data, ratio)]


def show(results):
    rows, outcomes = [], []
    for data, ratio in sets(results.quick):
        runs = [one for one in map(results.get, _cells(results.quick, results.seeds, data, ratio)) if one]
        if not runs:
            continue
        ours, none = ([one["ways"][way] for one in runs] for way in ("default", "none"))
        gain = ratios(common.numbers_of(none, "seconds"), common.numbers_of(ours, "seconds"))
        outcomes.append(above(gain, 1.0))
        rows.append((data, f"{ratio:g}", f"{runs[0]['triplets']:,}", f"{common.mean(ours, 'lambdas'):.0f}", len(runs),
                     spread(common.numbers_of(ours, "seconds"), None),
                     spread(common.numbers_of(none, "seconds"), None), spread(gain),
                     _ANSWER.get(outcomes[-1], outcomes[-1]),
                     spread(ratios(common.numbers_of(none, "passes"), common.numbers_of(ours, "passes"))),
                     spread(common.numbers_of(ours, "overhead"))))  # fmt: skip
    if not rows:
        return "Not run.\n", {}
    header = ("", "ratio", "triplets", "lambdas", "subsamples", "default, s", "no screening, s", "times faster",
              "faster?", "times fewer passes", "overhead")  # fmt: skip
    lines = [
        "All threads, relative gap 1e-6, from lambda_max until the loss settles, neighbours and set-up apart; the "
        "better of two turns on each subsample. *Overhead*: the seconds of the default path over (its passes x "
        "the seconds of one pass).",
        "",
        common.table(header, rows),
        "",
        f"- The default screening makes the path faster for certain on {outcomes.count(HOLDS)} of {len(outcomes)}, "
        f"slower on {outcomes.count(MISSED)}; the rest is undecided.",
    ]
    return "\n".join(lines) + "\n", {}
