"""Bounds of the validation error: every decided prediction is compared with far more accurate optima."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import triscreen as ts
from held_out import compare, some_data, some_problem, votes
from triscreen._kernels.certain import certain_votes
from triscreen._utils.threads import deadline
from triscreen.errors import OutOfTime
from triscreen.path import balls, chain
from triscreen.problem.units import METRIC
from triscreen.selection import bounds as module
from triscreen.selection import judge, stretches

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.thinned(2)
@pytest.mark.parametrize("seed", range(60))
def test_decided_predictions_are_right(seed):
    assert compare(seed)[1] == 0


def test_much_is_decided():
    runs = np.array([compare(seed) for seed in range(60, 80)]).sum(axis=0)
    assert runs[0] > 0.3 * runs[2]


@pytest.mark.parametrize("part", range(5))
def test_a_hundred_thousand_decisions(part):
    runs = np.array([compare(seed, 10, 16, queries=250) for seed in range(1000 + 12 * part, 1012 + 12 * part)])
    compared, wrong, _ = runs.sum(axis=0)
    assert wrong == 0
    assert compared > 20_000


@pytest.mark.parametrize("seed", range(20))
def test_comparisons(seed):
    rng, X, y, *_ = some_data(seed)
    problem = some_problem(rng, X, y)
    if problem.lambda_max() == 0:
        pytest.skip("no path")
    path = ts.solve_path(problem, ratio=0.8, n_lambdas=8, tol=1e-7)
    rows = rng.integers(0, len(X), (300, 3))
    bounds = ts.comparison_bounds(path, X, rows)
    t = int(rng.integers(len(path) - 1))
    lam = float(rng.uniform(path.lambdas[t + 1], path.lambdas[t]))
    M = ts.solve(problem, lam, tol=1e-11, start=path.at(lam).M, max_iter=3000).M
    M = np.diag(M) if M.ndim == 1 else M
    a, b, c = (X[column] for column in rows.T)
    near, far = (np.einsum("ij,jk,ik->i", u, M, u) for u in (a - b, a - c))
    clear = np.abs(far - near) > 1e-9 * np.abs(far).max()
    outcome = bounds.outcomes[t]
    assert ((far > near) | ~clear)[outcome > 0].all()
    assert ((far < near) | ~clear)[outcome < 0].all()
    same = (b == c).all(axis=1)
    assert (outcome[same] == -1).all()
    assert (outcome != 0).mean() > 0.3


def fewer(*arguments):
    arguments = list(arguments)
    arguments[11] = max(1, arguments[11] - 1)
    return certain_votes(*arguments)


@pytest.mark.parametrize("broken", ["radius", "between", "votes"])
def test_what_is_wrong_would_show(broken, monkeypatch):
    """With balls of no size, ends that say nothing about what lies between, or one vote less, decisions are wrong."""
    made = chain.Chain.__init__

    def init(self, *arguments):
        made(self, *arguments)
        self.ks = 0.0 * self.ks
        if broken == "radius":
            self.squares = 0.0 * self.squares

    if broken == "votes":
        monkeypatch.setattr(judge, "certain_votes", fewer)
    else:
        monkeypatch.setattr(chain.Chain, "__init__", init)
    assert sum(compare(seed, n_lambdas=3, ratio=0.03)[1] for seed in (129, 130, 131, 139, 141, 153, 198, 327))


def long_stretches(monkeypatch):
    """Whole paths as one stretch, whose parts nobody looks at."""
    monkeypatch.setattr(module, "_SPAN", 1e-12)
    monkeypatch.setattr(judge.Verdict, "is_open", False)


def long_ones(seeds):
    return np.array([compare(seed, 25, 6, ratio=0.8, queries=60) for seed in seeds]).sum(axis=0)


def test_decisions_of_long_stretches_are_right(monkeypatch):
    long_stretches(monkeypatch)
    compared, wrong, total = long_ones(range(20))
    assert wrong == 0
    assert compared > 0.2 * total


def test_tubes_that_are_too_narrow_would_show(monkeypatch):
    """With nothing but the line between two ends decisions are wrong."""
    long_stretches(monkeypatch)
    monkeypatch.setattr(stretches.Run, "tube", lambda *where: 0.0)
    assert long_ones((1, 6, 7, 12, 13, 20))[1] > 0


def needed(seed):
    """Return (R of a whole path, by definition how far the balls go from the line, the largest radius of them)."""
    rng, X, y, *_ = some_data(seed)
    problem = some_problem(rng, X, y)
    if problem.lambda_max() == 0:
        return 0.0, 0.0, 0.0
    path = ts.solve_path(problem, ratio=0.9, n_lambdas=20)
    ends = [path._quick_end(number, problem) for number in range(len(path))]
    run = judge.Judge(problem, judge.Points(problem, X), None).run(ends)
    first, last = (run._seen.centers[place] for place in (0, -1))
    line, most, largest = last - first, 0.0, 0.0
    for one, two in pairwise(ends):
        between = balls.Between(problem, one, two)
        for lam in np.linspace(one.lam, two.lam, 7):
            ball = between.ball(lam)
            center = problem.units.into(problem.from_core(ball.center), METRIC)
            center = np.diag(center) if center.ndim == 1 else center
            share = np.vdot(center - first, line) / max(np.vdot(line, line), 1e-300)
            away = np.linalg.norm(center - first - min(1.0, max(0.0, share)) * line)
            most, largest = max(most, away + np.sqrt(ball.square)), max(largest, np.sqrt(ball.square))
    return run.tube(0, len(path) - 1), most, largest


def test_a_tube_has_every_ball_of_its_stretch():
    found = np.array([needed(seed) for seed in range(25)])
    R, most, largest = found.T
    assert (most <= R * (1 + 1e-9)).all()
    assert (most > 1.5 * largest).any()  # bends count
    assert (3 * most >= R).all()


@pytest.mark.parametrize("seed", range(12))
def test_a_chain_is_its_balls_one_by_one(seed):
    rng, X, y, *_ = some_data(seed)
    problem = some_problem(rng, X, y)
    if problem.lambda_max() == 0:
        pytest.skip("no path")
    path = ts.solve_path(problem, ratio=0.7, n_lambdas=6)
    ends = [path._quick_end(number, problem) for number in range(len(path))]
    found = chain.Chain(problem, ends)
    for number, (one, two) in enumerate(pairwise(ends)):
        between = balls.Between(problem, one, two)
        scale = np.square(np.linalg.norm(between.balls[0].center)) + max(between.squares)
        assert np.isclose(found.ks[number], between.k, rtol=1e-9, atol=1e-12 * scale)
        for place, ball in zip((number, number + 1), between.balls, strict=True):
            assert np.allclose(found.centers[place], ball.center, rtol=1e-12, atol=0)
            assert np.isclose(found.squares[place], ball.square, rtol=1e-9, atol=0)
            assert np.isclose(found.doubts[place], ball.doubt, rtol=1e-9, atol=0)


def data():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    X[:, 0] += y
    problem = ts.Problem(X[:40], ts.knn_triplets(X[:40], y[:40], 3), n_jobs=1)
    return X[:40], y[:40], X[40:], y[40:], problem


def test_blocks_of_queries_give_the_same(monkeypatch):
    X, y, X_val, y_val, problem = data()
    path = ts.solve_path(problem, ratio=0.9, n_lambdas=6)
    one = ts.validation_bounds(path, X, y, X_val, y_val)
    monkeypatch.setattr(judge, "_BLOCK", 100)
    two = ts.validation_bounds(path, X, y, X_val, y_val)
    assert np.array_equal(one.outcomes, two.outcomes)
    assert len(one.intervals) == 5
    assert one.intervals[0][:2] == (path.lambdas[0], path.lambdas[1])
    assert set(one.open_at(path.lambdas[2])) <= set(np.flatnonzero(one.outcomes[2] == 0))
    assert "intervals" in repr(one)


def test_copies_come_in_their_order():
    """Of points that are the same, as many as there are votes are looked at, the first ones: as by the definition."""
    X, _, X_val, _, problem = data()
    path = ts.solve_path(problem, ratio=0.995, n_lambdas=2)
    rng = np.random.default_rng(1)
    places = rng.permutation(np.repeat(np.arange(8), 9))  # nine copies of eight points, of any class
    points, labels = X[places], rng.integers(0, 2, len(places))
    queries = np.concatenate([X[:8], X_val])
    for k in (1, 2, 5, 9, 13, 33, 40, 72):  # 72: all of them vote
        right = votes(path.M(0), points, labels, queries, k)[0]
        bounds = ts.validation_bounds(path, points, labels, queries, right, k)
        assert (bounds.outcomes[0] >= 0).all()
        assert (bounds.outcomes[0] > 0).mean() > (0.8 if k < 72 else 0.99)
        wrong = ts.validation_bounds(path, points, labels, queries, 1 - right, k)
        assert np.array_equal(wrong.outcomes[0], -bounds.outcomes[0])


@pytest.mark.parametrize("seed", range(4))
def test_where_many_points_may_be_near_they_are_looked_for_again(seed, monkeypatch):
    """What is decided does not depend on how many points are kept of a query, if its own interval has no more."""
    rng, X, y, X_val, y_val = some_data(seed, 60)
    problem = some_problem(rng, X, y)
    path = ts.solve_path(problem, ratio=0.97, n_lambdas=30)
    whole = ts.validation_bounds(path, X, y, X_val, y_val, 2)
    monkeypatch.setattr(judge, "_TIMES", 1)
    for most in (9, 2):
        monkeypatch.setattr(judge, "_MOST", most)
        found = ts.validation_bounds(path, X, y, X_val, y_val, 2)
        assert all(np.diff(ptr).max(initial=0) <= most for _, ptr, _ in filter(None, found.left))
        assert ((found.outcomes == whole.outcomes) | (found.outcomes == 0)).all()
        assert (found.outcomes != 0).sum() > (0.8 if most == 9 else 0.2) * (whole.outcomes != 0).sum()


def test_what_was_bounded_before_an_interrupt_is_the_result(monkeypatch):
    X, y, X_val, y_val, problem = data()
    path = ts.solve_path(problem, ratio=0.9, n_lambdas=30)
    whole = ts.validation_bounds(path, X, y, X_val, y_val)
    run = judge.Judge.look

    def look(self, interval, parent=None, begun=False):
        tops.append(begun)
        if sum(tops) == 3:
            raise KeyboardInterrupt
        return run(self, interval, parent, begun)

    tops = []
    monkeypatch.setattr(judge.Judge, "look", look)
    with pytest.raises(ts.Interrupted, match=r"interrupted after \d+ of 29 intervals") as caught:
        ts.validation_bounds(path, X, y, X_val, y_val)
    found = caught.value.result
    done = int(str(caught.value).split()[2])
    assert 5 < done < 29
    assert np.array_equal(found.outcomes[:done], whole.outcomes[:done])
    assert not found.outcomes[done:].any()
    assert found.at(path.lambdas[2]) == whole.at(path.lambdas[2])
    assert found.at(path.lambdas[-2]) == (0.0, 1.0)


def test_bounds_end_with_their_time():
    X, y, X_val, y_val, problem = data()
    path = ts.solve_path(problem, ratio=0.9, n_lambdas=4)
    with pytest.raises(OutOfTime), deadline(1e-9):
        module.votes_over(path, problem, X, y, X_val, y_val, 3)


def test_bad_input(tmp_path):
    X, y, X_val, y_val, problem = data()
    path = ts.solve_path(problem, ratio=0.9, n_lambdas=4)
    cases = (
        ((X[:, :2], y, X_val, y_val), {}, "X has 2 features: the path was learned on 3"),
        ((X, y, X_val[:, :2], y_val), {}, "X_val has 2 features"),
        ((X, y[1:], X_val, y_val), {}, "y has 39 labels"),
        ((X, y, X_val, y_val[1:]), {}, "y_val has shape"),
        ((X, y, X_val, y_val + 7), {}, "y_val has the label 7, which y has not"),
        ((X, y, X_val, y_val), {"k": 41}, "k=41: X has 40 points"),
        ((X, y, X_val, y_val), {"k": 0}, "k=0"),
    )
    for arguments, named, text in cases:
        with pytest.raises(ts.InputError, match=text):
            ts.validation_bounds(path, *arguments, **named)
    with pytest.raises(ts.InputError, match="rows has shape"):
        ts.comparison_bounds(path, X, [[0, 1]])
    with pytest.raises(ts.InputError, match="rows goes from 0 to 40: X has 40 points"):
        ts.comparison_bounds(path, X, [[0, 1, 40]])
    bounds = ts.validation_bounds(path, X, y, X_val, y_val)
    with pytest.raises(ts.InputError, match="the bounds go from"):
        bounds.at(2 * path.lambdas[0])
    ts.save(path, tmp_path / "a.path")
    loaded = ts.load(tmp_path / "a.path")
    with pytest.raises(ts.InputError, match="loaded from a file"):
        ts.validation_bounds(loaded, X, y, X_val, y_val)
    again = ts.validation_bounds(loaded, X, y, X_val, y_val, problem=problem)
    assert np.array_equal(again.outcomes, bounds.outcomes)


def test_one_held_out_point_is_enough():
    _, X, y, X_val, y_val = some_data(3)
    path = ts.solve_path(ts.Problem(X, ts.knn_triplets(X, y, 2)), ratio=0.8, n_lambdas=6)
    every = ts.validation_bounds(path, X, y, X_val, y_val).outcomes
    for i in range(len(X_val)):
        one = ts.validation_bounds(path, X, y, X_val[i : i + 1], y_val[i : i + 1]).outcomes
        # The limits of what is looked at depend on which queries there are, what is decided does not contradict.
        assert (one[:, 0] * every[:, i] >= 0).all()
    with pytest.raises(ts.errors.InputError, match="at least one point is needed"):
        ts.validation_bounds(path, X, y, X_val[:0], y_val[:0])


def others(X, y, rows):
    """A problem, and others with as many features and triplets, by what they differ in."""
    T, weights = ts.given_triplets(rows), np.linspace(1, 2, len(rows))
    return ts.Problem(X, T), {
        "other points X": ts.Problem(1.5 * X, T),
        "other triplets or weights": ts.Problem(X, ts.given_triplets(rows, weights)),
        "another loss": ts.Problem(X, T, ts.SmoothedHinge(1.0)),
        "another prior": ts.Problem(X, T, prior=np.eye(X.shape[1])),
    }


def test_a_problem_of_the_same_size_but_another_one_is_refused():
    _, X, y, X_val, y_val = some_data(3)
    problem, wrong = others(X, y, ts.knn_triplets(X, y, 2).indices())
    path = ts.solve_path(problem, ratio=0.8, n_lambdas=6)
    for words, other in wrong.items():
        for ask in (
            lambda other=other: path.ball(path.lambdas[2], other),
            lambda other=other: path.at(path.lambdas[2], other),
            lambda other=other: path.influence(2, other),
            lambda other=other: path.leave_one_out(2, X, y, problem=other),
            lambda other=other: ts.validation_bounds(path, X, y, X_val, y_val, problem=other),
            lambda other=other: ts.comparison_bounds(path, X, [[0, 1, 2]], problem=other),
        ):
            with pytest.raises(ts.errors.InputError, match=f"^problem has {words} than this path was solved for"):
                ask()
    again, _ = others(X, y, ts.knn_triplets(X, y, 2).indices())
    assert path.ball(path.lambdas[2], again).radius == path.ball(path.lambdas[2]).radius


def test_what_a_path_kept_is_about_its_own_problem_only():
    _, X, y, *_ = some_data(3)
    problem, wrong = others(X, y, ts.knn_triplets(X, y, 2).indices())
    path = ts.solve_path(problem, ratio=0.8, n_lambdas=6)
    assert path._rows[3].pull is not None
    for other in wrong.values():
        quick, end = path._quick_end(3, other), path._end(3, other)
        assert np.array_equal(quick.H, end.H)
        assert (quick.slack, quick.value, quick.dual_term) == (end.slack, end.value, end.dual_term)
        assert quick.dual_term != path._quick_end(3, problem).dual_term
