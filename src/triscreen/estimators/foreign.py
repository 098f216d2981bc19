"""scikit-learn's own steps before and after a metric, as numbers, texts and arrays: what files may hold of them."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from triscreen.errors import InputError

STEPS = {
    cls.__name__: cls
    for cls in (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, PCA, TruncatedSVD, KNeighborsClassifier)
}
# Of fitted neighbours: the points and labels they were fitted with, from which a fit makes the rest again.
POINTS, LABELS = "fit points_", "fit labels_"
# What a fit makes of them, or sets.
_MADE = ("classes_", "effective_metric_", "effective_metric_params_", "n_samples_fit_", "outputs_2d_")


def attributes_of(step, fitted):
    """Return what a file keeps of a fitted step; fitted: its attributes that end with an underscore."""
    if not isinstance(step, KNeighborsClassifier) or not fitted:
        return fitted
    points, codes = vars(step).get("_fit_X"), vars(step).get("_y")  # it has no public name for them
    if not isinstance(points, np.ndarray) or not isinstance(codes, np.ndarray) or codes.ndim != 1:
        raise InputError(
            f"a {type(step).__name__} that was fitted with sparse points or with several labels each: it cannot be "
            "saved, fit it with an array and one label each"
        )
    kept = {name: value for name, value in fitted.items() if name not in _MADE}
    return {**kept, POINTS: points, LABELS: np.asarray(step.classes_)[codes]}


def finish(step, attributes):
    """Set the attributes that a file has of a step."""
    attributes = dict(attributes)
    if POINTS in attributes:
        step.fit(attributes.pop(POINTS), attributes.pop(LABELS))
    for name, value in attributes.items():
        setattr(step, name, value)
