"""Long blocks are swept by order, with the result of looking at every triplet."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import triscreen as ts
from triscreen._kernels.blocks import sweep_blocks
from triscreen._kernels.long_blocks import put_in_order
from triscreen._utils.threads import Threads
from triscreen.triplets.blocks import BlockTriplets


def long_blocks(seed, n=140):
    """All triplets of some points, with anchors of few and of many positives, and one that is none."""
    rng = np.random.default_rng(seed)
    y = rng.choice(4, n, p=[0.1, 0.2, 0.3, 0.4])
    y[0] = 9
    with pytest.warns(ts.SmallClassWarning):
        T = ts.knn_triplets(rng.normal(size=(n, 2)), y, None)
    assert T._is_long
    return T, rng


def one_by_one(T, dist, smoothing):
    weights, sums = np.empty(T.n_pairs), np.zeros((2, 3))
    sweep_blocks(dist, T._ptr, T._split, smoothing, weights, sums, 0, T.n_points)
    return sums.sum(axis=0), weights


@pytest.mark.parametrize("smoothing", [1.0, 0.05, 1e-6, 4.0**-20])
@pytest.mark.parametrize("kind", ["spread", "near", "far", "ties", "zero", "large", "outlier"])
def test_the_same_as_one_by_one(kind, smoothing):
    T, rng = long_blocks(1)
    for _ in range(3):  # the later ones begin with an order
        dist = {
            "spread": lambda: rng.exponential(1.0, T.n_pairs),
            "near": lambda: rng.uniform(0, 0.01, T.n_pairs),
            "far": lambda: rng.uniform(0, 1000.0, T.n_pairs),
            "ties": lambda: rng.integers(0, 4, T.n_pairs) * 0.5,
            "zero": lambda: np.zeros(T.n_pairs),
            "large": lambda: 1e6 + rng.uniform(0, 3, T.n_pairs),
            "outlier": lambda: np.where(np.arange(T.n_pairs) % 97 == 0, 1e9, rng.uniform(0, 2, T.n_pairs)),
        }[kind]()
        sums, weights = T.sweep(dist, smoothing, Threads(1))
        wanted, wanted_weights = one_by_one(T, dist, smoothing)
        size = 1e-13 * (1 + np.abs(dist).max()) * T.n_triplets
        assert [sums.loss, sums.alpha, sums.spread] == pytest.approx(wanted, rel=1e-12, abs=size / smoothing)
        most = T.most_triplets_at_a_pair()
        assert np.allclose(weights, wanted_weights, rtol=1e-12, atol=1e-15 * (1 + dist.max()) * most / smoothing)
        assert weights.sum() == pytest.approx(0, abs=1e-9 * T.n_triplets)  # each alpha counts for both of its pairs


def test_what_was_swept_before_makes_no_difference():
    T, rng = long_blocks(2)
    dist = rng.integers(0, 40, T.n_pairs) * 0.1  # many ties
    first = T.sweep(dist, 0.05, Threads(1))
    for _ in range(3):
        T.sweep(rng.exponential(1.0, T.n_pairs), 0.05, Threads(2))
        again = T.sweep(dist, 0.05, Threads(2))
        assert again[0] == first[0]
        assert np.array_equal(again[1], first[1])


def test_threads_that_sweep_at_once_do_not_meet():
    T, rng = long_blocks(3)
    dists = [rng.exponential(size, T.n_pairs) for size in (0.5, 1.0, 2.0)]
    wanted = [T.sweep(dist, 0.05, Threads(1))[1] for dist in dists]
    wrong = []

    def work(k):
        found = (T.sweep(dists[k], 0.05, Threads(1))[1] for _ in range(40))
        wrong.extend(k for weights in found if not np.array_equal(weights, wanted[k]))

    workers = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong
    for order in T._orders:
        for begin, end in zip(T._ptr[:-1], T._split, strict=True):
            assert sorted(order[begin:end]) == list(range(end - begin))


def test_a_smaller_set_knows_the_order_of_the_larger_one():
    T, rng = long_blocks(4)
    dist = rng.uniform(0.0, 0.9, T.n_pairs)  # farther ones are not put in order
    T.sweep(dist, 0.05, Threads(1))
    used = rng.random(T.n_pairs) < 0.9
    less, pairs = T.restrict(used)
    assert isinstance(less, BlockTriplets)
    (order,) = less._orders
    keys = dist[pairs]
    for begin, middle, end in zip(less._ptr[:-1], less._split, less._ptr[1:], strict=True):
        assert (np.diff(keys[begin:middle][order[begin:middle]]) >= 0).all()
        assert (np.diff(keys[middle:end][order[middle:end]]) >= 0).all()
    assert np.array_equal(less.sweep(keys, 0.05, Threads(1))[1], one_by_one(less, keys, 0.05)[1]) or np.allclose(
        less.sweep(keys, 0.05, Threads(1))[1], one_by_one(less, keys, 0.05)[1], rtol=1e-12
    )


@pytest.mark.parametrize("kind", ["sorted", "nearly", "backwards", "random", "equal"])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 50, 1000])
def test_order(count, kind):
    rng = np.random.default_rng(count)
    some = rng.normal(size=count)
    keys = {"sorted": np.arange(count), "backwards": -np.arange(count), "equal": np.zeros(count), "random": some,
            "nearly": np.arange(count) + 2 * some}[kind]  # fmt: skip
    found, order = keys.astype(float), np.arange(count, dtype=np.int32)
    put_in_order(found, order)
    assert (found == np.sort(keys)).all()
    assert (keys[order] == found).all()
