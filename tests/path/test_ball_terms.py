"""Balls between ends, term by term: errors are made up, and large, so that one that is missing shows."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from triscreen.path.balls import SUM, Ball, Between, End, mixture_share, products
from triscreen.path.chain import Chain
from triscreen.problem.rounding import U

PLAIN = SimpleNamespace(prior=None, loss=SimpleNamespace(gamma=0.05))


def metric(rng, shape):
    F = rng.normal(size=shape)
    return F @ F.T if len(shape) == 2 else np.abs(F)


def end(seed, lam, shape=(3, 3), errors=True):
    """An end whose numbers are anybody's."""
    rng = np.random.default_rng(seed)
    dM, dH, doubt, prior = rng.uniform(0.05, 0.5, 4) if errors else np.zeros(4)
    slack, value, dual = rng.uniform(0.1, 2, 3)
    numbers = {"slack": slack, "value": value + 3, "dual_term": dual, "dM": dM, "dH": dH, "doubt": doubt}
    more = {"prior_error": prior, "dist": None, "margin_error": 0.0}
    return End(lam, metric(rng, shape), metric(rng, shape), **numbers, **more)


def problem_with(N):
    return PLAIN if N is None else SimpleNamespace(prior=SimpleNamespace(core=N), loss=PLAIN.loss)


SHAPES = [(3, 3), (4,)]


@pytest.fixture(params=[(shape, prior) for shape in SHAPES for prior in (False, True)], ids=str)
def ends(request):
    shape, prior = request.param
    N = metric(np.random.default_rng(9), shape) if prior else None
    return [end(seed, lam, shape) for seed, lam in enumerate((3.0, 2.2, 1.3, 0.4))], N


def test_a_radius_that_cancels_is_not_too_small():
    """Two residuals that point opposite ways: k is negative, and exact sums are larger than rounded ones."""
    rng, between = np.random.default_rng(0), object.__new__(Between)
    for _ in range(300):
        r1, r2 = rng.uniform(0.1, 3, 2)
        between.squares, between.k = (float(r1 * r1), float(r2 * r2)), float(-2 * r1 * r2)
        p = float(r1 / (r1 + r2))
        a, b, k, share = (Fraction(value) for value in (*between.squares, between.k, p))
        exact = (1 - share) ** 2 * a + share**2 * b + share * (1 - share) * k
        assert Fraction(float(between.square(p))) >= exact


def own(end, lam, N):
    """Q, r^2, doubt and M - C of one end, by the header."""
    C = (0 if N is None else N) + end.H / lam
    dC = end.dH / lam + end.prior_error
    away = np.linalg.norm(end.M - C) + end.dM + dC
    return (end.M + C) / 2, end.slack / lam + away**2 / 4, (end.dM + dC) / 2, end.M - C, end.dM + dC


def test_one_end(ends):
    ends, N = ends
    for one in ends:
        for lam in (one.lam, 0.5, 7.0):
            center, square, doubt, _, _ = own(one, lam, N)
            ball = one.ball(lam, N)
            np.testing.assert_allclose(ball.center, center, rtol=1e-13)
            assert (ball.square, ball.doubt) == pytest.approx((square, doubt), rel=1e-12)
            root = np.sqrt(square)
            extra = 64 * len(center) * U * (np.linalg.norm(center) + root)
            assert ball.radius == pytest.approx(root + doubt + extra, rel=1e-12)
            assert ball.radius > root + doubt


def crossed(one, two):
    """T12 with what errors do to it."""
    errors = one.doubt + np.linalg.norm(one.M) * two.dH + (np.linalg.norm(two.H) + two.dH) * one.dM
    return max(0.0, one.value - two.dual_term + float(np.vdot(one.M, two.H))) + errors


def k_of(one, two, N):
    (_, _, _, D1, e1), (_, _, _, D2, e2) = own(one, one.lam, N), own(two, two.lam, N)
    n1, n2 = np.linalg.norm(D1), np.linalg.norm(D2)
    inner = float(np.vdot(D1, D2)) + n1 * e2 + n2 * e1 + e1 * e2
    return crossed(one, two) / two.lam + crossed(two, one) / one.lam + inner / 2


def test_two_ends(ends):
    ends, N = ends
    for one, two in itertools.pairwise(ends):
        assert one.cross(two) == pytest.approx(crossed(one, two), rel=1e-11)
        between = Between(problem_with(N), one, two)
        assert between.k == pytest.approx(k_of(one, two, N), rel=1e-11)
        r1, r2 = (own(e, e.lam, N)[1] for e in (one, two))
        assert between.squares == pytest.approx((r1, r2), rel=1e-12)
        for share in (0.0, 0.2, 0.7, 1.0):
            lam = one.lam * two.lam / (share * one.lam + (1 - share) * two.lam)
            p = between.share(lam)
            assert p == pytest.approx(share, abs=1e-12)
            square = (1 - p) ** 2 * r1 + p**2 * r2 + p * (1 - p) * between.k
            assert between.square(p) == pytest.approx(square, rel=1e-11)
            ball = between.ball(lam)
            Q1, Q2 = (own(e, e.lam, N)[0] for e in (one, two))
            np.testing.assert_allclose(ball.center, (1 - p) * Q1 + p * Q2, rtol=1e-9, atol=1e-12)
            assert ball.square == pytest.approx(square, rel=1e-9)
            assert ball.doubt >= max(own(e, e.lam, N)[2] for e in (one, two))
            assert between.best(lam).radius <= min(b.radius for b in (ball, one.ball(lam, N), two.ball(lam, N)))
            assert between.reach >= square * (1 - 1e-12)
        assert between.reach == pytest.approx(max(r1, r2, between.k / 2), rel=1e-12)
        assert between.reach > max(r1, r2, between.k / 2)


def test_many_ends_are_each_two(ends):
    ends, N = ends
    chain = Chain(problem_with(N), ends)
    for t, one in enumerate(ends):
        center, square, doubt, _, _ = own(one, one.lam, N)
        np.testing.assert_allclose(chain.centers[t], center, rtol=1e-12)
        assert (chain.squares[t], chain.doubts[t]) == pytest.approx((square, doubt), rel=1e-12)
    for t, (one, two) in enumerate(itertools.pairwise(ends)):
        assert chain.ks[t] == pytest.approx(k_of(one, two, N), rel=1e-11)
        assert chain.ks[t] >= k_of(one, two, N)


def test_without_errors_there_is_still_what_rounding_does():
    """Sums and inner products have errors, too: relative to their terms."""
    one, two = (end(seed, lam, errors=False) for seed, lam in ((1, 2.0), (2, 1.0)))
    assert one.cross(two) > crossed(one, two)
    size, pull = np.linalg.norm(one.M), np.linalg.norm(two.H)
    more = SUM * (one.value + abs(two.dual_term)) + (SUM + 9 * U) * size * pull
    assert one.cross(two) - crossed(one, two) == pytest.approx(more, rel=1e-2)
    assert products(one.M) == SUM + 9 * U
    assert Between(PLAIN, one, two).k > k_of(one, two, None)
    assert one.ball(2.0, None).square >= own(one, 2.0, None)[1]


def test_what_lies_in_two_balls_lies_in_the_third():
    rng, smaller = np.random.default_rng(0), 0
    for _ in range(300):
        c1, c2 = rng.normal(size=(2, 3))
        r1, r2 = rng.uniform(0.3, 2.5, 2)
        one, two = Ball(c1, r1 * r1, 0.01), Ball(c2, r2 * r2, 0.02)
        met = one.meet(two)
        assert met.radius <= min(one.radius, two.radius) * (1 + 1e-9)
        smaller += met.radius < 0.99 * min(one.radius, two.radius)
        X = c1 + one.radius * rng.uniform(0, 1, (200, 1)) ** (1 / 3) * _unit(rng, 200)
        X = np.concatenate([X, _corner(c1, c2, one.radius, two.radius, rng)])
        inside = (np.linalg.norm(X - c1, axis=1) <= one.radius) & (np.linalg.norm(X - c2, axis=1) <= two.radius)
        assert (np.linalg.norm(X[inside] - met.center, axis=1) <= met.radius * (1 + 1e-12)).all()
    assert smaller > 50


def _unit(rng, count):
    X = rng.normal(size=(count, 3))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def _corner(c1, c2, r1, r2, rng):
    """Points where both spheres meet, a hair inside."""
    D = np.linalg.norm(c2 - c1)
    x = (D * D + r1 * r1 - r2 * r2) / (2 * D)
    if abs(x) >= r1:
        return np.empty((0, 3))
    axis = (c2 - c1) / D
    across = _unit(rng, 20)
    across -= (across @ axis)[:, None] * axis
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    return c1 + x * axis + (1 - 1e-9) * np.sqrt(r1 * r1 - x * x) * across


def test_balls_with_one_centre_are_the_smaller_one():
    one, two = Ball(np.ones(3), 1.0, 0.0), Ball(np.ones(3), 4.0, 0.0)
    assert one.meet(two) is one
    assert two.meet(one) is one


def test_shares_end_at_the_ends():
    assert mixture_share(3.0, 2.0, 1.0) == 0.0
    assert mixture_share(0.5, 2.0, 1.0) == 1.0
    assert mixture_share(2.0, 2.0, 2.0) == 0.0
    th = 0.25
    lam = (1 - th) * 2.0 + th * 1.0
    assert mixture_share(lam, 2.0, 1.0) == pytest.approx(th * 1.0 / lam, rel=1e-14)


def corner_problem(change, weight=3.0, gamma=0.5):
    seen = []

    def corner_change(first, second, width, threads):
        seen.append((first, second, width, threads))
        return change

    triplets = SimpleNamespace(corner_change=corner_change, total_weight=weight)
    return SimpleNamespace(prior=None, loss=SimpleNamespace(gamma=gamma), triplets=triplets, threads="threads"), seen


def with_distances(one, name, error):
    return replace(one, dist=name, margin_error=error)


@pytest.mark.parametrize("errors", [(0.2, 0.1), (0.1, 0.2), (0.0, 0.0)])
def test_corners_take_off_what_they_are_worth_and_add_what_margins_may_be_off(errors):
    """k less by (g/2)(1/l1 + 1/l2) - (g/8)(l1 - l2)^2/(l1 l2^2) for each; squares more by W (3 e + 2 e^2/g)/l2."""
    change, weight, gamma, l1, l2 = 0.7, 3.0, 0.5, 2.0, 1.5
    problem, seen = corner_problem(change, weight, gamma)
    one, two = with_distances(end(1, l1), "first", errors[0]), with_distances(end(2, l2), "second", errors[1])
    between, e = Between(problem, one, two), max(errors)
    assert seen == [("first", "second", gamma, "threads")]
    doubt = weight * (3 * e + 2 * e * e / gamma) / l2
    saved = change * (gamma / 2 * (1 / l1 + 1 / l2) - gamma / 8 * (l1 - l2) ** 2 / (l1 * l2 * l2))
    assert between.k == pytest.approx(k_of(one, two, None) - saved + 2 * doubt, rel=1e-9)
    assert between.squares == pytest.approx([own(x, x.lam, None)[1] + doubt for x in (one, two)], rel=1e-12)
    assert (between.first.dist, between.second.dist) == (None, None)
    if not e:  # what is taken off is a little less
        assert between.k > k_of(one, two, None) - saved


@pytest.mark.parametrize(("first", "second", "l2"), [(None, "b", 1.5), ("a", None, 1.5), ("a", "b", 0.2)])
def test_corners_change_nothing_where_distances_are_unknown_or_lambdas_far_apart(first, second, l2):
    problem, seen = corner_problem(0.7)
    one, two = with_distances(end(1, 2.0), first, 0.2), with_distances(end(2, l2), second, 0.1)
    between = Between(problem, one, two)
    assert not seen
    assert between.k == pytest.approx(k_of(one, two, None), rel=1e-9)
    assert between.squares == pytest.approx([own(x, x.lam, None)[1] for x in (one, two)], rel=1e-12)


def test_what_corners_are_worth_is_what_a_mixture_of_them_is():
    """In the corner at both ends s of the mixture is (g/2)(th - p)^2 (a2 - a1)^2, never above the formula."""
    gamma = 0.5
    for l1, l2 in ((2.0, 1.5), (2.0, 1.9), (1.0, 0.6)):
        for th in np.linspace(0, 1, 41):
            lam = (1 - th) * l1 + th * l2
            p = th * l2 / lam
            apart = gamma / 2 * (th - p) ** 2
            rest = gamma / 8 * (l1 - l2) ** 2 / (l1 * l2 * l2)
            assert apart / lam <= p * (1 - p) * rest * (1 + 1e-12)


NUMBERS = {"margin": 0.11, "element": 0.07, "pull": 0.05, "linear": 0.013}


def made_up_problem(own, prior):
    """A problem, and an evaluation of it, whose bounds of rounding are large numbers."""
    rng = np.random.default_rng(4)
    gamma, weight = 0.3, 5.0
    sums = SimpleNamespace(smoothing=gamma if own else 2 * gamma, alpha=2.5)
    rounding = SimpleNamespace(
        margin=lambda dist, trace: NUMBERS["margin"] * trace, element=lambda M: NUMBERS["element"],
        pull=lambda pull, alpha, lam: NUMBERS["pull"] * alpha * lam, sum_of_h=lambda w: NUMBERS["linear"] * w,
        margin_within=lambda trace: NUMBERS["margin"] * trace,
    )  # fmt: skip
    cone = SimpleNamespace(cut_off_inner=lambda point, M: 0.9)
    loss = SimpleNamespace(gamma=gamma, value=lambda sums: 7.0, dual_term=lambda sums: 6.0)
    triplets = SimpleNamespace(total_weight=weight, lists_triplets=True)
    N = SimpleNamespace(error=0.21, core=metric(rng, (3, 3))) if prior else None
    problem = SimpleNamespace(cone=cone, rounding=rounding, loss=loss, triplets=triplets, prior=N)
    A, plus, pull = (metric(rng, (3, 3)) for _ in range(3))
    point = SimpleNamespace(plus=plus)
    M = metric(rng, (3, 3))
    return problem, SimpleNamespace(M=M, dual_point=point, pull=pull, A=A, sums=sums, dist="distances", slack=0.4)


@pytest.mark.parametrize("own_alphas", [True, False])
@pytest.mark.parametrize("prior", [True, False])
def test_an_end_has_the_rounding_of_all_its_terms(own_alphas, prior):
    """T = slack + <G, M>, and what dM, dH and the margins can do to it."""
    problem, e = made_up_problem(own_alphas, prior)
    lam, weight, gamma = 1.7, 5.0, 0.3
    found = End.at(problem, e, lam)
    np.testing.assert_allclose(found.H, e.dual_point.plus - e.pull + e.A)
    G, size, dH = found.H - e.A, np.linalg.norm(e.M), NUMBERS["pull"] * 2.5 * lam
    off = NUMBERS["margin"] * np.trace(e.M)
    margins = 3 * weight * (off + 4 * U * gamma) ** 2 / gamma if own_alphas else weight * off
    slack = margins + 0.4 + 0.9 + np.linalg.norm(G) * NUMBERS["element"] + (size + NUMBERS["element"]) * dH
    assert found.slack == pytest.approx(slack, rel=1e-12)
    assert (found.dM, found.dH) == (NUMBERS["element"], dH)
    assert (found.lam, found.value, found.dual_term, found.margin_error) == (lam, 7.0, 6.0, off)
    assert found.doubt == pytest.approx(weight * off, rel=1e-12)
    assert found.doubt > weight * off
    assert found.prior_error == (0.21 if prior else 0.0)
    assert found.dist == ("distances" if own_alphas else None)
    problem.triplets.lists_triplets = False
    assert End.at(problem, e, lam).dist is None
    calm = SimpleNamespace(**{**vars(problem.rounding), **dict.fromkeys(("margin", "element", "pull"), lambda *_: 0.0)})
    problem.rounding = calm
    assert End.at(problem, e, lam).slack > e.slack + 0.9  # sums are rounded, too


@pytest.mark.parametrize("own_alphas", [True, False])
@pytest.mark.parametrize("prior", [True, False])
def test_an_end_that_a_path_kept_has_the_rounding_of_all_its_terms(own_alphas, prior):
    problem, e = made_up_problem(own_alphas, prior)
    lam, weight, gamma, dH, pulled = 1.7, 5.0, 0.3, 0.04, 1.9
    H = metric(np.random.default_rng(8), (3, 3))
    smoothing = gamma if own_alphas else 2 * gamma
    row = SimpleNamespace(pull=(H, dH, pulled), primal=9.0, smoothing=smoothing, slack=0.4, dual=2.0, loss=3.0)
    found = End.kept(problem, row, e.M, lam)
    size, width = np.linalg.norm(e.M), np.trace(e.M)
    off, dM = NUMBERS["margin"] * width, 2 * NUMBERS["element"]
    margins = 3 * weight * (off + 4 * U * gamma) ** 2 / gamma if own_alphas else weight * off
    assert found.slack == pytest.approx(margins + 0.4 + pulled * dM + (size + dM) * dH, rel=1e-12)
    assert found.doubt == pytest.approx(weight * off + size * dH + 2 * NUMBERS["linear"] * weight * width, rel=1e-12)
    C = H / lam
    penalty = lam / 2 * np.vdot(C, C + (2 * problem.prior.core if prior else 0))
    assert found.dual_term == pytest.approx(2.0 + penalty, rel=1e-11)
    assert found.dual_term < 2.0 + penalty
    assert (found.dM, found.dH, found.value, found.dist) == (dM, dH, 3.0, None)
    assert (found.prior_error, found.margin_error) == (0.21 if prior else 0.0, off)
