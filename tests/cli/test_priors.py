"""Metrics to begin with, on the command line: what they are made of, what is said of them, what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import triscreen as ts
from commands import invoke, make_files, refusal

POINTS = ("--label", "class", "--drop", "name", "-k", "2")
PATH = (*POINTS, "--n-lambdas", "4", "--tol", "1e-3")


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("priors"))


def told(*words):
    done = invoke(*words, "--json")
    assert done.code == 0, done
    return json.loads(done.out)


@pytest.mark.parametrize("prior", ["identity", "within"])
def test_a_path_begins_at_its_prior(given, tmp_path, prior):
    found = told("path", given["data"], *PATH, "-o", tmp_path / "p", "--prior", prior, "--report", tmp_path / "r.html")
    assert found["prior"] == prior
    path = ts.load(tmp_path / "p")
    assert path.facts.prior == prior
    if prior == "identity":
        M = path.M(0)
        np.testing.assert_allclose(M / np.trace(M), np.eye(2) / 2, atol=0.01)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert f"It begins at a metric that was there before ({prior})" in page
    assert told("info", tmp_path / "p")["prior"] == prior
    assert f"from the prior {prior}" in invoke("path", given["data"], *PATH, "-o", tmp_path / "p", "--prior", prior).err


def test_a_path_without_a_prior_says_so(given, tmp_path):
    found = told("path", given["data"], *PATH, "-o", tmp_path / "p", "--prior", "none", "--report", tmp_path / "r.html")
    assert "prior" not in found
    assert told("info", tmp_path / "p")["prior"] == told("info", given["file"])["prior"] == "none"
    assert "was there before" not in (tmp_path / "r.html").read_text(encoding="utf-8")
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    X[:, 0] += 2 * y
    path = ts.solve_path(ts.Problem(X, ts.knn_triplets(X, y, 2), prior="identity"), n_lambdas=2, tol=1e-3)
    ts.save(path, tmp_path / "own")  # whose prior nobody has named
    assert told("info", tmp_path / "own")["prior"] == "a metric"


def test_the_metric_of_a_file(given, tmp_path):
    """A model is brought over to the scale and the order of the features; a bare metric is one of scaled points."""
    lines = [line.split(",") for line in given["data"].read_text().splitlines()]
    (tmp_path / "turned.csv").write_text("".join(f"{b},{a},{label},{n}\n" for a, b, label, n in lines))
    fit = ("fit", given["data"], *POINTS, "--lam-ratio", "1")
    raw = {}
    for scale, file in (("standard", given["data"]), ("none", given["data"]), ("minmax", tmp_path / "turned.csv")):
        words = ("fit", file, *fit[2:], "--scale", scale, "--prior", given["model"], "-o", tmp_path / scale)
        assert told(*words)["start"] == str(given["model"])
        scaling, metric = (step for _, step in ts.load(tmp_path / scale).steps)
        N = metric.prior * np.outer(scaling.factor_, scaling.factor_)
        raw[scale] = N if scale != "minmax" else N[::-1, ::-1]
    scaling, metric = (step for _, step in ts.load(given["model"]).steps)
    wanted = metric.get_mahalanobis_matrix() * np.outer(scaling.factor_, scaling.factor_)
    assert not np.allclose(wanted, wanted[::-1, ::-1])
    for N in raw.values():
        np.testing.assert_allclose(N, wanted, rtol=1e-9)
    for file in (given["prior"], given["candidates"]):  # a metric, a solution
        told(*fit, "--prior", file, "-o", tmp_path / "m")
        np.testing.assert_allclose(ts.load(tmp_path / "m")[-1].prior, metric.get_mahalanobis_matrix(), rtol=1e-9)
    ts.save(np.array([1.0, 3.0]), tmp_path / "diagonal")
    for cone in ("psd", "diagonal"):
        told(*fit, "--prior", tmp_path / "diagonal", "--cone", cone, "-o", tmp_path / "m")
        made = ts.load(tmp_path / "m")[-1]
        assert made.prior_.shape == ((2, 2) if cone == "psd" else (2,))


def test_candidates(given, tmp_path):
    files = f"none, within,{given['prior']},{given['candidates']}"
    found = told("fit", given["data"], *POINTS, "--cv", "2", "--candidates", files, "-o", tmp_path / "m")
    metric = ts.load(tmp_path / "m")[-1]
    assert metric.candidates_["name"] == ["euclid", "none", "within", "array 1", "array 2"]
    assert found["start"] in {"euclid", "none", "within", str(given["prior"]), str(given["candidates"])}
    assert found["right_votes"] == metric.best_score_
    assert (found["gain"], found["gain_error"]) == metric.improvement_
    told("fit", given["data"], *POINTS, "--cv", "2", "--prior", "within", "-o", tmp_path / "m")
    assert ts.load(tmp_path / "m")[-1].candidates == ("within",)


def test_a_fit_that_is_no_better_than_euclid_says_so(given, tmp_path):
    """No path, an infinite lambda: tables and JSON cope with that."""
    rng = np.random.default_rng(1)
    rows = [
        f"{a!r},{b!r},c{i}" for (a, b), i in zip(rng.normal(size=(60, 2)).tolist(), rng.integers(0, 2, 60), strict=True)
    ]
    (tmp_path / "noise.csv").write_text("\n".join(["a,b,class", *rows, ""]))
    words = ("fit", tmp_path / "noise.csv", "--cv", "3", "--candidates", "identity", "-o", tmp_path / "m")
    found = told(*words)
    assert (found["start"], found["learned"]) == ("euclid", False)
    assert (found["lam"], found["lam_ratio"], found["rel_gap"], found["gain"]) == (None, None, 0.0, 0.0)
    assert found["gain_above_noise"] is False
    done = invoke(*words)
    assert "chosen: euclid, without learning; accuracy +0.00% over Euclid" in done.err
    assert "not above noise: metric learning does not help here" in done.err
    assert told("info", tmp_path / "m")["start"] == "euclid"
    assert "euclid" in invoke("info", tmp_path / "m").out
    assert told("evaluate", tmp_path / "m", tmp_path / "noise.csv")["error_after"] >= 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--prior", "identty"), "prior='identty': it must be none, identity, within, or a file that is there"),
        (("--candidates", "none,"), "candidates='': it must be none, identity, within"),
        (("--candidates", "none", "--prior", "none"), "prior='none': it has no effect with --candidates"),
        (("--candidates", "none", "--lam", "1"), "candidates='none': it has no effect with --lam"),
        (("--prior", "{file}"), "holds a path, a metric for every lambda"),
        (("--prior", "{data}"), "{data}"),
        (("--prior", "{wide}"), "is about 3 features: the points have 2"),
        (("--prior", "{scaling}"), "holds no metric"),
        (("--prior", "{other}"), "knows no feature 'a': it is about x, y"),
        (("--prior", "{negative}", "--lam", "1"), "prior='{negative}': its metric has the eigenvalue -1"),
        (("--prior", "{full}", "--cone", "diagonal"), "prior='{full}': its metric has entries off its diagonal"),
        (("--prior", "{huge}"), "prior='{huge}': its metric has a largest magnitude of 1e+200: it must lie between"),
    ],
)  # fmt: skip
def test_what_is_refused(given, tmp_path, words, said):
    names = {name: tmp_path / name for name in ("wide", "scaling", "other", "negative", "full", "huge")}
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12) % 2
    ts.save(np.eye(3), names["wide"])
    scaling = ts.Scaling().fit(X, feature_names=["x", "y"])
    ts.save(scaling, names["scaling"])
    from triscreen.cli.learn import make_model

    ts.save(make_model(scaling, ts.TripletMetric(2).fit(X, y)), names["other"])
    ts.save(-np.eye(2), names["negative"])
    ts.save(1e200 * np.eye(2), names["huge"])
    ts.save(np.array([[2.0, 1.0], [1.0, 2.0]]), names["full"])
    files = {**given, **names}
    words = [word.format(**files) for word in words]
    assert said.format(**files) in refusal("fit", given["data"], *POINTS, "-o", tmp_path / "out", *words)
    assert not (tmp_path / "out").exists()


def test_within_needs_classes(given, tmp_path):
    words = (given["data"], "--drop", "class", "--drop", "name", "--comparisons", given["comparisons"])
    for command in ("path", "fit"):
        sentence = refusal(command, *words, "-o", tmp_path / "out", "--prior", "within")
        assert "prior='within': comparisons have no classes" in sentence
    assert told("fit", *words, "-o", tmp_path / "m", "--prior", "identity")["start"] == "identity"
    assert told("path", *words, "-o", tmp_path / "p", "--prior", "identity", "--n-lambdas", "2")["prior"] == "identity"
