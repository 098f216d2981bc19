"""Scores by exact neighbours: those of scikit-learn, and where distances are equal those of the first points."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

import triscreen as ts
from triscreen.selection import neighbour_accuracy, neighbour_error, triplet_accuracy
from triscreen.selection import scores as module

LABELS = {"numbers": np.array([3, -1, 7]), "text": np.array(["b", "a", "longer"]), "floats": np.array([4.0, 2.0, -1.0])}


def data(seed, n=80, d=3, kind="numbers"):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), LABELS[kind][rng.integers(0, 3, n)]


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("k", [1, 2, 3, 7, 60])
def test_predictions_are_those_of_scikit_learn(k, kind, monkeypatch):
    monkeypatch.setattr(module, "_VOTES", 100)  # votes are counted in parts
    for seed in range(3):
        Z, y = data(seed, kind=kind)
        near = KNeighborsClassifier(k).fit(Z[:60], y[:60])
        assert neighbour_accuracy(Z[:60], y[:60], Z[60:], y[60:], k) == near.score(Z[60:], y[60:])
        assert neighbour_error(Z, y, k=k) == 1 - KNeighborsClassifier(k).fit(Z, y).score(None, y)


def test_of_equally_near_points_the_first_ones_vote_and_of_equal_votes_the_first_class_wins():
    Z, y = np.array([[0.0], [2.0], [0.0], [2.0]]), np.array(["b", "a", "a", "b"])
    at = np.array([[1.0]])
    for k, winner in ((1, "b"), (2, "a"), (3, "a"), (4, "a"), (9, "a")):
        assert neighbour_accuracy(Z, y, at, np.array([winner]), min(k, 4)) == 1.0
    assert neighbour_error(Z, y, at, np.array(["z"]), 1) == 1.0  # a class that nobody knows


def test_numbers_of_any_size_and_type_are_the_same():
    Z, y = data(1)
    for made in (Z.astype(np.float32), np.asfortranarray(Z), Z[:, ::-1], Z + 0):
        want = KNeighborsClassifier(3).fit(made[:60], y[:60]).score(made[60:], y[60:])
        assert neighbour_accuracy(made[:60], y[:60], made[60:], y[60:]) == want


def brute(Z, y, Z_test, y_test, k):
    right = total = 0
    for z, label in zip(Z_test, y_test, strict=True):
        squares = np.square(Z - z).sum(axis=1)
        near, far = np.sort(squares[y == label])[:k], np.sort(squares[y != label])[:k]
        right += (near[:, None] < far).sum()
        total += len(near) * len(far)
    return right / total if total else np.nan


@pytest.mark.parametrize("k", [1, 4, 30])
def test_triplets_in_the_right_order_are_counted_one_by_one(k):
    for seed in range(10):
        Z, y = data(seed, n=50)
        Z = np.round(Z) if seed % 2 else Z  # ties are not right
        assert triplet_accuracy(Z[:35], y[:35], Z[35:], y[35:], k) == brute(Z[:35], y[:35], Z[35:], y[35:], k)


def test_triplets_that_are_not_there_count_for_nothing():
    Z, y = data(0, n=20)
    new = np.full(4, 99)
    assert np.isnan(triplet_accuracy(Z, y, Z[:4], new, 3))
    assert np.isnan(triplet_accuracy(Z, np.zeros(20), Z[:4], np.zeros(4), 3))
    both = np.concatenate([new, y[:4]])
    assert triplet_accuracy(Z, y, Z[[0, 1, 2, 3] * 2], both, 3) == brute(Z, y, Z[:4], y[:4], 3)


@pytest.mark.parametrize("scoring", ["accuracy"])
def test_a_cross_validation_scores_as_scikit_learn_does(scoring):
    Z, y = data(3, n=120)
    Z[:, 0] += 2 * (y == 3)
    model = ts.TripletMetricCV(3, ratios=4, cv=3, scoring=scoring).fit(Z, y)
    other = ts.TripletMetricCV(3, ratios=4, cv=3, scoring=lambda near, X, y: near.score(X, y)).fit(Z, y)
    assert np.array_equal(model.cv_scores_, other.cv_scores_, equal_nan=True)
