"""Every exception and warning that triscreen raises on purpose."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar, cast

_Verb = TypeVar("_Verb", bound=Callable)


class InputError(ValueError):
    """An argument is wrong; the sentence names the argument, its value and what would be right.

    References
    ----------
    docs/engine.md; ours.

    Examples
    --------
    >>> import triscreen as ts
    >>> try:
    ...     ts.SmoothedHinge(gamma=-1)
    ... except ts.InputError as error:
    ...     print(error)
    gamma=-1: gamma must be a positive number
    """


class MissingPackage(InputError):
    """A feature needs a package of an extra that is not installed; the sentence names both."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during `solve`, `solve_path` or a fit. It is a ``KeyboardInterrupt``, so loops of callers still stop.

    Parameters
    ----------
    message : str
        What is said on the terminal.
    result : object
        What there is so far.

    Attributes
    ----------
    result : object
        The best result so far, certified like any other: for `solve` and estimators that solve for one lambda a
        `Solution`, for `solve_path` and `TripletMetricCV` a `Path` (of the fold that was worked on). None where there
        is none: while arguments are checked and a fit makes its first triplets, or at a second Ctrl-C, which does not
        wait for the certificate.

    References
    ----------
    docs/engine.md; ours.

    Examples
    --------
    >>> import triscreen as ts
    >>> X, y = [[0.0], [1.0], [3.0], [4.5]], [0, 0, 1, 1]
    >>> def pressed(state):  # Ctrl-C in the middle of a solve
    ...     raise KeyboardInterrupt
    >>> try:
    ...     ts.solve(ts.Problem(X, ts.knn_triplets(X, y, k=1)), lam=0.1, callback=pressed)
    ... except ts.Interrupted as stopped:
    ...     print(stopped.result.stopped_by)
    interrupt
    """

    result: Any

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self):
        return type(self), (*self.args, self.result)


class ClusterError(RuntimeError):
    """A cluster cannot go on: no workers, or a shard that fails on two of them. A checkpoint has what was done.

    References
    ----------
    docs/distributed.md; ours.

    Examples
    --------
    >>> import triscreen as ts
    >>> issubclass(ts.ClusterError, RuntimeError)
    True
    """


class OutOfTime(RuntimeError):
    """``max_seconds`` were over before there was anything to return; where there is something, that is returned.

    References
    ----------
    docs/engine.md; ours.

    Examples
    --------
    >>> import triscreen as ts
    >>> issubclass(ts.OutOfTime, RuntimeError)
    True
    """


def interruptible(verb: _Verb) -> _Verb:
    """Decorate a function: Ctrl-C where it has nothing to give yet raises `Interrupted`, too, with no result."""

    @wraps(verb)
    def watched(*arguments, **named):
        try:
            return verb(*arguments, **named)
        except Interrupted:
            raise
        except KeyboardInterrupt:
            raise Interrupted(f"{verb.__name__} was interrupted before it had a result", None) from None

    return cast(_Verb, watched)


class ConvergenceWarning(UserWarning):
    """The wanted gap was not reached; the sentence says which gap was.

    References
    ----------
    docs/engine.md; ours, and where scikit-learn is loaded also its own class.

    Examples
    --------
    >>> import warnings
    >>> import triscreen as ts
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [3.0, 1.5], [4.5, 0.0]], [0, 0, 1, 1]
    >>> problem = ts.Problem(X, ts.knn_triplets(X, y, k=1))
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     sol = ts.solve(problem, lam=0.01, tol=1e-12, max_iter=1)
    >>> sol.converged, issubclass(seen[0].category, ts.ConvergenceWarning)
    (False, True)
    """


def convergence_warning():
    """Return the category to warn with: `ConvergenceWarning`, where scikit-learn is loaded one that is also its own.

    Whoever filters scikit-learn's class has it loaded, so that filter works; nobody else has to load scikit-learn.
    """
    theirs = getattr(sys.modules.get("sklearn.exceptions"), "ConvergenceWarning", None)
    return ConvergenceWarning if theirs is None else _of_both(theirs)


@cache
def _of_both(theirs):
    own = {"__module__": __name__, "__doc__": ConvergenceWarning.__doc__}
    own["__reduce__"] = lambda self: (ConvergenceWarning, self.args)  # this class has no place of its own in a pickle
    return type("ConvergenceWarning", (ConvergenceWarning, theirs), own)


class SmallClassWarning(UserWarning):
    """Some classes have too few points for what was asked; they are named.

    References
    ----------
    docs/engine.md; ours.

    Examples
    --------
    >>> import warnings
    >>> import triscreen as ts
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     triplets = ts.knn_triplets([[0.0], [1.0], [2.0], [5.0]], ["a", "a", "a", "b"], k=2)
    >>> seen[0].category.__name__, triplets.n_triplets
    ('SmallClassWarning', 6)
    """


class NoAnchorWarning(UserWarning):
    """Some points have no positive or no negative among the neighbours given, and are no anchors; they are counted.

    References
    ----------
    docs/estimators.md; ours.

    Examples
    --------
    >>> import warnings
    >>> import triscreen as ts
    >>> near = [[1, 2], [0, 2], [3, -1], [2, 1]]  # the third point has no negative
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     triplets = ts.knn_triplets([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1], k=1, neighbors=near)
    >>> seen[0].category.__name__, triplets.n_triplets
    ('NoAnchorWarning', 3)
    """


class ScaleWarning(UserWarning):
    """Features are of such different sizes that few of them decide about neighbours; scaling is missing.

    References
    ----------
    docs/estimators.md; ours.

    Examples
    --------
    >>> import warnings
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_wine
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     model = ts.TripletMetric(n_neighbors=2, tol=0.1).fit(*load_wine(return_X_y=True))
    >>> any(issubclass(one.category, ts.ScaleWarning) for one in seen)
    True
    """


class DegenerateProblemWarning(UserWarning):
    """The problem has a trivial answer, such as M = 0 for every lambda.

    References
    ----------
    docs/maths.md; ours.

    Examples
    --------
    >>> import warnings
    >>> import triscreen as ts
    >>> problem = ts.Problem([[0.0], [2.0], [1.0]], ts.given_triplets([[0, 1, 2]]))  # farther in every direction
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     problem.lambda_max()
    0.0
    >>> seen[0].category.__name__
    'DegenerateProblemWarning'
    """
