"""A learned transform as an ONNX model, for wherever Python is not (extra ``[onnx]``)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from triscreen._utils.extras import wanted


def to_onnx(estimator: BaseEstimator, dtype: DTypeLike = np.float32) -> Any:
    """Return ``estimator.transform`` as an ONNX model: input "X" (n, d), output "transformed" (n, n_components).

    Parameters
    ----------
    estimator : TripletMetric, TripletMetricCV or ComparisonMetric
        That was fitted.
    dtype : numpy.float32 or numpy.float64
        Of input and output.

    Returns
    -------
    onnx.ModelProto

    References
    ----------
    The ONNX standard; docs/estimators.md.

    Examples
    --------
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_iris
    >>> from triscreen.estimators.onnx import to_onnx
    >>> model = to_onnx(ts.TripletMetric(n_components=2).fit(*load_iris(return_X_y=True)))
    >>> [output.name for output in model.graph.output]
    ['transformed']
    """
    onnx = wanted("onnx", "models for elsewhere", "onnx")
    TensorProto, checker, helper, numpy_helper = onnx.TensorProto, onnx.checker, onnx.helper, onnx.numpy_helper

    check_is_fitted(estimator)
    kind = TensorProto.FLOAT if np.dtype(dtype) == np.float32 else TensorProto.DOUBLE
    L = estimator.components_
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["X", "L"], ["transformed"])],
        type(estimator).__name__,
        [helper.make_tensor_value_info("X", kind, [None, L.shape[1]])],
        [helper.make_tensor_value_info("transformed", kind, [None, L.shape[0]])],
        [numpy_helper.from_array(np.ascontiguousarray(L.T.astype(dtype)), "L")],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 13)], producer_name="triscreen", ir_version=8
    )
    checker.check_model(model)
    return model
