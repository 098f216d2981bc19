"""What experiments share: results by cell, tables, sentences on claims, and how figures look."""

from __future__ import annotations

import numpy as np

from benchmarks.cells import name_of
from benchmarks.experiments import verdicts

# Colours that keep apart for colour-blind readers, too, on a light background.
COLOURS = {
    "none": "#555555", "gb": "#d55e00", "gb+linear": "#e69f00", "gb+semidefinite": "#8c510a", "pgb": "#0072b2",
    "pgb+linear": "#88bbdd", "pgb+semidefinite": "#56b4e9", "dgb": "#009e73", "dgb+linear": "#74c476",
    "dgb+semidefinite": "#00441b", "rrpb": "#cc79a7", "rrpb+pgb": "#6a3d9a", "mid": "#000000",
}  # fmt: skip
NAMES = {
    "none": "no screening", "gb": "GB", "gb+linear": "GB + linear", "gb+semidefinite": "GB + "
                                                                                       "semidefinite", "pgb": "PGB",
    "pgb+linear": "PGB + linear", "pgb+semidefinite": "PGB + semidefinite", "dgb": "DGB", "dgb+linear": "DGB + linear",
    "dgb+semidefinite": "DGB + semidefinite", "rrpb": "RRPB", "rrpb+pgb": "RRPB + PGB", "mid": "MID (ours)",
    "path.none": "no screening", "path.auto": "our default", "path.active": "active set",
    "path.active+rrpb": "active set + RRPB", "path.active+rrpb+pgb": "active set + RRPB + PGB",
}  # fmt: skip
CLAIM = "- Paper: "
SAID = {verdicts.HOLDS: "Here it holds", verdicts.MISSED: "Here it **does not hold**",
        verdicts.OPEN: "Here it is *undecided*"}  # fmt: skip
# Quick cells: small problems from data that come with scikit-learn.
QUICK = {"data": "wine", "ratio": 0.7, "length": 30, "k": 7}


class Results:
    """The records of a run, by cell; ``quick`` and ``seeds`` say which cells it was made of.

    ``history`` holds the lines that earlier runs of ``speed`` left, the oldest first.
    """

    def __init__(self, records, quick, seeds, history=()):
        self.records = {name_of(record["cell"]): record for record in records}
        self.quick, self.seeds, self.history = quick, seeds, history

    def get(self, cell):
        """Return the numbers of a cell, or None: not run, no data, or ended without any."""
        record = self.records.get(name_of(cell))
        return None if record is None or "why" in record["result"] else record["result"]

    def races(self, cells, case):
        """Return what one method did in those of the races that were run, with the facts of the race."""
        found = [one for one in map(self.get, cells) if one]
        return [{**one, **one["cases"][case]} for one in found if case in one["cases"]]

    def together(self, cells):
        """Whether some of the cells were measured at the same time as another one."""
        found = (self.records.get(name_of(cell), {}) for cell in cells)
        return any(record.get("at_once", 1) > 1 for record in found)

    def why(self, cell):
        """Return why a cell has no numbers."""
        record = self.records.get(name_of(cell))
        return "not run" if record is None else record["result"].get("why", "")


def races(cases, count, **where):
    """The same race for so many random subsamples."""
    return [{"kind": "race", "cases": list(cases), **where, "seed": seed} for seed in range(count)]


def mean_of(found, key):
    """Mean over seeds of a list per lambda, as long as the shortest; None counts as missing (NaN)."""
    shortest = min(len(numbers[key]) for numbers in found)
    rows = np.array([[np.nan if v is None else v for v in numbers[key][:shortest]] for numbers in found], dtype=float)
    count = np.isfinite(rows).sum(axis=0)
    return np.where(count > 0, np.nansum(rows, axis=0) / np.maximum(count, 1), np.nan)


def total(found):
    """Seconds of a path, mean over subsamples."""
    return float(np.mean(seconds_of(found)))


def mean(found, key):
    """Mean over subsamples of one number of a path."""
    return float(np.mean(numbers_of(found, key)))


def how_far(found):
    """A remark on races that were cut, or nothing."""
    short = [numbers for numbers in found if numbers["cut"]]
    if not short:
        return ""
    return f"the first {min(len(one['lambdas']) for one in short)} of {short[0]['wanted']} lambdas"


def table(header, rows):
    """Return a markdown table; cells are texts."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def claim(paper, outcome, here):
    """One line of the verdicts: what the paper says, what became of it here (see `verdicts`), with the numbers."""
    return f"{CLAIM}{paper} {SAID[outcome]}: {here}"


def seconds_of(runs):
    """Seconds of a path, one number a subsample."""
    return [float(np.sum(one["seconds"])) for one in runs]


def numbers_of(runs, key):
    """Some number of a path, one a subsample."""
    return [float(one[key]) for one in runs]


def ratios(first, second):
    """First over second, subsample by subsample."""
    return [a / b for a, b in zip(first, second, strict=True)]


def differences(first, second):
    """First less second, subsample by subsample."""
    return [a - b for a, b in zip(first, second, strict=True)]


def sig(value, digits=2):
    """A number with so many digits, without an exponent where that is short."""
    if value is None or not np.isfinite(value):
        return ""
    text = f"{value:.{digits}g}"
    return f"{float(text):,.0f}" if "e+0" in text and abs(value) < 1e6 else text


def percent(value, digits=1):
    """A share in per cent."""
    return "" if value is None or not np.isfinite(value) else f"{100 * value:.{digits}f} %"


def minus_log(lambdas):
    """The horizontal axis of the paper's figures."""
    return -np.log10(np.asarray(lambdas))


def smooth(values, width=5):
    """Running median, for seconds of single lambdas."""
    values = np.asarray(values, dtype=float)
    half = width // 2
    return np.array([np.nanmedian(values[max(0, t - half) : t + half + 1]) for t in range(len(values))])


def new_figure(columns=1, rows=1, width=7.2, height=3.0, **more):
    """Return (figure, axes) in the house look."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {"font.size": 9, "svg.hashsalt": "triscreen", "svg.fonttype": "path", "axes.spines.top": False,
         "axes.spines.right": False, "axes.titlesize": 10, "legend.frameon": False, "legend.fontsize": 8}
    )  # fmt: skip
    fig, axes = plt.subplots(rows, columns, figsize=(width, height), layout="constrained", **more)
    fig.patch.set_facecolor("white")
    return fig, axes


def plain_ticks(axis, values):
    """Put plain numbers at these values of a logarithmic axis, those in sight, and none between."""
    low, high = axis.get_view_interval()
    axis.set_ticks([value for value in values if low <= value <= high])
    axis.set_major_formatter("{x:,g}")
    axis.set_tick_params(which="minor", size=0, labelbottom=False, labelleft=False)


def style(case):
    """How the line of a method is drawn."""
    dashes = {"linear": "--", "semidefinite": ":", "mid": (0, (4, 3))}  # MID lies on others: let them show through
    return {"color": COLOURS[case], "linestyle": dashes.get(case.rpartition("+")[2], "-"), "linewidth": 1.5}
