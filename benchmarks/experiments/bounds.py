"""Spheres compared, and dynamic screening (the paper's figure "Comparison of sphere bounds on phishing dataset")."""

from __future__ import annotations

import numpy as np

from benchmarks.experiments import common, totals
from benchmarks.experiments.common import NAMES, claim, differences, ratios
from benchmarks.experiments.rules import draw, gather, halves, rate_table, whole
from benchmarks.experiments.verdicts import above, all_of, below, shares
from benchmarks.experiments.verdicts import show as spread

TITLE = "Spheres compared (phishing)"
CASES = ("none", "gb", "pgb", "dgb", "rrpb", "mid")
MAPS = ("gb", "pgb", "dgb", "rrpb")


def cells(quick, seeds):
    return totals.races(quick, seeds, "wine" if quick else "phishing")


def heat_maps(results):
    """One map per sphere: what is decided after each screening of each lambda, in the first subsample."""
    shown = {case: results.races(cells(results.quick, results.seeds), case)[0] for case in MAPS}
    longest = min(40, max(len(row) for found in shown.values() for row in found["rates"]))
    fig, axes = common.new_figure(columns=len(shown), width=9.6, height=2.8, sharey=True, squeeze=False)
    for ax, (case, found) in zip(axes[0], shown.items(), strict=True):
        grid = np.full((longest, len(found["rates"])), np.nan)
        for t, row in enumerate(found["rates"]):
            grid[: len(row[:longest]), t] = row[:longest]
        x = common.minus_log(found["lambdas"])
        image = ax.imshow(grid, origin="lower", aspect="auto", vmin=0, vmax=1, cmap="viridis", interpolation="nearest",
                          extent=(x[0], x[-1], -0.5, longest - 0.5))  # fmt: skip
        ax.set(title=NAMES[case], xlabel="-log10(lambda)")
    axes[0][0].set_ylabel("screenings so far")
    fig.colorbar(image, ax=list(axes[0]), label="decided", shrink=0.9)
    return fig


def show(results):
    got = gather(results, CASES, cells(results.quick, results.seeds))
    if not {"none", "gb", "pgb", "dgb", "rrpb"} <= set(got):
        return "Not run.\n", {}
    screened = [case for case in got if case != "none"]
    half = {case: halves(got[case]) for case in screened}
    start, end = ({case: whole(got[case], key) for case in screened} for key in ("first_rate", "last_rate"))
    twice = {case: _often_twice(got, case) for case in screened if case != "gb"}
    lines = [
        rate_table(got),
        "",
        claim("GB's rate drops from the middle of the path.", below(ratios(half["gb"][1], half["pgb"][1]), 0.5),
              f"{shares(half['gb'][1])} in the later half, PGB {shares(half['pgb'][1])}. It is less than half of PGB's "
              f"{_drop(got)}."),
        claim("the other spheres also have lower rates for small lambda.",
              all_of(*(above(differences(*half[case])) for case in ("pgb", "dgb", "rrpb"))),
              "first and later half: "
              + ", ".join(f"{NAMES[case]} {' and '.join(map(shares, half[case]))}"
                          for case in ("pgb", "dgb", "rrpb")) + "."),
        claim("PGB and RRPB decide about the same before the first iteration, PGB a little more; DGB less than RRPB.",
              all_of(above(differences(start["pgb"], start["rrpb"])),
                     below(differences(start["pgb"], start["rrpb"]), 0.1),
                     above(differences(start["rrpb"], start["dgb"]))),
              f"means {shares(start['pgb'])} (PGB), {shares(start['rrpb'])} (RRPB), {shares(start['dgb'])} (DGB)"
              + (f"; MID, ours: {shares(start['mid'])}." if "mid" in start else ".")),
        claim("dynamic screening raises the rate, and more so with PGB than with RRPB.",
              all_of(above(differences(end["pgb"], start["pgb"])), above(differences(end["pgb"], end["rrpb"]))),
              f"decided at the end of a lambda: PGB {shares(end['pgb'])}, RRPB {shares(end['rrpb'])}"
              + (f", MID {shares(end['mid'])}." if "mid" in end else ".")),
        claim("the bounds other than GB are more than two times faster than no screening for most lambdas.",
              all_of(*(above(twice[case], 0.5) for case in ("pgb", "dgb", "rrpb"))),
              "share of lambdas where that is so: "
              + ", ".join(f"{NAMES[case]} {shares(share, 0)}" for case, share in twice.items()) + "."),
        claim("in time RRPB beats PGB early on, and PGB becomes faster in the later half.", *_early_late(got)),
    ]  # fmt: skip
    data = "wine, quick run" if results.quick else "phishing"
    figures = {"bounds": draw(got, f"Spheres on {data}", zoom=False), "bounds-dynamic": heat_maps(results)}
    return "\n".join(lines) + "\n", figures


def _drop(got):
    """Where GB falls behind."""
    behind = np.flatnonzero(got["gb"]["rate"] < 0.5 * got["pgb"]["rate"])
    return f"from lambda {behind[0] + 1} of {len(got['gb']['rate'])} on" if len(behind) else "nowhere"


def _often_twice(got, case):
    """The share of lambdas where a method is more than twice as fast as no screening, one number a subsample."""
    return [
        float(np.mean(common.smooth(np.divide(run["seconds"], none["seconds"])) < 0.5))
        for run, none in zip(got[case]["runs"], got["none"]["runs"], strict=True)
    ]


def _early_late(got):
    early, late = [], []
    for pgb, rrpb in zip(got["pgb"]["runs"], got["rrpb"]["runs"], strict=True):
        middle = len(pgb["seconds"]) // 2
        for found, part in ((early, slice(None, middle)), (late, slice(middle, None))):
            found.append(float(np.sum(pgb["seconds"][part]) / np.sum(rrpb["seconds"][part])))
    here = (
        f"PGB's time over RRPB's is {spread(early)} in the first half of the path and {spread(late)} in the later one."
    )
    return all_of(above(early, 1.0), below(late, 1.0)), here
