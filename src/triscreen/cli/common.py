"""What all commands share: messages, exit codes, time."""

from __future__ import annotations

import errno
import functools
import json
import os
import re
import sys
import time
import traceback
import warnings
from contextlib import contextmanager, suppress

import typer

from triscreen._utils.progress import in_lines
from triscreen.cli import signals
from triscreen.errors import (
    ClusterError,
    ConvergenceWarning,
    DegenerateProblemWarning,
    InputError,
    MissingPackage,
    OutOfTime,
    SmallClassWarning,
)

CLOSED_PIPE = 141


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
        try:
            signals.enter("running")
            with suppress(AttributeError):  # a message is never lost to an encoding
                sys.stdout.reconfigure(errors="backslashreplace")
            with _warnings_in_one_line(), in_lines():
                code = function(**arguments) or 0
                sys.stdout.flush()
        except typer.Exit:
            raise
        except BaseException as err:
            code = _told(err, arguments.get("debug"))
        signals.enter("ended")
        raise typer.Exit(code)

    return run


def _told(err, debug):
    """Say in one line why a command ended, and return its exit code."""
    signals.enter("ended")
    if isinstance(err, BrokenPipeError):
        _leave_stdout()
        return CLOSED_PIPE
    if signals.stopped(err):
        say(str(err) if type(err) is KeyboardInterrupt and err.args else "interrupted")
        return signals.code()
    if not isinstance(err, Exception):
        raise err
    if isinstance(err, OSError):
        try:
            sys.stdout.flush()
        except OSError:  # it is on a full disk itself
            _leave_stdout()
    if debug:
        traceback.print_exception(err)
    code, text = _explained(err)
    say(text, "error")
    return code


def _leave_stdout():
    """See to it that nothing is left to flush at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _explained(err):
    """Return (exit code, one sentence) of an error."""
    text = " ".join(str(err).split())
    if isinstance(err.__cause__, OSError) and err.__cause__.errno in (
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EROFS,
        errno.EIO,
    ):
        return 1, text
    if isinstance(err, InputError) or _refused_by_sklearn(err):
        return 2, text
    if isinstance(err, OSError):
        return 1, f"{err.filename!r}: {err.strerror}" if err.filename else err.strerror or text or type(err).__name__
    if isinstance(err, OutOfTime | ClusterError):
        return 1, text
    if isinstance(err, MemoryError):
        return 1, "there is not enough memory; --dry-run says how much is needed, --memory sets a limit"
    return 1, f"{type(err).__name__}: {text} (this should not happen; --debug shows where)"


def _refused_by_sklearn(err):
    """Tell whether scikit-learn raised this ValueError, about an argument."""
    if not isinstance(err, ValueError) or err.__traceback__ is None:
        return False
    last = err.__traceback__
    while last.tb_next is not None:
        last = last.tb_next
    return last.tb_frame.f_globals.get("__name__", "").split(".")[0] == "sklearn"


class Clock:
    """The seconds that a command may take, from now on; None: as many as it likes."""

    def __init__(self, max_seconds):
        from triscreen._utils.validation import as_positive

        self.limit, self.begin = as_positive(max_seconds, "max_seconds", none="no limit"), time.perf_counter()

    def spent(self):
        """Return the seconds since the beginning."""
        return time.perf_counter() - self.begin

    @contextmanager
    def named(self):
        """Within, an end for lack of time names the seconds that were asked for, not those that were left."""
        try:
            yield
        except OutOfTime as err:
            raise OutOfTime(re.sub(r"^max_seconds=[^:]*", f"max_seconds={self.limit:g}", str(err))) from None

    @contextmanager
    def ending(self, what):
        """Within, work ends when the seconds are over, but not in its first one; what: has been going on."""
        from triscreen._utils.threads import deadline

        try:
            with deadline(None if self.limit is None else max(self.left(), 1.0)):
                yield
        except OutOfTime:
            raise OutOfTime(f"max_seconds={self.limit:g}: it was over while {what}; allow more") from None

    def refuse_nothing(self, metrics, stopped_by):
        """End with a sentence where the time was over before there was any metric to write."""
        if stopped_by == "max_seconds" and not any(M.any() for M in metrics):
            raise OutOfTime(f"max_seconds={self.limit:g}: it was over before there was a metric; allow more")

    def left(self):
        """Return the seconds that are left, a little more than 0 at least, or None."""
        return None if self.limit is None else max(self.limit - self.spent(), 1e-3)


@contextmanager
def from_file(file, name, refusals=False):
    """Within, errors of any class come from a file whose checksums are right but which triscreen has not written so.

    refusals: those that are meant for the user (`InputError`) are about what is done with the file, not about the file.
    """
    try:
        yield
    except (MemoryError, OSError, MissingPackage):
        raise
    except Exception as err:
        if isinstance(err, InputError) and (str(file) in str(err) or (refusals and re.match(r"\w+=", str(err)))):
            raise
        if isinstance(err, InputError) and refusals:
            raise InputError(f"{name}={str(file)!r}: {err}") from err
        why = " ".join(str(err).split()) or type(err).__name__
        raise InputError(f"{name}={str(file)!r} holds what triscreen has not written ({why:.80})") from err


@contextmanager
def about(source):
    """Within, a refusal that is about no argument is about the data: it gets their name."""
    try:
        yield
    except ValueError as err:
        code, text = _explained(err)
        of_argument = isinstance(err, InputError) and (re.match(r"\w+=", text) or "checkpoint=" in text)
        if code != 2 or of_argument:
            raise
        raise InputError(f"source={str(source)!r}: {text}") from err


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


def as_utf8(word):
    """Return a word of the command line as UTF-8 has it, as data do, where the locale has something else."""
    try:
        return os.fsencode(word).decode("utf-8")
    except (TypeError, UnicodeDecodeError):  # None; or it was no UTF-8
        return word


def file_of(names):
    """Return the file that --names is, or None where it is a column."""
    return names if names is not None and os.path.isfile(names) else None


def how_to_read(label, drop, header, missing=None, categories=(), dates=(), decimal=None, keep=()):
    """Return the options of a command that say how a table is read, as `read` takes them."""
    return {
        "label": as_utf8(label),
        "drop": [as_utf8(column) for column in drop],
        "header": header,
        "missing": None if missing is None else missing.value,
        "categories": [as_utf8(column) for column in categories],
        "dates": [as_utf8(column) for column in dates],
        "decimal": "." if decimal is None else decimal.value,
        "keep": [as_utf8(column) for column in keep],
    }


def read(source, quiet=False, **choice):
    """Return the points of a source, and say on stderr which column was taken for the labels if nobody said so."""
    from triscreen.datasets import read_points
    from triscreen.datasets.points import look_like_codes, look_like_ids, wide_categories

    choice["names"] = as_utf8(choice.get("names"))
    points = read_points(source, **choice)
    guessed = points.label is not None and choice.get("label") is None and points.label.startswith("column")
    if guessed and not quiet:
        say(f"labels are {points.label} of {points.name} (--label takes another)")
    if points.rows is not None and not quiet:
        say(f"{points.n_rows - len(points.rows):,} of {points.n_rows:,} rows of {points.name} lack a value: left out")
    for title in look_like_ids(points) if choice.get("features") is None else ():  # a model knows what it wants
        text = f"column {title!r} of {points.name} tells rows apart, but is taken for a feature"
        say(f"{text}: --drop {title} leaves it out", "warning")
    for title in look_like_codes(points) if choice.get("features") is None else ():
        text = f"column {title!r} of {points.name} looks like codes, but is taken for a measurement"
        say(f"{text}: --categories {title} takes each code for itself, --drop {title} leaves it out", "warning")
    for title, n in wide_categories(points) if choice.get("features") is None else ():
        which = "a column" if title is None else f"column {title!r}"
        say(
            f"{which} of {points.name} becomes {n} features, one for each value: the more features, the longer",
            "warning",
        )
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


def values(title, numbers, stderr=False):
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
