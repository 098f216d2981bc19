"""What every estimator can do once it has a metric: metric-learn's names, scikit-learn's manners."""

from __future__ import annotations

import numbers
import time
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from triscreen._utils.logs import shown
from triscreen._utils.progress import silent
from triscreen._utils.threads import deadline
from triscreen._utils.validation import as_positive, shortened
from triscreen.errors import InputError, Interrupted, OutOfTime
from triscreen.estimators.callbacks import CallbackSupportMixin
from triscreen.estimators.preprocessing import are_names, check_preprocessor, named_points, points_of
from triscreen.problem.cones import components_of
from triscreen.problem.losses import loss_of
from triscreen.problem.units import LAMBDA
from triscreen.solvers import Solution
from triscreen.solvers.truncation import truncation

_Fit = TypeVar("_Fit", bound=Callable)
FLOATS = [np.float64, np.float32]
_SET_UP = 1.0  # seconds that making triplets may take, however small max_seconds is


class MetricEstimator(CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A learned Mahalanobis metric: d(x, x')^2 = |L (x - x')|^2 with L = ``components_``."""

    # What a fit leaves, for type checkers.
    components_: np.ndarray
    solution_: Solution
    lam_: float
    n_iter_: int
    dual_gap_: float
    rel_gap_: float
    converged_: bool
    screening_: list[dict[str, Any]]
    truncation_: dict[str, Any] | None
    prior_: np.ndarray | None
    prior_scale_: float
    n_triplets_: int
    n_features_in_: int
    feature_names_in_: np.ndarray

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Map points to where Euclidean distance is the learned one: X L'; float32 stays float32.

        Parameters
        ----------
        X : array or sparse matrix, shape (n, d); or (n,) names of points, where there is a preprocessor

        Returns
        -------
        array, shape (n, len(components_))
        """
        check_is_fitted(self, "components_")
        X = validate_data(self, self._formed(X), accept_sparse="csr", dtype=FLOATS, reset=False)
        return safe_sparse_dot(X, self.components_.astype(X.dtype).T, dense_output=True)

    def get_mahalanobis_matrix(self) -> np.ndarray:
        """Return L'L, the matrix of the distances that `transform` and `pair_distance` give, shape (d, d)."""
        check_is_fitted(self, "components_")
        return self.components_.T @ self.components_

    def pair_distance(self, pairs: ArrayLike) -> np.ndarray:
        """Return the learned distance of each pair; pairs: array (m, 2, d), or names (m, 2) with a preprocessor."""
        check_is_fitted(self, "components_")
        pairs = self._tuples(pairs, 2, "pairs")
        return np.linalg.norm((pairs[:, 0] - pairs[:, 1]) @ self.components_.T, axis=1)

    def pair_score(self, pairs: ArrayLike) -> np.ndarray:
        """Return minus the learned distance of each pair: the larger, the more similar."""
        return -self.pair_distance(pairs)

    def score_pairs(self, pairs: ArrayLike) -> np.ndarray:
        """Return `pair_distance`; deprecated in metric-learn, and so here."""
        warnings.warn("score_pairs is deprecated: use pair_distance, or pair_score", FutureWarning, stacklevel=2)
        return self.pair_distance(pairs)

    def get_metric(self) -> Callable[..., float]:
        """Return a function metric(u, v, squared=False), for whatever takes a callable metric; it can be pickled."""
        check_is_fitted(self, "components_")
        return DistanceOfTwo(self.components_)

    # -- for the classes below ----------------------------------------------------------------------------------------

    @property
    def _n_features_out(self):
        return len(self.components_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _formed(self, X):
        """Return the points, where X is a list of their names and there is a preprocessor; otherwise X as it is."""
        return points_of(self.preprocessor, X) if are_names(X, self.preprocessor) else X

    def _tuples(self, tuples, size, name):
        """Return (m, size, d) points for tuples of points, or of their names where there is a preprocessor."""
        tuples = check_array(tuples, allow_nd=True, ensure_2d=False, dtype=None, input_name=name)
        if tuples.ndim == 2 and self.preprocessor is not None:
            points, rows = named_points(self.preprocessor, tuples, name)
            tuples = self._dense(check_array(points, accept_sparse="csr", dtype=FLOATS))[rows]
        if tuples.ndim != 3 or tuples.shape[1] != size:
            raise InputError(
                f"{name} has shape {tuples.shape}: it must have shape (m, {size}, d), or (m, {size}) with names "
                "where there is a preprocessor"
            )
        if hasattr(self, "n_features_in_") and tuples.shape[2] != self.n_features_in_:
            raise InputError(
                f"{name} has {tuples.shape[2]} features: this metric was learned from {self.n_features_in_}"
            )
        return tuples.astype(float, copy=False)

    def _loss(self):
        return loss_of(self.gamma)

    def _dense(self, X):
        """Return X as an array; a sparse one is converted if the memory budget allows."""
        if not sparse.issparse(X):
            return X
        needed = 8 * X.shape[0] * X.shape[1]
        if self.memory_budget is not None and needed > self.memory_budget:
            raise InputError(
                f"memory_budget={self.memory_budget:.3g}: X is sparse and would take {needed:.3g} bytes as an array; "
                "raise the budget, or reduce it first (sklearn.decomposition.TruncatedSVD)"
            )
        return X.toarray()

    def _check_options(self):
        """Refuse what no other check sees, before any work."""
        check_preprocessor(self.preprocessor)
        if self.callback is not None and not callable(self.callback):
            raise InputError(f"callback={self.callback!r}: callback must be a function of one argument, the state")
        if not isinstance(self.verbose, numbers.Integral | np.bool_) or self.verbose < 0:
            raise InputError(f"verbose={shortened(self.verbose)}: verbose must be a whole number, 0 for silence")

    def _arguments(self, begin, shares=1):
        """Return the arguments of a solve; begin: when the fit did, for its share of the seconds that are left."""
        seconds = as_positive(self.max_seconds, "max_seconds", none="no limit")
        if seconds is not None:
            seconds = max((seconds - (time.perf_counter() - begin)) / shares, 1e-3)
        given = {name: getattr(self, name) for name in ("tol", "solver", "screening", "max_iter")}
        return {**given, "max_seconds": seconds}

    @contextmanager
    def _in_time(self, begin):
        """Within: neighbours, a problem and its lambda_max, without which there is nothing to give."""
        seconds = as_positive(self.max_seconds, "max_seconds", none="no limit")
        left = None if seconds is None else max(seconds - (time.perf_counter() - begin), _SET_UP)
        try:
            with deadline(left):
                yield
        except OutOfTime:
            raise OutOfTime(
                f"max_seconds={seconds:g}: it was over while triplets were made, before there was any metric; allow "
                "more, or learn from fewer points"
            ) from None

    def _set_solution(self, solution, components):
        """Keep a solution's metric as components, and its proof."""
        self.solution_ = replace(solution)  # without its problem, which has the points
        self.components_ = components[: self.n_components]
        self.truncation_ = self._cost(solution, components)
        self.lam_, self.n_iter_ = solution.lam, max(1, solution.n_iter)
        self.dual_gap_, self.rel_gap_, self.converged_ = solution.gap, solution.rel_gap, solution.converged
        self.screening_ = solution.screening

    def _cost(self, solution, components):
        """Return what `n_components` costs by the certificate, None where it cuts nothing off."""
        problem, left = vars(solution).get("_problem"), self.n_components
        if left is None or left >= len(components) or problem is None:
            return None
        told = truncation(problem, solution, [left], components)
        return {"rank": told.rank, "kept": float(told.kept[0]), "cost": float(told.costs[0]),
                "rel_cost": float(told.rel_costs[0])}  # fmt: skip


def components_in(problem, M):
    """Return the components of a solution of this problem, by what is known of the span that it lies in."""
    return components_of(M, basis=problem.basis if problem.prior is None else None)


def scale_of_lambda(problem):
    """Return lambda_max, or what stands for it where every lambda has the answer M = 0."""
    return problem.lambda_max() or problem.units.out(1.0, LAMBDA)


def watched_fit(fit: _Fit) -> _Fit:
    """Decorate a fit: options are checked, ``verbose`` is heeded, and Ctrl-C gives the last result there was.

    That is `Interrupted`, outside of a solve or a path too.
    """

    @wraps(fit)
    def watched(self, *arguments, **named):
        self._so_far = None
        try:
            self._check_options()
            with shown(self.verbose), silent(not self.verbose):
                return fit(self, *arguments, **named)
        except Interrupted as err:
            err.result = self._so_far if err.result is None else err.result
            raise
        except KeyboardInterrupt:
            raise Interrupted("the fit was interrupted; what it had is the .result", self._so_far) from None
        finally:
            del self._so_far

    return cast(_Fit, watched)


class DistanceOfTwo:
    """The learned distance as a function of two vectors."""

    def __init__(self, components):
        self.components = np.array(components, dtype=float, ndmin=2)

    def __call__(self, u, v, squared=False):
        """Return the distance of two points, vectors (d,), rows (1, d) or numbers (d = 1); squared: its square."""
        z = self.components @ (self._vector(u, "u") - self._vector(v, "v"))
        return float(z @ z) if squared else float(np.sqrt(z @ z))

    def _vector(self, x, name):
        x = np.atleast_1d(np.asarray(x, dtype=float))
        dim = self.components.shape[1]
        if x.shape not in ((dim,), (1, dim)):
            raise InputError(f"{name} has shape {x.shape}: it must be a vector of {dim} features")
        return x.reshape(dim)
