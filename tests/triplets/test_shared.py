"""One search for all parts gives what a search in each part gives."""

from __future__ import annotations

import numpy as np
import pytest

from triscreen._utils.threads import Threads
from triscreen.triplets import shared
from triscreen.triplets.neighbours import nearest
from triscreen.triplets.shared import SharedSearch

ONE = Threads(1)


def data(seed, kind):
    """Points on a grid or anywhere, some of them equal; classes of many sizes."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 90))
    X = rng.integers(0, 3, (n, 2)).astype(float) if kind == "ties" else rng.normal(size=(n, 3))
    if kind == "duplicates":
        X = X[rng.integers(0, max(1, n // 4), n)]
    if kind == "sorted":  # neighbours leave together
        X = np.sort(X, axis=0)
    y = np.minimum(rng.geometric(0.4, n) - 1, 4)
    return X, np.unique(y, return_inverse=True)[1], rng


def splits(rng, n):
    """Parts of points: at random, in a row, nearly all, few, in another order, with repetitions."""
    size = int(rng.integers(2, n + 1))
    some = rng.permutation(n)[:size]
    yield from (np.sort(some), some, rng.integers(0, n, n), np.arange(n))
    start = int(rng.integers(0, n))
    yield np.delete(np.arange(n), np.arange(start, min(n - 2, start + n // 5)))


@pytest.mark.parametrize("kinds", [(True, False), (True,)])
@pytest.mark.parametrize("kind", ["anywhere", "ties", "duplicates", "sorted"])
def test_every_part_has_the_neighbours_of_a_search_of_its_own(kind, kinds, monkeypatch):
    monkeypatch.setattr(shared, "_RARE", 0.9)  # so that most points that run out are searched for one by one
    for seed in range(40):
        X, codes, rng = data(seed, kind)
        k = int(rng.integers(1, 12))
        found = SharedSearch(X, codes, k, float(rng.uniform(0, 0.6)), ONE, kinds)
        for rows in splits(rng, len(X)):
            got = found.part(rows)
            wanted = nearest(X[rows], codes[rows], k, ONE, kinds)
            for mine, theirs in zip((got.same, got.other), wanted, strict=False):
                assert np.array_equal(mine[mine >= 0], theirs[theirs >= 0])
                assert np.array_equal((mine >= 0).sum(axis=1), (theirs >= 0).sum(axis=1))
            assert got.same.shape == wanted[0].shape  # which the identity of a checkpoint knows


def test_folds_cost_one_search_and_few_points_again(monkeypatch):
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(1000, 5)), np.arange(1000) % 3
    whole, again = [], []

    def watched(X, *arguments, **named):
        whole.append(len(X))
        return nearest(X, *arguments, **named)

    def asked(X, codes, k, threads, kinds, queries, *arguments, **named):
        again.append(len(queries))
        return search(X, codes, k, threads, kinds, queries, *arguments, **named)

    search = shared.search
    monkeypatch.setattr(shared, "nearest", watched)
    monkeypatch.setattr(shared, "search", asked)
    found = SharedSearch(X, codes, 5, 0.2, ONE)
    fold = rng.permutation(1000) % 5
    for number in range(5):
        found.part(np.flatnonzero(fold != number))
    found.part(np.arange(1000))
    assert whole == [1000]
    assert sum(again) < 150


def test_parts_that_leave_most_points_out_are_searched_by_themselves():
    assert shared._enough(5, 0.2) < 15
    assert shared._enough(5, 0.0) == 5
    assert shared._enough(5, 0.95) is None
