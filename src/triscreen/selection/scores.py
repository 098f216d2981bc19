"""Scores of a learned space on held-out points and comparisons."""

from __future__ import annotations

import numpy as np


def triplet_accuracy(Z, y, Z_test, y_test, k):
    """Return the share of triplets that are in the right order, for held-out anchors in a learned space.

    Of each held-out point's k nearest known points of its class against its k nearest of other classes, by the learned
    distance: the comparisons that decide about its neighbours.
    """
    from sklearn.neighbors import NearestNeighbors

    right = total = 0
    for label in np.unique(y_test):
        anchors, same = Z_test[y_test == label], y == label
        if not same.any() or same.all():
            continue
        near, far = (
            NearestNeighbors(n_neighbors=min(k, len(points))).fit(points).kneighbors(anchors)[0]
            for points in (Z[same], Z[~same])
        )
        right += np.count_nonzero(near[:, :, None] < far[:, None, :])
        total += near.shape[1] * far.shape[1] * len(anchors)
    return right / total if total else np.nan


def vote_scores(Z, y, Z_test, y_test, k, most=7):
    """Return (share of right votes, accuracy of the k nearest) of held-out points in a learned space.

    The first is the share of neighbours of the right class among the nearest 1, 2, ... ``most`` taken together, so that
    near ones count more often. It says the same as the accuracy with a fraction of its noise, because it sees by how
    much a vote was won or lost: what choices between metrics want.
    """
    from sklearn.neighbors import NearestNeighbors

    classes, codes = np.unique(y, return_inverse=True)
    wide = min(max(most, k), len(Z))
    near = codes[NearestNeighbors(n_neighbors=wide).fit(Z).kneighbors(Z_test, return_distance=False)]
    right = classes[near[:, :most]] == np.asarray(y_test)[:, None]
    weights = np.arange(right.shape[1], 0, -1.0)
    votes = np.zeros((len(near), len(classes)))
    for column in near[:, :k].T:
        votes[np.arange(len(near)), column] += 1
    return float((right @ weights).mean() / weights.sum()), float(np.mean(classes[votes.argmax(axis=1)] == y_test))


def neighbour_error(Z, y, Z_test=None, y_test=None, k=3):
    """Return the share of points that their k nearest neighbours get wrong; without a test set, leave-one-out."""
    from sklearn.neighbors import KNeighborsClassifier

    near = KNeighborsClassifier(min(k, len(Z) - (Z_test is None))).fit(Z, y)
    return float(1 - near.score(Z_test, y if Z_test is None else y_test))


def comparison_error(Z, rows):
    """Return the share of comparisons "a is closer to b than to c" that are not so by Euclidean distance in Z."""
    a, b, c = (Z[column] for column in rows.T)
    return float(1 - np.mean(np.linalg.norm(a - b, axis=1) < np.linalg.norm(a - c, axis=1)))
