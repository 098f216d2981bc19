"""A decision: the class of a point, by the votes of its neighbours in a learned metric."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from triscreen._utils.threads import Threads
from triscreen._utils.validation import as_count, shortened
from triscreen.errors import InputError
from triscreen.estimators.base import FLOATS
from triscreen.estimators.candidates import improvement
from triscreen.estimators.cv import STARTS, TripletMetricCV
from triscreen.estimators.folds import errors_of
from triscreen.screening import Screening
from triscreen.selection.scores import codes_in, scores_of_votes
from triscreen.selection.votes import WEIGHTS, choose_votes, judge_votes, shares
from triscreen.solvers.contract import Solver
from triscreen.triplets.neighbours import k_nearest
from triscreen.triplets.pairs import product

_MOST = 7  # neighbours that rank metrics, as for `TripletMetricCV`
_SHARES = 1 << 22  # of classes, computed at a time


class TripletClassifier(ClassifierMixin, TripletMetricCV):
    """Nearest neighbours in a learned metric; start, lambda, their number and their weights by one cross-validation.

    Start and lambda are chosen as by `TripletMetricCV`, which needs no number of neighbours. The same folds then say
    how many vote and how: of all ways that are as accurate as the best, the one whose shares of votes are nearest to
    the truth (Brier score). Neighbours are exact, and those of all learned points are kept.

    Parameters
    ----------
    n_neighbors, triplets, candidates, ratios, smallest_ratio, cv, gamma, cone, tol, rounds, n_components, solver,
    screening, max_iter, max_seconds, n_jobs, memory_budget, scheduler, checkpoint, callback, random_state, verbose,
    preprocessor :
        As for `TripletMetricCV`; n_neighbors is of the triplets.
    vote_neighbors : int or sequence of int
        How many neighbours may vote: one number, or those to choose from.
    vote_weights : {"uniform", "distance"} or sequence of these
        What a vote may count: 1, or one over the distance (points at distance 0 then vote alone).

    Attributes
    ----------
    classes_ : array, shape (n_classes,)
    vote_neighbors_ : int
    vote_weights_ : str
        The choice.
    votes_ : dict
        What the folds say of ways to vote in the chosen metric, as columns: "neighbors", "weights", "accuracy",
        "brier", each a mean over the folds.
    error_before_, error_after_ : (float, float, float)
        Share of held-out points that are classified wrongly, by Euclidean distance (with the votes that are best for
        it) and by the choice, and an interval of 95 % (Wilson's, for as many trials as there are points). In-sample, as
        ``improvement_``: the choice was made on these folds.
    points_ : array, shape (n, n_components)
        The points learned from, where Euclidean distance is the learned one.
    codes_ : int array, shape (n,)
        Their classes, as places in ``classes_``.
    improvement_ : (float, float)
        Accuracy of the choice less that of Euclid, each with its own votes: the mean over the folds and its standard
        error.
    components_, lam_, chosen_, candidates_, cv_scores_, path_ :
        And all others of `TripletMetricCV`.

    References
    ----------
    Yoshida, Takeuchi, Karasuyama, KDD 2018, arXiv:1802.03923, for the metric; votes and their choice are ours
    (docs/estimators.md). G. W. Brier, Monthly Weather Review 78, 1950; E. B. Wilson, JASA 22, 1927.

    Examples
    --------
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> model = ts.TripletClassifier(ratios=6, cv=3).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.93), model.predict_proba(X[1:3]).shape
    (True, (2, 3))
    """

    # What a fit leaves, for type checkers.
    classes_: np.ndarray
    vote_neighbors_: int
    vote_weights_: str
    votes_: dict[str, Any]
    error_before_: tuple[float, float, float]
    error_after_: tuple[float, float, float]
    points_: np.ndarray
    codes_: np.ndarray

    # What `TripletMetricCV` lets one choose and this class does not.
    neighbors, scoring, score_neighbors, one_standard_error, certify = "prior", None, 3, False, None

    def __init__(
        self,
        n_neighbors: int = 5,
        triplets: str = "knn",
        vote_neighbors: int | Sequence[int] = (1, 3, 5, 7, 11, 15),
        vote_weights: str | Sequence[str] = WEIGHTS,
        candidates: Sequence[str | ArrayLike | BaseEstimator | None] = STARTS,
        ratios: int | ArrayLike = 7,
        smallest_ratio: float = 1e-4,
        cv: Any = None,
        gamma: float = 0.05,
        cone: str = "psd",
        tol: float = 1e-4,
        rounds: int = 1,
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
        self.vote_neighbors = vote_neighbors
        self.vote_weights = vote_weights
        self.candidates = candidates
        self.ratios = ratios
        self.smallest_ratio = smallest_ratio
        self.cv = cv
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
        self.scheduler = scheduler
        self.checkpoint = checkpoint
        self.callback = callback
        self.random_state = random_state
        self.verbose = verbose
        self.preprocessor = preprocessor

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        neighbors: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
    ) -> TripletClassifier:
        """Choose how to measure and how to vote, and keep the points that vote.

        Parameters
        ----------
        X : array or sparse matrix, shape (n, d)
        y : array, shape (n,)
        sample_weight : array, shape (n,), optional
            The weight of each triplet that the point is the anchor of; votes have none.
        groups : array, shape (n,), optional
            For a splitter that keeps groups together.
        neighbors : int array (n, m), sparse matrix (n, n), or a pair of these, optional
            As for `TripletMetricCV`.

        Returns
        -------
        self
        """
        self._begin()
        super().fit(X, y, sample_weight, groups, neighbors)
        self.classes_, self.codes_ = np.unique(column_or_1d(y), return_inverse=True)
        self.points_ = self._embedded(X)
        del self._options
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the class of each point: the one with most votes, of several the first.

        Parameters
        ----------
        X : array or sparse matrix, shape (n, d); or (n,) names of points, where there is a preprocessor

        Returns
        -------
        array, shape (n,)
        """
        Z = self._asked(X)
        step = max(1, _SHARES // len(self.classes_))
        parts = [self._shares(Z[begin : begin + step]).argmax(axis=1) for begin in range(0, len(Z), step)]
        return self.classes_[np.concatenate(parts)]

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Return the share of the votes that each class has, in the order of ``classes_``.

        Parameters
        ----------
        X : array or sparse matrix, shape (n, d); or (n,) names of points, where there is a preprocessor

        Returns
        -------
        array, shape (n, n_classes)
        """
        return self._shares(self._asked(X))

    def _begin(self):
        self._options = self._ways()

    def _ways(self):
        """Return the (number, weights) to choose from, checked."""
        given, named = self.vote_neighbors, self.vote_weights
        numbers = [given] if np.ndim(given) == 0 else list(given)
        weights = [named] if isinstance(named, str) else list(named) if isinstance(named, Sequence) else [named]
        if not numbers or not weights:
            raise InputError(
                f"{'vote_weights' if numbers else 'vote_neighbors'}={shortened(named if numbers else given)}: there "
                "must be at least one to choose from"
            )
        for weight in weights:
            if not isinstance(weight, str) or weight not in WEIGHTS:
                raise InputError(f"vote_weights={shortened(named)}: it must be {' or '.join(map(repr, WEIGHTS))}")
        return [(as_count(k, "vote_neighbors"), weight) for weight in weights for k in numbers]

    @property
    def _n_scores(self):
        return 2 + 2 * len(self._options)

    def _score(self, L, data, whole=False):
        """Return score and accuracy as `TripletMetricCV` has them, then accuracies and Brier scores of the options."""
        X, y, X_test, y_test = data
        L = L if whole else L[: self.n_components]
        Z, Z_test = (product(part, L.T, Threads(self.n_jobs)) for part in (X, X_test))
        classes, codes = np.unique(y, return_inverse=True)
        right, most = codes_in(classes, y_test), max(_MOST, self.score_neighbors, *(k for k, _ in self._options))
        near, squares = k_nearest(Z, min(most, len(Z)), Threads(self.n_jobs), Z_test)
        first = scores_of_votes(codes[near], right, len(classes), self.score_neighbors, _MOST)
        return *first, *np.concatenate(judge_votes(near, squares, codes, right, len(classes), self._options))

    def _keep(self, shown, chosen, column, euclid, folds):
        """Say what was chosen, how to vote included."""
        scores = super()._keep(shown, chosen, column, euclid, folds)
        half, accuracies = len(self._options), []
        for some in (euclid, scores):
            option = choose_votes(some[:, 2 : 2 + half], some[:, 2 + half :])
            accuracies.append(some[:, 2 + option])
        self.error_before_, self.error_after_ = (errors_of(some, folds) for some in accuracies)
        self.vote_neighbors_, self.vote_weights_ = self._options[option]
        self.improvement_ = improvement(accuracies[1], accuracies[0])
        means = scores[~np.isnan(scores).any(axis=1)]
        means = means.mean(axis=0) if len(means) else np.full(scores.shape[1], np.nan)
        self.votes_ = {
            "neighbors": [k for k, _ in self._options],
            "weights": [weights for _, weights in self._options],
            "accuracy": means[2 : 2 + half],
            "brier": means[2 + half :],
        }
        return scores

    def _asked(self, X):
        check_is_fitted(self, "points_")
        return self._embedded(X)

    def _embedded(self, X):
        """Return points where Euclidean distance is the learned one, as an array whatever `transform` gives."""
        X = validate_data(self, self._formed(X), accept_sparse="csr", dtype=FLOATS, reset=False)
        Z = safe_sparse_dot(X, self.components_.astype(X.dtype).T, dense_output=True)
        return np.ascontiguousarray(Z.toarray() if sparse.issparse(Z) else Z)

    def _shares(self, Z):
        how = (self.vote_neighbors_, self.vote_weights_, self.n_jobs)
        return shares(self.points_, self.codes_, len(self.classes_), Z, *how)
