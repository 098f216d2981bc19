"""Options that several commands have, and which of them have no effect when."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from triscreen._utils.validation import shortened
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


DATA = (
    "A CSV, TSV, npz, npy, svmlight or parquet file, or X.npy,y.npy; a folder of X-*.npy with y-*.npy; - for standard "
    "input; or iris, wine, digits, breast_cancer."
)
Data = Annotated[str, typer.Argument(help=DATA, show_default=False)]
Label = Annotated[
    str, typer.Option(help="Column of the labels: its name, or its number from 0 (-1: the last).", show_default=False)
]
Drop = Annotated[list[str], typer.Option(help="A column to leave out; can be given again.", show_default=False)]
Header = Annotated[
    bool, typer.Option("--header/--no-header", help="Does the first row hold names?", show_default="looked at")
]
Names = Annotated[str, typer.Option(help="Column with names of points, for comparisons by name.", show_default=False)]
Comparisons = Annotated[
    str,
    typer.Option(
        help="CSV of three columns, 'a is closer to b than to c': row numbers from 0, or names (see --names).",
        show_default=False,
    ),
]
Scheduler = Annotated[
    str, typer.Option(help="Work on the Dask cluster at this address, such as tcp://host:8786.", show_default=False)
]
Workers = Annotated[
    int, typer.Option(help="Work on so many processes of this machine, by Dask.", min=1, show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]


# (command, when, what is then the case, options without effect): given all the same, they are refused. --dry-run,
# --quiet and --debug may stand beside anything: they are added to commands that are complete without them.
IDLE = (
    ("path", lambda p: p["comparisons"] is not None, "--comparisons", ("k", "triplets")),
    ("path", lambda p: p["comparisons"] is None, "labels (for --comparisons only)", ("names",)),
    ("path", lambda p: p["triplets"] == Triplets.all, "--triplets all", ("k",)),
    ("path", lambda p: p["guarantee"] is not None, "--guarantee", ("ratio",)),
    ("path", lambda p: p["validate"] is not None, "--validate", ("test_share", "seed")),
    ("path", lambda p: p["scheduler"] is not None, "--scheduler", ("workers", "prior", "memory")),
    ("path", lambda p: p["workers"] is not None, "--workers", ("prior", "memory")),
    ("path", lambda p: p["test_share"] == 0, "--test-share 0", ("seed",)),
    (
        "fit",
        lambda p: p["comparisons"] is not None,
        "--comparisons",
        ("k", "triplets", "rounds", "cv", "checkpoint", "candidates", "certify"),
    ),
    ("fit", lambda p: p["comparisons"] is None, "labels (for --comparisons only)", ("names",)),
    ("fit", lambda p: p["lam"] is not None, "--lam", ("cv", "checkpoint", "candidates", "certify")),
    ("fit", lambda p: p["lam_ratio"] is not None, "--lam-ratio", ("cv", "checkpoint", "candidates", "certify")),
    ("fit", lambda p: p["candidates"] is not None, "--candidates", ("prior",)),
    ("fit", lambda p: p["triplets"] == Triplets.all, "--triplets all", ("k", "rounds")),
    ("evaluate", lambda p: p["comparisons"] is not None, "--comparisons", ("train", "neighbors")),
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
                value = value.value if isinstance(value, Enum) else str(value)
                raise InputError(f"{name}={shortened(value)}: it has no effect with {case}, leave it out")
