"""One metric from comparisons "a is closer to b than to c": human judgements, adapters on frozen embeddings."""

from __future__ import annotations

import logging
import numbers
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupKFold, KFold
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from triscreen._utils.validation import as_choice, as_count, as_positive, as_weights, shortened
from triscreen.errors import InputError
from triscreen.estimators.base import (
    FLOATS,
    MetricEstimator,
    components_in,
    scale_of_lambda,
    watched_fit,
)
from triscreen.estimators.callbacks import telling, with_callbacks
from triscreen.estimators.choosing import PLAIN, Choice, as_ratio, held_out_comparisons, looks, ratio_by_folds
from triscreen.estimators.preprocessing import named_points
from triscreen.estimators.starts import check_start, make_start, scaled_start
from triscreen.problem import Problem
from triscreen.screening import Screening
from triscreen.selection import comparison_error
from triscreen.selection.votes import interval
from triscreen.solvers import solve
from triscreen.solvers.contract import Solver
from triscreen.triplets import given_triplets

_log = logging.getLogger(__name__)


class ComparisonMetric(MetricEstimator):
    """A Mahalanobis metric from triplets (a, b, c): "a is closer to b than to c".

    Parameters
    ----------
    preprocessor : array (n, d), sparse matrix, table or callable, optional
        Points, for triplets that are given by name: rows of an array, entries of the index of a table that has one of
        its own, or whatever a function takes, which gets each name once, in an array, and returns the points.
    prior : None, "identity", array or FrozenEstimator
        The metric to begin with and to stay close to, as for `TripletMetric`; here there are no classes for "within".
    lam : float, "cv" or None
        "cv": lam / lambda_max is the one that folds of the comparisons find best, as ``cv`` makes them. Otherwise as
        for `TripletMetric`.
    lam_ratio : float or "auto"
        As for `TripletMetric`; "auto" holds out the comparisons of a fifth of the anchors.
    cv : None, int or splitter
        Folds of lam="cv". None, or a number: `ComparisonKFold` by item, five of them, so that no item is known on both
        sides; a splitter sees the comparisons.
    gamma, cone, tol, n_components, solver, screening, max_iter, max_seconds, n_jobs, memory_budget,
    callback, random_state, verbose :
        As for `TripletMetric`.

    Attributes
    ----------
    components_, lam_, solution_, dual_gap_, rel_gap_, converged_, screening_, n_iter_, n_features_in_, prior_,
    prior_scale_ :
        As for `TripletMetric`.
    n_triplets_, n_points_ : int
        Comparisons, and different points in them.
    lam_ratio_ : float or None
        The ratio; None where ``lam`` was a number.
    ratios_ : array or None
        Those that held-out comparisons were asked about; None where they were not.
    cv_scores_ : array, shape (n_folds, n_ratios), or None
        Shares of held-out comparisons in the right order; NaN where the walk of a fold ended early. One fold, where
        lam_ratio="auto" looked.
    error_before_, error_after_ : (float, float, float) or None
        Share of the held-out comparisons that Euclidean distance, and the choice, have in the wrong order, and an
        interval of 95 % (Wilson's, for ``n_held_out_`` independent trials, which comparisons of the same items are
        not); None where none were held out. The choice was made on them, so the second one flatters.
    n_held_out_ : int
        Different comparisons that were held out.

    References
    ----------
    Yoshida, Takeuchi, Karasuyama, KDD 2018, arXiv:1802.03923, section 2; docs/estimators.md. Names are those of
    scikit-learn and metric-learn.

    Examples
    --------
    >>> import numpy as np
    >>> import triscreen as ts
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> near = lambda a, b: abs(X[a, 0] - X[b, 0])  # people who see the first feature only
    >>> rows = np.random.default_rng(1).integers(0, 30, (300, 3))
    >>> rows = [(a, b, c) if near(a, b) < near(a, c) else (a, c, b) for a, b, c in rows if len({a, b, c}) == 3]
    >>> model = ts.ComparisonMetric(preprocessor=X).fit(rows[:200])
    >>> bool(model.score(rows[200:]) > 0.9), int(np.argmax(np.abs(model.components_[0])))
    (True, 0)
    """

    # What a fit leaves, for type checkers.
    n_points_: int
    lam_ratio_: float | None
    ratios_: np.ndarray | None
    cv_scores_: np.ndarray | None
    error_before_: tuple[float, float, float] | None
    error_after_: tuple[float, float, float] | None
    n_held_out_: int

    # What is fitted, scored and predicted, not metadata, whatever its name.
    __metadata_request__fit: ClassVar = {"triplets": UNUSED}
    __metadata_request__score: ClassVar = {"triplets": UNUSED}
    __metadata_request__predict: ClassVar = {"triplets": UNUSED}
    __metadata_request__decision_function: ClassVar = {"triplets": UNUSED}

    def __init__(
        self,
        preprocessor: ArrayLike | None = None,
        lam: float | str | None = None,
        lam_ratio: float | str = "auto",
        gamma: float = 0.05,
        cone: str = "psd",
        prior: str | ArrayLike | BaseEstimator | None = None,
        tol: float = 1e-4,
        n_components: int | None = None,
        solver: str | Solver = "auto",
        screening: str | Screening | None = "auto",
        max_iter: int | None = None,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        memory_budget: float | None = None,
        callback: Callable[[Any], object] | None = None,
        random_state: Any = None,
        verbose: int = 0,
        cv: Any = None,
    ) -> None:
        self.preprocessor = preprocessor
        self.lam = lam
        self.lam_ratio = lam_ratio
        self.gamma = gamma
        self.cone = cone
        self.prior = prior
        self.tol = tol
        self.n_components = n_components
        self.solver = solver
        self.screening = screening
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.memory_budget = memory_budget
        self.callback = callback
        self.random_state = random_state
        self.verbose = verbose
        self.cv = cv

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags

    @with_callbacks
    @watched_fit
    def fit(
        self, triplets: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> ComparisonMetric:
        """Learn the metric.

        Parameters
        ----------
        triplets : array, shape (m, 3, d), or (m, 3) with names of the preprocessor's points
            Equal points are found and counted once. Points of a comparison may coincide: then one of its distances is 0
            in every metric.
        y : array, shape (m,), optional
            Answers: 1 where a is closer to b, -1 where it is closer to c. By default all are 1.
        sample_weight : array, shape (m,), optional
            Weights of the comparisons.

        Returns
        -------
        self
        """
        by_folds = isinstance(self.lam, str) and self.lam == "cv"
        if isinstance(self.lam, str) and not by_folds:
            raise InputError(f"lam={self.lam!r}: lam must be a positive number, 'cv', or None for lam_ratio")
        lam, ratio = None if by_folds else as_positive(self.lam, "lam", none="lam_ratio"), as_ratio(self.lam_ratio)
        as_count(self.n_components, "n_components", none="all")
        check_start(self.prior, names=("identity",))
        splitter = self._splitter()
        begin = time.perf_counter()
        points, indices, origin = self._points(triplets)
        indices = np.where((_answers(y, len(indices)) < 0)[:, None], indices[:, [0, 2, 1]], indices)
        if self.n_components is not None and self.n_components > points.shape[1]:
            raise InputError(f"n_components={self.n_components}: the points have {points.shape[1]} features")
        weights = sample_weight
        if weights is not None:
            weights = np.asarray(weights, dtype=float)
            if weights.shape == (len(indices),):  # a comparison without weight is none
                indices, weights = indices[weights != 0], weights[weights != 0]
            weights = as_weights(weights, len(indices), "sample_weight")
        parts = list(splitter.split(origin[indices])) if by_folds else None
        with self._in_time(begin):
            problem, self.prior_, self.prior_scale_ = self._make_problem(points, indices, weights)
            top = scale_of_lambda(problem)
        self.n_triplets_, self.n_points_ = problem.triplets.n_triplets, len(np.unique(origin[indices]))
        with telling(self, triplets, None, "iteration") as tell:
            choice = Choice(ratio if lam is None else None)
            if lam is None and ratio is None and not by_folds and looks(problem):
                part = held_out_comparisons(indices)
                parts = None if part is None else [part]
            if parts is not None:
                choice = self._choose(parts, points, indices, weights, begin, tell)
            elif lam is None and ratio is None:
                choice = Choice(PLAIN)
            self.lam_ratio_, self.ratios_, self.cv_scores_ = choice.ratio, choice.ratios, choice.scores
            self._set_errors(choice, points, indices, parts)
            lam = lam if lam is not None else choice.ratio * top
            self._so_far = solve(problem, lam, start=choice.M, callback=tell, **self._arguments(begin))
            self._set_solution(self._so_far, components_in(problem, self._so_far.M))
            what = f"{self.n_triplets_:,} comparisons of {self.n_points_:,} points"
            _log.info(
                "%s, lam %.4g, relative gap %.2g after %d iterations", what, self.lam_, self.rel_gap_, self.n_iter_
            )
        return self

    def _make_problem(self, points, indices, weights):
        """Return (the problem of comparisons, the prior that it has or None, its scale)."""
        limits = {"n_jobs": self.n_jobs, "memory_budget": self.memory_budget}
        T, N = given_triplets(indices, weights), make_start(self.prior, points, None, self.cone)
        N, scale = scaled_start(N, points, T, self._loss(), self.n_jobs)
        return Problem(points, T, self._loss(), self.cone, **limits, prior=N), N, scale

    def _choose(self, parts, points, indices, weights, begin, tell):
        """Return the `Choice` of lam / lambda_max by comparisons held out; parts: (to learn from, held out), each."""

        def maker(train):
            some = None if weights is None else weights[train]
            return lambda: self._make_problem(points, indices[train], some)[0]

        def judge(k, L):
            return 1 - _error(points, indices[parts[k][1]], L[: self.n_components])

        makers = [maker(train) for train, _ in parts]
        found = ratio_by_folds(makers, judge, self._arguments(begin), tell)
        _log.info("lam/lambda_max %.3g by %d folds", found.ratio, len(parts))
        return found

    def _set_errors(self, choice, points, indices, parts):
        """Keep the errors of Euclid and of the choice on what was held out."""
        self.error_before_ = self.error_after_ = None
        self.n_held_out_ = 0
        if choice.scores is None:
            return
        chosen = list(choice.ratios).index(choice.ratio)
        folds = []  # (rows held out, error of Euclid, error of the choice) of those that time allowed
        for (_, test), row in zip(parts, choice.scores, strict=True):
            seen = row[: chosen + 1][~np.isnan(row[: chosen + 1])]
            if len(seen):  # where a walk ended before, its last metric stands for those after it
                folds.append((test, _error(points, indices[test]), 1 - seen[-1]))
        tests, *errors = zip(*folds, strict=True)
        self.n_held_out_ = len(np.unique(np.concatenate(tests)))
        self.error_before_, self.error_after_ = (
            (error, *interval(error, self.n_held_out_))
            for error in (float(np.average(some, weights=[len(test) for test in tests])) for some in errors)
        )

    def _splitter(self):
        """Return what makes the folds of lam="cv"."""
        if self.cv is None:
            return ComparisonKFold(5, by="item", random_state=0)
        if isinstance(self.cv, numbers.Integral) and self.cv > 1:
            return ComparisonKFold(int(self.cv), by="item", random_state=0)
        if not hasattr(self.cv, "split") or isinstance(self.cv, str):
            raise InputError(f"cv={shortened(self.cv)}: cv must be a number of folds, at least 2, or a splitter")
        return self.cv

    def decision_function(self, triplets: ArrayLike) -> np.ndarray:
        """Return d(a, c) - d(a, b) by the learned metric: positive where a is closer to b."""
        check_is_fitted(self, "components_")
        a, b, c = np.moveaxis(self._tuples(triplets, 3, "triplets"), 1, 0)
        L = self.components_.T
        return np.linalg.norm((a - c) @ L, axis=1) - np.linalg.norm((a - b) @ L, axis=1)

    def predict(self, triplets: ArrayLike) -> np.ndarray:
        """Return 1 where a is closer to b than to c, otherwise -1."""
        return np.where(self.decision_function(triplets) > 0, 1, -1)

    def score(self, triplets: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of triplets in the right order; y: the answers, as for `fit`, by default all 1."""
        decided = self.decision_function(triplets)
        return float(np.average(decided * _answers(y, len(decided)) > 0, weights=sample_weight))

    def fit_transform(self, triplets: ArrayLike, y: ArrayLike | None = None) -> np.ndarray:
        """Refuse: what is fitted are comparisons, what is transformed are points."""
        raise InputError("ComparisonMetric has no fit_transform: fit comparisons, then transform points")

    def _points(self, triplets):
        """Return (points, indices of the comparisons, the first copy of each point), or refuse them."""
        if self.preprocessor is None:
            tuples = check_array(triplets, allow_nd=True, ensure_2d=False, dtype=FLOATS, input_name="triplets")
            if tuples.ndim != 3 or tuples.shape[1] != 3:
                raise InputError(
                    f"triplets has shape {tuples.shape}: it must have shape (m, 3, d), or (m, 3) with names where "
                    "there is a preprocessor"
                )
            points, inverse = np.unique(tuples.reshape(-1, tuples.shape[2]).astype(float), axis=0, return_inverse=True)
            self.n_features_in_ = points.shape[1]
            return _told_apart(points, inverse.reshape(-1, 3))
        names = check_array(triplets, allow_nd=True, ensure_2d=False, dtype=None, input_name="triplets")
        if names.ndim != 2 or names.shape[1] != 3:
            raise InputError(
                f"triplets has shape {names.shape}: it must have shape (m, 3), rows of the preprocessor or other names"
            )
        points, indices = named_points(self.preprocessor, names, "triplets")
        points = validate_data(self, points, accept_sparse="csr", dtype=FLOATS)
        same = (indices[:, 0] == indices[:, 1]) | (indices[:, 0] == indices[:, 2]) | (indices[:, 1] == indices[:, 2])
        if same.any():
            row = int(np.argmax(same))
            raise InputError(f"triplets[{row}] has the same point twice: a comparison needs three different points")
        used, indices = np.unique(indices, return_inverse=True)  # the others are in no comparison
        points = self._dense(points if len(used) == points.shape[0] else points[used])
        # A problem takes float32 as it is, a prior does not.
        points = points if self.prior is None else points.astype(float, copy=False)
        return points, indices.reshape(-1, 3), used


def _error(points, rows, L=None):
    """Return the share of comparisons in the wrong order, by Euclidean distance or by components, in float64."""
    used, rows = np.unique(rows, return_inverse=True)
    points = points[used].astype(float, copy=False)
    return comparison_error(points if L is None else points @ L.T, rows.reshape(-1, 3))


def _told_apart(points, indices):
    """Return (points, indices) in which no row has a point twice, and the first copy of each point.

    Things that differ may have the same features: the second one of a row, and the third, stand for a copy.
    """
    a, b, c = indices.T
    copy = np.zeros(indices.shape, dtype=int)
    copy[:, 1] = b == a
    copy[:, 2] = (c == a).astype(int) + (c == b)
    found, rows = np.unique(copy * len(points) + indices, return_inverse=True)
    origin = found % len(points)
    return points[origin], rows.reshape(-1, 3), origin


def _answers(y, n):
    """Return the answers to n comparisons, 1 or -1 each."""
    if y is None:
        return np.ones(n)
    y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
    if y.shape != (n,):
        raise InputError(f"y has shape {y.shape}: one answer for each of the {n} comparisons is needed")
    right = np.isin(y, (1, -1)) if y.dtype.kind in "iuf" else np.zeros(n, dtype=bool)
    if not right.all():
        row = int(np.argmin(right))
        raise InputError(
            f"y[{row}] is {y[row].item()!r}: answers must be 1 (a is closer to b) or -1 (a is closer to c); without y "
            "all are 1"
        )
    return y.astype(float)


def _is_seed(value):
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and value >= 0


class ComparisonKFold:
    """Folds of comparisons that keep apart what must not be known on both sides.

    Parameters
    ----------
    n_splits : int
        How many folds.
    by : {"comparison", "anchor", "item"}
        "comparison": any comparison on either side. "anchor": all comparisons of an anchor a on one side. "item": no
        item at all on both sides; comparisons that would mix them are left out.
    random_state : int, optional
        None: folds in the order given.

    References
    ----------
    scikit-learn, "Cross-validation iterators"; keeping items apart is ours (docs/estimators.md).

    Examples
    --------
    >>> import numpy as np
    >>> import triscreen as ts
    >>> rows = np.random.default_rng(0).integers(0, 12, (200, 3))
    >>> for train, test in ts.ComparisonKFold(3, by="item").split(rows):
    ...     print(set(rows[train].ravel()) & set(rows[test].ravel()))  # items on both sides
    set()
    set()
    set()
    """

    def __init__(
        self, n_splits: int = 5, by: str = "anchor", random_state: int | np.random.RandomState | None = None
    ) -> None:
        self.n_splits, self.by, self.random_state = as_count(n_splits, "n_splits"), by, random_state
        as_choice(by, "by", ("comparison", "anchor", "item"))
        if not (random_state is None or isinstance(random_state, np.random.RandomState) or _is_seed(random_state)):
            raise InputError(f"random_state={shortened(random_state)}: random_state must be None or a whole number")
        if self.n_splits < 2:
            raise InputError(f"n_splits={n_splits}: at least 2 folds are needed")

    def __repr__(self):
        return f"ComparisonKFold(n_splits={self.n_splits}, by={self.by!r}, random_state={self.random_state!r})"

    def get_n_splits(
        self, X: ArrayLike | None = None, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(
        self, X: ArrayLike, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (train, test) rows of the comparisons X: (m, 3) indices, or (m, 3, d) points."""
        X = np.asarray(X)
        if X.ndim == 3:
            X = np.unique(X.reshape(-1, X.shape[2]), axis=0, return_inverse=True)[1].reshape(-1, 3)
        shuffle = {"shuffle": True, "random_state": self.random_state} if self.random_state is not None else {}
        if self.by == "comparison":
            yield from KFold(self.n_splits, **shuffle).split(X)
        elif self.by == "anchor":
            yield from GroupKFold(self.n_splits, **shuffle).split(X, groups=X[:, 0])
        else:
            items = np.unique(X)
            for _, held in KFold(self.n_splits, **shuffle).split(items):
                inside = np.isin(X, items[held])
                train, test = np.flatnonzero(~inside.any(axis=1)), np.flatnonzero(inside.all(axis=1))
                if not len(train) or not len(test):
                    raise InputError(
                        f"n_splits={self.n_splits}, by='item': a fold of {len(held)} of {len(items)} items has "
                        f"{len(train)} comparisons to learn from and {len(test)} to test; take fewer folds, or "
                        "by='anchor'"
                    )
                yield train, test
