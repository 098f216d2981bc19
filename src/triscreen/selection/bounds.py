"""The validation error of every lambda of a path, known or bounded.

Between two neighbours on a path every optimum lies in a ball that is known (`triscreen.path.balls`), so of each
held-out prediction it can be proven for the whole interval that it is right, or wrong, or it is *open*. A prediction is
the vote of the k nearest points, as scikit-learn's classifier counts it: one vote each, of classes with as many the
smallest label. Points that are the same come in the order of their numbers; a prediction that hangs on any other tie is
open.

* i is nearer than j for sure where <H, M> > 0 in all balls of the interval, H = v v' - u u' of the two differences.
* j is *out* if at least k others are nearer for sure; i is *in* if fewer than k others are not farther for sure. With
  n_c votes of those that are in, q_c open ones of class c, and r = k - (those that are in), class c gets at least
  n_c + max(0, r - (open ones of other classes)) votes and at most n_c + min(r, q_c).
* Only points that come as near as the k-th one may take part: a handful, found by matrix products for a whole
  stretch of intervals whose metrics are near each other.

Ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from triscreen._kernels.certain import certain_comparisons, certain_votes
from triscreen._utils.threads import single_threaded_blas
from triscreen._utils.validation import as_count, as_labels, as_numbers, as_points, as_positive, shortened
from triscreen.errors import InputError
from triscreen.path.result import Path
from triscreen.problem.rounding import U
from triscreen.problem.units import METRIC, POINT
from triscreen.triplets.given import as_rows

_BLOCK = 1 << 21  # numbers of a block of queries times points
_WIDE = 0.03  # how far the metrics of a stretch may be from its first one, of its size


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds of an error over lambda: step functions.

    Attributes
    ----------
    lambdas : array, shape (m + 1,)
        Falling: the ends of m intervals.
    lower, upper : arrays, shape (m,)
        Bounds of the error for every lambda of each interval, its ends included.
    outcomes : int8 array, shape (m, number of predictions)
        1: right for sure, -1: wrong for sure, 0: open.
    judge : Judge or None
        What decides about further intervals (`triscreen.select`).
    """

    lambdas: np.ndarray
    outcomes: np.ndarray = field(repr=False)
    judge: object = field(default=None, repr=False)

    @property
    def lower(self):
        """The share that is wrong for sure."""
        return (self.outcomes < 0).mean(axis=1)

    @property
    def upper(self):
        """The share that is not right for sure."""
        return (self.outcomes <= 0).mean(axis=1)

    @property
    def intervals(self):
        """One (largest lambda, smallest lambda, lower, upper) for each interval."""
        ends = zip(self.lambdas[:-1].tolist(), self.lambdas[1:].tolist(), strict=True)
        return [(*both, *values) for both, *values in zip(ends, self.lower.tolist(), self.upper.tolist(), strict=True)]

    def _places(self, lam):
        lam = as_positive(lam, "lam")
        first, last = self.lambdas[0], self.lambdas[-1]
        if not last * (1 - 1e-12) <= lam <= first * (1 + 1e-12):
            raise InputError(f"lam={lam!r}: the bounds go from {first:.6g} to {last:.6g}")
        lam = min(max(lam, last), first)
        return np.flatnonzero((self.lambdas[:-1] >= lam) & (self.lambdas[1:] <= lam))

    def at(self, lam):
        """Return (lower, upper) of the error at a lambda."""
        places = self._places(lam)
        return float(self.lower[places].max()), float(self.upper[places].min())

    def open_at(self, lam):
        """Return the numbers of the predictions that are open at a lambda."""
        return np.flatnonzero((self.outcomes[self._places(lam)] == 0).all(axis=0))

    def __repr__(self):
        if not len(self.outcomes):
            return "<Bounds: no interval>"
        return (
            f"<Bounds: {len(self.outcomes)} intervals of lambda from {self.lambdas[0]:.4g} to {self.lambdas[-1]:.4g}, "
            f"{self.outcomes.shape[1]} predictions, {(self.outcomes != 0).mean():.1%} decided, error at least "
            f"{self.lower.min():.4f} everywhere and at most {self.upper.min():.4f} somewhere>"
        )


def validation_bounds(path, X, y, X_val, y_val, k=3, problem=None):
    """Bound the validation error of k nearest neighbours for every lambda between the first and the last of a path.

    Parameters
    ----------
    path : Path
    X : array, shape (n, d)
        Points that neighbours are looked for among, in the coordinates of the path's problem.
    y : array, shape (n,)
        Their labels.
    X_val, y_val : arrays, shapes (m, d) and (m,)
        Held-out points and their labels.
    k : int
        Neighbours that vote.
    problem : Problem, optional
        Of the path; needed if that was loaded from a file.

    Returns
    -------
    Bounds

    Examples
    --------
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> train, held_out = slice(0, None, 2), slice(1, None, 2)
    >>> problem = ts.Problem(X[train], ts.knn_triplets(X[train], y[train], k=3))
    >>> path = ts.solve_path(problem, ratio=0.9, n_lambdas=30)
    >>> bounds = ts.validation_bounds(path, X[train], y[train], X[held_out], y[held_out])
    >>> lower, upper = bounds.at(0.97 * path.lambdas[10])
    >>> bool(0 <= lower <= upper <= 1)
    True
    """
    problem = _problem_of(path, problem)
    X, k = as_points(X), as_count(k, "k")
    codes, classes = as_labels(y, len(X))
    X_val = as_points(X_val, "X_val")
    _check_width(X, problem, "X")
    _check_width(X_val, problem, "X_val")
    if k > len(X):
        raise InputError(f"k={k}: X has {len(X)} points, so k must be at most that")
    try:
        wanted = np.asarray(y_val)
    except ValueError as err:
        raise InputError(f"y_val is not a plain list of labels ({err})") from None
    if wanted.shape != (len(X_val),):
        raise InputError(f"y_val has shape {wanted.shape}: X_val has {len(X_val)} points, one label for each is needed")
    unseen = ~np.isin(wanted, classes)
    if unseen.any():
        (label, *_) = wanted[unseen].tolist()
        raise InputError(f"y_val has the label {shortened(label)}, which y has not: it would be wrong at every lambda")
    wanted = np.searchsorted(classes, wanted)

    def outcomes(interval, stretch):
        return interval.votes(stretch.candidates(k), k, codes, wanted, len(classes))

    return _over_intervals(path, problem, X, X_val, outcomes, len(X_val))


def comparison_bounds(path, X, rows, problem=None):
    """Bound the share of comparisons that are not met, for every lambda between the first and the last of a path.

    Parameters
    ----------
    path : Path
    X : array, shape (n, d)
        Points, in the coordinates of the path's problem.
    rows : int array, shape (m, 3)
        Held-out comparisons: "a is closer to b than to c".
    problem : Problem, optional
        Of the path; needed if that was loaded from a file.

    Returns
    -------
    Bounds

    Examples
    --------
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> rows = ts.knn_triplets(X, y, k=3).indices()
    >>> problem = ts.Problem(X, ts.given_triplets(rows[::2]))
    >>> path = ts.solve_path(problem, ratio=0.9, n_lambdas=20)
    >>> bounds = ts.comparison_bounds(path, X, rows[1::2])
    >>> bounds.outcomes.shape == (19, len(rows) // 2)
    True
    """
    problem = _problem_of(path, problem)
    X = as_points(X)
    _check_width(X, problem, "X")
    rows = np.ascontiguousarray(as_rows(rows, "rows"))
    if rows.max() >= len(X):
        raise InputError(f"rows goes from {rows.min()} to {rows.max()}: X has {len(X)} points, numbered from 0")
    return _over_intervals(path, problem, X, None, lambda interval, _: interval.comparisons(rows), len(rows))


def _problem_of(path, problem):
    if not isinstance(path, Path):
        raise InputError(f"path is a {type(path).__name__}: make one with ts.solve_path(problem)")
    return path._check_problem(problem)


def _check_width(X, problem, name):
    if X.shape[1] != problem.n_features:
        raise InputError(f"{name} has {X.shape[1]} features: the path was learned on {problem.n_features}")


@single_threaded_blas()
def _over_intervals(path, problem, X, queries, outcomes, count):
    """Return the `Bounds` of what is decided over each interval between two lambdas of a path."""
    if not len(path):
        raise InputError("path has no lambda yet: there is nothing to bound")
    units = problem.units
    X = units.into(as_numbers(X, "X"), POINT)
    queries = None if queries is None else units.into(as_numbers(queries, "X_val"), POINT)
    middle = X.mean(axis=0)
    points = Points(X - middle, None if queries is None else queries - middle, _twins(X))
    lambdas = path.lambdas if len(path) > 1 else np.repeat(path.lambdas, 2)
    found = np.zeros((len(lambdas) - 1, count), dtype=np.int8)
    judge = Judge(path, problem, points, outcomes)
    for t in range(len(found)):
        found[t] = judge.decide(path._interval(t, problem))
    return Bounds(lambdas, found, judge)


class Judge:
    """Decides about intervals of lambda, one after the other."""

    def __init__(self, path, problem, points, outcomes):
        self.path, self.problem, self._points, self._outcomes = path, problem, points, outcomes
        self._stretch = None

    @single_threaded_blas()
    def decide(self, between):
        """Return the outcomes that hold for every metric of the balls between two ends."""
        interval = Interval(self._points, self.problem, between)
        if self._stretch is None or not self._stretch.holds(interval):
            self._stretch = Stretch(interval)
        return self._outcomes(interval, self._stretch)


def _twins(X):
    """Return a number for each point, the same for points that are the same."""
    return np.unique(X, axis=0, return_inverse=True)[1].ravel()


@dataclass(frozen=True, eq=False)
class Points:
    """Points and those that ask for neighbours among them, around the mean; and which points are the same."""

    X: np.ndarray
    queries: np.ndarray | None
    twins: np.ndarray


class Interval:
    """What all balls between two ends say, in the coordinates of X."""

    def __init__(self, points, problem, between):
        self.points = points
        dim = points.X.shape[1]
        self.centers, offs = [], []
        for ball in between.balls:
            center = problem.units.into(problem.from_core(ball.center), METRIC)
            size = float(np.linalg.norm(center))
            prior = 0.0 if problem.prior is None else problem.prior.error
            offs.append(ball.doubt + prior + 128 * dim * U * (size + np.sqrt(between.reach)))
            self.centers.append(np.diag(center) if center.ndim == 1 else center)
        # A centre is the mean of two elements of the cone, so it is one.
        self.factors = [_factor(center) for center in self.centers]
        self.trace = max(float(np.square(F).sum()) for F in self.factors)
        self.relative = (64 * dim + 128) * U  # of |x - y|^2; times the trace, of a distance
        self.error = self.relative * self.trace
        hair = 1 + 1e-12
        s1, s2 = between.squares
        self.balls = tuple(float(v) for v in (s1 * hair, s2 * hair, between.k + 1e-12 * abs(between.k), *offs))
        self.radius = float(np.sqrt(between.reach)) * hair + max(offs)

    def votes(self, candidates, k, codes, wanted, n_classes):
        """Return the outcome of each prediction; candidates: (ptr, the points that may be among the k nearest)."""
        X, queries, twins = self.points.X, self.points.queries, self.points.twins
        out = np.empty(len(queries), dtype=np.int8)
        embedded = [Z @ F for Z in (X, queries) for F in self.factors]
        certain_votes(
            X, *embedded[:2], queries, *embedded[2:], codes, twins, wanted, *candidates, k, n_classes, self.balls,
            self.radius, self.trace, self.relative, out,
        )  # fmt: skip
        return out

    def comparisons(self, rows):
        """Return the outcome of each comparison."""
        out = np.empty(len(rows), dtype=np.int8)
        embedded = [self.points.X @ F for F in self.factors]
        twins, errors = self.points.twins, (self.trace, self.relative)
        certain_comparisons(self.points.X, *embedded, rows, twins, self.balls, *errors, out)
        return out


class Stretch:
    """Intervals whose metrics are all near one: which points may be the nearest is found once for all of them."""

    def __init__(self, interval):
        self.points, self.factor, self.error = interval.points, interval.factors[0], interval.error
        self.center = interval.centers[0]
        size = float(np.linalg.norm(self.center))
        self.radius = max(1.1 * self._far(interval), _WIDE * size)
        self.error *= 4  # of centres that are twice as large
        self._found = None

    def _far(self, interval):
        """How far a metric of the interval may be from the centre here."""
        return interval.radius + max(float(np.linalg.norm(Q - self.center)) for Q in interval.centers) * (1 + 1e-12)

    def holds(self, interval):
        """Are all metrics of an interval near by?"""
        return self._far(interval) <= self.radius and interval.error <= self.error

    def candidates(self, k):
        """Return (ptr, numbers) of the points that may be among the k nearest of each query."""
        if self._found is None:
            X, queries = self.points.X, self.points.queries
            step = max(1, _BLOCK // len(X))
            parts = [self._among(k, queries[start : start + step]) for start in range(0, len(queries), step)]
            counts, numbers = (np.concatenate(part) for part in zip(*parts, strict=True))
            self._found = np.concatenate([[0], np.cumsum(counts)]), numbers
        return self._found

    def _among(self, k, queries):
        """Return (how many, which) for some queries."""
        X = self.points.X
        euclid, dist = _squares(queries, X), _squares(queries @ self.factor, X @ self.factor)
        # The products lose digits of squares that cancel.
        reach = np.square(np.sqrt(np.square(X).sum(axis=1).max()) + np.sqrt(np.square(queries).sum(axis=1)))[:, None]
        wide = self.radius * (np.maximum(euclid, 0.0) + 1e-10 * reach) + 16 * self.error * reach
        limit = np.partition(dist + wide, k - 1, axis=1)[:, k - 1 : k]
        rows, numbers = np.nonzero(dist - wide <= limit)
        return np.bincount(rows, minlength=len(queries)), numbers


def _factor(center):
    values, vectors = np.linalg.eigh(center)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def _squares(queries, X):
    """Return |q - x|^2 of every query and point, by a product."""
    product = queries @ X.T
    product *= -2.0
    product += np.einsum("ij,ij->i", X, X)
    product += np.einsum("ij,ij->i", queries, queries)[:, None]
    return product
