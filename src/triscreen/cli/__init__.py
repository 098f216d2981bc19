"""The command ``triscreen``: data on stdout, messages on stderr, exit codes 0 done, 1 failed, 2 wrong use."""

from __future__ import annotations

import sys

from triscreen.cli import signals


def main():
    """Run the command line, and leave with its exit code."""
    signals.listen()
    try:
        from triscreen.cli.app import app
    except ModuleNotFoundError as err:
        if err.name != "typer":
            raise
        sys.exit('triscreen: error: the command line needs typer: pip install "triscreen[cli]"')
    try:
        app(prog_name="triscreen")
    finally:
        signals.enter("ended")
