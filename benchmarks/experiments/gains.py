"""What each part gains: the paper's baseline per triplet, pairs, screening, the working set and the solver."""

from __future__ import annotations

import numpy as np

from benchmarks.experiments import common
from benchmarks.experiments.common import claim, sig
from benchmarks.experiments.totals import ours, walks

TITLE = "What each part gains"
SETS = ("segment", "phishing")
STEPS = (
    ("per triplet, no screening", "O(d^2) a triplet, as in the paper"),
    ("per triplet, RRPB + PGB", "and the paper's screening"),
    ("pairs, no screening", "this engine, the same gradient method"),
    ("pairs, RRPB + PGB", "and the paper's screening"),
    ("pairs, our default", "working set proven by a tube, prediction, Newton"),
)


def cells_of(quick, data):
    if quick:
        where = {**common.QUICK, "data": data}
    else:
        where = {"data": data}
    base = [{"kind": "per_triplet", "case": case, **where, "seed": 0} for case in ("none", "rrpb+pgb")]
    pairs = [walks(quick, 1, data, case)[0] for case in ("none", "rrpb+pgb")]
    return [*base, *pairs, ours(quick, 1, data)[0]]


def sets(quick):
    return ("wine",) if quick else SETS


def cells(quick, seeds):
    return [cell for data in sets(quick) for cell in cells_of(quick, data)]


def show(results):
    lines, parts, figure = [], [], {}
    for data in sets(results.quick):
        found = [results.get(cell) for cell in cells_of(results.quick, data)]
        if found[0] is None or found[1] is None or found[2] is None:
            continue
        reached = min(common.reached(one) for one in found if one)
        seconds = [common.total(one, reached) if one else np.nan for one in found]
        figure[data] = seconds
        facts = found[0]
        wanted = common.reached(found[2])
        rows = []
        for (name, what), one, now in zip(STEPS, found, seconds, strict=True):
            far = (
                ""
                if one is None or common.reached(one) == wanted
                else f" (whole path: cut after {common.reached(one)} lambdas)"
            )
            rows.append((name, what + far, sig(now, 3), f"{seconds[0] / now:.1f}" if np.isfinite(now) else "",
                         "" if one is None else f"{one['worst_rel_gap']:.1e}"))  # fmt: skip
        lines += [
            f"{data}: {facts['triplets']:,} triplets, d = {facts['d']}, the first {reached} of {wanted} lambdas, "
            "same lambdas, "
            "same relative gap 1e-6, gaps recomputed from M:",
            "",
            common.table(("", "what", "seconds", "times faster", "largest gap, recomputed"), rows),
            "",
        ]
        parts.append(f"on {data} {in_short(seconds)}")
        lines.append(
            claim("screening makes the whole path several times faster (RRPB + PGB: 7.1 times on segment).",
                  seconds[0] / seconds[1] > 2,
                  f"{seconds[0] / seconds[1]:.1f} times where every triplet costs O(d^2), as in the paper.")
        )  # fmt: skip
        lines.append("")
    if not parts:
        return "Not run.\n", {}
    lines.append("- In short: " + "; ".join(parts) + ".")
    return "\n".join(lines) + "\n", {"gains": draw(figure)}


def in_short(seconds):
    """The gains of pairs, of screening and of the rest, where they were measured."""
    plain, screened, pairs, both, ours_ = seconds
    gains = (
        (plain / pairs, "pairs gain {:.0f} times"),
        (plain / screened, "the paper's screening {:.1f} times per triplet"),
        (pairs / both, "and {:.2f} times on pairs"),
        (pairs / ours_, "our default, working set and solver, {:.1f} times over pairs alone"),
    )
    return ", ".join(text.format(gain) for gain, text in gains if np.isfinite(gain))


def draw(figure):
    fig, axes = common.new_figure(columns=len(figure), width=8.0, height=2.2, squeeze=False, sharey=True)
    colours = ("#d55e00", "#e69f00", "#0072b2", "#56b4e9", "#333333")
    for ax, (data, seconds) in zip(axes[0], figure.items(), strict=True):
        places = np.arange(len(seconds))[::-1]
        ax.barh(places, seconds, color=colours)
        ax.set_xscale("log")
        ax.xaxis.set_minor_formatter("")
        known = [value for value in seconds if np.isfinite(value)]
        ax.set_xlim(10 ** np.floor(np.log10(min(known))), 4 * max(known))
        ax.set_yticks(places, [name for name, _ in STEPS])
        for place, value in zip(places, seconds, strict=True):
            if np.isfinite(value):
                ax.annotate(
                    f"{sig(value, 3)} s", (value, place), xytext=(3, -3), textcoords="offset points", fontsize=8
                )
        ax.set(title=data, xlabel="seconds (log scale)")
    return fig
