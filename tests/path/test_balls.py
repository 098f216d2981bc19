"""Balls for every lambda between two metrics: the optimum is inside, with far more accurate solves as judges."""

from __future__ import annotations

import numpy as np
import pytest

import triscreen as ts
from triscreen.path import balls
from triscreen.problem.units import LAMBDA, METRIC


def some_problem(seed):
    """A small problem of any kind: sets of triplets, losses, cones, priors, weights, scales, features that repeat."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(12, 40)), int(rng.integers(1, 6))
    y = np.arange(n) % int(rng.integers(2, 4))
    X = rng.normal(size=(n, d)) + 0.7 * rng.normal(size=(4, d))[y] * rng.integers(0, 2)
    X *= 2.0 ** rng.integers(-3, 4)
    if rng.random() < 0.2:
        X = np.hstack([X, X[:, :1]])  # reduced to the span
    if rng.random() < 0.2:
        X[1] = X[0]
    kind = rng.integers(4)
    if kind == 0:
        T = ts.knn_triplets(X, y, int(rng.integers(1, 4)))
    elif kind == 1:
        T = ts.all_triplets(X, y)
    else:
        rows = ts.knn_triplets(X, y, 3).indices()
        T = ts.given_triplets(rows, rng.uniform(0.1, 2, len(rows)) if kind == 2 else None)
    loss = ts.Hinge() if rng.random() < 0.25 else ts.SmoothedHinge(float(rng.choice([0.01, 0.05, 0.5, 1.0])))
    cone = "diagonal" if rng.random() < 0.3 else "psd"
    size = 1.0 / np.square(X).mean()
    prior = None
    if rng.random() < 0.3:
        N = rng.uniform(0, 2, X.shape[1]) if cone == "diagonal" else np.cov(rng.normal(size=(X.shape[1], 20)))
        prior = size * rng.choice([0.01, 0.3]) * (N if cone == "diagonal" else np.atleast_2d(N))
    return ts.Problem(X, T, loss=loss, cone=cone, prior=prior, n_jobs=1), rng


def away(problem, path, lam, tol=1e-11):
    """Return (how far the optimum is from the ball's centre, within what; its radius), or None: too hard to judge."""
    ball = path.ball(lam)
    with np.testing.suppress_warnings() as quiet:
        quiet.filter(ts.ConvergenceWarning)
        exact = ts.solve(problem, lam, tol=tol, start=path.at(lam).M, max_iter=3000)
    doubt = np.sqrt(2 * (exact.gap + exact.rounding) / lam)
    return np.linalg.norm(exact.M - ball.center), doubt, ball.radius


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(60))
def test_the_optimum_is_inside(seed):
    problem, rng = some_problem(seed)
    if problem.lambda_max() == 0:
        pytest.skip("M* is zero, or the prior, everywhere")
    tol = float(rng.choice([1e-2, 1e-4, 1e-6, 1e-9]))
    path = ts.solve_path(problem, ratio=float(rng.choice([0.5, 0.8, 0.95])), n_lambdas=12, tol=tol)
    for _ in range(3):
        t, p = int(rng.integers(len(path) - 1)), rng.choice([0.0, 1e-9, 1.0, rng.random()])
        lam = float(path.lambdas[t] ** (1 - p) * path.lambdas[t + 1] ** p)
        lam = min(max(lam, path.lambdas[-1]), path.lambdas[0])
        distance, doubt, radius = away(problem, path, lam)
        assert distance <= radius + doubt


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(60))
def test_ends_that_the_walk_kept(seed):
    """Without another pass: nearly the same numbers, errors on the safe side, and the optimum inside."""
    problem, rng = some_problem(seed)
    if problem.lambda_max() == 0 or not problem.triplets.lists_triplets:
        pytest.skip("no path, or nothing kept")
    screening = (None, "auto", ts.Screening(ranges=True), ts.Screening(bounds=("rrpb", "pgb"), every=2))[seed % 4]
    tol = float(rng.choice([1e-2, 1e-4, 1e-6, 1e-9]))
    ratio = float(rng.choice([0.5, 0.8, 0.95]))
    path = ts.solve_path(problem, ratio=ratio, n_lambdas=12, tol=tol, screening=screening)
    N, units = None if problem.prior is None else problem.prior.core, problem.units
    for _ in range(3):
        t = int(rng.integers(len(path) - 1))
        kept, anew = ([make(number, problem) for number in (t, t + 1)] for make in (path._quick_end, path._end))
        for one, other in zip(kept, anew, strict=True):
            size = max(one.value, 1e-3 * problem.triplets.total_weight)
            assert abs(one.value - other.value) <= 1e-9 * size + other.doubt + one.doubt
            assert np.allclose(one.H, other.H, atol=1e-8 * np.abs(other.H).max() + 2 * (one.dH + other.dH))
            assert abs(one.slack - other.slack) <= 1e-8 * size
            assert one.dual_term <= other.dual_term + 1e-9 * size
        assert all(end.cross(kept[0]) >= -1e-9 for end in kept)
        between = balls.Between(problem, *kept)
        lam = float(rng.uniform(*path.lambdas[[t + 1, t]]))
        for ball in (between.ball(units.into(lam, LAMBDA)), kept[0].ball(units.into(lam, LAMBDA), N)):
            exact = ts.solve(problem, lam, tol=1e-11, start=path.at(lam).M, max_iter=3000)
            off = problem.from_core(ball.center) - exact.M
            doubt = np.sqrt(2 * (exact.gap + exact.rounding) / lam)
            assert np.linalg.norm(off) <= units.out(ball.radius, METRIC) + doubt


def slack_of(margins, alphas, weights, gamma):
    """The sum of w (l(m) - a (1 - m) + (g/2) a^2), triplet by triplet."""
    loss = ts.Hinge() if gamma == 0 else ts.SmoothedHinge(gamma)
    values = np.array([loss(m) for m in margins])
    return float(weights @ (values - alphas * (1 - margins) + 0.5 * gamma * alphas**2))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(40))
def test_sums_triplet_by_triplet(seed):
    """What ends know of each other's slack, and of changes in the corner, without a look at triplets."""
    problem, rng = some_problem(seed)
    T, gamma = problem.triplets, problem.loss.gamma
    if problem.lambda_max() == 0 or not T.lists_triplets:
        pytest.skip("no path, or no list to compare with")
    path = ts.solve_path(problem, ratio=0.7, n_lambdas=8, tol=1e-3)
    t = int(rng.integers(len(path) - 1))
    ends = [path._end(number, problem) for number in (t, t + 1)]
    H = np.array([np.outer(a, a) - np.outer(b, b) for a, b in (
        (T.points[i] - T.points[k], T.points[i] - T.points[j]) for i, j, k in T.local_indices())])  # fmt: skip
    weights = np.ones(len(H)) if T.weights is None else T.weights
    full = [np.diag(end.M) if end.M.ndim == 1 else end.M for end in ends]
    margins = [np.einsum("tij,ij->t", H, M) for M in full]
    alphas = [np.clip((1 - m) / path._rows[t + s].smoothing, 0, 1) for s, m in enumerate(margins)]
    for i in range(2):
        for j in range(2):
            A = np.einsum("t,tij->ij", weights * alphas[j], H)
            G = (np.diag(ends[j].H) if ends[j].H.ndim == 1 else ends[j].H) - A
            if ends[j].H.ndim == 1:
                G = np.diag(np.diag(G))
            wanted = slack_of(margins[i], alphas[j], weights, gamma) + float(np.vdot(G, full[i]))
            found = ends[i].slack if i == j else ends[i].cross(ends[j])
            size = weights.sum() * (1 + np.abs(margins[i]).max())
            assert wanted - 1e-12 * size <= found <= wanted + 1e-8 * size
    if ends[0].dist is not None:
        both = (alphas[0] > 0) & (alphas[0] < 1) & (alphas[1] > 0) & (alphas[1] < 1)
        wanted = float(weights[both] @ np.square(alphas[0] - alphas[1])[both])
        found = T.corner_change(ends[0].dist, ends[1].dist, gamma, problem.threads)
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_balls_are_small_and_no_smaller_than_they_must_be():
    """Two ends together are far better than either; and some optimum lies near the surface, so that errors show."""
    nearest, gains = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(60, 4)), np.arange(60) % 2
        X[:, 0] += y
        problem = ts.Problem(X, ts.knn_triplets(X, y, 4), n_jobs=1)
        path = ts.solve_path(problem, ratio=0.95, n_lambdas=15, tol=1e-10)
        for t in range(3, 14, 3):
            lam = float(np.sqrt(path.lambdas[t] * path.lambdas[t + 1]))
            distance, _, radius = away(problem, path, lam)
            nearest.append(distance / radius)
            ends = [path._end(number, problem) for number in (t, t + 1)]
            gains.append(min(end.ball(lam, None).radius for end in ends) / radius)
    assert max(nearest) > 0.3
    assert np.median(gains) > 1.5


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("broken", ["cross", "one end", "inner", "corners"])
def test_a_missing_term_would_show(broken, monkeypatch):
    """Each term of the radius is needed: without it some optimum is outside."""
    if broken == "cross":
        monkeypatch.setattr(balls.End, "cross", lambda self, other: 0.0)
    elif broken == "one end":
        whole = balls.End.ball

        def half(self, lam, N):
            ball = whole(self, lam, N)
            return balls.Ball(ball.center, 0.2 * ball.square, ball.doubt)

        monkeypatch.setattr(balls.End, "ball", half)
    elif broken == "inner":
        monkeypatch.setattr(balls.Between, "square", lambda self, p: 0.05 * abs(self.k) * p * (1 - p))
    elif broken == "corners":  # twice what may be saved
        saved = balls.Between._corners
        monkeypatch.setattr(balls.Between, "_corners", lambda self, problem: (2 * saved(self, problem)[0], 0.0))
    outside, tol = 0, 1e-2 if broken == "one end" else 1e-8
    loss = ts.SmoothedHinge(1.0 if broken == "corners" else 0.01)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(50, 3)), np.arange(50) % 2
        X[:, 0] += y
        problem = ts.Problem(X, ts.knn_triplets(X, y, 4), loss=loss, n_jobs=1)
        path = ts.solve_path(problem, ratio=0.6, n_lambdas=12, tol=tol)
        for t in range(2, len(path) - 1, 2):
            lam = float(np.sqrt(path.lambdas[t] * path.lambdas[t + 1]))
            distance, doubt, radius = away(problem, path, lam)
            outside += distance > radius + doubt
    assert outside


@pytest.mark.filterwarnings("ignore")
def test_the_same_at_every_scale():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    T = ts.knn_triplets(X, y, 3)
    one, two = (ts.solve_path(ts.Problem(s * X, T, n_jobs=1), ratio=0.8, n_lambdas=6) for s in (1.0, 2.0**40))
    lam = float(np.sqrt(one.lambdas[2] * one.lambdas[3]))
    small, large = one.ball(lam), two.ball(lam * 2.0**160)
    assert large.radius * 2.0**80 == pytest.approx(small.radius, rel=1e-12)
    assert np.allclose(large.center * 2.0**80, small.center, rtol=1e-12)


def test_ends_are_evaluated_once_and_bad_input_is_refused(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    problem = ts.Problem(X, ts.knn_triplets(X, y, 3), n_jobs=1)
    path = ts.solve_path(problem, ratio=0.8, n_lambdas=6)
    lam = float(path.lambdas[2:4].mean())
    path.ball(lam)
    ends = dict(path._ends)
    assert sorted(ends) == [2, 3]
    path.ball(0.999 * lam)
    assert path._ends == ends
    with pytest.raises(ts.InputError, match="lam=1e-30: this path goes from"):
        path.ball(1e-30)
    ts.save(path, tmp_path / "a.path")
    loaded = ts.load(tmp_path / "a.path")
    with pytest.raises(ts.InputError, match="problem=None: this path was loaded from a file"):
        loaded.ball(lam)
    with pytest.raises(ts.InputError, match=r"problem has 3 features, .* triplets .*: this path belongs to one with"):
        loaded.ball(lam, ts.Problem(X, ts.knn_triplets(X, y, 2)))
    assert loaded.ball(lam, problem).radius == path.ball(lam).radius
    alone = ts.solve_path(problem, n_lambdas=1)
    assert alone.ball(alone.lambdas[0]).radius >= 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(20))
def test_between_two_lambdas_a_mixture_is_better_than_either(seed, tmp_path):
    problem, rng = some_problem(seed)
    if problem.lambda_max() == 0:
        pytest.skip("M* is zero, or the prior, everywhere")
    path = ts.solve_path(problem, ratio=0.8, n_lambdas=8, tol=1e-8)
    ts.save(path, tmp_path / "a.path")
    loaded = ts.load(tmp_path / "a.path")
    for t in range(len(path) - 1):
        lam = float(rng.uniform(*path.lambdas[[t + 1, t]]))
        mixed, plain = path.at(lam), loaded.at(lam)
        assert mixed.gap <= plain.gap * (1 + 1e-9) + plain.rounding
        assert loaded.at(lam, problem).gap == mixed.gap
        proof = problem.certificate(mixed.M, lam)
        # What follows from both neighbours has mixed alphas, which may be better than those of its margins.
        slack = proof.rounding + mixed.rounding + 1e-9 * mixed.primal
        assert mixed.rounding == 0 or proof.gap <= mixed.gap * (1 + 1e-6) + slack
        if mixed.passes or mixed.stopped_by != "mixture":
            assert mixed.primal == pytest.approx(proof.primal, rel=1e-9)
        assert mixed.primal >= proof.primal * (1 - 1e-9)
        exact = ts.solve(problem, lam, tol=1e-10, start=mixed.M, max_iter=3000)
        assert mixed.primal - mixed.gap <= exact.primal * (1 + 1e-9) + mixed.rounding


@pytest.mark.parametrize("seed", range(3))
def test_an_end_takes_the_factor_that_is_given_or_finds_one(seed):
    problem, _ = some_problem(seed)
    M = np.ones(problem.shape) if problem.cone.name == "diagonal" else np.eye(problem.shape[0])
    factor, smoothing = problem.cone.project(M).factor, problem.loss.smoothings[0]
    found = balls.End.of(problem, M, 1.0, smoothing)
    given = balls.End.of(problem, M, 1.0, smoothing, factor)
    other = balls.End.of(problem, M, 1.0, smoothing, 2 * factor)
    np.testing.assert_array_equal(found.H, given.H)
    assert (found.slack, found.value, found.dual_term) == (given.slack, given.value, given.dual_term)
    assert other.value != found.value
