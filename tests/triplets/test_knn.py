from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import triscreen as ts
from oracles import brute_knn


def rng_data(seed, n=40, d=3, classes=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(0, classes, n)


def test_a_large_k_is_exact_too():
    X, y = rng_data(3, n=200, d=2, classes=2)
    X = X.round(1)
    assert np.array_equal(ts.knn_triplets(X, y, 70).indices(), brute_knn(X, y, 70))


@pytest.mark.parametrize("k", [1, 3, 7])
@pytest.mark.parametrize("seed", range(3))
def test_the_triplets_are_those_of_brute_force(seed, k):
    X, y = rng_data(seed)
    assert np.array_equal(ts.knn_triplets(X, y, k).indices(), brute_knn(X, y, k))


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(2, 4))
def test_ties_go_to_the_smaller_index(seed, k, values):
    """Points on a small integer grid: nearly every distance is tied."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, values, (30, 3)), rng.integers(0, 3, 30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.SmallClassWarning)
        T = ts.knn_triplets(X, y, k)
    assert np.array_equal(T.indices(), brute_knn(X, y, k))


def test_ties_are_exact_far_from_the_origin():
    """An offset of 1e6 and a mean that is no float: the expanded distances are off, the choice is not."""
    rng = np.random.default_rng(5)
    X, y = rng.integers(0, 3, (60, 4)) + 1e6, rng.integers(0, 2, 60)
    X[0] -= 0.1
    assert np.array_equal(ts.knn_triplets(X, y, 5).indices(), brute_knn(X, y, 5))


def test_neighbours_in_many_cells_are_the_same(monkeypatch):
    X, y = rng_data(1, n=400)
    whole = ts.knn_triplets(X, y, 4)
    monkeypatch.setattr("triscreen.triplets.neighbours.cell_size", lambda axes: 16)
    assert np.array_equal(ts.knn_triplets(X, y, 4, n_jobs=2).indices(), whole.indices())


def test_k_none_lists_all():
    X, y = rng_data(2, n=15)
    got = {tuple(t) for t in ts.knn_triplets(X, y, None).indices().tolist()}
    everyone = range(15)
    want = {(i, j, m) for i in everyone for j in everyone for m in everyone if i != j and y[i] == y[j] and y[i] != y[m]}
    assert got == want
    assert ts.knn_triplets(X, y, None).n_triplets == len(want)


def test_small_classes_give_what_they_have_and_are_named_once():
    X, y = rng_data(3, n=30, classes=2)
    y = np.array([["a", "b"][c] for c in y], dtype=object)
    y[:3], y[3] = "tiny", "alone"
    with pytest.warns(ts.SmallClassWarning) as caught:
        T = ts.knn_triplets(X, y, 5)
    assert len(caught) == 1
    assert "'tiny' (3)" in str(caught[0].message)
    assert "'alone'" in str(caught[0].message)
    indices = T.indices()
    assert np.array_equal(indices, brute_knn(X, y, 5))
    assert 3 not in indices[:, 0]
    assert 3 not in indices[:, 1]


def test_a_single_point_remains_a_negative():
    with pytest.warns(ts.SmallClassWarning):
        T = ts.knn_triplets([[0.0], [1.0], [0.4]], ["a", "a", "b"], 1)
    assert T.indices().tolist() == [[0, 1, 2], [1, 0, 2]]


def test_many_small_classes_make_a_short_warning():
    rng = np.random.default_rng(0)
    with pytest.warns(ts.SmallClassWarning, match="and 92 more"):
        ts.knn_triplets(rng.normal(size=(200, 2)), np.repeat(np.arange(100), 2), 3)


def test_classes_of_one_point_each_are_refused():
    with pytest.raises(ts.InputError, match="5 classes of one point each"):
        ts.knn_triplets(np.eye(5), np.arange(5), 2)


def test_too_many_points_for_listing_all_are_refused_before_work():
    with pytest.raises(ts.InputError, match="k=None for 50000 points"):
        ts.knn_triplets(np.zeros((50_000, 1)), np.arange(50_000) % 2, None)


def test_any_part_of_the_indices_can_be_asked_for():
    X, y = rng_data(4)
    T = ts.knn_triplets(X, y, 3)
    everything = T.indices()
    for start, stop in [(0, 1), (5, 7), (8, 40), (100, None), (T.n_triplets - 1, None), (3, 3)]:
        assert np.array_equal(T.indices(start, stop), everything[start:stop])


def test_the_set_costs_nothing_per_triplet():
    X, y = rng_data(6, n=500)
    few, many = ts.knn_triplets(X, y, 5), ts.knn_triplets(X, y, 50)
    per_pair = (many.nbytes - few.nbytes) / (many.n_pairs - few.n_pairs)
    assert per_pair == 8
    assert many.n_triplets == 100 * few.n_triplets


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float32, np.float16, bool])
def test_small_types_do_not_overflow(dtype):
    X = np.random.default_rng(0).integers(0, 120, (30, 2)).astype(dtype)
    y = np.arange(30) % 2
    assert np.array_equal(ts.knn_triplets(X, y, 3).indices(), brute_knn(X.astype(float), y, 3))


@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_smaller_set_has_the_kept_triplets_and_says_which_they_are(seed, share):
    X, y = rng_data(seed)
    T = ts.knn_triplets(X, y, 4)
    whole, keep = T.indices(), np.random.default_rng(seed).random(T.n_triplets) < share
    left = T.let_go(np.where(keep, 0, 2).astype(np.int8), np.zeros(T.n_pairs), 1.0)
    smaller, pairs, numbers = left.triplets, left.pairs, left.numbers()
    near = {(i, j) for i, j, _ in whole[keep]}
    far = {(i, k) for i, _, k in whole[keep]}
    stays = [t for t, (i, j, k) in enumerate(whole) if (i, j) in near and (i, k) in far]
    assert numbers.tolist() == stays
    assert np.array_equal(smaller.indices(), whole[numbers])
    assert set(np.flatnonzero(keep)) <= set(stays)
    assert {(T.first[p], T.second[p]) for p in pairs} == near | far
