"""Features that are not scaled are not left to silence."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import scale

import triscreen as ts
from triscreen.estimators.scaling import warn_of_scales


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_features_of_different_units_are_told_of(load):
    """Wine as it is: Euclid 0.70, TripletMetric 0.66, metric-learn's LMNN 0.95."""
    X = load(return_X_y=True)[0]
    with pytest.warns(ts.ScaleWarning, match=r"half of the \d+ features .* of the variance.*: scale them first"):
        warn_of_scales(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_scales(scale(X))


@pytest.mark.parametrize("load", [load_iris, load_digits])
def test_features_of_one_kind_are_not(load):
    X = load(return_X_y=True)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for points in (X, PCA().fit_transform(X), X[:, :1], np.hstack([X, np.full((len(X), 5), 3.0)])):
            warn_of_scales(points)
        warn_of_scales(np.zeros((3, 2)))


def test_estimators_that_begin_with_scaled_neighbours_are_silent():
    X, y = load_wine(return_X_y=True)
    by_cv = ts.TripletMetricCV(cv=2, ratios=2, candidates=[None])
    for loud in (ts.TripletMetric(), ts.TripletMetric(prior="identity"), by_cv):
        with pytest.warns(ts.ScaleWarning):
            loud.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ts.ScaleWarning)
        ts.TripletMetric(prior="within").fit(X, y)
        assert ts.TripletMetricCV(cv=2, ratios=2).fit(X, y).chosen_.startswith("within")
