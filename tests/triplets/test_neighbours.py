"""The search for neighbours against plain loops: exact arithmetic where there is one, float64 in order elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.datasets import Missing, load, raw

from triscreen._utils.threads import Threads, deadline
from triscreen.errors import OutOfTime
from triscreen.triplets import _positions
from triscreen.triplets.neighbours import k_nearest, nearest, search


def plain_squares(X, Y):
    """Squared distances, feature by feature: each entry is the plain float64 loop."""
    X, Y = np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64)
    total = np.zeros((len(X), len(Y)))
    for x, y in zip(X.T, Y.T, strict=True):
        apart = x[:, None] - y
        total += apart * apart
    return total


def first_k(squares, wanted, k):
    """Numbers and values of the k smallest by (value, number) among those wanted; -1 and infinity where they end."""
    squares = np.where(wanted, squares, np.inf)
    order = np.argsort(squares, axis=1, kind="stable")[:, :k]
    values = np.take_along_axis(squares, order, axis=1)
    return np.where(np.isfinite(values), order, -1), values


def plain_nearest(X, y, k, squares=None):
    squares = plain_squares(X, X) if squares is None else squares
    same, me = y[:, None] == y, np.eye(len(y), dtype=bool)
    widths = min(k, np.bincount(y).max() - 1), min(k, len(y) - 1)
    return [first_k(squares, wanted, w)[0] for wanted, w in zip((same & ~me, ~same), widths, strict=True)]


def same_lists(got, want):
    return all(np.array_equal(a, b) for a, b in zip(got, want, strict=True))


def use_cells(monkeypatch, size):
    """Let cells have so many points; None: all pairs are measured, without cells."""
    monkeypatch.setattr("triscreen.triplets.neighbours.cell_size", lambda axes: size)
    monkeypatch.setattr("triscreen.triplets.neighbours._FEW", 0 if size else np.inf)


def use_axes(monkeypatch, cut):
    """Let positions have so many axes, whatever it costs."""
    for name, value in {"_MANY": 1, "_SAMPLE": 64, "_ASKING": 32, "_AXES": (cut,), "_AXIS": 1e9}.items():
        monkeypatch.setattr(_positions, name, value)


def labels(rng, n, classes):
    return np.unique(rng.integers(0, classes, n), return_inverse=True)[1]


# -- where float64 is exact ---------------------------------------------------------------------


def whole_squares(X):
    X = X.astype(object)
    return np.array([[sum((a - b) ** 2 for a, b in zip(x, z, strict=True)) for z in X] for x in X], dtype=np.float64)


@pytest.mark.parametrize("cut", [None, 1])
@pytest.mark.parametrize("size", [4, 512, None])
@pytest.mark.parametrize(("high", "dim", "k"), [(2, 1, 3), (3, 2, 5), (2, 6, 4), (50, 3, 7), (1_000_000, 2, 4)])
def test_whole_numbers_are_exact_with_all_their_ties(monkeypatch, high, dim, k, size, cut):
    use_cells(monkeypatch, size)
    if cut:
        use_axes(monkeypatch, cut)
    rng = np.random.default_rng(high + dim)
    X, y = rng.integers(0, high, (90, dim)), labels(rng, 90, 3)
    assert same_lists(nearest(X, y, k, Threads(1)), plain_nearest(X, y, k, whole_squares(X)))


def test_equal_points_are_neighbours_by_number(monkeypatch):
    use_cells(monkeypatch, 8)
    y = labels(np.random.default_rng(0), 200, 4)
    assert same_lists(nearest(np.full((200, 3), 0.1), y, 5, Threads(1)), plain_nearest(np.zeros((200, 1)), y, 5))


@pytest.mark.parametrize("size", [4, None])
def test_a_class_of_one_point_and_k_beyond_a_class(monkeypatch, size):
    use_cells(monkeypatch, size)
    X, y = np.arange(12.0)[:, None] ** 2, np.array([0] * 8 + [1] * 3 + [2])
    for k in (1, 2, 5, 11, 100):
        assert same_lists(nearest(X, y, k, Threads(1)), plain_nearest(X, y, k))


@pytest.mark.parametrize("size", [128, None])
@pytest.mark.parametrize("k", [30, 32, 33, 100, 250])
def test_long_lists(monkeypatch, k, size):
    use_cells(monkeypatch, size)
    rng = np.random.default_rng(k)
    X, y = rng.integers(0, 30, (400, 2)), labels(rng, 400, 2)
    assert same_lists(nearest(X, y, k, Threads(1)), plain_nearest(X, y, k))


def test_hundreds_of_small_classes_share_cells(monkeypatch):
    use_cells(monkeypatch, 128)
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(900, 3)).round(1), labels(rng, 900, 400)
    assert same_lists(nearest(X, y, 6, Threads(2)), plain_nearest(X, y, 6))


# -- against the plain float64 loop ---------------------------------------------------------------------


def clusters(rng, n, d):
    """Tight clusters far away from each other, and from the origin."""
    return rng.integers(0, 4, (n, 1)) * 1e5 + 1e-4 * rng.normal(size=(n, d))


def outlier(rng, n, d):
    X = rng.normal(size=(n, d))
    X[n // 2] = 1e9
    return X


def nearly_equal(rng, n, d):
    """A point in the middle of a sphere: distances that differ in their last bits only."""
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X[0] = 0
    return X + 3


def duplicates_but_a_bit(rng, n, d):
    """Copies of few points, some with one last bit changed."""
    X = rng.normal(size=(5, d))[rng.integers(0, 5, n)]
    change = rng.random(n) < 0.3
    X[change, 0] = np.nextafter(X[change, 0], np.inf)
    return X


def nested(rng, n, d):
    """Clusters within clusters, over twenty orders of magnitude."""
    return sum(10.0 ** (-4 * level) * rng.integers(-1, 2, (n, d)) for level in range(6))


CASES = {
    "plain": lambda rng, n, d: rng.normal(size=(n, d)),
    "offset 1e6": lambda rng, n, d: rng.normal(size=(n, d)) + 1e6,
    "offset 1e12": lambda rng, n, d: rng.normal(size=(n, d)) - 1e12,
    "1e-8": lambda rng, n, d: rng.normal(size=(n, d)) * 1e-8,
    "1e8": lambda rng, n, d: rng.normal(size=(n, d)) * 1e8,
    "1e-60": lambda rng, n, d: rng.normal(size=(n, d)) * 1e-60,
    "1e60": lambda rng, n, d: rng.normal(size=(n, d)) * 1e60,
    "subnormal": lambda rng, n, d: rng.normal(size=(n, d)) * 3e-162,
    "features from 1e-170 to 1": lambda rng, n, d: rng.normal(size=(n, d)) * np.logspace(-170, 0, d)[::-1],
    "features from 1e-8 to 1e8": lambda rng, n, d: rng.normal(size=(n, d)) * np.logspace(-8, 8, d),
    "float32": lambda rng, n, d: rng.normal(size=(n, d)).astype(np.float32),
    "float32, offset": lambda rng, n, d: (rng.normal(size=(n, d)) + 1e5).astype(np.float32),
    "float16": lambda rng, n, d: rng.normal(size=(n, d)).astype(np.float16),
    "int8": lambda rng, n, d: rng.integers(-128, 128, (n, d)).astype(np.int8),
    "bool": lambda rng, n, d: rng.random((n, d)) < 0.3,
    "columns": lambda rng, n, d: np.asfortranarray(rng.normal(size=(n, d))),
    "clusters": clusters,
    "outlier": outlier,
    "nearly equal": nearly_equal,
    "duplicates but a bit": duplicates_but_a_bit,
    "nested": nested,
}


@pytest.mark.parametrize("cut", [None, 2])
@pytest.mark.parametrize(("n", "d", "size"), [(500, 3, 32), (260, 40, 512), (130, 200, 64), (200, 7, None)])
@pytest.mark.parametrize("case", CASES)
def test_neighbours_are_those_of_the_plain_loop(monkeypatch, case, n, d, size, cut):
    use_cells(monkeypatch, size)
    if cut:
        use_axes(monkeypatch, cut)
    rng = np.random.default_rng(n + d)
    X, y = CASES[case](rng, n, d), labels(rng, n, 3)
    assert same_lists(nearest(X, y, 5, Threads(1)), plain_nearest(X, y, 5))


def test_a_turned_frame_is_no_farther_apart_than_the_points():
    """|q(z) - q(w)| <= |z - w| with what positions may be off by, also where nothing is left beside the axes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 60)) * 0.7 ** np.arange(60)
    X[:50, 8:] = X[:50, 8:].mean(axis=0)
    frame = _positions.Frame(X)
    frame.turn(np.linalg.qr(rng.normal(size=(60, 24)))[0], 8)
    true = np.sqrt(plain_squares(X, X)) * frame.scale
    narrow, wide, off = frame.put(X)
    for positions in (narrow, wide):
        apart = np.sqrt(plain_squares(positions, positions))
        assert (apart <= true * (1 + 1e-12) + off[:, None] + off).all()


@pytest.mark.parametrize("cut", [None, 4])
def test_the_result_depends_neither_on_threads_nor_on_cells(monkeypatch, cut):
    if cut:
        use_axes(monkeypatch, cut)
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(1500, 12)).round(1), labels(rng, 1500, 3)
    want = nearest(X, y, 7, Threads(1))
    for size in (5, 64, 2000, None):
        use_cells(monkeypatch, size)
        for n_jobs in (1, 2, 5):
            assert same_lists(nearest(X, y, 7, Threads(n_jobs)), want)


def test_points_that_are_too_large_to_be_copied(monkeypatch):
    use_cells(monkeypatch, 128)
    monkeypatch.setattr("triscreen.triplets._cells._COPY", 0)
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(300, 4)), labels(rng, 300, 2)
    assert same_lists(nearest(X, y, 5, Threads(1)), plain_nearest(X, y, 5))


# -- real data ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "n", "k"),
    [("wine", 178, 7), ("segment", 1200, 20), ("digits", 1797, 10), ("phishing", 1500, 7), ("covtype", 1500, 3)],
)
def test_real_points(name, n, k):
    try:
        X, y = load(name, points=n)
    except Missing as missing:
        pytest.skip(str(missing))
    assert same_lists(nearest(X, y, k, Threads(2)), plain_nearest(X, y, k))


def test_handwritten_digits_by_their_principal_axes():
    """Whole numbers, so that a product gives the exact squares."""
    try:
        X, y = raw("mnist")
    except Missing as missing:
        pytest.skip(str(missing))
    X, y = X[:3000].astype(np.float64), np.unique(y[:3000], return_inverse=True)[1]
    frame = _positions.Frame(X)
    _positions.choose_axes(frame, X, y, 5)
    assert frame.n_axes < 200
    lengths = (X**2).sum(axis=1)
    assert same_lists(nearest(X, y, 5, Threads(2)), plain_nearest(X, y, 5, lengths[:, None] + lengths - 2 * X @ X.T))


# -- other ways to ask ---------------------------------------------------------------------


@pytest.mark.parametrize("size", [128, None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "asking", "k"), [(1, 5, 3), (40, 1, 3), (700, 300, 9)])
def test_queries_and_squared_distances(monkeypatch, dtype, n, asking, k, size):
    use_cells(monkeypatch, size)
    rng = np.random.default_rng(n)
    X, Q = rng.normal(size=(n, 6)).round(1).astype(dtype), rng.normal(size=(asking, 6)).round(1).astype(dtype)
    numbers, squares = k_nearest(X, k, Threads(2), Q)
    want = first_k(plain_squares(Q, X), True, min(k, n))
    assert np.array_equal(numbers, want[0])
    assert np.array_equal(squares, want[1])


@pytest.mark.parametrize("size", [16, None])
def test_a_point_is_not_its_own_neighbour(monkeypatch, size):
    use_cells(monkeypatch, size)
    X = np.repeat(np.random.default_rng(0).normal(size=(60, 3)), 2, axis=0)
    numbers, squares = k_nearest(X, 2, Threads(1))
    want = first_k(plain_squares(X, X), ~np.eye(120, dtype=bool), 2)
    assert np.array_equal(numbers, want[0])
    assert np.array_equal(squares, want[1])


@pytest.mark.parametrize("size", [64, None])
def test_queries_with_classes_some_of_which_no_point_has(monkeypatch, size):
    use_cells(monkeypatch, size)
    rng = np.random.default_rng(5)
    X, Q = rng.normal(size=(300, 4)), rng.normal(size=(80, 4))
    codes, asking = 2 * rng.integers(0, 3, 300), rng.integers(0, 8, 80)
    found = search(X, codes, 6, Threads(1), (False, True), Q, asking)
    same = asking[:, None] == codes
    for (numbers, squares), wanted in zip(found, (~same, same), strict=True):
        want = first_k(plain_squares(Q, X), wanted, 6)
        assert np.array_equal(numbers, want[0])
        assert np.array_equal(squares, want[1])


@pytest.mark.parametrize("size", [128, None])
def test_points_so_far_apart_that_squares_overflow(monkeypatch, size):
    use_cells(monkeypatch, size)
    X = np.array([[0.0], [1e200], [-1e200], [1.0], [1e199]])
    numbers, squares = k_nearest(X, 3, Threads(1))
    assert np.isinf(squares[1]).all()
    assert numbers[1].tolist() == [0, 2, 3]
    assert numbers[0].tolist() == [3, 1, 2]


def test_progress_rises_to_all(monkeypatch):
    use_cells(monkeypatch, 16)
    shares, rng = [], np.random.default_rng(0)
    nearest(rng.normal(size=(200, 3)), labels(rng, 200, 2), 3, Threads(2), progress=shares.append)
    assert shares == sorted(shares)
    assert len(shares) > 5
    assert shares[-1] == 1


def test_a_search_ends_with_its_time():
    rng = np.random.default_rng(0)
    with pytest.raises(OutOfTime), deadline(0):
        nearest(rng.normal(size=(2000, 3)), labels(rng, 2000, 2), 3, Threads(1))
