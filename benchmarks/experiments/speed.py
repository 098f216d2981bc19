"""A few paths and fits, the same ones at every commit that was measured."""

from __future__ import annotations

from pathlib import Path

from benchmarks.experiments import common

TITLE = "Speed from commit to commit"
HISTORY = Path(__file__).parents[1] / "history.jsonl"
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#555555", "#000000")


def cells(quick, seeds):
    return [{"kind": "speed"}]


def line(record):
    """Return what the history keeps of a run."""
    about = {"commit": record["commit"], "date": record["date"], "cores": record["machine"]["cores"]}
    return {**about, **record["result"]}


def show(results):
    if not results.history:
        return "Not run.\n", {}
    text = (
        "One thread, seconds of the processor, best of several; paths at ratio 0.9 (digits: 50 lambdas). *Overhead*: "
        "the seconds of a path over (its passes x the seconds of one evaluation over all triplets, measured in turns "
        "with it); above 1 a path pays for more than its passes, and it depends on the machine less than seconds do. "
        "Nothing is asserted; a run takes about a minute and adds a line to `benchmarks/history.jsonl`.\n"
    )
    return text, {"speed": draw(results.history)}


def draw(history):
    fig, axes = common.new_figure(columns=2, width=8.0, height=3.4)
    names = list(dict.fromkeys(name for one in history for name in one["measured"]))
    for ax, key in zip(axes, ("seconds", "overhead"), strict=True):
        for number, name in enumerate(names):
            at = [x for x, one in enumerate(history) if key in one["measured"].get(name, {})]
            values = [history[x]["measured"][name][key] for x in at]
            if at:
                ax.plot(at, values, "o-", color=COLOURS[number % len(COLOURS)], markersize=4, label=name)
        ax.set_xticks(range(len(history)), [one["commit"][:7] for one in history], rotation=90, fontsize=7)
        ax.set(title=key, xlim=(-0.5, len(history) - 0.5))
        ax.grid(visible=True, which="major", alpha=0.3)
    axes[0].set_yscale("log")
    axes[1].set_ylim(0, None)
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return fig
