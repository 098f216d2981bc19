"""Neighbours looked for again, in exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

import triscreen as ts
from triscreen.verification import check_neighbours, neighbours

pytestmark = pytest.mark.filterwarnings("ignore::triscreen.SmallClassWarning")


def some_points(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(8, 40)), int(rng.integers(1, 5))
    X, y = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-8, 9), rng.integers(0, 3, n)
    y[:4] = [0, 0, 1, 1]
    if seed % 3 == 0:
        X = np.round(2 * X / np.abs(X).max())  # ties
    if seed % 4 == 0:
        X = X[rng.integers(0, n, n)]
    return X, y


@pytest.mark.parametrize("seed", range(12))
def test_sets_of_neighbours_are_what_they_say(seed):
    X, y = some_points(seed)
    assert check_neighbours(X, y, ts.knn_triplets(X, y, 3), 3, 3).rounded == 0
    check_neighbours(X, y, ts.knn_triplets(X, y, None), None, None)
    check_neighbours(X, y, ts.all_triplets(X, y), None, None)
    found = check_neighbours(X, y, ts.all_triplets(X, y, 2), 2, None)
    assert found.anchors <= len(X)
    assert found.exact > 0 or seed % 3


def test_other_sets_are_refused():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    T = ts.knn_triplets(X, y, 2)
    with pytest.raises(ts.InputError, match="triplets have 2 neighbours of point 0: 3 of its group are needed"):
        check_neighbours(X, y, T, 3, 2)
    with pytest.raises(ts.InputError, match=r"have a neighbour of point .* at the distance .*, and leave out one at"):
        check_neighbours(X + 0.3 * rng.normal(size=X.shape), y, T, 2, 2)
    rows = T.indices()
    swapped = rows.copy()
    swapped[:, 1:] = swapped[:, :0:-1]
    with pytest.raises(ts.InputError, match="of its group are needed"):
        check_neighbours(X, y, ts.given_triplets(swapped), 2, 2)
    with pytest.raises(ts.InputError, match=r"triplets are 81: the neighbours of 20 anchors make 80"):
        check_neighbours(X, y, ts.given_triplets(np.vstack([rows, rows[:1]])), 2, 2)


@pytest.mark.parametrize("k", [2, None])
def test_a_triplet_twice_and_another_one_missing_is_refused(k):
    """Positives, negatives and the number of triplets are all right then: only the pairs of them are not."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(12, 2)), np.arange(12) % 2
    rows = ts.knn_triplets(X, y, k).indices()
    own = np.flatnonzero(rows[:, 0] == 3)
    rows[own[1]] = rows[own[0]]
    rows[own[-2]] = rows[own[-1]]  # with k=2 both positives and both negatives are still there
    with pytest.raises(ts.InputError, match="2 of their rows twice, and leave out as many"):
        check_neighbours(X, y, ts.given_triplets(rows), k, k)
    shuffled = rng.permutation(ts.knn_triplets(X, y, k).indices())
    assert check_neighbours(X, y, ts.given_triplets(shuffled), k, k).anchors == 12


def test_distances_that_rounding_cannot_tell_apart():
    """The nearer of two by less than an ulp of the squares: exact arithmetic tells, and counts what floats chose."""
    X = np.array([[0.0, 0.0], [1.0, 2.0**-30], [1.0, 2.0**-31], [-5.0, 3.0], [-5.0, 1.0]])
    y = np.array([0, 0, 0, 1, 1])
    T = ts.knn_triplets(X, y, 1)
    found = check_neighbours(X, y, T, 1, 1)
    assert (found.exact, found.rounded) == (1, 1)  # the smaller index was taken
    nearer = T.indices()
    nearer[nearer[:, 0] == 0, 1] = 2
    assert check_neighbours(X, y, ts.given_triplets(nearer), 1, 1).rounded == 0


def test_many_points_are_refused(monkeypatch):
    X, y = some_points(1)
    monkeypatch.setattr(neighbours, "MOST", 7)
    with pytest.raises(ts.InputError, match="neighbours are looked at again for at most 7"):
        check_neighbours(X, y, ts.knn_triplets(X, y, 1), 1, 1)
    monkeypatch.undo()
    monkeypatch.setattr(neighbours, "MOST_TRIPLETS", 3)
    with pytest.raises(ts.InputError, match="they are looked at one by one, at most 3"):
        check_neighbours(X, y, ts.knn_triplets(X, y, 1), 1, 1)
