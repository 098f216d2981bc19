"""Time and memory against n, d, k, the number of triplets and threads."""

from __future__ import annotations

import numpy as np

from benchmarks.experiments import common
from benchmarks.experiments.common import sig

TITLE = "Scaling: n, d, k to bytes and seconds"
GROWTH = {
    "n": [{"n": n, "d": 20, "k": 10} for n in (2000, 4000, 8000, 16000, 32000, 64000)],
    "d": [{"n": 8000, "d": d, "k": 10} for d in (10, 20, 40, 80, 160, 320)],
    "k": [{"n": 4000, "d": 20, "k": k} for k in (5, 10, 20, 40, 80)],
}
ALL = [{"n": n, "d": 20, "k": 0, "triplets": "all"} for n in (500, 1000, 2000, 4000)]
QUICK = {"n": [{"n": n, "d": 5, "k": 4} for n in (400, 800)]}


def _cell(parameters):
    return {"kind": "scaling", **parameters}


def threads(quick):
    where = {"n": 800, "d": 5, "k": 4} if quick else {"n": 32000, "d": 20, "k": 10}
    return [{**where, "threads": count} for count in ((1,) if quick else (1, 2))]


def cells(quick, seeds):
    listed = [row for rows in (QUICK if quick else GROWTH).values() for row in rows]
    found = [_cell(row) for row in listed + ([] if quick else ALL) + threads(quick)]
    return [cell for number, cell in enumerate(found) if cell not in found[:number]]  # some are in two lists


def _row(one, kind=""):
    count = f"{one['triplets']:,}" if one["triplets"] < 1e9 else f"{one['triplets']:.1e}"
    return (
        f"{one['n']:,}", one["d"], kind or one["k"], count, f"{one['pairs']:,}", f"{one['megabytes']:.0f} MB",
        f"{one['estimated_megabytes']:.0f} MB", sig(one["setup"]), sig(one["pass"]),
        sig(one["solve"]) + (" (cut)" if one["cut"] else ""),
    )  # fmt: skip


def show(results):
    growth = {
        axis: [results.get(_cell(row)) for row in rows] for axis, rows in (QUICK if results.quick else GROWTH).items()
    }
    growth = {axis: [one for one in rows if one] for axis, rows in growth.items()}
    growth = {axis: rows for axis, rows in growth.items() if len(rows) > 1}
    if not growth:
        return "Not run.\n", {}
    seen, rows = set(), []
    for one in (one for found in growth.values() for one in found):
        key = (one["n"], one["d"], one["k"])
        if key not in seen:
            seen.add(key)
            rows.append(_row(one))
    rows += [_row(one, "all") for one in (results.get(_cell(row)) for row in ALL) if one]
    header = (
        "n",
        "d",
        "k",
        "triplets",
        "pairs",
        "peak memory",
        "estimated",
        "set-up, s",
        "one pass, s",
        "one solve, s",
    )
    lines = [
        "Synthetic classes, all threads. *Peak memory*: of the process, above what it had before (search for "
        "neighbours, triplets, problem and solve). *Estimated*: `Problem.estimate()`, of an evaluation; a solve also "
        "screens, which takes 9 bytes a listed triplet while it lasts (zone, norm). *One solve*: from nothing to the "
        "relative gap 1e-6 at lambda_max / 100, with screening.",
        "",
        common.table(header, rows),
        "",
    ]
    for axis, found in growth.items():
        slope = {what: _slope(found, axis, what) for what in ("pass", "solve", "setup", "megabytes")}
        memory = f", memory with {slope['megabytes']:.2f}" if found[-2]["megabytes"] > 1 else ""
        lines.append(
            f"- Against {axis} over the last doubling: a pass grows with the power {slope['pass']:.2f}, a solve with "
            f"{slope['solve']:.2f}, set-up with {slope['setup']:.2f}{memory}."
        )
    by_threads = {row["threads"]: results.get(_cell(row)) for row in threads(results.quick)}
    if by_threads.get(1) and by_threads.get(2):
        one, two = by_threads[1], by_threads[2]
        lines.append(f"- Two threads, n = {one['n']:,}: a pass {one['pass'] / two['pass']:.2f} times, a solve "
                     f"{one['solve'] / two['solve']:.2f} times as fast as one thread.")  # fmt: skip
    return "\n".join(lines) + "\n", {"scaling": draw(growth)}


def _slope(found, axis, what):
    a, b = found[-2:]
    return float(np.log(max(b[what], 1e-9) / max(a[what], 1e-9)) / np.log(b[axis] / a[axis]))


def draw(growth):
    fig, axes = common.new_figure(columns=len(growth), width=max(6.5, 2.9 * len(growth)), height=2.9, squeeze=False)
    for ax, (axis, found) in zip(axes[0], growth.items(), strict=True):
        x = [one[axis] for one in found]
        for what, name, colour in (
            ("solve", "one solve", "#0072b2"),
            ("setup", "set-up", "#e69f00"),
            ("pass", "one pass", "#009e73"),
        ):
            ax.loglog(x, [one[what] for one in found], "o-", color=colour, markersize=4, label=f"{name}, seconds")
        ax.loglog(x, [max(one["megabytes"], 0.1) / 1000 for one in found], "s--", color="#777777", markersize=4,
                  label="peak memory, GB")  # fmt: skip
        fixed = {key: value for key, value in found[0].items() if key in "ndk" and key != axis}
        ax.set(title=", ".join(f"{key} = {value:,}" for key, value in fixed.items()), xlabel=axis)
        common.plain_ticks(ax.xaxis, x[::2] if len(x) > 5 else x)
        ax.grid(visible=True, which="major", alpha=0.3)
    handles, labels = axes[0][0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=4)
    return fig
