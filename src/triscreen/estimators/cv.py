"""One metric from labelled points, its lambda chosen over the whole path by cross-validation."""

from __future__ import annotations

import logging
import os
import time
import warnings
from contextlib import contextmanager, nullcontext
from functools import partial

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.neighbors import KNeighborsClassifier

from triscreen._utils.archive import as_path
from triscreen._utils.validation import as_count, as_flag, as_numbers, as_positive, shortened
from triscreen.errors import (
    ConvergenceWarning,
    DegenerateProblemWarning,
    InputError,
    NoAnchorWarning,
    OutOfTime,
    SmallClassWarning,
)
from triscreen.estimators.base import scale_of_lambda, watched_fit
from triscreen.estimators.callbacks import telling, with_callbacks
from triscreen.estimators.graphs import given_neighbours, neighbours_of_parts
from triscreen.estimators.triplet import LabelledMetric
from triscreen.path import solve_path
from triscreen.path.checkpoint import kept_losses
from triscreen.selection import choose, neighbour_accuracy, triplet_accuracy

# Lambdas that are farther apart have others in between, for the walk down only.
LEAP = 6.0
# Folds only rank lambdas, so this gap is enough there; and a grid ends where so little of the loss is left.
_ROUGH, _DONE = 0.01, 0.02
_log = logging.getLogger(__name__)


class TripletMetricCV(LabelledMetric):
    """A Mahalanobis metric whose lambda is chosen by cross-validation over whole paths of certified metrics.

    One grid of lam / lambda_max serves all folds and the fit on all points: the loss is a sum, so each of them has its
    own lambda_max.

    Parameters
    ----------
    n_neighbors, triplets, gamma, cone, rounds, n_components, solver, screening, max_iter, n_jobs, memory_budget,
    random_state :
        As for `TripletMetric`. With rounds > 1 each fold chooses neighbours again by its own metric at the ratio
        nearest to 1e-3, and the whole path is walked again.
    ratios : array or int
        Falling values of lam / lambda_max, or how many between 1 and ``smallest_ratio``; of these a path leaves out
        what comes after 98 % of the loss are gone.
    smallest_ratio : float
    cv : int, splitter or iterable
        As in scikit-learn; an int means stratified folds, in the order of the points.
    scoring : str, callable or None
        None: accuracy of the nearest ``score_neighbors`` neighbours, of equally near ones those that come first.
        "triplet": share of the held-out points' triplets that are in the right order. Otherwise a scikit-learn scorer,
        which sees a `KNeighborsClassifier` in the learned space.
    score_neighbors : int
    one_standard_error : bool
        Choose the largest lambda (the simplest metric) whose score is within one standard error of the best.
    tol : float
        Relative gap of the path on all points; paths of folds, which only rank lambdas, are content with 0.01.
    max_seconds : float, optional
        For the whole fit, shared out among its paths.
    checkpoint : path, optional
        A folder, in which each path has a folder of its own: the same fit goes on where a killed one stopped.
    callback : callable, optional
        Sees a `PathState` after every lambda; returning True ends that path.
    verbose : int
        1: a line per fold and round on stderr, and a bar where that is a terminal; 2: per lambda, too.

    Attributes
    ----------
    components_, lam_, solution_, dual_gap_, rel_gap_, converged_, screening_ :
        Of the metric chosen, fitted on all points.
    path_ : Path
        On all points.
    n_iter_ : int
        Iterations of the whole path.
    ratios_ : array, shape (n_ratios,)
    cv_scores_ : array, shape (n_folds, n_ratios)
        NaN where a path ended early, or where a fold has nothing to score. Weights of points do not enter.
    best_index_ : int
    lam_ratio_, best_score_ : float

    Examples
    --------
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_wine(return_X_y=True)
    >>> model = ts.TripletMetricCV(ratios=6, cv=3).fit(scale(X), y)
    >>> model.cv_scores_.shape, bool(model.best_score_ > 0.95), bool(model.path_.converged.all())
    ((3, 6), True, True)
    """

    def __init__(
        self,
        n_neighbors=5,
        triplets="knn",
        ratios=8,
        smallest_ratio=1e-5,
        cv=5,
        scoring=None,
        score_neighbors=3,
        one_standard_error=False,
        gamma=0.05,
        cone="psd",
        tol=1e-3,
        rounds=1,
        n_components=None,
        solver="auto",
        screening="auto",
        max_iter=None,
        max_seconds=None,
        n_jobs=None,
        memory_budget=None,
        checkpoint=None,
        callback=None,
        random_state=None,
        verbose=0,
    ):
        self.n_neighbors = n_neighbors
        self.triplets = triplets
        self.ratios = ratios
        self.smallest_ratio = smallest_ratio
        self.cv = cv
        self.scoring = scoring
        self.score_neighbors = score_neighbors
        self.one_standard_error = one_standard_error
        self.gamma = gamma
        self.cone = cone
        self.tol = tol
        self.rounds = rounds
        self.n_components = n_components
        self.solver = solver
        self.screening = screening
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.memory_budget = memory_budget
        self.checkpoint = checkpoint
        self.callback = callback
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    @watched_fit
    def fit(self, X, y, sample_weight=None, groups=None, neighbors=None):
        """Choose lambda and learn the metric.

        Parameters
        ----------
        X : array or sparse matrix, shape (n, d)
        y : array, shape (n,)
        sample_weight : array, shape (n,), optional
            The weight of each triplet that the point is the anchor of.
        groups : array, shape (n,), optional
            For a splitter that keeps groups together.
        neighbors : int array (n, m), sparse matrix (n, n), or a pair of these, optional
            Neighbours that somebody else has found, as for `knn_triplets`; a fold takes what is left of them among its
            points. Further rounds choose their own.

        Returns
        -------
        self
        """
        begin = time.perf_counter()
        one_standard_error = as_flag(self.one_standard_error, "one_standard_error")
        self.ratios_ = self._grid()
        as_count(self.score_neighbors, "score_neighbors")
        if not (self.scoring is None or isinstance(self.scoring, str) or callable(self.scoring)):
            raise InputError(f"scoring={shortened(self.scoring)}: it must be None, one name or one scorer")
        X, y, weights = self._check(X, y, sample_weight)
        given = given_neighbours(self.triplets, neighbors, y)
        parts = [*self._folds(X, y, groups), (np.arange(len(X)), None)]
        self._look_at_folders(parts)
        near = neighbours_of_parts(self, X, y, given, parts)
        metrics = [None] * len(parts)  # those that choose the neighbours of the parts; None: Euclid
        most = self.rounds * len(parts) * len(_without_leaps(self.ratios_)[0])
        with telling(self, X, y, "lambda", most) as tell:
            for number in range(1, self.rounds + 1):
                self.path_, metrics = self._walk_parts(number, parts, metrics, near, X, y, weights, begin, tell)
                near = None  # of Euclid, for the first round
                scores = self.cv_scores_[:, : len(self.path_)]
                self.best_index_ = choose(scores, one_standard_error)
                self.lam_ratio_ = float(self.ratios_[self.best_index_])
                self.best_score_ = float(np.nanmean(scores[:, self.best_index_]))
                _log.info("round %d: lam/lambda_max %.3g, score %.4f", number, self.lam_ratio_, self.best_score_)
            self.n_triplets_ = self.path_.n_triplets
            self._set_solution(self.path_[self.best_index_], self.path_.components(self.best_index_))
            self.n_iter_ = max(1, int(self.path_.n_iter.sum()))
        return self

    def _walk_parts(self, number, parts, metrics, near, X, y, weights, begin, tell):
        """Walk the path of every fold and score it, then that of all points; return this one, and a metric of each.

        Each part chooses neighbours by its own metric of the round before, at the ratio nearest to TripletMetric's:
        scores have no say in this, those of other folds know the labels that this one holds out.
        """
        between = int(np.argmin(np.abs(np.log(self.ratios_ / 1e-3))))
        self.cv_scores_ = np.full((len(parts) - 1, len(self.ratios_)), np.nan)
        metrics = list(metrics)
        for k, (train, test) in enumerate(parts):
            arguments = self._arguments(begin, len(parts) * (self.rounds + 1 - number) - k)
            if test is not None:
                arguments["tol"] = max(as_positive(self.tol, "tol"), _ROUGH)
            if self.checkpoint is not None:
                arguments["checkpoint"] = self._folder(number, k, test)
            part_weights = None if weights is None else weights[train]
            choose_near = None if near is None else partial(near.part, train)
            # What took its time for one part takes it for all points too: these are not given up for it.
            limited = self._in_time(begin) if test is not None else nullcontext()
            try:
                with _named(k, train) if test is not None else nullcontext():
                    path = self._path(
                        X[train], y[train], part_weights, metrics[k], choose_near, tell, arguments, limited
                    )
            except OutOfTime:
                if test is None or self._so_far is None:
                    raise
                continue  # a fold without scores
            self._so_far = path
            metrics[k] = path.components(min(between, len(path) - 1))
            if test is not None:
                self.cv_scores_[k, : len(path)] = [
                    self._score(path.components(t), X[train], y[train], X[test], y[test]) for t in range(len(path))
                ]
                best, which = np.max(self.cv_scores_[k, : len(path)]), f"fold {k + 1} of {len(parts) - 1}"
                _log.info("round %d, %s: %d lambdas, best score %.4f", number, which, len(path), best)
        return path, metrics

    def _check_options(self):
        super()._check_options()
        if not (self.checkpoint is None or isinstance(self.checkpoint, str | os.PathLike)):
            raise InputError(f"checkpoint={shortened(self.checkpoint)}: checkpoint must be the path of a folder")

    def _folds(self, X, y, groups):
        """Return the (train, test) rows of every fold."""
        try:
            folds = [(train, test) for train, test in check_cv(self.cv, y, classifier=True).split(X, y, groups)]
        except (ValueError, TypeError) as err:
            if isinstance(err, InputError):
                raise
            raise InputError(f"cv={shortened(self.cv)}: {err}") from None
        if not folds:
            raise InputError(f"cv={shortened(self.cv)}: it gives no folds (a generator can be used once only)")
        return folds

    def _folder(self, number, k, test):
        """Return the folder of a path's own checkpoint."""
        part = "all" if test is None else f"fold-{k}"
        return as_path(self.checkpoint, "checkpoint") / f"round-{number}-{part}"

    def _look_at_folders(self, parts):
        """Refuse a checkpoint that is damaged in any of its folders before work starts in another one."""
        for number in range(1, 1 + self.rounds if self.checkpoint is not None else 1):
            for k, (train, test) in enumerate(parts):
                with _named(k, train) if test is not None else nullcontext():
                    kept_losses(self._folder(number, k, test))

    def _grid(self):
        if np.ndim(self.ratios) == 0:
            smallest = as_positive(self.smallest_ratio, "smallest_ratio")
            if smallest >= 1:
                raise InputError(f"smallest_ratio={smallest!r}: it must be smaller than 1, where the grid begins")
            return np.geomspace(1.0, smallest, as_count(self.ratios, "ratios"))
        ratios = as_numbers(self.ratios, "ratios")
        good = ratios.ndim == 1 and len(ratios) and np.isfinite(ratios).all()
        if not good or not (ratios > 0).all() or not (np.diff(ratios) < 0).all():
            raise InputError(
                f"ratios={shortened(self.ratios)}: it must be a number of values, or falling positive values"
            )
        return ratios

    def _path(self, X, y, weights, L, choose_near, callback, arguments, limited):
        """Walk the path of these points; L: the metric that chooses their neighbours (None: Euclid).

        choose_near: what has their neighbours already; None: a search has to.
        """
        Z = X if L is None or not L.any() else X @ L.T  # a metric of zero has no neighbours
        ratios, wanted = _without_leaps(self.ratios_)
        with limited:
            neighbors = None if choose_near is None else choose_near()
            problem = self._make_problem(X, self._make_triplets(Z, y, weights, neighbors))
            lambdas = ratios * scale_of_lambda(problem)
        losses = kept_losses(arguments["checkpoint"]) if "checkpoint" in arguments else []

        def done():
            return np.ndim(self.ratios) == 0 and losses and losses[-1] < _DONE * losses[0]

        def seen(state):
            losses.append(state.loss)
            return bool(callback(state) or done())

        n_lambdas = len(losses) if done() else None
        path = solve_path(problem, lambdas=lambdas, n_lambdas=n_lambdas, callback=seen, **arguments)
        done_ones = wanted[: np.searchsorted(wanted, len(path))]
        return path.take(done_ones if len(done_ones) else [len(path) - 1])

    def _score(self, L, X, y, X_test, y_test):
        """Return the score of one metric on held-out points."""
        L = L[: self.n_components]
        Z, Z_test = X @ L.T, X_test @ L.T
        if self.scoring is None:
            return neighbour_accuracy(Z, y, Z_test, y_test, min(self.score_neighbors, len(Z)), self.n_jobs)
        if isinstance(self.scoring, str) and self.scoring == "triplet":
            return triplet_accuracy(Z, y, Z_test, y_test, self.n_neighbors, self.n_jobs)
        near = KNeighborsClassifier(min(self.score_neighbors, len(Z))).fit(Z, y)
        return check_scoring(near, self.scoring)(near, Z_test, y_test)


def _without_leaps(ratios):
    """Return (ratios with steps in between where they are far apart, the places of the given ones)."""
    lead = (
        np.geomspace(1.0, ratios[0], 2 + int(np.log(1 / ratios[0]) / np.log(LEAP)))
        if ratios[0] < 1 / LEAP
        else ratios[:1]
    )
    steps = 1 + (-np.diff(np.log(ratios)) / np.log(LEAP)).astype(int)  # from each ratio to the next
    places = len(lead) - 1 + np.concatenate([[0], np.cumsum(steps)])
    filled = np.empty(places[-1] + 1)
    filled[: len(lead)], filled[places] = lead, ratios
    for t in np.flatnonzero(steps > 1):
        filled[places[t] : places[t + 1] + 1] = np.geomspace(ratios[t], ratios[t + 1], steps[t] + 1)
    return filled, places


@contextmanager
def _named(k, train):
    """Within a fold: errors say which one it was; warnings are left to the fit on all points."""
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, SmallClassWarning, NoAnchorWarning, DegenerateProblemWarning):
            warnings.simplefilter("ignore", category)
        try:
            yield
        except InputError as error:
            raise InputError(f"fold {k} of cv ({len(train)} points to learn from): {error}") from None
