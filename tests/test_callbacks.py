"""What a callback answers: True stops, everywhere, and nothing else does."""

from __future__ import annotations

import numpy as np
import pytest

import triscreen as ts
from problems import comparisons

Y = np.arange(30) % 2
X = np.random.default_rng(0).normal(size=(30, 3)) + Y[:, None]
PROBLEM = ts.Problem(X, ts.knn_triplets(X, Y, 2))
LAM = 0.01 * PROBLEM.lambda_max()
POINTS, ROWS = comparisons(0, n=15, m=80)

# Each returns how far it came.
ENTRY_POINTS = {
    "solve": lambda callback: ts.solve(PROBLEM, LAM, callback=callback).n_iter,
    "solve_path": lambda callback: len(ts.solve_path(PROBLEM, n_lambdas=3, callback=callback)),
    "TripletMetric": lambda callback: ts.TripletMetric(2, callback=callback).fit(X, Y).n_iter_,
    "TripletMetricCV": lambda callback: np.count_nonzero(
        np.isfinite(ts.TripletMetricCV(2, candidates=[None], ratios=3, cv=2, callback=callback).fit(X, Y).cv_scores_[0])
    ),
    "ComparisonMetric": lambda callback: ts.ComparisonMetric(POINTS, callback=callback).fit(ROWS).n_iter_,
}


@pytest.mark.parametrize("name", ENTRY_POINTS)
@pytest.mark.parametrize(
    "answer", [None, 0, 1, 0.5, np.float64(1.0), np.int64(1), "yes", [1], np.ones(1), False, np.False_]
)
def test_anything_but_true_goes_on(name, answer):
    assert ENTRY_POINTS[name](lambda state: answer) == ENTRY_POINTS[name](None) > 1


@pytest.mark.parametrize("name", ENTRY_POINTS)
@pytest.mark.parametrize("answer", [True, np.True_])
def test_true_stops(name, answer):
    assert ENTRY_POINTS[name](lambda state: answer) == 1
