"""``triscreen path --validate`` and ``triscreen fit --certify``."""

from __future__ import annotations

import json

import numpy as np
import pytest

import triscreen as ts
from commands import invoke, refusal
from triscreen.estimators import certified


def run(*arguments):
    done = invoke(*arguments)
    assert done.code == 0, done.err
    return done.out, done.err


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("validate"), np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 3)) * (1, 2, 1)
    X[:, 0] += 2.5 * y

    def write(name, rows, columns=3, label=0):
        lines = [",".join([*map(repr, X[i, :columns].tolist()), str(y[i] + label)]) for i in rows]
        (folder / name).write_text("\n".join([",".join([*"abc"[:columns], "kind"]), *lines]) + "\n")

    write("all.csv", range(60))
    write("held.csv", range(60, 90))
    write("narrow.csv", range(60, 90), columns=2)
    write("unseen.csv", range(60, 90), label=5)
    (folder / "rows.csv").write_text("".join(f"{a},{a + 3},{a + 1}\n" for a in range(50)))
    (folder / "more.csv").write_text("".join(f"{a},{a + 6},{a + 2}\n" for a in range(40)))
    return folder


SMALL = ("--label", "kind", "--k", 3, "--ratio", 0.7, "--n-lambdas", 8)


def test_a_file_to_validate_with(folder):
    out, _ = run("path", "all.csv", *SMALL, "-o", "a.path", "--validate", "held.csv", "--json")
    assert json.loads(out)["n_points"] == 60
    path = ts.load(folder / "a.path")
    facts = path.facts
    assert facts.n_test == 30
    assert np.array_equal(facts.band_lambdas, path.lambdas)
    assert (facts.band_lower <= facts.band_upper).all()
    for place, t in enumerate(facts.frames.tolist()):  # solutions are nearly optimal
        near = [s for s in (t - 1, t) if 0 <= s < len(facts.band_lower)]
        assert min(facts.band_lower[near]) <= facts.errors[place] <= max(facts.band_upper[near])


def test_rows_that_weigh_most_are_those_of_the_file(folder):
    """Also where some are held out: the label beside each is that of the file."""
    run("path", "all.csv", *SMALL, "-o", "w.path", "--seed", 3, "--report", "w.html")
    labels = [line.rsplit(",", 1)[1] for line in (folder / "all.csv").read_text().splitlines()[1:]]
    names = ts.load(folder / "w.path").facts.influence_names
    assert len(names) == 12
    for name in names:
        row, label = name.removeprefix("row ").removesuffix(")").split(" (")
        assert labels[int(row)] == label
    assert "Which points weigh most" in (folder / "w.html").read_text()
    words = ("--label", "kind", "--n-lambdas", 3, "--comparisons", "rows.csv", "-o", "v.path")
    run("path", "all.csv", *words)
    a, b = ts.load(folder / "v.path").facts.influence_names[0].split(" is closer to ")
    b, c = b.split(" than to ")
    a, b, c = (int(name.removeprefix("row ")) for name in (a, b, c))
    assert (b, c) == (a + 3, a + 1)  # as in the file


def test_comparisons_to_validate_with(folder):
    arguments = ("--label", "kind", "--ratio", 0.7, "--n-lambdas", 5, "--comparisons", "rows.csv", "-o", "b.path")
    run("path", "all.csv", *arguments, "--validate", "more.csv")
    facts = ts.load(folder / "b.path").facts
    assert facts.n_test == 40
    assert len(facts.band_lower) == 4


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--validate", "narrow.csv"), "validate='narrow.csv': it has 2 features, all.csv has 3"),
        (("--validate", "unseen.csv"), "validate='unseen.csv': it has the label "),
        (("--validate", "none.csv"), "none.csv"),
        (("--validate", "held.csv", "--test-share", 0.1), "test_share='0.1': it has no effect with --validate"),
    ],
)
def test_bad_input(folder, arguments, text):
    assert text in refusal("path", "all.csv", *SMALL, "-o", "c.path", *arguments)
    assert not (folder / "c.path").exists()


def test_certify(folder, monkeypatch):
    monkeypatch.setattr(certified, "_STEP", 0.5)  # a search that begins with few lambdas
    arguments = ("fit", "all.csv", "--label", "kind", "-o", "a.model", "--cv", 3, "--candidates", "none")
    out, _ = run(*arguments, "--certify", 0.2, "--json")
    told = json.loads(out)
    assert told["selection_gap"] <= 0.2
    assert told["possible_ratios"] == []
    metric = ts.load(folder / "a.model")[-1]
    assert metric.selection_gap_ == told["selection_gap"]
    assert metric.error_lower_.min() >= told["error"] - told["selection_gap"] - 1e-12
    _, err = run(*arguments, "--certify", 0.4)
    assert "proven: error " in err
    assert "has one that is lower by more than" in err
    said = refusal("fit", "all.csv", "--label", "kind", "-o", "b.model", "--lam-ratio", 0.1, "--certify", 0.1)
    assert "certify='0.1': it has no effect" in said
