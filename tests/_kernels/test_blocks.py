"""Kernels that look at many triplets at once decide what one triplet at a time would decide."""

import numpy as np
import pytest

import triscreen as ts
from triscreen._utils.threads import Threads
from triscreen.triplets.blocks import BlockTriplets


def some_set(rng, longest=9):
    """Blocks of all sizes, also empty ones."""
    positives, negatives = rng.integers(0, longest, size=(2, 12))
    positives[rng.random(12) < 0.2] = 0
    negatives[positives == 0] = 0
    second = rng.integers(0, 12, int((positives + negatives).sum())).astype(np.int32)
    return BlockTriplets(second, positives, negatives)


def numbers_of(T):
    return T.pair_numbers(np.ones(T.n_triplets, dtype=bool))


def coarse(rng, n, scale):
    """Numbers of which many are equal, so that margins are often at a limit."""
    return np.round(scale * rng.random(n), 1) if rng.random() < 0.5 else scale * rng.random(n)


@pytest.mark.parametrize("seed", range(60))
def test_a_tube_selects_the_pairs_of_the_triplets_that_it_does_not_decide(seed):
    rng = np.random.default_rng(seed)
    T = some_set(rng)
    scale = rng.choice([0.5, 2.0, 5.0])
    first = coarse(rng, T.n_pairs, scale)
    second = first + coarse(rng, T.n_pairs, rng.choice([0.0, 0.1, 1.0]))
    squares = coarse(rng, T.n_pairs, 1.0)
    radius, error = rng.choice([0.0, 0.01, 0.3, np.inf]), rng.choice([0.0, 1e-9])
    low, both = rng.choice([0.95, 0.5]), bool(rng.random() < 0.7)
    zones = rng.integers(0, 3, T.n_triplets).astype(np.int8) if rng.random() < 0.4 else None
    used = T.undecided_in((first, second), squares, radius, error, low, both, zones, Threads(1))
    positive, negative = numbers_of(T)
    one, two = first[negative] - first[positive], second[negative] - second[positive]
    above, below = np.minimum(one, two) - 1.0 - error, low - np.maximum(one, two) - error
    away = np.maximum(above, below) if both else above
    with np.errstate(invalid="ignore"):
        decided = (away > 0) & (away * away > radius * radius * (squares[negative] + squares[positive]))
    if zones is not None:
        decided |= zones > 0
    expected = np.zeros(T.n_pairs, dtype=bool)
    expected[positive[~decided]] = expected[negative[~decided]] = True
    np.testing.assert_array_equal(used, expected)


def test_a_tube_selects_the_same_pairs_on_any_number_of_threads():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 5)), np.arange(300) % 3
    T = ts.knn_triplets(X, y, 12)
    dist, squares = 3 * rng.random(T.n_pairs), rng.random(T.n_pairs)
    arguments = (dist, dist + 0.1), squares, 0.2, 1e-12, 0.95, True, None
    np.testing.assert_array_equal(T.undecided_in(*arguments, Threads(1)), T.undecided_in(*arguments, Threads(3)))
