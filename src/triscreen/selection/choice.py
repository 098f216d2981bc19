"""Choosing lambda, and where to begin, by the scores of held-out points."""

from __future__ import annotations

import numpy as np


def choose(scores, one_standard_error=False):
    """Return the column with the best mean score; of equal ones the first (the largest lambda).

    Parameters
    ----------
    scores : array, shape (n_folds, n_lambdas)
        Larger is better; only columns with as many folds as any can be chosen.
    one_standard_error : bool
        The first column within one standard error of the best instead.
    """
    scores = scores[~np.isnan(scores).all(axis=1)]
    if not len(scores):
        return 0
    folds = np.count_nonzero(~np.isnan(scores), axis=0)
    complete = folds == folds.max()
    means = np.full(scores.shape[1], -np.inf)
    means[complete] = np.nanmean(scores[:, complete], axis=0)
    best = int(np.argmax(means))
    if not one_standard_error or folds[best] < 2:
        return best
    error = np.nanstd(scores[:, best], ddof=1) / np.sqrt(folds[best])
    return int(np.argmax(means >= means[best] - error))


def choose_start(options, share=0.25):
    """Return the number of the option to take: the first, so the simplest, that is nearly as good as the best.

    Parameters
    ----------
    options : list of arrays, shape (n_folds,)
        Scores, the simplest option first; those with NaN cannot be chosen.
    share : float
        Nearly: its mean difference from the best, paired over the folds, is at most so many of its standard errors.
    """
    whole = [k for k, scores in enumerate(options) if not np.isnan(scores).any()]
    if not whole:
        return 0
    best = max(whole, key=lambda k: options[k].mean())
    for k in whole:
        behind = options[best] - options[k]
        error = behind.std(ddof=1) / np.sqrt(len(behind)) if len(behind) > 1 else 0.0
        if behind.mean() <= share * error:
            return k
    return best
