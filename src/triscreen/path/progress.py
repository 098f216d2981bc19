"""A bar on a terminal and in a notebook, silence elsewhere."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from contextvars import ContextVar

_silent = ContextVar("silent", default=False)


@contextmanager
def silent(wanted=True):
    """Show no bar inside, if that is wanted."""
    token = _silent.set(bool(wanted) or _silent.get())
    try:
        yield
    finally:
        _silent.reset(token)


def _in_notebook():
    """Is there somebody who sees what is displayed, but no terminal?"""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def progress(total):
    """Give a function of (lam, rel_gap, rate), to be called after each lambda."""
    notebook = _in_notebook()
    if _silent.get() or not (notebook or sys.stderr.isatty()):
        yield lambda *_: None
        return
    from rich import progress as parts
    from rich.console import Console

    columns = [
        parts.TextColumn("path"),
        parts.BarColumn(bar_width=20),
        parts.MofNCompleteColumn(),
        parts.TextColumn("lambda {task.fields[lam]:.3g}  gap {task.fields[gap]:.1e}  decided {task.fields[rate]:.1%}"),
        parts.TimeElapsedColumn(),
        parts.TimeRemainingColumn(),
    ]
    with parts.Progress(*columns, console=Console(stderr=not notebook), transient=True, refresh_per_second=4) as bar:
        task = bar.add_task("path", total=total, lam=0.0, gap=0.0, rate=0.0)
        yield lambda lam, gap, rate: bar.update(task, advance=1, lam=lam, gap=gap, rate=rate)
