"""Leave-one-out of metric and neighbours: every point predicted by the fit on all others, exactly.

For each point, from the solution of the whole (at one lambda):

1. *By the ball.* The optimum without the point lies in a ball (`triscreen.path.without`). Where the k nearest vote
   alike under all metrics of it, the prediction is known.
2. *By steps.* Newton steps towards that optimum, with one factorised Hessian for all points, each a new and far
   smaller ball (`triscreen.path.steps`): until the vote is decided.
3. *By a solve.* What is left (the hinge, many dimensions, ties) is solved from there, to the end; what hangs on a tie
   then is predicted by the metric that was found.

Ours.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field

import numpy as np

from triscreen._kernels.left_out import certain_classes
from triscreen._utils.progress import progress
from triscreen._utils.threads import chunk_bounds, single_threaded_blas
from triscreen._utils.validation import as_count, as_labels, as_points
from triscreen.errors import ConvergenceWarning, InputError, Interrupted, interruptible
from triscreen.path.balls import End
from triscreen.path.steps import Steps
from triscreen.path.without import Without, norms, sharpened
from triscreen.problem.problem import Problem
from triscreen.problem.rounding import U, trace
from triscreen.problem.units import LAMBDA, METRIC, POINT
from triscreen.solvers import solve
from triscreen.triplets.leaving import leaving_points

# Where more points than this may be among the k nearest, for each of these, a ball is too large to say anything.
_MANY = 16
_AT_ONCE = 256  # predictions between two looks for Ctrl-C
_TOLS = 1e-6, 1e-8, 1e-10  # relative gaps of a solve, one after the other until the vote is decided
OPEN, BY_BALL, BY_STEPS, BY_SOLVE = range(4)


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Predictions of every point by the fit on all others.

    Attributes
    ----------
    lam : float
    predictions : array, shape (n,)
        Labels. Where ``how`` is 0 (after Ctrl-C only) there is none yet, and it is the point's own.
    error : float
        The share of points that are predicted wrongly, of those that are predicted: exact.
    how : int array, shape (n,)
        1: by the ball around the solution of the whole; 2: by Newton steps from there; 3: by a solve; 0: not yet.
    n_steps : int array, shape (n,)
        Steps that each took; of those by a solve, its iterations too.
    tied : array
        The points whose prediction hangs on a tie, or on less than rounding: it is that of the metric that was found.
    seconds : float

    References
    ----------
    docs/selection.md; ours.

    Examples
    --------
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> path = ts.solve_path(ts.Problem(X[::3], ts.knn_triplets(X[::3], y[::3], k=2)), ratio=0.5)
    >>> found = path.leave_one_out(3, X[::3], y[::3], k=1)
    >>> len(found.predictions), bool(found.error == (found.predictions != y[::3]).mean())
    (50, True)
    """

    lam: float
    predictions: np.ndarray = field(repr=False)
    error: float
    how: np.ndarray = field(repr=False)
    n_steps: np.ndarray = field(repr=False)
    tied: np.ndarray = field(repr=False)
    seconds: float

    @property
    def solved_again(self) -> np.ndarray:
        """The points that the ball alone did not decide."""
        return np.flatnonzero((self.how == BY_STEPS) | (self.how == BY_SOLVE))

    @property
    def n_solves(self) -> int:
        """How many these are; most take a Newton step or two."""
        return len(self.solved_again)

    @property
    def n_refits(self) -> int:
        """How many of these were solved to the end, as problems of their own."""
        return int(np.count_nonzero(self.how == BY_SOLVE))

    def __repr__(self):
        left = np.count_nonzero(self.how == OPEN)
        return (
            f"<LeaveOneOut: {len(self.how)} points at lambda {self.lam:.4g}, error {self.error:.4f}, "
            f"{self.n_solves} solved again ({self.n_refits} of them to the end), {self.seconds:.3g} s"
            + (f", {left} not yet predicted>" if left else ">")
        )


@interruptible
@single_threaded_blas()
def leave_one_out(path, t, X, y, k, problem):
    """See `Path.leave_one_out`."""
    begin = time.perf_counter()
    given, X, k = X, as_points(X), as_count(k, "k")
    codes, classes = as_labels(y, len(X))
    check_same_points(X, problem)
    if k > len(X) - 1:
        raise InputError(f"k={k}: without one, X has {len(X) - 1} points, so k must be at most that")
    leaving = leaving_points(problem.triplets, as_points(given, narrow=True), codes, problem.threads)
    search = None
    try:
        with progress("leave one out", len(X)) as show:
            search = _Search(problem, sharpened(path, t, problem), leaving, X, codes, len(classes), k)
            search.run(show)
    except KeyboardInterrupt:
        result = None if search is None else search.result(classes, time.perf_counter() - begin)
        raise Interrupted("leave_one_out was interrupted; what was decided so far is the .result", result) from None
    return search.result(classes, time.perf_counter() - begin)


def check_same_points(X, problem):
    """Refuse points that a problem was not made of."""
    if X.shape[1] != problem.n_features:
        raise InputError(f"X has {X.shape[1]} features: the path was learned on {problem.n_features}")
    if len(X) != problem.n_points:
        raise InputError(f"X has {len(X)} points: the path was learned on {problem.n_points}")
    ids = problem.triplets.point_ids
    mine = X if ids is None else X[ids]
    mine = problem.units.into(mine - mine.mean(axis=0), POINT)
    mine = mine if problem.basis is None else mine @ problem.basis
    if not np.abs(mine - problem.points).max(initial=0.0) <= 1e-9 * np.abs(mine).max(initial=0.0):
        raise InputError("X has other points than the path was learned on: leave_one_out needs those")


class _Search:
    """What is decided, point by point."""

    def __init__(self, problem, solution, leaving, X, codes, n_classes, k):
        self.problem, self.leaving, self.lam = problem, leaving, solution.lam
        self.X, self.codes = X, codes
        self.n = len(X)
        self.found = np.full(self.n, -1, dtype=np.int64)
        self.how, self.n_steps = np.zeros((2, self.n), dtype=np.int64)
        self.tied = []
        self.whole = Without(problem, solution, leaving)
        self.votes = Votes(self.whole, X, codes, n_classes, k)

    def run(self, show):
        """Decide all predictions."""
        for units in self.whole.blocks(np.arange(self.n)):
            found = self.votes.decide(units, *self.whole.balls(units))
            self._keep(units, found, BY_BALL, show)
        steps = Steps.of(self.whole)
        if steps is not None:
            for units in self.whole.blocks(self._open()):
                for unit, taken, found in steps.run(units, self.votes.decide_one):
                    self.n_steps[unit] = taken
                    self._keep(np.array([unit]), np.array([found]), BY_STEPS, show)
        for unit in self._open():
            found = self._solve(unit)
            self._keep(np.array([unit]), np.array([found]), BY_SOLVE, show)

    def _open(self):
        return np.flatnonzero(self.how == OPEN)

    def _keep(self, units, found, how, show):
        self.found[units] = found
        self.how[units] = np.where(found >= 0, how, OPEN)
        if (found >= 0).any():
            show(float(np.count_nonzero(self.how)))

    def _solve(self, unit):
        """Return the class by a solve."""
        whole, problem = self.whole, self.problem
        triplets = self.leaving.without(unit)
        if triplets is None:  # the optimum is the prior, or zero
            N = np.zeros(problem.shape) if problem.prior is None else problem.prior.core
            return self._by_metric(unit, N)
        prior = None if problem.prior is None else problem.prior.matrix
        part = Problem(self.X, triplets, problem.loss, problem.cone.name, problem.threads.n_jobs, prior=prior)
        start = problem.from_core(whole.M)
        for tol in _TOLS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # the ball has the gap that was reached
                sol = solve(part, self.lam, tol=tol, start=start)
            self.n_steps[unit] += sol.n_iter
            end = End.of(part, part.to_core(sol.M)[0], part.units.into(self.lam, LAMBDA), sol.smoothing)
            ball = end.ball(end.lam, None if part.prior is None else part.prior.core)
            center, radius = self._as_core(part, ball.center), part.units.out(ball.radius, METRIC)
            found = self.votes.decide_one(unit, center, problem.units.into(radius, METRIC))
            if found >= 0:
                return found
            start = sol
        return self._by_metric(unit, self._as_core(part, end.M))

    def _as_core(self, part, element):
        """Return an element of another problem's core as one of ours."""
        return self.problem.to_core(part.from_core(element))[0]

    def _by_metric(self, unit, M):
        self.tied.append(unit)
        return self.votes.by_metric(unit, M)

    def result(self, classes, seconds):
        """Return what is decided."""
        there = self.how != OPEN
        predictions = classes[np.where(there, self.found, self.codes)]
        error = float((self.found[there] != self.codes[there]).mean()) if there.any() else float("nan")
        tied = np.array(self.tied, dtype=np.int64)
        return LeaveOneOut(self.lam, predictions, error, self.how, self.n_steps, tied, seconds)


class Votes:
    """Votes of the nearest neighbours of each point among the others, under all metrics of a ball."""

    def __init__(self, whole, X, codes, n_classes, k):
        problem = whole.problem
        self._problem, self._codes, self._n_classes, self._k = problem, codes, n_classes, k
        self._twins = np.unique(X, axis=0, return_inverse=True)[1].ravel()
        self._inside = problem.triplets.point_ids is None  # the core knows all of X
        X = problem.units.into(X - X.mean(axis=0), POINT)
        self._X = np.ascontiguousarray(problem.points if self._inside else X)
        self._sizes = np.sqrt(np.einsum("ij,ij->i", self._X, self._X))
        self._flat = whole.flat
        self.M = self._seen(whole.M)
        factor = np.sqrt(np.maximum(self.M, 0.0)) if self._flat else _factor(self.M)
        self._G = self._X * factor if self._flat else self._X @ factor
        self._trace = trace(self.M)
        dim = self._X.shape[1]
        self._relative = (64 * dim + 128 + 8 * problem.point_error) * U
        self._more = 0.0 if problem.prior is None else problem.prior.error
        self._most = _MANY * (k + 3)

    def _seen(self, core):
        """Return a core element, or a stack of them, in the coordinates that votes are counted in."""
        problem = self._problem
        if self._inside or problem.basis is None:
            return core
        seen = problem.basis @ core @ problem.basis.T
        if problem.prior is not None and problem.prior.outside is not None:
            seen = seen + problem.units.into(problem.prior.outside, METRIC)
        return seen

    def decide(self, units, centers, radii):
        """Return the class that each unit is predicted in the whole of its ball, -1 where it is open."""
        centers = self._seen(centers)
        lengths = norms(centers)
        radii = (radii + self._more + 128 * self._X.shape[1] * U * (lengths + radii)) * (1 + 1e-12)
        reach = (norms(centers - self.M) + radii) * (1 + 1e-12) + 64 * self._X.shape[1] * U * self._trace
        centers = centers[:, None] if self._flat else centers
        out = np.empty(len(units), dtype=np.int64)
        bounds = chunk_bounds(len(units), max(1, len(units) // _AT_ONCE))

        def task(c):
            part = slice(bounds[c], bounds[c + 1])
            certain_classes(
                self._X, self._sizes, self._G, self._trace, reach[part], units[part], centers[part], radii[part],
                lengths[part], self._flat, self._codes, self._twins, self._k, self._n_classes, self._relative,
                self._most, out[part],
            )  # fmt: skip

        self._problem.threads.run("votes", task, len(bounds) - 1)
        return out

    def decide_one(self, unit, center, radius):
        """Return the class of one unit in a ball, or -1."""
        return int(self.decide(np.array([unit]), center[None], np.array([float(radius)]))[0])

    def by_metric(self, unit, M):
        """Return the class of one unit under a metric; of points that are as near, the first ones."""
        M = self._seen(M)
        delta = self._X - self._X[unit]
        dist = np.square(delta) @ M if self._flat else np.einsum("ij,ij->i", delta @ M, delta)
        dist[unit] = np.inf
        nearest = np.argsort(dist, kind="stable")[: self._k]
        return int(np.bincount(self._codes[nearest], minlength=self._n_classes).argmax())


def _factor(M):
    values, vectors = np.linalg.eigh(M)
    return np.ascontiguousarray(vectors * np.sqrt(np.maximum(values, 0.0)))
