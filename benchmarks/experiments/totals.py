"""Total time by bound (the paper's table "Total CPU time of regularization path")."""

from __future__ import annotations

import numpy as np

from benchmarks.datasets import DATA
from benchmarks.experiments import common
from benchmarks.experiments.common import NAMES, claim, percent, sig

TITLE = "Total time by bound"
CASES = ("none", "gb", "pgb", "dgb", "rrpb", "rrpb+pgb", "mid")
SETS = {"iris": 3, "wine": 3, "segment": 5, "satimage": 2, "phishing": 2, "covtype": 1}  # subsamples at most
# The paper's table: seconds, and in them those of screening. covtype stands beside SensIT.
# fmt: off
_TABLE = {
    "none": (110.9, 564.1, 1327.8, 1970.9, 5584.7, 4679.8),
    "gb": (71.5, 545.3, 1220.0, 1727.2, 3139.1, 3950.2),
    "pgb": (31.6, 129.3, 235.6, 653.5, 1300.3, 2534.9),
    "dgb": (23.7, 153.3, 300.9, 799.7, 1748.3, 2927.4),
    "rrpb": (20.0, 104.7, 206.3, 651.2, 1397.6, 2596.2),
    "rrpb+pgb": (20.8, 105.1, 188.1, 569.6, 1247.4, 2382.1),
}
_TABLE_SCREENING = {
    "gb": (14.4, 59.6, 122.6, 197.3, 263.4, 445.1),
    "pgb": (12.8, 35.9, 59.4, 131.0, 143.9, 352.0),
    "dgb": (0.5, 1.1, 1.2, 1.5, 0.9, 0.8),
    "rrpb": (0.5, 1.1, 1.2, 1.5, 0.8, 0.8),
    "rrpb+pgb": (0.9, 6.5, 11.2, 39.7, 60.7, 186.8),
}
# fmt: on
PAPER = {case: dict(zip(SETS, row, strict=True)) for case, row in _TABLE.items()}
PAPER_SCREENING = {case: dict(zip(SETS, row, strict=True)) for case, row in _TABLE_SCREENING.items()}
_REPEATED = ("iris", "wine", "segment")


def races(quick, seeds, data):
    cases = (*cases_of(data), "path.auto")
    if quick:
        return common.races(cases, seeds, **{**common.QUICK, "data": data}, maps=True)
    more = {"repeats": 2} if data in _REPEATED else {"maps": True} if data == "phishing" else {}
    return common.races(cases, min(seeds, SETS[data]), data=data, **more)


def cases_of(data):
    """The largest set takes the most telling bounds only."""
    return ("none", "rrpb", "rrpb+pgb") if data == "covtype" else CASES


def sets(quick):
    return ("wine",) if quick else tuple(SETS)


def cells(quick, seeds):
    return [cell for data in sets(quick) for cell in races(quick, seeds, data)]


def gather(results, names, races, cases, prefix=""):
    """Return {data: {case: (seconds, those of screening, passes over all triplets)}} and {data: how far, if cut}."""
    got, far = {}, {}
    for data in names:
        wanted = races(results.quick, results.seeds, data)
        for case in cases:
            some = results.races(wanted, prefix + case)
            if some:
                inside = None if case in ("none", "path.auto") else common.mean(some, "screening")
                swept = common.mean(some, "passes") * common.mean(some, "triplets")
                got.setdefault(data, {})[case] = (common.total(some), inside, swept)
                far[data] = common.how_far(some)
    return got, far


def show(results):
    return shown(results.quick, *gather(results, sets(results.quick), races, (*CASES, "path.auto")), "totals")


def shown(quick, got, far, name):
    """Table, verdicts and figure; the baseline per triplet has the same shape."""
    if not got:
        return "Not run.\n", {}
    cases = [case for case in (*CASES, "path.auto") if any(case in found for found in got.values())]
    rows = []
    for case in cases:
        row = [NAMES[case]]
        for data, found in got.items():
            if case not in found:
                row.append("")
                continue
            seconds, inside, _ = found[case]
            text = f"{found['none'][0] / seconds:.2f} ({sig(seconds, 3)} s"
            text += f", screening {percent(inside / seconds, 0)})" if inside is not None else ")"
            if case in PAPER and not quick:
                text += f" / {PAPER['none'][data] / PAPER[case][data]:.2f}"
            if case in PAPER_SCREENING and not quick:
                text += f" ({percent(PAPER_SCREENING[case][data] / PAPER[case][data], 0)})"
            row.append(text)
        rows.append(row)
    header = ["", *(data + (f" (for {DATA[data].stands_for})" if DATA[data].stands_for else "") for data in got)]
    cut = [f"{data}: {text}, as far as they came in time" for data, text in far.items() if text]
    lines = [
        "Times faster than no screening (our seconds, and the part spent on screening) / the same in the paper's table"
        + (f" ({'; '.join(cut)})" if cut else "")
        + ":",
        "",
        common.table(header, rows),
        "",
        *verdicts(got, quick),
    ]
    if name == "totals":
        lines.append(work(got))
    title = "Total time of a path, by bound" + (", per triplet" if name != "totals" else "")
    return "\n".join(lines) + "\n", {name: draw(got, quick, cases[1:], title)}


def work(got):
    """What screening saves in pair work, and what there is to save."""
    saved = [found["none"][2] / found["rrpb+pgb"][2] for found in got.values()]
    cost = [1e9 * found["none"][0] / found["none"][2] for found in got.values()]
    return (
        f"- In pair work (passes) RRPB + PGB saves {min(saved):.1f} to {max(saved):.1f} times. One iteration over all "
        f"takes {sig(min(cost))} to {sig(max(cost))} nanoseconds a triplet on this engine: a screening costs as much "
        "as a few iterations; where a triplet costs O(d^2), as in the paper's program, is the next table."
    )


def verdicts(got, quick):
    speed = {data: {case: cases["none"][0] / one[0] for case, one in cases.items()} for data, cases in got.items()}
    whole = {data: ratios for data, ratios in speed.items() if {"gb", "pgb", "dgb", "rrpb", "rrpb+pgb"} <= set(ratios)}
    if not whole:
        return []
    worst = [data for data, r in whole.items() if r["gb"] == min(r[case] for case in CASES[1:6])]
    all_faster = [data for data, r in whole.items() if min(r[case] for case in CASES[1:6]) > 1]
    best = {data: max(CASES[1:6], key=lambda case: r[case]) for data, r in whole.items()}
    fastest = "; ".join(f"{data}: {NAMES[case]} ({whole[data][case]:.2f})" for data, case in best.items())
    lines = [
        claim("every bound is faster than no screening.", len(all_faster) == len(whole),
              f"so on {len(all_faster)} of {len(whole)} data sets ({', '.join(all_faster) or 'none'})."),
        claim("GB gains least.", len(worst) == len(whole), f"so on {len(worst)} of {len(whole)} "
                                                           f"({', '.join(worst) or 'none'})."),
        claim("RRPB or RRPB + PGB is the fastest of the paper's bounds everywhere.",
              all(case in ("rrpb", "rrpb+pgb") for case in best.values()), f"the fastest are {fastest}."),
    ]  # fmt: skip
    if not quick:
        most = max((r["rrpb+pgb"], data) for data, r in whole.items())
        parts = [got[data]["rrpb+pgb"][1] / got[data]["rrpb+pgb"][0] for data in whole]
        paper = {data: PAPER["none"][data] / PAPER["rrpb+pgb"][data] for data in whole}
        lines.append(
            claim(f"RRPB + PGB gains {min(paper.values()):.1f} to {max(paper.values()):.1f} times on these.",
                  all(whole[data]["rrpb+pgb"] > 0.7 * paper[data] for data in whole),
                  f"at most {most[0]:.2f} times ({most[1]}) in seconds. Screening itself is "
                  f"{percent(min(parts), 0)} to {percent(max(parts), 0)} of the time of RRPB + PGB here.")
        )  # fmt: skip
    if all("mid" in ratios and "path.auto" in ratios for ratios in whole.values()):
        mid = ", ".join(f"{ratios['mid']:.2f} ({data})" for data, ratios in whole.items())
        auto = ", ".join(f"{ratios['path.auto']:.2f} ({data})" for data, ratios in whole.items())
        lines.append(f"- MID, ours, gains {mid}; our default path {auto}.")
    return lines


def draw(got, quick, shown, title):
    """Bars: times faster than no screening, and a dash where the paper is."""
    fig, ax = common.new_figure(width=9.0, height=3.2)
    width = 0.8 / len(shown)
    colours = {**common.COLOURS, "path.auto": "#7f7f7f"}
    for number, case in enumerate(shown):
        place = np.arange(len(got)) + (number - (len(shown) - 1) / 2) * width
        ours_ = [cases["none"][0] / cases[case][0] if case in cases else np.nan for cases in got.values()]
        ax.bar(place, ours_, width * 0.9, color=colours[case], label=NAMES[case])
        if case in PAPER and not quick:
            theirs = [PAPER["none"][data] / PAPER[case][data] for data in got]
            ax.plot(place, theirs, "_", color="black", markersize=7, label="the paper" if number == 0 else None)
    ax.axhline(1, color="#999999", linewidth=0.8)
    ax.set_xticks(range(len(got)), list(got))
    ax.set(ylabel="times faster than no screening", title=title)
    fig.legend(loc="outside lower center", ncols=8)
    return fig
