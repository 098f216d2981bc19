"""A learned transform as an ONNX model, for wherever Python is not (extra ``[onnx]``)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator

from triscreen._utils.extras import wanted
from triscreen.errors import InputError
from triscreen.estimators.affine import n_features, operations_of, told_of_features


def to_onnx(model: BaseEstimator, dtype: DTypeLike = np.float32) -> Any:
    """Return ``model.transform`` as an ONNX model: input "X" (n, d), output "transformed" (n, n_components).

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted metric, or a pipeline of scalers (ours or scikit-learn's), PCA or TruncatedSVD and a metric, such as
        ``triscreen fit`` writes: scaling goes along, and the names of its features as metadata ("features", JSON).
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

    kinds = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.float64): TensorProto.DOUBLE}
    if np.dtype(dtype) not in kinds:
        raise InputError(f"dtype={dtype!r}: dtype must be float32 or float64")
    kind, operations = kinds[np.dtype(dtype)], operations_of(model)
    nodes, arrays, before, width = [], [], "X", n_features(model)
    for number, (name, array) in enumerate(operations):
        after = "transformed" if number == len(operations) - 1 else f"after_{number}"
        nodes.append(helper.make_node(name, [before, f"array_{number}"], [after]))
        arrays.append(numpy_helper.from_array(np.ascontiguousarray(array.astype(dtype)), f"array_{number}"))
        before, width = after, array.shape[-1]
    graph = helper.make_graph(
        nodes,
        type(model).__name__,
        [helper.make_tensor_value_info("X", kind, [None, n_features(model)])],
        [helper.make_tensor_value_info("transformed", kind, [None, width])],
        arrays,
    )
    made = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 13)], producer_name="triscreen", ir_version=8
    )
    helper.set_model_props(made, told_of_features(model))
    checker.check_model(made)
    return made
