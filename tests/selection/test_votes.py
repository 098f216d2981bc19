"""Votes of the nearest: what they weigh, what share they have, and Wilson's interval, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

import triscreen as ts
from triscreen.selection.bounds import votes_over
from triscreen.selection.judge import Judge, Points, Votes
from triscreen.selection.votes import choose_votes, heaviness, interval, judge_votes, shares


def test_shares_are_those_of_the_nearest_counted_one_by_one():
    rng = np.random.default_rng(0)
    Z, codes, queries = rng.normal(size=(12, 2)), rng.integers(0, 3, 12), rng.normal(size=(5, 2))
    queries[0] = Z[4]
    for weights in ("uniform", "distance"):
        for k in (1, 4, 12, 50):
            found = shares(Z, codes, 3, queries, k, weights)
            for row, query in zip(found, queries, strict=True):
                far = np.linalg.norm(Z - query, axis=1)
                votes = np.zeros(3)
                for point in np.argsort(far)[:k]:
                    if weights == "uniform":
                        votes[codes[point]] += 1
                    elif far.min() == 0:
                        votes[codes[point]] += far[point] == 0
                    else:
                        votes[codes[point]] += 1 / far[point]
                assert row == pytest.approx(votes / votes.sum())


def test_what_votes_weigh():
    squares = np.array([[1.0, 4.0, 4.0], [0.0, 0.0, 9.0]])
    np.testing.assert_array_equal(heaviness(squares, "uniform"), 1.0)
    np.testing.assert_allclose(heaviness(squares, "distance"), [[1.0, 0.5, 0.5], [1.0, 1.0, 0.0]])


@pytest.mark.parametrize("cells", [1 << 22, 6, 1])
def test_votes_are_judged_in_parts_of_any_size(cells, monkeypatch):
    monkeypatch.setattr("triscreen.selection.votes._CELLS", cells)
    near = np.array([[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1], [2, 0, 1]])
    squares = np.tile([1.0, 4.0, 16.0], (5, 1))
    codes, right = np.array([0, 1, 1]), np.array([0, 1, -1, 1, 0])
    options = [(3, "distance"), (1, "uniform"), (3, "uniform"), (9, "uniform")]
    accuracies, briers = judge_votes(near, squares, codes, right, 2, options)
    for (k, weights), accuracy, brier in zip(options, accuracies, briers, strict=True):
        hits = total = 0.0
        for row, truth in zip(near, right, strict=True):
            votes = np.zeros(2)
            for place, point in enumerate(row[:k]):
                votes[codes[point]] += 1.0 if weights == "uniform" else 0.5**place
            share = votes / votes.sum()
            hits += share.argmax() == truth
            target = np.eye(2)[truth] if truth >= 0 else np.zeros(2)
            total += np.square(share - target).sum() + (truth < 0)
        assert accuracy == pytest.approx(hits / 5)
        assert brier == pytest.approx(total / 5)


def test_folds_that_are_not_known_do_not_choose():
    accuracies, briers = (
        np.array([[0.9, 0.9], [np.nan, 0.1], [0.9, 0.9]]),
        np.array([[0.2, 0.1], [0.0, 9.0], [0.2, 0.1]]),
    )
    assert choose_votes(accuracies, briers) == 1
    assert choose_votes(np.full((2, 2), np.nan), briers[:2]) == 0
    assert choose_votes(np.array([[0.5, 0.9], [0.4, 0.8]]), briers[:2, ::-1]) == 1


@pytest.mark.parametrize(("share", "n"), [(0.0, 20), (0.06, 50), (0.5, 10), (0.98, 50), (1.0, 30)])
@pytest.mark.parametrize("deviations", [1.96, 1.0])
def test_the_ends_of_an_interval_are_where_the_share_is_so_many_deviations_away(share, n, deviations):
    """Both roots of (share - x)^2 = deviations^2 x (1 - x) / n."""
    square = deviations**2 / n
    wanted = np.sort(np.roots([1 + square, -(2 * share + square), share * share]).real)
    assert interval(share, n, deviations) == pytest.approx(wanted, abs=1e-9)
    low, high = interval(share, n, deviations)
    assert 0 <= low <= share <= high + 1e-15 <= 1 + 1e-15


def test_nothing_is_known_of_no_trials():
    assert interval(0.5, 0) == interval(np.nan, 10) == interval(np.inf, 10) == (0.0, 1.0)


def test_a_label_that_nobody_has_is_wrong_at_every_lambda():
    X, y = np.array([[0.0], [1.0], [5.0], [6.5]]), np.array([0, 0, 1, 1])
    problem = ts.Problem(X, ts.knn_triplets(X, y, k=1))
    path = ts.solve_path(problem, ratio=0.5, n_lambdas=3)
    bounds = votes_over(path, problem, X, y, np.array([[0.2], [0.3]]), np.array([0, 2]), 3)
    assert bounds.at(0.9 * path.lambdas[0]) == (0.5, 0.5)
    np.testing.assert_array_equal(bounds.outcomes[:, 1], -1)


def test_what_is_asked_is_known_by_points_queries_and_labels():
    X, y, queries = np.array([[0.0], [1.0], [5.0], [6.5]]), np.array([0, 0, 1, 1]), np.array([[0.2], [0.3]])
    problem = ts.Problem(X, ts.knn_triplets(X, y, k=1))

    def known_by(X, queries, wanted):
        points = Points(problem, X, queries)
        return Judge(problem, points, Votes(points, y, np.array(wanted), 2, 1)).fingerprint()

    own = known_by(X, queries, [0, 1])
    assert own == known_by(X.copy(), queries.copy(), [0, 1])
    assert (
        len({own, known_by(X + 1, queries, [0, 1]), known_by(X, queries + 0.1, [0, 1]), known_by(X, queries, [1, 1])})
        == 4
    )
