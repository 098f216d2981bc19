"""Margins in a ball of metrics, and the decisions of screening and of model selection beside them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import triscreen as ts
from problems import make_case
from triscreen.problem.units import METRIC
from triscreen.screening.by_triplet import Screener
from triscreen.verification import margins_in, nearer_between


def exact_margin(points, M):
    """<M, H> in fractions."""
    x = [[Fraction(value) for value in row] for row in np.asarray(points).tolist()]
    M = np.diag(M) if np.ndim(M) == 1 else np.asarray(M)
    u, v = ([a - b for a, b in zip(x[0], other, strict=True)] for other in (x[2], x[1]))
    return sum(Fraction(float(M[r, c])) * (u[r] * u[c] - v[r] * v[c]) for r in range(len(u)) for c in range(len(u)))


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
def test_margins_of_every_metric_in_a_ball(cone):
    """The ends are outside of the margins of random metrics in the ball, and those of its poles come close to them."""
    rng = np.random.default_rng(0)
    for trial in range(60):
        d = int(rng.integers(1, 5))
        points = rng.normal(size=(3, d)) * 10.0 ** rng.integers(-6, 7) + rng.choice([0.0, 1e6])
        if trial % 4 == 0:
            points[2] = points[1]  # H = 0
        F = rng.normal(size=(d, d))
        Q, radius = (F[0] if cone == "diagonal" else F + F.T), float(10.0 ** rng.uniform(-6, 1))
        low, high = margins_in(points, Q, radius)
        assert Fraction(low) <= exact_margin(points, Q) <= Fraction(high)
        u, v = points[0] - points[2], points[0] - points[1]
        H = u * u - v * v if cone == "diagonal" else np.outer(u, u) - np.outer(v, v)
        size = np.linalg.norm(H)
        for direction in (*rng.normal(size=(5, *H.shape)), H, -H):
            length = np.linalg.norm(direction)
            M = Q + (1 - 1e-9) * radius * direction / length if length > 0 else Q
            inside = sum((Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in zip(M.flat, Q.flat, strict=True))
            if inside <= Fraction(radius) ** 2:
                assert Fraction(low) <= exact_margin(points, M) <= Fraction(high)
        doubt = 1e-13 * abs(high) + 1e-30 * np.linalg.norm(Q) * (u @ u) + 1e-290
        assert high - low <= 2 * radius * size * (1 + 1e-6) + doubt


def test_every_decision_of_the_sphere_rule_is_confirmed():
    """A triplet that the rule decides in a sphere is decided in exact arithmetic, in the same sphere."""
    confirmed = 0
    for seed in range(6):
        case = make_case(seed, cone="diagonal" if seed % 3 == 0 else "psd", scale=10.0 ** (seed - 3))
        problem = case.problem
        lam = 0.3 * problem._lambda_max
        M = problem.to_core(ts.solve(problem, 0.3 * problem.lambda_max(), tol=1e-3).M)[0]
        e = problem.evaluate(M, problem.distances(problem.cone.project(M).factor), lam, problem.loss.gamma)
        screener = Screener(problem, ts.Screening(("mid",)), lam, 1e-6)
        sphere = screener._sphere("mid", e, None)
        screener.start(e, None)
        rows = problem.triplets.local_indices()
        for t in np.flatnonzero(screener.zones):
            low, high = margins_in(problem.points[rows[t]], sphere.center, sphere.radius)
            assert low > 1 if screener.zones[t] == 2 else high < 1 - problem.loss.gamma
            confirmed += 1
    assert confirmed > 100


def test_every_decided_comparison_is_confirmed():
    """Held-out comparisons that are right for sure, at the lambdas of a path, in exact arithmetic in its balls."""
    case = make_case(1, n=24, m=120)
    path = ts.solve_path(case.problem, ratio=0.9, n_lambdas=8, tol=1e-8)
    rows = np.array([[i, j, k] for i in range(0, 24, 3) for j in range(1, 24, 5) for k in range(2, 24, 5)
                     if len({i, j, k}) == 3])  # fmt: skip
    bounds = ts.comparison_bounds(path, case.X, rows)
    confirmed = 0
    for t in range(len(path) - 1):
        ball = path.ball(float(path.lambdas[t]))
        for row, outcome in zip(rows, bounds.outcomes[t], strict=True):
            low, high = margins_in(case.X[row], ball.center, ball.radius)
            if outcome:
                assert high > 0 if outcome > 0 else low < 0  # no contradiction: intervals prove more than one ball
                confirmed += low > 0 if outcome > 0 else high < 0
    assert confirmed > 200


@pytest.mark.parametrize(("kind", "cone", "prior"), [("given", "psd", None), ("knn", "diagonal", "identity")])
def test_every_bound_of_a_comparison_is_confirmed_between_its_lambdas(kind, cone, prior):
    """All comparisons that are decided for every lambda between two of a path are so in exact arithmetic."""
    case = make_case(4, n=24, m=120, kind=kind, cone=cone)
    problem = ts.Problem(case.X, case.problem.triplets, cone=cone, prior=prior, loss=case.problem.loss)
    path = ts.solve_path(problem, ratio=0.9, n_lambdas=5, tol=1e-7)
    rng = np.random.default_rng(0)
    rows = np.array([rng.choice(24, 3, replace=False) for _ in range(150)])
    bounds, outcomes = ts.comparison_bounds(path, case.X, rows), []
    for t in range(len(path) - 1):
        between = path._interval(t, problem)
        balls = between.balls
        centers = [problem.from_core(ball.center) for ball in balls]
        off = max(ball.doubt for ball in balls) + (0.0 if problem.prior is None else problem.prior.error)
        units = problem.units.out(1.0, METRIC)
        region = [square * units**2 for square in between.squares], between.k * units**2, off * units
        for row, outcome in zip(rows, bounds.outcomes[t], strict=True):
            if outcome:
                assert nearer_between(case.X[row], centers, *region) == outcome
                outcomes.append(outcome)
    assert outcomes.count(1) > 50
    assert outcomes.count(-1) > 50


def test_between_two_ends_against_many_shares():
    """What is proven holds at every share p in the ball there; and what just fails somewhere is not proven."""
    rng, ends = np.random.default_rng(1), []
    for trial in range(120):
        points, F1, F2 = rng.normal(size=(3, 2)), *rng.normal(size=(2, 2, 2))
        centers = (F1[0], F2[0]) if trial % 2 else (F1 @ F1.T, F2 @ F2.T)
        squares, k, off = 10.0 ** rng.uniform(-5, 0, 2), float(rng.uniform(-0.05, 0.3)), float(rng.choice([0.0, 0.02]))
        found = nearer_between(points, centers, squares, k, off)
        margins = []
        for p in np.linspace(0, 1, 61):
            radius = np.sqrt(max(0.0, (1 - p) ** 2 * squares[0] + p**2 * squares[1] + p * (1 - p) * k)) + off
            margins.append(margins_in(points, (1 - p) * centers[0] + p * centers[1], radius))
        low, high = np.array(margins).T
        if found:
            assert (low > -1e-12).all() if found > 0 else (high < 1e-12).all()
        else:
            assert low.min() < 1e-2
            assert high.max() > -1e-2
        ends.append(found)
    assert min(ends.count(value) for value in (-1, 0, 1)) > 10
    assert nearer_between(points[[0, 1, 1]], centers, squares, k) == 0


def test_ends_that_are_none_are_refused():
    good = np.eye(3), (np.eye(3), np.eye(3)), (1.0, 1.0), 0.0
    some_nan = np.diag([1.0, np.nan, 1.0])
    for place, value in [(0, np.eye(2)), (1, (np.eye(2), np.eye(3))), (2, (-1.0, 1.0)), (2, (1.0,)), (3, np.nan),
                         (1, (np.eye(3),) * 3), (1, (np.eye(3), some_nan)), (1, (some_nan, np.eye(3)))]:  # fmt: skip
        with pytest.raises(ts.InputError):
            nearer_between(*good[:place], value, *good[place + 1 :])


def test_ends_of_two_cones_are_refused():
    """Of the diagonal cone |H| is smaller: with it, balls of matrices would be taken for smaller than they are."""
    points, one, two = [[0.0, 0.0], [1.0, 1.0], [1.5, -1.5]], np.ones(2), np.eye(2)
    assert nearer_between(points, (one, one), (0.9, 0.9), 1.8) == 1
    assert nearer_between(points, (two, two), (0.9, 0.9), 1.8) == 0
    for centers in ((one, two), (two, one)):
        with pytest.raises(ts.InputError, match=r"centers have shapes \(2.*\): both must be"):
            nearer_between(points, centers, (0.9, 0.9), 1.8)


def test_a_norm_that_vanishes_among_large_numbers_is_still_bounded():
    """u = v, but 128 bits cannot tell: the ends are numbers, and hold the margin 0 and little more."""
    low, high = margins_in([[1e30, 0.0], [1e-30, 0.0], [1e-30, 0.0]], np.eye(2), 0.1)
    assert -1e24 < low < 0 < high < 1e24
    low, high = margins_in([[1e30, 0.0], [1e-30, 0.0], [1e-30, 0.0]], np.ones(2), 0.1)
    assert -1e24 < low < 0 < high < 1e24


def test_bad_regions_are_refused():
    points = np.eye(3)
    bad = [(np.eye(2), 1.0, "center"), (np.eye(3), -1.0, "radius=-1.0"), (np.eye(3), np.nan, "radius=nan")]
    for center, radius, words in (*bad, (np.full((3, 3), np.inf), 1.0, "finite")):
        with pytest.raises(ts.InputError, match=words):
            margins_in(points, center, radius)


def test_a_margin_that_is_zero_at_one_end_is_not_proven():
    """One feature, <H, M> = 3 m: at an end whose ball reaches 0 exactly nothing is nearer."""
    points = [[0.0], [1.0], [2.0]]
    for squares, told in (((4.0, 1.0), 0), ((1.0, 4.0), 0), ((3.99, 1.0), 1), ((4.1, 4.1), 0), ((0.0, 0.0), 1)):
        assert nearer_between(points, ([2.0], [2.0]), squares, 2.0) == told
        assert nearer_between([points[0], points[2], points[1]], ([2.0], [2.0]), squares, 2.0) == -told
    assert nearer_between(points, ([2.0], [0.0]), (0.0, 0.0), 0.0) == 0
    assert nearer_between(points, ([0.0], [2.0]), (0.0, 0.0), 0.0) == 0
    assert nearer_between(points, ([2.0], [-2.0]), (0.0, 0.0), 0.0) == 0
    assert nearer_between(points, ([-2.0], [2.0]), (0.0, 0.0), 0.0) == 0
    assert nearer_between(points, ([2.0], [2.0]), (1.0, 1.0), 14.0) == 0  # C = -2 sqrt(A B): it touches zero between
    assert nearer_between(points, ([2.0], [2.0]), (1.0, 1.0), 13.99) == 1
    assert nearer_between(points, ([2.0], [2.0]), (1.0, 1.0), 0.0, off=1.0) == 0
    assert nearer_between(points, ([2.0], [2.0]), (1.0, 1.0), 0.0, off=0.99) == 1


@pytest.mark.parametrize(
    ("points", "center", "radius"),
    [
        ([[np.nan], [1.0], [2.0]], [1.0], 0.0),
        ([[0.0], [1.0], [np.inf]], [1.0], 0.0),
        ([[0.0], [1.0]], [1.0], 0.0),
        (np.zeros((3, 0)), np.zeros(0), 0.0),
        ([[0.0], [1.0], [2.0]], [np.nan], 0.0),
        ([[0.0], [1.0], [2.0]], [1.0, 2.0], 0.0),
        ([[0.0], [1.0], [2.0]], [1.0], -1.0),
        ([[0.0], [1.0], [2.0]], [1.0], np.nan),
    ],
)
def test_regions_with_one_thing_wrong_are_refused(points, center, radius):
    with pytest.raises(ts.InputError):
        margins_in(points, center, radius)
    assert margins_in([[0.0], [1.0], [2.0]], [1.0], 0.0) == pytest.approx((3.0, 3.0))
