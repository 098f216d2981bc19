"""Ctrl-C and SIGTERM at many moments of a command: exit code 130 or 143, at most one line, never a traceback.

    python tests/cli/sweep_signals.py [moments]

`make nightly` does this with 60 moments by the clock, from the start of the process on, and 60 by imports; the test
suite with a few by imports, which do not depend on time. What comes before the first line of triscreen (Python's own
start) is Python's: the process then dies of the signal, or says so itself.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# The command, but for a signal that it sends to itself at its n-th import.
AT_IMPORT = """
import os, sys
from triscreen.cli import main

class Finder:
    left, number = int(sys.argv.pop(1)), int(sys.argv.pop(1))

    def find_spec(self, name, path=None, target=None):
        Finder.left -= 1
        if Finder.left == 0:
            os.kill(os.getpid(), self.number)

sys.meta_path.insert(0, Finder())
main()
"""
COMMAND = ("path", "iris", "-k", "3", "--tol", "1e-3", "--n-lambdas", "300", "--ratio", "0.98")


def command(folder):
    """Return the words of a command that takes a while, and leaves nothing behind but a checkpoint when stopped."""
    return (*COMMAND, "-o", str(Path(folder) / "out"), "--report", str(Path(folder) / "r.html"))


def at_import(n, number, folder):
    """Return (exit code, stderr) of a command that gets a signal at its n-th import."""
    words = [sys.executable, "-c", AT_IMPORT, str(n), str(int(number)), *command(folder)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=100)
    return done.returncode, done.stderr


def at_time(seconds, number, folder):
    """Return (exit code, stderr) of a command that gets a signal so long after the start of its process."""
    process = subprocess.Popen([sys.executable, "-m", "triscreen", *command(folder)], stderr=subprocess.PIPE,
                               stdout=subprocess.DEVNULL, text=True)  # fmt: skip
    time.sleep(seconds)
    process.send_signal(number)
    _, err = process.communicate(timeout=100)
    return process.returncode, err


def wrong(code, err, number, folder, early=False):
    """Return what is wrong, or None; early: the signal may have come before the first line of triscreen."""
    lines = [line for line in err.splitlines() if not line.startswith("triscreen: going on from")]
    if early and code == -number and not err:
        return None
    ours = "triscreen/cli" in err
    if early and number == signal.SIGINT and lines and lines[-1] == "KeyboardInterrupt" and not ours:
        return None  # of Python's own start
    if code == 0 and Path(folder, "out").exists():
        return None  # it was done before
    if code != 128 + number or len(lines) != 1 or not lines[0].startswith("triscreen: interrupted"):
        return f"exit code {code}: {err!r}"
    kept = list(Path(folder).rglob("[0-9]*.tsc"))
    if bool(kept) != ("what is done is kept" in err):
        return f"{len(kept)} entries and {err!r}"
    if list(Path(folder).rglob("*.tmp")):
        return "a temporary file is left"
    return None


def main(moments=60):
    """Try moments by the clock and by imports; return how many were wrong."""
    findings = 0
    for place in range(moments):
        for how, early in ((lambda f, n, p=place: at_time(0.02 + 0.06 * p, n, f), True),
                           (lambda f, n, p=place: at_import(1 + 29 * p, n, f), False)):  # fmt: skip
            number = signal.SIGTERM if place % 3 == 2 else signal.SIGINT
            with tempfile.TemporaryDirectory() as folder:
                problem = wrong(*how(folder, number), number, folder, early)
            if problem:
                findings += 1
                print(f"{'time' if early else 'import'} {place}: {problem}")
    print(f"{2 * moments} signals, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
