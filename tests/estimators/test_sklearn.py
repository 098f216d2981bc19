"""scikit-learn's own checks, and life with its other parts."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import triscreen as ts

WEIGHTS = "a weight is that of a point's triplets as an anchor; a repeated point is one more neighbour and negative"


def expected(estimator):
    """What cannot hold, and why."""
    return {
        "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
        "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
    }


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        ts.Scaling(),
        ts.TripletMetric(),
        ts.TripletMetric(triplets="all"),
        ts.TripletMetricCV(ratios=2, cv=2),
        ts.TripletClassifier(ratios=2, cv=2),
    ],
    expected_failed_checks=expected,
)
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def test_in_pipelines_searches_and_cross_validation(wine):
    model = make_pipeline(StandardScaler(), ts.TripletMetric(), KNeighborsClassifier(3))
    assert cross_val_score(model, *wine, cv=3).mean() > 0.93
    search = GridSearchCV(model, {"tripletmetric__lam_ratio": [1e-1, 1e-3], "tripletmetric__n_neighbors": [3]}, cv=2)
    assert search.fit(*wine).best_score_ > 0.9


def test_weights_are_routed(wine):
    import sklearn

    X, y = wine
    weights = np.where(y == 0, 5.0, 0.5)
    with sklearn.config_context(enable_metadata_routing=True):
        metric = ts.TripletMetric().set_fit_request(sample_weight=True)
        knn = KNeighborsClassifier(3)
        routed = make_pipeline(metric, knn).fit(X, y, sample_weight=weights)
    direct = ts.TripletMetric().fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(routed[0].components_, direct.components_)
    assert not np.array_equal(direct.components_, ts.TripletMetric().fit(X, y).components_)


def test_frames_in_and_out(wine):
    X, y = wine
    names = [f"f{i}" for i in range(X.shape[1])]
    labels = np.array(["red", "white", "green"])[y]
    model = ts.TripletMetric(n_components=2).set_output(transform="pandas").fit(pd.DataFrame(X, columns=names), labels)
    out = model.transform(pd.DataFrame(X, columns=names))
    assert list(out.columns) == ["tripletmetric0", "tripletmetric1"]
    assert list(model.feature_names_in_) == names
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(pd.DataFrame(X, columns=names[::-1]))
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(X, schema=names)
    same = ts.TripletMetric(n_components=2).set_output(transform="polars").fit(frame, labels)
    assert isinstance(same.transform(frame), polars.DataFrame)
    np.testing.assert_allclose(same.transform(frame).to_numpy(), out.to_numpy(), rtol=1e-9)


def test_sparse_points_are_converted_within_the_budget(wine):
    X, y = wine
    S = sparse.csr_matrix(np.where(np.abs(X) > 0.8, X, 0))
    model = ts.TripletMetric().fit(S, y)
    np.testing.assert_allclose(model.transform(S), model.transform(S.toarray()), rtol=1e-12)
    with pytest.raises(ts.InputError, match=r"memory_budget=1e\+03: X is sparse and would take .*TruncatedSVD"):
        ts.TripletMetric(memory_budget=1e3).fit(S, y)


def test_float32_stays_in_transform(wine):
    X, y = wine
    model = ts.TripletMetric().fit(X.astype(np.float32), y)
    assert model.transform(X.astype(np.float32)).dtype == np.float32
    assert model.transform(X).dtype == np.float64


def test_pickle_joblib_and_clone(wine, tmp_path):
    X, y = wine
    model = ts.TripletMetric(rounds=2).fit(X, y)
    joblib.dump(model, tmp_path / "model.joblib")
    for again in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model.joblib")):
        np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_array_equal(clone(model).fit(X, y).components_, model.components_)
    chosen = ts.TripletMetricCV(ratios=3, cv=2).fit(X, y)
    assert len(pickle.dumps(chosen)) < 20_000  # the metrics, not the points they were learned from


def test_callbacks_of_scikit_learn(wine):
    pytest.importorskip("sklearn.callback")

    class Count:
        begun = ended = 0

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            self.down = True

        def on_fit_task_begin(self, estimator, context):
            self.begun += 1

        def on_fit_task_end(self, estimator, context):
            self.ended += 1

    for model, steps in ((ts.TripletMetric(), 5), (ts.TripletMetricCV(ratios=4, cv=2), 12)):
        count = Count()
        model.set_callbacks(count)
        model.fit(*wine)
        assert count.begun == count.ended > steps
        assert count.down


def test_recipes_for_neighbours_clusters_and_faiss(wine):
    from sklearn.cluster import DBSCAN

    X, y = wine
    model = ts.TripletMetric().fit(X, y)
    Z = model.transform(X)
    assert KNeighborsClassifier(3).fit(Z, y).score(Z, y) > 0.97
    VI = model.get_mahalanobis_matrix()
    by_matrix = KNeighborsClassifier(3, metric="mahalanobis", metric_params={"VI": VI}).fit(X, y)
    assert (by_matrix.predict(X) == KNeighborsClassifier(3).fit(Z, y).predict(X @ model.components_.T)).mean() > 0.99
    assert len(set(DBSCAN(eps=1.0, min_samples=4).fit_predict(Z))) >= 2
    faiss = pytest.importorskip("faiss")
    index = faiss.IndexFlatL2(Z.shape[1])
    index.add(np.ascontiguousarray(Z, dtype=np.float32))
    _, found = index.search(np.ascontiguousarray(Z, dtype=np.float32), 4)
    assert (y[found[:, 1:]] == y[:, None]).mean() > 0.95


def test_iris_is_better_than_euclid():
    X, y = load_iris(return_X_y=True)
    plain = cross_val_score(KNeighborsClassifier(3), X, y, cv=5).mean()
    learned = cross_val_score(make_pipeline(ts.TripletMetric(), KNeighborsClassifier(3)), X, y, cv=5).mean()
    assert learned >= plain - 0.02


@pytest.mark.parametrize(
    "name",
    [
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_get_params_invariance",
        "check_set_params",
        "check_estimator_repr",
        "check_estimator_cloneable",
        "check_valid_tag_types",
        "check_mixin_order",
    ],
)
def test_the_checks_that_need_no_matrix_for_comparisons(name):
    """The input of ComparisonMetric is 3-D: the other checks would hand it matrices."""
    from sklearn.utils import estimator_checks

    check = getattr(estimator_checks, name)
    check("ComparisonMetric", ts.ComparisonMetric())
