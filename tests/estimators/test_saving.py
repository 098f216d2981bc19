"""Files: everything that can be saved comes back, and nothing else is believed; folders of a cross-validation."""

from __future__ import annotations

import contextlib
import shutil

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.pipeline import Pipeline, make_pipeline

import triscreen as ts
from problems import comparisons
from triscreen._utils import archive as files
from triscreen._utils.checkpoint import recording


@pytest.fixture
def wine():
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X[::2], y[::2]


def test_a_refusal_names_all_that_can_be_saved(tmp_path):
    names = (
        "Path, a Solution, a metric M .*TripletMetric, TripletMetricCV, TripletClassifier, ComparisonMetric or Scaling,"
        " or a pipeline of these and of scikit-learn's scalers, PCA, TruncatedSVD and KNeighborsClassifier"
    )
    with pytest.raises(ts.InputError, match=f"obj is a dict: what can be saved is a {names}"):
        ts.save({}, tmp_path / "model")
    files.write(tmp_path / "model", "else", {}, {})
    with pytest.raises(ts.InputError, match=f"holds a else: what load reads is a {names}"):
        ts.load(tmp_path / "model")


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
def test_solutions_and_metrics_are_saved_too(wine, tmp_path, cone):
    X, y = wine
    problem = ts.Problem(X, ts.knn_triplets(X, y, 3), cone=cone)
    sol = ts.solve(problem, 0.01 * problem.lambda_max(), screening=ts.Screening("pgb", every=3))
    ts.save(sol, tmp_path / "a")
    again = ts.load(tmp_path / "a")
    assert type(again) is ts.Solution
    assert (again.lam, again.gap, again.converged, again.screening) == (sol.lam, sol.gap, True, sol.screening)
    np.testing.assert_array_equal(again.M, sol.M)
    assert again.history.keys() == sol.history.keys()
    assert all((again.history[name] == sol.history[name]).all() for name in sol.history)
    assert ts.solve(problem, sol.lam, start=again).n_iter == 0
    ts.save(sol.M, tmp_path / "b")
    np.testing.assert_array_equal(ts.load(tmp_path / "b"), sol.M)
    ts.save(ts.solve_path(problem, n_lambdas=3)[2], tmp_path / "c")
    assert ts.load(tmp_path / "c").history == {}
    skew = np.array([[1.0, 2.0], [0.0, 1.0]])
    shapes = [np.ones((2, 3)), np.array(1.0), np.empty((0, 0)), np.ones((2, 2, 2))]
    for wrong in (*shapes, skew, np.eye(2) * np.nan, np.eye(2) * 1j, np.array(["a"])):
        with pytest.raises(ts.InputError, match="a metric"):
            ts.save(wrong, tmp_path / "d")
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csr_array, sparse.coo_matrix, sparse.csc_array])
def test_a_sparse_preprocessor_is_saved(tmp_path, make):
    X, rows = comparisons(0)
    X = np.where(X > 0.3, X, 0.0)
    model = ts.ComparisonMetric(preprocessor=make(X)).fit(rows)
    ts.save(model, tmp_path / "model")
    again = ts.load(tmp_path / "model")
    assert isinstance(again.preprocessor, sparse.spmatrix) == isinstance(model.preprocessor, sparse.spmatrix)
    assert (again.preprocessor.toarray() == X).all()
    assert again.score(rows) == model.score(rows)


def test_requests_of_metadata_are_saved(wine, tmp_path):
    """On estimators and inside pipelines, and the fit that they ask for is the same."""
    X, y = wine
    weights = np.linspace(0.5, 2, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        metric = ts.TripletMetric(tol=1e-6).set_fit_request(sample_weight="heavy")
        cv = ts.TripletMetricCV(ratios=2, cv=2).set_fit_request(sample_weight=False, groups=True)
        rest = [ts.ComparisonMetric().set_fit_request(sample_weight=True).set_score_request(sample_weight=False),
                ts.Scaling().set_fit_request(feature_names=True), ts.TripletMetric()]  # fmt: skip
        for model in (metric, cv, *rest):
            ts.save(model, tmp_path / "model")
            again = ts.load(tmp_path / "model")
            assert str(again.get_metadata_routing()) == str(model.get_metadata_routing())
            assert str(clone(again).get_metadata_routing()) == str(model.get_metadata_routing())
        pipe = Pipeline([("scaling", ts.Scaling()), ("metric", metric)], verbose=True, transform_input=["heavy"])
        ts.save(pipe, tmp_path / "pipe")
        again = ts.load(tmp_path / "pipe")
        assert (again.verbose, again.transform_input) == (True, ["heavy"])
        assert str(again.get_metadata_routing()) == str(pipe.get_metadata_routing())
        again.set_params(verbose=False, transform_input=None).fit(X, y, heavy=weights)
        pipe.set_params(verbose=False, transform_input=None).fit(X, y, heavy=weights)
        np.testing.assert_array_equal(again[1].components_, pipe[1].components_)
    ts.save(metric, tmp_path / "model")  # where routing is off, requests stay all the same
    assert str(ts.load(tmp_path / "model").get_metadata_routing()) == str(metric.get_metadata_routing())


def test_a_file_that_holds_something_else_is_refused_in_one_sentence(wine, tmp_path):
    """Valid bytes of every kind with one part missing, of another type, or empty."""
    X, y = wine
    problem = ts.Problem(X, ts.knn_triplets(X, y, 3))
    path = ts.solve_path(problem, n_lambdas=3)
    scaled = make_pipeline(ts.Scaling(), ts.TripletMetric(tol=0.1)).fit(X, y)
    tried = 0
    for thing in (path, path[1], path.M(1), scaled[1], scaled):
        ts.save(thing, tmp_path / "a")
        kind, meta, arrays = files.read(tmp_path / "a")
        changes = [({**meta, key: value}, arrays) for key in meta for value in (None, 3, "x", [], {}, [None])]
        changes += [({k: v for k, v in meta.items() if k != key}, arrays) for key in meta]
        changes += [(meta, {k: v for k, v in arrays.items() if k != key}) for key in arrays]
        changes += [(meta, {**arrays, key: np.array(["x"])}) for key in arrays]
        for changed in [*changes, ({}, {})]:
            files.write(tmp_path / "b", kind, *changed)
            tried += 1
            with contextlib.suppress(ts.InputError):
                ts.load(tmp_path / "b")
    assert tried > 250


def test_a_cross_validation_refuses_folders_of_another(wine, tmp_path):
    """A fold of another one, a fold at another place, a checkpoint that is no folder."""
    X, y = wine
    make = lambda name, **more: ts.TripletMetricCV(cv=3, ratios=3, checkpoint=tmp_path / name, **more)  # noqa: E731
    make("a").fit(X, y)
    make("b", gamma=0.5).fit(X, y)
    for number, (source, place) in enumerate([("b/round-1-fold-1", "fold-1"), ("a/round-1-fold-0", "fold-1")]):
        folder = tmp_path / f"c{number}"
        shutil.copytree(tmp_path / "a", folder)
        shutil.rmtree(folder / f"round-1-{place}")
        shutil.copytree(tmp_path / source, folder / f"round-1-{place}")
        before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        with pytest.raises(ts.InputError, match=r"fold 1 of cv \(.*\): checkpoint=.* belongs to another run"):
            make(f"c{number}").fit(X, y)
        assert before == {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    (tmp_path / "file").touch()
    for odd in (tmp_path / "file", tmp_path / "x" / ("y" * 300), 3):
        with pytest.raises(ts.InputError, match="checkpoint="):
            ts.TripletMetricCV(cv=3, ratios=3, checkpoint=odd).fit(X, y)
    assert not (tmp_path / "x").exists()
    with recording() as written:
        make("a").fit(X, y)
    (tmp_path / "b" / "notes").touch()
    assert written.remove()
    assert list((tmp_path / "a").iterdir()) == []  # it was there before


def test_a_cross_validation_looks_at_all_its_folders_before_it_works_in_one(wine, tmp_path):
    X, y = wine
    model = ts.TripletMetricCV(candidates=[None], cv=3, ratios=[1.0, 0.1, 0.01], checkpoint=tmp_path / "a")
    model.fit(X, y)
    assert model.best_index_ > 0
    shutil.rmtree(tmp_path / "a" / "round-1-fold-0")
    entry = tmp_path / "a" / "round-1-all" / "000001.tsc"
    entry.write_bytes(entry.read_bytes()[:-20])
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    with pytest.raises(ts.InputError, match=r"checkpoint=.*round-1-all': '000001.tsc' is damaged"):
        model.fit(X, y)
    assert before == {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert not (tmp_path / "a" / "round-1-fold-0").exists()
