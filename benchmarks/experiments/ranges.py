"""Range screening (the paper's figure "Screening rate of the range based screening on the segment dataset")."""

from __future__ import annotations

import numpy as np

from benchmarks.experiments import common
from benchmarks.experiments.common import claim, percent, sig

TITLE = "Ranges of lambda (segment)"
TOLS = (1e-4, 1e-6)


def _cells(quick, tol):
    where = common.QUICK if quick else {"data": "segment"}
    return {"kind": "ranges", "tol": tol, **where, "seed": 0}


def cells(quick, seeds):
    return [_cells(quick, tol) for tol in TOLS]


def show(results):
    found = {tol: results.get(_cells(results.quick, tol)) for tol in TOLS}
    if not all(found.values()):
        return "Not run.\n", {}
    fig, axes = common.new_figure(columns=2, width=7.6, height=3.2, sharey=True)
    for ax, (tol, one) in zip(axes, found.items(), strict=True):
        x, y = common.minus_log(one["stops"]), common.minus_log(one["lambdas"])
        image = ax.pcolormesh(x, y, np.array(one["shares"]).T, vmin=0, vmax=1, cmap="viridis", shading="nearest",
                              rasterized=True)  # fmt: skip
        ax.set(title=f"reference to a relative gap of {tol:.0e}", xlabel="-log10(lambda0), the reference")
    axes[0].set_ylabel("-log10(lambda)")
    fig.colorbar(image, ax=list(axes), label="decided")
    thirds = {tol: np.array_split(np.array(one["reach"]), 3) for tol, one in found.items()}
    own = {}
    for tol, one in found.items():
        near = [row[2 * t + 1] for t, row in enumerate(one["shares"]) if 2 * t + 1 < len(row)]
        own[tol] = [float(np.mean(part)) for part in np.array_split(np.array(near), 3)]
    rows = [
        (f"{tol:.0e}", *(f"{np.mean(part):.2f}" for part in thirds[tol]), *(percent(share) for share in own[tol]))
        for tol in TOLS
    ]
    header = ("reference", "reach, large lambda0", "middle", "small lambda0", "decided at the next lambda, "
                                                                              "large", "middle",
              "small")  # fmt: skip
    reach = {tol: [float(np.mean(part)) for part in thirds[tol]] for tol in TOLS}
    lines = [
        common.table(header, rows),
        "",
        "*Reach*: how many decades below lambda0 the same solution still decides half of what it decides at lambda0.",
        "",
        claim("a wide range of lambda can be screened, particularly for small lambda; for large lambda the range is "
              "smaller, but the rate close to lambda0 is high.",
              reach[1e-6][2] > reach[1e-6][0] and own[1e-6][0] > 0.6,
              f"at 1e-6 the reach is {sig(reach[1e-6][0])} decades in the first third of the path (large lambda) and "
              f"{sig(reach[1e-6][2])} in the last; the rate at the next lambda is {percent(own[1e-6][0])} in the first "
              f"third and {percent(own[1e-6][2])} in the last."),
        f"- A reference of 1e-6 decides {percent(np.mean(own[1e-6]))} at the next lambda, one of 1e-4 "
        f"{percent(np.mean(own[1e-4]))}.",
    ]  # fmt: skip
    return "\n".join(lines) + "\n", {"ranges": fig}
