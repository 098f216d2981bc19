"""Neighbours that somebody else has found."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

import triscreen as ts
from triscreen.triplets.graph import Given, Lists

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 3)), np.arange(60) % 3
EVERY = np.argsort(np.square(X[:, None] - X).sum(axis=2), axis=1, kind="stable")  # the point itself comes first
SAME, OTHER = (np.array([row[1:][(Y[row[1:]] == Y[row[0]]) == kind] for row in EVERY]) for kind in (True, False))


def as_graph(table, values=None):
    """A table of neighbours as a matrix of distances (0, 1, 2, ... unless said otherwise)."""
    n, m = table.shape
    data = np.tile(np.arange(m, dtype=float), n) if values is None else np.tile(values, n)
    return sparse.csr_array((data, table.ravel(), m * np.arange(n + 1)), shape=(n, n))


WAYS = {
    "array": EVERY,
    "array without the points themselves": EVERY[:, 1:],
    "list": EVERY.tolist(),
    "int32": EVERY.astype(np.int32),
    "uint16": EVERY.astype(np.uint16),
    "pair": (SAME, OTHER),
    "pair of lists": [SAME.tolist(), OTHER.tolist()],
    "graph": as_graph(EVERY),
    "graph in columns": as_graph(EVERY).tocsc(),
    "old graph": sparse.csr_matrix(as_graph(EVERY)),
    "graph of whole numbers": as_graph(EVERY).astype(int),
    "graph in the order of columns": as_graph(EVERY).sorted_indices(),
    "graph of equal distances, by their order": as_graph(EVERY, np.ones(60)),
    "scikit-learn's": kneighbors_graph(X, 59, mode="distance"),
    "scikit-learn's connections": kneighbors_graph(X, 59),
    "pair of graphs": (as_graph(SAME), as_graph(OTHER)),
    "pair of both": (as_graph(SAME), OTHER),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("k", [1, 4])
def test_the_triplets_are_those_of_the_search_where_the_neighbours_are(way, k):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given = ts.knn_triplets(X, Y, k, neighbors=WAYS[way])
    assert np.array_equal(given.indices(), ts.knn_triplets(X, Y, k).indices())
    positives = ts.all_triplets(X, Y, k, neighbors=WAYS[way])
    assert positives.same_as(ts.all_triplets(X, Y, k))


def test_the_order_is_the_one_given_not_that_of_distances():
    given = ts.knn_triplets(X, Y, 2, neighbors=(SAME[:, ::-1], OTHER[:, ::-1])).indices()
    assert {tuple(row) for row in given} == {
        (i, j, m) for i in range(60) for j in SAME[i, -2:] for m in OTHER[i, -2:]
    }  # fmt: skip


def test_zeros_that_are_stored_are_distances():
    near = [[0.0], [0.0], [5.0], [1.0]]
    graph = sparse.csr_matrix(([3.0, 0.0, 1.0], [3, 1, 2], [0, 3, 3, 3, 3]), shape=(4, 4))
    with pytest.warns(ts.NoAnchorWarning, match="3 of 4 points have no positive or no negative there"):
        T = ts.knn_triplets(near, ["a", "a", "b", "a"], 1, neighbors=graph)
    assert T.indices().tolist() == [[0, 1, 2]]


def test_a_row_ends_at_minus_1_and_points_without_either_are_no_anchors():
    y = ["a", "a", "a", "b"]
    table = [[1, 3, -1], [3, -1, 0], [0, 1, -1], [-1, 0, 1]]
    with pytest.warns(ts.NoAnchorWarning) as caught:
        T = ts.knn_triplets(np.eye(4), y, neighbors=table)
    assert len(caught) == 1
    assert "3 of 4 points" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert T.indices().tolist() == [[0, 1, 3]]
    with pytest.warns(ts.NoAnchorWarning, match="2 of 4 points have no positive there"):
        T = ts.all_triplets(np.eye(4), y, 1, neighbors=table)
    assert T.indices().tolist() == [[0, 1, 3], [2, 0, 3]]


def test_k_none_takes_all_that_is_given():
    assert ts.knn_triplets(X, Y, None, neighbors=EVERY[:, :20]).n_pairs == 60 * 19


BROKEN = SAME.copy()
BROKEN[7, 2] = 60
TWICE = SAME.copy()
TWICE[7, 5] = TWICE[7, 2]
SWAPPED = SAME.copy()
SWAPPED[4] = OTHER[4, : SAME.shape[1]]


@pytest.mark.parametrize(
    ("neighbors", "message"),
    [
        (EVERY[:50], r"neighbors has shape \(50, 60\): it must be \(n, m\) numbers of points, a row for each"),
        (EVERY[0], r"neighbors has shape \(60,\)"),
        (3, r"neighbors has shape \(\)"),
        ([[1, 2], [3]], r"neighbors is no rectangular array .* let rows end with -1"),
        (EVERY.astype(float), "neighbors has dtype float64: it must hold whole numbers of points, or be a scipy"),
        (np.where(EVERY == 3, np.nan, EVERY), "neighbors has dtype float64"),
        (EVERY.astype(str), "neighbors has dtype <U"),
        (BROKEN, r"neighbors\[7, 2\] is 60: numbers must lie between 0 and 59, and -1 ends a row"),
        (-2 * np.ones((60, 1), int), r"neighbors\[0, 0\] is -2"),
        (TWICE, rf"neighbors has point {TWICE[7, 2]} twice for point 7"),
        ((SWAPPED, OTHER), rf"neighbors\[0\] has point {OTHER[4, 0]} for point 4: positives must be of .* own class"),
        ((SAME, SAME), rf"neighbors\[1\] has point {SAME[0, 0]} for point 0: negatives must be of other classes"),
        ((SAME, OTHER[:9]), r"neighbors\[1\] has shape \(9, 40\)"),
        ((SAME, OTHER, OTHER), "neighbors is no rectangular array"),
        (as_graph(EVERY)[:50], r"neighbors has shape \(50, 60\): a graph of 60 points has shape \(60, 60\)"),
        (as_graph(EVERY, -np.ones(60)), r"neighbors\[0, 0\] is -1.0: its entries must be distances, finite and not"),
        (as_graph(EVERY, np.full(60, np.nan)), r"neighbors\[0, 0\] is nan"),
        (as_graph(EVERY).astype(complex), "neighbors has dtype complex128"),
        (as_graph(BROKEN), "neighbors is a damaged sparse matrix"),
        (as_graph(TWICE), "twice for point 7"),
        (np.full((60, 2), -1), "neighbors gives no triplet: every point has no positive or no negative there"),
        (np.arange(60)[:, None], "neighbors gives no triplet"),
    ],
)
def test_what_is_wrong_is_refused_in_one_sentence(neighbors, message):
    for make in (
        lambda: ts.knn_triplets(X, Y, 3, neighbors=neighbors),
        lambda: ts.TripletMetric(3).fit(X, Y, neighbors=neighbors),
        lambda: ts.TripletMetricCV(3, cv=2).fit(X, Y, neighbors=neighbors),
    ):
        with pytest.raises(ts.InputError, match=message):
            make()


def test_every_triplet_has_no_use_for_neighbours():
    with pytest.raises(ts.InputError, match="every triplet has no use for them"):
        ts.all_triplets(X, Y, neighbors=EVERY)
    for model in (ts.TripletMetric(triplets="all"), ts.TripletMetricCV(triplets="all")):
        with pytest.raises(ts.InputError, match="triplets='all' takes every triplet"):
            model.fit(X, Y, neighbors=EVERY)


@pytest.mark.parametrize("seed", range(5))
def test_a_part_has_what_is_left_of_the_lists_by_new_numbers(seed):
    rng = np.random.default_rng(seed)
    table = np.where(rng.random((30, 8)) < 0.9, NearestNeighbors(n_neighbors=8).fit(X[:30]).kneighbors()[1], -1)
    table = np.where(np.logical_and.accumulate(table >= 0, axis=1), table, -1)
    points = rng.permutation(30)[: rng.integers(2, 30)]
    place = {int(point): number for number, point in enumerate(points)}
    wanted = [[place[j] for j in table[i].tolist() if j in place] for i in points]
    part = Lists.of_table(table).part(points)
    assert [part.others[a:b].tolist() for a, b in zip(part.ptr, part.ptr[1:], strict=False)] == wanted
    assert [[j for j in row if j >= 0] for row in part.table(2).tolist()] == [row[:2] for row in wanted]


def test_parts_of_given_neighbours_may_repeat_points():
    given = Given.of(EVERY, Y).part(np.array([3, 3, 0, 6, 9]))
    same = given.same.table()
    assert same[0].tolist() == same[1].tolist()  # both copies have the neighbours of the point
    assert sorted(same[0].tolist()) == [2, 3, 4]
