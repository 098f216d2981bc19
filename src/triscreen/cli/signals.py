"""Ctrl-C and SIGTERM from the first line of the command on: one line on stderr, exit code 130 or 143, no traceback.

It imports next to nothing, so that `listen` comes before everything that is slow to import.
"""

from __future__ import annotations

import atexit
import os
import signal

received = None  # the signal that stops this command
_phase = "starting"  # then running, keeping, ended


def listen():
    """Take over the signals that stop a command, unless whoever started it had them ignored."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
            # Python takes handlers away when it comes to its end, which takes a moment; what is ignored stays so.
            atexit.register(signal.signal, number, signal.SIG_IGN)


def enter(phase):
    """Say what a signal meets.

    "starting": nothing is done yet, the process ends at once. "running": the command is stopped by KeyboardInterrupt,
    except amid an import, where that would be swallowed or become another error: the process ends. "keeping": there
    is work to keep, always KeyboardInterrupt. "ended": too late to stop anything.
    """
    global _phase
    _phase = phase


def stopped(err):
    """Tell whether an error is the work of a signal; amid an import Ctrl-C can end as an error of any class."""
    told = isinstance(err, OSError) and err.errno is not None  # a full disk, say
    return isinstance(err, KeyboardInterrupt) or (received is not None and not told)


def code():
    """Return the exit code of a command that was stopped, as shells have it."""
    return 128 + (received or signal.SIGINT)


def _stop(number, frame):
    global received
    if _phase == "ended":
        return
    received = number
    if _phase == "starting" or (_phase == "running" and _within(frame, "<frozen importlib")):
        os.write(2, b"triscreen: interrupted\n")
        os._exit(code())
    if _within(frame, "llvmlite"):
        # Amid compiled code that calls back, an exception would be shown and forgotten: a moment later, then.
        from threading import Timer

        Timer(0.02, os.kill, (os.getpid(), number)).start()
        return
    raise KeyboardInterrupt


def _within(frame, part):
    """Is code whose file has this in its name at work?"""
    while frame is not None:
        if part in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False
