"""``triscreen transform`` and ``triscreen evaluate``: what a model does to points, and how good it is."""

from __future__ import annotations

import csv
import io
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from triscreen.cli.common import about, answer, command, from_file, read, say, table
from triscreen.cli.options import (
    Comparisons,
    Data,
    Debug,
    Drop,
    Header,
    Json,
    Label,
    Names,
    Quiet,
    refuse_idle,
)
from triscreen.cli.outputs import check_files
from triscreen.errors import InputError

_LARGEST = 1e70  # as for learning: squares of distances must not overflow
Model = Annotated[Path, typer.Argument(help="A file that triscreen fit has written.", show_default=False)]


@command
def transform(
    model: Model,
    data: Data,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="CSV or npy file; by default CSV on stdout.", show_default=False),
    ] = None,
    components: Annotated[
        int | None, typer.Option(help="The most important so many directions only.", show_default=False)
    ] = None,
    label: Label = None,
    drop: Drop = [],  # noqa: B006
    header: Header = None,
    debug: Debug = False,
):
    """Map points to where Euclidean distance is the learned one, the most important direction first.

    Points are scaled as for fit. Labels become the last column of a CSV: those of a column that is named (--label),
    under its name and whatever it holds, and those that the data keep apart from the features.

    Example: triscreen transform wine.model wine -o wine.csv
    """
    import numpy as np

    from triscreen._utils.archive import replacing
    from triscreen.datasets.text import escaped

    check_files({"model": model, "data": data}, {"output": output})
    scaling, metric = _load(model)
    if components is not None and not 1 <= components <= len(metric.components_):
        raise InputError(f"components={components}: the model has {len(metric.components_)} directions")
    points = _points(data, scaling, label, drop, header, labelled=False)
    Z = metric.transform(scaling.transform(points.X))[:, :components]
    if output is not None and output.suffix == ".npy":
        with replacing(output) as stream:
            np.save(stream, Z)
        return
    labels = None if points.y is None else [escaped(label) for label in points.y.tolist()]
    with nullcontext(sys.stdout.buffer) if output is None else replacing(output) as stream:
        _write_csv(stream, Z, labels, points.label_name and escaped(points.label_name))


@command
def evaluate(
    ctx: typer.Context,
    model: Model,
    data: Data,
    train: Annotated[
        str | None,
        typer.Option(help="Points that classify those of DATA; by default the others of DATA.", show_default=False),
    ] = None,
    neighbors: Annotated[int, typer.Option(help="Neighbours that vote.", min=1)] = 3,
    comparisons: Comparisons = None,
    names: Names = None,
    label: Label = None,
    drop: Drop = [],  # noqa: B006
    header: Header = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
):
    """Compare the error of the nearest neighbours before (scaled Euclid) and after; leave-one-out without --train.

    With --comparisons: the share that each has in the right order. On what the model was learned from, expect the
    error after to be too good; hold something out.

    Example: triscreen evaluate wine.model wine
    """
    refuse_idle(ctx)
    scaling, metric = _load(model)
    choice = {"label": label, "drop": drop, "header": header}
    if comparisons is not None:
        points = _points(data, scaling, **choice, labelled=False, names=names)
        text, before, after, told = _judge_by_comparisons(points, comparisons, scaling, metric)
        if told["n_learned_from"] and not quiet:
            say(
                f"{told['n_learned_from']:,} of these {told['n_comparisons']:,} comparisons are among those that the "
                "model was learned from: they flatter it, judge it by others"
            )
    else:
        points, known = _judged(data, train, scaling, **choice, quiet=quiet)
        text, before, after, told = _judge_by_neighbours(points, known, scaling, metric, neighbors)
        if known is None and not quiet:
            say("points that the model was learned from flatter it: judge it by others, with --train")
    if json:
        answer(told)
    else:
        print(text)
        table(["before", "after"], [[f"{before:.2%}", f"{after:.2%}"]])


def _judge_by_comparisons(points, comparisons, scaling, metric):
    """Return (what it is, share in the right order before and after, all of it for machines)."""
    import numpy as np

    from triscreen.datasets import read_comparisons
    from triscreen.datasets.seals import seals
    from triscreen.selection import comparison_error

    rows = read_comparisons(comparisons, points.row_names, len(points.X))
    Z = scaling.transform(points.X)
    before, after = 1 - comparison_error(Z, rows), 1 - comparison_error(metric.transform(Z), rows)
    known = np.isin(seals(points.X, rows), getattr(metric, "seals_", ()))
    told = {
        "n_comparisons": len(rows),
        "n_learned_from": int(known.sum()),
        "right_before": before,
        "right_after": after,
    }
    return f"share of {len(rows):,} comparisons in the right order", before, after, told


def _judged(data, train, scaling, **choice):
    """Return (the points to classify, those that classify them, or None: the others)."""
    if train == data:
        raise InputError(f"train={train!r} is the data itself: without --train each point is classified by the others")
    points = _points(data, scaling, **choice, labelled=True)
    if train is None:
        if len(points.X) < 2:
            raise InputError(f"source={points.name!r} has one point only: without --train others have to classify it")
        return points, None
    known = _points(train, scaling, **choice, labelled=True)
    if known.y.dtype.kind != points.y.dtype.kind:
        raise InputError(f"train={train!r} has labels of another type than data={data!r}: both text, or both numbers")
    return points, known


def _judge_by_neighbours(points, known, scaling, metric, k):
    """Return (what it is, error before and after, all of it for machines)."""
    from triscreen.selection import neighbour_error

    def error(mapped):
        Z = mapped(scaling.transform(points.X))
        if known is None:
            return neighbour_error(Z, points.y, k=k)
        return neighbour_error(mapped(scaling.transform(known.X)), known.y, Z, points.y, k)

    with about(points.name):
        before, after = error(lambda Z: Z), error(metric.transform)
    text = f"error of {k} nearest neighbours on {len(points.X):,} points" + (", leave-one-out" if known is None else "")
    told = {"n_points": len(points.X), "neighbors": k, "leave_one_out": known is None,
            "error_before": before, "error_after": after}  # fmt: skip
    return text, before, after, told


def _load(file):
    """Return (scaling, metric) of a model."""
    import numpy as np

    import triscreen as ts

    with from_file(file, "model"):
        found = ts.load(file)
        if isinstance(found, ts.Path):
            raise InputError(f"model={str(file)!r} holds a path: a model is needed, make one with triscreen fit")
        steps = [step for _, step in found.steps] if hasattr(found, "steps") else [found]
        if not hasattr(steps[-1], "components_"):
            raise InputError(f"model={str(file)!r} is not fitted: make one with triscreen fit")
        metric, d = steps[-1], steps[-1].n_features_in_
        scaling = steps[0] if len(steps) == 2 else ts.Scaling("none").fit(np.zeros((2, d)))
        names = getattr(scaling, "feature_names_in_", None)
        if len(metric.components_) > d or scaling.n_features_in_ != d or (names is not None and len(names) != d):
            raise ValueError("its parts do not fit together")
        for array, shape in ((metric.components_, (len(metric.components_), d)),
                             (scaling.shift_, (d,)), (scaling.factor_, (d,))):  # fmt: skip
            if array.shape != shape or array.dtype != np.float64 or not np.isfinite(array).all():
                raise ValueError("its numbers are not those of a metric")
    return scaling, metric


def _points(data, scaling, label, drop, header, **more):
    """Return points with the features of a model, by name where both have names."""
    import numpy as np

    from triscreen.datasets.table import place

    features = getattr(scaling, "feature_names_in_", None)
    points = read(data, label=label, drop=drop, header=header, n_features=scaling.n_features_in_,
                  features=None if features is None else list(features), **more)  # fmt: skip
    if points.X.shape[1] != scaling.n_features_in_:
        raise InputError(
            f"source={points.name!r} has {points.X.shape[1]} features: the model was learned from "
            f"{scaling.n_features_in_}; name a column of labels with --label, leave others out with --drop"
        )
    with np.errstate(over="ignore"):
        largest = np.abs(scaling.transform(points.X)).max(axis=0)
    if not (largest < _LARGEST).all():
        column = int(np.argmin(largest < _LARGEST))
        raise InputError(
            f"source={points.name!r}, {place(column, points.feature_names)}: a value is {largest[column]:.2g} when "
            f"scaled as for fit, it must be smaller than {_LARGEST:.0e}"
        )
    return points


def _write_csv(stream, Z, labels, title):
    """Write rows to a stream of bytes, in UTF-8 whatever the locale."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    try:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([f"z{number}" for number in range(Z.shape[1])] + ([] if labels is None else [title or "label"]))
        last = [[]] * len(Z) if labels is None else [[label] for label in labels]
        writer.writerows([*row, *label] for row, label in zip(Z.tolist(), last, strict=True))
        text.flush()
    finally:
        text.detach()
