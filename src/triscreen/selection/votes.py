"""Votes of the nearest: what classes they say, with what share, and which way of voting is best on held-out points.

A vote counts 1 ("uniform"), or one over the distance ("distance"; where points coincide with the one that asks, these
alone vote). Of classes with as many votes the first one wins. Neighbours are exact (`triscreen.triplets.neighbours`).
"""

from __future__ import annotations

import numpy as np

from triscreen._utils.threads import Threads
from triscreen.selection.choice import choose_start
from triscreen.triplets.neighbours import k_nearest

WEIGHTS = ("uniform", "distance")
_CELLS = 1 << 22  # votes of classes, counted at a time


def shares(Z, codes, n_classes, queries, k, weights, n_jobs=None):
    """Return the share of the votes that each class has, shape (n_queries, n_classes).

    Parameters
    ----------
    Z : array, shape (n, r)
        Points that vote, where Euclidean distance is the one that matters.
    codes : int array, shape (n,)
        Their classes, from 0 on.
    n_classes : int
    queries : array, shape (m, r)
    k : int
        So many vote, or all points if there are fewer.
    weights : {"uniform", "distance"}
    n_jobs : int, optional
    """
    near, squares = k_nearest(Z, min(k, len(Z)), Threads(n_jobs), queries)
    votes = np.zeros((len(queries), n_classes))
    heavy = heaviness(squares, weights)
    for column in range(near.shape[1]):
        votes[np.arange(len(votes)), codes[near[:, column]]] += heavy[:, column]
    return votes / votes.sum(axis=1, keepdims=True)


def heaviness(squares, weights):
    """Return what each vote counts, from squared distances, the nearest first."""
    if weights == "uniform":
        return np.ones_like(squares)
    nearest = squares[:, :1]
    same = nearest == 0
    with np.errstate(divide="ignore", invalid="ignore"):
        # Against the nearest: 1 / d overflows where d is tiny, and shares do not depend on the unit.
        heavy = np.sqrt(nearest / squares)
    return np.where(same, squares == 0, heavy).astype(float)


def judge_votes(near, squares, codes, right, n_classes, options):
    """Return (accuracies, Brier scores) of ways of voting on held-out points, two arrays of shape (n_options,).

    Parameters
    ----------
    near, squares : arrays, shape (m, k)
        The nearest points of each held-out one, and squared distances.
    codes : int array, shape (n,)
    right : int array, shape (m,)
        The true class of each held-out point; -1: one that no point has.
    n_classes : int
    options : list of (int, str)
        (number of neighbours, weights).
    """
    wanted = {weights: sorted({k for k, w in options if w == weights}) for _, weights in options}
    hits, briers, step = {}, {}, max(1, _CELLS // n_classes)
    for start in range(0, len(near), step):
        rows = slice(start, start + step)
        for weights, ks in wanted.items():
            heavy, votes = heaviness(squares[rows], weights), np.zeros((len(near[rows]), n_classes))
            everyone, target = np.arange(len(votes)), right[rows]
            last = min(max(ks), near.shape[1])
            for column in range(last):
                votes[everyone, codes[near[rows, column]]] += heavy[:, column]
                for k in ks:
                    if min(k, last) == column + 1:
                        option, share = (k, weights), votes / votes.sum(axis=1, keepdims=True)
                        of_right = np.where(target < 0, 0.0, share[everyone, target])
                        brier = np.einsum("ij,ij->", share, share) - 2 * of_right.sum() + len(share)
                        hits[option] = hits.get(option, 0) + np.count_nonzero(votes.argmax(axis=1) == target)
                        briers[option] = briers.get(option, 0.0) + brier
    return tuple(np.array([found[option] for option in options]) / len(near) for found in (hits, briers))


def choose_votes(accuracies, briers):
    """Return the number of the option to take: of those that are as accurate as the best, that of the best shares.

    Parameters
    ----------
    accuracies, briers : arrays, shape (n_folds, n_options)
        As accurate: behind the best by at most a quarter of the standard error of that, paired over the folds. A Brier
        score is the mean squared distance of the shares of votes from the truth.
    """
    known = ~np.isnan(accuracies).any(axis=1)
    if not known.any():
        return 0
    accuracies, briers = accuracies[known], briers[known].mean(axis=0)
    best = int(np.argmax(accuracies.mean(axis=0)))
    as_good = [
        option
        for option in range(accuracies.shape[1])
        if choose_start([accuracies[:, option], accuracies[:, best]]) == 0
    ]
    return min(as_good or [best], key=lambda option: briers[option])


def interval(share, n, deviations=1.96):
    """Return (low, high) of a share that was seen in n trials: Wilson's interval, 95 % by default.

    Examples
    --------
    >>> low, high = interval(0.0, 20)
    >>> low, round(high, 2)
    (0.0, 0.16)
    """
    if not n or not np.isfinite(share):
        return 0.0, 1.0
    square = deviations**2
    middle = (share + square / (2 * n)) / (1 + square / n)
    width = deviations / (1 + square / n) * np.sqrt(share * (1 - share) / n + square / (4 * n * n))
    return max(0.0, float(middle - width)), min(1.0, float(middle + width))
