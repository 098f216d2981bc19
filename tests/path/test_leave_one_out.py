"""Leave-one-out and influence: every prediction and every bound against problems made and solved anew."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.datasets import Missing, load
from sklearn.datasets import load_iris, load_wine

import triscreen as ts
from held_out import some_data
from interrupting import Interrupter, spread
from leaving_out import PLAIN, distances, one_run, refit, some_arguments, wrong_ones
from problems import comparisons
from triscreen.path import leave_one_out, steps, without
from triscreen.triplets import leaving

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.thinned(2)
@pytest.mark.parametrize("seed", [seed for seed in range(28) if seed not in (0, 4, 9)] + [31])  # but long hinges
def test_predictions_are_those_of_refits(seed):
    assert not one_run(seed)[1]


def real_data(load):
    X, y = load(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.mark.parametrize("load", [load_iris, load_wine])
@pytest.mark.parametrize("t", [8, 25])
def test_real_data(load, t):
    X, y = real_data(load)
    path = ts.solve_path(ts.Problem(X, ts.knn_triplets(X, y, 3), n_jobs=1), ratio=0.7, n_lambdas=26)
    found = path.leave_one_out(t, X, y)
    units = {*range(0, len(X), 9), *found.solved_again[:10].tolist()}
    assert not wrong_ones(found, X, y, units, 3, lambda i: refit(X, y, i, 3, found.lam, PLAIN, path.M(t))[0])
    assert found.n_solves <= 0.6 * len(X)
    assert found.n_refits <= 0.05 * len(X)
    assert f"{found.n_solves} solved again" in repr(found)


def test_all_three_ways_are_taken():
    """By balls, by steps and by solves; with many dimensions and for the hinge there are no steps."""
    X, y = (part[::3] for part in real_data(load_wine))
    problem = ts.Problem(X, ts.knn_triplets(X, y, 3), n_jobs=1)
    path = ts.solve_path(problem, ratio=0.5, n_lambdas=10)
    one = path.leave_one_out(-1, X, y)
    assert {leave_one_out.BY_BALL, leave_one_out.BY_STEPS} <= set(one.how)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "_LARGEST", 1)
        two = path.leave_one_out(-1, X, y)
    assert set(two.how) == {leave_one_out.BY_BALL, leave_one_out.BY_SOLVE}
    assert np.array_equal(one.predictions, two.predictions)
    assert one.n_solves == two.n_solves == np.count_nonzero(two.n_steps)


@pytest.mark.parametrize("seed", range(6))
def test_given_comparisons(seed):
    """A point takes its comparisons along; points that nobody compares still vote."""
    X, rows = comparisons(seed)
    rng = np.random.default_rng(seed)
    X, y = np.vstack([X, rng.normal(size=(6, X.shape[1]))]), rng.integers(0, 3, len(X) + 6)
    rows[0, 2] = rows[0, 1]  # as near as itself
    weights = rng.uniform(0.2, 3.0, len(rows)) if seed % 2 else None
    arguments = some_arguments(rng, X)
    problem = ts.Problem(X, ts.given_triplets(rows, weights), **arguments)
    path = ts.solve_path(problem, ratio=0.5, n_lambdas=8)
    found = path.leave_one_out(-1, X, y)

    def metric_of(i):
        keep = (rows != i).all(axis=1)
        part = ts.Problem(X, ts.given_triplets(rows[keep], None if weights is None else weights[keep]), **arguments)
        return ts.solve(part, found.lam, tol=1e-11, start=path.M(-1), max_iter=3000).M

    assert not wrong_ones(found, X, y, range(0, len(X), 2), 3, metric_of)


def test_all_pairs_of_labelled_points():
    """With k=None nobody moves up, and lists are not in the order of distances."""
    X, y = real_data(load_iris)
    X, y = X[::4], y[::4]
    path = ts.solve_path(ts.Problem(X, ts.knn_triplets(X, y, None), n_jobs=1), ratio=0.5, n_lambdas=14)
    found = path.leave_one_out(-1, X, y)
    assert not wrong_ones(
        found, X, y, range(len(X)), 3, lambda i: refit(X, y, i, None, found.lam, PLAIN, path.M(-1))[0]
    )


@pytest.mark.parametrize("seed", range(8))
def test_what_leaves_and_what_is_left(seed):
    """dA, the sets without a point and their reduced engines, against sets that are made anew."""
    rng, X, y, *_ = some_data(seed)
    y[-1], y[-3:-1] = 8, 9
    k = int(rng.integers(1, 4))
    problem = ts.Problem(X, ts.knn_triplets(X, y, k), loss=ts.SmoothedHinge(0.3), n_jobs=1)
    codes = np.unique(y, return_inverse=True)[1]
    gone = leaving.leaving_points(problem.triplets, X, codes, problem.threads)
    F = rng.normal(size=(problem.points.shape[1], 2))
    dist = gone.triplets.distances_under(problem.cone, F, problem.threads)

    def matrix(triplets):
        triplets = triplets.over(problem.points)
        own = triplets.distances_under(problem.cone, F, problem.threads)
        sums, weights = triplets.sweep(own, 0.3, problem.threads)
        return sums, triplets.matrix(weights, problem.threads)

    whole, A = matrix(problem.triplets)
    sums, weights = gone.base(dist, 0.3)
    scale = 1 + np.abs(A).max()
    assert np.allclose(gone.triplets.matrix(weights, problem.threads), A, atol=1e-10 * scale)
    assert (sums.loss, sums.alpha, sums.spread) == pytest.approx((whole.loss, whole.alpha, whole.spread), rel=1e-10)
    for flat in (False, True):
        change = gone.changes(np.arange(len(X)), dist, 0.3, flat)
        for i in range(len(X)):
            rest = np.delete(np.arange(len(X)), i)
            left = gone.without(i)
            wanted = ts.knn_triplets(X[rest], y[rest], k)
            mine = left.indices()
            assert sorted(map(tuple, mine)) == sorted(map(tuple, rest[wanted.indices()]))
            after, other = matrix(left)
            away = np.diag(A - other) if flat else A - other
            assert np.allclose(change.A[i], away, atol=1e-10 * scale)
            assert change.alpha[i] == pytest.approx(whole.alpha - after.alpha, abs=1e-9)
            part, _ = gone.part(gone.select(np.ones(gone.whole[0].n_pairs, dtype=bool)), i)
            named = np.arange(len(X)) if part.point_ids is None else part.point_ids
            assert sorted(map(tuple, named[part.local_indices()])) == sorted(map(tuple, mine))


@pytest.mark.parametrize("seed", range(16))
def test_balls_hold_the_optimum_without_a_point(seed):
    assert max(distances(seed)) <= 1


def test_balls_are_no_larger_than_they_must_be():
    assert max(max(distances(seed)) for seed in range(16)) > 0.7


@pytest.mark.parametrize("broken", ["votes", "zones"])
def test_steps_that_are_wrong_would_show(broken, monkeypatch):
    """Ends of no radius, or triplets that are fixed beyond the ball that they keep their zones in."""
    if broken == "votes":
        decide = leave_one_out.Votes.decide_one
        monkeypatch.setattr(
            leave_one_out.Votes, "decide_one", lambda self, unit, center, radius: decide(self, unit, center, 0.0)
        )
    else:
        selection = steps.Steps.selection
        monkeypatch.setattr(steps.Steps, "selection", lambda self, radius: selection(self, 1e-9))
        monkeypatch.setattr(steps.Around, "_holds", lambda self, M: True)
    assert sum(len(one_run(seed)[1]) for seed in (7, 11, 16, 23))


@pytest.mark.parametrize("broken", ["radius", "next", "own", "half"])
def test_what_is_wrong_would_show(broken, monkeypatch):
    """Balls of no size, neighbours that do not move up, or triplets that stay: predictions would be wrong."""
    ball_of = without.ball_of
    if broken == "radius":

        def none(*arguments):
            centers, radii = ball_of(*arguments)
            return centers, 0 * radii

        monkeypatch.setattr(without, "ball_of", none)
    elif broken == "half":  # dA/lam in place of dA/(2 lam)

        def farther(lam, M, C, *more):
            return ball_of(lam, M, C + (C - M), *more)[0], 0.2 * ball_of(lam, M, C, *more)[1]

        monkeypatch.setattr(without, "ball_of", farther)
    elif broken == "next":
        monkeypatch.setattr(leaving, "nearest", without_the_last(leaving.nearest))
    else:
        made = leaving.LeavingPoints.changes

        def nothing(self, units, dist, smoothing, flat):
            change = made(self, units, dist, smoothing, flat)
            change.A[:] = 0
            return change

        monkeypatch.setattr(leaving.LeavingPoints, "changes", nothing)
    if broken in ("radius", "half"):
        assert sum(len(one_run(seed)[1]) for seed in (27, 30, 33, 36, 46, 58, 59))
    else:
        assert max(max(distances(seed)) for seed in range(12)) > 1


def without_the_last(nearest):
    def shorter(X, codes, k, threads):
        found = [part.copy() for part in nearest(X, codes, k, threads)]
        for part in found:
            part[:, k - 1 :] = -1
        return found

    return shorter


def flipped(seed, n_flipped=6):
    rng = np.random.default_rng(seed)
    X, y = real_data(load_wine)
    wrong = rng.choice(len(X), n_flipped, replace=False)
    y = y.copy()
    y[wrong] = (y[wrong] + 1) % 3
    return X, y, wrong


@pytest.mark.parametrize("seed", range(3))
def test_wrong_labels_have_influence(seed):
    X, y, wrong = flipped(seed)
    path = ts.solve_path(ts.Problem(X, ts.knn_triplets(X, y, 3), n_jobs=1), ratio=0.7, n_lambdas=15)
    found = path.influence(10)
    assert found.of == "points"
    assert (np.diff(found.bounds) <= 0).all()
    assert np.isin(wrong, found.indices[:12]).sum() >= 5  # of 6, among 178
    assert "178 points" in repr(found)


@pytest.mark.parametrize("seed", range(8))
def test_influence_is_a_bound(seed):
    rng, X, y, *_ = some_data(seed)
    arguments, ratio = some_arguments(rng, X), 0.4
    given = seed % 2
    triplets = ts.knn_triplets(X, y, 2)
    rows, weights = triplets.indices(), rng.uniform(0.5, 2.0, triplets.n_triplets)
    problem = ts.Problem(X, ts.given_triplets(rows, weights) if given else triplets, **arguments)
    if problem.lambda_max() == 0:
        pytest.skip("no path")
    path = ts.solve_path(problem, ratio=ratio, n_lambdas=5)
    found = path.influence(-1)
    assert found.of == ("comparisons" if given else "points")
    assert len(found) == (len(rows) if given else len(X)) == len(set(found.indices.tolist()))
    exact = ts.solve(problem, found.lam, tol=1e-11, start=path.M(-1), max_iter=3000)
    closest = 0.0
    for place in np.unique(np.linspace(0, len(found) - 1, 8).astype(int)):
        unit, bound = found.indices[place], found.bounds[place]
        keep = np.arange(len(rows)) != unit if given else (rows != unit).all(axis=1)
        T = ts.given_triplets(rows[keep], weights[keep] if given else None)
        sol = ts.solve(ts.Problem(X, T, **arguments), found.lam, tol=1e-11, start=path.M(-1), max_iter=3000)
        away = np.linalg.norm(sol.M - exact.M)
        assert away <= bound + sol.radius + exact.radius
        closest = max(closest, away / bound)
    assert closest > 0.02


def small():
    X, y = real_data(load_iris)
    problem = ts.Problem(X, ts.knn_triplets(X, y, 3), n_jobs=1)
    return X, y, problem, ts.solve_path(problem, ratio=0.5, n_lambdas=16)


def test_bad_input(tmp_path):
    X, y, problem, path = small()
    cases = (
        ((16, X, y), {}, "t=16: this path has 16 lambdas"),
        ((1.0, X, y), {}, "t=1.0: this path has 16 lambdas"),
        ((0, X[:, :2], y), {}, "X has 2 features: the path was learned on 4"),
        ((0, X[1:], y[1:]), {}, "X has 149 points: the path was learned on 150"),
        ((0, X[::-1], y), {}, "X has other points than the path was learned on"),
        ((0, X, y[1:]), {}, "y has 149 labels"),
        ((0, X, np.roll(y, 7)), {}, "are not those of ts.knn_triplets"),
        ((0, X, y), {"k": 150}, "k=150: without one, X has 149 points"),
        ((0, X, y), {"k": 0}, "k=0"),
    )
    for arguments, named, text in cases:
        with pytest.raises(ts.InputError, match=text):
            path.leave_one_out(*arguments, **named)
    with pytest.raises(ts.InputError, match="t='a': this path has 16 lambdas"):
        path.influence("a")
    ts.save(path, tmp_path / "a.path")
    loaded = ts.load(tmp_path / "a.path")
    with pytest.raises(ts.InputError, match="loaded from a file"):
        loaded.leave_one_out(0, X, y)
    with pytest.raises(ts.InputError, match="loaded from a file"):
        loaded.influence(0)
    one, two = loaded.leave_one_out(-10, X, y, problem=problem), path.leave_one_out(6, X, y)
    assert np.array_equal(one.predictions, two.predictions)
    never = ts.solve_path(ts.Problem(X, ts.all_triplets(X, y, 3), n_jobs=1), ratio=0.5, n_lambdas=2)
    with pytest.raises(ts.InputError, match="AllTriplets, never listed: leave_one_out needs"):
        never.leave_one_out(0, X, y)
    with pytest.raises(ts.InputError, match="AllTriplets, never listed: influence needs"):
        never.influence(0)


def test_labels_are_the_users_and_scale_does_not_matter():
    X, y, _, path = small()
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    far = ts.solve_path(ts.Problem(2.0**40 * X, ts.knn_triplets(X, names, 3), n_jobs=1), ratio=0.5, n_lambdas=16)
    one, two = path.leave_one_out(-1, X, y), far.leave_one_out(-1, 2.0**40 * X, names)
    assert np.array_equal(np.array(["setosa", "versicolor", "virginica"])[one.predictions], two.predictions)
    assert np.array_equal(one.how, two.how)
    bounds = path.influence(-1).bounds, far.influence(-1).bounds * 2.0**80
    assert np.allclose(*bounds, rtol=1e-9)


def test_ctrl_c_at_any_call(monkeypatch):
    X, y, _, path = small()
    wanted = path.leave_one_out(-1, X, y)
    interrupter = Interrupter(monkeypatch)
    total, partly = interrupter.count(lambda: path.leave_one_out(-1, X, y)), 0
    for at in spread(total, 25):
        found = interrupter.result(lambda: path.leave_one_out(-1, X, y), at)
        if found is not None:
            done = found.how > 0
            partly += bool(0 < done.sum() < len(X))
            assert np.array_equal(found.predictions[done], wanted.predictions[done])
    assert partly


def test_segment_needs_few_solves():
    try:
        X, y = load("segment")[:2]
    except Missing as missing:
        pytest.skip(str(missing))
    problem = ts.Problem(X, ts.knn_triplets(X, y, 5), n_jobs=1)
    path = ts.solve_path(problem, ratio=0.5, n_lambdas=15)
    found = path.leave_one_out(-1, X, y)
    assert found.n_solves < 0.4 * len(X)
    assert found.n_refits < 0.01 * len(X)
    units = [*found.solved_again[:3].tolist(), 100, 1500]
    assert not wrong_ones(found, X, y, units, 3, lambda i: refit(X, y, i, 5, found.lam, PLAIN, path.M(-1))[0])
