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
  stretch of intervals (`triscreen.selection.stretches`). What is decided there is so in all of it; parts of it look at
  the queries that are open, and at the points that are left for these.

Ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from triscreen._utils.progress import progress
from triscreen._utils.threads import check_time, single_threaded_blas
from triscreen._utils.validation import as_count, as_labels, as_numbers, as_points, as_positive, shortened
from triscreen.errors import InputError, Interrupted, interruptible
from triscreen.path.result import Path
from triscreen.problem import Problem
from triscreen.selection.judge import Comparisons, Judge, Points, Votes
from triscreen.triplets.given import as_rows

# Intervals are looked at together up to this ratio of lambdas, and only what is open there in so many parts.
_SPAN, _PARTS = 0.5, 4
_STRETCHES = 8  # so many of these share products
_ROOM = 1 << 22  # numbers of the matrices of these, one of each kind


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
    judge, path, left : Judge, Path and list, or None
        What decides about further intervals, what they are of, and what is needed for that (`triscreen.select`).

    References
    ----------
    Ours: docs/selection.md.

    Examples
    --------
    >>> import numpy as np
    >>> import triscreen as ts
    >>> bounds = ts.Bounds(np.array([4.0, 2.0, 1.0]), np.array([[1, -1, 0, 1], [1, -1, 1, 1]]))
    >>> bounds.at(3.0), bounds.at(1.5), bounds.open_at(3.0).tolist()
    ((0.25, 0.5), (0.25, 0.25), [2])
    """

    lambdas: np.ndarray
    outcomes: np.ndarray = field(repr=False)
    judge: object = field(default=None, repr=False)
    path: object = field(default=None, repr=False)
    left: list[Any] | None = field(default=None, repr=False)

    @property
    def lower(self) -> np.ndarray:
        """The share that is wrong for sure."""
        return (self.outcomes < 0).mean(axis=1)

    @property
    def upper(self) -> np.ndarray:
        """The share that is not right for sure."""
        return (self.outcomes <= 0).mean(axis=1)

    @property
    def intervals(self) -> list[tuple[float, float, float, float]]:
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

    def at(self, lam: float) -> tuple[float, float]:
        """Return (lower, upper) of the error at a lambda."""
        places = self._places(lam)
        return float(self.lower[places].max()), float(self.upper[places].min())

    def open_at(self, lam: float) -> np.ndarray:
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


@interruptible
def validation_bounds(
    path: Path,
    X: ArrayLike,
    y: ArrayLike,
    X_val: ArrayLike,
    y_val: ArrayLike,
    k: int = 3,
    problem: Problem | None = None,
) -> Bounds:
    """Bound the validation error of k nearest neighbours for every lambda between the first and the last of a path.

    Parameters
    ----------
    path : Path
        Of the points that are known; from a file it needs ``problem``.
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

    References
    ----------
    Ours: docs/selection.md.

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
    _, classes = as_labels(y, len(X))
    X_val = as_points(X_val, "X_val", least=1)
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
    return votes_over(path, problem, X, y, X_val, wanted, k)


def votes_over(path, problem, X, y, X_val, y_val, k):
    """Return the `Bounds` of what was checked; a label of y_val that y has not is wrong everywhere."""
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    places = np.minimum(np.searchsorted(classes, y_val), len(classes) - 1)
    wanted = np.where(classes[places] == y_val, places, len(classes))
    points = Points(problem, as_numbers(X, "X"), as_numbers(X_val, "X_val"))
    votes = Votes(points, codes.astype(np.int64), wanted.astype(np.int64), len(classes) + 1, k)
    return _over_intervals(path, problem, Judge(problem, points, votes), len(X_val))


@interruptible
def comparison_bounds(path: Path, X: ArrayLike, rows: ArrayLike, problem: Problem | None = None) -> Bounds:
    """Bound the share of comparisons that are not met, for every lambda between the first and the last of a path.

    Parameters
    ----------
    path : Path
        From a file it needs ``problem``.
    X : array, shape (n, d)
        Points, in the coordinates of the path's problem.
    rows : int array, shape (m, 3)
        Held-out comparisons: "a is closer to b than to c".
    problem : Problem, optional
        Of the path; needed if that was loaded from a file.

    Returns
    -------
    Bounds

    References
    ----------
    Ours: docs/selection.md.

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
    points = Points(problem, as_numbers(X, "X"))
    return _over_intervals(path, problem, Judge(problem, points, Comparisons(points, rows)), len(rows))


def _problem_of(path, problem):
    if not isinstance(path, Path):
        raise InputError(f"path is a {type(path).__name__}: make one with ts.solve_path(problem)")
    return path._check_problem(problem)


def _check_width(X, problem, name):
    if X.shape[1] != problem.n_features:
        raise InputError(f"{name} has {X.shape[1]} features: the path was learned on {problem.n_features}")


def _stretches(lambdas, first, most, at_once):
    """Return (first, last) of at most so many neighbouring stretches, from one lambda on; of at most so many ends."""
    found, begin = [], first
    while first < len(lambdas) - 1 and len(found) < min(at_once, _STRETCHES):
        last = first + 1
        while last < len(lambdas) - 1 and lambdas[last + 1] >= _SPAN * lambdas[first] and last + 2 - first <= most:
            last += 1
        if found and last + 1 - begin > most:
            break
        found.append((first, last))
        first = last
    return found


@single_threaded_blas()
def _over_intervals(path, problem, judge, count):
    """Return the `Bounds` of what is decided over each interval between two lambdas of a path."""
    if not len(path):
        raise InputError("path has no lambda yet: there is nothing to bound")
    lambdas = path.lambdas if len(path) > 1 else np.repeat(path.lambdas, 2)
    found = np.zeros((len(lambdas) - 1, count), dtype=np.int8)
    left, most = [None] * len(found), max(2, _ROOM // (problem.n_features**2 + problem.points.shape[1] ** 2))

    def descend(run, begin, first, last, parent, begun=False):
        check_time()
        verdict = judge.look(run.interval(first - begin, last - begin), parent, begun)
        found[first:last], left[first:last] = verdict.outcomes, [verdict.left] * (last - first)
        if last - first > 1 and verdict.is_open:
            step = -(-(last - first) // _PARTS)
            for part in range(first, last, step):
                descend(run, begin, part, min(part + step, last), verdict)

    first = 0
    try:
        with progress("bounds", len(found)) as show:
            while first < len(found):
                stretches = _stretches(lambdas, first, most, judge.at_once)
                begin, end = first, stretches[-1][1]
                run = judge.run(
                    [path._quick_end(min(number, len(path) - 1), problem) for number in range(begin, end + 1)]
                )
                around = judge.begin([run.interval(one - begin, two - begin) for one, two in stretches])
                for first, last in stretches:
                    descend(run, begin, first, last, around.pop(0), True)
                    first = last
                    show(float(first))
    except KeyboardInterrupt:
        text = f"interrupted after {first} of {len(found)} intervals; the bounds, open everywhere else, are the .result"
        raise Interrupted(text, Bounds(lambdas, found, judge, path, left)) from None
    return Bounds(lambdas, found, judge, path, left)
