"""Neighbours that a fit was given, and those of the parts of a cross-validation."""

from __future__ import annotations

from triscreen._utils.threads import Threads
from triscreen._utils.validation import as_labels
from triscreen.errors import InputError
from triscreen.triplets.graph import as_given
from triscreen.triplets.shared import SharedSearch


def given_neighbours(kind, neighbors, y):
    """Return the neighbours that a fit was given, checked; None where there are none."""
    if neighbors is None:
        return None
    if kind == "all":
        raise InputError("neighbors is given: triplets='all' takes every triplet, choose 'knn' or 'lmnn'")
    return as_given(neighbors, as_labels(y, len(y))[0])


def neighbours_of_parts(metric, X, y, given, parts):
    """Return what has the neighbours of each of the parts (rows, test) of a metric's fit, by its method ``part``.

    Those that were given, or those of one search over all points; None where triplets take every point.
    """
    if given is not None or metric.triplets == "all":
        return given
    leaving = 1.0 - min(len(rows) for rows, _ in parts) / len(X)
    kinds = (True,) if metric.triplets == "lmnn" else (True, False)
    return SharedSearch(X, as_labels(y, len(X))[0], metric.n_neighbors, leaving, Threads(metric.n_jobs), kinds)
