"""The exact reduction to the span of the points."""

from __future__ import annotations

import numpy as np
import pytest

import triscreen as ts
from triscreen.problem.span import span_basis


def wide_points(n=24, d=120, constant=1):
    """Points of more features than there are points, some of them constant at what no mean hits exactly."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    X[:, rng.choice(d, constant, replace=False)] = 0.1
    return X, np.arange(n) % 2


@pytest.mark.parametrize("constant", [0, 1, 30, 100])
def test_constant_features_do_not_keep_points_from_their_span(constant):
    X, y = wide_points(constant=constant)
    centred = X - X.mean(axis=0)
    assert constant == 0 or centred.any(axis=0).all()  # what was their undoing: a column of 1e-17
    basis = span_basis(centred)
    rank = min(len(X) - 1, X.shape[1] - constant)
    assert basis.shape == (X.shape[1], rank)
    np.testing.assert_allclose(basis.T @ basis, np.eye(rank), atol=1e-13)
    assert not basis[np.ptp(X, axis=0) == 0].any()
    T = ts.knn_triplets(X, y, k=3)
    varied = np.ptp(X, axis=0) > 0
    whole, part = ts.Problem(X, T), ts.Problem(X[:, varied], T)
    lam = 0.01 * part.lambda_max()
    a, b = ts.solve(whole, lam, tol=1e-11), ts.solve(part, lam, tol=1e-11)
    np.testing.assert_allclose(a.M[np.ix_(varied, varied)], b.M, atol=1e-5 * np.abs(b.M).max())
    assert not a.M[~varied].any()


def test_constant_features_alone_are_no_span():
    assert span_basis(np.full((5, 7), 0.1)) is None


def test_many_constant_features_of_many_points_are_left_out():
    X = np.zeros((50, 10))
    X[:, :6] = np.random.default_rng(0).normal(size=(50, 6))
    assert span_basis(X - X.mean(axis=0)).shape == (10, 6)
    X[:, 6:9] = np.random.default_rng(1).normal(size=(50, 3))
    assert span_basis(X - X.mean(axis=0)).shape == (10, 9)
    X[:, 9] = X[:, 0] ** 2
    assert span_basis(X - X.mean(axis=0)) is None


def test_a_fit_decomposes_no_matrix_larger_than_the_span(monkeypatch):
    """With more features than points, all of them: a fit on 300 points of 4,000 features took minutes at its end."""
    X, y = wide_points(constant=1)
    T = ts.knn_triplets(X, y, k=2).indices()
    sizes = []
    for name in ("eigh", "eigvalsh"):
        real = getattr(np.linalg, name)
        monkeypatch.setattr(np.linalg, name, lambda A, *rest, real=real: sizes.append(len(A)) or real(A, *rest))
    for model, data in ((ts.TripletMetric(rounds=2, tol=1e-6), (X, y)), (ts.ComparisonMetric(X, tol=1e-6), (T,))):
        sizes.clear()
        model.fit(*data)
        assert max(sizes) < len(X)
        np.testing.assert_allclose(model.get_mahalanobis_matrix(), model.solution_.M, atol=1e-9)
