"""Range screening (the paper's figure "Screening rate of the range based screening on the segment dataset")."""

from __future__ import annotations

import numpy as np

from benchmarks.experiments import common
from benchmarks.experiments.common import claim, differences
from benchmarks.experiments.verdicts import above, all_of, shares, subsamples
from benchmarks.experiments.verdicts import show as spread

TITLE = "Ranges of lambda (segment)"
TOLS = (1e-4, 1e-6)


def _cells(quick, tol, seeds):
    where = common.QUICK if quick else {"data": "segment"}
    return [{"kind": "ranges", "tol": tol, **where, "seed": seed} for seed in range(seeds)]


def cells(quick, seeds):
    return [cell for tol in TOLS for cell in _cells(quick, tol, seeds)]


def thirds(values):
    """The mean of each third of a path."""
    return [float(np.mean(part)) for part in np.array_split(np.array(values), 3)]


def next_rates(one):
    """What a solution decides at the next lambda."""
    return [row[2 * t + 1] for t, row in enumerate(one["shares"]) if 2 * t + 1 < len(row)]


def show(results):
    found = {tol: [one for one in map(results.get, _cells(results.quick, tol, results.seeds)) if one] for tol in TOLS}
    if not all(found.values()):
        return "Not run.\n", {}
    reach = {tol: np.array([thirds(one["reach"]) for one in some]).T for tol, some in found.items()}
    near = {tol: np.array([thirds(next_rates(one)) for one in some]).T for tol, some in found.items()}
    rows = [
        (f"{tol:.0e}", *(spread(part) for part in reach[tol]), *(shares(part) for part in near[tol])) for tol in TOLS
    ]
    header = ("reference", "reach, large lambda0", "middle", "small lambda0", "decided at the next lambda, large",
              "middle", "small")  # fmt: skip
    large, _, small = reach[1e-6]
    lines = [
        common.table(header, rows),
        "",
        f"Mean of {subsamples(len(found[1e-6]))}. *Reach*: how many decades below lambda0 the same solution still "
        "decides half of what it decides at lambda0.",
        "",
        claim("a wide range of lambda can be screened, particularly for small lambda; for large lambda the range is "
              "smaller, but the rate close to lambda0 is high.",
              all_of(above(differences(small, large)), above(near[1e-6][0], 0.6)),
              f"at 1e-6 the reach is {spread(large)} decades in the first third of the path (large lambda) and "
              f"{spread(small)} in the last; the rate at the next lambda is {shares(near[1e-6][0])} in the first "
              f"third and {shares(near[1e-6][2])} in the last."),
        f"- A reference of 1e-6 decides {shares(near[1e-6].mean(axis=0))} at the next lambda, one of 1e-4 "
        f"{shares(near[1e-4].mean(axis=0))}.",
    ]  # fmt: skip
    return "\n".join(lines) + "\n", {"ranges": draw({tol: some[0] for tol, some in found.items()})}


def draw(found):
    """The maps of the first subsample."""
    fig, axes = common.new_figure(columns=2, width=7.6, height=3.2, sharey=True)
    for ax, (tol, one) in zip(axes, found.items(), strict=True):
        x, y = common.minus_log(one["stops"]), common.minus_log(one["lambdas"])
        image = ax.pcolormesh(x, y, np.array(one["shares"]).T, vmin=0, vmax=1, cmap="viridis", shading="nearest",
                              rasterized=True)  # fmt: skip
        ax.set(title=f"reference to a relative gap of {tol:.0e}", xlabel="-log10(lambda0), the reference")
    axes[0].set_ylabel("-log10(lambda)")
    fig.colorbar(image, ax=list(axes), label="decided")
    return fig
