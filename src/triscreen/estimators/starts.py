"""Metrics to begin with: the one that the user has, or a closed form from points and labels.

A start N becomes the prior of a problem, (lam/2) |M - s N|^2. Margins are compared with 1, so its scale matters: the
loss of s N is convex in s, and s is the smallest one whose loss is within 1e-3 of the total weight of the least. Where
even the smallest s makes it worse than none, N orders the triplets the wrong way round, and there is no prior.
"""

from __future__ import annotations

import warnings

import numpy as np

from triscreen._utils.threads import Threads, single_threaded_blas
from triscreen._utils.validation import shortened
from triscreen.distributed.problem import Prepared
from triscreen.errors import DegenerateProblemWarning, InputError
from triscreen.problem.cones import components_of, make_cone
from triscreen.problem.engine import Engine
from triscreen.problem.prior import check_metric
from triscreen.solvers import Solution

NAMES = ("identity", "within")
# Of the mean variance within classes, in the place of so much of their covariance.
SHRINKAGE = 0.1
# Points do not differ in a direction that has no more than this share of the mean variance.
_FLAT = 1e-9
# A scale may lose so much of the total weight against the best one.
_NEARLY = 1e-3
# Squared distances at a scale are at most so large: rounding must leave something of the 1 that margins are held to.
_LONGEST = 1e12


def check_start(prior, name="prior", names=NAMES):
    """Refuse what is no start, before any work; what an array is, `Problem` checks. names: those that mean one here."""
    if prior is None or (isinstance(prior, str) and prior in names):
        return
    known = f"None, {', '.join(map(repr, names))}, an array or a metric"
    if isinstance(prior, str):
        raise InputError(f"{name}={prior!r}: it must be {known}")
    if hasattr(_unfrozen(prior), "get_mahalanobis_matrix"):
        if _unfrozen(prior) is prior:
            raise InputError(
                f"{name}={shortened(prior)}: clone would make it forget its metric; pass "
                "sklearn.frozen.FrozenEstimator(metric), or metric.get_mahalanobis_matrix()"
            )
        return
    if _ndim(prior) not in (1, 2):
        raise InputError(f"{name}={shortened(prior)}: it must be {known} in a sklearn.frozen.FrozenEstimator")


def knows_no_scale(prior):
    """Does a start measure with features as they are, however different their sizes?"""
    return prior is None or (isinstance(prior, str) and prior == "identity")


def name_of(prior):
    """Return what a table calls a start."""
    if prior is None:
        return "none"
    return prior if isinstance(prior, str) else "array" if _unfrozen(prior) is prior else "metric"


def make_start(prior, X, y, cone):
    """Return N for these points, unscaled (for the diagonal cone a vector); None for none."""
    if prior is None:
        return None
    dim = X.shape[1]
    if isinstance(prior, str) and prior == "identity":
        return np.ones(dim) if cone == "diagonal" else np.eye(dim)
    if isinstance(prior, str):
        return within_class(X, y, cone)
    metric = _unfrozen(prior)
    N = metric.get_mahalanobis_matrix() if hasattr(metric, "get_mahalanobis_matrix") else prior
    return check_metric(N, make_cone(cone), dim)


@single_threaded_blas()
def within_class(X, y, cone="psd", shrinkage=SHRINKAGE):
    """Return the inverse of the covariance within classes, shrunk towards its mean variance.

    In that metric, classes are as round as they can be made: what Fisher's discriminant measures with. Of more points
    than features, directions in which they do not differ at all have no weight (it would be the largest): those of a
    constant feature, or of features that are always 1 together, as categories are.
    """
    _, codes = np.unique(y, return_inverse=True)
    means = np.zeros((codes.max() + 1, X.shape[1]))
    np.add.at(means, codes, X)
    means /= np.bincount(codes)[:, None]
    rest = X - means[codes]
    spread = np.einsum("ij,ij->j", rest, rest) / len(X)
    mean = float(spread.mean())
    if mean == 0:  # every class is one point
        return np.ones(X.shape[1]) if cone == "diagonal" else np.eye(X.shape[1])
    if cone == "diagonal":
        return 1 / ((1 - shrinkage) * spread + shrinkage * mean)
    S = (1 - shrinkage) / len(X) * (rest.T @ rest)
    S[np.diag_indices_from(S)] += shrinkage * mean
    values, vectors = np.linalg.eigh(S)
    flat = vectors[:, values <= shrinkage * mean * (1 + _FLAT)]
    values = np.maximum(values, shrinkage * mean * (1 - 1e-9))
    if flat.shape[1] and len(X) > X.shape[1]:
        _, between, right = np.linalg.svd((means - X.mean(axis=0)) @ flat, full_matrices=False)
        differ = flat @ right[between**2 > _FLAT * mean].T
        rest = vectors[:, flat.shape[1] :]
        return (rest / values[flat.shape[1] :]) @ rest.T + differ @ differ.T / (shrinkage * mean)
    return (vectors / values) @ vectors.T


def moved(X, N):
    """Return the points where Euclidean distance is that of N; X itself for None and for zero."""
    return X if N is None or not np.any(N) else X @ components_of(np.asarray(N, dtype=float)).T


@single_threaded_blas()
def scale_of(N, X, T, loss, n_jobs):
    """Return s, the smallest scale at which the loss of s N is nearly the least; 0: N is worse than nothing."""
    if isinstance(T, Prepared):
        return least_scale(*T.along(N))
    Z = moved(X - X.mean(axis=0), N)
    points = Z if T.point_ids is None else Z[T.point_ids]
    engine = Engine(T.over(np.ascontiguousarray(points)), loss, make_cone("diagonal"), Threads(n_jobs))
    ones = np.ones(Z.shape[1])
    dist, smoothing = engine.distances(ones), loss.smoothings[-1]

    def look(s):
        """Return (loss, its derivative) of s N."""
        sums, pair_weights = engine.sweep(s * dist, smoothing)
        return sums.loss, -engine.triplets.inner(pair_weights, dist, engine.cone)

    return least_scale(look, T.total_weight, engine.triplets.largest_square)


def least_scale(look, weight, square):
    """Return the smallest scale whose loss is nearly the least.

    look: from a scale to the loss and its derivative; weight: the total one; square: the largest |x|^2 at scale 1.
    """
    slope = look(0.0)[1]
    if not slope < 0:
        return 0.0
    most = _LONGEST / (4 * square)
    low, high = 0.0, min(weight / -slope, most)  # where the mean margin is 1
    value, slope = look(high)
    while slope < 0 and value > _NEARLY * weight and high < most:
        low, high = high, min(2 * high, most)
        value, slope = look(high)
    least = value
    for _ in range(40):  # the minimum lies between the two
        if high - low <= 1e-3 * high:
            break
        middle = 0.5 * (low + high)
        value, slope = look(middle)
        least = min(least, value)
        low, high = (middle, high) if slope < 0 else (low, middle)
    low, high = 0.0, high
    for _ in range(40):
        if high - low <= 1e-3 * high:
            break
        middle = 0.5 * (low + high)
        low, high = (low, middle) if look(middle)[0] <= least + _NEARLY * weight else (middle, high)
    return float(high)


def scaled_start(N, X, T, loss, n_jobs):
    """Return (s N, s), or (None, 0.0) with a warning where N is worse than nothing."""
    if N is None:
        return None, 0.0
    s = scale_of(N, X, T, loss, n_jobs)
    if s == 0:
        warnings.warn(
            "the prior has, on the whole, positives farther away than negatives: it is not used",
            DegenerateProblemWarning,
            stacklevel=3,
        )
        return None, 0.0
    return s * N, s


def check_arrays(priors, X, y, cone):
    """Refuse candidates that are no metrics of these points."""
    try:
        for prior in priors:
            _ = None if prior is None or isinstance(prior, str) else make_start(prior, X, y, cone)
    except InputError as error:
        raise InputError(f"candidates: {error}") from None


def components_of_start(N, dim):
    """Return L with L'L = N; of Euclid where there is no start."""
    return np.eye(dim) if N is None else components_of(N)


def without_learning(M, tol):
    """Return a start as a solution: the optimum of an infinite lambda."""
    nothing = {"primal": 0.0, "dual": 0.0, "gap": 0.0, "rounding": 0.0, "n_iter": 0, "passes": 0.0, "seconds": 0.0}
    return Solution(lam=float("inf"), M=M, tol=tol, stopped_by="converged", history={}, screening=[], smoothing=0.0,
                    floor=1.0, **nothing)  # fmt: skip


def _ndim(prior):
    """Return how many axes an array has; 0 for what is none, such as rows of different lengths."""
    try:
        return np.ndim(prior)
    except ValueError:
        return 0


def _unfrozen(prior):
    """Return the metric in a `FrozenEstimator`; anything else as it is."""
    return prior.estimator if type(prior).__name__ == "FrozenEstimator" else prior
