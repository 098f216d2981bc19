"""Where to begin: starts that a cross-validation tries, each with a path from it, and each alone.

Alone means without any learning: the choice is then never worse on the folds than Euclid or a start itself. A start is
dropped when its path has been behind the best one in every one of the first folds (`FIRST`), or on average by more than
two standard errors, paired over the folds so far; and the paths of later folds end before ratios that are behind the
path's best one by as much. The fit on all points walks the path of the chosen start only.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np

from triscreen.errors import convergence_warning
from triscreen.estimators.starts import name_of
from triscreen.selection import choose, choose_start

# So many folds see every start.
FIRST = 3
# So many standard errors behind is hopeless.
_BEHIND = 2.0
_ROUND = ", round "


@dataclass(eq=False)
class Candidate:
    """One start, and what the folds say about it.

    Attributes
    ----------
    name : str
    prior : as for `TripletMetric`
    ratios : array
        lam / lambda_max of its path.
    alone : array, shape (n_folds, n_scores)
        Score, accuracy and perhaps more of the start itself.
    scores : array, shape (n_folds, n_ratios, n_scores)
        Of the path from there; NaN where it ended early, or was not walked.
    seconds : float
    dropped : int
        After so many folds; 0: never.
    before : tuple of int
        Columns of the rounds before: neighbours were chosen by the metric there.
    cut : int
        So many of its paths ended because time did.
    until : int or None
        Of its ratios later folds look at so many of the first; None: at all.
    """

    name: str
    prior: object = field(repr=False)
    ratios: np.ndarray = field(repr=False)
    alone: np.ndarray = field(repr=False)
    scores: np.ndarray = field(repr=False)
    seconds: float = 0.0
    dropped: int = 0
    before: tuple = ()
    cut: int = 0
    until: int | None = None

    @property
    def start(self):
        """The name without its round."""
        return self.name.split(_ROUND)[0]

    def again(self, column):
        """Return the next round: neighbours chosen again by the metric at this column."""
        before = (*self.before, int(column))
        name = f"{self.start}{_ROUND}{1 + len(before)}"
        alone, scores = np.full_like(self.alone, np.nan), np.full_like(self.scores, np.nan)
        return Candidate(name, self.prior, self.ratios, alone, scores, before=before)

    @classmethod
    def all_of(cls, priors, grid, n_folds, n_scores=2):
        """Return one for each start; grid: from a start to its ratios; n_scores: that a metric has in a fold."""
        made, names = [], [name_of(prior) for prior in priors]
        for k, (prior, name) in enumerate(zip(priors, names, strict=True)):
            name = f"{name} {names[:k].count(name) + 1}" if names.count(name) > 1 else name
            ratios = grid(prior)
            scores = np.full((n_folds, len(ratios), n_scores), np.nan)
            made.append(cls(name, prior, ratios, np.full((n_folds, n_scores), np.nan), scores))
        return made

    def filled(self):
        """Return the scores; where a path ended before others did, those of its last metric; NaN after ``until``."""
        scores = self.scores.copy()
        for t in range(1, scores.shape[1]):
            gone = np.isnan(scores[:, t, 0])
            scores[gone, t] = scores[gone, t - 1]
        if self.until is not None:
            scores[:, self.until :] = np.nan
        return scores

    def best(self, fold):
        """Return the best score of its path in a fold."""
        return np.nanmax(self.scores[fold, :, 0], initial=-np.inf)


def drop_hopeless(candidates, done, leader=None):
    """Drop the starts whose paths are behind the best one (or this leader), in every fold so far or by much."""
    here = [c for c in candidates if not c.dropped]
    if done < FIRST or len(here) + (leader is not None) < 2:
        return
    if leader is None:
        means = [np.mean([c.best(fold) for fold in range(done)]) for c in here]
        leader = here[int(np.argmax(means))]
    best = np.array([leader.best(fold) for fold in range(done)])
    for candidate in here:
        own = np.array([candidate.best(fold) for fold in range(done)])
        if (own < best).all() or _far_behind(own, best):
            candidate.dropped = done


def end_hopeless(candidates, done):
    """End paths before the last ratios that are far behind the best one of the same path, after some folds."""
    for candidate in candidates:
        if done >= FIRST and not candidate.dropped:
            scores = candidate.filled()[:done, : candidate.until, 0]
            best, until = scores[:, choose(scores)], scores.shape[1]
            while until > 1 and _far_behind(scores[:, until - 1], best):
                until -= 1
            candidate.until = until


def _far_behind(scores, best):
    """Are these behind by more than two standard errors, paired over the folds that know both?"""
    known = np.isfinite(scores) & np.isfinite(best)
    behind = (best - scores)[known]
    return len(behind) >= FIRST and bool(behind.mean() > _BEHIND * behind.std(ddof=1) / np.sqrt(len(behind)))


def choose_candidate(candidates, euclid, one_standard_error, with_euclid=True):
    """Return (the candidate, the column of its path; None: alone); (None, None): Euclid.

    The simplest first: Euclid, the starts alone, their paths, the path from no start, and last further rounds. euclid:
    array of shape (n_folds, n_scores), its score and accuracy; it is no choice where fewer directions are wanted,
    because it has no order among its own.
    """
    scores = {c.name: c.filled() for c in candidates}
    columns = {name: choose(filled[:, :, 0], one_standard_error) for name, filled in scores.items()}
    paths = sorted((c for c in candidates if not c.dropped), key=lambda c: (len(c.before), c.prior is None))
    alone = [(c, None) for c in candidates if c.prior is not None and not _is_identity(c) and not c.before]
    options = [*([(None, None)] if with_euclid else []), *alone, *((c, columns[c.name]) for c in paths)]
    seen = [euclid if c is None else c.alone if t is None else scores[c.name][:, t] for c, t in options]
    # Without the folds that time did not allow: where no path was walked, if any was anywhere.
    walked = ~np.isnan(np.stack([scores[c.name][:, columns[c.name], 0] for c in paths])).all(axis=0)
    folds = walked if walked.any() else np.ones(len(euclid), dtype=bool)
    return options[choose_start([scores[folds, 0] for scores in seen])]


def _is_identity(candidate):
    return isinstance(candidate.prior, str) and candidate.prior == "identity"


def warn_of_cuts(candidates, n_folds, seconds):
    """Warn where time ended paths of folds before they had seen their ratios: the choice is among what was seen."""
    cut = sum(c.cut for c in candidates)
    if not cut:
        return
    seen = np.concatenate([np.isfinite(c.scores[:, :, 0]).sum(axis=1) for c in candidates])
    wanted = max(len(c.ratios) for c in candidates)
    warnings.warn(
        f"max_seconds={seconds}: time was over in {cut} of {len(candidates) * n_folds} paths of the folds, which saw "
        f"{seen.min()} to {seen.max()} of {wanted} ratios; the choice is the best of these, and more time may find a "
        "better one",
        convergence_warning(),
        stacklevel=5,
    )


def improvement(chosen, euclid):
    """Return (mean, standard error) of the difference of two accuracies, paired over the folds."""
    gain = (chosen - euclid)[~np.isnan(chosen - euclid)]
    if not len(gain):
        return float("nan"), float("nan")
    return float(gain.mean()), float(gain.std(ddof=1) / np.sqrt(len(gain))) if len(gain) > 1 else float("nan")


def table(candidates, euclid):
    """Return what the folds said, as columns: a dictionary of lists and arrays, a row a candidate, Euclid first."""
    widest = max(len(c.ratios) for c in candidates)
    padded = [
        np.pad(c.scores[:, :, 0], ((0, 0), (0, widest - len(c.ratios))), constant_values=np.nan) for c in candidates
    ]
    ratios = [np.pad(c.ratios, (0, widest - len(c.ratios)), constant_values=np.nan) for c in candidates]
    return {
        "name": ["euclid", *(c.name for c in candidates)],
        "alone": np.stack([euclid[:, 0], *(c.alone[:, 0] for c in candidates)]),
        "ratios": np.stack([np.full(widest, np.nan), *ratios]),
        "scores": np.stack([np.full((len(euclid), widest), np.nan), *padded]),
        "seconds": np.array([0.0, *(c.seconds for c in candidates)]),
        "dropped": np.array([0, *(c.dropped for c in candidates)]),
    }
