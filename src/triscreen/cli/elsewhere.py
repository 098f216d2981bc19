"""``triscreen predict`` and ``triscreen export``: decisions for new points, and models for other programs."""

from __future__ import annotations

import csv
import io
import sys
from contextlib import nullcontext
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from triscreen.cli.common import about, answer, command, from_file, how_to_read, say
from triscreen.cli.model import Lam, ModelOrPath, check_components, load_model, of_path, points_of
from triscreen.cli.options import (
    Absent,
    Data,
    Debug,
    Decimal,
    Drop,
    Header,
    Json,
    Keep,
    Label,
    Quiet,
    Sign,
    refuse_idle,
)
from triscreen.cli.outputs import check_files
from triscreen.errors import InputError


class Format(str, Enum):
    """Formats of `triscreen.export`."""

    onnx, npz, safetensors, faiss = "onnx", "npz", "safetensors", "faiss"
    sentence_transformers = "sentence-transformers"


class Precision(str, Enum):
    """Types of numbers."""

    float32, float64 = "float32", "float64"


@command
def predict(
    model: Annotated[Path, typer.Argument(help="What triscreen fit --classifier has written.", show_default=False)],
    data: Data,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV file; by default stdout.", show_default=False)
    ] = None,
    label: Label = None,
    drop: Drop = [],  # noqa: B006
    keep: Keep = [],  # noqa: B006
    header: Header = None,
    missing: Absent = None,
    decimal: Sign = Decimal.point,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
):
    """Say which class each point is of, and what share of the votes each class has.

    The columns are those that are carried along (--keep, --label), then "predicted", then one for each class. Where
    the data have labels of known classes, a line on stderr (and --json) says how many points were classified wrongly.

    Example: triscreen predict wine.model new.csv -o predicted.csv
    """
    import numpy as np

    from triscreen._utils.archive import replacing
    from triscreen.datasets.text import escaped

    check_files({"model": model, "data": data}, {"output": output})
    if json and output is None:
        raise InputError("output is not given: with --json stdout has numbers only, write predictions with -o FILE")
    found = load_model(model)
    _check_classifier(found, model)
    choice = how_to_read(label, drop, header, missing, decimal=decimal, keep=keep)
    first = next(step for _, step in found.steps if not isinstance(step, str))
    points = points_of(data, first, choice, labelled=False, quiet=quiet)
    with about(points.name):
        shares = found.predict_proba(points.X)
    classes = np.asarray(found.classes_)
    decided = classes[shares.argmax(axis=1)]
    titles = [str(name) for name in classes.tolist()]
    kept = list(points.kept.items())
    if points.y is not None:
        kept.append((points.label_name or "label", points.y.tolist()))
    columns = [(escaped(str(title)), [escaped(value) for value in column]) for title, column in kept]
    columns.append(("predicted", [escaped(value) for value in decided.tolist()]))
    columns += [(escaped(f"share {title}"), shares[:, c].tolist()) for c, title in enumerate(titles)]
    with nullcontext(sys.stdout.buffer) if output is None else replacing(output) as stream:
        _write_columns(stream, columns)
    told = {"n_points": len(shares), "classes": titles, "n_learned_from": _known(found, points.X),
            **_error(points.y, decided, classes)}  # fmt: skip
    if json:
        answer({"output": str(output), "source": points.name, **told})
    elif not quiet:
        if "error" in told:
            low, high = told["error_interval"]
            say(f"{told['n_wrong']:,} of {told['n_labelled']:,} points with a label were classified wrongly: "
                f"{told['error']:.1%} (95 % interval {low:.1%} to {high:.1%})")  # fmt: skip
            if told["n_learned_from"]:
                say(f"{told['n_learned_from']:,} of these points vote for themselves, the model was learned from them: "
                    "they flatter it, judge it by others")  # fmt: skip
        if output is not None:
            say(f"wrote {str(output)!r}")


@command
def export(
    ctx: typer.Context,
    model: ModelOrPath,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write; sentence-transformers: folder.", show_default=False)
    ],
    to: Annotated[
        Format | None, typer.Option(help="By default what the name of the output ends with.", show_default=False)
    ] = None,
    lam: Lam = None,
    components: Annotated[
        int | None, typer.Option(help="The most important so many directions only.", show_default=False)
    ] = None,
    dtype: Annotated[
        Precision | None,
        typer.Option(help="Of the numbers; by default float64 for npz, float32 otherwise.", show_default=False),
    ] = None,
    quiet: Quiet = False,
    debug: Debug = False,
):
    """Write what transform does, scaling included, for other programs; of a path the metric at one lambda.

    npz, safetensors: shift, matrix, offset, with z = (x - shift) @ matrix + offset. faiss: an empty index for points as
    they are. sentence-transformers: the folder of a Dense module. Points are the numbers that features have become:
    npz, safetensors and onnx hold their names. Without --to, an output whose name ends otherwise is refused, except
    that a path then becomes a model of triscreen (--to is for other programs), which knows columns, too.

    Example: triscreen export wine.path --lam best -o wine.onnx
    """
    refuse_idle(ctx)
    from triscreen.estimators.exports import FORMATS, check_format, export, prepared

    check_files({"model": model}, {"output": output}, folders=("output",) if _is_folder(to) else ())
    found = load_model(model)
    as_model = to is None and output.suffix.lstrip(".") not in FORMATS and hasattr(found, "lambdas")
    kind = None if as_model else check_format(output, to and to.value)
    made = of_path(found, lam, model)
    check_components(made, components)
    if as_model:
        import triscreen as ts

        if components is not None:
            made[-1].set_params(n_components=components)
        if dtype is not None:
            raise InputError(f"dtype={dtype.value}: it has no effect with a model of triscreen, leave it out")
        ts.save(made, output)
    else:
        with from_file(model, "model", refusals=True):
            export(made, output, kind, None if dtype is None else dtype.value)
            made_of = prepared(made)
        if made_of and not quiet:
            say(_expected(made_of, made[0].feature_names_in_))
        if hasattr(made, "predict_proba") and not quiet:
            say(f"it does what triscreen transform does: the votes that decide about classes stay in {str(model)!r}")
    if not quiet:
        say(f"wrote {str(output)!r}")


def _expected(columns, names):
    """Return in a sentence what an exported model takes, where that is not the columns of a file."""
    from triscreen.datasets.table import cut

    kinds = {"categories": "category", "true or false": "boolean", "dates": "date"}
    told = {what: [str(title) for title, kind in columns if kind == of] for what, of in kinds.items()}
    parts = [f"{what} ({cut(', '.join(titles), 200)})" for what, titles in told.items() if titles]
    if len(columns) > sum(map(len, told.values())):
        parts.append("gaps")
    listed = ", ".join(names) if len(names) <= 12 else f"{', '.join(names[:10])} ... {names[-1]}"
    return (
        f"it takes {len(names)} numbers in this order: {cut(listed, 300)}; {', '.join(parts)} are to be made numbers "
        "before that, as triscreen transform does"
    )


def _is_folder(to):
    return to is Format.sentence_transformers


def _check_classifier(found, file):
    """Refuse what cannot predict, and say what it is instead."""
    if hasattr(found, "lambdas"):
        raise InputError(
            f"model={str(file)!r} holds a path: it measures distances and knows no classes; make a classifier with "
            "triscreen fit --classifier"
        )
    if not hasattr(found, "predict_proba"):
        raise InputError(
            f"model={str(file)!r} is a metric only: it measures distances and knows no classes; make a classifier with "
            "triscreen fit --classifier"
        )


def _error(y, decided, classes):
    """Return how many labelled points are classified wrongly, with Wilson's interval; {} where labels are others."""
    import numpy as np

    from triscreen.selection.votes import interval

    if y is None or not set(map(str, np.unique(y).tolist())) <= set(map(str, classes.tolist())):
        return {}
    wrong = sum(str(a) != str(b) for a, b in zip(y.tolist(), decided.tolist(), strict=True))
    share = wrong / len(y)
    return {"n_labelled": len(y), "n_wrong": wrong, "error": share, "error_interval": interval(share, len(y))}


def _known(model, X):
    """Return how many points are among those that vote."""
    last = model.steps[-1][1]
    if not hasattr(last, "points_"):
        return 0
    Z = last._embedded(model[:-1].transform(X) if len(model.steps) > 1 else X).astype(last.points_.dtype, copy=False)
    voting = {row.tobytes() for row in last.points_}
    return sum(row.tobytes() in voting for row in Z)


def _write_columns(stream, columns):
    """Write columns to a stream of bytes as CSV, in UTF-8 whatever the locale."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    try:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([title for title, _ in columns])
        writer.writerows(zip(*(values for _, values in columns), strict=True))
        text.flush()
    finally:
        text.detach()
