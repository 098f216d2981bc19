"""The active set, with screening on top of it, at ratio 0.99 (the paper's table "... with the active set method")."""

from __future__ import annotations

import numpy as np

from benchmarks.datasets import DATA
from benchmarks.experiments import common
from benchmarks.experiments.common import NAMES, claim, ratios, sig
from benchmarks.experiments.verdicts import above, all_of, any_of
from benchmarks.experiments.verdicts import show as spread

TITLE = "Dense paths with the active set (ratio 0.99; 20newsgroups 0.93)"
CASES = ("path.active", "path.active+rrpb", "path.active+rrpb+pgb", "path.none", "path.auto")
# So many points drawn from each set, and a coarser path where the paper took a day: a minute or two a subsample.
SETS = {
    "phishing": {"points": 4000},
    "covtype": {"points": 15000},
    "a9a": {},
    "mnist": {"points": 10000},
    "cifar10": {"points": 3000},
    "20newsgroups": {"points": 2000, "ratio": 0.93},
}
# The same with more points, one subsample each, where a run has time left.
LARGE = {
    "phishing": {},
    "covtype": {},
    "mnist": {"points": 20000},
    "cifar10": {"points": 10000},
    "20newsgroups": {"points": 4000, "ratio": 0.97},
}
PAPER = {
    "path.active": {"phishing": 7989.5, "covtype": 16352.1, "a9a": 758.7, "mnist": 3788.1, "cifar10": 11085.7,
                    "20newsgroups": 94996.3},
    "path.active+rrpb": {"phishing": 2126.2, "covtype": 3555.6, "a9a": 70.1, "mnist": 871.1, "cifar10": 1431.3,
                         "20newsgroups": 43174.9},
    "path.active+rrpb+pgb": {"phishing": 2133.2, "covtype": 3046.9, "a9a": 72.1, "mnist": 897.9, "cifar10": 1279.7,
                             "20newsgroups": 38231.1},
}  # fmt: skip


def races(quick, seeds, data):
    if quick:
        return common.races(CASES, seeds, **{**common.QUICK, "ratio": 0.95, "length": 60})
    return common.races(CASES, seeds, data=data, **{"ratio": 0.99, **SETS[data]})


def cells(quick, seeds):
    return [cell for data in sets(quick) for cell in races(quick, seeds, data)]


def large(quick, seeds, data):
    return common.races(CASES, 1, data=data, **{"ratio": 0.99, **LARGE[data]})


def more(quick):
    """The cells for the time that is left."""
    return [] if quick else [cell for data in LARGE for cell in large(quick, 1, data)]


def sets(quick):
    return ("wine",) if quick else tuple(SETS)


def show(results):
    got = gather(results, sets(results.quick), races)
    says = "screening accelerates the active set, by up to some 10 times."
    text, figures = shown(got, {} if results.quick else PAPER, "active", says, at_best=4)
    bigger = {} if results.quick else gather(results, tuple(LARGE), large)
    if bigger:
        text += "\nMore points, one subsample (20newsgroups at ratio 0.97), against the active set as above:\n\n"
        text += against_active(bigger, against(bigger, "path.active"), PAPER)
        text += "\n\nand against no screening:\n\n" + against_none(bigger) + "\n"
    return text, figures


def gather(results, names, races):
    """Return {data: {case: its numbers, a subsample each}} of the races that were run."""
    found = {}
    for data in names:
        by = {case: results.races(races(results.quick, results.seeds, data), case) for case in CASES}
        if all(by.values()):
            found[data] = by
    return found


def shown(got, paper, name, says, at_best=0.0):
    """Tables, verdict and figure of one such table of the paper; the diagonal one has the same shape.

    What the paper ``says`` holds if screening gains on every data set, and ``at_best`` times on one.
    """
    if not got:
        return "Not run.\n", {}
    gains = against(got, "path.active")
    better = [np.maximum(gains["path.active+rrpb"][data], gains["path.active+rrpb+pgb"][data]) for data in got]
    least, most = (float(pick(np.mean(one) for one in better)) for pick in (min, max))
    lines = [
        "Times faster than the plain active set (our seconds) / the same ratio in the paper's table:",
        "",
        against_active(got, gains, paper),
        "",
        "The same seconds, as times faster than no screening at all:",
        "",
        against_none(got),
        "",
        "Pair work in passes a lambda (one pass: the distances and the gradient of all pairs). All of these paths "
        "begin each lambda at a point predicted from the last two solutions, which the paper's did not; where that is "
        "all but optimal, one pass a lambda is what no screening needs.",
        "",
        common.table(["", *(NAMES[case] for case in CASES)],
                     [(data, *(spread(passes(by[case])) for case in CASES)) for data, by in got.items()]),
        "",
        claim(says, all_of(*(above(one, 1.1) for one in better), any_of(*(above(one, at_best) for one in better))),
              f"the better of the two is {least:.2f} to {most:.2f} times as fast as the active set alone"
              + pair_work(got)),
        *(f"- Our default path (the tube of docs/path.md) against {text}: "
          + ", ".join(f"{spread(values)} ({data})" for data, values in against(got, base)["path.auto"].items()) + "."
          for base, text in (("path.active", "the active set"), ("path.none", "no screening"))),
    ]  # fmt: skip
    means = {case: {data: float(np.mean(values)) for data, values in by.items()} for case, by in gains.items()}
    return "\n".join(lines) + "\n", {name: draw(means, got, paper, CASES)}


def against(got, base):
    """Times faster than a method: {case: {data: one number a subsample}}."""
    return {
        case: {data: ratios(*(common.seconds_of(by[name]) for name in (base, case))) for data, by in got.items()}
        for case in CASES
    }


def against_none(got):
    """How many times faster than no screening each is, as a table."""
    faster = against(got, "path.none")
    return common.table(
        ["", *(NAMES[case] for case in CASES)],
        [(data, *(spread(faster[case][data]) for case in CASES)) for data in got],
    )


def against_active(got, gains, paper):
    """The paper's table, with ours before its."""
    rows = []
    for data, by in got.items():
        base = by["path.active"][0]
        row = [data + (f" (for {DATA[data].stands_for})" if DATA[data].stands_for else ""),
               f"{base['n']:,} x {base['d']}", f"{base['triplets']:,}",
               common.how_far(by["path.active"]) or f"{len(base['lambdas']):,}", len(by["path.active"])]  # fmt: skip
        for case in CASES:
            text = spread(gains[case][data]) if case != "path.active" else "1.00"
            text += f" ({sig(common.total(by[case]), 3)} s)"
            if data in paper.get("path.active", {}) and data in paper.get(case, {}):
                text += f" / {paper['path.active'][data] / paper[case][data]:.2f}"
            row.append(text)
        rows.append(row)
    return common.table(["", "points", "triplets", "lambdas", "subsamples", *(NAMES[case] for case in CASES)], rows)


def passes(runs):
    """Passes a lambda, one number a subsample."""
    return [one["passes"] / len(one["lambdas"]) for one in runs]


def pair_work(got):
    """What RRPB + PGB saves in passes."""
    saved = [common.mean(by["path.active"], "passes") / common.mean(by["path.active+rrpb+pgb"], "passes")
             for by in got.values()]  # fmt: skip
    return f"; in pair work (passes) RRPB + PGB does it with {min(saved):.2f} to {max(saved):.2f} times less."


def draw(gains, got, paper, cases):
    colours = {"path.active+rrpb": common.COLOURS["rrpb"], "path.active+rrpb+pgb": common.COLOURS["rrpb+pgb"],
               "path.none": "#bbbbbb", "path.auto": "#333333"}  # fmt: skip
    fig, ax = common.new_figure(width=8.0, height=2.8)
    names = list(got)
    listed = [case for case in cases if case != "path.active"]
    width = 0.8 / len(listed)
    for number, case in enumerate(listed):
        place = np.arange(len(names)) + (number - (len(listed) - 1) / 2) * width
        ax.bar(place, [gains[case][data] for data in names], width * 0.9, color=colours[case],
               label=NAMES[case])  # fmt: skip
        if paper.get(case):
            theirs = [
                paper["path.active"][data] / paper[case][data] if paper["path.active"].get(data) else np.nan
                for data in names
            ]
            ax.plot(place, theirs, "_", color="black", markersize=10, label="the paper" if number == 0 else None)
    ax.axhline(1, color="#999999", linewidth=0.8)
    ax.set_xticks(range(len(names)), names)
    ax.set_ylabel("times faster than the active set")
    fig.legend(loc="outside lower center", ncols=5)
    return fig
