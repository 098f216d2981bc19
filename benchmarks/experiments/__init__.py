"""The experiments by name, in the order of the page.

Each module has TITLE, `cells(quick, seeds) -> list of cells` and `show(results) -> (markdown, {name: figure})`.
"""

from __future__ import annotations

from benchmarks.experiments import (
    active,
    bounds,
    dgb,
    diagonal,
    exact,
    gains,
    hinge,
    peers,
    per_triplet,
    ranges,
    rules,
    scaling,
    speed,
    tables,
    totals,
)

EXPERIMENTS = {
    "rules": rules,
    "bounds": bounds,
    "ranges": ranges,
    "active": active,
    "hinge": hinge,
    "dgb": dgb,
    "totals": totals,
    "per-triplet": per_triplet,
    "diagonal": diagonal,
    "gains": gains,
    "peers": peers,
    "tables": tables,
    "exact": exact,
    "scaling": scaling,
    "speed": speed,
}
