"""The matrix of pair weights from the pairs that begin with each point, or by differences where these must be."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import triscreen as ts
from triscreen._utils.threads import Threads
from triscreen.problem.rounding import U


def exact_matrix(T, weights):
    """The sum of c_p (x_a - x_b)(x_a - x_b)' in rational numbers, rounded once."""
    X = [[Fraction(float(v)) for v in x] for x in T.points]
    total = [[Fraction(0)] * T.dim for _ in range(T.dim)]
    for a, b, w in zip(T.first, T.second, weights, strict=True):
        delta = [p - q for p, q in zip(X[a], X[b], strict=True)]
        for r in range(T.dim):
            for c in range(T.dim):
                total[r][c] += Fraction(float(w)) * delta[r] * delta[c]
    return np.array([[float(v) for v in row] for row in total])


def some(seed, offset=0.0, n=40, d=3):
    """Two classes in each of two clusters that are ``offset`` away from each other."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), np.arange(n) % 2
    X[n // 2 :] += offset
    return ts.Problem(X, ts.knn_triplets(X, y, 3), n_jobs=1)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("offset", "halves"), [(0.0, True), (3.0, True), (1e4, False), (1e8, False)])
def test_error_of_the_matrix(seed, offset, halves):
    problem = some(seed, offset)
    T, rng = problem.triplets, np.random.default_rng(seed)
    weights = rng.normal(size=T.n_pairs) * rng.integers(0, 2, T.n_pairs)
    found = T.matrix(weights, Threads(1))
    assert T._halves == halves
    assert np.array_equal(found, found.T)
    bound = 2 * T.n_points * U * np.abs(weights).sum() * T.extent(Threads(1))
    off = np.linalg.norm(found - exact_matrix(T, weights))
    assert off <= bound
    assert off <= 1e-13 * max(1.0, offset) * np.linalg.norm(found)  # with squares it would be offset**2


def test_parts_of_a_set_do_as_the_whole():
    for offset, halves in ((0.0, True), (1e4, False)):
        T = some(0, offset).triplets
        kept = np.zeros(T.n_pairs, dtype=bool)
        kept[: T.n_pairs // 2] = True
        assert T._halves is None  # nobody has asked yet
        part, _ = T.restrict(kept)
        assert part._halves == halves
        vectors = np.linalg.qr(np.random.default_rng(0).normal(size=(T.dim, T.dim)))[0]
        assert part.turned(vectors, Threads(1))._halves == halves
        assert part.over(part.points + 1.0)._halves is None


def test_any_number_of_threads_gives_the_same_bits():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 12)), rng.integers(0, 3, 3000)
    T = ts.Problem(X, ts.knn_triplets(X, y, 8)).triplets
    weights = rng.normal(size=T.n_pairs)
    assert np.array_equal(T.matrix(weights, Threads(1)), T.matrix(weights, Threads(3)))
    assert T._halves
