"""The bounds on rounding hold, and are not vacuous: compared with extended precision."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import triscreen as ts
from problems import make_case, random_metric
from triscreen.problem.rounding import Rounding, U, gap_error, trace
from triscreen.screening.by_triplet import Screener


def problem_of(seed, cone):
    rng = np.random.default_rng(seed)
    y = np.arange(40) % 2
    X = (rng.normal(size=(40, 5)) + y[:, None]) * 10.0 ** rng.uniform(-3, 3, 5) + 10.0 ** rng.uniform(0, 6)
    return ts.Problem(X, ts.knn_triplets(X, y, 4), cone=cone), X.astype(np.longdouble)


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
@pytest.mark.parametrize("seed", range(8))
def test_distances_norms_and_sums(cone, seed):
    problem, X = problem_of(seed, cone)
    T, rounding = problem.triplets, problem.rounding
    M = random_metric(2 * seed + 1, 5, cone)
    factor = problem.cone.project(M).factor
    F = np.diag(factor) if cone == "diagonal" else factor
    delta = X[T.first] - X[T.second]
    exact = np.square(delta @ F.astype(np.longdouble)).sum(axis=1)
    got = problem.distances(factor)
    bound = rounding.distances(got, float(np.square(factor).sum()))
    assert (np.abs(got - exact) <= bound).all()
    assert (bound > 0).all()
    assert np.median(bound / exact) < 1e-6
    i, j, k = T.indices().T
    u, v = X[i] - X[k], X[i] - X[j]
    H = u[:, :, None] * u[:, None, :] - v[:, :, None] * v[:, None, :]
    if cone == "diagonal":
        H = np.einsum("tii->ti", H)
    norms = np.sqrt(np.square(H).reshape(len(H), -1).sum(axis=1))
    assert (norms <= problem.norms * rounding.norm_factor + rounding.norm_offset).all()
    alpha = np.clip((1 - np.random.default_rng(seed).uniform(-1, 2, len(H))) / 0.5, 0, 1)
    _, c = T.sweep_alpha(got, alpha, 0.05, problem.threads)
    A = problem.assemble(c)
    exact = np.tensordot(alpha.astype(np.longdouble), H, axes=1)
    error = float(np.sqrt(np.square(A - exact).sum()))
    assert error <= rounding.sum_of_h(float(alpha.sum()))


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
def test_the_constant_matrix_of_a_reduced_problem(cone):
    for seed in range(6):
        problem, X = problem_of(seed, cone)
        lam = 0.05 * (problem._lambda_max or 1.0)
        sol = ts.solve(problem, lam, tol=1e-4, screening=None)
        core, _ = problem.to_core(sol.M)
        screener = Screener(problem, ts.Screening("mid"), lam, 1e-6)
        screener.start(problem.evaluate(core, problem.distances(problem.cone.project(core).factor), lam, 0.05), None)
        if screener.engine is problem:
            continue
        gone = screener.zones == 1
        gone[screener.numbers] = False
        i, j, k = problem.triplets.indices()[gone].T
        u, v = X[i] - X[k], X[i] - X[j]
        exact = u.T @ u - v.T @ v
        exact = np.diag(exact) if cone == "diagonal" else exact
        error = float(np.sqrt(np.square(screener.engine.linear_matrix - exact).sum()))
        assert error <= screener.rounding.linear_error
        assert screener.rounding.linear_error > 0


@pytest.mark.parametrize("own_alpha", [True, False])
@pytest.mark.parametrize("cone", ["psd", "diagonal"])
def test_every_bound_has_all_terms_of_the_header(cone, own_alpha):
    """Written down again from the text of the module; what is small beside the rest is compared alone."""
    problem = make_case(3, cone=cone, weighted=True, n=20, m=80).problem
    T, gamma, k, dN = problem.triplets, problem.loss.gamma, 7.0, 0.125
    rounding = Rounding(T, problem.loss, problem.cone, k, problem.threads, dN)
    s, x = T.dim, np.sqrt(np.square(T.points).sum(axis=1))
    unit, relative = (2 * s + 16 + k) * U, (2 * s + 16) * U
    assert rounding.norm_factor == 1 + relative
    assert rounding.norm_offset == pytest.approx(16 * unit * x.max() ** 2, rel=1e-12, abs=0)
    reach = x[T.first] + x[T.second]
    M = random_metric(4, s, cone, 0.3)
    dist = problem.distances(problem.cone.project(M).factor)

    def of(dist, size, reach):
        E = unit * np.sqrt(size) * reach
        return 2 * np.sqrt(dist) * E + E * E + relative * dist

    for values, size in ((dist, trace(M)), (0 * dist, 1e-3), (1e-30 + 0 * dist, 1e-8)):
        np.testing.assert_allclose(rounding.distances(values, size), of(values, size, reach), rtol=1e-12)
    values, errors = np.ones_like(dist), np.full_like(dist, 1e-3)
    rounding.add_distances(dist, trace(M), -2.5, values, errors)
    np.testing.assert_allclose(values, 1 - 2.5 * dist, rtol=1e-12, atol=1e-12)
    assert (errors >= 1e-3 + 2.5 * of(dist, trace(M), reach) * (1 - 1e-6)).all()
    pairs = np.bincount(np.concatenate([T.first, T.second]), minlength=T.n_points).max()
    K = T.n_points + 8 * s + k
    assert K + T.most_triplets_at_a_pair() < (per := rounding.sum_of_h(1.0) / (2 * U * T.extent(problem.threads)))
    assert per <= K + T.most_triplets_at_a_pair() + pairs * (1 + 1e-12)
    assert rounding.sum_of_h(3.0) == pytest.approx(3 * rounding.sum_of_h(1.0), rel=1e-12, abs=0)
    less = rounding.reduced(0.25)
    assert less.matrix(M, 2.0) == pytest.approx(rounding.sum_of_h(2.0) + 0.25 + 32 * s * U * np.linalg.norm(M), abs=0)
    assert rounding.matrix(M, 0.0) == pytest.approx(32 * s * U * np.linalg.norm(M), rel=1e-12, abs=0)
    assert less.pull(M, 2.0, 3.0) == pytest.approx(less.matrix(M, 2.0) + 3 * dN, rel=1e-14, abs=0)
    assert rounding.element(M) - dN == pytest.approx(32 * s * U * trace(M), abs=U)
    quantum = T.quantum(float(dist.max()), gamma)
    margin = 2 * of(dist.max(), trace(M), reach.max()) + quantum
    assert rounding.margin(dist, trace(M)) == pytest.approx(margin, rel=1e-12, abs=0)
    assert rounding.margin_within(0.5) == pytest.approx(
        rounding.margin(np.array([0.5 * reach.max() ** 2]), 0.5), rel=1e-12, abs=0
    )
    # The gap: each term where it is the largest.
    pull, lam, weight = random_metric(6, s, cone, 2.0), 0.7, 5.0
    plus = 0.5 * pull
    for less, gap in (
        (rounding.reduced(0.25), 0.0),
        (Rounding(T, problem.loss, problem.cone, k, problem.threads), 9.0),
    ):
        dA = less.pull(pull, weight, lam)
        e = less.margin(dist, trace(M))
        slack = 3 * T.total_weight * (e + 4 * U * gamma) ** 2 / gamma if own_alpha else T.total_weight * e
        wanted = np.linalg.norm(M - plus / lam) * dA + dA**2 / (2 * lam)
        wanted += np.linalg.norm(pull - plus) * less.element(M) + slack + 1e-13 * gap
        found = less.gap(M, pull, plus, dist, gap, weight, lam, own_alpha)
        assert found == pytest.approx(wanted, rel=1e-10, abs=0)


def test_the_error_of_a_gap_is_that_of_its_own_alphas():
    problem = make_case(3).problem
    M, lam = random_metric(4, 3, "psd", 0.3), 1.0
    dist = problem.distances(problem.cone.project(M).factor)
    for smoothing, own in ((problem.loss.gamma, True), (0.7, False)):
        e = problem.evaluate(M, dist, lam, smoothing)
        gap = e.slack + problem.cone.gap(M, e.dual_point, lam)
        wanted = problem.rounding.gap(M, e.pull, e.dual_point.plus, dist, gap, e.sums.alpha, lam, own)
        assert gap_error(problem.rounding, e, lam) == wanted


class Some:
    """A set of triplets of which nothing is known but numbers that are easy to tell apart."""

    dim, n_points, largest_square, total_weight, lists_pairs = 3, 100, 25.0, 11.0, True

    def __init__(self, dim=3, reach=(1.0, 8.0)):
        self.dim, self._reach = dim, None if reach is None else np.array(reach)

    most_pairs_at_a_point = staticmethod(lambda: 30)
    most_triplets_at_a_pair = staticmethod(lambda: 7)
    extent = staticmethod(lambda threads: 13.0)
    quantum = staticmethod(lambda largest, gamma: 1e-20 * largest + gamma)

    def reach(self):
        return self._reach


@pytest.mark.parametrize(("dim", "triangles"), [(3, 2), (255, 2), (256, 3)])
def test_the_constants_of_the_header(dim, triangles):
    rounding = Rounding(Some(dim), None, None, 5.0, None, 0.5)
    unit = (2 * dim + 16 + 5) * U
    assert rounding.norm_offset == pytest.approx(16 * unit * 25, rel=1e-12, abs=0)
    assert rounding.norm_factor == 1 + (2 * dim + 16) * U
    matrix = triangles * (100 + 30 + 7 + 8 * dim + 5) * U * 13
    assert rounding.sum_of_h(2.0) == pytest.approx(2 * matrix, rel=1e-12, abs=0)
    assert rounding.element(np.full(dim, 2.0)) == pytest.approx(0.5 + 32 * dim * U * 2 * dim)
    assert (rounding.linear_error, rounding.prior_error) == (0.0, 0.5)


def test_margins_of_pairs_that_are_not_listed_have_the_doubt_of_their_products():
    rounding = Rounding(Some(3, None), SimpleNamespace(gamma=1e-20), None, 5.0, None)
    dist = SimpleNamespace(doubt=2.0, size=4.0, largest=3.0)
    unit = (2 * 3 + 16 + 5) * U
    assert rounding.margin(dist, None) == pytest.approx(2 * unit * 25 * 4 + 3e-20 + 1e-20, rel=1e-12, abs=0)


def test_margins_of_listed_pairs_are_twice_a_distance():
    rounding = Rounding(Some(), SimpleNamespace(gamma=1e-20), None, 5.0, None)
    E, relative = (2 * 3 + 16 + 5) * U * np.sqrt(9.0) * 8, (2 * 3 + 16) * U
    for longest in (4.0, 1e-32):
        wanted = 2 * (2 * np.sqrt(longest) * E + E * E + relative * longest) + 1e-20 * longest + 1e-20
        assert rounding.margin(np.array([0.0, longest]), 9.0) == pytest.approx(wanted, rel=1e-12, abs=0)
    assert rounding.margin(np.array([4.0]), -1.0) == pytest.approx(2 * relative * 4, rel=1e-3, abs=0)
    assert rounding.margin(np.empty(0), 9.0) == pytest.approx(2 * E * E + 1e-20, rel=1e-12, abs=0)
    assert rounding.margin_within(9.0) == rounding.margin(np.array([9.0 * 64]), 9.0)


def test_distances_are_off_by_their_roots_their_pairs_and_themselves():
    rounding = Rounding(Some(), None, None, 5.0, None)
    E, relative = (2 * 3 + 16 + 5) * U * np.sqrt(9.0) * np.array([1.0, 8.0]), (2 * 3 + 16) * U
    for dist in ([4.0, 4.0], [1e-32, 1e-30], [-4.0, -1e-32]):
        dist = np.array(dist)
        wanted = 2 * np.sqrt(np.maximum(dist, 0)) * E + E * E + relative * np.abs(dist)
        np.testing.assert_allclose(rounding.distances(dist, 9.0), wanted, rtol=1e-12)
        values, errors = np.zeros(2), np.zeros(2)
        rounding.add_distances(dist, 9.0, -2.0, values, errors)
        np.testing.assert_allclose(errors, 2 * wanted, rtol=1e-12)
        np.testing.assert_array_equal(values, -2 * dist)
    np.testing.assert_allclose(rounding.distances(np.zeros(2), -1.0), 0.0)


def test_the_gap_is_off_by_each_of_its_terms(monkeypatch):
    rounding = Rounding(Some(), SimpleNamespace(gamma=0.25), None, 5.0, None)
    monkeypatch.setattr(rounding, "pull", lambda pull, weight, lam: 1e-3 * weight * lam)
    monkeypatch.setattr(rounding, "element", lambda M: 2e-3)
    margin = 1e-3
    monkeypatch.setattr(rounding, "margin", lambda dist, trace: margin * trace)
    M, plus, pull, lam = np.diag([2.0, 1.0, 0.0]), np.diag([1.0, 1.0, 0.0]), np.diag([1.0, 1.0, -3.0]), 0.5
    dA = 1e-3 * 4 * lam
    away, minus = np.linalg.norm(M - plus / lam), 3.0
    rest = away * dA + dA * dA / (2 * lam) + minus * 2e-3 + 1e-13 * 1e9
    for own, slack in ((True, 3 * 11 * (3e-3 + 4 * U * 0.25) ** 2 / 0.25), (False, 11 * 3e-3)):
        assert rounding.gap(M, pull, plus, None, 1e9, 4.0, lam, own) == pytest.approx(rest + slack, rel=1e-12, abs=0)
    margin = 0.0
    found = rounding.gap(0 * M, plus, plus, None, 0.0, 0.0, 1e9, True)  # alphas are rounded even if margins are exact
    assert found == pytest.approx(3 * 11 * (4 * U * 0.25) ** 2 / 0.25, rel=1e-9, abs=0)


def test_bounds_of_a_smaller_set_are_those_of_its_own_pairs():
    rounding = Rounding(Some(), SimpleNamespace(gamma=0.25), None, 5.0, None, 0.5)
    less = rounding.reduced(0.75, "fewer", np.array([1]))
    assert (less.linear_error, less.triplets, less._reach.tolist()) == (0.75, "fewer", [8.0])
    assert (rounding.linear_error, rounding._reach.tolist()) == (0.0, [1.0, 8.0])
    same = rounding.reduced(0.5)
    assert (same.linear_error, same.triplets) == (0.5, rounding.triplets)
    unlisted, listed = Rounding(Some(3, None), None, None, 5.0, None, 0.5), Some(3, (2.0,))
    less = unlisted.reduced(0.75, listed, None)
    assert (less.linear_error, less.prior_error, less._reach.tolist()) == (0.75, 0.5, [2.0])
    listed.lists_pairs = False
    assert unlisted.reduced(0.75, listed, None)._reach is None


def test_the_error_of_a_gap_at_another_lambda_is_that_of_the_gap_there():
    problem = make_case(3).problem
    M = random_metric(4, 3, "psd", 0.3)
    e = problem.evaluate(M, problem.distances(problem.cone.project(M).factor), 1.0, 0.7)
    e = replace(e, slack=0.5)
    seen = SimpleNamespace(gap=lambda M, pull, plus, dist, gap, *rest: gap, cone=problem.cone, loss=problem.loss)
    assert gap_error(seen, e, 1.0) == e.gap
    assert gap_error(seen, e, 3.0) == pytest.approx(0.5 + problem.cone.gap(M, e.dual_point, 3.0), rel=1e-12)
    assert gap_error(seen, e, 3.0) != pytest.approx(gap_error(seen, e, 1.0), rel=0.01)
