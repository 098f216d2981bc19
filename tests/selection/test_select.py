"""The best lambda to within eps: compared with lambdas in between that are solved far more accurately."""

from __future__ import annotations

import numpy as np
import pytest

import triscreen as ts
from held_out import some_data, some_problem, votes
from triscreen.selection.search import Search

pytestmark = pytest.mark.filterwarnings("ignore")


def prepared(seed, ratio=0.6, n_lambdas=8):
    rng, X, y, X_val, y_val = some_data(seed)
    problem = some_problem(rng, X, y)
    if problem.lambda_max() == 0:
        pytest.skip("no path")
    path = ts.solve_path(problem, ratio=ratio, n_lambdas=n_lambdas)
    if len(path) < 2:
        pytest.skip("a path of one lambda")
    return rng, problem, path, (X, y, X_val, y_val)


@pytest.mark.parametrize("seed", range(24))
def test_no_lambda_is_better_by_more_than_the_gap(seed):
    rng, problem, path, data = prepared(seed)
    X, y, X_val, y_val = data
    bounds = ts.validation_bounds(path, *data, k=3)
    eps = float(rng.choice([0.2, 0.1, 0.01]))
    found = ts.select(path, bounds, eps, max_lambdas=30)
    assert found.lam in found.path.lambdas
    assert found.stopped_by in ("eps", "max_lambdas", "narrow")
    assert (found.gap <= eps + 1e-12) == (found.possible == [])
    assert (found.stopped_by == "eps") == (found.possible == [])
    assert len(found.path) <= len(path) + found.n_solved
    assert (found.bounds.lower <= found.bounds.upper).all()
    assert found.bounds.lambdas[0] == path.lambdas[0]
    for lam in (found.lam, *np.exp(rng.uniform(*np.log(path.lambdas[[-1, 0]]), 3))):
        lam = float(min(max(lam, path.lambdas[-1]), path.lambdas[0]))
        M = ts.solve(problem, lam, tol=1e-11, start=path.at(lam).M, max_iter=3000).M
        predicted, clear = votes(M, X, y, X_val, 3)
        if clear.all():
            error = np.mean(predicted != y_val)
            assert error >= found.error - found.gap - 1e-12
            if lam == found.lam:
                assert error <= found.error + 1e-12
            elif error < found.error - eps - 1e-12:
                assert any(low <= lam <= high for high, low in found.possible)


def test_comparisons_can_be_selected_by():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), np.arange(50) % 2
    X[:, 0] += y
    rows = ts.knn_triplets(X, y, 4).indices()
    path = ts.solve_path(ts.Problem(X, ts.given_triplets(rows[::2]), n_jobs=1), ratio=0.5, n_lambdas=8)
    found = ts.select(path, ts.comparison_bounds(path, X, rows[1::2]), 0.02)
    assert found.gap <= 0.02
    assert found.n_evaluated + found.n_solved > 0


def test_limits_say_what_is_left(monkeypatch):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(120, 4)), np.arange(120) % 3
    X[:, 0] += 0.5 * y
    problem = ts.Problem(X[:60], ts.knn_triplets(X[:60], y[:60], 3), n_jobs=1)
    path = ts.solve_path(problem, ratio=0.2, n_lambdas=5)
    bounds = ts.validation_bounds(path, X[:60], y[:60], X[60:], y[60:])
    soon = ts.select(path, bounds, 1e-3, max_seconds=1e-9)
    assert soon.stopped_by == "max_seconds"
    assert soon.possible
    assert soon.gap > 1e-3
    few = ts.select(path, bounds, 1e-3, max_lambdas=1)
    assert few.n_solved <= 1
    assert few.gap <= soon.gap
    calls = []
    cut = Search._cut

    def interrupted(self, *arguments):
        calls.append(1)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return cut(self, *arguments)

    monkeypatch.setattr(Search, "_cut", interrupted)
    with pytest.raises(ts.Interrupted) as caught:
        ts.select(path, bounds, 1e-3)
    assert caught.value.result.stopped_by == "interrupt"
    assert caught.value.result.gap <= soon.gap


def test_bad_input():
    _, problem, path, data = prepared(0)
    bounds = ts.validation_bounds(path, *data)
    other = ts.solve_path(problem, ratio=0.5, n_lambdas=3)
    with pytest.raises(ts.InputError, match="bounds must be those of this path"):
        ts.select(other, bounds, 0.1)
    with pytest.raises(ts.InputError, match="bounds must be those of this path"):
        ts.select(path, None, 0.1)
    for name, value in (("eps", 0), ("eps", "a"), ("max_seconds", -1), ("max_lambdas", 0)):
        with pytest.raises(ts.InputError, match=name):
            ts.select(path, bounds, **{"eps": 0.1, name: value})
