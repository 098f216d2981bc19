"""Bounds of the validation error: every decided prediction is compared with far more accurate optima."""

from __future__ import annotations

import numpy as np
import pytest

import triscreen as ts
from held_out import compare, some_data, some_problem
from triscreen._kernels.certain import certain_votes
from triscreen.path import balls
from triscreen.selection import judge

pytestmark = pytest.mark.filterwarnings("ignore")


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


@pytest.mark.parametrize("broken", ["radius", "between", "votes"])
def test_what_is_wrong_would_show(broken, monkeypatch):
    """With balls of no size, ends that say nothing about what lies between, or one vote less, decisions are wrong."""
    made = balls.Between.__init__

    def init(self, *arguments):
        made(self, *arguments)
        self.k = 0.0
        if broken == "radius":
            self.squares = (0.0, 0.0)

    def fewer(*arguments):
        arguments = list(arguments)
        arguments[11] = max(1, arguments[11] - 1)
        return certain_votes(*arguments)

    if broken == "votes":
        monkeypatch.setattr(judge, "certain_votes", fewer)
    else:
        monkeypatch.setattr(balls.Between, "__init__", init)
    assert sum(compare(seed, n_lambdas=3, ratio=0.03)[1] for seed in (*range(125, 160), 198, 327))


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
