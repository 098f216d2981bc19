"""Progress of a fit: the bar, scikit-learn's callbacks where it has them (from 1.9 on), and the own ``callback``."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from triscreen._utils.progress import progress
from triscreen.solvers.monitor import wants_stop

_Fit = TypeVar("_Fit", bound=Callable)


class _NoCallbacks:
    """scikit-learn has no callbacks yet."""


def _as_it_is(method: _Fit) -> _Fit:
    return method


if TYPE_CHECKING:  # a fit keeps its type
    CallbackSupportMixin, with_callbacks = _NoCallbacks, _as_it_is
else:
    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:
        CallbackSupportMixin, with_callbacks = _NoCallbacks, _as_it_is

_log = logging.getLogger(__name__)


@contextmanager
def telling(estimator, X, y, step, total=None):
    """Give a function that tells whoever listens of one step of a fit; True: stop.

    step: "iteration", or "lambda" of a path; total: how many there are at most, if that is known.
    """
    own, context, data = estimator.callback, None, {"estimator": estimator, "X": X, "y": y}
    if getattr(estimator, "_skl_callbacks", None) or hasattr(estimator, "_parent_callback_ctx"):
        context = estimator._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(**data)
    with progress("fit", total) as show:

        def tell(state):
            show(state)
            if step == "iteration":  # a path tells of its lambdas itself
                _log.debug("iteration %d: relative gap %.2g", state.n_iter, state.rel_gap)
            stop = own is not None and wants_stop(own(state))
            if context is not None:
                inner = context.subcontext(task_name=step)
                inner.call_on_fit_task_begin(**data)
                stop = bool(inner.call_on_fit_task_end(**data)) or stop
            return stop

        yield tell
    if context is not None:
        context.call_on_fit_task_end(**data)
