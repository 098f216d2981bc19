"""Estimators that begin somewhere are saved with where they began, and loaded the same."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

import triscreen as ts
from problems import comparisons

RNG = np.random.default_rng(0)
Y = np.arange(60) % 3
X = RNG.normal(size=(60, 3)) + np.stack([2 * (Y == 1), 2 * (Y == 2), 0 * Y], axis=1)
N = np.diag([1.0, 2.0, 0.5])


def again(model, folder):
    ts.save(model, folder / "file")
    return ts.load(folder / "file")


def same(one, other):
    """Assert that two values are equal, and of one type."""
    assert type(one) is type(other), (one, other)
    if isinstance(one, dict):
        assert list(one) == list(other)
        one, other = list(one.values()), list(other.values())
    if isinstance(one, list | tuple):
        for pair in zip(one, other, strict=True):
            same(*pair)
    else:
        np.testing.assert_array_equal(one, other)


def check(model, loaded):
    assert type(loaded) is type(model)
    for name in ("prior_", "prior_scale_", "components_", "lam_", "rel_gap_", "converged_"):
        same(getattr(model, name), getattr(loaded, name))
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    np.testing.assert_array_equal(clone(loaded).fit(X, Y).components_, model.components_)


@pytest.mark.parametrize("prior", [None, "identity", "within", N, N.tolist()], ids=str)
def test_a_prior(tmp_path, prior):
    model = ts.TripletMetric(3, prior=prior, neighbors="euclid").fit(X, Y)
    loaded = again(model, tmp_path)
    same(model.prior, loaded.prior)
    check(model, loaded)


def test_a_diagonal_prior_and_one_of_comparisons(tmp_path):
    model = ts.TripletMetric(3, prior=np.diag(N).copy(), cone="diagonal").fit(X, Y)
    check(model, again(model, tmp_path))
    points, rows = comparisons(0, n=12, m=60)
    model = ts.ComparisonMetric(points, prior=np.eye(4)).fit(rows)
    loaded = again(model, tmp_path)
    same(model.prior, loaded.prior)
    same(model.prior_, loaded.prior_)
    np.testing.assert_array_equal(loaded.decision_function(rows), model.decision_function(rows))


def test_a_frozen_metric_is_saved_as_its_matrix(tmp_path):
    old = ts.TripletMetric(3).fit(X[:30], Y[:30])
    model = ts.TripletMetric(3, prior=FrozenEstimator(old)).fit(X, Y)
    loaded = again(model, tmp_path)
    same(loaded.prior, old.get_mahalanobis_matrix())
    check(model, loaded)
    with pytest.raises(ts.InputError, match="prior is a TripletMetric that is not fitted"):
        ts.save(ts.TripletMetric(prior=FrozenEstimator(ts.TripletMetric())), tmp_path / "file")
    with pytest.raises(ts.InputError, match="prior is a TripletMetric: what is saved"):
        ts.save(ts.TripletMetric(prior=old), tmp_path / "file")


def check_cv(model, loaded):
    check(model, loaded)
    for name in ("candidates_", "chosen_", "improvement_", "ratios_", "cv_scores_", "best_index_", "lam_ratio_"):
        same(getattr(model, name), getattr(loaded, name))


@pytest.mark.parametrize("kind", [tuple, list])
def test_candidates(tmp_path, kind):
    frozen = FrozenEstimator(ts.TripletMetric(3).fit(X[:30], Y[:30]))
    model = ts.TripletMetricCV(3, candidates=kind([None, "within", N, frozen]), cv=3, ratios=3).fit(X, Y)
    loaded = again(make_pipeline(ts.Scaling("none").fit(X), model), tmp_path)[-1]
    same(kind([None, "within", N, frozen.estimator.get_mahalanobis_matrix()]), loaded.candidates)
    assert model.candidates_["name"] == ["euclid", "none", "within", "array", "metric"]
    loaded.set_params(candidates=model.candidates)
    check_cv(model, loaded)
    if model.path_ is not None:
        np.testing.assert_array_equal(loaded.path_.lambdas, model.path_.lambdas)


def test_defaults_come_back_as_they_are(tmp_path):
    loaded = again(ts.TripletMetricCV(), tmp_path)
    assert loaded.get_params() == ts.TripletMetricCV().get_params()
    assert repr(loaded) == "TripletMetricCV()"


def test_a_start_alone(tmp_path):
    """Nothing was learned: an infinite lambda, a gap of 0 and no path."""
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(60, 3))
    model = ts.TripletMetricCV(3, candidates=("identity",), cv=3, ratios=2).fit(noise, rng.permutation(Y))
    assert model.path_ is None
    loaded = again(model, tmp_path)
    assert loaded.path_ is None
    assert loaded.lam_ == loaded.solution_.lam == loaded.lam_ratio_ == np.inf
    assert (loaded.rel_gap_, loaded.converged_, loaded.chosen_) == (0.0, True, model.chosen_)
    same(model.solution_.M, loaded.solution_.M)
    same(model.improvement_, loaded.improvement_)
    np.testing.assert_array_equal(loaded.transform(noise), model.transform(noise))
