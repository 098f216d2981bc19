"""Votes, comparisons and who may be near, in all balls between two: against the definition, errors made large."""

from __future__ import annotations

import numpy as np
import pytest

from triscreen._kernels import certain


def positive(f1, f2, size, s1, s2, k, off1, off2):
    """The least of ((1 - p) f1 + p f2)^2 - |H|^2 r(p)^2 over 0 <= p <= 1; below 0 where a margin is at an end."""
    f1, f2 = f1 - off1 * np.sqrt(size), f2 - off2 * np.sqrt(size)
    if min(f1, f2) <= 0:
        return -1.0
    first, last, both = f1 * f1 - size * s1, f2 * f2 - size * s2, f1 * f2 - size * k / 2
    curve = first + last - 2 * both
    p = min(1.0, max(0.0, (first - both) / curve)) if curve > 0 else 0.0
    return min((1 - t) ** 2 * first + t**2 * last + 2 * t * (1 - t) * both for t in (0.0, p, 1.0))


class Case:
    """Points, a query and two centres; ``least(a, b)`` > 0: a is nearer in every ball, whatever the errors do."""

    def __init__(self, seed, scale=1.0, error=1e-3, classes=2, n=8):
        rng = np.random.default_rng(seed)
        self.X, self.queries = rng.normal(size=(n, 2)), rng.normal(size=(4, 2))
        self.X[-1] = self.X[0]
        self.twins = np.arange(n)
        self.twins[-1] = 0
        F = rng.normal(size=(2, 2))
        self.Q1 = F @ F.T + 0.3 * np.eye(2)
        shift = rng.normal(size=(2, 2)) * 0.2
        self.Q2 = self.Q1 + shift + shift.T
        s1, s2 = (scale * rng.uniform(0.01, 0.3, 2)) ** 2
        self.balls = np.array([s1, s2, rng.uniform(0.2, 2.5) * (s1 + s2), *(scale * rng.uniform(0, 0.05, 2))])
        self.codes, self.wanted = rng.integers(0, classes, n), rng.integers(0, classes, 4)
        self.classes, self.error = classes, error
        self.trace = float(max(np.trace(self.Q1), np.trace(self.Q2)))
        off = max(self.balls[3:])
        self.radius = float(np.sqrt(max(s1, s2, self.balls[2] / 2))) + off + float(np.linalg.norm(self.Q1 - self.Q2))

    def doubt(self, q, a):
        return self.error * (np.linalg.norm(self.queries[q]) + np.linalg.norm(self.X[a])) ** 2

    def ends(self, q, a):
        """Bounds of the distance to a query in every ball."""
        u = self.X[a] - self.queries[q]
        away = self.radius * (u @ u) + (self.trace + self.radius) * self.doubt(q, a)
        return min(u @ self.Q1 @ u, u @ self.Q2 @ u) - away, max(u @ self.Q1 @ u, u @ self.Q2 @ u) + away

    def first(self, q, a, b):
        """Is a surely nearer than b? None where that hangs on the last digits."""
        if self.twins[a] == self.twins[b]:
            return a < b
        (_, most), (least, _) = self.ends(q, a), self.ends(q, b)
        if most < least:
            return True
        u, v = self.X[b] - self.queries[q], self.X[a] - self.queries[q]
        off = self.doubt(q, a) + self.doubt(q, b)
        value = formula(u, v, self.Q1, self.Q2, off, self.trace, self.balls)
        return None if abs(value) < 1e-6 else value > 0


def formula(u, v, Q1, Q2, off, trace, balls):
    size = (np.linalg.norm(np.outer(u, u) - np.outer(v, v)) + off) ** 2
    margins = [u @ Q @ u - v @ Q @ v - trace * off for Q in (Q1, Q2)]
    return positive(*margins, size, *balls) if min(margins) > 0 else -1.0


def vote(case, q, k, candidates):
    """The outcome by definition, and who may still be among the k nearest; None: it hangs on the last digits."""
    table = {(a, b): case.first(q, a, b) for a in candidates for b in candidates if a != b}
    if None in table.values():
        return None
    left = [b for b in candidates if sum(table[a, b] for a in candidates if a != b) < k]
    sure, maybe = np.zeros(case.classes, int), np.zeros(case.classes, int)
    for a in left:
        others = sum(not table[a, b] for b in left if b != a)
        (sure if others < k else maybe)[case.codes[a]] += 1
    winners = set()
    for more in np.ndindex(*(maybe + 1)):
        if sum(more) == k - sure.sum():
            winners.add(int(np.argmax(sure + more)))
    y = case.wanted[q]
    return (1 if winners == {y} else -1 if y not in winners else 0), left


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize(("scale", "error"), [(0.3, 1e-3), (1.0, 1e-9), (0.01, 2e-2), (0.1, 1e-6)])
def test_votes_are_those_of_the_definition(k, scale, error):
    seen = []
    for seed in range(8):
        case = Case([seed, k], scale, error)
        if scale == 0.1:  # the line between the centres is longer than the balls are wide
            case.radius -= float(np.linalg.norm(case.Q1 - case.Q2))
        n, m = len(case.X), len(case.queries)
        ptr, candidates = np.arange(m + 1) * n, np.tile(np.arange(n), m)
        out, counts, kept = np.empty(m, np.int8), np.empty(m, np.int64), np.empty(n * m, np.int64)
        total = certain.certain_votes(
            case.X, case.X @ case.Q1, case.X @ case.Q2, case.queries, case.queries @ case.Q1, case.queries @ case.Q2,
            case.codes, case.twins, case.wanted, ptr, candidates, k, case.classes, case.balls, case.radius, case.trace,
            error, n, out, counts, kept,
        )  # fmt: skip
        assert total == counts.sum()
        begin = 0
        for q in range(m):
            wanted = vote(case, q, k, range(n))
            mine = kept[begin : begin + counts[q]]
            begin += counts[q]
            if wanted is not None:
                assert out[q] == wanted[0], (seed, q)
                assert out[q] or list(mine - q * n) == wanted[1]
                seen.append(int(out[q]))
            assert not out[q] or not counts[q]
    assert set(seen) == {-1, 0, 1}


def test_a_crowd_is_told_only_where_it_is_of_one_class():
    """Forty points, and nobody knows which are the nearest: what they vote is known where all are of one class."""
    rng = np.random.default_rng(0)
    X = np.vstack([np.column_stack([np.ones(40), 1e-3 * rng.normal(size=40)]), [[9.0, 9.0]]])
    queries, Q = np.zeros((2, 2)), np.eye(2)
    for other in (0, 1):
        codes = np.zeros(41, np.int64)
        codes[17] = other
        codes[40] = 1  # far away: it does not count
        out, counts, kept = np.empty(2, np.int8), np.empty(2, np.int64), np.empty(82, np.int64)
        certain.certain_votes(
            X, X @ Q, X @ Q, queries, queries @ Q, queries @ Q, codes, np.arange(41), np.array([0, 1]),
            np.array([0, 41, 82]), np.tile(np.arange(41), 2), 3, 2, np.array([0.64, 0.64, 1.28, 0.0, 0.0]), 0.8, 2.0,
            1e-12, 41, out, counts, kept,
        )  # fmt: skip
        assert list(out) == ([0, 0] if other else [1, -1])
        assert list(counts) == ([40, 40] if other else [0, 0])


@pytest.mark.parametrize("many", [32, 33])
def test_as_many_as_a_crowd_may_have_are_told_apart_from_those_that_come_after_them(many):
    """So many that nobody can tell apart, then one of another class that three of them are surely nearer than."""
    rng = np.random.default_rng(1)
    X = np.vstack([np.column_stack([np.ones(many), 1e-3 * rng.normal(size=many)]), [[1.3, 0.0]]])
    codes = np.zeros(many + 1, np.int64)
    codes[many] = 1
    queries, Q = np.zeros((1, 2)), np.eye(2)
    out, counts, kept = np.empty(1, np.int8), np.empty(1, np.int64), np.empty(many + 1, np.int64)
    certain.certain_votes(
        X, X @ Q, X @ Q, queries, queries @ Q, queries @ Q, codes, np.arange(many + 1), np.array([0]),
        np.array([0, many + 1]), np.arange(many + 1), 3, 2, np.array([0.09, 0.09, 0.18, 0.0, 0.0]), 0.3, 2.0,
        1e-12, many + 1, out, counts, kept,
    )  # fmt: skip
    assert out[0] == (1 if many == 32 else 0)


@pytest.mark.parametrize(("radius", "error"), [(0.2, 1e-3), (0.05, 2e-2), (1e8, 0.0)])
def test_whoever_may_be_near_is_found_and_nobody_else(radius, error):
    """lower <= the k-th smallest upper end, copies counted, with 16 errors of the farthest point."""
    rng = np.random.default_rng(int(1e4 * error))
    for k in (1, 2, 4):
        X, queries = rng.normal(size=(12, 2)) * [[1.0, 0.3]], rng.normal(size=(4, 2))
        if radius > 1:
            X[:, 0] = np.repeat([0.0, 1e3], 6)  # the rounding of |delta|^2 counts: all of a cluster may be nearest
        F, G = rng.normal(size=(2, 2, 2))
        metrics = F @ F.T, G @ G.T
        inner = [queries @ X.T, *(queries @ M @ X.T for M in metrics)]
        lengths = [(X * X).sum(1), *((X @ M * X).sum(1) for M in metrics)]
        own = [(queries * queries).sum(1), *((queries @ M * queries).sum(1) for M in metrics)]
        copies, times = rng.integers(1, 3, 12), 4.0  # what is given of the second metric is so many times as large
        for of_both in (inner, lengths, own):
            of_both[2] = times * of_both[2]
        counts, out = np.empty(4, np.int64), np.empty(48, np.int64)
        total = certain.near_enough(*inner, *lengths, *own, times, copies, radius, error, k, 12, counts, out)
        assert total == counts.sum()
        places = np.split(out[:total], np.cumsum(counts)[:-1])
        for q, found in zip(queries, places, strict=True):
            reach = (np.linalg.norm(X, axis=1).max() + np.linalg.norm(q)) ** 2
            wide = radius * ((X - q) ** 2).sum(1) + (16 * error + 1e-10 * radius) * reach
            both = np.array([[(x - q) @ M @ (x - q) for x in X] for M in metrics])
            lower, upper = both.min(0) - wide, both.max(0) + wide
            limit = np.sort(np.repeat(upper, copies))[k - 1]
            clear = np.abs(lower - limit) > 1e-9 * (1 + abs(limit))
            assert set(np.flatnonzero((lower <= limit) & clear)) <= set(found.tolist())
            assert not set(np.flatnonzero((lower > limit) & clear)) & set(found.tolist())
        most = int(counts.max()) - 1  # of a query with more than so many none are kept
        less, fewer = np.empty(4, np.int64), np.empty(48, np.int64)
        certain.near_enough(*inner, *lengths, *own, times, copies, radius, error, k, most, less, fewer)
        assert less.tolist() == [0 if count > most else count for count in counts]


def test_comparisons_are_those_of_the_definition():
    """With 8 d errors of the longest coordinate in |H|, and trace times that in its products with the centres."""
    rng, seen = np.random.default_rng(5), []
    for trial in range(60):
        case = Case([trial, 7], scale=[0.3, 0.02][trial % 2], error=0.0)
        error = [0.0, 1e-2, 1e-3][trial % 3]
        rows = np.array([rng.permutation(8)[:3] for _ in range(6)] + [[1, 0, 7], [0, 7, 2], [7, 3, 0]])
        out = np.empty(len(rows), np.int8)
        Y1, Y2 = case.X @ case.Q1, case.X @ case.Q2
        certain.certain_comparisons(case.X, Y1, Y2, rows, case.twins, case.balls, case.trace, error, out)
        for (a, b, c), told in zip(rows, out, strict=True):
            if case.twins[b] == case.twins[c]:
                assert told == -1
                continue
            off = 8 * error * 2 * np.abs(case.X[[a, b, c]]).max() ** 2
            u, v = case.X[c] - case.X[a], case.X[b] - case.X[a]
            ends = [formula(*ends, case.Q1, case.Q2, off, case.trace, case.balls) for ends in ((u, v), (v, u))]
            if min(map(abs, ends)) > 1e-6:
                assert told == (1 if ends[0] > 0 else -1 if ends[1] > 0 else 0), (trial, a, b, c)
                seen.append(int(told))
    assert min(seen.count(value) for value in (-1, 0, 1)) > 30
