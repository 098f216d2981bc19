"""Bad input gets one sentence that names the argument, before any work starts."""

from __future__ import annotations

import numpy as np
import pytest

import triscreen as ts
from problems import make_case

GOOD_X = np.random.default_rng(0).normal(size=(10, 2))
GOOD_Y = np.arange(10) % 2


def with_value(value):
    X = GOOD_X.copy()
    X[3, 1] = value
    return X


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (with_value(np.nan), r"X\[3, 1\] is nan: X must be finite"),
        (with_value(-np.inf), r"X\[3, 1\] is -inf"),
        (GOOD_X[0], r"X has shape \(2,\): X must be two-dimensional"),
        (GOOD_X[:1], r"X has shape \(1, 2\): at least two points"),
        (GOOD_X[:, :0], r"X has shape \(10, 0\): at least one feature"),
        (GOOD_X[None], "two-dimensional"),
        ([["a", "b"]] * 10, "X must hold real numbers only"),
        ([[1.0, 2.0], [1.0]], "X is not a rectangular array"),
        (GOOD_X + 1j, "X has dtype complex128: X must hold real numbers"),
        (GOOD_X * 1e80, "rescale"),
        (GOOD_X * 1e-90, "rescale"),
        (None, r"X has shape \(\)"),
        (GOOD_X.astype(str), "X has dtype <U32: X must hold real numbers only"),
        (np.array([[1.0, "2"]] * 10, dtype=object), "X holds text"),
        (np.ma.masked_greater(GOOD_X, 0), "X has masked entries"),
        (GOOD_X.astype("timedelta64[s]"), "X must hold real numbers only"),
    ],
)
def test_points(X, words):
    for make in (
        lambda: ts.knn_triplets(X, GOOD_Y, 2),
        lambda: ts.Problem(X, ts.given_triplets([[0, 1, 2]])),
    ):
        with pytest.raises(ts.InputError, match=words) as caught:
            make()
        assert "\n" not in str(caught.value)


def test_sparse_points():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(ts.InputError, match=r"X is a sparse matrix: pass a dense array, such as X.toarray\(\)"):
        ts.knn_triplets(sparse.csr_matrix(GOOD_X), GOOD_Y, 2)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (GOOD_Y[:-1], "y has 9 labels: X has 10 points"),
        (np.zeros(10), r"y has one class only \(0.0\)"),
        ([[1], [1, 2]] * 5, "y is not a plain list of labels"),
        (GOOD_X, r"y has shape \(10, 2\): y must be one-dimensional"),
        (np.where(GOOD_Y, np.nan, 1.0), "y holds NaN"),
        (np.array([None, 1] * 5, dtype=object), "y holds None"),
        (np.array(["a", 1] * 5, dtype=object), "y mixes types"),
    ],
)
def test_labels(y, words):
    with pytest.raises(ts.InputError, match=words):
        ts.knn_triplets(GOOD_X, y, 2)


@pytest.mark.parametrize("k", [0, -1, 2.5, "3", True, np.nan])
def test_k(k):
    with pytest.raises(ts.InputError, match="k must be a whole number of at least 1, or None for all points"):
        ts.knn_triplets(GOOD_X, GOOD_Y, k)


@pytest.mark.parametrize("gamma", [-1, -0.0, 0, np.nan, np.inf, "a", None, True, np.ones(2)])
def test_gamma(gamma):
    with pytest.raises(ts.InputError, match="gamma must be a positive number"):
        ts.SmoothedHinge(gamma)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"cone": "full"}, "cone='full': cone must be one of 'psd', 'diagonal'"),
        ({"cone": None}, "cone=None"),
        ({"loss": "hinge"}, "loss='hinge': loss must be ts.SmoothedHinge"),
        ({"loss": ts.Hinge}, "loss must be ts.SmoothedHinge"),
        ({"n_jobs": 0}, "n_jobs=0: n_jobs must be None"),
        ({"n_jobs": 1.5}, "n_jobs=1.5"),
        ({"memory_budget": -1}, "memory_budget=-1"),
        ({"memory_budget": 1000}, "memory_budget=1e.03: 10 points of 2 features with .* pairs take about"),
        ({"triplets": [[0, 1, 2]]}, "triplets is a list: make a set with"),
        ({"X": GOOD_X[:5]}, "X has 5 points: these triplets were made from 10 points"),
    ],
)
def test_problem(arguments, words):
    arguments = {"X": GOOD_X, "triplets": ts.knn_triplets(GOOD_X, GOOD_Y, 2)} | arguments
    with pytest.raises(ts.InputError, match=words):
        ts.Problem(**arguments)


@pytest.mark.parametrize("lam", [0, -1.0, np.nan, np.inf, "1", None, True])
def test_lam(lam):
    problem = make_case(0).problem
    for call in (ts.solve, lambda p, v: p.certificate(np.eye(3), v), lambda p, v: p.value(np.eye(3), v)):
        with pytest.raises(ts.InputError, match="lam must be a positive number"):
            call(problem, lam)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"tol": 0}, "tol=0: tol must be a positive number"),
        ({"solver": "newton2"}, "solver='newton2': solver must be one of 'auto', 'bb'"),
        ({"solver": 3}, "solver=3"),
        ({"screening": "all"}, "screening='all': screening must be 'auto', None or ts.Screening"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"max_seconds": -1}, "max_seconds=-1"),
        ({"callback": 5}, "callback=5"),
        ({"start": np.eye(2)}, r"start has shape \(2, 2\)"),
    ],
)
def test_solve(arguments, words):
    with pytest.raises(ts.InputError, match=words):
        ts.solve(make_case(0).problem, 1.0, **arguments)


def test_a_lam_too_small_for_float64():
    for lam in (1e-310, 1e-200):
        with pytest.raises(ts.InputError, match="lam is too small for points of this size"):
            ts.solve(make_case(0).problem, lam)


def test_solve_wants_a_problem():
    with pytest.raises(ts.InputError, match="problem is a ndarray"):
        ts.solve(GOOD_X, 1.0)


@pytest.mark.parametrize(
    ("alpha", "words"),
    [
        (np.full(60, 1.5), r"alpha\[0\] is 1.5"),
        (np.full(60, np.nan), r"alpha\[0\] is nan"),
        (np.ones(59), r"alpha has shape \(59,\)"),
        (["x"] * 60, "numbers only"),
    ],
)
def test_alpha(alpha, words):
    with pytest.raises(ts.InputError, match=words):
        make_case(0).problem.certificate(np.eye(3), 1.0, alpha)


def test_a_solution_where_a_metric_is_wanted():
    problem = make_case(0).problem
    with pytest.raises(ts.InputError, match=r"M is a Solution: pass its .M"):
        problem.certificate(ts.solve(problem, 1.0), 1.0)


def test_a_large_wrong_argument_is_shown_in_a_few_words():
    with pytest.raises(ts.InputError, match="lam must be a positive number") as caught:
        make_case(0).problem.certificate(0.1, np.eye(13))
    assert len(str(caught.value)) < 120


def test_a_numpy_number_is_a_number():
    problem = make_case(0).problem
    assert ts.solve(problem, np.array(0.5)).converged
    assert ts.solve(problem, np.float32(0.5), max_iter=np.int64(500)).converged


@pytest.mark.parametrize("name", ["M", "tocsr", "alpha", "lam", "steps", "components_", "n_triplets", "run"])
def test_a_column_may_have_any_name(name):
    """Tables give their columns as attributes: nothing may be guessed from those."""
    pd = pytest.importorskip("pandas")
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12) % 2
    table = pd.DataFrame(X, columns=[name, "b"])
    expected = ts.knn_triplets(X, y, 2).indices()
    assert np.array_equal(ts.knn_triplets(table, y, 2).indices(), expected)
    problem = ts.Problem(table, ts.knn_triplets(table, y, 2))
    assert np.array_equal(problem.points, ts.Problem(X, ts.knn_triplets(X, y, 2)).points)
    assert ts.TripletMetric(2).fit(table, y).components_.shape[1] == 2
    square = pd.DataFrame(np.eye(2), columns=[name, "b"])
    assert problem.certificate(square, 1.0).gap >= 0


def test_a_solution_or_a_path_in_place_of_numbers_is_named():
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12) % 2
    problem = ts.Problem(X, ts.knn_triplets(X, y, 2))
    lam = 1.0 + problem.lambda_max()
    sol, path = ts.solve(problem, lam), ts.solve_path(problem, lambdas=[lam])
    with pytest.raises(ts.InputError, match=r"M is a Solution: pass its \.M$"):
        problem.certificate(sol, 1.0)
    with pytest.raises(ts.InputError, match=r"M is a Path: pass its \.M\(t\)$"):
        problem.certificate(path, 1.0)
