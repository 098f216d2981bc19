"""The best lambda of a whole path to within eps, with a proof.

Every interval of lambda has a lower bound of its validation error (`triscreen.selection.bounds`). One whose lower bound
is at least the best error known minus eps is *closed*: no lambda in it is better by more than eps. The open interval
with the lowest bound is cut in two, until none is left or a limit is reached: first at the mixture of its two ends,
which takes a pass and no solve (any metric will do as an end); where the ball of that is hardly smaller, at a solution.
Where it is an end itself whose ball is large, because its metric is only nearly optimal, that one is solved again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike

import numpy as np

from triscreen._utils.threads import single_threaded_blas
from triscreen._utils.validation import as_count, as_positive
from triscreen.errors import InputError, Interrupted, interruptible
from triscreen.path.result import Path
from triscreen.selection.bounds import Bounds
from triscreen.selection.journal import Journal
from triscreen.selection.search import Search
from triscreen.selection.sides import Side


@dataclass(frozen=True, eq=False)
class Selection:
    """The lambda that was chosen, and what is proven about all others.

    Attributes
    ----------
    lam : float
        The error of the optimal metric there is at most ``error``.
    error : float
    gap : float
        No lambda between the ends of the path has an error that is lower than ``error`` by more than this.
    possible : list of (float, float)
        Intervals of lambda, largest first, that may hold one that is better by more than eps: empty if there is none.
    path : Path
        With the lambdas that were solved on the way.
    bounds : Bounds
        Over all intervals as they are now.
    n_solved, n_evaluated : int
        Lambdas that were solved, and metrics that were evaluated without a solve.
    stopped_by : str
        "eps", "max_lambdas", "max_seconds", "interrupt", or "narrow": what is left cannot be cut, or
        solved, any further.

    References
    ----------
    Ours: docs/selection.md.

    Examples
    --------
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> problem = ts.Problem(X[::2], ts.knn_triplets(X[::2], y[::2], k=3))
    >>> path = ts.solve_path(problem, ratio=0.8, n_lambdas=10)
    >>> found = ts.select(path, ts.validation_bounds(path, X[::2], y[::2], X[1::2], y[1::2]), eps=0.1)
    >>> found.stopped_by, bool(path.lambdas[-1] <= found.lam <= path.lambdas[0])
    ('eps', True)
    """

    lam: float
    error: float
    gap: float
    possible: list[tuple[float, float]]
    path: Path = field(repr=False)
    bounds: Bounds = field(repr=False)
    n_solved: int
    n_evaluated: int
    stopped_by: str


@interruptible
@single_threaded_blas()
def select(
    path: Path,
    bounds: Bounds,
    eps: float,
    max_seconds: float | None = None,
    max_lambdas: int | None = None,
    checkpoint: str | PathLike[str] | None = None,
) -> Selection:
    """Find the lambda with the lowest validation error between the ends of a path, to within eps.

    Parameters
    ----------
    path : Path
        That the bounds were made of.
    bounds : Bounds
        From `validation_bounds` or `comparison_bounds`.
    eps : float
        Stop when no lambda can have an error that is lower by more than this.
    max_seconds : float, optional
        Stop after so many seconds, and say what is left.
    max_lambdas : int, optional
        Solve at so many further lambdas at most, and at the one that is chosen if it has no solution yet.
    checkpoint : path, optional
        Folder to keep every step in: a search that was killed, or ended by a limit, goes on from there, to the same
        bits. Neither eps nor the limits make it another one.

    Returns
    -------
    Selection

    References
    ----------
    Ours: docs/selection.md.

    Examples
    --------
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> X = (X - X.mean(0)) / X.std(0)
    >>> train, held_out = slice(0, None, 2), slice(1, None, 2)
    >>> problem = ts.Problem(X[train], ts.knn_triplets(X[train], y[train], k=3))
    >>> path = ts.solve_path(problem, ratio=0.8, n_lambdas=15)
    >>> bounds = ts.validation_bounds(path, X[train], y[train], X[held_out], y[held_out])
    >>> found = ts.select(path, bounds, eps=0.05)
    >>> found.gap <= 0.05, found.possible
    (True, [])
    """
    if not isinstance(bounds, Bounds) or bounds.judge is None or bounds.path is not path:
        raise InputError(
            "bounds must be those of this path: validation_bounds(path, ...) or comparison_bounds(path, ...)"
        )
    eps = as_positive(eps, "eps")
    limit = as_positive(max_seconds, "max_seconds", none="no limit")
    most = as_count(max_lambdas, "max_lambdas", none="no limit")
    sides = [Side(bounds)]
    with Journal(checkpoint, sides) as journal:
        search = Search(sides, eps, journal)
        try:
            stopped = search.run(limit, most)
            search.settle()
        except KeyboardInterrupt as err:
            said = str(err) or "the selection was interrupted; what was proven so far is the .result"
            raise Interrupted(said, _selection(search, "interrupt")) from None
    return _selection(search, stopped)


def _selection(search, stopped):
    (side,) = search.sides
    lambdas, outcomes = side.arrays()[0], np.array([piece.verdict.outcomes for piece in side.pieces])
    return Selection(
        search.key, search.error, search.gap(), search.possible(), side.new_path(), Bounds(lambdas, outcomes),
        side.n_solved, side.n_evaluated, stopped,
    )  # fmt: skip
