"""The active set, with screening on top of it, at ratio 0.99 (the paper's table "... with the active set method")."""

from __future__ import annotations

import numpy as np

from benchmarks.datasets import DATA
from benchmarks.experiments import common
from benchmarks.experiments.common import NAMES, claim, sig

TITLE = "Dense paths with the active set (ratio 0.99; 20newsgroups 0.97)"
CASES = ("active", "active+rrpb", "active+rrpb+pgb", "none", "auto")
# So many points drawn from each set, and a coarser path where the paper took a day, so that this takes half an hour.
SETS = {
    "phishing": {},
    "covtype": {},
    "a9a": {},
    "mnist": {"points": 20000},
    "cifar10": {"points": 10000},
    "20newsgroups": {"points": 4000, "ratio": 0.97},
}
PAPER = {
    "active": {"phishing": 7989.5, "covtype": 16352.1, "a9a": 758.7, "mnist": 3788.1, "cifar10": 11085.7,
               "20newsgroups": 94996.3},
    "active+rrpb": {"phishing": 2126.2, "covtype": 3555.6, "a9a": 70.1, "mnist": 871.1, "cifar10": 1431.3,
                    "20newsgroups": 43174.9},
    "active+rrpb+pgb": {"phishing": 2133.2, "covtype": 3046.9, "a9a": 72.1, "mnist": 897.9, "cifar10": 1279.7,
                        "20newsgroups": 38231.1},
}  # fmt: skip


def cell_of(quick, data, case):
    if quick:
        return {"kind": "dense", "case": case, **common.QUICK, "ratio": 0.95, "length": 60, "seed": 0}
    return {"kind": "dense", "case": case, "data": data, **SETS[data], "seed": 0}


def cells(quick, seeds):
    return [cell_of(quick, data, case) for data in (("wine",) if quick else SETS) for case in CASES]


def show(results):
    got = {}
    for data in ("wine",) if results.quick else SETS:
        found = {case: results.get(cell_of(results.quick, data, case)) for case in CASES}
        if found["active"]:
            got[data] = {case: one for case, one in found.items() if one}
    return shown(got, {} if results.quick else PAPER, CASES, "active")


def shown(got, paper, cases, name):
    """Table, verdicts and figure of one such table of the paper; the diagonal one has the same shape."""
    if not got:
        return "Not run.\n", {}
    rows, gains = [], {}
    for data, found in got.items():
        base = found["active"]
        row = [data + (f" (for {DATA[data].stands_for})" if DATA[data].stands_for else ""),
               f"{base['n']:,} x {base['d']}", f"{base['triplets']:,}", f"{base['wanted']:,}"]  # fmt: skip
        for case in cases:
            if case not in found:
                row.append("no result")
                continue
            one = found[case]
            # A path that was cut is compared over the lambdas that both have.
            both = min(one["lambdas"], base["lambdas"])
            ratio = common.total(base, both) / common.total(one, both)
            gains.setdefault(case, {})[data] = ratio
            text = (
                f"{ratio:.2f} ({sig(one['seconds'], 3)} s)"
                if not one["cut"]
                else f"{ratio:.2f} (cut, {one['lambdas']} lambdas)"
            )
            if paper.get("active", {}).get(data) and paper.get(case, {}).get(data):
                text += f" / {paper['active'][data] / paper[case][data]:.2f}"
            row.append(text)
        rows.append(row)
    screened = [[gains[case][data] for case in ("active+rrpb", "active+rrpb+pgb") if data in gains.get(case, {})]
                for data in got]  # fmt: skip
    best = [max(values) for values in screened if values]
    lines = [
        "Times faster than the plain active set (our seconds) / the same ratio in the paper's table:",
        "",
        common.table(["", "points", "triplets", "lambdas", *(NAMES[case] for case in cases)], rows),
        "",
    ]
    if best:
        lines.append(
            claim("screening accelerates the active set, by up to some 10 times." if paper or not name else
                  "screening accelerates the active set.",
                  min(best) > 1.1 and max(best) > 4,
                  f"the better of the two is {min(best):.2f} to {max(best):.2f} times as fast as the active set alone"
                  + pair_work(got))
        )  # fmt: skip
    auto = gains.get("auto", {})
    if auto:
        lines.append("- Our default path (the tube of docs/path.md) against the active set: "
                     + ", ".join(f"{value:.2f} ({data})" for data, value in auto.items()) + ".")  # fmt: skip
    return "\n".join(lines) + "\n", {name: draw(gains, got, paper, cases)}


def pair_work(got):
    """What RRPB + PGB saves in passes, where both paths came to their end."""
    whole = {data: found for data, found in got.items() if "active+rrpb+pgb" in found}
    ratios = [found["active"]["passes"] / found["active+rrpb+pgb"]["passes"] for found in whole.values()
              if not found["active"]["cut"] and not found["active+rrpb+pgb"]["cut"]]  # fmt: skip
    if not ratios:
        return "."
    return f"; in pair work (passes) RRPB + PGB does it with {min(ratios):.2f} to {max(ratios):.2f} times less."


def draw(gains, got, paper, cases):
    colours = {"active+rrpb": common.COLOURS["rrpb"], "active+rrpb+pgb": common.COLOURS["rrpb+pgb"], "none": "#bbbbbb",
               "auto": "#333333"}  # fmt: skip
    fig, ax = common.new_figure(width=8.0, height=2.8)
    names = list(got)
    listed = [case for case in cases if case != "active"]
    width = 0.8 / len(listed)
    for number, case in enumerate(listed):
        place = np.arange(len(names)) + (number - (len(listed) - 1) / 2) * width
        ax.bar(place, [gains.get(case, {}).get(data, np.nan) for data in names], width * 0.9, color=colours[case],
               label=NAMES[case])  # fmt: skip
        if paper.get(case):
            theirs = [
                paper["active"][data] / paper[case][data] if paper["active"].get(data) else np.nan for data in names
            ]
            ax.plot(place, theirs, "_", color="black", markersize=10, label="the paper" if number == 0 else None)
    ax.axhline(1, color="#999999", linewidth=0.8)
    ax.set_xticks(range(len(names)), names)
    ax.set_ylabel("times faster than the active set")
    fig.legend(loc="outside lower center", ncols=5)
    return fig
