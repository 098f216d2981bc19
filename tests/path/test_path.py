from __future__ import annotations

import itertools
import json
import pickle
import warnings

import numpy as np
import pytest

import triscreen as ts
from oracles import cvxpy_optimum
from problems import SWITCHES, check_path, make_case
from triscreen.problem.cones import components_of

CONES = ["psd", "diagonal"]


# -- the optimum ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("gamma", [0.05, 0.0])
@pytest.mark.parametrize("options", [{}, {"weighted": True}, {"kind": "knn"}], ids=["given", "weighted", "knn"])
def test_every_point_is_the_optimum_of_clarabel(cone, gamma, options):
    case = make_case(24, gamma=gamma, cone=cone, **options)
    tol = 1e-8 if gamma else 1e-6
    path = ts.solve_path(case.problem, ratio=0.5, n_lambdas=6, tol=tol)
    check_path(case.problem, path, tol)
    for t in (0, 2, 5):
        M, objective = cvxpy_optimum(case.X, case.indices, case.w, gamma, path.lambdas[t], cone)
        assert path.primals[t] == pytest.approx(objective, rel=2 * tol + 1e-7)
        assert np.linalg.norm(path.M(t) - M) <= path[t].radius + 1e-4 * (1 + np.linalg.norm(M))


@pytest.mark.thinned(2)
@pytest.mark.parametrize("screening", SWITCHES)
@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("gamma", [0.05, 0.0])
def test_screening_changes_the_work_and_not_the_path(screening, cone, gamma):
    tol = 1e-7 if gamma else 1e-5
    case = make_case(7, n=40, d=4, m=500, gamma=gamma, cone=cone)
    lambdas = case.problem.lambda_max() * 0.8 ** np.arange(14)
    path = ts.solve_path(case.problem, lambdas, tol=tol, screening=screening)
    check_path(case.problem, path, tol)
    for t in (0, 6, 13):
        alone = ts.solve(case.problem, lambdas[t], tol=tol, screening=None)
        assert np.linalg.norm(path.M(t) - alone.M) <= path[t].radius + alone.radius
    if screening is not None:
        assert path.screening_rates.max() > 0.3
        assert path.screening_rates.min() >= 0


@pytest.mark.parametrize("screening", SWITCHES)
def test_nearest_neighbours_with_close_lambdas(screening):
    """Tubes and ranges serve several lambdas here."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 90)
    X = rng.normal(size=(90, 5)) + 1.5 * rng.normal(size=(3, 5))[y]
    problem = ts.Problem(X, ts.knn_triplets(X, y, k=6))
    path = ts.solve_path(problem, ratio=0.98, n_lambdas=60, tol=1e-7, screening=screening)
    check_path(problem, path, 1e-7)
    if screening == "auto":
        assert path.passes.sum() < 0.5 * ts.solve_path(problem, path.lambdas, tol=1e-7, screening=None).passes.sum()
        assert np.median(path.scanned) == 0  # most lambdas look at no triplet outside the working set


@pytest.mark.frugal
def test_auto_makes_tubes_only_where_they_are_likely_to_pay():
    """A small problem is solved as without screening, to the bit; a larger one with far fewer passes."""
    rng = np.random.default_rng(3)
    for n, pays in ((40, False), (1500, True)):
        y = rng.integers(0, 3, n)
        X = rng.normal(size=(n, 30)) + 0.3 * rng.normal(size=(3, 30))[y]
        problem = ts.Problem(X, ts.knn_triplets(X, y, k=8))
        lambdas = problem.lambda_max() * 0.9 ** np.arange(20, 32)
        path, plain = (ts.solve_path(problem, lambdas, screening=how) for how in ("auto", None))
        assert (path.screening_rates.max() > 0.1) == pays
        assert (path.passes.sum() < 0.8 * plain.passes.sum()) == pays
        assert pays or np.array_equal(path.gaps, plain.gaps)


@pytest.mark.parametrize("screening", SWITCHES)
@pytest.mark.parametrize("gamma", [0.05, 0.0])
def test_many_triplets_over_few_pairs(screening, gamma):
    """Screening leaves fewer triplets over the same pairs: such an evaluation looks like one of all triplets."""
    tol = 1e-7 if gamma else 1e-5
    case = make_case(5, n=10, d=2, m=1500, gamma=gamma)
    path = ts.solve_path(case.problem, ratio=0.8, n_lambdas=14, tol=tol, screening=screening)
    check_path(case.problem, path, tol)


@pytest.mark.parametrize("solver", ["bb", "newton", "dual"])
def test_solvers_agree(solver):
    case = make_case(11, n=30, d=3, m=300)
    path = ts.solve_path(case.problem, ratio=0.7, n_lambdas=6, tol=1e-6, solver=solver)
    check_path(case.problem, path, 1e-6)


def test_data_of_less_dimensions_than_features():
    case = make_case(30, n=8, d=12, m=30)
    path = ts.solve_path(case.problem, ratio=0.5, n_lambdas=6)
    check_path(case.problem, path, 1e-6)
    assert path.M(-1).shape == (12, 12)
    assert path.components(-1).T @ path.components(-1) == pytest.approx(path.M(-1), abs=1e-12 * path.M(-1).max())


# -- where it ends --------------------------------------------------------------------------------------------------


def test_the_paths_first_metric_is_the_closed_form_where_all_triplets_are_linear():
    case = make_case(3)
    lam = case.problem.lambda_max() / 0.95 * 1.01
    path = ts.solve_path(case.problem, [lam], tol=1e-10)
    S = sum(w * (np.outer(u, u) - np.outer(v, v)) for w, u, v in _differences(case))
    values, vectors = np.linalg.eigh(S)
    assert path.M(0) == pytest.approx((vectors * np.maximum(values, 0)) @ vectors.T / lam, abs=1e-10)
    assert path.n_iter[0] == 0


def _differences(case):
    for w, (i, j, k) in zip(case.w, case.indices, strict=True):
        yield w, case.X[i] - case.X[k], case.X[i] - case.X[j]


def test_the_papers_rule_ends_the_path_and_the_safeguards_do():
    case = make_case(7, n=40, d=4, m=500)
    path = ts.solve_path(case.problem)
    assert path.stopped_by == "loss settled"
    losses, lams = path.losses, path.lambdas
    change = (losses[:-1] - losses[1:]) / losses[:-1] * lams[:-1] / (lams[:-1] - lams[1:])
    assert change[-1] < 0.01
    fallen = losses[1:] < 0.9 * losses[0]
    assert (change[:-1][fallen[:-1]] >= 0.01).all()

    X, y = np.array([[0.0], [0.1], [5.0], [5.1]]), [0, 0, 1, 1]
    separable = ts.solve_path(ts.Problem(X, ts.knn_triplets(X, y, k=1)), ratio=0.3)
    assert separable.stopped_by in ("loss is zero", "lambda_min")
    assert separable.lambdas[-1] >= 1e-9 * separable.lambdas[0]

    assert ts.solve_path(case.problem, n_lambdas=3).stopped_by == "n_lambdas"
    assert ts.solve_path(case.problem, [5.0, 2.0]).stopped_by == "lambdas"
    assert ts.solve_path(case.problem, lambda_max=3.0, n_lambdas=2).lambdas == pytest.approx([3.0, 2.7])


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
def test_a_prior_that_no_triplet_feels_does_not_end_a_path_at_once(cone):
    """A tenth of a tiny prior is gone long before the loss moves, and a loss that does not move looks settled."""
    case = make_case(2, cone=cone)
    N = 1e-3 * (np.ones(3) if cone == "diagonal" else np.eye(3))
    problem = ts.Problem(case.X, ts.given_triplets(case.indices), cone=cone, prior=N)
    path = ts.solve_path(problem, ratio=0.5)
    assert path.losses[-1] < 0.9 * problem.triplets.total_weight * problem.loss(0.0)
    assert np.linalg.norm(path.M(-1)) > 10 * np.linalg.norm(N)


def test_a_problem_without_a_path_says_so():
    X = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0], [0.1, 0.0], [0.0, 0.1]])
    problem = ts.Problem(X, ts.given_triplets([[0, 1, 3], [0, 2, 4]]))
    with pytest.raises(ts.InputError, match="M = 0 is optimal for every lambda"):
        ts.solve_path(problem)
    path = ts.solve_path(problem, [2.0, 1.0])
    assert path.converged.all()
    assert not path.M(1).any()


def test_seconds_callbacks_and_iterations_end_it():
    case = make_case(7, n=40, d=4, m=500)
    seen = []

    def callback(state):
        seen.append(state)
        return len(seen) == 3

    path = ts.solve_path(case.problem, callback=callback)
    assert (len(path), path.stopped_by) == (3, "callback")
    assert [s.n_lambdas for s in seen] == [1, 2, 3]
    assert seen[-1].lam == path.lambdas[-1]
    assert seen[-1].rel_gap == path.rel_gaps[-1]
    short = ts.solve_path(case.problem, path.lambdas[0] * 0.9999 ** np.arange(100_000), max_seconds=0.2)
    assert short.stopped_by == "max_seconds"
    assert 1 <= len(short) < 100_000
    lambdas = path.lambdas[0] * 0.3 ** np.arange(8)
    with pytest.warns(ts.ConvergenceWarning, match=r"of 8 lambdas did not reach the relative gap 1e-12"):
        few = ts.solve_path(case.problem, lambdas, tol=1e-12, max_iter=2)
    assert not few.converged.all()
    assert few[-1].stopped_by == "max_iter"


def test_ctrl_c_gives_the_path_so_far():
    case = make_case(7, n=40, d=4, m=500)
    counter = itertools.count()

    def callback(state):
        if next(counter) == 4:
            raise KeyboardInterrupt

    with pytest.raises(ts.Interrupted, match="after 5 lambdas") as caught:
        ts.solve_path(case.problem, callback=callback)
    assert len(caught.value.result) == 5
    assert caught.value.result.converged.all()


def test_a_warning_names_the_reason():
    X = np.random.default_rng(0).normal(size=(30, 2)) * [1.0, 1e-9]
    X[0] = [1e9, 0.0]
    problem = ts.Problem(X, ts.given_triplets([[i, (i + 1) % 30, (i + 7) % 30] for i in range(1, 28)]))
    with pytest.warns(ts.ConvergenceWarning, match="float64 can prove no more"):
        ts.solve_path(problem, [1e-3], tol=1e-15)


def test_scikit_learns_filters_see_our_convergence_warning():
    from sklearn.exceptions import ConvergenceWarning

    problem = make_case(0).problem
    lam = 1e-3 * problem.lambda_max()
    for verb in (
        lambda: ts.solve(problem, lam, max_iter=1),
        lambda: ts.solve_path(problem, lambdas=[lam, lam / 2], max_iter=1),
    ):
        with pytest.warns(ConvergenceWarning) as seen:
            verb()
        assert all(issubclass(warning.category, ts.ConvergenceWarning) for warning in seen)
        assert seen[0].filename == __file__
        assert isinstance(pickle.loads(pickle.dumps(seen[0].message)), ts.ConvergenceWarning)


# -- between the lambdas --------------------------------------------------------------------------------------------


@pytest.mark.thinned(2)
@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("gamma", [0.05, 0.0])
@pytest.mark.parametrize("eps", [0.1, 1e-2])
def test_a_guarantee_holds_for_every_lambda(cone, gamma, eps):
    case = make_case(7, n=40, d=4, m=500, gamma=gamma, cone=cone)
    path = ts.solve_path(case.problem, guarantee=eps, tol=1e-5)
    assert path.stopped_by in ("loss settled", "lambda_min", "loss is zero")
    assert (np.diff(path.lambdas) < 0).all()
    worst = together = 0
    for lam in np.geomspace(path.lambdas[-1], path.lambdas[0], 300):
        sol = path.at(lam)
        assert sol.rel_gap <= eps
        worst = max(worst, sol.rel_gap)
        certificate = case.problem.certificate(sol.M, lam)
        if sol.stopped_by == "mixture":
            together += 1
            assert sol.primal - sol.gap - 1e-9 * sol.primal <= certificate.primal <= sol.primal * (1 + 1e-9)
            assert sol.passes == 0
        else:
            assert certificate.primal == pytest.approx(sol.primal, rel=1e-9)
        assert certificate.gap <= eps * certificate.primal  # of the alphas from its margins at lam
    assert together > 10
    assert worst > 0.2 * eps  # no denser than needed
    dense = ts.solve_path(case.problem, [path.lambdas[len(path) // 2]], tol=1e-6)
    assert path.at(dense.lambdas[0]).primal >= dense.primals[0] - dense.gaps[0]


def test_between_two_lambdas_the_gap_is_that_of_the_alphas_of_the_neighbour():
    """The explicit formula, against a certificate with the very same alphas."""
    case = make_case(5)
    path = ts.solve_path(case.problem, ratio=0.8, n_lambdas=5, tol=1e-8)
    for t in range(4):
        lam = 0.95 * path.lambdas[t]
        sol = path.at(lam)
        margins = np.array([u @ sol.M @ u - v @ sol.M @ v for _, u, v in _differences(case)])
        alpha = np.clip((1 - margins) / 0.05, 0, 1)
        certificate = case.problem.certificate(sol.M, lam, alpha=alpha)
        assert sol.gap == pytest.approx(certificate.gap, rel=1e-6)
        assert sol.dual == pytest.approx(certificate.dual, rel=1e-9)


def test_a_guarantee_that_cannot_be_given_ends_the_path():
    case = make_case(7, n=40, d=4, m=500, gamma=0)
    with pytest.warns(ts.ConvergenceWarning):
        path = ts.solve_path(case.problem, guarantee=1e-4, max_iter=1)
    assert path.stopped_by == "no guarantee"
    assert len(path) < 50


# -- what it is -----------------------------------------------------------------------------------------------------


def test_a_path_is_saved_and_loaded_bit_by_bit(tmp_path):
    for cone, options in [("psd", {}), ("diagonal", {}), ("psd", {"n": 8, "d": 12, "m": 30})]:
        case = make_case(30, cone=cone, **options)
        path = ts.solve_path(case.problem, ratio=0.6, n_lambdas=5, screening=ts.Screening("mid", every=2))
        ts.save(path, tmp_path / "a.path")
        again = ts.load(tmp_path / "a.path")
        assert repr(again) == repr(path)
        for t in range(len(path)):
            assert (again.M(t) == path.M(t)).all()
            assert again[t].gap == path[t].gap
            assert again[t].screening == path[t].screening
        assert again.at(0.9 * path.lambdas[0], case.problem).gap == path.at(0.9 * path.lambdas[0]).gap
        with pytest.raises(ts.InputError, match="pass the problem"):
            again.certify()
        assert [c.gap for c in again.certify(case.problem)] == [c.gap for c in path.certify()]
    with pytest.raises(ts.InputError, match="obj is a list"):
        ts.save([], tmp_path / "b")


def test_a_path_is_a_table_and_a_sequence():
    pytest.importorskip("pandas")
    case = make_case(7, n=40, d=4, m=500)
    path = ts.solve_path(case.problem, ratio=0.7, n_lambdas=4)
    frame = path.to_frame()
    assert list(frame.lambdas) == list(path.lambdas)
    assert frame.converged.all()
    assert [sol.lam for sol in path] == list(path.lambdas)
    assert path[-1].lam == path.lambdas[-1]
    with pytest.raises(IndexError):
        path[4]
    assert path.certificate_passes == 0
    path.certify()
    assert path.certificate_passes == 4
    assert "4 lambdas" in repr(path)


def test_a_file_of_a_path_says_what_it_is(tmp_path):
    import zipfile

    path = ts.solve_path(make_case(3).problem, [3.0, 2.0])
    ts.save(path, tmp_path / "a.path")
    with zipfile.ZipFile(tmp_path / "a.path") as archive:
        assert json.loads(archive.read("header.json"))["kind"] == "path"


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
@pytest.mark.parametrize("shape", [(30, 4), (12, 20)])  # the second one is rotated into its span
def test_components_are_those_of_estimators(cone, shape):
    rng = np.random.default_rng(0)
    y = np.arange(shape[0]) % 2
    X = rng.normal(size=shape) + y[:, None] * rng.normal(size=shape[1])
    path = ts.solve_path(ts.Problem(X, ts.knn_triplets(X, y, 2), cone=cone), ratio=0.5, n_lambdas=4)
    for t in range(len(path)):
        L = path.components(t)
        lengths = np.square(L).sum(axis=1)
        assert (np.diff(lengths) <= 1e-12 * lengths[0]).all()  # the most important first
        assert (L[np.arange(len(L)), np.abs(L).argmax(axis=1)] > 0).all()  # signs fixed
        assert pytest.approx(components_of(path.M(t))[: len(L)], abs=1e-6 * np.abs(L).max()) == L
    model = ts.TripletMetricCV(2, candidates=[None], ratios=4, cv=2, cone=cone).fit(X, y)
    if model.path_ is None:  # Euclid itself was chosen
        return
    assert np.array_equal(model.components_, model.path_.components(model.best_index_))


def test_a_metric_of_zero_has_one_row_of_components():
    for M in (np.zeros(3), np.zeros((3, 3))):
        assert components_of(M).tolist() == [[0.0, 0.0, 0.0]]
    assert components_of(factor=np.zeros((3, 0))).tolist() == [[0.0, 0.0, 0.0]]


# -- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lambdas": []}, "lambdas"),
        ({"lambdas": [1.0, 2.0]}, "lambdas must be positive, finite and falling"),
        ({"lambdas": [1.0, 1.0]}, "falling"),
        ({"lambdas": [1.0, -1.0]}, "positive"),
        ({"lambdas": [np.nan]}, "finite"),
        ({"lambdas": "many"}, "lambdas"),
        ({"lambdas": [2.0], "lambda_max": 3.0}, "lambda_max=3.0"),
        ({"lambda_max": -1}, "lambda_max=-1"),
        ({"ratio": 1.0}, "ratio=1.0"),
        ({"ratio": 0}, "ratio"),
        ({"n_lambdas": 0}, "n_lambdas=0"),
        ({"n_lambdas": 2.5}, "n_lambdas=2.5"),
        ({"tol": 0}, "tol"),
        ({"guarantee": 1e-7}, "guarantee must be larger than tol"),
        ({"guarantee": 1e-6}, "guarantee must be larger than tol"),
        ({"guarantee": 0.1, "lambdas": [2.0]}, "guarantee=0.1"),
        ({"solver": "sgd"}, "solver='sgd'"),
        ({"screening": "all"}, "screening='all'"),
        ({"max_iter": -3}, "max_iter=-3"),
        ({"max_seconds": 0}, "max_seconds"),
        ({"callback": 3}, "callback=3"),
        ({"checkpoint": 3}, "checkpoint"),
    ],
)
def test_bad_arguments_are_named_before_any_work(arguments, message):
    case = make_case(3)
    with warnings.catch_warnings(), pytest.raises(ts.InputError, match=message):
        ts.solve_path(case.problem, **arguments)


def test_bad_switches_and_lambdas_of_a_path():
    with pytest.raises(ts.InputError, match="active_set='all'"):
        ts.Screening(active_set="all")
    path = ts.solve_path(make_case(3).problem, [3.0, 2.0])
    for lam in (3.1, 1.9):
        with pytest.raises(ts.InputError, match="this path goes from 3 to 2"):
            path.at(lam)
    with pytest.raises(ts.InputError, match="problem is a"):
        ts.solve_path("nothing")


@pytest.mark.parametrize("ratio", [-5, 0.5, 0.99, "0.9", None, 2.0])
@pytest.mark.parametrize("other", [{"guarantee": 0.1}, {"lambdas": [2.0, 1.0]}])
def test_a_ratio_beside_what_chooses_the_lambdas_is_refused(ratio, other):
    with pytest.raises(ts.InputError, match=r"^ratio="):
        ts.solve_path(make_case(0).problem, ratio=ratio, **other)
