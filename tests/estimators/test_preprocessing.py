"""Points by their names, metric-learn's way, and its other manners."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris

import triscreen as ts
from problems import comparisons


def by_id(X, prefix="id"):
    """Return names of points, and a function from names to points that sees each of them once."""

    def load(names):
        assert isinstance(names, np.ndarray)
        assert len(set(names.tolist())) == len(names)
        return X[[int(name[len(prefix) :]) for name in names]]

    return np.array([f"{prefix}{i}" for i in range(len(X))]), load


def stores(X):
    """Return ways to name points: (a preprocessor, the names of the rows of X)."""
    names, load = by_id(X)
    shuffled = np.random.default_rng(0).permutation(len(X))
    return {
        "array": (X, np.arange(len(X))),
        "list": (X.tolist(), np.arange(len(X))),
        "sparse": (sparse.csc_array(X), np.arange(len(X))),
        "callable": (load, names),
        "table": (pd.DataFrame(X), np.arange(len(X))),
        "index of texts": (pd.DataFrame(X, index=names), names),
        "index of numbers": (pd.DataFrame(X[shuffled], index=shuffled), np.arange(len(X))),
    }


KINDS = list(stores(np.eye(2)))


@pytest.mark.parametrize("kind", KINDS)
def test_labelled_points_by_name(kind):
    X, y = load_iris(return_X_y=True)
    preprocessor, names = stores(X)[kind]
    some = np.random.default_rng(1).permutation(len(X))[:120]
    plain = ts.TripletMetric().fit(X[some], y[some])
    model = clone(ts.TripletMetric(preprocessor=preprocessor)).fit(names[some], y[some])
    np.testing.assert_array_equal(model.components_, plain.components_)
    np.testing.assert_allclose(model.transform(names), plain.transform(X), atol=1e-13)
    if kind.startswith("index") or kind == "table":
        return
    np.testing.assert_array_equal(model.transform(X), plain.transform(X))  # points are points still
    pairs = np.stack([names[:20], names[30:50]], axis=1)
    np.testing.assert_array_equal(model.pair_distance(pairs), plain.pair_distance(np.stack([X[:20], X[30:50]], axis=1)))


def test_cross_validation_by_name():
    X, y = load_iris(return_X_y=True)
    names, load = by_id(X)
    options = {"cv": 2, "ratios": 3, "candidates": [None]}
    plain = ts.TripletMetricCV(**options).fit(X, y)
    model = ts.TripletMetricCV(preprocessor=load, **options).fit(names, y)
    np.testing.assert_array_equal(model.components_, plain.components_)


@pytest.mark.parametrize("kind", KINDS)
def test_comparisons_by_name(kind):
    X, rows = comparisons(0)
    preprocessor, names = stores(X)[kind]
    plain = ts.ComparisonMetric(X).fit(rows[:200])
    model = ts.ComparisonMetric(preprocessor).fit(names[rows[:200]])
    np.testing.assert_allclose(model.get_mahalanobis_matrix(), plain.get_mahalanobis_matrix(), rtol=1e-6, atol=1e-9)
    assert model.score(names[rows[200:]]) == plain.score(rows[200:])
    assert model.n_points_ == plain.n_points_
    np.testing.assert_allclose(model.pair_distance(names[rows[:, :2]]), plain.pair_distance(rows[:, :2]), rtol=1e-6)
    np.testing.assert_allclose(np.abs(model.transform(names)), np.abs(plain.transform(X)), atol=1e-6)


@pytest.mark.parametrize(
    ("preprocessor", "words"),
    [
        (4, "preprocessor=4: preprocessor must be points"),
        ("points.npy", "preprocessor='points.npy': preprocessor must be"),
        ([1.0, 2.0], "preprocessor must be points"),
        (ts.TripletMetric(), r"preprocessor=TripletMetric\(\): preprocessor must be"),
        (lambda names: 1 / 0, "preprocessor failed: ZeroDivisionError"),
        (lambda names: names, r"preprocessor returned \(.*\): for .* names it must return points \(n, d\)"),
        (lambda names: np.ones((3, 2)), "preprocessor returned 3 points for .* names"),
        (pd.DataFrame(np.eye(3), index=["a", "b", "b"]), "preprocessor has 'b' twice in its index"),
        (pd.DataFrame(np.eye(3), index=["a", "b", "c"]), "that is not in the index of the preprocessor"),
    ],
)
def test_wrong_preprocessors(preprocessor, words):
    with pytest.raises(ts.InputError, match=words):
        ts.TripletMetric(preprocessor=preprocessor).fit(np.arange(10), np.arange(10) % 2)
    with pytest.raises(ts.InputError, match=words):
        ts.ComparisonMetric(preprocessor).fit(comparisons(0)[1])


def test_wrong_names():
    X, y = load_iris(return_X_y=True)
    model = ts.TripletMetric(preprocessor=X).fit(np.arange(150), y)
    for names, words in (([150], "indices must lie between 0 and 149"), (["a"], "whole numbers"), ([-1], "between")):
        with pytest.raises(ts.InputError, match=words):
            model.transform(names)
    with pytest.raises(ValueError, match="Reshape your data"):
        ts.TripletMetric().fit(X, y).transform(np.arange(3))


@pytest.mark.parametrize("kind", ["callable", "index of texts"])
def test_preprocessors_that_no_file_can_hold_are_left_out(kind, tmp_path):
    X, y = load_iris(return_X_y=True)
    preprocessor, names = stores(X)[kind]
    model = ts.TripletMetric(preprocessor=preprocessor).fit(names, y)
    with pytest.warns(UserWarning, match="preprocessor: not saved"):
        ts.save(model, tmp_path / "m")
    again = ts.load(tmp_path / "m")
    assert again.preprocessor is None
    np.testing.assert_array_equal(again.components_, model.components_)


def test_the_metric_is_a_function_that_travels():
    X, y = load_iris(return_X_y=True)
    model = ts.TripletMetric(n_components=2).fit(X, y)
    metric = model.get_metric()
    again = pickle.loads(pickle.dumps(metric))
    expected = model.pair_distance(X[None, [0, 70]])[0]
    for f in (metric, again):
        assert f(X[0], X[70]) == f(X[:1], X[70:71]) == f(X[0].tolist(), X[70:71]) == pytest.approx(expected, rel=1e-13)
        assert f(X[0], X[70], squared=True) == pytest.approx(expected**2, rel=1e-13)
    for wrong in (X[0, :1], X[:2], X[0][:, None], 1.0):
        with pytest.raises(ts.InputError, match=r"v has shape .*: it must be a vector of 4 features"):
            metric(X[0], wrong)
    model.components_[:] = 0
    assert metric(X[0], X[70]) > 0  # it is the metric as it was


def test_a_metric_of_one_feature_takes_numbers():
    """metric-learn's own test asks for that, of components that it sets by hand."""
    X, y = load_iris(return_X_y=True)
    model = ts.TripletMetric().fit(X[:, :1], y)
    metric = model.get_metric()
    assert metric(5, 6.7) == metric([5], [6.7]) == metric([[5]], [[6.7]]) > 0
    model.components_ = np.array([3.1])
    assert model.get_metric()(5, 6.7) == pytest.approx(3.1 * 1.7)
