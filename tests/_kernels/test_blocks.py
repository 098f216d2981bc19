"""Kernels that look at many triplets at once decide what one triplet at a time would decide."""

import numpy as np
import pytest

import triscreen as ts
from triscreen._utils.threads import Threads
from triscreen.problem.cones import make_cone
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


@pytest.mark.parametrize("seed", range(60))
def test_a_sphere_decides_what_it_decides_triplet_by_triplet(seed):
    rng = np.random.default_rng(seed)
    T = some_set(rng).over(rng.normal(size=(12, 3)) * rng.choice([0.3, 1.0]))
    values, errors = coarse(rng, T.n_pairs, rng.choice([0.5, 2.0, 5.0])), 1e-9 * rng.random(T.n_pairs)
    norms = np.empty(T.n_triplets)
    T.norms(make_cone("psd"), 0, T.n_triplets, norms)
    radius, gamma = rng.choice([0.0, 0.01, 0.1, 1.0]), 0.05
    zones = np.where(rng.random(T.n_triplets) < 0.3, rng.integers(1, 3, T.n_triplets), 0).astype(np.int8)
    positive, negative = numbers_of(T)
    margins, doubts = values[negative] - values[positive], errors[positive] + errors[negative] + radius * norms
    expected = np.where(margins - doubts > 1, 2, np.where(margins + doubts < 1 - gamma, 1, 0))
    counts = [int(((zones == 0) & (expected == zone)).sum()) for zone in (1, 2)]
    expected = np.where(zones > 0, zones, expected)
    before, whole = zones.copy(), np.full(T.n_pairs, 9, dtype=np.int8)
    assert T.decide(values, errors, norms, radius, zones, gamma, Threads(1), whole).tolist() == counts
    np.testing.assert_array_equal(zones, expected)
    fresh = before == 0
    assert (zones[fresh & (whole[positive] > 0)] == whole[positive][fresh & (whole[positive] > 0)]).all()


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_what_goes_is_decided_and_leaves_its_weights(seed, told):
    rng = np.random.default_rng(seed)
    T, gamma = some_set(rng), 0.05
    dist = coarse(rng, T.n_pairs, rng.choice([0.5, 2.0, 5.0]))
    positive, negative = numbers_of(T)
    margins = dist[negative] - dist[positive]
    zones = np.where(margins > 1, 2, np.where(margins < 1 - gamma, 1, 0)).astype(np.int8)
    zones[rng.random(T.n_triplets) < rng.choice([0.0, 0.02, 0.3])] = 0
    if rng.random() < 0.3 and T.n_triplets:
        zones[rng.integers(T.n_triplets)] = rng.integers(1, 3)  # one that perhaps strays
    whole = None
    if told:
        whole = np.zeros(T.n_pairs, dtype=np.int8)
        for p in np.unique(positive):
            whole[p] = zones[positive == p][0] if len(set(zones[positive == p])) == 1 else 0
    left = T.let_go(zones, dist, gamma, whole)
    used = np.zeros(T.n_pairs, dtype=bool)
    used[positive[zones == 0]] = used[negative[zones == 0]] = True
    stays = used[positive] & used[negative]
    np.testing.assert_array_equal(left.pairs, np.flatnonzero(used))
    np.testing.assert_array_equal(left.numbers(), np.flatnonzero(stays))
    np.testing.assert_array_equal(left.triplets.indices(), T.indices()[stays])
    linear, b = ~stays & (zones == 1), 1 - margins
    weights = np.bincount(negative[linear], minlength=T.n_pairs) - np.bincount(positive[linear], minlength=T.n_pairs)
    np.testing.assert_array_equal(left.weigh(), weights)
    assert left.linear == linear.sum()
    assert left.strays == bool((linear & (b / gamma < 1)).any() or (~stays & (zones == 2) & (b > 0)).any())
    norms = rng.random(T.n_triplets)
    for kept, before in zip(left.kept(zones, norms), (zones, norms), strict=True):
        np.testing.assert_array_equal(kept, before[stays])


def test_what_goes_is_the_same_on_any_number_of_threads():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(900, 5)), np.arange(900) % 3
    T = ts.knn_triplets(X, y, 30)
    assert len(T._chunks) > 2
    dist = 3 * rng.random(T.n_pairs)
    positive, negative = numbers_of(T)
    margins = dist[negative] - dist[positive]
    zones = np.where(margins > 1, 2, np.where(margins < 0.5, 1, 0)).astype(np.int8)
    zones[(rng.random(900) < 0.8)[T.first[positive]] & (zones == 0)] = 2  # whole anchors go, and some of theirs stray
    one, three = (T.let_go(zones, dist, 0.5, threads=Threads(n)) for n in (1, 3))
    np.testing.assert_array_equal(one.pairs, three.pairs)
    np.testing.assert_array_equal(one.weigh(), three.weigh())
    assert (one.linear, one.strays) == (three.linear, three.strays)
    assert one.strays
    assert 0 < one.linear < (zones == 1).sum()
    assert one.linear == one.weigh()[~T._is_positive].sum() == -one.weigh()[T._is_positive].sum()


@pytest.mark.parametrize("seed", range(40))
def test_a_sweep_adds_up_what_its_triplets_are_worth(seed):
    rng = np.random.default_rng(seed)
    T, smoothing = some_set(rng, longest=(9, 40)[seed % 2]), rng.choice([0.05, 1.0, 1e-6])
    T._is_long = False  # those have a kernel of their own
    dist = rng.choice([0.0, 1e4]) + coarse(rng, T.n_pairs, rng.choice([0.5, 2.0, 5.0]))
    positive, negative = numbers_of(T)
    b = 1 - (dist[negative] - dist[positive])
    a = np.clip(b * (1 / smoothing), 0, 1)
    sums, weights = T.sweep(dist, smoothing, Threads(1))
    assert sums.loss == pytest.approx((a * (b - 0.5 * smoothing * a)).sum(), rel=1e-13, abs=1e-13)
    assert sums.alpha == pytest.approx(a.sum(), rel=1e-13)
    assert sums.spread == pytest.approx((a * (1 - a)).sum(), rel=1e-13, abs=1e-13)
    expected = np.bincount(negative, a, T.n_pairs) - np.bincount(positive, a, T.n_pairs)
    np.testing.assert_allclose(weights, expected, rtol=1e-13, atol=1e-13)
