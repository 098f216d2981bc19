"""The command ``triscreen``: data on stdout, messages on stderr, exit codes 0 done, 1 failed, 2 wrong use."""

from __future__ import annotations

import sys


def main():
    """Run the command line, and leave with its exit code."""
    try:
        from triscreen.cli.app import app
    except ModuleNotFoundError as err:
        if err.name != "typer":
            raise
        sys.exit('triscreen: error: the command line needs typer: pip install "triscreen[cli]"')
    except KeyboardInterrupt:
        sys.exit(130)
    app(prog_name="triscreen")
