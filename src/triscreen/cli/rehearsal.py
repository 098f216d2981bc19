"""A rehearsal for ``--dry-run``: the work itself, on some of the points and for a few seconds, to count its passes.

How many passes a path takes is not to be seen from its size: of two tables with as many points and features, one took
50 and one 3,000.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from math import log

from triscreen._utils.progress import silent
from triscreen.errors import InputError

_POINTS = 600  # at most, of all classes as many as they have
_NUMBERS = 2e7  # of comparisons: features of each, at most
_SECONDS = 3.0
_MOST = 50.0  # so many times what was counted, at most, is said of work that did not end


class _Enough(Exception):
    """The time of a rehearsal is over."""


@dataclass
class Rehearsal:
    """What was counted.

    Attributes
    ----------
    passes, lambdas, seconds : float
    gap : float
        The last relative gap.
    whole : bool
        Was it all of the data?
    ended : bool
        Was there time for all of the work?
    """

    whole: bool
    passes: float = 0.0
    lambdas: int = 0
    seconds: float = 0.0
    gap: float = 1.0
    ended: bool = False

    def see(self, state):
        """Count; what comes before the first state, compilers and searches, is not timed."""
        now = time.perf_counter()
        if not self.lambdas:
            self._begin, self._before = now, (None, 0.0)
        if hasattr(state, "n_lambdas"):  # of a path: a lambda that is done
            self.lambdas += 1
            self.passes += state.passes
        else:  # an iteration, of the same lambda or the next
            lam, seen = self._before
            same = lam == state.lam and state.passes >= seen
            self.lambdas += not same
            self.passes += state.passes - (seen if same else 0.0)
            self._before = state.lam, state.passes
        if state.rel_gap > 0:  # of many features it may be unknown
            self.gap = state.rel_gap
        self.seconds = now - self._begin
        if self.seconds > _SECONDS:
            raise _Enough

    def steps_to(self, tol):
        """Return how many times as many passes one lambda takes until its gap is tol: each pass takes a like share."""
        return 1.0 if self.ended else min(max(log(tol) / log(min(self.gap, 0.9)), 1.0), _MOST)


def rehearse(work, data):
    """Return the `Rehearsal` of ``work(data, callback)``, or None where none can be made."""
    some = _some_of(data)
    if some is None:
        return None
    found = Rehearsal(whole=some is data)
    try:
        with silent(True), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            work(some, found.see)
        found.ended = True
    except _Enough:
        pass
    except InputError:
        if found.whole:
            raise
        return None  # a class of which there is too little
    return found if found.lambdas else None


def _some_of(data):
    """Return all of the data, some points of every class, or None: too many comparisons for a rehearsal."""
    import numpy as np

    from triscreen.cli.made import Made

    if data.rows is not None:
        return data if len(data.rows) * data.X.shape[1] <= _NUMBERS else None
    if len(data.X) <= _POINTS:
        return data
    codes = np.unique(data.y, return_inverse=True)[1]
    rows = np.argsort(codes, kind="stable")[np.linspace(0, len(codes) - 1, _POINTS).astype(int)]
    rows = np.sort(rows)
    return Made(data.X[rows], data.y[rows])
