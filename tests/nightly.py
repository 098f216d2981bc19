"""How long an attack is: a few cases in `make test`, all of them in `make nightly`."""

from __future__ import annotations

import os

NIGHTLY = bool(os.environ.get("TRISCREEN_NIGHTLY"))


def cases(few, every):
    """Return the few, or in the night every one."""
    return every if NIGHTLY else few
