"""The experiments by name, in the order of the page.

Each module has TITLE, `cells(quick, seeds) -> list of cells` and `show(results) -> (markdown, {name: figure})`;
some have `more(quick) -> list of cells` for the time that is left.
"""

from __future__ import annotations

from benchmarks.experiments import (
    active,
    bounds,
    dask,
    dgb,
    diagonal,
    exact,
    gains,
    hinge,
    neighbours,
    paths,
    peers,
    per_triplet,
    ranges,
    rules,
    scaling,
    selection,
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
    "neighbours": neighbours,
    "paths": paths,
    "selection": selection,
    "dask": dask,
    "scaling": scaling,
    "speed": speed,
}
