"""Progress of a fit: the bar, scikit-learn's callbacks where it has them (from 1.9 on), and the own ``callback``."""

from __future__ import annotations

import logging
from contextlib import contextmanager

from triscreen._utils.progress import progress
from triscreen.solvers.monitor import wants_stop

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:
        """scikit-learn has no callbacks yet."""

    def with_callbacks(method):
        """Return the method as it is."""
        return method


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
