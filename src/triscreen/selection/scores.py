"""Scores of a learned space on held-out points and comparisons.

Neighbours are exact (`triscreen.triplets.neighbours`): by the float64 value of the squared distance, then by number.
scikit-learn's classifier takes the same ones, but where distances are equal up to its rounding.
"""

from __future__ import annotations

import numpy as np

from triscreen._utils.threads import Threads
from triscreen.triplets.neighbours import k_nearest, search

_VOTES = 1 << 22  # of classes, counted at a time
_ACCURACY = 0.2  # its part of the score of votes


def triplet_accuracy(Z, y, Z_test, y_test, k, n_jobs=None):
    """Return the share of triplets that are in the right order, for held-out anchors in a learned space.

    Of each held-out point's k nearest known points of its class against its k nearest of other classes, by the learned
    distance: the comparisons that decide about its neighbours.
    """
    codes = np.unique(np.concatenate([y, y_test]), return_inverse=True)[1]
    known, asking = codes[: len(y)], codes[len(y) :]
    (_, near), (_, far) = search(Z, known, k, Threads(n_jobs), (True, False), Z_test, asking)
    far = np.where(np.isinf(far), -1.0, far)  # where there is none, nothing is nearer
    right = sum(np.count_nonzero(column[:, None] < far) for column in near.T)
    total = int(np.isfinite(near).sum(axis=1) @ (far >= 0).sum(axis=1))
    return right / total if total else np.nan


def vote_scores(Z, y, Z_test, y_test, k, n_jobs=None, most=7):
    """Return (score of votes, accuracy of the k nearest) of held-out points in a learned space.

    The first is four fifths the share of neighbours of the right class among the nearest 1, 2, ... ``most`` taken
    together, so that near ones count more often, and one fifth the accuracy. Votes say what the accuracy says with a
    fraction of its noise, because they see by how much a vote was won or lost; the accuracy is what is asked for.
    """
    classes, codes = np.unique(y, return_inverse=True)
    near = k_nearest(Z, min(max(most, k), len(Z)), Threads(n_jobs), Z_test)[0]
    return scores_of_votes(codes[near], codes_in(classes, y_test), len(classes), k, most)


def scores_of_votes(near, right, n_classes, k, most=7):
    """Return what `vote_scores` does, of the classes of the nearest and the true one, both as codes."""
    among = near[:, :most] == right[:, None]
    weights = np.arange(among.shape[1], 0, -1.0)
    share = float((among @ weights).mean() / weights.sum())
    accuracy = float(np.mean(most_votes(near[:, :k], n_classes) == right))
    return (1 - _ACCURACY) * share + _ACCURACY * accuracy, accuracy


def codes_in(classes, y):
    """Return the places of labels among sorted classes; -1 for a label that is none of them."""
    y = np.asarray(y)
    places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return np.where(classes[places] == y, places, -1)


def neighbour_error(Z, y, Z_test=None, y_test=None, k=3, n_jobs=None):
    """Return the share of points that their k nearest neighbours get wrong; without a test set, leave-one-out."""
    return 1.0 - neighbour_accuracy(Z, y, Z_test, y_test, k, n_jobs)


def neighbour_accuracy(Z, y, Z_test=None, y_test=None, k=3, n_jobs=None):
    """Return the share of points that their k nearest neighbours get right; without a test set, leave-one-out.

    Each neighbour has one vote; of classes with as many the first one wins.
    """
    classes, codes = np.unique(y, return_inverse=True)
    near = k_nearest(Z, min(k, len(Z) - (Z_test is None)), Threads(n_jobs), Z_test)[0]
    voted = classes[most_votes(codes[near], len(classes))]
    return float(np.mean(voted == (y if Z_test is None else y_test)))


def most_votes(votes, n_classes):
    """Return the code that each row has most often, the smallest of these."""
    step, parts = max(1, _VOTES // n_classes), []
    for start in range(0, len(votes), step):
        some = votes[start : start + step]
        cells = (np.arange(len(some))[:, None] * n_classes + some).ravel()
        parts.append(np.bincount(cells, minlength=len(some) * n_classes).reshape(len(some), n_classes).argmax(axis=1))
    return np.concatenate(parts)


def comparison_error(Z, rows):
    """Return the share of comparisons "a is closer to b than to c" that are not so by Euclidean distance in Z."""
    a, b, c = (Z[column] for column in rows.T)
    return float(1 - np.mean(np.linalg.norm(a - b, axis=1) < np.linalg.norm(a - c, axis=1)))
