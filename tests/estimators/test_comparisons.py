"""Metrics from comparisons, and folds of them."""

from __future__ import annotations

import numpy as np
import pytest

import triscreen as ts
from problems import comparisons


@pytest.mark.filterwarnings("ignore::triscreen.SmallClassWarning")
def test_comparisons_are_learned_from_points_and_from_indices():
    X, rows = comparisons(0)
    by_index = ts.ComparisonMetric(preprocessor=X).fit(rows[:200])
    by_point = ts.ComparisonMetric().fit(X[rows[:200]])
    np.testing.assert_allclose(by_index.solution_.M, by_point.solution_.M, atol=1e-9)
    assert by_point.n_points_ == len(np.unique(rows[:200]))
    assert by_index.score(rows[200:]) > 0.9
    assert by_point.score(X[rows[200:]]) == by_index.score(rows[200:])
    decided = by_point.decision_function(X[rows[200:]])
    np.testing.assert_array_equal(by_point.predict(X[rows[200:]]), np.where(decided > 0, 1, -1))
    near, far = by_index.pair_distance(rows[:, :2]), by_index.pair_distance(rows[:, [0, 2]])
    np.testing.assert_allclose(by_index.decision_function(rows), far - near)
    assert np.abs(by_point.components_[0])[:2].sum() > np.abs(by_point.components_[0])[2:].sum()
    assert by_point.transform(X).shape[0] == len(X)


def test_weights_of_comparisons():
    X, rows = comparisons(1)
    weights = np.random.default_rng(0).uniform(0.1, 3, len(rows))
    model = ts.ComparisonMetric(preprocessor=X, tol=1e-8).fit(rows, sample_weight=weights)
    problem = ts.Problem(X, ts.given_triplets(rows, weights))
    assert problem.certificate(model.solution_.M, model.lam_).rel_gap <= 1.01e-8
    weights[::3] = 0
    some = ts.ComparisonMetric(preprocessor=X).fit(rows, sample_weight=weights)
    kept = ts.ComparisonMetric(preprocessor=X).fit(rows[weights > 0], sample_weight=weights[weights > 0])
    np.testing.assert_array_equal(some.components_, kept.components_)
    for wrong in (weights[:5], -weights):
        with pytest.raises(ts.InputError, match="sample_weight"):
            ts.ComparisonMetric(preprocessor=X).fit(rows, sample_weight=wrong)


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
@pytest.mark.filterwarnings("ignore::triscreen.SmallClassWarning")
def test_a_prior_is_scaled_and_what_the_metric_stays_close_to(cone):
    X, rows = comparisons(0)
    d = X.shape[1]
    model = ts.ComparisonMetric(X, prior="identity", cone=cone, lam_ratio=1, tol=1e-8).fit(rows)
    N = np.ones(d) if cone == "diagonal" else np.eye(d)
    assert model.prior_scale_ > 0
    np.testing.assert_array_equal(model.prior_, model.prior_scale_ * N)
    M = model.solution_.M
    assert np.linalg.norm(M - model.prior_) <= 0.011 * np.linalg.norm(model.prior_)
    problem = ts.Problem(X, ts.given_triplets(rows), cone=cone, prior=model.prior_)
    assert problem.certificate(M, model.lam_).rel_gap <= 1.01e-8
    # The same metric at any scale, as an array, and for points in place of indices.
    for given, data in ((7 * N, rows), ((7 * N).tolist(), rows), ("identity", X[rows])):
        other = ts.ComparisonMetric(X if data is rows else None, prior=given, cone=cone, lam_ratio=1, tol=1e-8)
        np.testing.assert_allclose(other.fit(data).solution_.M, M, rtol=5e-3, atol=1e-3 * np.abs(M).max())
    none = ts.ComparisonMetric(X, cone=cone).fit(rows)
    assert (none.prior_, none.prior_scale_) == (None, 0.0)


def test_yesterdays_metric_is_a_prior_if_it_is_frozen():
    from sklearn.frozen import FrozenEstimator

    X, rows = comparisons(0)
    old = ts.ComparisonMetric(X).fit(rows[:100])
    new = ts.ComparisonMetric(X, prior=FrozenEstimator(old)).fit(rows[100:])
    same = ts.ComparisonMetric(X, prior=old.get_mahalanobis_matrix()).fit(rows[100:])
    np.testing.assert_array_equal(new.components_, same.components_)
    with pytest.raises(ts.InputError, match=r"prior=.*clone would make it forget its metric"):
        ts.ComparisonMetric(X, prior=old).fit(rows)


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ("within", "prior='within': it must be None, 'identity', an array or a metric"),
        (3.0, "prior=3.0: it must be None, 'identity', an array"),
        (np.eye(2), "prior"),
        (-np.eye(5), "prior"),
    ],
)
def test_wrong_priors(prior, words):
    X, rows = comparisons(0)
    with pytest.raises(ts.InputError, match=words):
        ts.ComparisonMetric(X, prior=prior).fit(rows)


def test_a_prior_that_is_worse_than_none_is_not_used():
    X, rows = comparisons(0)
    blind = np.diag([0.0, 0.0, 1.0, 1.0, 1.0])[: X.shape[1], : X.shape[1]]
    turned = rows[:, [0, 2, 1]]
    with pytest.warns(ts.DegenerateProblemWarning, match="prior"):
        model = ts.ComparisonMetric(X, prior=np.eye(X.shape[1]) - blind).fit(turned)
    assert model.prior_ is None


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([[0, 1, 1]], r"triplets\[0\] has the same point twice"),
        ([[0, 0, 1]], r"triplets\[0\] has the same point twice"),
        ([[0, 1, 25]], r"triplets\[0\] is \[0, 1, 25\]: indices must lie between 0 and 24"),
        ([[0, 1, -1]], "indices must lie between"),
        (
            [[0, 1]],
            r"triplets has shape \(1, 2\): it must have shape \(m, 3\), rows of the preprocessor or other names",
        ),
        ([[0.5, 1, 2]], "whole numbers, the rows of the preprocessor, are needed"),
    ],
)
def test_wrong_comparisons(rows, words):
    with pytest.raises(ts.InputError, match=words):
        ts.ComparisonMetric(preprocessor=comparisons(0)[0]).fit(rows)


def test_answers_turn_comparisons_round():
    """They were ignored: 54 % agreement in place of 98.7 %."""
    X, rows = comparisons(0)
    y = np.where(np.random.default_rng(0).random(len(rows)) < 0.5, 1, -1)
    asked = np.where(y[:, None] > 0, rows, rows[:, [0, 2, 1]])
    right = ts.ComparisonMetric(X).fit(rows[:200])
    for answers in (y, y.astype(float), y.tolist()):
        model = ts.ComparisonMetric(X).fit(asked[:200], answers[:200])
        np.testing.assert_array_equal(model.components_, right.components_)
        assert model.score(asked[200:], answers[200:]) == right.score(rows[200:]) > 0.9
    by_point = ts.ComparisonMetric().fit(X[asked], y)
    np.testing.assert_array_equal(by_point.components_, ts.ComparisonMetric().fit(X[rows]).components_)
    assert model.score(asked[:3], None) == np.mean(y[:3] > 0)
    model.components_[:] = 0  # a tie is right for nobody
    assert model.score(asked, y) == model.score(asked, -y) == 0


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([1, 0], r"y\[1\] is 0: answers must be 1 .* or -1"),
        ([2.0, 1], r"y\[0\] is 2.0: answers"),
        (["b", "c"], r"y\[0\] is 'b': answers"),
        ([True, False], r"y\[0\] is True: answers"),
        ([1], r"y has shape \(1,\): one answer for each of the 2 comparisons is needed"),
    ],
)
def test_wrong_answers(y, words):
    X, rows = comparisons(0)
    model = ts.ComparisonMetric(X).fit(rows)
    for method in (model.fit, model.score):
        with pytest.raises(ts.InputError, match=words):
            method(rows[:2], y)


def test_points_that_coincide_are_compared_like_others():
    """Plain iris has equal flowers: comparisons of them were refused as points, and taken as indices."""
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    rows = ts.knn_triplets(X, y, 3).indices()
    assert (X[rows[:, 0]] == X[rows[:, 1]]).all(axis=1).any()
    by_index, by_point = ts.ComparisonMetric(X, tol=1e-8).fit(rows), ts.ComparisonMetric(tol=1e-8).fit(X[rows])
    assert by_point.lam_ == pytest.approx(by_index.lam_, rel=1e-12)
    np.testing.assert_allclose(by_point.solution_.M, by_index.solution_.M, atol=1e-3 * by_index.solution_.M.max())
    assert by_point.n_points_ == len(np.unique(X[np.unique(rows)], axis=0))
    # Whatever coincides: the loss is that of the points as they are.
    P = np.random.default_rng(0).normal(size=(4, 2))
    for row in ([0, 0, 1], [0, 1, 0], [0, 1, 1], [2, 2, 2]):
        T = np.array([row, [0, 1, 2], [3, 2, 0]])
        model = ts.ComparisonMetric(lam=0.3, tol=1e-8).fit(P[T])
        assert model.n_triplets_ == 3
        a, b, c = np.moveaxis(P[T], 1, 0)
        M = model.solution_.M
        m = np.einsum("ij,jk,ik->i", a - c, M, a - c) - np.einsum("ij,jk,ik->i", a - b, M, a - b)
        loss = sum(map(ts.SmoothedHinge(0.05), m)) + 0.15 * (M**2).sum()
        assert loss == pytest.approx(model.solution_.primal, rel=1e-9)


def test_comparisons_are_fitted_and_points_transformed():
    X, rows = comparisons(0)
    with pytest.raises(ts.InputError, match="fit comparisons, then transform points"):
        ts.ComparisonMetric(X).fit_transform(rows)


def test_comparisons_are_no_metadata():
    routing = ts.ComparisonMetric().get_metadata_routing()
    for method in ("fit", "score", "predict", "decision_function"):
        assert "triplets" not in getattr(routing, method).requests
    assert set(routing.fit.requests) == {"sample_weight"}


def test_indices_without_points_are_refused():
    with pytest.raises(ts.InputError, match=r"triplets has shape \(250, 3\): it must have shape \(m, 3, d\)"):
        ts.ComparisonMetric().fit(comparisons(0)[1])


@pytest.mark.parametrize("state", [None, 0])
def test_folds_keep_apart_what_must_not_be_known(state):
    from sklearn.model_selection import cross_val_score

    X, rows = comparisons(2)
    for by in ("comparison", "anchor", "item"):
        tested = []
        for train, test in ts.ComparisonKFold(3, by=by, random_state=state).split(rows):
            assert len(train)
            assert len(test)
            assert not set(train) & set(test)
            tested.append(test)
            if by == "anchor":
                assert not set(rows[train, 0]) & set(rows[test, 0])
            if by == "item":
                assert not set(rows[train].ravel()) & set(rows[test].ravel())
        if by != "item":
            assert sorted(np.concatenate(tested)) == list(range(len(rows)))
        scores = cross_val_score(ts.ComparisonMetric(preprocessor=X), rows, cv=ts.ComparisonKFold(3, by=by))
        assert scores.mean() > 0.6
    for train, test in ts.ComparisonKFold(3, by="item").split(X[rows]):
        assert not set(rows[train].ravel()) & set(rows[test].ravel())
    with pytest.raises(ts.InputError, match=r"n_splits=25, by='item': a fold of 1 of 25 items has .* and 0 to test"):
        list(ts.ComparisonKFold(25, by="item").split(rows))
    for arguments in ({"n_splits": 1}, {"by": "point"}):
        with pytest.raises(ts.InputError):
            ts.ComparisonKFold(**arguments)
