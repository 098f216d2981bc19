"""Models as arithmetic, for elsewhere."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import triscreen as ts
from triscreen.estimators.affine import affine, apply, operations_of
from triscreen.estimators.onnx import to_onnx

X, Y = load_wine(return_X_y=True)
METRIC = {"n_components": 3, "tol": 1e-2}
BEFORE = {
    "nothing": (ts.Scaling(),),
    "minmax": (ts.Scaling("minmax"),),
    "standard": (StandardScaler(),),
    "standard without a mean": (StandardScaler(with_mean=False),),
    "robust": (RobustScaler(),),
    "maxabs": (MaxAbsScaler(),),
    "libsvm": (MinMaxScaler((-1, 1)),),
    "whitened": (StandardScaler(), PCA(5, whiten=True)),
    "svd": (ts.Scaling(), TruncatedSVD(5)),
    "passthrough": ("passthrough", ts.Scaling()),
}


def model_after(steps):
    return make_pipeline(*steps, ts.TripletMetric(**METRIC)).fit(X, Y)


def run_onnx(made, X):
    runtime = pytest.importorskip("onnxruntime")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = runtime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"X": X})[0]


@pytest.mark.parametrize("steps", BEFORE.values(), ids=BEFORE)
def test_scaling_goes_along(steps):
    model = model_after(steps)
    expected = model.transform(X)
    np.testing.assert_allclose(apply(operations_of(model), X), expected, rtol=1e-9, atol=1e-9)
    shift, matrix, offset = affine(model)
    np.testing.assert_allclose((X - shift) @ matrix + offset, expected, rtol=1e-7, atol=1e-7)
    pytest.importorskip("onnx")
    np.testing.assert_allclose(run_onnx(to_onnx(model, np.float64), X), expected, rtol=1e-9, atol=1e-9)
    single = run_onnx(to_onnx(model), X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, atol=1e-4 * np.abs(expected).max())


def test_what_the_command_line_writes_can_be_exported(tmp_path):
    pytest.importorskip("onnx")
    from commands import invoke

    assert invoke("fit", "wine", "--lam-ratio", "0.01", "-o", tmp_path / "m").code == 0
    model = ts.load(tmp_path / "m")
    del model[0].feature_names_in_  # X has no names
    np.testing.assert_allclose(run_onnx(to_onnx(model, np.float64), X), model.transform(X), rtol=1e-9, atol=1e-9)


def test_float32_stays_through_a_model_that_was_saved(tmp_path):
    ts.save(make_pipeline(ts.Scaling(), ts.TripletMetric(**METRIC)).fit(X, Y), tmp_path / "m")
    model = ts.load(tmp_path / "m")
    Z = model.transform(X.astype(np.float32))
    assert Z.dtype == np.float32
    assert model.transform(X).dtype == np.float64
    np.testing.assert_allclose(Z, model.transform(X), atol=1e-4 * np.abs(Z).max())


def test_float32_is_scaled_with_all_its_digits():
    """In single precision a mean of a million leaves nothing of a spread of one hundredth of its last digit."""
    far = (1e6 + np.random.default_rng(0).integers(0, 9, (50, 2)) / 8).astype(np.float32)
    Z = ts.Scaling().fit(far).transform(far)
    assert Z.dtype == np.float32
    np.testing.assert_allclose(Z, ts.Scaling().fit_transform(far.astype(float)), rtol=1e-6)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (
            make_pipeline(ts.Scaling(), ts.TripletMetric(), KNeighborsClassifier()),
            "the step 'kneighborsclassifier' is a",
        ),
        (make_pipeline(MinMaxScaler(clip=True), ts.TripletMetric()), "the step 'minmaxscaler' is a MinMaxScaler"),
        (Pipeline([("a", "passthrough")]), "nothing to export"),
    ],
)
def test_what_is_no_such_arithmetic_is_refused(model, words):
    pytest.importorskip("onnx")
    with pytest.raises(ts.InputError, match=words):
        to_onnx(model.fit(X, Y))


def test_what_is_not_fitted_or_not_known_is_refused():
    pytest.importorskip("onnx")
    with pytest.raises(NotFittedError):
        to_onnx(make_pipeline(ts.Scaling(), ts.TripletMetric()))
    with pytest.raises(ts.InputError, match="dtype='int8': dtype must be float32 or float64"):
        to_onnx(model_after(BEFORE["nothing"]), "int8")
