"""One metric from labelled points; where to begin and lambda are chosen over whole paths by cross-validation."""

from __future__ import annotations

import itertools
import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from triscreen._utils.archive import as_path
from triscreen._utils.progress import stage
from triscreen._utils.threads import single_threaded_blas
from triscreen._utils.validation import as_count, as_flag, as_positive, shortened
from triscreen.errors import InputError
from triscreen.estimators.base import scale_of_lambda, watched_fit
from triscreen.estimators.callbacks import telling, with_callbacks
from triscreen.estimators.candidates import Candidate, choose_candidate, improvement, table, warn_of_cuts
from triscreen.estimators.certifying import Certifying
from triscreen.estimators.folds import errors_of, make_folds, named, score_of_fold
from triscreen.estimators.graphs import given_neighbours, neighbours_of_parts
from triscreen.estimators.ratios import LARGEST_WITH_PRIOR, grid, without_leaps
from triscreen.estimators.scaling import warn_of_scales
from triscreen.estimators.starts import (
    check_arrays,
    check_start,
    components_of_start,
    knows_no_scale,
    make_start,
    moved,
    without_learning,
)
from triscreen.estimators.tasks import crew_of
from triscreen.estimators.triplet import LabelledMetric
from triscreen.estimators.trying import Trying
from triscreen.path import Path, solve_path
from triscreen.path.checkpoint import kept_losses
from triscreen.screening import Screening
from triscreen.solvers.contract import Solver

# Folds only rank lambdas, so this gap is enough there, relative to the objective or so much of the loss of M = 0; and a
# grid ends where so little of that is left.
_ROUGH, _FLOOR, _DONE = 0.02, 0.5, 0.05
# The path of a fold ends after so many scores in a row behind the best.
_PATIENCE = 2
STARTS = (None, "identity", "within")
_log = logging.getLogger(__name__)


class TripletMetricCV(Certifying, Trying, LabelledMetric):
    """A Mahalanobis metric whose start and lambda are chosen by cross-validation over whole paths of certified metrics.

    Each candidate, a metric to begin with, has a path from it, and is also tried alone, without any learning; so on the
    folds the choice is never worse than Euclid. One grid of lam / lambda_max serves all folds and the fit on all
    points: the loss is a sum, so each of them has its own lambda_max.

    Parameters
    ----------
    n_neighbors, triplets, gamma, cone, neighbors, rounds, n_components, solver, screening, max_iter, n_jobs,
    memory_budget, random_state, preprocessor :
        As for `TripletMetric`. With rounds > 1 there is a further candidate beside the start and ratio that were
        chosen: neighbours chosen again by the metric learned there (in each fold by its own), and the path that they
        give; if that one is chosen, a next round, until neighbours repeat.
    candidates : sequence
        Metrics to begin with, each as for the ``prior`` of `TripletMetric`; None: no prior. Those that are made from
        labels are made for every fold anew.
    ratios : array or int
        Falling values of lam / lambda_max, or how many between 1 (with a prior: 0.03) and ``smallest_ratio``; of these
        the path of a fold leaves out what comes after two scores in a row behind the best, and any path what comes
        after 95 % of the loss of M = 0 are gone.
    smallest_ratio : float
        Where the grid ends, if ``ratios`` is a number of them.
    cv : None, int, splitter or iterable
        None: five stratified folds of shuffled points, four times over with few points (until 1,000 predictions are
        held out), because a choice on a few dozen points is noise. Otherwise as in scikit-learn; an int means
        stratified folds, in the order of the points.
    scoring : str, callable or None
        None: share of right votes among the nearest 1, 2, ... 7 neighbours, taken together, and a fifth of it the
        accuracy of ``score_neighbors``: it ranks metrics as the accuracy does, with less noise. "triplet": share of the
        held-out points' triplets that are in the right order.
        Otherwise a scikit-learn scorer, such as "accuracy", which sees a `KNeighborsClassifier` of ``score_neighbors``
        in the learned space.
    score_neighbors : int
        Of the accuracy in the score, of the one that ``improvement_`` tells of, and of scikit-learn's scorers.
    one_standard_error : bool
        On each path choose the largest lambda (the simplest metric) whose score is within one standard error of the
        best. Between starts, the simplest one within a quarter of a paired standard error of the best is chosen anyway.
    tol : float
        Relative gap of the path on all points; paths of folds, which only rank lambdas, are content with 0.02, or with
        0.01 of the loss of M = 0.
    certify : float, optional
        Prove that no ratio between the largest and the smallest has a lower error on the folds (the mean of the folds,
        ``score_neighbors`` neighbours) by more than this, with the start that was chosen: its whole range is searched
        then (`triscreen.select`), the best ratio of it is taken, which need not be one of ``ratios_``, and the other
        starts are not looked at again. For ``scoring`` None or "accuracy", without ``n_components``. It takes some ten
        times as long.
    max_seconds : float, optional
        For the whole fit, shared out among its paths.
    scheduler : None, "current" or str, optional
        Who tries starts in folds: this process; or the workers of a Dask cluster, as for `TripletMetric`, each start in
        each fold a task, to the same bits. The fit on all points, and the proof of ``certify``, are made here.
    checkpoint : path, optional
        A folder, in which each path has a folder of its own: the same fit goes on where a killed one stopped. What
        workers have found is kept there, too.
    callback : callable, optional
        Sees a `PathState` after every lambda of the paths that are walked here; returning True ends that path.
    verbose : int
        1: a line per fold and round on stderr, and a bar where that is a terminal; 2: per lambda, too.

    Attributes
    ----------
    components_, lam_, solution_, dual_gap_, rel_gap_, converged_, screening_ :
        Of the metric chosen, fitted on all points. Where a start alone was chosen, ``lam_`` is infinity and the gap 0.
    chosen_ : str
        The start: "euclid" or the name of a candidate; "identity, round 2" where neighbours were chosen again.
    n_rounds_ : int
    candidates_ : dict
        What the folds say, as columns, a row a start with Euclid first: "name", "alone" (scores of the folds without
        any learning), "ratios", "scores" (of folds and ratios), "seconds", "dropped" (after so many folds; 0: never).
    improvement_ : (float, float)
        Accuracy of the choice less that of Euclid on the same folds (with a scorer of your own: its scores): the mean
        and its standard error. In-sample: the choice was made on these folds. Not above its standard error: metric
        learning does not help here. error_before_, error_after_ are those errors with intervals (`TripletClassifier`).
    prior_, prior_scale_ :
        As for `TripletMetric`.
    path_ : Path or None
        Of the chosen start, on all points, down to the chosen lambda; None where it was chosen alone.
    n_iter_ : int
        Iterations of the whole path.
    ratios_ : array, shape (n_ratios,)
    cv_scores_ : array, shape (n_folds, n_ratios)
        Of the chosen start (Euclid: of the first candidate); NaN where a path ended early, or where a fold has nothing
        to score. Weights of points do not enter.
    best_index_ : int
        Column of the chosen ratio (with ``certify`` the nearest one); -1: the start alone.
    lam_ratio_, best_score_ : float
        With ``certify`` the score is one less the error.
    selection_gap_ : float
        With ``certify``: no ratio of the range has an error that is lower by more than this.
    possible_ratios_ : list of (float, float)
        Where one may be that is better by more than ``certify``: empty, unless time was over.
    certified_ratios_, error_lower_, error_upper_ : arrays, shapes (m + 1,), (m,), (m,)
        Falling ratios, and bounds of the mean error for every ratio between one and the next.

    References
    ----------
    Yoshida, Takeuchi, Karasuyama, KDD 2018, arXiv:1802.03923, for paths; how it chooses is ours (docs/estimators.md).

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

    # What a fit leaves, for type checkers.
    chosen_: str
    n_rounds_: int
    candidates_: dict[str, Any]
    improvement_: tuple[float, float]
    error_before_: tuple[float, float, float]
    error_after_: tuple[float, float, float]
    path_: Path | None
    ratios_: np.ndarray
    cv_scores_: np.ndarray
    best_index_: int
    lam_ratio_: float
    best_score_: float
    selection_gap_: float
    possible_ratios_: list[tuple[float, float]]
    certified_ratios_: np.ndarray
    error_lower_: np.ndarray
    error_upper_: np.ndarray

    _n_scores = 2  # of a metric on a fold: what chooses, accuracy, and what classes below this one want to know

    def __init__(
        self,
        n_neighbors: int = 5,
        triplets: str = "knn",
        candidates: Sequence[str | ArrayLike | BaseEstimator | None] = STARTS,
        ratios: int | ArrayLike = 7,
        smallest_ratio: float = 1e-4,
        cv: Any = None,
        scoring: str | Callable | None = None,
        score_neighbors: int = 3,
        one_standard_error: bool = False,
        gamma: float = 0.05,
        cone: str = "psd",
        neighbors: str = "prior",
        tol: float = 1e-4,
        rounds: int = 1,
        certify: float | None = None,
        n_components: int | None = None,
        solver: str | Solver = "auto",
        screening: str | Screening | None = "auto",
        max_iter: int | None = None,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        memory_budget: float | None = None,
        scheduler: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        callback: Callable[[Any], object] | None = None,
        random_state: Any = None,
        verbose: int = 0,
        preprocessor: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.triplets = triplets
        self.candidates = candidates
        self.ratios = ratios
        self.smallest_ratio = smallest_ratio
        self.cv = cv
        self.scoring = scoring
        self.score_neighbors = score_neighbors
        self.one_standard_error = one_standard_error
        self.gamma = gamma
        self.cone = cone
        self.neighbors = neighbors
        self.tol = tol
        self.rounds = rounds
        self.certify = certify
        self.n_components = n_components
        self.solver = solver
        self.screening = screening
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.memory_budget = memory_budget
        self.scheduler = scheduler
        self.checkpoint = checkpoint
        self.callback = callback
        self.random_state = random_state
        self.verbose = verbose
        self.preprocessor = preprocessor

    @with_callbacks
    @watched_fit
    @single_threaded_blas()
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        neighbors: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
    ) -> TripletMetricCV:
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
            Neighbours that somebody else has found, as for `knn_triplets`, for every start; a fold takes what is left
            of them among its points. Further rounds choose their own.

        Returns
        -------
        self
        """
        begin = time.perf_counter()
        one_standard_error = as_flag(self.one_standard_error, "one_standard_error")
        as_count(self.score_neighbors, "score_neighbors")
        if not (self.scoring is None or isinstance(self.scoring, str) or callable(self.scoring)):
            raise InputError(f"scoring={shortened(self.scoring)}: it must be None, one name or one scorer")
        priors = self._priors()
        eps = self._check_certify()
        self._grid(None)
        X, y, weights = self._check(X, y, sample_weight)
        check_arrays(priors, X, y, self.cone)
        given = given_neighbours(self.triplets, neighbors, y)
        folds = make_folds(self.cv, X, y, groups)
        starts = Candidate.all_of(priors, self._grid, len(folds), self._n_scores)
        parts = [*folds, (np.arange(len(X)), None)]
        self._look_at_folders(starts, parts)
        self._given, self._near, self._has_path = given, neighbours_of_parts(self, X, y, given, parts), False
        # A further round walks those before it again.
        walks = len(folds) * (len(starts) + sum(range(2, self.rounds + 1))) + self.rounds
        steps = walks * max(len(without_leaps(c.ratios)[0]) for c in starts)
        with telling(self, X, y, "lambda", steps) as tell, crew_of(self, X, y, weights, folds) as crew:
            how = (parts, X, y, weights, begin, tell)
            euclid = self._try_starts(starts, crew, *how)
            cut = self.n_components is not None and self.n_components < X.shape[1]
            choice = partial(choose_candidate, starts, euclid, one_standard_error, not cut)
            chosen, column = choice()
            for _ in range(1, self.rounds):
                if column is None:
                    break
                starts.append(self._next_round(chosen, column, crew, *how))
                chosen, column = choice()
                if chosen is not starts[-1]:
                    break
            if chosen is None or knows_no_scale(chosen.prior):
                warn_of_scales(X)
            self._keep(chosen or starts[0], chosen, column, euclid, folds)
            self.candidates_ = table(starts, euclid)
            if eps is None:
                wanted = None if column is None else chosen.ratios[: column + 1]
            else:
                chosen, wanted = self._certify(eps, starts, chosen, euclid, *how)
            self._learn_all(chosen, wanted, *how)
            warn_of_cuts(starts, len(folds), self.max_seconds)
        del self._given, self._near, self._has_path
        return self

    def _priors(self):
        """Return the starts to try, checked."""
        given = self.candidates
        if isinstance(given, str) or not hasattr(given, "__len__") or not len(given) or isinstance(given, np.ndarray):
            raise InputError(f"candidates={shortened(given)}: it must be a list of starts, such as {list(STARTS)}")
        for prior in given:
            check_start(prior, "candidates")
        return list(given)

    def _walk(self, candidate, N, k, train, X, y, weights, begin, left, tell, judge=None, ratios=None):
        """Return (the path of one part from one start, its scores or else its problem), after the rounds before it.

        judge: of a fold, from a metric to its scores; ratios: those of the candidate, or fewer.
        """
        problem, own = self._problem_after_rounds(candidate, N, k, train, X, y, weights, begin, left, tell, judge)
        arguments = self._how(begin, left, candidate.before, candidate, k, judge)
        ratios, until = (candidate.ratios, candidate.until) if ratios is None else (ratios, None)
        path, scores = self._path(problem, ratios, judge, tell, arguments, until)
        self._so_far, self.prior_, self.prior_scale_ = path, *own
        return path, problem if judge is None else scores

    def _problem_after_rounds(self, candidate, N, k, train, X, y, weights, begin, left, tell, judge):
        """Return (the problem of one part from one start after the rounds before, its prior and the scale of that)."""
        X, y, weights = X[train], y[train], None if weights is None else weights[train]
        Z = self._first_space(X, N, candidate.prior)
        near = self._near if Z is None or self._given is not None else None  # of one search for all parts
        # What took its time for one part takes it for all points too: these are not given up for it.
        in_time = nullcontext if judge is None else partial(self._in_time, begin)
        with in_time():
            T = self._make_triplets(X if Z is None else Z, y, weights, None if near is None else near.part(train))
            problem, *own = self._make_problem(X, T, N, judge is not None)
        share = left + len(candidate.before)
        for number, column in enumerate(candidate.before):
            arguments = self._how(begin, share - number, candidate.before[:number], candidate, k, judge, column)
            path, _ = self._path(problem, candidate.ratios[: column + 1], None, tell, arguments)
            with in_time():
                again = self._make_triplets(moved(X, path.M(len(path) - 1)), y, weights)
                if again.same_as(T):
                    break
                T = again
                problem, *own = self._make_problem(X, T, N, judge is not None)
        return problem, own

    def _make_problem(self, X, T, N=None, roughly=False):
        problem, *own = super()._make_problem(X, T, N)
        if roughly:
            problem.floor = max(problem.floor, _FLOOR * T.total_weight * problem.loss(0.0))
        return problem, *own

    def _how(self, begin, shares, before, candidate, k, judge, column=None):
        """Return the arguments of one path, which comes after these rounds of a candidate and ends at this column."""
        arguments = self._arguments(begin, shares)
        if judge is not None:
            arguments["tol"] = max(as_positive(self.tol, "tol"), _ROUGH)
        if self.checkpoint is not None:
            folder = self._folder(candidate, before, k, judge is not None, column)
            arguments["checkpoint"] = self._folder_to_the_end(folder) if judge is None and column is None else folder
        return arguments

    def _keep(self, shown, chosen, column, euclid, folds):
        """Say what was chosen, and return its scores."""
        scores = euclid if chosen is None else chosen.alone if column is None else chosen.filled()[:, column]
        self.chosen_ = "euclid" if chosen is None else chosen.name
        self.ratios_, self.cv_scores_ = shown.ratios, shown.scores[:, :, 0]
        self.best_index_ = -1 if column is None else int(column)
        self.lam_ratio_ = float("inf") if column is None else float(shown.ratios[column])
        self.best_score_ = float(np.nanmean(scores[:, 0]))
        self.improvement_ = improvement(scores[:, 1], euclid[:, 1])
        self.error_before_, self.error_after_ = (
            errors_of(some[:, 1], folds, self.scoring) for some in (euclid, scores)
        )
        mean, error = self.improvement_
        what = self.chosen_ if column is not None else f"{self.chosen_} alone"
        _log.info("chosen: %s, lam/lambda_max %.3g, score %.4f, %+.4f (standard error %.4f) over Euclid%s", what,
                  self.lam_ratio_, self.best_score_, mean, error,
                  "" if mean > error else ": metric learning does not help here")  # fmt: skip
        return scores

    def _learn_all(self, chosen, ratios, parts, X, y, weights, begin, tell):
        """Fit the choice on all points; ratios: down to the chosen one, None: a start alone."""
        train = parts[-1][0]
        N = None if chosen is None else make_start(chosen.prior, X, y, self.cone)
        if ratios is None:
            self.path_, self.prior_, self.prior_scale_, self.n_triplets_, self.n_rounds_ = None, N, 1.0, 0, 0
            M = N if N is not None else np.ones(X.shape[1]) if self.cone == "diagonal" else np.eye(X.shape[1])
            self._set_solution(without_learning(M, self.tol), components_of_start(M, X.shape[1]))
            return
        stage("all points")
        data = (X, y, weights, begin, 1, tell)
        path, problem = self._walk(chosen, N, len(parts) - 1, train, *data, ratios=ratios)
        self.path_, self.n_rounds_, self.n_triplets_ = path, 1 + len(chosen.before), path.n_triplets
        self._set_solution(path[len(path) - 1].knowing(problem), path.components(len(path) - 1))
        self.n_iter_ = max(1, int(path.n_iter.sum()))

    def _check_options(self):
        super()._check_options()
        if not (self.checkpoint is None or isinstance(self.checkpoint, str | os.PathLike)):
            raise InputError(f"checkpoint={shortened(self.checkpoint)}: checkpoint must be the path of a folder")

    def _folder(self, candidate, before, k, is_fold, column=None):
        """Return the folder of a path's own checkpoint, which comes after these rounds (and ends at this column)."""
        start = "" if candidate.prior is None else "-" + candidate.start.replace(" ", "-")
        after = "".join(f"-{t}" for t in before)
        until = "" if column is None else f"-to-{column}"
        name = f"round-{1 + len(before)}-{f'fold-{k}' if is_fold else 'all'}{start}{after and f'-after{after}'}{until}"
        return as_path(self.checkpoint, "checkpoint") / name

    def _look_at_folders(self, candidates, parts):
        """Refuse a checkpoint that is damaged in any of its folders before work starts in another one."""
        if self.checkpoint is None:
            return
        seen = set()
        for candidate, (k, (train, test)) in itertools.product(candidates, enumerate(parts)):
            seen.add(folder := self._folder(candidate, (), k, test is not None))
            with named(k, train) if test is not None else nullcontext():
                kept_losses(folder)
        whole = as_path(self.checkpoint, "checkpoint")
        for folder in sorted(whole.glob("round-*")) if whole.is_dir() else ():
            if folder not in seen:  # of further rounds
                kept_losses(folder)
        self._look_at_searches(whole)

    def _grid(self, prior):
        """Return the ratios of the path from a start."""
        return grid(self.ratios, self.smallest_ratio, prior is not None)

    def _path(self, problem, given, judge, callback, arguments, until=None):
        """Return (the path of a problem at these ratios, the scores of its metrics, none without a judge).

        until: so many scores are enough.
        """
        ratios, wanted = without_leaps(given, 1.0 if problem.prior is None else LARGEST_WITH_PRIOR)
        lambdas, of_zero = ratios * scale_of_lambda(problem), problem.triplets.total_weight * problem.loss(0.0)
        losses = kept_losses(arguments["checkpoint"]) if "checkpoint" in arguments else []
        places, scores, path = set(wanted.tolist()), [], None

        def done():
            if judge is None and self.certify is not None:  # this ratio was proven, not a larger one
                return False
            first = [score[0] for score in scores]
            falling = len(first) > _PATIENCE and max(first[-_PATIENCE:]) < max(first)
            enough = until is not None and len(scores) >= until
            return np.ndim(self.ratios) == 0 and (falling or enough or (losses and losses[-1] < _DONE * of_zero))

        def seen(state):
            losses.append(state.loss)
            if judge is not None and state.n_lambdas - 1 in places:
                scores.append(judge(state.components()))
            return bool(callback(state) or done())

        if losses:  # what a checkpoint has
            stage(kept=len(losses))
            path = solve_path(problem, lambdas=lambdas, n_lambdas=len(losses), **arguments)
            scores += [judge(path.components(t)) for t in wanted[: np.searchsorted(wanted, len(path))] if judge]
        if not done():
            path = solve_path(problem, lambdas=lambdas, callback=seen, **arguments)
        done_ones = wanted[: np.searchsorted(wanted, len(path))].tolist() or [len(path) - 1]
        if judge is not None:  # a path that time ended at its first lambda told nobody
            scores += [judge(path.components(t)) for t in done_ones[len(scores) :]]
        return path.take(done_ones), scores

    def _score(self, L, data, whole=False):
        """Return (score, accuracy, or with another scorer its score again) of one metric on held-out points.

        whole: of all its directions, whatever ``n_components`` says; Euclid has no order among its own.
        """
        L = L if whole else L[: self.n_components]
        return score_of_fold(L, data, self.scoring, self.n_neighbors, self.score_neighbors, self.n_jobs)
