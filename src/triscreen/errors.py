"""Every exception and warning that triscreen raises on purpose."""

from __future__ import annotations

import sys
from functools import cache, wraps


class InputError(ValueError):
    """An argument is wrong; the sentence names the argument, its value and what would be right."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during `solve`, `solve_path` or a fit. It is a ``KeyboardInterrupt``, so loops of callers still stop.

    Attributes
    ----------
    result : object
        The best result so far, certified like any other: for `solve` and estimators that solve for one lambda a
        `Solution`, for `solve_path` and `TripletMetricCV` a `Path` (of the fold that was worked on). None where there
        is none: while arguments are checked and a fit makes its first triplets, or at a second Ctrl-C, which does not
        wait for the certificate.
    """

    def __init__(self, message, result):
        super().__init__(message)
        self.result = result

    def __reduce__(self):
        return type(self), (*self.args, self.result)


class ClusterError(RuntimeError):
    """A cluster cannot go on: no workers, or a shard that fails on two of them. A checkpoint has what was done."""


class OutOfTime(RuntimeError):
    """``max_seconds`` were over before there was anything to return; where there is something, that is returned."""


def interruptible(verb):
    """Decorate a function: Ctrl-C where it has nothing to give yet raises `Interrupted`, too, with no result."""

    @wraps(verb)
    def watched(*arguments, **named):
        try:
            return verb(*arguments, **named)
        except Interrupted:
            raise
        except KeyboardInterrupt:
            raise Interrupted(f"{verb.__name__} was interrupted before it had a result", None) from None

    return watched


class ConvergenceWarning(UserWarning):
    """The wanted gap was not reached; the sentence says which gap was."""


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
    """Some classes have too few points for what was asked; they are named."""


class NoAnchorWarning(UserWarning):
    """Some points have no positive or no negative among the neighbours given, and are no anchors; they are counted."""


class DegenerateProblemWarning(UserWarning):
    """The problem has a trivial answer, such as M = 0 for every lambda."""
