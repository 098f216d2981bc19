"""Estimates before any search: the size of the triplets, and a look at a few cells."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import triscreen as ts
from triscreen.triplets import labelled_triplets, neighbours, sketch
from triscreen.triplets.sketch import search_seconds, sketched_triplets

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("kind", ["knn", "lmnn", "all"])
@pytest.mark.parametrize("seed", range(6))
def test_a_sketch_is_as_large_as_the_triplets(kind, seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(10, 200)), int(rng.integers(1, 30))
    X, y = rng.normal(size=(n, 3)), np.minimum(rng.geometric(0.4, n), 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.SmallClassWarning)
        made, wanted = sketched_triplets(X, y, kind, k), labelled_triplets(X, y, kind, k)
    assert type(made) is type(wanted)
    assert (made.n_triplets, made.n_pairs, made.nbytes) == (wanted.n_triplets, wanted.n_pairs, wanted.nbytes)
    rows = made.indices()
    assert (y[rows[:, 0]] == y[rows[:, 1]]).all()
    assert (y[rows[:, 0]] != y[rows[:, 2]]).all()
    one, other = (ts.Problem(X, T, memory_budget=1e9)._bytes(ts.Problem(X, T).cone, T, 1) for T in (made, wanted))
    assert one == other


def test_a_sketch_names_small_classes_and_refuses_what_has_no_triplet():
    X = RNG.normal(size=(30, 2))
    with pytest.warns(ts.SmallClassWarning, match="class True"):
        sketched_triplets(X, np.arange(30) < 3, "knn", 4)
    with pytest.raises(ts.InputError, match="30 classes of one point each"):
        sketched_triplets(X, np.arange(30), "lmnn", 4)


@pytest.fixture
def asked(monkeypatch):
    """Many cells, and no patience; return (cells that have asked, all cells) of every search."""
    found, run, ask = [], neighbours._Search.run, neighbours._Search._ask

    def watched(self, threads, progress=None):
        found.append([0, len(self.asking.first)])
        return run(self, threads, progress)

    def count(self, cell):
        found[-1][0] += 1
        ask(self, cell)

    monkeypatch.setattr(neighbours._Search, "run", watched)
    monkeypatch.setattr(neighbours._Search, "_ask", count)
    monkeypatch.setattr(neighbours, "cell_size", lambda axes: 16)
    monkeypatch.setattr(neighbours, "_FEW", 0)
    monkeypatch.setattr(sketch, "_PATIENCE", 1e-9)
    monkeypatch.setattr(sketch, "_WARM", 64)
    return found


def test_a_look_lets_a_few_cells_ask(asked):
    X, y = RNG.normal(size=(4000, 3)), np.arange(4000) % 3
    assert search_seconds(X, y, 5, n_jobs=2) > 0
    warm, look = asked
    assert warm[1] <= 8
    assert look[0] == 8 < look[1] / 20


def test_of_very_many_points_a_part_is_looked_at_and_a_half_of_it(asked, monkeypatch):
    sizes, search = [], sketch.search

    def watched(X, *arguments, **named):
        sizes.append(len(X))
        return search(X, *arguments, **named)

    monkeypatch.setattr(sketch, "search", watched)
    monkeypatch.setattr(sketch, "_NUMBERS", 3000)
    X, y = RNG.normal(size=(4000, 3)), np.arange(4000) % 3
    assert search_seconds(X, y, 5, n_jobs=1) > 0
    assert sizes == [64, 500, 1000]


def test_a_short_search_is_timed_as_a_whole():
    X, y = RNG.normal(size=(500, 3)), np.arange(500) % 3
    assert 0 < search_seconds(X, y, 5) < 5
