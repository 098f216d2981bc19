"""How far long work is: a bar on a terminal, one line in a notebook, silence elsewhere.

There is one at a time: work inside other work that shows itself, or that is to be silent, shows nothing of its own.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar

_silent = ContextVar("silent", default=False)


@contextmanager
def silent(wanted=True):
    """Show no progress inside, if that is wanted."""
    token = _silent.set(bool(wanted) or _silent.get())
    try:
        yield
    finally:
        _silent.reset(token)


@contextmanager
def progress(title, total=None):
    """Give a function that shows a `State` or a `PathState`, to be called after each step.

    Parameters
    ----------
    title : str
    total : int, optional
        How many steps there are at most, if that is known.
    """
    with nullcontext(_nothing) if _silent.get() else _display(title, total) as show, silent():
        yield show


def _nothing(state):
    """Show nothing."""


def _display(title, total):
    if _in_notebook():
        return _line(title, total)
    if sys.stderr is not None and sys.stderr.isatty():
        return _bar(title, total)
    return nullcontext(_nothing)


def _in_notebook():
    """Is there somebody who sees what is displayed, but no terminal?"""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _told(state):
    rate = getattr(state, "screening_rate", None)
    return f"lambda {state.lam:.3g} gap {state.rel_gap:.1e}" + ("" if rate is None else f" screened {rate:.1%}")


@contextmanager
def _bar(title, total):
    from rich import progress as parts
    from rich.console import Console

    columns = [  # 80 signs wide
        parts.TextColumn(title),
        parts.BarColumn(bar_width=8),
        parts.TextColumn("{task.completed:.0f}" + ("" if total is None else "/{task.total:.0f}")),
        parts.TextColumn("{task.fields[told]}"),
        *([parts.TimeElapsedColumn()] if total is None else [parts.TextColumn("left <"), parts.TimeRemainingColumn()]),
    ]
    with parts.Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=4) as bar:
        task = bar.add_task(title, total=total, told="")
        yield lambda state: bar.update(task, advance=1, told=_told(state))


@contextmanager
def _line(title, total):
    """One line below a notebook's cell that is written anew (rich would need ipywidgets for that)."""
    from IPython.display import display

    handle = display({"text/plain": title}, raw=True, display_id=True)
    done, begin, last = 0, time.perf_counter(), 0.0

    def show(state):
        nonlocal done, last
        done += 1
        now = time.perf_counter() - begin
        if now - last < 0.25:
            return
        last = now
        left = "" if total is None else f", {now / done * (total - done):.0f} s left at most"
        place = done if total is None else f"{done}/{total}"
        handle.update({"text/plain": f"{title} {place}  {_told(state)}  {now:.0f} s{left}"}, raw=True)

    try:
        yield show
    finally:
        handle.update({"text/plain": ""}, raw=True)
