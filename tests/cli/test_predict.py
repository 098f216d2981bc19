"""``triscreen fit --classifier`` and ``triscreen predict``: from a file to a decision."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import triscreen as ts
from commands import invoke, refusal
from triscreen.selection.votes import interval


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    folder = tmp_path_factory.mktemp("predict")
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 3)) + 2 * np.stack([y == 1, y == 2, y > 5], axis=1)
    for name, rows in (("old", range(60)), ("new", range(60, 90))):
        lines = [f"n{i},{X[i, 2]!r},{X[i, 0]!r},{X[i, 1]!r},c{y[i]}" for i in rows]
        header = "id,noise,a,b,kind"
        (folder / f"{name}.csv").write_text("\n".join([header, *lines, ""]).replace("np.float64(", "").replace(")", ""))
    words = ("fit", folder / "old.csv", "--label", "kind", "--drop", "id", "--cv", "3", "--tol", "1e-3", "--classifier")
    done = invoke(*words, "-o", folder / "c.model")
    assert done.code == 0, done
    (folder / "said.txt").write_text(done.err)
    return folder


def test_fit_says_the_error_before_and_after_with_counts_and_intervals(given):
    model = ts.load(given / "c.model")[-1]
    said = (given / "said.txt").read_text().replace("\n", " ")
    for error, low, high in (model.error_before_, model.error_after_):
        assert (low, high) == interval(error, 60)
        assert f"{error:.1%} ({error * 60:.0f} of 60 points, 95 % interval {low:.1%} to {high:.1%})" in said
    many = "s" * (model.vote_neighbors_ > 1)
    assert f"error of {model.vote_neighbors_} neighbour{many} (weights: {model.vote_weights_}) on held-out" in said


def test_fit_without_a_classifier_says_errors_too(given, tmp_path):
    words = ("fit", given / "old.csv", "--label", "kind", "--drop", "id", "--cv", "3", "--tol", "1e-3", "--candidates",
             "none")  # fmt: skip
    done = invoke(*words, "--components", "1", "--json", "-o", tmp_path / "m")
    told, metric = json.loads(done.out), ts.load(tmp_path / "m")[-1]
    assert told["error_before"] - told["error_after"] == pytest.approx(told["gain"])  # folds of one size
    assert told["error_after_interval"] == list(interval(told["error_after"], 60))
    assert told["truncation"] == metric.truncation_
    assert told["truncation"]["rel_cost"] > metric.rel_gap_
    done = invoke(*words, "--components", "1", "-o", tmp_path / "m")
    assert "error of 3 neighbours on held-out points" in done.err
    assert f"1 of {metric.truncation_['rank']} directions are kept" in done.err


def test_predictions_shares_and_columns_that_are_carried_along(given, tmp_path):
    done = invoke("predict", given / "c.model", given / "new.csv", "--keep", "id", "--label", "kind")
    assert done.code == 0, done
    rows = list(csv.DictReader(done.out.splitlines()))
    assert list(rows[0]) == ["id", "kind", "predicted", "share c0", "share c1", "share c2"]
    assert [row["id"] for row in rows] == [f"n{i}" for i in range(60, 90)]
    model = ts.load(given / "c.model")
    points = ts.datasets.read_points(given / "new.csv", labelled=False, features=list(model[0].feature_names_in_))
    del model[0].feature_names_in_
    assert [row["predicted"] for row in rows] == model.predict(points.X).tolist()
    shares = np.array([[float(row[f"share c{c}"]) for c in range(3)] for row in rows])
    np.testing.assert_array_equal(shares, model.predict_proba(points.X))
    wrong = sum(row["predicted"] != row["kind"] for row in rows)
    assert 0 < wrong < 15
    low, high = interval(wrong / 30, 30)
    assert f"{wrong} of 30 points with a label were classified wrongly: {wrong / 30:.1%}" in done.err
    assert f"(95 % interval {low:.1%} to {high:.1%})" in done.err
    assert "flatter" not in done.err
    alone = invoke("predict", given / "c.model", given / "new.csv", "-o", tmp_path / "p.csv", "--quiet")
    assert (alone.code, alone.out, alone.err) == (0, "", "")
    assert (tmp_path / "p.csv").read_text().startswith("predicted,share c0,")


def test_points_that_vote_for_themselves_are_told(given, tmp_path):
    done = invoke("predict", given / "c.model", given / "old.csv", "--label", "kind")
    assert "60 of these points vote for themselves" in done.err
    done = invoke("predict", given / "c.model", given / "old.csv", "--label", "kind", "--json", "-o", tmp_path / "p")
    assert json.loads(done.out)["n_learned_from"] == 60


def test_a_pipeline_of_scikit_learn_predicts_too(given, tmp_path):
    old = ts.datasets.read_points(given / "old.csv", label="kind", drop=["id"])
    new = ts.datasets.read_points(given / "new.csv", label="kind", drop=["id"])
    model = make_pipeline(StandardScaler(), ts.TripletMetric(tol=1e-2), KNeighborsClassifier(3)).fit(old.X, old.y)
    ts.save(model, tmp_path / "m")
    done = invoke("predict", tmp_path / "m", given / "new.csv", "--label", "kind", "--drop", "id")
    assert [row["predicted"] for row in csv.DictReader(done.out.splitlines())] == model.predict(new.X).tolist()


def test_what_cannot_predict_is_refused_in_one_sentence(given, tmp_path):
    old = ts.datasets.read_points(given / "old.csv", label="kind", drop=["id"])
    metric = ts.TripletMetric(tol=1e-2).fit(old.X, old.y)
    path = ts.solve_path(ts.Problem(old.X, ts.knn_triplets(old.X, old.y, k=2)), n_lambdas=2, tol=1e-2)
    for what, words in (
        (metric, "is a metric only: it measures distances and knows no classes; make a classifier with triscreen fit"),
        (path, "holds a path"),
        (metric.get_mahalanobis_matrix(), "holds a metric without its features"),
        (ts.TripletClassifier(), "is not fitted: make one with triscreen fit"),
    ):
        ts.save(what, tmp_path / "m")
        assert words in refusal("predict", tmp_path / "m", given / "new.csv")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    assert "lacks the column 'noise'" in refusal("predict", given / "c.model", tmp_path / "other.csv")
    (tmp_path / "few.csv").write_text("1,2\n3,4\n")
    assert "has 2 columns of features: the model was learned from 3" in refusal(
        "predict", given / "c.model", tmp_path / "few.csv"
    )
    assert "output is not given" in refusal("predict", given / "c.model", given / "new.csv", "--json")
    for more, words in ((("--lam", "1"), "--lam"), (("--certify", "0.1"), "--classifier")):
        said = refusal("fit", given / "old.csv", "--classifier", *more, "-o", tmp_path / "x")
        assert f"it has no effect with {words}" in said
