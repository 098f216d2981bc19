"""How far long work is: a bar on a terminal, one line in a notebook, silence elsewhere.

There is one at a time: work inside other work that shows itself, or that is to be silent, shows nothing of its own. A
search inside of it leaves a note there.
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import ExitStack, contextmanager, nullcontext
from contextvars import ContextVar

_silent = ContextVar("silent", default=False)
_around = ContextVar("around", default=None)  # what shows the work around, if anything does
_PATIENCE = 2.0  # seconds that a search takes before it is shown


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

    Told a text, it leaves that as a note; told a number, that is the step it is at.

    Parameters
    ----------
    title : str
    total : int, optional
        How many steps there are at most, if that is known.
    """
    if _silent.get():
        yield _nothing
        return
    with _display(title, total) as show, silent():
        token = _around.set(show)
        try:
            yield show
        finally:
            _around.reset(token)


@contextmanager
def searching(title):
    """Give a function that is told the share of a search that is done, by any thread.

    After a few seconds it is shown: by a note in the bar of the work around, or by a bar of its own. Only the thread
    that has called this shows something.
    """
    begin, owner, around, bar = time.perf_counter(), threading.get_ident(), _around.get(), None
    with ExitStack() as stack:

        def tell(share):
            nonlocal bar
            if threading.get_ident() != owner or time.perf_counter() - begin < _PATIENCE:
                return
            if around is not None:
                around(f"{title} {share:.0%}")
            elif not _silent.get():
                bar = bar or stack.enter_context(_display(title, 100))
                bar(100 * share)

        yield tell


def _nothing(state):
    """Show nothing."""


def _place(state, done):
    """Return the step that work is at after it was at ``done``."""
    if isinstance(state, str):
        return done
    return state if isinstance(state, float) else done + 1


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
    if isinstance(state, str | float):
        return state if isinstance(state, str) else ""
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
        at = bar.tasks[0]
        yield lambda state: bar.update(task, completed=_place(state, at.completed), told=_told(state))


@contextmanager
def _line(title, total):
    """One line below a notebook's cell that is written anew (rich would need ipywidgets for that)."""
    from IPython.display import display

    handle = display({"text/plain": title}, raw=True, display_id=True)
    done, begin, last = 0, time.perf_counter(), 0.0

    def show(state):
        nonlocal done, last
        done = _place(state, done)
        now = time.perf_counter() - begin
        if now - last < 0.25:
            return
        last = now
        left = "" if total is None or not done else f", {now / done * (total - done):.0f} s left at most"
        place = f"{done:.0f}" if total is None else f"{done:.0f}/{total}"
        handle.update({"text/plain": f"{title} {place}  {_told(state)}  {now:.0f} s{left}"}, raw=True)

    try:
        yield show
    finally:
        handle.update({"text/plain": ""}, raw=True)
