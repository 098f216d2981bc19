"""How good a metric is on points or comparisons that it was not learned from, lambda by lambda."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from triscreen._utils.threads import Threads
from triscreen.selection import comparison_error
from triscreen.selection.scores import codes_in, most_votes
from triscreen.triplets.neighbours import k_nearest

NEAREST = 5  # neighbours that are looked at for their class
_ASKED = 1000  # points learned from that are asked, at most, where none are held out


@dataclass(frozen=True)
class Measured:
    """The error, and how many points have 0 ... 5 of their class among their five nearest; None where unknown."""

    error: float | None = None
    alike: np.ndarray | None = None


def measure_of(facts, X, y, X_test, y_test, comparisons_test):
    """Return (facts that say what is held out, what measures a metric by its factor); None: nothing does.

    The factor None stands for Euclid.
    """
    if comparisons_test is not None and len(comparisons_test):
        facts = replace(facts, n_test=len(comparisons_test), error_of="comparisons")
        return facts, lambda L: Measured(comparison_error(mapped(X, L), comparisons_test))
    if y is None:
        return facts, None
    classes, codes = np.unique(y, return_inverse=True)
    if X_test is not None and len(X_test):
        facts = replace(facts, n_test=len(X_test), error_of="neighbours", alike_of="held-out")
        right = codes_in(classes, y_test)

        def measure(L):
            near = codes[
                k_nearest(mapped(X, L), min(max(facts.k, NEAREST), len(X)), Threads(None), mapped(X_test, L))[0]
            ]
            wrong = most_votes(near[:, : facts.k], len(classes)) != right
            return Measured(float(np.mean(wrong)), _alike(near[:, :NEAREST], right))

        return facts, measure
    if len(X) < 2:
        return facts, None
    asked = np.unique(np.linspace(0, len(X) - 1, min(len(X), _ASKED)).round().astype(int))

    def measure(L):
        Z = mapped(X, L)
        near = k_nearest(Z, min(NEAREST + 1, len(X)), Threads(None), Z[asked])[0]
        own = near == asked[:, None]
        own[~own.any(axis=1), -1] = True  # others that coincide with it came first
        return Measured(alike=_alike(codes[near[~own].reshape(len(near), -1)], codes[asked]))

    return replace(facts, alike_of="learned"), measure


def mapped(X, L):
    """Return X L', X itself where L is None."""
    return X if L is None else X @ L.T


def _alike(near, right):
    return np.bincount((near == right[:, None]).sum(axis=1), minlength=NEAREST + 1)
