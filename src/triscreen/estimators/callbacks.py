"""Progress of a fit: scikit-learn's callbacks where it has them (from 1.9 on), and the estimator's own ``callback``."""

from __future__ import annotations

from triscreen.solvers.monitor import wants_stop

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:
        """scikit-learn has no callbacks yet."""

    def with_callbacks(method):
        """Return the method as it is."""
        return method


class Progress:
    """Tells callbacks about a fit and its steps (iterations, or lambdas of a path)."""

    def __init__(self, estimator, X, y, step):
        self._estimator, self._X, self._y, self._step = estimator, X, y, step
        self._own = estimator.callback
        self._context = None
        if getattr(estimator, "_skl_callbacks", None) or hasattr(estimator, "_parent_callback_ctx"):
            self._context = estimator._init_callback_context(max_subtasks=None)
            self._context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)

    def __call__(self, state):
        """Tell of one step; True: stop."""
        stop = self._own is not None and wants_stop(self._own(state))
        if self._context is not None:
            context = self._context.subcontext(task_name=self._step)
            context.call_on_fit_task_begin(estimator=self._estimator, X=self._X, y=self._y)
            stop = bool(context.call_on_fit_task_end(estimator=self._estimator, X=self._X, y=self._y)) or stop
        return stop

    def done(self):
        """Tell that the fit is over."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator, X=self._X, y=self._y)
