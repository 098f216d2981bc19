"""What each part gains: the paper's baseline per triplet, pairs, screening, the working set and the solver."""

from __future__ import annotations

import numpy as np

from benchmarks.experiments import common, per_triplet
from benchmarks.experiments.common import sig
from benchmarks.experiments.verdicts import show as spread
from benchmarks.experiments.verdicts import subsamples

TITLE = "What each part gains"
STEPS = (
    ("triplet.none", "per triplet, no screening", "O(d^2) a triplet, as in the paper"),
    ("triplet.rrpb+pgb", "per triplet, RRPB + PGB", "and the paper's screening"),
    ("none", "pairs, no screening", "this engine, the same gradient method"),
    ("rrpb+pgb", "pairs, RRPB + PGB", "and the paper's screening"),
    ("path.auto", "pairs, our default", "working set proven by a tube, prediction, Newton"),
)


def races(quick, seeds, data):
    """Races of the table per triplet, and one where d is larger."""
    if quick or data in per_triplet.SETS:
        return per_triplet.races(quick, seeds, data)
    return common.races([case for case, _, _ in STEPS], seeds, data=data, points=1500)


def sets(quick):
    return ("wine",) if quick else (*per_triplet.SETS, "phishing")


def more(quick):
    """All points, one subsample, where a run has time left; with those of the table per triplet."""
    if quick:
        return []
    return per_triplet.more(quick) + common.races([case for case, _, _ in STEPS], 1, data="phishing")


def cells(quick, seeds):
    return [cell for data in sets(quick) for cell in races(quick, seeds, data)]


def show(results):
    lines, figure = [], {}
    for data in sets(results.quick):
        lines += _one(results, races(results.quick, results.seeds, data), data, figure)
    for cell in more(results.quick):
        lines += _one(results, [cell], cell["data"], figure if cell["data"] not in figure else {}, "all points")
    if not lines:
        return "Not run.\n", {}
    return "\n".join(lines) + "\n", {"gains": draw(figure)} if figure else {}


def _one(results, wanted, data, figure, remark=""):
    """The lines on one data set; its seconds go into the figure."""
    found = [results.races(wanted, case) for case, _, _ in STEPS]
    if not all(found):
        return []
    each = [common.seconds_of(some) for some in found]
    seconds = figure[data] = [float(np.mean(one)) for one in each]
    facts = found[0][0]
    rows = [
        (name, what, spread(now, None), spread(common.ratios(each[0], now), "{:.1f}"),
         f"{max(one['worst_rel_gap'] for one in some):.1e}")
        for (_, name, what), some, now in zip(STEPS, found, each, strict=True)
    ]  # fmt: skip
    far = common.how_far(found[0]) or f"{len(facts['lambdas'])} lambdas"
    return [
        f"{data}{', ' * bool(remark)}{remark}: {facts['triplets']:,} triplets, d = {facts['d']}, {far}, "
        f"relative gap 1e-6, {subsamples(len(found[0]))}:",
        "",
        common.table(("", "what", "seconds", "times faster", "largest gap, recomputed"), rows),
        "",
        f"- {in_short(seconds)}",
        "",
    ]


def in_short(seconds):
    """The gains of pairs, of screening and of the rest."""
    plain, screened, pairs, both, ours_ = seconds
    gains = (
        (plain / screened, "The paper's screening gains {:.1f} times per triplet"),
        (plain / pairs, "pairs {:.0f} times"),
        (pairs / both, "the paper's screening on pairs {:.2f} times"),
        (pairs / ours_, "our default, working set and solver, {:.1f} times over pairs alone"),
    )
    return ", ".join(text.format(gain) for gain, text in gains) + "."


def draw(figure):
    fig, axes = common.new_figure(
        columns=len(figure), width=max(6.0, 2.2 * len(figure) + 1.6), height=2.2, squeeze=False, sharey=True
    )
    colours = ("#d55e00", "#e69f00", "#0072b2", "#56b4e9", "#333333")
    for ax, (data, seconds) in zip(axes[0], figure.items(), strict=True):
        places = np.arange(len(seconds))[::-1]
        ax.barh(places, seconds, color=colours)
        ax.set_xscale("log")
        ax.xaxis.set_minor_formatter("")
        ax.set_xlim(0.3 * min(seconds), 8 * max(seconds))
        ax.set_yticks(places, [name for _, name, _ in STEPS])
        for place, value in zip(places, seconds, strict=True):
            ax.annotate(f"{sig(value, 3)} s", (value, place), xytext=(3, -3), textcoords="offset points", fontsize=8)
        ax.set(title=data, xlabel="seconds (log scale)")
    return fig
