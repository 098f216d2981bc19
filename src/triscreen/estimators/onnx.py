"""A learned transform as an ONNX model, for wherever Python is not (extra ``[onnx]``)."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted


def to_onnx(estimator, dtype=np.float32):
    """Return ``estimator.transform`` as an ONNX model: input "X" (n, d), output "transformed" (n, n_components).

    Examples
    --------
    >>> import triscreen as ts
    >>> from triscreen.estimators.onnx import to_onnx  # doctest: +SKIP
    >>> open("metric.onnx", "wb").write(to_onnx(model).SerializeToString())  # doctest: +SKIP
    """
    from onnx import TensorProto, checker, helper, numpy_helper

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
