"""Files with categories, dates, gaps and decimal commas: the same features wherever a path or a model meets them."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import triscreen as ts
from commands import invoke, refusal

NAMES = ["weight", "colour=blue", "colour=green", "colour=red", "born"]
READ = ("--decimal", ",")


@pytest.fixture(scope="module")
def pets(tmp_path_factory):
    """A table as spreadsheets write it in half of Europe, a path and a classifier of it, and new points."""
    folder, rng = tmp_path_factory.mktemp("prepared"), np.random.default_rng(0)
    rows = ["id;weight;colour;born;kind"]
    for i in range(48):
        weight = "" if i in (7, 20) else f"{2 * (i % 3 == 1) + rng.normal():.3f}".replace(".", ",")
        colour = ("red", "blue", "green")[(i + (rng.random() < 0.4)) % 3]
        rows.append(f"p{i};{weight};{colour};20{10 + i % 7}-0{1 + i % 9}-1{i % 9};{('dog', 'cat', 'cow')[i % 3]}")
    (folder / "pets.csv").write_text("\n".join(rows) + "\n")
    (folder / "new.csv").write_text("born;colour;weight;id\n2011-03-01;red;3,5;a\n2012-12-31;blue;;b\n")
    known = (folder / "pets.csv", "--drop", "id", "--label", "kind", "--missing", "median", "--categories", "colour",
             "--dates", "born", *READ, "-q", "--tol", "1e-2")  # fmt: skip
    for verb, *more in (("path", "--n-lambdas", 4, "--ratio", 0.4, "-k", 3), ("fit", "--cv", 2, "--classifier")):
        done = invoke(verb, *known, *more, "-o", folder / verb)
        assert done.code == 0, done
    return folder


def transformed(model, data, *more):
    done = invoke("transform", model, data, *READ, "--keep", "id", *more)
    assert done.code == 0, done
    return np.array([row[1:] for row in csv.reader(io.StringIO(done.out))][1:], dtype=float)


def features(scaling, pets):
    """Return the features of the two new points, by hand."""
    cells = [row.split(";")[1] for row in (pets / "pets.csv").read_text().splitlines()[1:]]
    fill = np.median([float(cell.replace(",", ".")) for cell in cells if cell])
    days = [(np.datetime64(day) - np.datetime64("1970-01-01")).astype(int) for day in ("2011-03-01", "2012-12-31")]
    assert list(scaling.feature_names_in_) == NAMES
    return np.array([[3.5, 0, 0, 1, days[0]], [fill, 1, 0, 0, days[1]]])


def test_a_path_and_the_model_that_it_becomes_make_the_same_features(pets, tmp_path):
    model = ts.as_model(ts.load(pets / "path"), 2)
    X = features(model[0], pets)
    wanted = (X - model[0].shift_) * model[0].factor_ @ model[1].components_.T
    np.testing.assert_allclose(transformed(pets / "path", pets / "new.csv", "--lam", 2), wanted, atol=1e-12)
    done = invoke("export", pets / "path", "--lam", 2, "-o", tmp_path / "m")
    assert (done.code, done.err) == (0, f"triscreen: wrote {str(tmp_path / 'm')!r}\n")
    np.testing.assert_array_equal(
        transformed(tmp_path / "m", pets / "new.csv"), transformed(pets / "path", pets / "new.csv", "--lam", 2)
    )


@pytest.mark.parametrize("kind", ["npz", "safetensors", "onnx", "faiss", "sentence-transformers"])
def test_an_export_says_which_numbers_it_takes(pets, tmp_path, kind):
    file, told = tmp_path / "it", {}
    if kind in ("onnx", "faiss"):
        pytest.importorskip(kind)
    done = invoke("export", pets / "path", "--lam", 2, "--to", kind, "-o", file)
    assert done.code == 0, done
    assert f"it takes 5 numbers in this order: {', '.join(NAMES)}; categories (colour), dates (born), gaps" in done.err
    assert "gaps are to be made numbers before that, as triscreen transform does" in done.err
    model = ts.as_model(ts.load(pets / "path"), 2)
    X = features(model[0], pets)
    wanted = (X - model[0].shift_) * model[0].factor_ @ model[1].components_.T
    if kind == "npz":
        with np.load(file, allow_pickle=False) as found:
            told = {"features": found["features"].tolist(), "columns": json.loads(str(found["columns"]))}
            np.testing.assert_allclose((X - found["shift"]) @ found["matrix"] + found["offset"], wanted, atol=1e-9)
    elif kind == "safetensors":
        raw = file.read_bytes()
        header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
        told = {name: json.loads(header["__metadata__"][name]) for name in ("features", "columns")}
    elif kind == "onnx":
        onnx = pytest.importorskip("onnx")
        told = {prop.key: json.loads(prop.value) for prop in onnx.load(str(file)).metadata_props}
    if told:
        assert told == {"features": NAMES, "columns": model[0].columns_}
    assert invoke("export", pets / "path", "--lam", 2, "--to", kind, "-o", file, "-q").err == ""


def test_predictions_of_files_with_gaps_and_decimal_commas(pets):
    words = ("predict", pets / "fit", pets / "new.csv", "--keep", "id")
    rows = list(csv.DictReader(io.StringIO(invoke(*words, *READ).out)))
    model = ts.load(pets / "fit")
    X = features(model[0], pets)
    del model[0].feature_names_in_
    assert [row["predicted"] for row in rows] == model.predict(X).tolist()
    assert [row["id"] for row in rows] == ["a", "b"]
    assert "numbers have a point, not a comma (unless you say so: --decimal ,)" in refusal(*words)
    done = invoke(*words, *READ, "--missing", "drop")
    assert [row["id"] for row in csv.DictReader(io.StringIO(done.out))] == ["a"]
    assert "1 of 2 rows" in done.err
    assert "column 'weight': the value is missing" in refusal(*words, *READ, "--missing", "error")


def test_a_classifier_is_evaluated_as_a_metric(pets):
    words = ("evaluate", pets / "fit", pets / "pets.csv", "--label", "kind", "--drop", "id", *READ, "--json", "-q")
    done = invoke(*words)
    assert done.code == 0, done
    assert json.loads(done.out)["n_points"] == 48


def test_info_of_every_kind_of_file(pets, tmp_path):
    def told(file):
        done = invoke("info", file, "--json")
        assert done.code == 0, done
        assert invoke("info", file).code == 0
        return json.loads(done.out)

    path = ts.load(pets / "path")
    found = told(pets / "path")
    assert (found["kind"], found["columns"], found["missing"]) == ("path", "colour (category), born (date)", "median")
    assert found["best_lambda"] == ts.as_model(path)[-1].lam_
    assert found["error_at_best_lambda"] == path.facts.errors.min()
    assert invoke("export", pets / "path", "-o", tmp_path / "m").code == 0
    found = told(tmp_path / "m")
    assert (found["metric"], found["lam"]) == ("TripletMetric", ts.as_model(path)[-1].lam_)
    assert found["columns"] == "colour (category), born (date)"
    found, model = told(pets / "fit"), ts.load(pets / "fit")[-1]
    assert (found["metric"], found["classes"], found["points"]) == ("TripletClassifier", "cat, cow, dog", 48)
    assert found["vote_neighbors"] == model.vote_neighbors_
    assert found["error_after"] == model.error_after_[0]
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), np.arange(20) % 2
    metric = ts.TripletMetric(2, tol=1e-2).fit(X, y)
    for what, wanted in (
        (make_pipeline(StandardScaler(), ts.TripletMetric(2, tol=1e-2), KNeighborsClassifier(3)).fit(X, y),
         {"metric": "TripletMetric", "steps": "StandardScaler, TripletMetric, KNeighborsClassifier", "features": 3}),
        (metric, {"kind": "model", "features": 3}),
        (metric.solution_, {"kind": "solution", "features": 3, "lam": metric.lam_}),
        (metric.get_mahalanobis_matrix(), {"kind": "metric", "features": 3}),
        (ts.TripletMetric(), {"kind": "model", "fitted": False}),
    ):  # fmt: skip
        ts.save(what, tmp_path / "it")
        found = told(tmp_path / "it")
        assert {name: found[name] for name in wanted} == wanted
