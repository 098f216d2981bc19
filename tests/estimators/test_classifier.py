"""The classifier: votes against brute force and scikit-learn, the choice of votes, files, refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler, scale

import triscreen as ts
from triscreen._utils import archive as files
from triscreen.selection.votes import choose_votes, heaviness, interval, judge_votes

QUICK = {"ratios": 3, "cv": 3, "candidates": (None, "identity")}


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X)[::2], y[::2], scale(X)[1::2], y[1::2]


@pytest.fixture(scope="module")
def fitted(wine):
    X, y, _, _ = wine
    return ts.TripletClassifier(**QUICK).fit(X, y)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("k", [1, 4, 200])
def test_votes_are_those_of_scikit_learn_in_the_learned_space(wine, weights, k):
    X, y, X_test, _ = wine
    model = ts.TripletClassifier(**QUICK, vote_neighbors=k, vote_weights=weights).fit(X, y)
    assert (model.vote_neighbors_, model.vote_weights_) == (k, weights)
    near = KNeighborsClassifier(min(k, len(X)), weights=weights).fit(model.transform(X), y)
    asked = np.concatenate([X_test, X[:5]])  # the last ones are at distance 0 from one of those that vote
    np.testing.assert_allclose(model.predict_proba(asked), near.predict_proba(model.transform(asked)), atol=1e-9)
    np.testing.assert_array_equal(model.predict(asked), near.predict(model.transform(asked)))


def test_its_metric_is_that_of_the_cross_validation(wine, fitted):
    X, y, X_test, y_test = wine
    metric = ts.TripletMetricCV(**QUICK).fit(X, y)
    np.testing.assert_array_equal(fitted.components_, metric.components_)
    np.testing.assert_array_equal(fitted.cv_scores_, metric.cv_scores_)
    assert fitted.score(X_test, y_test) == np.mean(fitted.predict(X_test) == y_test) > 0.9


def test_the_error_before_is_that_of_euclid_on_the_folds(wine):
    X, y, _, _ = wine
    folds = list(StratifiedKFold(3).split(X, y))
    model = ts.TripletClassifier(ratios=2, cv=folds, vote_neighbors=4, vote_weights="distance").fit(X, y)
    near = KNeighborsClassifier(4, weights="distance")
    wrong = sum(np.sum(near.fit(X[train], y[train]).predict(X[test]) != y[test]) for train, test in folds)
    assert model.error_before_ == pytest.approx((wrong / len(y), *interval(wrong / len(y), len(y))))
    error, low, high = model.error_after_
    assert 0 <= low < error < high < 0.2
    assert model.votes_["accuracy"].tolist() == pytest.approx([1 - error], abs=1e-3)  # folds of nearly the same size
    gain, _ = model.improvement_
    assert gain == pytest.approx(model.error_before_[0] - error, abs=1e-3)


def test_ways_of_voting_are_judged_as_by_brute_force():
    rng = np.random.default_rng(0)
    X, y, Q = rng.normal(size=(40, 2)), rng.integers(3, size=40), rng.normal(size=(30, 2))
    Q[:3], right = X[:3], rng.integers(-1, 3, size=30)
    squares = ((Q[:, None] - X[None]) ** 2).sum(axis=2)
    near = np.argsort(squares, axis=1, kind="stable")[:, :9]
    options = [(9, "distance"), (1, "uniform"), (4, "uniform"), (4, "distance"), (50, "uniform")]
    accuracies, briers = judge_votes(near, np.take_along_axis(squares, near, axis=1), y, right, 3, options)
    for (k, weights), accuracy, brier in zip(options, accuracies, briers, strict=True):
        shares = KNeighborsClassifier(min(k, 9), weights=weights).fit(X, y).predict_proba(Q)
        truth = (right[:, None] == np.arange(3)).astype(float)
        assert accuracy == np.mean(shares.argmax(axis=1) == right)
        unseen = right < 0  # a class of its own, for which nobody votes
        assert brier == pytest.approx((((shares - truth) ** 2).sum(axis=1) + unseen).mean())


def test_votes_of_points_that_are_nearly_there_do_not_overflow():
    heavy = heaviness(np.array([[1e-320, 1.0], [0.0, 0.0], [0.0, 4.0], [1.0, 4.0]]), "distance")
    np.testing.assert_allclose(heavy, [[1, 1e-160], [1, 1], [1, 0], [1, 0.5]], atol=1e-150)


def test_of_ways_as_accurate_as_the_best_that_of_the_best_shares_is_taken():
    accuracies = np.array([[0.9, 0.9, 0.5], [0.8, 0.8, 0.9], [0.9, 0.9, 0.6]])
    briers = np.array([[0.3, 0.2, 0.1]] * 3)
    assert choose_votes(accuracies, briers) == 1
    assert choose_votes(accuracies, briers[:, ::-1]) == 0
    accuracies[1] = np.nan  # a fold that time did not allow
    assert choose_votes(accuracies, briers) == 1
    assert choose_votes(accuracies * np.nan, briers) == 0


@pytest.mark.parametrize(("wrong", "n"), [(0, 20), (3, 50), (50, 50), (200, 1000)])
def test_the_interval_has_the_ends_at_which_the_share_is_two_deviations_away(wrong, n):
    low, high = interval(wrong / n, n)
    for end in (low, high):
        if 0 < end < 1:
            assert abs(wrong / n - end) == pytest.approx(1.96 * np.sqrt(end * (1 - end) / n))
    assert low <= wrong / n <= high
    assert interval(float("nan"), n) == interval(0.5, 0) == (0.0, 1.0)


@pytest.mark.parametrize(
    "labels", [["a", "bb", "c"], np.array(["a", "bb", "c"], dtype=object), [2, 5, 7], [-1.0, 1.0, 2.0]]
)
def test_one_file_predicts_the_same_bits(wine, tmp_path, labels):
    X, y, X_test, _ = wine
    y = np.asarray(labels)[y]
    model = ts.TripletClassifier(**QUICK, vote_neighbors=[5], vote_weights="distance").fit(X, y)
    ts.save(model, tmp_path / "model")
    again = ts.load(tmp_path / "model")
    assert type(again) is ts.TripletClassifier
    assert again.get_params()["vote_neighbors"] == [5]
    np.testing.assert_array_equal(again.predict_proba(X_test), model.predict_proba(X_test))
    np.testing.assert_array_equal(again.predict(X_test), model.predict(X_test))
    assert again.predict(X_test).dtype == model.predict(X_test).dtype
    assert (again.error_before_, again.error_after_) == (model.error_before_, model.error_after_)
    np.testing.assert_array_equal(clone(again).fit(X, y).components_, model.components_)


def test_float32_stays_float32(wine, tmp_path):
    X, y, X_test, _ = (part.astype(np.float32) if part.dtype == float else part for part in wine)
    ts.save(ts.TripletClassifier(**QUICK).fit(X, y), tmp_path / "model")
    model = ts.load(tmp_path / "model")
    assert model.points_.dtype == model.transform(X_test).dtype == np.float32


def test_the_pipeline_of_the_readme_is_saved_without_pickle(wine, tmp_path):
    X, y, X_test, _ = wine
    names = np.array(["red", "white", "rose"])[y]
    near = KNeighborsClassifier(3, weights="distance")
    frame = pd.DataFrame(X, columns=[f"f{column}" for column in range(X.shape[1])])
    for scaler in (StandardScaler(), MinMaxScaler(), MaxAbsScaler(), RobustScaler(), PCA(5, whiten=True),
                   TruncatedSVD(4, random_state=0), "passthrough", StandardScaler(with_mean=False)):  # fmt: skip
        pipe = make_pipeline(scaler, ts.TripletMetric(tol=0.01), near).fit(frame, names)
        ts.save(pipe, tmp_path / "pipe")
        again = ts.load(tmp_path / "pipe")
        told = pd.DataFrame(X_test, columns=frame.columns)
        np.testing.assert_array_equal(again.predict_proba(told), pipe.predict_proba(told))
        np.testing.assert_array_equal(again.predict(told), pipe.predict(told))
        assert [name for name, _ in again.steps] == [name for name, _ in pipe.steps]
        assert str(again) == str(pipe)
    assert b"pickle" not in (tmp_path / "pipe").read_bytes()
    ts.save(make_pipeline(StandardScaler(), ts.TripletMetric(), KNeighborsClassifier(4)), tmp_path / "pipe")
    assert ts.load(tmp_path / "pipe")[2].n_neighbors == 4  # not fitted, and so it comes back
    assert not hasattr(ts.load(tmp_path / "pipe")[2], "classes_")


def test_steps_that_cannot_be_saved_are_refused(wine, tmp_path):
    X, y, _, _ = wine
    with pytest.raises(ts.InputError, match="metric is a function: what is saved must be numbers"):
        ts.save(Pipeline([("near", KNeighborsClassifier(metric=lambda u, v: 1.0))]), tmp_path / "a")
    many = KNeighborsClassifier().fit(X, np.stack([y, y], axis=1))
    with pytest.raises(ts.InputError, match="several labels each: it cannot be saved"):
        ts.save(Pipeline([("near", many)]), tmp_path / "a")
    from sklearn.linear_model import LogisticRegression

    with pytest.raises(
        ts.InputError, match=r"the step 'last' of the pipeline is a LogisticRegression: .*StandardScaler"
    ):
        ts.save(Pipeline([("last", LogisticRegression())]), tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_files_of_the_format_before_are_read(wine, tmp_path):
    X, y, X_test, _ = wine
    pipe = make_pipeline(ts.Scaling(), ts.TripletMetric()).fit(X, y)
    ts.save(pipe, tmp_path / "a")
    kind, meta, arrays = files.read(tmp_path / "a")
    known = files.VERSION
    try:
        files.VERSION = 4
        files.write(tmp_path / "b", kind, meta, arrays)
    finally:
        files.VERSION = known
    np.testing.assert_array_equal(ts.load(tmp_path / "b").transform(X_test), pipe.transform(X_test))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"vote_neighbors": 0}, "vote_neighbors=0: vote_neighbors must be a whole number of at least 1"),
        ({"vote_neighbors": ()}, r"vote_neighbors=\(\): there must be at least one to choose from"),
        ({"vote_neighbors": (3, 2.5)}, "vote_neighbors=2.5: vote_neighbors must be a whole number"),
        ({"vote_weights": "votes"}, "vote_weights='votes': it must be 'uniform' or 'distance'"),
        ({"vote_weights": ()}, r"vote_weights=\(\): there must be at least one to choose from"),
        ({"vote_weights": None}, "vote_weights=None: it must be 'uniform' or 'distance'"),
    ],
)
def test_wrong_arguments_are_refused_before_any_work(wrong, said):
    with pytest.raises(ts.InputError, match=said):
        ts.TripletClassifier(**wrong).fit(*load_iris(return_X_y=True))


def test_in_a_cross_validation_of_its_own(wine):
    X, y, _, _ = wine
    assert cross_val_score(ts.TripletClassifier(**QUICK), X, y, cv=3).mean() > 0.9


def test_frames_out_do_not_disturb_it(wine):
    X, y, _, _ = wine
    frame = pd.DataFrame(X, columns=[f"f{column}" for column in range(X.shape[1])])
    model = ts.TripletClassifier(**QUICK).set_output(transform="pandas").fit(frame, y)
    assert isinstance(model.points_, np.ndarray)
    again = ts.TripletClassifier(**QUICK).fit(X, y)
    np.testing.assert_array_equal(model.predict(frame), again.predict(X))
