"""The folds of a cross-validation, and what is said of them."""

from __future__ import annotations

import warnings
from contextlib import contextmanager

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.model_selection import RepeatedStratifiedKFold, check_cv
from sklearn.neighbors import KNeighborsClassifier

from triscreen._utils.threads import Threads
from triscreen._utils.validation import shortened
from triscreen.errors import (
    ConvergenceWarning,
    DegenerateProblemWarning,
    InputError,
    NoAnchorWarning,
    SmallClassWarning,
)
from triscreen.selection import triplet_accuracy, vote_scores
from triscreen.selection.votes import interval
from triscreen.triplets.pairs import product

# Folds are repeated until so many predictions are held out, so many times at most.
_PREDICTIONS, _REPEATS = 1000, 4


def make_folds(cv, X, y, groups):
    """Return the (train, test) rows of every fold; cv: as for `TripletMetricCV`."""
    try:
        splitter = _many_folds(y) if cv is None else check_cv(cv, y, classifier=True)
        folds = [(train, test) for train, test in splitter.split(X, y, groups)]
    except (ValueError, TypeError) as err:
        if isinstance(err, InputError):
            raise
        raise InputError(f"cv={shortened(cv)}: {err}") from None
    if not folds:
        raise InputError(f"cv={shortened(cv)}: it gives no folds (a generator can be used once only)")
    for k, (train, test) in enumerate(folds):
        if not len(train) or not len(test):
            raise InputError(
                f"cv={shortened(cv)}: fold {k} has {len(train)} points to learn from and {len(test)} to score, and "
                "needs both"
            )
    return folds


def _many_folds(y):
    """Return the folds where none are asked for."""
    most = int(np.unique(y, return_counts=True)[1].max())
    return RepeatedStratifiedKFold(n_splits=max(2, min(5, most)), n_repeats=repeats_of(y), random_state=0)


def repeats_of(y):
    """Return how often folds are repeated where none are asked for."""
    return int(np.clip(np.ceil(_PREDICTIONS / len(y)), 1, _REPEATS))


@contextmanager
def named(k, train):
    """Within a fold: errors say which one it was; warnings are left to the fit on all points."""
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, SmallClassWarning, NoAnchorWarning, DegenerateProblemWarning):
            warnings.simplefilter("ignore", category)
        try:
            yield
        except InputError as error:
            raise InputError(f"fold {k} of cv ({len(train)} points to learn from): {error}") from None


def score_of_fold(L, data, scoring, n_neighbors, score_neighbors, n_jobs):
    """Return (score, accuracy, or with another scorer its score again) on held-out points in the space of L.

    data: X, y, X_test and y_test; the others as for `TripletMetricCV`.
    """
    X, y, X_test, y_test = data
    Z, Z_test = (product(part, L.T, Threads(n_jobs)) for part in (X, X_test))
    if scoring is None:
        return vote_scores(Z, y, Z_test, y_test, score_neighbors, n_jobs)
    if isinstance(scoring, str) and scoring == "triplet":
        score = triplet_accuracy(Z, y, Z_test, y_test, n_neighbors, n_jobs)
    else:
        near = KNeighborsClassifier(min(score_neighbors, len(Z))).fit(Z, y)
        score = check_scoring(near, scoring)(near, Z_test, y_test)
    return score, score


def errors_of(accuracies, folds, scoring=None):
    """Return (share of held-out points that are wrong, low, high): Wilson's interval for as many trials as points.

    Nobody knows where a scorer of the user's own, scoring, takes the place of the accuracy.
    """
    if scoring is not None:
        return np.nan, 0.0, 1.0
    sizes, known = np.array([len(test) for _, test in folds]), ~np.isnan(accuracies)
    error = float(1 - np.average(accuracies[known], weights=sizes[known])) if known.any() else np.nan
    return error, *interval(error, len(np.unique(np.concatenate([test for _, test in folds]))))
