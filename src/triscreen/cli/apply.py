"""``triscreen transform`` and ``triscreen evaluate``: what a model does to points, and how good it is."""

from __future__ import annotations

import csv
import io
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from triscreen.cli.common import about, answer, command, how_to_read, say, table
from triscreen.cli.made import compared
from triscreen.cli.model import Lam, ModelOrPath, mapped, parts_of, points_of
from triscreen.cli.options import (
    Absent,
    Comparisons,
    Data,
    Debug,
    Decimal,
    Drop,
    Header,
    Json,
    Keep,
    Label,
    Names,
    Quiet,
    Sign,
    refuse_idle,
)
from triscreen.cli.outputs import check_files
from triscreen.errors import InputError

Model = Annotated[Path, typer.Argument(help="A file that triscreen fit has written.", show_default=False)]


@command
def transform(
    model: ModelOrPath,
    data: Data,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="CSV or npy file; by default CSV on stdout.", show_default=False),
    ] = None,
    lam: Lam = None,
    components: Annotated[
        int | None, typer.Option(help="The most important so many directions only.", show_default=False)
    ] = None,
    label: Label = None,
    drop: Drop = [],  # noqa: B006
    keep: Keep = [],  # noqa: B006
    header: Header = None,
    missing: Absent = None,
    decimal: Sign = Decimal.point,
    debug: Debug = False,
):
    """Map points to where Euclidean distance is the learned one, the most important direction first.

    Points are scaled as for fit. Labels become the last column of a CSV: those of a column that is named (--label),
    under its name and whatever it holds, and those that the data keep apart from the features. Columns that --keep
    names come first, as they are. Categories, dates and medians are those of fit.

    Of a path (triscreen path) it is the metric at one lambda, by default the one of the lowest held-out error.

    Example: triscreen transform wine.model wine -o wine.csv
    """
    import numpy as np

    from triscreen._utils.archive import replacing
    from triscreen.datasets.text import escaped

    check_files({"model": model, "data": data}, {"output": output})
    scaling, metric = parts_of(model, lam, paths=True, numbers=True)
    if components is not None and not 1 <= components <= len(metric.components_):
        raise InputError(f"components={components}: the model has {len(metric.components_)} directions")
    if keep and output is not None and output.suffix == ".npy":
        raise InputError(f"keep={keep[0]!r}: an npy file holds numbers only, write a CSV to carry columns along")
    points = points_of(
        data, scaling, how_to_read(label, drop, header, missing, decimal=decimal, keep=keep), labelled=False
    )
    Z = mapped(scaling, metric, points.X, components)
    if output is not None and output.suffix == ".npy":
        with replacing(output) as stream:
            np.save(stream, Z)
        return
    labels = None if points.y is None else [escaped(label) for label in points.y.tolist()]
    with nullcontext(sys.stdout.buffer) if output is None else replacing(output) as stream:
        kept = {escaped(title): [escaped(cell) for cell in cells] for title, cells in points.kept.items()}
        _write_csv(stream, Z, labels, points.label_name and escaped(points.label_name), kept)


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
    retrieval: Annotated[
        bool, typer.Option("--retrieval", help="Judge it as a search: points of the same label are to be found.")
    ] = False,
    at: Annotated[
        list[int], typer.Option(help="Of a search, how many of the nearest count; can be given again.", min=1)
    ] = [1, 5, 10],  # noqa: B006
    comparisons: Comparisons = None,
    names: Names = None,
    label: Label = None,
    drop: Drop = [],  # noqa: B006
    header: Header = None,
    missing: Absent = None,
    decimal: Sign = Decimal.point,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
):
    """Compare the error of the nearest neighbours before (scaled Euclid) and after; leave-one-out without --train.

    With --comparisons: the share that each has in the right order. With --retrieval: precision, recall, nDCG and mean
    reciprocal rank of a search, each point looking among the others, or DATA among the points of --train. On what the
    model was learned from, expect what comes after to be too good; hold something out.

    Example: triscreen evaluate wine.model wine
    """
    refuse_idle(ctx)
    scaling, metric = parts_of(model)
    choice = how_to_read(label, drop, header, missing, decimal=decimal)
    if comparisons is not None:
        points = points_of(data, scaling, choice, labelled=False, names=names)
        text, told = _judge_by_comparisons(points, comparisons, scaling, metric)
        what, n = "right", told["n_comparisons"]
        if told["n_learned_from"] and not quiet:
            say(
                f"{told['n_learned_from']:,} of these {told['n_comparisons']:,} comparisons are among those that the "
                "model was learned from: they flatter it, judge it by others"
            )
    elif retrieval:
        points, known = _judged(data, train, scaling, choice, quiet=quiet)
        if known is None and not quiet:
            say("points that the model was learned from flatter it: judge it by others, with --train")
        return _judge_search(points, known, scaling, metric, at, json)
    else:
        points, known = _judged(data, train, scaling, choice, quiet=quiet)
        text, told = _judge_by_neighbours(points, known, scaling, metric, neighbors)
        what, n = "error", told["n_points"]
        if known is None and not quiet:
            say("points that the model was learned from flatter it: judge it by others, with --train")
    from triscreen.selection.votes import interval

    times = ("before", "after")
    shares = [told[f"{what}_{when}"] for when in times]
    between = [interval(share, n) for share in shares]
    if json:
        answer({**told, **{f"{what}_{when}_interval": ends for when, ends in zip(times, between, strict=True)}})
        return
    print(text)
    rows = [[what, *(f"{share:.2%}" for share in shares)], ["points" if what == "error" else "comparisons",
            *(f"{share * n:,.0f} of {n:,}" for share in shares)],
            ["95 % interval", *(f"{low:.2%} to {high:.2%}" for low, high in between)]]  # fmt: skip
    table(["", *times], rows)


def _judge_by_comparisons(points, comparisons, scaling, metric):
    """Return (what it is, all of it for machines: the shares in the right order before and after)."""
    import numpy as np

    from triscreen.datasets.seals import seals
    from triscreen.selection import comparison_error

    rows = compared(comparisons, points)
    Z = scaling.transform(points.X)
    before, after = 1 - comparison_error(Z, rows), 1 - comparison_error(metric.transform(Z), rows)
    known = np.isin(seals(points.X, rows), getattr(metric, "seals_", ()))
    told = {
        "n_comparisons": len(rows),
        "n_learned_from": int(known.sum()),
        "right_before": before,
        "right_after": after,
    }
    return f"share of {len(rows):,} comparisons in the right order", told


def _judged(data, train, scaling, choice, quiet):
    """Return (the points to classify, those that classify them, or None: the others)."""
    if train == data:
        raise InputError(f"train={train!r} is the data itself: without --train each point is classified by the others")
    points = points_of(data, scaling, choice, labelled=True, quiet=quiet)
    if train is None:
        if len(points.X) < 2:
            raise InputError(f"source={points.name!r} has one point only: without --train others have to classify it")
        return points, None
    known = points_of(train, scaling, choice, labelled=True, quiet=quiet)
    if known.y.dtype.kind != points.y.dtype.kind:
        raise InputError(f"train={train!r} has labels of another type than data={data!r}: both text, or both numbers")
    return points, known


def _judge_by_neighbours(points, known, scaling, metric, k):
    """Return (what it is, all of it for machines: the errors before and after)."""
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
    return text, told


def _judge_search(points, known, scaling, metric, sizes, json):
    """Print what a search finds before and after."""
    from triscreen.selection.retrieval import retrieval_scores

    corpus = points if known is None else known
    queries = () if known is None else (scaling.transform(points.X), points.y)
    with about(points.name):
        told = retrieval_scores(scaling.transform(corpus.X), corpus.y, *queries, metric=metric, k=sizes)
    if json:
        answer(told)
        return
    without = f"; {told['n_without']:,} more have none of their label to find" if told["n_without"] else ""
    print(f"{told['n_queries']:,} queries among {len(corpus.X):,} points{without}")
    shares = {name: "-" if share is None else f"{share:+.1%}" for name, share in told["headroom"].items()}
    rows = [
        [name, *(f"{told[part][name]:.4f}" for part in ("before", "after", "most")), shares[name]]
        for name in told["before"]
    ]
    table(["", "before", "after", "most", "of the headroom"], rows)


def _write_csv(stream, Z, labels, title, kept):
    """Write rows to a stream of bytes, in UTF-8 whatever the locale: columns that are kept, coordinates, labels."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    try:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(
            [*kept, *(f"z{number}" for number in range(Z.shape[1]))] + [title or "label"] * (labels is not None)
        )
        first = zip(*kept.values(), strict=True) if kept else [()] * len(Z)
        last = [()] * len(Z) if labels is None else zip(labels, strict=True)
        writer.writerows([*some, *row, *label] for some, row, label in zip(first, Z.tolist(), last, strict=True))
        text.flush()
    finally:
        text.detach()
