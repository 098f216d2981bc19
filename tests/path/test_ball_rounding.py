"""What balls add for rounding itself, with nothing else in the way."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from triscreen.path.balls import SUM, Ball, Between, End, products
from triscreen.path.chain import Chain
from triscreen.problem.rounding import U


def near(value, rel=1e-6):
    """Numbers that are tiny are compared like all others."""
    return pytest.approx(value, rel=rel, abs=0)


NO_PRIOR = SimpleNamespace(prior=None, loss=SimpleNamespace(gamma=0.05))


def exact_end(lam, M, H, slack=0.0, value=0.0, dual_term=0.0, **errors):
    zero = dict.fromkeys(("dM", "dH", "doubt", "prior_error", "margin_error"), 0.0)
    return End(lam, M, H, slack, value, dual_term, **{**zero, **errors}, dist=None)


def calm_problem(gamma=0.3, prior=None, **bounds):
    """Nothing is off, but for what is said."""
    zero = dict.fromkeys(("margin", "margin_within", "element", "pull", "sum_of_h"), 0.0)
    rounding = SimpleNamespace(**{name: (lambda *_, v=value: v) for name, value in {**zero, **bounds}.items()})
    return SimpleNamespace(
        rounding=rounding, loss=SimpleNamespace(gamma=gamma), triplets=SimpleNamespace(total_weight=5.0), prior=prior
    )


def a_row(**numbers):
    plain = {
        "primal": 0.0,
        "smoothing": 0.3,
        "slack": 0.0,
        "dual": 0.0,
        "loss": 0.0,
        "pull": (np.zeros((2, 2)), 0.0, 0.0),
    }
    return SimpleNamespace(**{**plain, **numbers})


@pytest.mark.parametrize("dual", [2.0, -2.0])
@pytest.mark.parametrize("prior", [None, SimpleNamespace(core=-3 * np.eye(2), error=0.0)])
def test_what_an_end_adds_up_is_no_more_than_it_is(dual, prior):
    """With a dual value, and a penalty, of either sign."""
    lam, H = 1.7, np.diag([2.0, 1.0])
    found = End.kept(calm_problem(prior=prior), a_row(dual=dual, pull=(H, 0.0, 0.0)), np.eye(2), lam)
    C = (H / lam).astype(np.longdouble)
    penalty = lam / 2 * (C * (C if prior is None else C + 2 * prior.core)).sum()
    assert (penalty < 0) == (prior is not None)
    assert dual + penalty - found.dual_term == near(10 * SUM * (2 + abs(penalty)), rel=1e-2)


def test_alphas_are_rounded_even_if_margins_are_exact():
    gamma = 0.3
    found = End.kept(calm_problem(gamma), a_row(), np.eye(2), 1.0)
    assert found.slack == near(3 * 5 * (4 * U * gamma) ** 2 / gamma)
    evaluation = SimpleNamespace(
        M=np.eye(2), dual_point=SimpleNamespace(plus=np.zeros((2, 2))), pull=np.zeros((2, 2)), A=np.zeros((2, 2)),
        sums=SimpleNamespace(smoothing=gamma, alpha=0.0), dist=None, slack=0.0,
    )  # fmt: skip
    problem = calm_problem(gamma)
    problem.cone = SimpleNamespace(cut_off_inner=lambda *_: 0.0)
    problem.triplets.lists_triplets = True
    problem.loss = SimpleNamespace(gamma=gamma, value=lambda _: 0.0, dual_term=lambda _: 0.0)
    assert End.at(problem, evaluation, 1.0).slack == near(3 * 5 * (4 * U * gamma) ** 2 / gamma)
    evaluation.slack, problem.cone.cut_off_inner = 0.5, lambda *_: 0.25
    found = End.at(problem, evaluation, 1.0).slack
    assert found - 0.75 == near(SUM * (0.75 + 0.5), rel=1e-2)


def test_sums_that_a_path_kept_are_rounded():
    found = End.kept(calm_problem(), a_row(slack=0.5, primal=8.0), np.eye(2), 1.0)
    assert found.slack - 0.5 == near(SUM * 0.5, rel=1e-2)
    assert found.doubt == near(SUM * 8)
    coarse = calm_problem(margin_within=0.25, element=0.5, sum_of_h=2.0)
    found = End.kept(coarse, a_row(smoothing=0.6, primal=8.0), np.diag([1.0, -3.0]), 1.0)
    assert found.doubt == near(5 * 0.25)  # the trace is negative: no width
    assert found.dM == 1.0


def test_bytes_are_those_of_all_arrays():
    M = np.eye(3)
    assert exact_end(1.0, M, M).nbytes == 144
    one = exact_end(1.0, M, M)
    object.__setattr__(one, "dist", np.zeros(10))
    assert one.nbytes == 224


def test_two_ends_add_what_their_inner_products_and_sums_are_rounded_by():
    rng = np.random.default_rng(0)
    ends = [exact_end(lam, *(1e3 * rng.normal(size=(2, 3, 3)))) for lam in (2.0, 1.5)]
    one, two = ends
    D1, D2 = ((end.M - end.H / end.lam).astype(np.longdouble) for end in ends)
    cross = np.longdouble(one.cross(two)) / 1.5 + np.longdouble(two.cross(one)) / 2
    inner = products(one.M) * float(np.linalg.norm(D1.astype(float)) * np.linalg.norm(D2.astype(float)))
    wanted = cross * SUM + inner / 2
    plain = cross + (D1 * D2).sum() / 2
    assert float(Between(NO_PRIOR, one, two).k - plain) == near(float(wanted), rel=0.05)
    assert float(Chain(NO_PRIOR, ends).ks[0] - plain) == near(float(wanted), rel=0.05)
    far = float(np.square(D1).sum() / 4)
    assert one.ball(2.0, None).square - far == near(2 * SUM * far, rel=0.05)
    assert Chain(NO_PRIOR, ends).squares[0] - far == near(2 * SUM * far, rel=0.05)


@pytest.mark.parametrize("value", [-7.0, 7.0])
@pytest.mark.parametrize("dual", [-4.0, 4.0])
def test_the_slack_of_two_ends_is_rounded_by_its_terms(value, dual):
    zero = np.zeros((2, 2))
    ends = [exact_end(1.0, zero, zero, value=abs(value), dual_term=dual), exact_end(0.5, zero, zero, dual_term=dual)]
    crossed = max(0.0, abs(value) - dual)
    assert ends[0].cross(ends[1]) - crossed == near(SUM * (abs(value) + abs(dual)), rel=1e-2)
    k = Between(NO_PRIOR, *ends).k
    assert Chain(NO_PRIOR, ends).ks[0] == near(k, rel=1e-13)
    M, H = np.diag([1e8, 0.0]), np.diag([0.0, 1e8])  # nothing but the rounding of a product
    one, two = exact_end(1.0, M, zero), exact_end(1.0, zero, H)
    assert one.cross(two) == near((SUM + 4 * U) * 1e16)


def test_errors_of_both_ends_meet():
    """What an error of one end is times the other one's size, and their product."""
    M, zero = np.diag([3.0, 4.0]), np.zeros((2, 2))
    one, two = exact_end(1.0, M, zero, dM=0.5, doubt=0.125), exact_end(1.0, zero, 2 * M, dH=0.25)
    assert one.cross(two) == near(50.0 + 0.125 + 5 * 0.25 + (10 + 0.25) * 0.5)


def test_a_radius_is_larger_by_what_the_centre_is_rounded_by():
    large, small = 1e16 * np.eye(3), np.zeros((3, 3))
    assert Ball(large, 0.0, 0.0).radius == near(64 * 3 * U * np.linalg.norm(large))
    assert Ball(small, 4.0, 0.5).radius - 2.5 == near(2 * SUM + 64 * 3 * U * 2, rel=1e-2)


def test_a_ball_between_two_ends_has_the_rounding_of_its_share():
    one = exact_end(2.0, 1e16 * np.eye(2), 2e16 * np.eye(2), dM=3.0)
    two = exact_end(1.0, -2e16 * np.eye(2), -2e16 * np.eye(2), dH=1.0)
    between = Between(NO_PRIOR, one, two)
    apart = np.linalg.norm(between.balls[0].center - between.balls[1].center)
    ball = between.ball(1.5)
    assert ball.doubt == near(1.5 + 8 * U * apart)
    between.squares, between.k = (4.0, 9.0), -30.0
    root = np.sqrt(between.square(between.share(1.5)))
    wanted = (float(root) + 8 * U * np.sqrt(30.0)) ** 2
    assert between.ball(1.5).square == near(wanted, rel=1e-14)
    between.squares, between.k = (1e-20, 1e-20), 1e10
    assert between.ball(2.0).square == near((1e-10 + 8 * U * 1e5) ** 2, rel=1e-3)
    between.squares, between.k = (4.0, 9.0), 1e34
    assert between.square(0.5) - 2.5e33 == near(SUM * 2.5e33, rel=0.05)


def test_what_lies_in_two_balls_has_the_smallest_ball_that_the_formula_gives():
    """r^2 = (1 - t) r1^2 + t r2^2 - t (1 - t) D^2 at the best t; where no t is better the smaller one stays."""
    rng, met_both = np.random.default_rng(1), 0
    for _ in range(200):
        c1, c2 = rng.normal(size=(2, 3))
        one, two = (Ball(c, rng.uniform(0.1, 2) ** 2, 0.0) for c in (c1, c2))
        met = one.meet(two)
        assert two.meet(one).radius == near(met.radius)
        small, large = sorted((one, two), key=lambda ball: ball.radius)
        D, t = np.linalg.norm(c1 - c2), np.linspace(0, 1, 20001)
        squares = (1 - t) * small.square + t * large.square - t * (1 - t) * D * D
        best = squares.argmin()
        if best == 0 or squares[best] <= 0:
            assert met is small
        else:
            met_both += 1
            assert met.square == pytest.approx(squares[best], abs=1e-6)
            np.testing.assert_allclose(met.center, (1 - t[best]) * small.center + t[best] * large.center, atol=2e-3)
    assert met_both > 20


def test_balls_that_hardly_meet_are_not_made_too_small():
    """What is left of the sum is enlarged by the rounding of its terms; a ball that is apart, by nothing at all."""
    one, two = Ball(np.zeros(2), 1.0, 0.0), Ball(np.array([1.5, 0.0]), 1.0, 0.0)
    met, r, D = one.meet(two), one.radius, 1.5 * (1 - SUM)
    plain = np.longdouble(r) ** 2 - np.longdouble(D) ** 2 / 4
    assert float(met.square - plain) == near(8 * SUM * r * r, rel=0.05)
    far = Ball(np.array([5.0, 0.0]), 1.0, 0.0)
    assert one.meet(far) is one


def test_the_square_of_a_radius_is_rounded_by_its_terms():
    between = object.__new__(Between)
    between.squares, between.k = (1.0, 4.0), -2.0
    for p in (0.25, 0.5):
        own, both = (1 - p) ** 2 * 1.0 + p**2 * 4.0, p * (1 - p) * -2.0
        assert float(between.square(p) - (own + both)) == near(SUM * (own + abs(both)), rel=1e-2)
    between.k = -100.0
    assert between.square(0.5) == 0.0
    between.k = 3.0
    assert between.reach - 4 == near(4 * SUM, rel=1e-2)


def test_an_end_that_carries_a_prior_has_its_error_twice():
    """In C, and so in half of the centre."""
    N, H = np.eye(2), 2 * np.eye(2)
    one = exact_end(2.0, 5 * np.eye(2), H, prior_error=0.5, dH=0.25)
    C, dC = one.lagrangian(4.0, N)
    np.testing.assert_array_equal(C, 1.5 * np.eye(2))
    assert dC == 0.25 / 4 + 0.5
    ball = one.ball(4.0, N)
    assert ball.doubt == dC / 2
    assert ball.square == near((np.linalg.norm(3.5 * np.eye(2)) + dC) ** 2 / 4)


def test_margins_that_a_path_kept_are_rounded_with_the_rest():
    found = End.kept(calm_problem(margin_within=0.5), a_row(smoothing=0.6), np.eye(2), 1.0)
    assert found.slack - 2.5 == near(SUM * 2.5, rel=0.05)


def test_a_ball_at_one_end_has_the_rounding_of_the_share_of_the_other_one():
    zero = np.zeros((2, 2))
    between = Between(NO_PRIOR, exact_end(2.0, zero, zero), exact_end(1.0, zero, zero))
    for squares in ((1e30, 0.0), (0.0, 1e30)):
        between.squares, between.k = squares, 0.0
        lam = 1.0 if squares[0] else 2.0
        assert between.ball(lam).square == near((8 * U * 1e15) ** 2)


def test_the_rounding_of_alphas_comes_on_top_of_that_of_margins():
    gamma, zero = 0.25, np.zeros((2, 2))
    problem = calm_problem(gamma, margin=4 * U * gamma, margin_within=4 * U * gamma)
    problem.cone = SimpleNamespace(cut_off_inner=lambda *_: 0.0)
    problem.triplets.lists_triplets = True
    problem.loss = SimpleNamespace(gamma=gamma, value=lambda _: 0.0, dual_term=lambda _: 0.0)
    sums = SimpleNamespace(smoothing=gamma, alpha=0.0)
    point = SimpleNamespace(plus=zero)
    e = SimpleNamespace(M=np.eye(2), dual_point=point, pull=zero, A=zero, sums=sums, dist=None, slack=0.0)
    wanted = 3 * 5 * (8 * U * gamma) ** 2 / gamma
    assert End.at(problem, e, 1.0).slack == near(wanted)
    assert End.kept(problem, a_row(smoothing=gamma), np.eye(2), 1.0).slack == near(wanted)
