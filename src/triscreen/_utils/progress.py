"""How far long work is: a bar on a terminal, one line in a notebook, silence elsewhere.

Of a command whose stderr is a pipe or a file, a line now and then (`in_lines`). There is one display at a time: work
inside other work that shows itself, or that is to be silent, shows nothing of its own. A search inside of it leaves a
note there, and a `Stage` says where in the whole the steps to come are.

Steps rarely take the same time (smaller lambdas take longer): the time left is said at the pace of the last few steps,
and steps that a checkpoint had kept are none of them.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from contextlib import ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass

_silent = ContextVar("silent", default=False)
_around = ContextVar("around", default=None)  # what shows the work around, if anything does
_lines = ContextVar("lines", default=False)
_PATIENCE = 2.0  # seconds that a search takes before it is shown
_RECENT = 10  # steps that the pace is that of
# Where nobody looks, a line after so many seconds, or after so much of the work and these seconds.
_EVERY, _PART, _LEAST = 10.0, 0.1, 2.0


@dataclass(frozen=True)
class Stage:
    """Where in the whole the next steps are.

    Attributes
    ----------
    text : str
        Such as "fold 2/5".
    total : int or None
        Of all steps at most, where that has become known; the first one who says so is believed.
    kept : int
        So many steps were done before this run.
    """

    text: str = ""
    total: int | None = None
    kept: int = 0


def stage(text="", total=None, kept=0):
    """Tell whatever shows the work around where the next steps are."""
    around = _around.get()
    if around is not None:
        around(Stage(text, total, kept))


@contextmanager
def in_lines(wanted=True):
    """Within, where there is neither a terminal nor a notebook, progress is a line on stderr now and then."""
    token = _lines.set(bool(wanted))
    try:
        yield
    finally:
        _lines.reset(token)


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
        if total is not None:
            stage(total=total)
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


class Pace:
    """Where work is, and how long the rest of it takes at the pace of its last steps."""

    def __init__(self, total):
        self.total, self.done, self.stage, self.told = total, 0, "", ""
        self.begin = time.perf_counter()
        self._last = deque([(0, self.begin)], _RECENT + 1)

    def see(self, state):
        """Take note of a step, a text, a place (a float) or a `Stage`."""
        if isinstance(state, Stage):
            self.total = state.total if self.total is None else self.total
            self.stage = state.text or self.stage
            if state.kept:
                self.done += state.kept
                self._last.clear()
                self._last.append((self.done, time.perf_counter()))
            return
        if not isinstance(state, str):
            self.done = state if isinstance(state, float) else self.done + 1
            self._last.append((self.done, time.perf_counter()))
        self.told = _told(state)

    @property
    def left(self):
        """Seconds that are left at this pace, if all steps are needed; None: nobody knows."""
        (first, since), (last, now) = self._last[0], self._last[-1]
        if self.total is None or last <= first:
            return None
        return max(self.total - self.done, 0) * (now - since) / (last - first)

    @property
    def place(self):
        """Return the step out of how many."""
        return f"{self.done:.0f}" if self.total is None else f"{self.done:.0f}/{self.total:.0f}"

    def __str__(self):
        left = "" if self.left is None else f"at this pace {_clock(self.left)} left at most"
        parts = (self.place, self.stage, self.told, f"after {_clock(time.perf_counter() - self.begin)}", left)
        return ", ".join(part for part in parts if part)


def _clock(seconds):
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}" if minutes >= 60 else f"{minutes}:{seconds:02}"


def _display(title, total):
    if _in_notebook():
        return _line(title, total)
    if sys.stderr is not None and sys.stderr.isatty():
        return _bar(title, total)
    return nullcontext(_Lines(title, total) if _lines.get() and sys.stderr is not None else _nothing)


def _in_notebook():
    """Is there somebody who sees what is displayed, but no terminal?"""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _told(state):
    if isinstance(state, str | float):
        return state if isinstance(state, str) else ""
    rate = getattr(state, "screening_rate", None)
    return f"lambda {state.lam:.3g} gap {state.rel_gap:.1e}" + ("" if rate is None else f" left out {rate:.1%}")


class _Lines:
    """A line on stderr now and then."""

    def __init__(self, title, total):
        self.title, self.pace = title, Pace(total)
        self._when, self._where = self.pace.begin, 0.0

    def __call__(self, state):
        self.pace.see(state)
        now, pace = time.perf_counter(), self.pace
        if isinstance(state, Stage) and state.kept:
            self._where = pace.done
        far = pace.total is not None and pace.done - self._where >= _PART * pace.total
        if now - self._when >= (_LEAST if far else _EVERY):
            self._when, self._where = now, pace.done
            sys.stderr.write(f"triscreen: {self.title} {pace}\n")
            sys.stderr.flush()


@contextmanager
def _bar(title, total):
    from rich import progress as parts
    from rich.console import Console

    columns = [  # 80 signs wide
        parts.TextColumn(title),
        parts.BarColumn(bar_width=6),
        parts.TextColumn("{task.fields[text]}"),
    ]
    pace = Pace(total)
    with parts.Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=4) as bar:
        task = bar.add_task(title, total=total, text="")

        def show(state):
            pace.see(state)
            spent = _clock(time.perf_counter() - pace.begin)
            time_left = spent if pace.left is None else f"left ~{_clock(pace.left)}"
            told = [pace.place, pace.stage, pace.told, time_left]
            bar.update(task, completed=pace.done, total=pace.total, text=" ".join(part for part in told if part))

        yield show


@contextmanager
def _line(title, total):
    """One line below a notebook's cell that is written anew (rich would need ipywidgets for that)."""
    from IPython.display import display

    handle = display({"text/plain": title}, raw=True, display_id=True)
    pace, last = Pace(total), 0.0

    def show(state):
        nonlocal last
        pace.see(state)
        now = time.perf_counter() - pace.begin
        if now - last < 0.25:
            return
        last = now
        handle.update({"text/plain": f"{title} {pace}"}, raw=True)

    try:
        yield show
    finally:
        handle.update({"text/plain": ""}, raw=True)
