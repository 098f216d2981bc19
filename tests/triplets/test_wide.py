"""In many dimensions products are cut otherwise; they are the same to rounding, and to the bit for any threads."""

from __future__ import annotations

import numpy as np
import pytest

import triscreen as ts
from triscreen._utils.threads import Threads
from triscreen.problem.cones import PSD
from triscreen.problem.losses import SmoothedHinge
from triscreen.problem.rounding import Rounding
from triscreen.triplets.pairs import WIDE, product, symmetric_product


def make(n=250, d=WIDE + 45):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, d)), np.arange(n) % 4
    return ts.knn_triplets(X, y, 3).over(X - X.mean(axis=0)), rng


def test_the_matrix_is_the_sum_over_pairs_within_its_bound():
    triplets, rng = make()
    alphas = rng.uniform(size=triplets.n_triplets)
    threads = Threads(1)
    zero = np.zeros(triplets.n_pairs)
    _, weights = triplets.sweep_alpha(zero, alphas, 0.05, threads)
    A = triplets.matrix(weights, threads)
    np.testing.assert_array_equal(A, A.T)
    delta = (triplets.points[triplets.first] - triplets.points[triplets.second]).astype(np.longdouble)
    exact = (delta * weights[:, None]).T @ delta
    bound = Rounding(triplets, SmoothedHinge(0.05), PSD(), 4, threads).sum_of_h(float(alphas.sum()))
    assert float(np.linalg.norm((A - exact).astype(float))) <= bound < 1e-9 * np.linalg.norm(A)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_have_the_same_bits_for_any_threads(dtype):
    triplets, rng = make(n=900)
    X = triplets.points.astype(dtype)
    V = rng.normal(size=(X.shape[1], 70)).astype(dtype)
    tolerance = 1e-12 if dtype is np.float64 else 1e-5
    for work, exact in ((lambda t: product(X, V, t), X @ V), (lambda t: symmetric_product(X, X, t), X.T @ X)):
        made = [work(Threads(n)) for n in (1, 2, 3)]
        np.testing.assert_array_equal(made[0], made[1])
        np.testing.assert_array_equal(made[0], made[2])
        np.testing.assert_allclose(made[0], exact, rtol=0, atol=tolerance * np.abs(exact).max())


def test_a_factor_has_no_columns_of_rounding():
    rng = np.random.default_rng(0)
    F = rng.normal(size=(WIDE + 10, 20))
    projection = PSD().project(F @ F.T)
    assert projection.factor.shape[1] == 20
    error = np.linalg.norm(projection.plus - F @ F.T)
    assert error <= 32 * len(F) * 2.0**-53 * np.square(F).sum()
    values, vectors = projection.negative
    assert (values < 0).all()
    assert vectors.shape == (len(F), len(values))
