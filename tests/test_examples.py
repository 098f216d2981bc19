"""The examples of the gallery show what they say; `make docs` runs all of them."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"


@pytest.fixture
def run():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.close("all")  # what other tests left open: matplotlib 3.8 minds
    pyplot.switch_backend("agg")
    yield lambda name: runpy.run_path(str(next(FOLDER.glob(f"plot_*_{name}.py"))))
    pyplot.close("all")


def test_classification(run):
    errors = run("classification")["errors"]
    assert errors["learned"] <= errors["Euclid"]


def test_comparisons(run):
    shown = run("comparisons")
    assert shown["found"] == ["alcohol", "color_intensity", "flavanoids"]
    assert shown["score"] > shown["euclid"] + 0.05


def test_clustering(run):
    scores = run("clustering")["scores"]
    assert scores["learned"] > scores["Euclid"] + 0.1


def test_an_adapter_on_frozen_embeddings(run):
    scores = run("embeddings")["scores"]
    assert scores["adapted"] > scores["frozen"] + 0.05


def test_search_in_real_text(run):
    scores = run("text")["scores"]
    assert scores["after"]["precision@10"] > scores["before"]["precision@10"] + 0.01
    assert scores["n_queries"] > 100


def test_weights_of_features(run):
    assert run("feature_weights")["noise"].sum(axis=1).max() < 0.05


def test_a_cluster_that_a_worker_leaves(run):
    pytest.importorskip("distributed")
    shown = run("cluster")
    assert shown["workers"][:9] == [3] * 9
    assert shown["workers"][-1] == 2
    assert shown["there"].converged.all()


def test_suspicious_labels(run):
    shown = run("suspicious_labels")
    assert len({*shown["ranked"][:10]} & {*shown["wrong"]}) >= 7


def test_an_own_sphere_decides_and_holds_the_optimum(run):
    shown = run("own_sphere")
    assert shown["shares"]["own"][1][-1] > 0.9
    assert all(shown["inside"])


def test_an_own_rule_decides_what_the_sphere_rule_left(run):
    shown = run("own_rule")
    assert sum(decided for _, decided in shown["found"]) > 1000
    assert shown["sol"].converged


def test_every_example_has_a_title_and_a_picture():
    files = sorted(FOLDER.glob("plot_*.py"))
    assert len(files) >= 10
    for file in files:
        text = file.read_text(encoding="utf-8")
        title, line = text.split('"""', 2)[1].strip().splitlines()[:2]
        assert len(title) == len(line), file.name
        assert "plt.show()" in text, file.name
