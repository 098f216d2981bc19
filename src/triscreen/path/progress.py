"""A bar on a terminal and in a notebook, silence elsewhere."""

from __future__ import annotations

import sys
import time
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


class _Line:
    """One line below a notebook's cell that is written anew (rich would need ipywidgets for that)."""

    def __init__(self, total):
        from IPython.display import display

        self.total, self.done, self.begin, self.last = total, 0, time.perf_counter(), 0.0
        self.handle = display({"text/plain": "path"}, raw=True, display_id=True)

    def write(self, text):
        self.handle.update({"text/plain": text}, raw=True)

    def __call__(self, lam, gap, rate):
        self.done += 1
        now = time.perf_counter() - self.begin
        if now - self.last < 0.25:
            return
        self.last = now
        left = "" if self.total is None else f", {now / self.done * (self.total - self.done):.0f} s left"
        said = f"lambda {lam:.3g}  gap {gap:.1e}  decided {rate:.1%}  {now:.0f} s{left}"
        self.write(f"path {self.done}/{self.total or '?'}  {said}")


@contextmanager
def progress(total):
    """Give a function of (lam, rel_gap, rate), to be called after each lambda."""
    if not _silent.get() and _in_notebook():
        line = _Line(total)
        try:
            yield line
        finally:
            line.write("")
        return
    if _silent.get() or not sys.stderr.isatty():
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
    with parts.Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=4) as bar:
        task = bar.add_task("path", total=total, lam=0.0, gap=0.0, rate=0.0)
        yield lambda lam, gap, rate: bar.update(task, advance=1, lam=lam, gap=gap, rate=rate)
