"""Points in float32: they stay so until a problem has them in float64, once."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import triscreen as ts

N, D = 40_000, 64
WIDE = 8 * N * D  # bytes of all points in float64
BLOCKS = 2**24  # bytes of what is looked at at a time


def peak(work):
    """Return the largest number of bytes that work takes at once, and not those of modules and kernels."""
    work()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture
def points(tmp_path):
    np.save(tmp_path / "X.npy", np.random.default_rng(0).normal(size=(N, D)).astype(np.float32))
    return np.load(tmp_path / "X.npy", mmap_mode="r")


def given_neighbours():
    i = np.arange(N)
    return ((i + 2) % N)[:, None], ((i + 1) % N)[:, None]


def test_a_problem_makes_one_copy_in_float64(points):
    """It made three: 1e6 points of 768 features took 18 GB."""
    T = ts.knn_triplets(points, np.arange(N) % 2, 1, neighbors=given_neighbours())
    assert peak(lambda: ts.Problem(points, T)) < WIDE + BLOCKS


@pytest.mark.filterwarnings("ignore::triscreen.ConvergenceWarning", "ignore::triscreen.DegenerateProblemWarning")
def test_a_fit_makes_one_copy_that_stays(points):
    """And one for as long as a sum over all pairs takes: it were three and a half."""
    model = ts.TripletMetric(n_neighbors=1, lam_ratio=0.5, max_iter=1, n_jobs=1)
    assert peak(lambda: model.fit(points, np.arange(N) % 2, neighbors=given_neighbours())) < 2 * WIDE + 2 * BLOCKS


def test_comparisons_of_a_few_take_these_points_only(points):
    rows = np.random.default_rng(1).integers(0, N, (600, 3))
    rows = rows[[len(set(row)) == 3 for row in rows.tolist()]]
    near, far = (np.abs(points[rows[:, 0], 0] - points[rows[:, c], 0]) for c in (1, 2))
    rows = np.where((near < far)[:, None], rows, rows[:, [0, 2, 1]])
    model = ts.ComparisonMetric(points, lam_ratio=0.1, tol=1e-2, n_jobs=1)  # every thread has blocks of its own
    assert peak(lambda: model.fit(rows)) < 0.2 * WIDE
    assert model.n_points_ == len(np.unique(rows))
    whole = ts.ComparisonMetric(np.asarray(points, dtype=float), lam_ratio=0.1, tol=1e-2).fit(rows)
    np.testing.assert_array_equal(whole.components_, model.components_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_points_of_the_user_stay_as_they_are(dtype):
    X = np.random.default_rng(0).normal(3.0, size=(60, 4)).astype(dtype)
    y = np.arange(60) % 2
    X[:, 0] += 3 * y
    kept = X.copy()
    problem = ts.Problem(X, ts.knn_triplets(X, y, 3))
    ts.Problem(X, ts.all_triplets(X, y))
    ts.TripletMetric().fit(X, y)
    np.testing.assert_array_equal(X, kept)
    np.testing.assert_array_equal(problem.given_points(), kept)


def test_float32_is_learned_from_like_the_same_numbers_in_float64():
    X = np.random.default_rng(0).normal(size=(300, 80)).astype(np.float32)
    y = np.arange(300) % 3
    X[:, 0] += 5 * y
    for fit in (
        ts.TripletMetric().fit,
        ts.TripletMetric(rounds=2, lam_ratio=0.1).fit,
        ts.TripletMetric(prior="identity").fit,
    ):
        narrow = fit(X, y).components_
        np.testing.assert_array_equal(fit(X.astype(float), y).components_, narrow)
