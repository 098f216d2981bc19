from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import triscreen as ts


def random_indices(rng, n, m):
    return np.array([rng.choice(n, 3, replace=False) for _ in range(m)])


@given(st.integers(0, 10**6), st.integers(1, 60))
def test_indices_come_back_in_the_order_given(seed, m):
    indices = random_indices(np.random.default_rng(seed), 8, m)
    T = ts.given_triplets(indices)
    assert np.array_equal(T.indices(), indices)
    assert np.array_equal(T.indices(m // 3, m // 2), indices[m // 3 : m // 2])


def test_pairs_are_shared_and_undirected():
    T = ts.given_triplets([[0, 1, 2], [1, 0, 2], [0, 1, 2]])
    assert (T.n_triplets, T.n_pairs) == (3, 3)
    assert set(zip(T.first.tolist(), T.second.tolist(), strict=True)) == {(0, 1), (0, 2), (1, 2)}


def test_bytes_per_triplet():
    indices = random_indices(np.random.default_rng(0), 20, 4000)
    plain, weighted = ts.given_triplets(indices), ts.given_triplets(indices, np.ones(4000))
    half = ts.given_triplets(indices[:2000])
    assert half.n_pairs == plain.n_pairs
    assert plain.nbytes - half.nbytes == 8 * 2000
    assert weighted.nbytes - plain.nbytes == 8 * 4000


def test_weights_are_copied():
    w = np.ones(2)
    T = ts.given_triplets([[0, 1, 2], [1, 0, 2]], w)
    w[:] = -1
    assert T.weights.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("indices", "weights", "words"),
    [
        ([[0, 0, 1]], None, r"indices\[0\] is \[0, 0, 1\]: i = j"),
        ([[0, 1, 2], [3, 1, 3]], None, r"indices\[1\] is \[3, 1, 3\]: i = l"),
        ([[0, -1, 2]], None, r"indices\[0\] is \[0, -1, 2\]: points are counted from 0"),
        ([[0, 1, 2**40]], None, r"that is more points than fit"),
        ([[0.5, 1, 2]], None, "whole numbers"),
        ([["a", "b", "c"]], None, "whole numbers"),
        ([[0, 1]], None, r"shape \(1, 2\)"),
        ([[0, 1, 2], [0, 1]], None, "not a rectangular array"),
        (np.zeros((0, 3), int), None, "empty"),
        ([[0, 1, 2]], [0.0], r"weights\[0\] is 0.0: weights must be positive"),
        ([[0, 1, 2]], [-1.0], "must be positive"),
        ([[0, 1, 2]], [np.nan], "must be positive and finite"),
        ([[0, 1, 2]], [1.0, 2.0], r"shape \(2,\)"),
        ([[0, 1, 2]], ["x"], "real numbers only"),
    ],
)
def test_bad_input_is_one_clear_sentence(indices, weights, words):
    with pytest.raises(ts.InputError, match=words) as caught:
        ts.given_triplets(indices, weights)
    assert "\n" not in str(caught.value)


def test_indices_beyond_x_are_refused():
    with pytest.raises(ts.InputError, match="indices go up to 7: X has 5 points"):
        ts.Problem(np.eye(5), ts.given_triplets([[0, 1, 7]]))


def test_the_same_point_on_both_sides_is_a_constant():
    """j = l: H = 0, loss 1 - gamma/2 whatever M is."""
    X = np.random.default_rng(0).normal(size=(4, 2))
    problem = ts.Problem(X, ts.given_triplets([[0, 1, 1], [0, 2, 3]]))
    alone = ts.Problem(X, ts.given_triplets([[0, 2, 3]]))
    assert problem.value(np.eye(2), 1.0) == pytest.approx(alone.value(np.eye(2), 1.0) + 0.975, abs=1e-14)


def test_a_huge_index_is_refused_without_allocating_for_it():
    T = ts.given_triplets([[0, 1, 2_000_000_000]])
    with pytest.raises(ts.InputError, match="indices go up to 2000000000: X has 5 points"):
        ts.Problem(np.eye(5), T)
