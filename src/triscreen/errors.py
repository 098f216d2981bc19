"""Every exception and warning that triscreen raises on purpose."""

from __future__ import annotations


class InputError(ValueError):
    """An argument is wrong; the sentence names the argument, its value and what would be right."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during long work. It is a ``KeyboardInterrupt``, so loops of callers still stop.

    Attributes
    ----------
    result : object
        The best result so far, certified like any other (for ``ts.solve``: a ``Solution``).
    """

    def __init__(self, message, result):
        super().__init__(message)
        self.result = result

    def __reduce__(self):
        return type(self), (*self.args, self.result)


class OutOfTime(TimeoutError):
    """``max_seconds`` were over before there was anything to return; where there is something, that is returned."""


class ConvergenceWarning(UserWarning):
    """The wanted gap was not reached; the sentence says which gap was."""


class SmallClassWarning(UserWarning):
    """Some classes have too few points for what was asked; they are named."""


class DegenerateProblemWarning(UserWarning):
    """The problem has a trivial answer, such as M = 0 for every lambda."""
