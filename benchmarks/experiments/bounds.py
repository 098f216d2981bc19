"""Spheres compared, and dynamic screening (the paper's figure "Comparison of sphere bounds on phishing dataset")."""

from __future__ import annotations

import numpy as np

from benchmarks.experiments import common, totals
from benchmarks.experiments.common import NAMES, claim, percent, sig
from benchmarks.experiments.rules import draw, gather, halves, rate_table

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
    later = {case: halves(one["rate"])[1] for case, one in got.items() if case != "none"}
    whole = {case: float(np.nanmean(one["rate"])) for case, one in got.items() if case != "none"}
    end = {case: float(np.nanmean(one["end"])) for case, one in got.items() if case != "none"}
    none = got["none"]["seconds"]
    twice = {case: float(np.mean(common.smooth(one["seconds"] / none[: len(one["seconds"])]) < 0.5))
             for case, one in got.items() if case not in ("none", "gb")}  # fmt: skip
    lines = [
        rate_table(got),
        "",
        claim("GB's rate drops from the middle of the path.", later["gb"] < 0.5 * later["pgb"],
              f"{percent(later['gb'])} in the later half, PGB {percent(later['pgb'])}. It is less than half of PGB's "
              f"{_drop(got)}."),
        claim("the other spheres also have lower rates for small lambda.",
              all(halves(got[case]["rate"])[1] < halves(got[case]["rate"])[0] for case in ("pgb", "dgb", "rrpb")),
              "first and later half: "
              + ", ".join(f"{NAMES[case]} {' and '.join(map(percent, halves(got[case]['rate'])))}"
                          for case in ("pgb", "dgb", "rrpb")) + "."),
        claim("PGB and RRPB decide about the same before the first iteration, PGB a little more; DGB less than RRPB.",
              whole["dgb"] < whole["rrpb"] <= whole["pgb"] + 1e-9 and whole["pgb"] - whole["rrpb"] < 0.1,
              f"means {percent(whole['pgb'])} (PGB), {percent(whole['rrpb'])} (RRPB), {percent(whole['dgb'])} (DGB)"
              + (f"; MID, ours: {percent(whole['mid'])}." if "mid" in whole else ".")),
        claim("dynamic screening raises the rate, and more so with PGB than with RRPB.",
              end["pgb"] > whole["pgb"] and end["pgb"] >= end["rrpb"],
              f"decided at the end of a lambda: PGB {percent(end['pgb'])}, RRPB {percent(end['rrpb'])}"
              + (f", MID {percent(end['mid'])}." if "mid" in end else ".")),
        claim("the bounds other than GB are more than two times faster than no screening for most lambdas.",
              min(twice[case] for case in ("pgb", "dgb", "rrpb")) > 0.5,
              "share of lambdas where that is so: "
              + ", ".join(f"{NAMES[case]} {percent(share, 0)}" for case, share in twice.items()) + "."),
        claim("in time RRPB beats PGB early on, and PGB becomes faster in the later half.", *_early_late(got)),
    ]  # fmt: skip
    data = "wine, quick run" if results.quick else "phishing"
    figures = {"bounds": draw(got, f"Spheres on {data}", zoom=False), "bounds-dynamic": heat_maps(results)}
    return "\n".join(lines) + "\n", figures


def _drop(got):
    """Where GB falls behind."""
    behind = np.flatnonzero(got["gb"]["rate"] < 0.5 * got["pgb"]["rate"])
    return f"from lambda {behind[0] + 1} of {len(got['gb']['rate'])} on" if len(behind) else "nowhere"


def _early_late(got):
    pgb, rrpb = got["pgb"]["seconds"], got["rrpb"]["seconds"]
    count = min(len(pgb), len(rrpb))
    pgb, rrpb, middle = pgb[:count], rrpb[:count], count // 2
    early, late = pgb[:middle].sum() / rrpb[:middle].sum(), pgb[middle:].sum() / rrpb[middle:].sum()
    here = (
        f"PGB's time over RRPB's is {sig(early, 3)} in the first half of the path and {sig(late, 3)} in the later one."
    )
    return early > 1 > late, here
