"""Choosing lambda by the scores of held-out points."""

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
