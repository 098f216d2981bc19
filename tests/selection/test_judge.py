"""Points that may be among the nearest, and how they are looked for again: against the definition."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from triscreen.selection import judge
from triscreen.selection.judge import Comparisons, Points, Votes


def points_of(X, queries=None):
    units = SimpleNamespace(into=lambda value, _: np.asarray(value))
    return Points(SimpleNamespace(units=units), np.asarray(X, dtype=float), queries)


def test_points_are_around_their_mean_and_know_their_twins():
    X = np.array([[3.0, 1.0], [0.0, 0.0], [3.0, 1.0], [2.0, 2.0]])
    points = points_of(X, X[:2] + 1)
    np.testing.assert_allclose(points.X, X - [2.0, 1.0])
    np.testing.assert_allclose(points.queries, X[:2] + 1 - [2.0, 1.0])
    assert points.twins[0] == points.twins[2]
    assert len(set(points.twins.tolist())) == 3
    np.testing.assert_array_equal(X[points.first][points.twins], X)
    assert points_of(X).queries is None


def some_votes(k, copies, seed=0):
    """Votes over points of which there are so many copies each, in any order."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(len(copies), 2)), copies, axis=0)
    X = X[rng.permutation(len(X))]
    points = points_of(X, rng.normal(size=(6, 2)))
    return Votes(points, np.zeros(len(X), dtype=np.int64), np.zeros(6, dtype=np.int64), 2, k), X


@pytest.mark.parametrize("k", [1, 2, 5])
def test_of_points_that_are_the_same_the_first_ones_are_candidates(k, monkeypatch):
    votes, _X = some_votes(k, [1, 3, 7])
    asked, distinct = np.array([0, 2]), [np.array([1, 2]), np.array([0])]

    def found(intervals, those, copies, wanted, most):
        assert (wanted, most, copies.tolist()) == (k, max(1024, 4 * k), votes._copies.tolist())
        return [(np.array([len(one) for one in distinct]), np.concatenate(distinct))] * len(intervals)

    monkeypatch.setattr(judge, "_candidates", found)
    for ptr, candidates in votes._candidates(["one", "two"], asked):
        for number, some in enumerate(distinct):
            wanted = [np.flatnonzero(votes.points.twins == one)[:k] for one in some]
            assert candidates[ptr[number] : ptr[number + 1]].tolist() == np.concatenate(wanted).tolist()
        assert ptr[-1] == len(candidates)
    (one, *_), _ = votes.all_of(["one", "two"])
    assert one.tolist() == list(range(6))


@pytest.mark.parametrize("lost", [[1], [0, 1], [0, 3], [0, 1, 2, 3], []])
def test_queries_that_had_too_many_are_looked_for_again_and_the_others_kept(lost, monkeypatch):
    votes, _ = some_votes(2, [1, 1, 1])
    asked = np.array([0, 2, 3, 5])
    known = {query: [] if number in lost else [query, 10 + query] for number, query in enumerate(asked.tolist())}
    again = {query: [20 + query, 30 + query, 40 + query] for query in asked[lost].tolist()}
    ptr = np.concatenate([[0], np.cumsum([len(known[query]) for query in asked.tolist()])])
    left = asked, ptr, np.array([x for query in asked.tolist() for x in known[query]], dtype=np.int64)

    def found(intervals, those):
        assert intervals == ["here"]
        assert those.tolist() == list(again)
        more = np.array([x for query in again.values() for x in query], dtype=np.int64)
        return [(np.arange(len(again) + 1) * 3, more)]

    monkeypatch.setattr(votes, "_candidates", found)
    those, ptr, candidates = votes._looked_for_again("here", left)
    assert those.tolist() == asked.tolist()
    for number, query in enumerate(asked.tolist()):
        assert candidates[ptr[number] : ptr[number + 1]].tolist() == again.get(query, known[query])
    if not lost:
        assert candidates is left[2]


def test_an_interval_of_its_own_has_nothing_to_look_for(monkeypatch):
    """What was found for this very interval is not looked for again; open queries keep what may still be near."""
    votes, _X = some_votes(1, [1, 1, 1, 1])
    Q = np.eye(2)
    interval = SimpleNamespace(centers=(Q, Q), balls=(0.0, 0.0, 0.0, 0.0, 0.0), radius=1e-12, trace=2.0, relative=1e-14)
    monkeypatch.setattr(votes, "_looked_for_again", lambda interval, left: pytest.fail("looked for again"))
    asked, every = np.arange(6), np.tile(np.arange(4), 6)
    left = asked, 4 * np.arange(7), every
    out, rest = votes.decide(interval, left, True)
    assert out.tolist() == [1] * 6  # all points have the class that is wanted
    assert [len(part) for part in rest] == [0, 1, 0]
    votes.codes = np.arange(4) % 2
    interval.radius, interval.balls = 100.0, (1e4, 1e4, 2e4, 0.0, 0.0)
    out, rest = votes.decide(interval, left, True)
    assert out.tolist() == [0] * 6
    assert rest[0].tolist() == asked.tolist()
    assert rest[1].tolist() == left[1].tolist()
    assert rest[2].tolist() == every.tolist()
    some = votes.decide(interval, (asked[:0], np.zeros(1, dtype=np.int64), every[:0]), True)
    assert not len(some[0])


def test_candidates_have_one_name_each_however_many_there_are():
    rng = np.random.default_rng(0)
    for n, count in ((1000, 5), (1000, 900), (8, 1), (16, 2), (3, 0)):
        candidates = rng.integers(0, n, count)
        numbers, places = judge._renumbered(candidates, n)
        np.testing.assert_array_equal(numbers[places], candidates)
        assert numbers.tolist() == sorted(set(candidates.tolist()))


@pytest.mark.parametrize("block", [1 << 19, 9, 1])
def test_candidates_are_those_that_may_come_as_near_as_the_kth(block, monkeypatch):
    """For each of some intervals, whose second ends are the first ones of the next: by the distances at both ends."""
    monkeypatch.setattr(judge, "_BLOCK", block)
    rng = np.random.default_rng(1)
    points = points_of(rng.normal(size=(9, 2)), rng.normal(size=(5, 2)))
    metrics = [np.diag(rng.uniform(0.5, 2, 2)) for _ in range(4)]
    intervals = [
        SimpleNamespace(points=points, ends=(one, two), scale=scale, radius=0.05, error=1e-14)
        for one, two, scale in zip(metrics[:-1], metrics[1:], (1.0, 2.0, 0.5), strict=True)
    ]
    asked, k = np.array([0, 1, 3, 4]), 2
    found = judge._candidates(intervals, asked, np.ones(9, dtype=np.int64), k, 9)
    assert len(found) == 3
    for interval, (counts, numbers) in zip(intervals, found, strict=True):
        ptr = np.concatenate([[0], np.cumsum(counts)])
        assert ptr[-1] == len(numbers)
        for number, query in enumerate(asked):
            away = points.X[points.first] - points.queries[query]
            d1, d2 = (np.einsum("ij,jk,ik->i", away, Q, away) for Q in interval.ends)
            wide = 0.05 * np.einsum("ij,ij->i", away, away)
            lower = np.minimum(d1, d2 / interval.scale) - wide
            upper = np.maximum(d1, d2 / interval.scale) + wide
            wanted = np.flatnonzero(lower <= np.sort(upper)[k - 1])
            assert numbers[ptr[number] : ptr[number + 1]].tolist() == wanted.tolist()


def test_of_a_query_with_too_many_candidates_none_are_kept():
    rng = np.random.default_rng(1)
    points = points_of(rng.normal(size=(9, 2)), rng.normal(size=(5, 2)))
    one = SimpleNamespace(points=points, ends=(np.eye(2), np.eye(2)), scale=1.0, radius=100.0, error=1e-14)
    counts, numbers = judge._candidates([one], np.arange(5), np.ones(9, dtype=np.int64), 2, 8)[0]
    assert (counts.tolist(), len(numbers)) == ([0] * 5, 0)


def test_so_many_intervals_are_begun_that_their_points_have_room():
    votes, _ = some_votes(2, [1, 1])
    assert votes.at_once == judge._KEPT // (1024 * 6)
    votes.k = 1000
    assert (votes._most, votes.at_once) == (4000, judge._KEPT // (4000 * 6))
    votes.wanted = votes.wanted[:0]
    assert votes.at_once == judge._KEPT // 4000
    votes.k = judge._KEPT
    assert votes.at_once == 1
    comparisons = Comparisons(None, np.array([[0, 1, 2], [0, 2, 1]]))
    assert comparisons.count == 2
    assert [len(one) for one in comparisons.all_of([1, 2, 3])] == [1, 1, 1]


def test_comparisons_that_are_open_are_left():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 3.0], [0.0, 1.05]])
    rows = np.array([[0, 1, 2], [0, 2, 1], [0, 1, 3], [0, 1, 1]])
    comparisons = Comparisons(points_of(X), rows)
    interval = SimpleNamespace(
        centers=(np.eye(2), np.eye(2)), balls=(0.01, 0.01, 0.02, 0.0, 0.0), trace=2.0, relative=1e-14, error=2e-14
    )
    out, (left,) = comparisons.decide(interval, (rows,))
    assert out.tolist() == [1, -1, 0, -1]
    assert left.tolist() == [[0, 1, 3]]
