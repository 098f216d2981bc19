"""Identical points, and pairs that are the same for distances and matrices, are worked on once."""

from __future__ import annotations

import numpy as np
import pytest

import triscreen as ts
from triscreen._utils.threads import Threads
from triscreen.problem.cones import make_cone
from triscreen.problem.rounding import U
from triscreen.triplets.pairs import ListedPairs


def exact_matrix(T, weights):
    """The sum of c_p (x_a - x_b)(x_a - x_b)' in eleven more bits."""
    X = T.points.astype(np.longdouble)
    D = X[T.first] - X[T.second]
    return D.T @ (weights.astype(np.longdouble)[:, None] * D)


def answers(seed=0, n=120, d=5, levels=2):
    """Points of few different ones, as answers to yes and no are, and two labels."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, levels, (n, d)).astype(float)
    return X, (X @ np.arange(1, d + 1) + rng.integers(0, 4, n) > 8).astype(int)


def both(kind="knn", cone="psd", **more):
    """The same problem, with pairs worked on once and each by itself."""
    X, y = answers(**more)
    T = ts.knn_triplets(X, y, 4)
    if kind == "given":
        T = ts.given_triplets(T.indices()[::2])
    once, each = (ts.Problem(X, T, cone=cone, n_jobs=1) for _ in range(2))
    each.triplets._once = None
    assert once.triplets._once is not None
    return once, each


@pytest.mark.parametrize("kind", ["knn", "given"])
@pytest.mark.parametrize("cone", ["psd", "diagonal"])
@pytest.mark.parametrize("halves", [True, False])
def test_once_gives_what_each_by_itself_gives(kind, cone, halves):
    once, each = both(kind, cone)
    rng, threads, made = np.random.default_rng(1), Threads(1), make_cone(cone)
    M = np.diag(rng.uniform(1, 2, 5)) if cone == "psd" else rng.uniform(1, 2, 5)
    used = rng.integers(0, 2, once.triplets.n_triplets if kind == "given" else once.triplets.n_pairs).astype(bool)
    sets = [(once.triplets, each.triplets)]
    sets.append([T.restrict(used)[0] for T in sets[0]])
    assert sets[1][0]._once is not None
    assert sets[1][1]._once is None
    used = np.arange(sets[1][0].n_triplets if kind == "given" else sets[1][0].n_pairs) % 3 > 0
    sets.append([T.restrict(used)[0] for T in sets[1]])
    for a, b in sets:
        a.extent(threads), b.extent(threads)
        a._halves = b._halves = halves
        weights = rng.normal(size=a.n_pairs)
        assert a._once.pairs.n_pairs < 0.7 * a.n_pairs
        np.testing.assert_allclose(
            a.distances_under(made, made.project(M).factor, threads),
            b.distances_under(made, made.project(M).factor, threads),
            rtol=1e-14,
            atol=1e-14,
        )
        np.testing.assert_allclose(a.changes(made, M, threads), b.changes(made, M, threads), rtol=1e-14, atol=1e-14)
        np.testing.assert_allclose(made.assemble(a, weights, threads), made.assemble(b, weights, threads), atol=1e-12)


def test_error_of_a_matrix_of_weights_that_were_added_up():
    T = both(n=80)[0].triplets
    weights = np.random.default_rng(2).normal(size=T.n_pairs)
    # As `Rounding` has it, with a row of the matrix as long as this set says; the exact sum is over every pair.
    terms = T.n_points + T.most_pairs_at_a_point() + 8 * T.dim
    bound = 4 * terms * U * np.abs(weights).sum() * T.extent(Threads(1))
    assert np.linalg.norm(T.matrix(weights, Threads(1)) - exact_matrix(T, weights)) <= bound
    differ = T._once
    per_point = np.bincount(np.concatenate([differ.pairs.first, differ.pairs.second]))
    assert T.most_pairs_at_a_point() >= per_point.max() + np.bincount(differ.places).max()


def test_what_differs_is_all_that_differs():
    X, y = answers()
    T = ts.knn_triplets(X, y, 4).over(X)
    kinds = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    ends = {tuple(sorted(pair)) for pair in zip(kinds[T.first], kinds[T.second], strict=True)}
    assert (T._once.pairs.n_points, T._once.pairs.n_pairs) == (len(np.unique(kinds)), len(ends))
    assert np.array_equal(T._once.pairs.points[T._once.kinds], X)


def test_points_that_differ_stay_each_by_themselves():
    X, y = answers()
    noise = X + np.random.default_rng(0).normal(size=X.shape)
    assert ts.Problem(noise, ts.knn_triplets(noise, y, 4)).triplets._once is None
    wide = np.zeros((len(X), 40))  # the columns looked at first say nothing, a later one says all
    wide[:, 1] = np.arange(len(X))
    wide[:, ::2] = X[:, :1]
    T = ts.knn_triplets(wide, y, 4).over(wide)
    assert T._once is None
    assert T.over(X)._once is not None  # other points, looked at anew


def test_nothing_is_left():
    once, each = both()
    nothing = np.zeros(once.triplets.n_pairs, dtype=bool)
    for T in (once.triplets, each.triplets):
        part, _ = T.restrict(nothing)
        assert part.n_pairs == 0
        assert not part.matrix(np.empty(0), Threads(1)).any()
        assert part.over(np.empty((0, 5)))._once is None


def test_numbers_that_collide_are_no_identical_points(monkeypatch):
    from triscreen.triplets import once

    monkeypatch.setattr(once, "_numbered", lambda X: (np.zeros(len(X), dtype=np.intp), np.zeros(1, dtype=np.intp)))
    X, y = answers()
    assert ts.knn_triplets(X, y, 4).over(X)._once is None


def test_a_path_on_identical_points():
    """Every metric is certified by each pair by itself."""
    once, each = both(n=150)
    path = ts.solve_path(once, n_lambdas=25, tol=1e-8)
    other = ts.solve_path(each, n_lambdas=25, tol=1e-8)
    np.testing.assert_allclose(path.primals, other.primals, rtol=2e-8)
    for lam, M in ((path.lambdas[t], path.M(t)) for t in range(len(path))):
        proof = each.certificate(M, lam)
        assert proof.gap <= 2e-8 * proof.primal


def test_same_bits_for_any_number_of_threads(monkeypatch):
    from triscreen._utils import threads as module

    monkeypatch.setattr(module, "WORK", 50)  # many chunks
    X, y = answers(n=300)
    T = ts.knn_triplets(X, y, 4)
    paths = [ts.solve_path(ts.Problem(X, T, n_jobs=n), n_lambdas=6) for n in (1, 2, 3)]
    for other in paths[1:]:
        assert np.array_equal(paths[0].gaps, other.gaps)
        assert all(np.array_equal(paths[0].M(t), other.M(t)) for t in range(6))


def test_a_checkpoint_of_identical_points(tmp_path):
    X, y = answers(n=150)
    problem = ts.Problem(X, ts.knn_triplets(X, y, 4))
    whole = ts.solve_path(problem, n_lambdas=20)

    class Enough(Exception):
        pass

    def stop(state, seen=[]):  # noqa: B006
        seen.append(state)
        if len(seen) == 11:
            raise Enough

    with pytest.raises(Enough):
        ts.solve_path(problem, n_lambdas=20, checkpoint=tmp_path / "path", callback=stop)
    again = ts.solve_path(
        ts.Problem(X, ts.knn_triplets(X, y, 4)), n_lambdas=20, checkpoint=tmp_path / "path", callback=lambda state: None
    )
    assert np.array_equal(whole.gaps, again.gaps)


def test_sets_of_pairs_alone_know_what_they_need():
    T = both()[0].triplets
    assert type(T._once.pairs) is ListedPairs
    assert T._once.pairs._once is None
