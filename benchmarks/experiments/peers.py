"""Error against seconds, next to other metric learners."""

from __future__ import annotations

import numpy as np

from benchmarks.experiments import common
from benchmarks.experiments.common import sig
from benchmarks.experiments.verdicts import shares

TITLE = "Other metric learners: error against seconds"
PEERS = ("euclid", "nca", "mlpack", "mlpack-lbfgs", "metric-learn", "pylmnn")
OURS = ("triscreen", "triscreen-cv")
LABELS = {
    "euclid": "Euclid", "nca": "scikit-learn NCA", "mlpack": "mlpack LMNN", "mlpack-lbfgs": "mlpack LMNN, L-BFGS",
    "metric-learn": "metric-learn LMNN", "pylmnn": "PyLMNN", "triscreen": "TripletMetric",
    "triscreen-cv": "TripletMetricCV",
}  # fmt: skip
SETS = ("wine", "cancer", "digits", "segment", "phishing")


def cells(quick, seeds):
    peers = ("euclid", "nca", *OURS) if quick else (*OURS, *PEERS)
    return [
        {"kind": "accuracy", "data": data, "peer": peer, "seed": seed}
        for data in (("wine",) if quick else SETS)
        for peer in peers
        for seed in range(1 if quick else seeds)
    ]


def show(results):
    wanted = cells(results.quick, results.seeds)
    got, why = {}, {}
    # Seconds of the processor, if all have them: the others depend on what else the machine did.
    clock = "processor" if all("processor" in one for one in map(results.get, wanted) if one) else "seconds"
    for cell in wanted:
        found, key = results.get(cell), (cell["data"], cell["peer"])
        if found:
            got.setdefault(key, []).append((found["error"], found[clock], found["n"], found["d"]))
        else:
            why[key] = results.why(cell)
    if not got:
        return "Not run.\n", {}
    names, splits = list(dict.fromkeys(data for data, _ in got)), max(map(len, got.values()))
    peers = [peer for peer in (*PEERS, *OURS) if any((data, peer) in got or (data, peer) in why for data in names)]
    rows = []
    for data in names:
        size = next(values[0][2:] for (name, _), values in got.items() if name == data)
        row = [data, f"{size[0]:,} x {size[1]}"]
        for peer in peers:
            values = got.get((data, peer))
            if values is None:
                row.append(why.get((data, peer), ""))
            else:
                errors, seconds = zip(*(value[:2] for value in values), strict=True)
                row.append(
                    shares(errors)
                    + (f" ({sig(float(np.mean(seconds)))} s)" if peer != "euclid" else "")
                    + (f", {len(values)} of the splits" if len(values) < splits else "")
                )
        rows.append(row)
    text = [
        f"3-nearest-neighbour test error and seconds of the fit{' (of the processor)' * (clock == 'processor')}, "
        f"{splits} random split(s), one thread{', two fits at a time' * results.together(wanted)}, defaults; LMNN with "
        "3 target neighbours. Few splits: differences of a per cent say nothing ([estimators.md](estimators.md) has "
        "more of them).",
        "",
        common.table(["", "learnt from", *(LABELS[peer] for peer in peers)], rows),
        "",
        *sentences(got, names),
    ]
    return "\n".join(text) + "\n", {"peers": draw(got, names, peers)}


def sentences(got, names):
    mean = {key: np.mean([value[:2] for value in values], axis=0) for key, values in got.items()}
    lines = []
    for ours in OURS:
        have = [data for data in names if (data, ours) in mean]
        best = [
            data
            for data in have
            if mean[data, ours][0] <= min(m[0] for (name, peer), m in mean.items() if name == data and peer not in OURS)
        ]
        lines.append(f"- {LABELS[ours]} has an error as low as the best of the others on {len(best)} of {len(have)} "
                     "data sets"
                     + (f" ({', '.join(best)})." if best else "."))  # fmt: skip
    for peer in ("metric-learn", "pylmnn", "nca", "mlpack", "mlpack-lbfgs"):
        ratios = [mean[data, peer][1] / mean[data, "triscreen"][1] for data in names
                  if (data, peer) in mean and (data, "triscreen") in mean]  # fmt: skip
        if ratios:
            lines.append(
                f"- {LABELS[peer]} takes {sig(min(ratios))} to {sig(max(ratios))} times as long as TripletMetric."
            )
    return lines


def draw(got, names, peers):
    fig, axes = common.new_figure(columns=len(names), width=max(6.5, 2.3 * len(names)), height=2.9, squeeze=False)
    colours = ("#999999", "#e69f00", "#d55e00", "#8c510a", "#cc79a7", "#009e73", "#0072b2", "#000000")
    markers = "sv^<>DoP"
    style = dict(zip((*PEERS, *OURS), zip(colours, markers, strict=True), strict=True))
    for ax, data in zip(axes[0], names, strict=True):
        for peer in peers:
            values = got.get((data, peer))
            if values:
                error, seconds = np.mean([value[:2] for value in values], axis=0)
                colour, marker = style[peer]
                ax.plot(
                    max(seconds, 1e-4),
                    100 * error,
                    marker,
                    color=colour,
                    markersize=6,
                    label=LABELS[peer],
                    clip_on=False,
                )
        ax.set_xscale("log")
        ax.set_ylim(0, None)
        ax.set(title=data, xlabel="seconds")
        ax.grid(visible=True, alpha=0.25)
    axes[0][0].set_ylabel("test error, %")
    handles = {}
    for ax in axes[0]:
        handles.update(dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True)))
    fig.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4)
    return fig
