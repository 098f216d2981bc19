"""Points of float32, and of files that are mapped into memory, are searched as they are."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import triscreen as ts
from triscreen._utils import validation
from triscreen._utils.validation import as_points

MAKE = {
    "knn": lambda X, y: ts.knn_triplets(X, y, 3, n_jobs=1),
    "lmnn": lambda X, y: ts.all_triplets(X, y, 3, n_jobs=1),
}


@pytest.fixture
def mapped(tmp_path):
    """Points in a file, close to a space of a few dimensions, and their labels."""
    rng, y = np.random.default_rng(0), np.arange(6000) % 3
    X = np.memmap(tmp_path / "points", np.float32, "w+", shape=(6000, 600))
    X[:] = rng.normal(size=(6000, 4)) @ rng.normal(size=(4, 600)) + 0.01 * rng.normal(size=X.shape)
    X.flush()
    return np.memmap(tmp_path / "points", np.float32, "r", shape=X.shape), y


def peak(work):
    """Return the most bytes that were alive at a time."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", MAKE)
def test_a_mapped_file_is_not_copied_into_float64(mapped, kind):
    """It takes no more than an array of float64 that is there already, of which nobody makes another one."""
    X, y = mapped
    wide, made = np.array(X, dtype=np.float64), []
    MAKE[kind](X[:3000], y[:3000])  # what is compiled
    enough = peak(lambda: made.append(MAKE[kind](wide, y)))
    assert peak(lambda: made.append(MAKE[kind](X, y))) < enough + 0.1 * X.nbytes
    assert made[1].same_as(made[0])


def test_looking_at_points_takes_blocks_only(mapped):
    X, _ = mapped
    assert as_points(X, narrow=True).base is not None
    assert peak(lambda: as_points(X, narrow=True)) < 0.8 * X.nbytes
    assert peak(lambda: as_points(np.asfortranarray(X)[:, ::2], narrow=True)) < 2.5 * X.nbytes


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint16, bool, np.int32, np.float64, object])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_triplets_are_those_of_the_float64_copy(dtype, order):
    X = (100 * np.random.default_rng(1).normal(size=(300, 4))).astype(np.int8).astype(dtype, order=order)
    y = np.arange(300) % 3
    for make in MAKE.values():
        assert make(X, y).same_as(make(X.astype(np.float64), y))
    assert as_points(X, narrow=True).dtype == (np.float64 if dtype in (np.int32, np.float64, object) else np.float32)
    assert as_points(X).dtype == np.float64


def test_float32_that_no_float64_distinguishes_keeps_its_order():
    """Distances are those of float64 numbers, whatever the points are stored in."""
    rng = np.random.default_rng(2)
    X = (1e4 + rng.normal(size=(400, 6))).astype(np.float32)
    y = np.arange(400) % 2
    assert ts.knn_triplets(X, y, 5).same_as(ts.knn_triplets(X.astype(float), y, 5))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_found_in_any_block(value, monkeypatch):
    monkeypatch.setattr(validation, "_AT_ONCE", 7)
    for row, col in [(0, 0), (5, 2), (29, 1)]:
        X = np.ones((30, 3), dtype=np.float32)
        X[row, col] = value
        with pytest.raises(ts.InputError, match=rf"X\[{row}, {col}\] is {value}: X must be finite"):
            ts.knn_triplets(X, np.arange(30) % 2, 1)


def test_a_scale_beyond_float64s_lambda_is_refused_in_any_block(monkeypatch):
    monkeypatch.setattr(validation, "_AT_ONCE", 7)
    X = np.ones((30, 3))
    X[20, 1] = 1e80
    with pytest.raises(ts.InputError, match=r"X has a largest magnitude of 1e\+80"):
        ts.knn_triplets(X, np.arange(30) % 2, 1)
