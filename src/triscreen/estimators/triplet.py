"""One metric from labelled points."""

from __future__ import annotations

import logging
import numbers
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, validate_data

from triscreen._utils.threads import Threads, single_threaded_blas
from triscreen._utils.validation import as_choice, as_count, as_positive, blocks_of_rows
from triscreen.distributed.problem import Prepared
from triscreen.errors import InputError, OutOfTime
from triscreen.estimators.base import FLOATS, MetricEstimator, components_in, scale_of_lambda, watched_fit
from triscreen.estimators.callbacks import telling, with_callbacks
from triscreen.estimators.choosing import PLAIN, Choice, as_ratio, held_out_points, looks, ratio_by_folds
from triscreen.estimators.cluster import Shards, check_alone
from triscreen.estimators.graphs import given_neighbours
from triscreen.estimators.scaling import warn_of_scales
from triscreen.estimators.starts import check_start, knows_no_scale, make_start, moved, scaled_start
from triscreen.problem import Problem
from triscreen.screening import Screening
from triscreen.selection import vote_scores
from triscreen.solvers import solve
from triscreen.solvers.contract import Solver
from triscreen.triplets.labelled import KINDS, labelled_triplets
from triscreen.triplets.pairs import product

_log = logging.getLogger(__name__)


class LabelledMetric(MetricEstimator):
    """What estimators from labels share: checks, and from points and labels to a problem."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        return tags

    def _check(self, X, y, sample_weight, narrow=False):
        """Return (X as an array, y, weights or None), or refuse what is wrong, before any work.

        narrow: may float32 stay what it is?
        """
        as_choice(self.triplets, "triplets", KINDS)
        as_count(self.n_neighbors, "n_neighbors")
        as_count(self.rounds, "rounds")
        as_choice(self.neighbors, "neighbors", ("prior", "euclid"))
        n_components = as_count(self.n_components, "n_components", none="all")
        X, y = validate_data(
            self,
            self._formed(X),
            y,
            accept_sparse="csr",
            dtype=FLOATS,
            ensure_min_samples=2,
            multi_output=False,
            y_numeric=False,
        )
        check_classification_targets(y)
        if n_components is not None and n_components > X.shape[1]:
            raise InputError(f"n_components={n_components}: X has {X.shape[1]} features, so it must be at most that")
        if sample_weight is not None:
            sample_weight = _as_point_weights(sample_weight, X.shape[0])
        return self._dense(X).astype(X.dtype if narrow else np.float64, copy=False), y, sample_weight

    def _make_triplets(self, Z, y, weights, neighbors=None):
        """Return the triplets of labelled points, neighbours chosen in Z where they are not known."""
        return labelled_triplets(Z, y, self.triplets, self.n_neighbors, weights, self.n_jobs, neighbors)

    def _make_problem(self, X, T, N=None):
        """Return (the problem, the prior that it has or None, its scale); N: the start that the prior is made of."""
        N, scale = scaled_start(N, X, T, self._loss(), self.n_jobs)
        if isinstance(T, Prepared):
            return T.problem(N), N, scale
        limits = {"n_jobs": self.n_jobs, "memory_budget": self.memory_budget}
        return Problem(X, T, self._loss(), self.cone, **limits, prior=N), N, scale

    def _first_space(self, X, N, prior):
        """Return the points as they are where neighbours are chosen at first; None: by Euclid."""
        euclid = self.neighbors == "euclid" or N is None or (isinstance(prior, str) and prior == "identity")
        return None if euclid else moved(X, N)


class TripletMetric(LabelledMetric):
    """A Mahalanobis metric from labelled points, to a certified optimum.

    Parameters
    ----------
    n_neighbors : int
        Neighbours that triplets are made of.
    triplets : {"knn", "lmnn", "all"}
        "knn": n_neighbors nearest of the same class times n_neighbors nearest of other classes. "lmnn": n_neighbors
        nearest of the same class against every point of other classes. "all": every triplet. Neither of the last two is
        ever listed (see `all_triplets`).
    lam : float, optional
        Strength of regularisation. By default ``lam_ratio`` times the problem's lambda_max, which means the same for
        any number and scale of points.
    lam_ratio : float or "auto"
        "auto": 1e-3, which is good on most data without tuning. With more than 64 features (in the span of the points)
        a fifth of the points is held out first, and the ratio is that where their score stops rising on a walk down
        from 0.3: smaller ones would take most of the time and are no better there. `TripletMetricCV` chooses with more
        care.
    gamma : float
        Width of the smoothed hinge; 0: the hinge.
    cone : {"psd", "diagonal"}
        Full metrics, or one weight for each feature.
    prior : None, "identity", "within", array or FrozenEstimator
        The metric to begin with and to stay close to, (lam/2) |M - s N|^2: none (the paper's problem), the Euclidean
        one, the inverse of the covariance within classes (shrunk by a tenth), a matrix of your own (for the diagonal
        cone a vector), or a metric that was learned before, in a `sklearn.frozen.FrozenEstimator`. Its scale s is
        chosen such that the loss of s N is least. With a prior, lambda_max is where M is within 1 % of it, and a
        hundredth of that where M may be as far from it as it is large.
    neighbors : {"prior", "euclid"}
        Where the neighbours of the first round are nearest: by the prior, or by Euclidean distance.
    tol : float
        Relative duality gap.
    rounds : int
        1: neighbours are chosen once. Each further round chooses them by the metric of the round before, and ends early
        when they no longer change.
    n_components : int, optional
        Keep so many directions for `transform`, the most important first; the proof is that of the whole metric.
    solver, screening, max_iter, max_seconds :
        As for `solve`.
    n_jobs, memory_budget :
        As for `Problem`.
    scheduler : None, "current" or str, optional
        Where the triplets live: in this process; on the workers of the `dask.distributed.Client` that it has; or on
        those of the scheduler at an address such as "tcp://host:8786" (see docs/distributed.md). There ``lam_ratio``
        "auto" is 1e-3 for any number of features.
    callback : callable, optional
        Sees a `State` after every iteration; returning True stops.
    random_state : ignored
        Nothing is random here.
    verbose : int
        1: a line per round on stderr, and a bar where that is a terminal; 2: per iteration, too.
    preprocessor : array (n, d), sparse matrix, table or callable, optional
        Points, for X that is a list of names, as for `ComparisonMetric`.

    Attributes
    ----------
    components_ : array, shape (n_components, d)
        L: the metric is d(x, x') = |L (x - x')|.
    lam_, n_iter_, dual_gap_, rel_gap_, converged_, screening_ :
        Of the solution (of the last round).
    solution_ : Solution
    lam_ratio_ : float or None
        The ratio; None where ``lam`` was given.
    ratios_, held_out_scores_ : array or None
        Those that held-out points were asked about, and their answers; None where they were not.
    n_rounds_, n_triplets_ : int
    prior_ : array or None
        The prior as it was used, scaled; None: there was none.
    prior_scale_ : float
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    References
    ----------
    Yoshida, Takeuchi, Karasuyama, KDD 2018, arXiv:1802.03923. Beginning at a prior is ours (docs/estimators.md); names
    are those of scikit-learn and metric-learn.

    Examples
    --------
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_wine(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), ts.TripletMetric(), KNeighborsClassifier(3)).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.95), bool(model[1].rel_gap_ <= 1e-4)
    (True, True)
    """

    # What a fit leaves, for type checkers.
    lam_ratio_: float | None
    ratios_: np.ndarray | None
    held_out_scores_: np.ndarray | None
    n_rounds_: int

    def __init__(
        self,
        n_neighbors: int = 5,
        triplets: str = "knn",
        lam: float | None = None,
        lam_ratio: float | str = "auto",
        gamma: float = 0.05,
        cone: str = "psd",
        prior: str | ArrayLike | BaseEstimator | None = None,
        neighbors: str = "prior",
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
        callback: Callable[[Any], object] | None = None,
        random_state: Any = None,
        verbose: int = 0,
        preprocessor: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.triplets = triplets
        self.lam = lam
        self.lam_ratio = lam_ratio
        self.gamma = gamma
        self.cone = cone
        self.prior = prior
        self.neighbors = neighbors
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
        neighbors: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
    ) -> TripletMetric:
        """Learn the metric.

        Parameters
        ----------
        X : array or sparse matrix, shape (n, d); or (n,) names of points, where there is a preprocessor
        y : array, shape (n,)
            Labels.
        sample_weight : array, shape (n,), optional
            The weight of each triplet that the point is the anchor of.
        neighbors : int array (n, m), sparse matrix (n, n), or a pair of these, optional
            Neighbours that somebody else has found, as for `knn_triplets`; further rounds choose their own.

        Returns
        -------
        self
        """
        lam, ratio = as_positive(self.lam, "lam", none="lam_ratio"), as_ratio(self.lam_ratio)
        begin = time.perf_counter()
        check_start(self.prior)
        # Searches and problems take float32 as it is: a copy in float64 would be one more beside that of the problem.
        plain = self.prior is None and self.rounds == 1 and self.scheduler is None
        X, y, weights = self._check(X, y, sample_weight, narrow=plain)
        if self.scheduler is not None:
            check_alone(self, neighbors)
        if knows_no_scale(self.prior):
            warn_of_scales(X)
        given = given_neighbours(self.triplets, neighbors, y)
        with telling(self, X, y, "iteration") as tell:
            with Shards.of(self, X, y, weights) as shards:
                learned = self._last_round(X, y, weights, given, lam, ratio, begin, tell, shards)
            self._set_solution(*learned)
        return self

    def _last_round(self, X, y, weights, given, lam, ratio, begin, tell, shards):
        """Learn and choose neighbours again, as often as that is wanted and changes them.

        Return the last solution and its components. shards: who makes triplets on a cluster; None: they are made here.
        """
        N, solution, L, before = make_start(self.prior, X, y, self.cone), None, None, None
        Z = self._first_space(X, N, self.prior)
        Z = X if Z is None else Z
        for number in range(1, self.rounds + 1):
            try:
                with self._in_time(begin):
                    if shards is None:
                        T = self._make_triplets(Z, y, weights, given if number == 1 else None)
                    else:
                        T = shards.triplets(Z, N)
                    if number > 1 and T.same_as(before):
                        break
                    problem, self.prior_, self.prior_scale_ = self._make_problem(X, T, N)
                    if number == 1:
                        choice = self._choose(problem, X, y, weights, given, lam, ratio, begin, tell)
                    wanted = lam if lam is not None else choice.ratio * scale_of_lambda(problem)
            except OutOfTime:
                if solution is None:
                    raise
                break
            start = choice.M if solution is None else solution.M
            solution = self._so_far = solve(problem, wanted, start=start, callback=tell, **self._arguments(begin))
            self.n_rounds_, self.n_triplets_, before = number, T.n_triplets, T
            L = components_in(problem, solution.M)
            _log.info("round %d: %s triplets, lam %.4g, relative gap %.2g after %d iterations",
                      number, f"{T.n_triplets:,}", solution.lam, solution.rel_gap, solution.n_iter)  # fmt: skip
            if not solution.M.any() or solution.stopped_by in ("callback", "max_seconds"):
                break  # a metric of zero has no neighbours
            if number == self.rounds:
                break
            Z = X @ L.T
        self.lam_ratio_ = choice.ratio
        self.ratios_, self.held_out_scores_ = choice.ratios, None if choice.scores is None else choice.scores[0]
        return solution, L

    def _choose(self, problem, X, y, weights, given, lam, ratio, begin, tell):
        """Return lam / lambda_max as a `Choice`: by the user, what is always good, or by held-out points."""
        if lam is not None or ratio is not None:
            return Choice(ratio if lam is None else None)
        parts = held_out_points(y) if looks(problem) and self.scheduler is None else None
        if parts is None:
            return Choice(PLAIN)
        train, test = parts

        def make():
            N = make_start(self.prior, X[train], y[train], self.cone)
            Z = self._first_space(X[train], N, self.prior)
            near = None if given is None else given.part(train)
            T = self._make_triplets(
                X[train] if Z is None else Z, y[train], None if weights is None else weights[train], near
            )
            return self._make_problem(X[train], T, N)[0]

        def judge(_, L):
            Z, Z_test = (_mapped(X[part], L, self.n_jobs) for part in (train, test))
            return vote_scores(Z, y[train], Z_test, y[test], 3, self.n_jobs)[0]

        found = ratio_by_folds([make], judge, self._arguments(begin), tell)
        _log.info("lam/lambda_max %.3g by %d held-out points, of %s with the scores %s", found.ratio, len(test),
                  found.ratios, found.scores)  # fmt: skip
        return found


def _mapped(X, L, n_jobs):
    """Return X L' in float64; of float32 by blocks, without a copy of X."""
    if X.dtype == np.float64:
        return product(X, L.T, Threads(n_jobs))
    return np.concatenate([product(X[rows].astype(float), L.T, Threads(n_jobs)) for rows in blocks_of_rows(X)])


def _as_point_weights(weights, n_points):
    """Return one weight for each point, none negative and not all zero; a number is the weight of all."""
    if isinstance(weights, numbers.Number):
        weights = np.full(n_points, weights)
    weights = check_array(weights, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weights.shape != (n_points,):
        raise InputError(f"sample_weight has shape {weights.shape}: one weight for each of the {n_points} points")
    if not weights.any():
        raise InputError("sample_weight is zero for every point: at least one must be positive")
    if (weights < 0).any():
        row = int(np.argmin(weights))
        raise InputError(f"sample_weight[{row}] is {weights[row]}: weights must not be negative")
    return weights
