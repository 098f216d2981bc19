"""Options that several commands have, and which of them have no effect when."""

from __future__ import annotations

import shlex
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from triscreen._utils.words import shortened
from triscreen.errors import InputError


class Scale(str, Enum):
    """Names of scalings."""

    none, minmax, standard, libsvm = "none", "minmax", "standard", "libsvm"


class Triplets(str, Enum):
    """Kinds of triplets."""

    knn, lmnn, all = "knn", "lmnn", "all"


class Cone(str, Enum):
    """Kinds of metrics."""

    psd, diagonal = "psd", "diagonal"


class Missing(str, Enum):
    """What is done about missing values."""

    error, drop, median = "error", "drop", "median"


class Decimal(str, Enum):
    """The sign before the fraction of a number."""

    point, comma = ".", ","


DATA = (
    "A CSV, TSV, npz, npy, svmlight or parquet file, packed by gzip or not; X.npy,y.npy; a folder of X-*.npy with "
    "y-*.npy, or of *.parquet; - for standard input; or iris, wine, digits, breast_cancer."
)
Data = Annotated[str, typer.Argument(help=DATA, show_default=False)]
Label = Annotated[
    str, typer.Option(help="Column of the labels: its name, or its number from 0 (-1: the last).", show_default=False)
]
Drop = Annotated[list[str], typer.Option(help="A column to leave out; can be given again.", show_default=False)]
Absent = Annotated[
    Missing,
    typer.Option(
        "--missing",
        help="Missing values: error refuses them, drop leaves their rows out, median fills in the column's median.",
        show_default="error, or as the model was learned",
    ),
]
Categories = Annotated[
    list[str],
    typer.Option(
        help="A column of categories: each of its values becomes a feature of 0 or 1; can be given again; all: every "
        "column that holds text.",
        show_default=False,
    ),
]
Dates = Annotated[
    list[str],
    typer.Option(
        help="A column of dates (2024-12-31): they become days since 1970; can be given again; all: every such column.",
        show_default=False,
    ),
]
Sign = Annotated[Decimal, typer.Option("--decimal", help="Sign before the fraction of numbers in a text.")]
Keep = Annotated[
    list[str],
    typer.Option(help="A column to carry along that is no feature; can be given again.", show_default=False),
]
Header = Annotated[
    bool, typer.Option("--header/--no-header", help="Does the first row hold names?", show_default="looked at")
]
Names = Annotated[
    str, typer.Option(help="Column with names of points, or a file of names, one a line.", show_default=False)
]
Comparisons = Annotated[
    str,
    typer.Option(
        help="CSV of three columns, 'a is closer to b than to c', or with titles (or lines of JSON with keys) query, "
        "positive, negative: row numbers from 0, or names (see --names).",
        show_default=False,
    ),
]
Scheduler = Annotated[
    str, typer.Option(help="Work on the Dask cluster at this address, such as tcp://host:8786.", show_default=False)
]
Workers = Annotated[
    int, typer.Option(help="Work on so many processes of this machine, by Dask.", min=1, show_default=False)
]
Suspects = Annotated[
    Path,
    typer.Option(
        help="Write the points (or comparisons) that cost most as CSV: suspicious labels.", show_default=False
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]


# (command, when, what is then the case, options without effect): given all the same, they are refused. --dry-run,
# --quiet and --debug may stand beside anything: they are added to commands that are complete without them.
IDLE = (
    ("path", lambda p: p["comparisons"] is not None, "--comparisons", ("k", "triplets")),
    ("path", lambda p: p["comparisons"] is None, "labels (for --comparisons only)", ("names",)),
    ("path", lambda p: p["triplets"] == Triplets.all, "--triplets all", ("k", "suspects")),
    ("path", lambda p: p["triplets"] == Triplets.lmnn, "--triplets lmnn", ("suspects",)),
    ("path", lambda p: p["guarantee"] is not None, "--guarantee", ("ratio",)),
    ("path", lambda p: p["validate"] is not None, "--validate", ("test_share", "seed")),
    ("path", lambda p: p["scheduler"] is not None, "--scheduler", ("workers", "memory", "suspects")),
    ("path", lambda p: p["workers"] is not None, "--workers", ("memory", "suspects")),
    ("path", lambda p: p["test_share"] == 0, "--test-share 0", ("seed",)),
    (
        "fit",
        lambda p: p["comparisons"] is not None,
        "--comparisons",
        ("k", "triplets", "rounds", "checkpoint", "candidates", "certify", "classifier"),
    ),
    ("fit", lambda p: p["comparisons"] is None, "labels (for --comparisons only)", ("names",)),
    ("fit", lambda p: p["lam"] is not None, "--lam", ("cv", "checkpoint", "candidates", "certify", "classifier")),
    (
        "fit",
        lambda p: p["lam_ratio"] is not None,
        "--lam-ratio",
        ("cv", "checkpoint", "candidates", "certify", "classifier"),
    ),
    ("fit", lambda p: p["classifier"], "--classifier", ("certify",)),
    ("fit", lambda p: p["candidates"] is not None, "--candidates", ("prior",)),
    ("fit", lambda p: p["triplets"] == Triplets.all, "--triplets all", ("k", "rounds")),
    ("evaluate", lambda p: p["comparisons"] is not None, "--comparisons", ("train", "neighbors", "retrieval", "at")),
    ("evaluate", lambda p: p["retrieval"], "--retrieval", ("neighbors",)),
    ("evaluate", lambda p: not p["retrieval"], "neighbours that vote (for --retrieval only)", ("at",)),
    ("evaluate", lambda p: p["comparisons"] is None, "labels (for --comparisons only)", ("names",)),
    ("bench", lambda p: p["experiments"], "experiments", ("json",)),
)


def refuse_idle(ctx):
    """Refuse options that were given and would have no effect beside the others."""
    for command, when, case, names in IDLE:
        if command != ctx.info_name or not when(ctx.params):
            continue
        for name in names:
            if ctx.get_parameter_source(name).name != "DEFAULT":
                value = ctx.params[name]
                value = list(value) if isinstance(value, tuple) else value  # the first typers give these
                value = value.value if isinstance(value, Enum) else str(value)
                raise InputError(f"{name}={shortened(value)}: it has no effect with {case}, leave it out")


def as_typed(ctx):
    """Return the command with the options that were given, as a shell takes them."""
    words = ["triscreen", ctx.info_name]
    for option in ctx.command.params:
        if ctx.get_parameter_source(option.name).name != "COMMANDLINE":
            continue
        value = ctx.params[option.name]
        for each in value if isinstance(value, list | tuple) else [value]:
            text = str(each.value if isinstance(each, Enum) else each)
            if option.param_type_name == "argument":
                words.append(text)
            elif getattr(option, "is_flag", False):
                words += option.opts[:1] if each else option.secondary_opts[:1]
            else:
                words += [option.opts[0], text]
    return shlex.join(words)
