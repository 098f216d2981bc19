from __future__ import annotations

import warnings

import numpy as np
import pytest

import triscreen as ts
from nightly import cases
from oracles import as_matrix, cvxpy_optimum
from problems import is_certified, make_case, random_metric

CONES = ["psd", "diagonal"]


# -- the optimum, against an independent solver ----------------------------------------------------------------------


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("gamma", [0.0, 0.05, 1.0])
@pytest.mark.parametrize(
    ("options", "seed", "ratio"),
    [
        pytest.param({}, 24, 0.4, id="plain"),
        pytest.param({"weighted": True}, 24, 0.7, id="weighted"),
        pytest.param({"n": 8, "d": 12, "m": 30}, 30, 0.4, id="d > n"),
        pytest.param({"kind": "knn"}, 24, 0.7, id="knn"),
    ],
)
def test_the_optimum_is_that_of_clarabel(cone, gamma, options, seed, ratio):
    """In each of these the hinge has triplets exactly at its kink (full cone); a smoothed one may have smaller lam."""
    case = make_case(seed, gamma=gamma, cone=cone, **options)
    lam = (0.05 if gamma else ratio) * case.problem.lambda_max()
    M, objective = cvxpy_optimum(case.X, case.indices, case.w, gamma, lam, cone)
    sol = ts.solve(case.problem, lam, tol=1e-11 if gamma else 1e-9)
    assert sol.converged
    is_certified(case.problem, sol)
    assert sol.primal == pytest.approx(objective, rel=1e-7)
    assert np.abs(sol.M - M).max() <= 1e-5


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("gamma", [0.0, 0.05])
@pytest.mark.parametrize("seed", range(4))
def test_random_problems_converge_and_agree_with_their_own_radius(cone, gamma, seed):
    """A loose solution lies within its certified radius of a tight one."""
    case = make_case(seed, gamma=gamma, cone=cone, weighted=seed % 2 == 1)
    for ratio in (0.5, 1e-2, 1e-3) if gamma else (0.5, 1e-1):
        lam = ratio * case.problem.lambda_max()
        loose, tight = (
            ts.solve(case.problem, lam, tol=1e-3),
            ts.solve(case.problem, lam, tol=1e-9 if gamma else 1e-5),
        )
        assert loose.converged
        assert tight.converged
        assert tight.primal <= loose.primal + tight.gap
        assert np.linalg.norm(loose.M - tight.M) <= loose.radius + tight.radius


def test_one_dimension_one_triplet_by_hand():
    """h = 4 - 1 = 3, gamma = 0.5; in the quadratic part -3 (1 - 3m)/0.5 + lam m = 0."""
    for cone in CONES:
        problem = ts.Problem(
            [[0.0], [1.0], [2.0]], ts.given_triplets([[0, 1, 2]]), loss=ts.SmoothedHinge(0.5), cone=cone
        )
        sol = ts.solve(problem, 2.0, tol=1e-14)
        assert sol.M.reshape(()) == pytest.approx(6 / (18 + 2), rel=1e-7)


def test_hinge_by_hand():
    """One triplet, h = 3: min (1 - 3m)_+ + lam m^2/2 is m = 1/3 (the kink) for lam < 9, and 3/lam beyond."""
    problem = ts.Problem([[0.0], [1.0], [2.0]], ts.given_triplets([[0, 1, 2]]), loss=ts.Hinge())
    for lam, m in [(1.0, 1 / 3), (12.0, 0.25), (9.0, 1 / 3)]:
        sol = ts.solve(problem, lam, tol=1e-9)
        assert sol.converged
        assert sol.M[0, 0] == pytest.approx(m, rel=1e-4)


# -- it works everywhere -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_units_of_x_do_not_matter(cone, scale):
    reference = make_case(5, cone=cone)
    case = make_case(5, cone=cone, scale=scale)
    for ratio in (0.3, 1e-2):
        a = ts.solve(reference.problem, ratio * reference.problem.lambda_max(), tol=1e-9)
        b = ts.solve(case.problem, ratio * case.problem.lambda_max(), tol=1e-9)
        assert b.converged
        assert b.primal == pytest.approx(a.primal, rel=1e-8)
        assert b.M * scale**2 == pytest.approx(a.M, rel=1e-3, abs=1e-4 * np.abs(a.M).max())


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("gamma", [0.05, 0.0])
def test_from_lambda_max_down_to_a_billionth_it_ends_honestly(cone, gamma):
    case = make_case(6, gamma=gamma, cone=cone, n=20, d=5, m=150)
    start = case.problem.lambda_max()
    for ratio in 10.0 ** -np.arange(0, 9.1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ts.ConvergenceWarning)
            sol = ts.solve(case.problem, ratio * start, max_iter=400)
        is_certified(case.problem, sol)
        assert np.isfinite(sol.M).all()
        nothing = case.problem.value(np.zeros_like(sol.M), sol.lam)
        assert sol.primal <= nothing * (1 + 1e-12)
        assert sol.n_iter <= 400


@pytest.mark.parametrize("cone", CONES)
def test_where_the_sum_of_h_is_negative_the_answer_is_zero(cone):
    """The negatives are all nearer than the positives."""
    X = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0], [0.1, 0.0], [0.0, 0.1]])
    problem = ts.Problem(X, ts.given_triplets([[0, 1, 3], [0, 2, 4]]), cone=cone)
    with pytest.warns(ts.DegenerateProblemWarning, match="M = 0 is optimal for every lambda"):
        assert problem.lambda_max() == 0.0
    for lam in (1e-3, 1.0, 1e3):
        sol = ts.solve(problem, lam)
        assert sol.converged
        assert not sol.M.any()


@pytest.mark.parametrize("cone", CONES)
def test_points_that_are_all_the_same(cone):
    problem = ts.Problem(np.ones((6, 2)), ts.knn_triplets(np.ones((6, 2)), [0, 0, 0, 1, 1, 1], 2), cone=cone)
    assert ts.solve(problem, 1.0).converged
    with pytest.warns(ts.DegenerateProblemWarning):
        problem.lambda_max()


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda X: np.hstack([X, np.full((len(X), 2), 7.0)]), id="constant features"),
        pytest.param(lambda X: np.vstack([X[:10], X[:5], X[:1]]), id="duplicate points, across classes too"),
        pytest.param(lambda X: np.hstack([X] * 9), id="d > n"),
        pytest.param(lambda X: X[:, :1], id="d = 1"),
        pytest.param(lambda X: (100 * X).astype(int), id="integers"),
        pytest.param(lambda X: X.astype(np.float32), id="float32"),
        pytest.param(np.asfortranarray, id="Fortran order"),
        pytest.param(lambda X: X[::-1], id="negative strides"),
        pytest.param(lambda X: np.broadcast_to(X, X.shape), id="read-only"),
        pytest.param(lambda X: X.tolist(), id="list"),
    ],
)
def test_unusual_data_works(cone, change):
    rng = np.random.default_rng(0)
    y = np.arange(16) % 2
    X = change(rng.normal(size=(16, 2)) + y[:, None])
    problem = ts.Problem(X, ts.knn_triplets(X, y, 3), cone=cone)
    for ratio in (0.5, 0.01):
        sol = ts.solve(problem, ratio * problem.lambda_max(), tol=1e-8)
        assert sol.converged
        is_certified(problem, sol)


def test_a_dataframe_and_string_labels_work():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "b"])
    y = pd.Series(["x", "y", "z"] * 10)
    problem = ts.Problem(frame, ts.knn_triplets(frame, y, 2))
    assert ts.solve(problem, 0.1 * problem.lambda_max()).converged


def test_a_single_triplet():
    case = make_case(0, m=1)
    assert ts.solve(case.problem, 0.1 * case.problem.lambda_max(), tol=1e-10).converged


def test_the_metric_of_reduced_data_is_in_the_original_space():
    case = make_case(3, n=8, d=40, m=40)
    sol = ts.solve(case.problem, 0.01 * case.problem.lambda_max(), tol=1e-9)
    assert sol.converged
    assert sol.M.shape == (40, 40)
    is_certified(case.problem, sol)
    assert np.array_equal(sol.M, sol.M.T)


def test_the_input_is_never_changed():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), np.arange(20) % 2
    before = X.copy()
    M = random_metric(1, 3, "psd")
    start = M.copy()
    problem = ts.Problem(X, ts.knn_triplets(X, y, 3))
    ts.solve(problem, 1.0, start=M)
    assert np.array_equal(X, before)
    assert np.array_equal(M, start)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("far", [1e2, 1e4, 1e6, 1e8])
def test_a_claim_holds_even_where_a_far_pair_eats_the_digits(seed, far):
    """A positive pair that is very long: A has an eigenvalue of -far^2, and float64 may not see the others."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=3)
    X = np.vstack([rng.normal(size=(6, 3)), far * direction])
    indices = np.array([[0, 6, 1], [2, 3, 4], [3, 2, 5], [1, 0, 4]])
    problem = ts.Problem(X, ts.given_triplets(indices))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.ConvergenceWarning)
        sol = ts.solve(problem, 0.3, max_iter=cases(300, 3000))
    if sol.converged:
        # Metrics that ignore the long direction are feasible; none of them may be better than the proof allows.
        long = (X[0] - X[6]) / np.linalg.norm(X[0] - X[6])
        basis = np.linalg.svd(long[None])[2][1:].T
        inner = ts.Problem(X @ basis, ts.given_triplets(indices))
        other = ts.solve(inner, 0.3, tol=1e-9)
        assert other.primal >= sol.primal * (1 - 2 * sol.tol)
    else:
        assert sol.rel_gap > sol.tol or sol.rounding > sol.tol * sol.primal


# -- the real thing ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [1e-3, 1e-5])
@pytest.mark.parametrize("tol", [1e-6, 1e-10])
def test_segment(segment, ratio, tol):
    X, y = segment
    problem = ts.Problem(X, ts.knn_triplets(X, y, 20))
    assert problem.triplets.n_triplets == 831_600
    sol = ts.solve(problem, ratio * problem.lambda_max(), tol=tol)
    assert sol.converged
    is_certified(problem, sol)


@pytest.mark.parametrize("cone", CONES)
def test_hinge_on_iris(cone):
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    problem = ts.Problem(X, ts.knn_triplets(X, y, 5), loss=ts.Hinge(), cone=cone)
    for ratio in (1e-1, 1e-3):
        sol = ts.solve(problem, ratio * problem.lambda_max())
        assert sol.converged
        is_certified(problem, sol)


def test_as_matrix_of_a_diagonal_solution_is_certified_in_the_full_cone():
    """A diagonal optimum is feasible for the full cone, and no better there than the full optimum."""
    diagonal, full = make_case(4, cone="diagonal"), make_case(4)
    lam = 0.05 * full.problem.lambda_max()
    m, M = ts.solve(diagonal.problem, lam, tol=1e-9), ts.solve(full.problem, lam, tol=1e-9)
    assert full.problem.value(as_matrix(m.M), lam) == pytest.approx(m.primal, rel=1e-12)
    assert M.primal <= m.primal * (1 + 1e-9)


# -- newton ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("options", [{}, {"weighted": True}, {"kind": "knn"}], ids=["given", "weighted", "knn"])
@pytest.mark.parametrize("seed", range(3))
def test_newton_reaches_ten_digits(cone, options, seed):
    case = make_case(seed, n=40, d=5, m=500, cone=cone, **options)
    start = None
    for ratio in (1e-1, 1e-2, 1e-3):
        start = ts.solve(case.problem, ratio * case.problem.lambda_max(), tol=1e-10, solver="newton", start=start)
        assert start.converged
        is_certified(case.problem, start)
        reference = ts.solve(case.problem, start.lam, tol=1e-6, solver="bb", screening=None)
        assert start.primal <= reference.primal + start.gap


def test_newton_reaches_ten_digits_for_the_hinge():
    case = make_case(1, n=40, d=4, m=400, gamma=0.0)
    sol = ts.solve(case.problem, 0.1 * case.problem.lambda_max(), tol=1e-9, solver="newton")
    assert sol.converged


@pytest.mark.parametrize("solver", ["bb", "newton", "auto"])
def test_a_newton_step_never_raises_the_objective_and_a_gradient_step_not_above_the_last_ten(solver):
    for seed, gamma in [(6, 1e-4), (2, 0.05), (4, 1.0)]:
        case = make_case(seed, n=30, d=1 if seed == 6 else 4, m=5 if seed == 6 else 200, gamma=gamma)
        sol = ts.solve(
            case.problem, 1e-2 * case.problem.lambda_max(), solver=solver, screening=None, tol=1e-8, max_iter=500
        )
        primal = sol.history["primal"]
        for t in range(1, len(primal)):
            assert primal[t] <= primal[max(0, t - 10) : t].max() * (1 + 1e-12)


def test_newton_where_no_triplet_is_quadratic():
    """Far above lambda_max there is no curvature but lam's."""
    case = make_case(3)
    sol = ts.solve(case.problem, 5 * case.problem.lambda_max(), tol=1e-12, solver=ts.solvers.Newton(first=0))
    assert sol.converged
