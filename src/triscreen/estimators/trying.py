"""The folds of a cross-validation, start by start: in this process, or as tasks of a cluster, to the same bits.

What one start gives in one fold (`Tried`) depends on the data, the fold and the options alone. So folds and starts may
be tried in any order, anywhere; what comes of it is taken in the order of the folds, and what would not have been tried
one after the other, because a start was dropped on the way, is not looked at.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from functools import partial

import numpy as np

from triscreen._utils.progress import stage
from triscreen.errors import OutOfTime
from triscreen.estimators.candidates import FIRST, drop_hopeless, end_hopeless
from triscreen.estimators.folds import named
from triscreen.estimators.starts import components_of_start, make_start

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Tried:
    """What came of one start in one fold.

    Attributes
    ----------
    alone : tuple of floats
        Score, accuracy and perhaps more without any learning.
    scores : list of tuples, or None
        Of the path; None: it was not walked, or time was over before its first lambda.
    cut : bool
        Did time end the path?
    seconds : float
    late : str
        What was said where time was over before there was anything.
    """

    alone: tuple
    scores: list | None = None
    cut: bool = False
    seconds: float = 0.0
    late: str = ""


class Trying:
    """What `TripletMetricCV` does with its folds."""

    def _begin(self):
        """Get ready to score metrics in folds, here or on a worker."""

    def _try_starts(self, starts, crew, parts, *how):
        """Try all starts in all folds, and drop those that are hopeless; return the scores of Euclid, fold by fold."""
        n_folds = len(parts) - 1
        euclid = np.full((n_folds, self._n_scores), np.nan)
        for folds in self._batches(n_folds, crew):
            wanted = [(c, k) for k in folds for c in (*starts, None)]
            found = self._ask(crew, wanted, n_folds, starts, parts, *how)
            for k in folds:
                for candidate in starts:
                    self._take(candidate, k, n_folds, next(found))
                euclid[k] = next(found).alone
                if k + 1 < n_folds:  # there is something to save
                    drop_hopeless(starts, k + 1)
                    self._end_hopeless(starts, k + 1)
        return euclid

    def _next_round(self, chosen, column, crew, parts, *how):
        """Return the candidate whose neighbours are chosen again, by the metrics at this column of a path."""
        again, n_folds = chosen.again(column), len(parts) - 1
        for folds in self._batches(n_folds, crew):
            found = self._ask(crew, [(again, k) for k in folds], n_folds, [again], parts, *how)
            for k in folds:
                self._take(again, k, n_folds, next(found))
                drop_hopeless([again], k + 1, chosen)
                if again.dropped:
                    return again
                if k + 1 < n_folds:
                    self._end_hopeless([again], k + 1)
        return again

    def _end_hopeless(self, candidates, done):
        if np.ndim(self.ratios) == 0:  # those that somebody names are all looked at
            end_hopeless(candidates, done)

    def _batches(self, n_folds, crew):
        """Return the folds that are tried at once: one here; on a cluster those before anybody may be dropped first."""
        if crew is None:
            return [[k] for k in range(n_folds)]
        both = list(range(min(FIRST, n_folds))), list(range(FIRST, n_folds))
        return [folds for folds in both if folds]

    def _ask(self, crew, wanted, n_folds, starts, parts, X, y, weights, begin, tell):
        """Yield what came of these (start, fold), in their order; a start None: Euclid."""
        if crew is not None:
            yield from crew.ask(self, wanted, n_folds, begin)
            return
        left = sum(not c.dropped for c in starts) * (n_folds - wanted[0][1]) + 1
        for candidate, k in wanted:
            tried = self._try_one(candidate, k, n_folds, parts[k], X, y, weights, begin, left, tell)
            left -= tried.scores is not None or tried.cut
            yield tried

    def _try_one(self, candidate, k, n_folds, part, X, y, weights, begin, left, tell):
        """Score a start alone in a fold, walk its path unless it was dropped, and score that; None: score Euclid.

        left: so many paths share the seconds that are left.
        """
        train, test = part
        data = (X[train], y[train], X[test], y[test])
        if candidate is None:
            return Tried(self._score(np.eye(X.shape[1]), data, whole=True))
        since = time.perf_counter()
        with named(k, train):
            N = make_start(candidate.prior, X[train], y[train], self.cone)
            alone = self._score(components_of_start(N, X.shape[1]), data)
        if candidate.dropped:  # its path, but alone it may still be the best
            return Tried(alone, seconds=time.perf_counter() - since)
        try:
            stage(f"fold {k + 1}/{n_folds} {candidate.name}")
            with named(k, train):
                judge = partial(self._score, data=data)
                path, scores = self._walk(candidate, N, k, train, X, y, weights, begin, left, tell, judge)
        except OutOfTime as error:
            return Tried(alone, None, True, time.perf_counter() - since, str(error))
        return Tried(alone, scores, path.stopped_by == "max_seconds", time.perf_counter() - since)

    def _take(self, candidate, k, n_folds, tried):
        """Keep what came of a start in a fold; of one that was dropped meanwhile only how it does alone."""
        candidate.alone[k] = tried.alone
        candidate.seconds += tried.seconds
        if candidate.dropped:
            return
        if tried.late and not self._has_path:
            raise OutOfTime(tried.late)
        candidate.cut += tried.cut
        if tried.scores is None:
            return
        self._has_path = True
        scores = np.reshape(tried.scores, (-1, self._n_scores))[: candidate.until]
        candidate.scores[k, : len(scores)] = scores
        _log.info("fold %d of %d, start %s: %d lambdas, best score %.4f, alone %.4f", k + 1, n_folds,
                  candidate.name, len(scores), candidate.best(k), candidate.alone[k, 0])  # fmt: skip
