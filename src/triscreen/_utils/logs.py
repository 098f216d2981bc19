"""What ``verbose`` shows: records of the logger "triscreen" and its children, on stderr.

Estimators and paths log whether or not anybody looks: milestones as INFO, every lambda and iteration as DEBUG. Nothing
is configured but while a fit with verbose runs: then the level of "triscreen" is low enough, and a handler writes what
that fit logs, unless the record reaches a handler of the user's own. (There is no NullHandler: it would swallow
warnings, which Python shows by itself.)
"""

from __future__ import annotations

import logging
import sys
from contextlib import contextmanager
from contextvars import ContextVar

_LOGGER = logging.getLogger("triscreen")
# The level from which on the fit at hand shows its records; None: it shows none.
_level = ContextVar("level", default=None)
# The levels of all fits with verbose that run now, in whatever threads; and (own, effective) before the first of them.
_running, _before = {}, None


@contextmanager
def shown(verbose):
    """Within, show what is logged here: from INFO on with verbose=1, from DEBUG on with more, nothing with 0."""
    level = (None, logging.INFO, logging.DEBUG)[min(int(verbose), 2)]
    mine, token = object(), _level.set(level)
    try:
        if level is not None:
            _set(mine, level)
        yield
    finally:
        _set(mine, None)
        _level.reset(token)


class _Stderr(logging.StreamHandler):
    """Lines on what stderr is at the time, which bars and notebooks replace."""

    stream = property(lambda self: sys.stderr, lambda self, _: None)

    def filter(self, record):
        """Tell whether a record is of a fit that shows them, and nobody else does."""
        level = _level.get()
        return level is not None and record.levelno >= level and not self._is_handled(record)

    def _is_handled(self, record):
        logger = logging.getLogger(record.name)
        while logger is not None:
            if any(not isinstance(handler, _Stderr | logging.NullHandler) for handler in logger.handlers):
                return True
            logger = logger.parent if logger.propagate else None
        return False


_handler = _Stderr()
_handler.setFormatter(logging.Formatter("triscreen: %(message)s"))


def _set(fit, level):
    """Note the level that a fit needs (None: it is over), and set handler and level for all that run."""
    global _before
    _handler.acquire()  # which a fork does not leave locked
    try:
        _running.pop(fit, None)
        if level is not None:
            _running[fit] = level
        if _running and _before is None:
            _before = _LOGGER.level, _LOGGER.getEffectiveLevel()
            _LOGGER.addHandler(_handler)
        if _running:
            _LOGGER.setLevel(min(_before[1], *_running.values()))
        elif _before is not None:
            _LOGGER.removeHandler(_handler)
            _LOGGER.setLevel(_before[0])
            _before = None
    finally:
        _handler.release()
