"""The published comparison: its protocol, ranks and averages, on a table made up here."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.cells import tables as cell
from benchmarks.cells.common import Context
from benchmarks.datasets import Missing, published, table
from benchmarks.experiments import tables

from benchmarks import page, run

PUBLISHED = ",Euclidean,LDA,LSI\nsmall,0.9000,1.0000,\nother,0.8000,0.5000,0.9000\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data: two classes along one axis, and two axes without meaning; a set of which there is no file."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.uniform(size=(60, 3)) * [30.0, 1.0, 2.0] + np.outer(y, [0.0, 0.6, 0.0])
    folder = tmp_path_factory.mktemp("data")
    (folder / "tables").mkdir()
    (folder / "tables" / "published.csv").write_text(PUBLISHED)
    np.savez(folder / "tables" / "small.npz", X=X, y=y, fold=1 + np.arange(60) // 2 % 5)
    return folder


@pytest.fixture(scope="module")
def results(folder):
    """The results of a run of two folds."""
    wanted = [{"kind": "table", "table": name, "folds": 2} for name in ("small", "other")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "cells", lambda quick, seeds: wanted)
        said, out = [], folder / "out"
        counts = run.run(["tables"], True, data=folder, out=out, isolate=False, say=said.append)
        assert counts == {"done": 1, "there": 0, "missing": 1, "failed": 0, "left": 0}, said
        counts = run.run(["tables"], True, data=folder, out=out, isolate=False, say=said.append)
        assert counts["there"] == 1
        yield page.read(out)


def made_up(published, euclid=(0.5, 0.7), ours=(0.6, 0.9), **more):
    """What a cell measured, with the accuracies of two folds."""
    accuracy = {"euclid": euclid, "nca": euclid, **dict.fromkeys(tables.OURS, ours)}
    return {"cut": False, "n": 10, "d": 2, "folds": 2, "starts": ["none", "within alone"], "published": published,
            "accuracy": accuracy, "seconds": dict.fromkeys(accuracy, (1.0, 2.0)), **more}  # fmt: skip


def test_a_set_comes_with_its_folds_and_published_figures(folder):
    X, _, fold = table("small", folder)
    assert X.shape == (60, 3)
    assert np.bincount(fold).tolist() == [0, 12, 12, 12, 12, 12]
    assert published("small", folder) == {"Euclidean": 0.9, "LDA": 1.0, "LSI": None}


def test_what_is_missing_says_which_cells_are_in_vain(folder, monkeypatch):
    with pytest.raises(Missing, match=r"other\.npz not found") as one:
        table("other", folder)
    with pytest.raises(Missing, match="has no folder of this name") as everything:
        table("small", folder / "tables")
    monkeypatch.delenv("TRISCREEN_DATA", raising=False)
    with pytest.raises(Missing, match="--data FOLDER or TRISCREEN_DATA"):
        table("small")
    with pytest.raises(Missing, match=r"third is not in published\.csv"):
        published("third", folder)
    assert (one.value.key, everything.value.key) == ("table", "kind")


def test_a_run_without_the_tables_says_so_once(tmp_path):
    said = []
    counts = run.run(["tables"], True, data=tmp_path, out=tmp_path / "out", isolate=False, say=said.append)
    assert counts["missing"] == len(tables.cells(True, 1)) == 2
    assert sum("tables not found" in line for line in said) == 1


def test_a_cell_follows_the_protocol(folder, results):
    from sklearn.neighbors import KNeighborsClassifier

    (found,) = (record["result"] for record in results.records.values())
    X, y, fold = table("small", folder)
    for k, accuracy in zip((1, 2), found["accuracy"]["euclid"], strict=True):
        train = fold != k
        low, high = X[train].min(axis=0), X[train].max(axis=0)
        Z = (X - low) / (high - low)
        near = KNeighborsClassifier(3).fit(Z[train], y[train])
        assert accuracy == pytest.approx(near.score(Z[~train], y[~train]), abs=1e-6)
    assert set(found["accuracy"]) == set(found["seconds"]) == set(tables.RUN)
    assert {len(values) for values in found["accuracy"].values()} == {2}
    assert len(found["starts"]) == 2
    assert np.mean(found["accuracy"]["triscreen-cv"]) >= np.mean(found["accuracy"]["euclid"])
    assert not found["cut"]


def test_a_cell_ends_in_time_with_whole_folds(folder, monkeypatch):
    monkeypatch.setattr(cell, "_one_fold", lambda X, y, test, found: context.__setattr__("until", 0.0) or "none")
    context = Context(str(folder))
    found = cell.measure(context, "small")
    assert found["cut"]
    assert (len(found["starts"]), found["folds"]) == (1, 5)


def test_who_failed_is_last_and_ties_are_halved():
    found = made_up({"A": 0.75, "B": None, "C": 0.8, "D": None}, ours=(0.75, 0.75))
    assert tables.rank(found, "triscreen-cv") == {"A": 2.5, "B": 4.5, "C": 1.0, "D": 4.5, "triscreen-cv": 2.5}


def test_the_gain_is_paired_over_the_folds():
    points, error = tables.gain(made_up({"A": 0.7}, euclid=(0.5, 0.7, 0.6), ours=(0.6, 0.9, 0.6)))
    assert points == pytest.approx(10)
    assert error == pytest.approx(10 / np.sqrt(3))


def test_worse_than_euclid_takes_two_errors_and_a_point():
    def said(ours):
        return tables.sentences({"one": made_up({"A": 0.6}, euclid=(0.7, 0.7), ours=ours)})[0]

    assert "below it on 1 (one). Its lowest: -2.0 ± 0.1 points, one." in said((0.679, 0.681))
    assert "below it on 0." in said((0.66, 0.70))  # two points, but as much error
    assert "below it on 0." in said((0.695, 0.695))  # for certain, but half a point


def test_the_section_is_made_from_the_files(results):
    pytest.importorskip("matplotlib")
    text, figures = tables.show(results)
    assert "| small | 60 x 3 |" in text
    assert "1.0000 (LDA)" in text
    assert "| LSI, published | failed on 1 | 4.00 |" in text
    assert list(figures) == ["tables"]


def test_averages_leave_out_what_failed_but_rank_it():
    got = {"one": made_up({"A": 0.6, "B": None}), "two": made_up({"A": 0.9, "B": 0.95})}
    lines = tables.averages(got).splitlines()[2:]
    assert lines[0] == "| A, published | 0.7500 | 2.00 |"
    assert lines[1] == "| B, published | 0.9500, failed on 1 | 2.00 |"
    assert lines[2] == "| **TripletMetricCV()** | 0.7500 | 2.00 |"
    assert "| Euclid, run here | 0.6000 |  |" in lines
