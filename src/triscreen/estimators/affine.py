"""What a model does to points, in a few lines of arithmetic: scaling, and the map to where Euclid is the metric.

For everything that is not Python, or not scikit-learn: ONNX, arrays, other libraries.
"""

from __future__ import annotations

import json

import numpy as np
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from triscreen.errors import InputError
from triscreen.estimators.base import MetricEstimator
from triscreen.estimators.scaling import Scaling

# What scalers do with their arrays, in order.
_SCALERS = {
    Scaling: (("Sub", "shift_"), ("Mul", "factor_")),
    StandardScaler: (("Sub", "mean_"), ("Div", "scale_")),
    RobustScaler: (("Sub", "center_"), ("Div", "scale_")),
    MaxAbsScaler: (("Div", "scale_"),),
    MinMaxScaler: (("Mul", "scale_"), ("Add", "min_")),
}
_DO = {"Sub": np.subtract, "Add": np.add, "Mul": np.multiply, "Div": np.divide, "MatMul": np.matmul}


def operations_of(model):
    """Return what ``model.transform`` does to rows: a list of (operation, array), in ONNX's words.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted metric, perhaps after scalers of ours or of scikit-learn, PCA or TruncatedSVD.
    """
    found = []
    for name, step in steps_of(model):
        check_is_fitted(step)
        found += _operations(name, step)
    if not found:
        raise InputError("the model has no step that changes anything: there is nothing to export")
    return found


def apply(operations, X):
    """Return rows after these operations."""
    for name, array in operations:
        X = _DO[name](X, array)
    return X


def affine(model):
    """Return (shift, matrix, offset) with transform(x) = (x - shift) @ matrix + offset, in float64.

    Examples
    --------
    >>> import numpy as np
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(ts.Scaling(), ts.TripletMetric()).fit(X, y)
    >>> shift, matrix, offset = affine(model)
    >>> bool(np.allclose((X - shift) @ matrix + offset, model.transform(X)))
    True
    """
    operations = operations_of(model)
    dim = n_features(model)
    shift = np.zeros(dim)
    if operations and operations[0][0] == "Sub":
        (_, shift), *operations = operations
    offset = apply(operations, np.zeros((1, dim)))[0]
    return shift, apply(operations, np.eye(dim)) - offset, offset


def n_features(model):
    """Return how many features a fitted model takes."""
    return int(steps_of(model)[0][1].n_features_in_)


def told_of_features(model):
    """Return what is known of the features that a model takes, as JSON: {"features": names, "columns": of a file}."""
    first, told = steps_of(model)[0][1], {}
    if hasattr(first, "feature_names_in_"):
        told["features"] = json.dumps([str(name) for name in first.feature_names_in_])
    if getattr(first, "columns_", None) is not None:
        told["columns"] = json.dumps(first.columns_)
    return told


def steps_of(model):
    """Return the (name, step) that do something."""
    steps = model.steps if isinstance(model, Pipeline) else [(type(model).__name__, model)]
    return [(name, step) for name, step in steps if step is not None and not isinstance(step, str)]


def _operations(name, step):
    if isinstance(step, MetricEstimator):
        return [("MatMul", step.components_.T)]
    if isinstance(step, TruncatedSVD):
        return [("MatMul", step.components_.T)]
    if isinstance(step, PCA):
        whiten = [("Div", np.sqrt(step.explained_variance_))] if step.whiten else []
        return [("Sub", step.mean_), ("MatMul", step.components_.T), *whiten]
    for kind, parts in _SCALERS.items():
        if isinstance(step, kind) and not getattr(step, "clip", False):
            unused = ["mean_"] if getattr(step, "with_mean", True) is False else []  # it is there all the same
            arrays = [(operation, getattr(step, name, None)) for operation, name in parts if name not in unused]
            return [(operation, np.asarray(array, dtype=float)) for operation, array in arrays if array is not None]
    known = ", ".join([*(kind.__name__ for kind in _SCALERS), "PCA", "TruncatedSVD"])
    raise InputError(
        f"the step {name!r} is a {type(step).__name__}: a model that is exported may have {known} (without clip) and a "
        "metric only (model[:-1] is a pipeline without its last step)"
    )
