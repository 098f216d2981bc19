"""What is measured: one small file per kind of cell, each with `measure(context, **parameters) -> dict`.

A cell is a dict {"kind": ..., parameters}; experiments list the cells they show, and may share them.
"""

from __future__ import annotations

from benchmarks.cells import (
    accuracy,
    dask,
    exact,
    neighbours,
    paths,
    race,
    ranges,
    sampled,
    scaling,
    selection,
    speed,
    tables,
)

KINDS = {
    "race": race,
    "sampled": sampled,
    "ranges": ranges,
    "accuracy": accuracy,
    "table": tables,
    "exact": exact,
    "scaling": scaling,
    "neighbours": neighbours,
    "path": paths,
    "selection": selection,
    "dask": dask,
    "speed": speed,
}
# One thread each, and seconds of the processor or none at all: two of them run at a time.
SIDE_BY_SIDE = ("accuracy", "table", "ranges", "sampled", "selection")


def measure(cell, context):
    """Run one cell; return its numbers."""
    parameters = dict(cell)
    return KINDS[parameters.pop("kind")].measure(context, **parameters)


def name_of(cell):
    """Return the name of a cell, which is that of its file."""
    texts = {key: "-".join(value) if isinstance(value, list) else value for key, value in sorted(cell.items())}
    more = [f"{key}={text}" for key, text in texts.items() if key != "kind"]
    return ",".join([cell["kind"], *more])
