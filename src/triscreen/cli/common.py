"""What all commands share: options, messages, exit codes, progress."""

from __future__ import annotations

import functools
import json
import os
import re
import sys
import traceback
import warnings
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from shutil import rmtree
from typing import Annotated

import typer

from triscreen.errors import ConvergenceWarning, DegenerateProblemWarning, InputError, SmallClassWarning

CLOSED_PIPE, INTERRUPTED = 141, 130


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
    "A CSV, TSV, npz, npy, svmlight or parquet file, or X.npy,y.npy; - for standard input; or iris, wine, digits, "
    "breast_cancer."
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
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]


def say(text, kind=None):
    """Print one line on stderr."""
    print(f"triscreen: {kind}: {text}" if kind else f"triscreen: {text}", file=sys.stderr, flush=True)


def answer(value):
    """Print one JSON object on stdout; what JSON has no number for is null."""
    print(json.dumps(_plain(value), allow_nan=False))


def _plain(value):
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and value - value != 0 else value


def command(function):
    """Make a function a command: one sentence for each error, an exit code that scripts can trust.

    The function returns the exit code, or None for 0.
    """

    @functools.wraps(function)
    def run(**arguments):
        code = 1
        try:
            with _warnings_in_one_line():
                code = function(**arguments) or 0
                sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is left to flush at exit
            code = CLOSED_PIPE
        except KeyboardInterrupt as err:
            say(str(err) if type(err) is KeyboardInterrupt and err.args else "interrupted")
            code = INTERRUPTED
        except typer.Exit:
            raise
        except Exception as err:
            if arguments.get("debug"):
                traceback.print_exc()
            code, text = _explained(err)
            say(text, "error")
        raise typer.Exit(code)

    return run


def _explained(err):
    """Return (exit code, one sentence) of an error."""
    text = " ".join(str(err).split())
    if isinstance(err, InputError):
        return 2, text
    if isinstance(err, OSError):
        return 1, f"{err.filename!r}: {err.strerror}" if err.filename else text or type(err).__name__
    if isinstance(err, MemoryError):
        return 1, "there is not enough memory; --dry-run says how much is needed, --memory sets a limit"
    if isinstance(err, ValueError):  # of scikit-learn, about an argument
        return 2, text
    return 1, f"{type(err).__name__}: {text} (this should not happen; --debug shows where)"


@contextmanager
def _warnings_in_one_line():
    seen = set()

    def show(message, *_, **__):
        text = " ".join(str(message).split())
        if text not in seen:
            seen.add(text)
            say(text, "warning")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for category in (ConvergenceWarning, DegenerateProblemWarning, SmallClassWarning):
            warnings.simplefilter("always", category)
        warnings.showwarning = show
        yield


def as_bytes(text):
    """Return a number of bytes from a text such as 500MB, 2GB or 1.5GiB; None stays None."""
    if text is None:
        return None
    found = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*(?:([kmgt]?)(i?)b?)?\s*", text.lower())
    try:
        number = float(found.group(1))
    except (AttributeError, ValueError):
        raise InputError(f"memory={text!r}: it must be a number of bytes, such as 500MB or 2GB") from None
    return number * (1024 if found.group(3) else 1000) ** (" kmgt".index(found.group(2) or " "))


def in_words(seconds):
    """Return a time in a few words."""
    for length, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.2g} seconds"


def read(source, quiet=False, **choice):
    """Return the points of a source, and say on stderr which column was taken for the labels if nobody said so."""
    from triscreen.datasets import read_points

    points = read_points(source, **choice)
    guessed = points.label is not None and choice.get("label") is None and points.label.startswith("column")
    if guessed and not quiet:
        say(f"labels are {points.label} of {points.name} (--label takes another)")
    return points


def table(names, rows, marked=None, stderr=False):
    """Print a table of numbers; marked: the row that stands out."""
    from rich.console import Console
    from rich.table import Table

    made = Table()
    for name in names:
        made.add_column(name, justify="right")
    for number, row in enumerate(rows):
        made.add_row(*map(str, row), style="bold green" if number == marked else None)
    Console(stderr=stderr).print(made)


def facts(title, numbers, stderr=False):
    """Print names and values, one a line."""
    from rich.console import Console
    from rich.table import Table

    made = Table("", title)
    for name, value in numbers.items():
        if isinstance(value, int) and not isinstance(value, bool):
            value = f"{value:,}"
        elif isinstance(value, float):
            value = f"{value:.4g}"
        made.add_row(name.replace("_", " "), str(value))
    Console(stderr=stderr).print(made)


@contextmanager
def progress(title, total=None, quiet=False):
    """Give a callback for `solve` or `solve_path` that shows lambda, gap, share decided and time left on a terminal.

    total: how many steps there are at most.
    """
    from triscreen.path.progress import silent

    if quiet or not sys.stderr.isatty():
        with silent():
            yield lambda _: None
        return
    from rich import progress as parts
    from rich.console import Console

    columns = [  # 80 signs wide
        parts.TextColumn(title),
        parts.BarColumn(bar_width=8),
        parts.TextColumn("{task.completed:.0f}" + ("" if total is None else "/{task.total:.0f}")),
        parts.TextColumn("lambda {task.fields[lam]:.2g} gap {task.fields[gap]:.1e}{task.fields[decided]}"),
        parts.TextColumn("left <"),
        parts.TimeRemainingColumn(),
    ]
    console = Console(stderr=True)
    with silent(), parts.Progress(*columns, console=console, transient=True, refresh_per_second=4) as bar:
        task = bar.add_task(title, total=total, lam=0.0, gap=1.0, decided="")

        def seen(state):
            rate = getattr(state, "screening_rate", None)
            decided = "" if rate is None else f" screened {rate:.1%}"
            bar.update(task, advance=1, lam=state.lam, gap=state.rel_gap, decided=decided)

        yield seen


class Resumable:
    """A folder to go on from; without a name of its own it is removed when all is done, unless ``keep`` is set.

    It is a context manager, inside of which Ctrl-C gets a sentence that says what is kept.
    """

    def __init__(self, checkpoint, output, quiet=False):
        self.named, self.keep = checkpoint is not None, False
        self.folder = Path(checkpoint if self.named else f"{output}.checkpoint")
        if self._has_entries() and not quiet:
            say(f"going on from {str(self.folder)!r}")

    def _has_entries(self):
        return any(self.folder.rglob("[0-9]*.tsc"))

    def __enter__(self):
        return self

    def __exit__(self, kind, err, _):
        interrupted = isinstance(err, KeyboardInterrupt)
        if not self.named and ((err is None and not self.keep) or (interrupted and not self._has_entries())):
            rmtree(self.folder, ignore_errors=True)
        if interrupted and self._has_entries():
            what = f"interrupted, what is done is kept in {str(self.folder)!r}"
            raise KeyboardInterrupt(f"{what}; the same command goes on from there") from None
        if isinstance(err, InputError) and str(err).startswith("checkpoint="):
            raise InputError(f"{err}, or remove this one to begin anew") from None
