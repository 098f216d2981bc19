"""Suspicious labels and answers, held-out points, and the lines that use a result."""

from __future__ import annotations

import csv
import re
import shlex
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import confusion_matrix
from sklearn.neighbors import KNeighborsClassifier

import triscreen as ts
from commands import invoke, refusal
from triscreen.report import gather, write_suspects
from triscreen.report.page import render

X, Y = load_iris(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.fixture(scope="module")
def made():
    y = Y[::2].copy()
    y[3] = 2  # a setosa among virginicas
    problem = ts.Problem(X[::2], ts.knn_triplets(X[::2], y, k=4))
    path = ts.solve_path(problem, ratio=0.5, tol=1e-4)
    gather(path, problem, X[::2], y, X[1::2], Y[1::2], maps=False)
    return path, problem, y


def test_a_wrong_label_is_the_first_suspect(made):
    path, problem, _ = made
    facts = path.facts
    heads, first, *_ = facts.suspects
    assert heads[:5] == ["row", "label", "its neighbours are", "other labels", "share of the loss"]
    assert first[:4] == [3, "2", "0", "5 of 5"]
    sol = path[int(facts.frames[np.argmin(facts.errors)])]
    cost = np.array([problem.loss(m) for m in sol.margins(problem)])
    assert cost.sum() == pytest.approx(path.losses[int(facts.frames[np.argmin(facts.errors)])], rel=1e-6)
    mine = cost[(problem.triplets.indices() == 3).any(axis=1)].sum() / cost.sum()
    assert first[4] == pytest.approx(mine, rel=1e-5)
    # All four features, the one that weighs most first.
    weights = np.diag(sol.M) * X[::2].var(axis=0)
    assert heads[5:] == [f"feature {j}" for j in np.argsort(-weights)]
    np.testing.assert_allclose(first[5:], X[::2][3][np.argsort(-weights)], rtol=1e-5)
    shares = [row[4] for row in facts.suspects[1:]]
    assert shares == sorted(shares, reverse=True)


def test_confusion_and_changes_are_those_of_neighbours(made):
    path, _, y = made
    facts = path.facts
    L = path.components(int(facts.frames[np.argmin(facts.errors)])).T
    before, after = (
        KNeighborsClassifier(3).fit(A, y).predict(B) for A, B in ((X[::2], X[1::2]), (X[::2] @ L, X[1::2] @ L))
    )
    found = np.zeros((3, 3), dtype=int)
    for true, taken, n in facts.confusion:
        found[int(true), int(taken)] = n
    np.testing.assert_array_equal(found, confusion_matrix(Y[1::2], after))
    right, now = before == Y[1::2], after == Y[1::2]
    assert facts.changed == [int((~right & now).sum()), int((right & ~now).sum())]
    name, label, near, _ = facts.neighbours[0]
    i = int(name.split()[1])
    nearest = np.argsort(np.linalg.norm(X[::2] - X[1::2][i], axis=1), kind="stable")[:5]
    assert label == str(Y[1::2][i])
    assert near == [[f"row {j}", str(y[j])] for j in nearest]


def test_suspects_are_found_in_the_file_they_come_from(made, tmp_path):
    """By row and by values before scaling; by name where there are names; and no spreadsheet runs what a label says."""
    path, problem, y = made
    given = 3 * X[::2] + 5
    given[3, 1:] = 0.0  # which comes back as a little more or less
    scaling, labels = ts.Scaling().fit(given), np.array(["=1+1", "b", "c"])
    scaled = scaling.transform(given)
    again = path.take(range(len(path)))
    facts = gather(again, problem, scaled, labels[y], maps=False, scaling=scaling, point_names=range(0, 150, 2),
                   feature_names=list("abcd"))  # fmt: skip
    heads, first, *_ = facts.suspects
    assert first[:2] == [6, "c"]
    places = ["abcd".index(name) for name in heads[5:]]
    np.testing.assert_allclose(first[5:], given[3][places], rtol=1e-5, atol=0)
    write_suspects(again, tmp_path / "s.csv")
    with open(tmp_path / "s.csv", encoding="utf-8", newline="") as file:
        assert {row["label"] for row in csv.DictReader(file)} == {"'=1+1", "b", "c"}
    facts = gather(again, problem, scaled, y, maps=False, point_names=[f"p{i}" for i in range(75)])
    assert facts.suspects[0][0] == "point"
    assert facts.suspects[1][0] == "p3"


def test_neighbours_of_the_same_class_are_counted(made):
    path, problem, y = made
    facts, t = path.facts, int(path.facts.frames[2])
    for L, found in ((np.eye(4), facts.alike_before), (path.components(t).T, facts.alike[2])):
        near = KNeighborsClassifier(5).fit(X[::2] @ L, y).kneighbors(X[1::2] @ L, return_distance=False)
        np.testing.assert_array_equal(found, np.bincount((y[near] == Y[1::2, None]).sum(axis=1), minlength=6))
    assert facts.alike_of == "held-out"
    # Without held-out points the others are asked, and none is its own neighbour.
    facts = gather(path.take(range(2)), problem, X[::2], y, maps=False)
    near = KNeighborsClassifier(5).fit(X[::2], y).kneighbors(return_distance=False)
    np.testing.assert_array_equal(facts.alike_before, np.bincount((y[near] == y[:, None]).sum(axis=1), minlength=6))
    assert (facts.alike_of, facts.errors) == ("learned", None)


def test_bounds_that_prove_nothing_are_not_shown(made):
    path, problem, y = made
    t = int(path.facts.frames[np.argmin(path.facts.errors)])
    shares = (found := path.influence(t, problem)).bounds / found.size
    assert path.facts.influence_open == (shares > 1).sum()
    assert path.facts.influence_half == np.median(shares)
    np.testing.assert_array_equal(path.facts.influence_shares, shares[shares <= 1][:12])
    low = path.take([len(path) - 1])  # at a small lambda bounds are large
    facts = gather(low, problem, X[::2], y, maps=False)
    assert facts.influence_open > 0
    assert (facts.influence_shares <= 1).all()
    known = replace(facts, influence_half=0.5, influence_names=["a", "b"], influence_shares=np.array([1.5, 0.75]))
    low.facts = replace(known, influence_open=7)
    page = render(low)
    assert "Of 7 of the 75 points nothing is proven" in page
    assert re.findall("<td>.*</td>", page[page.index('id="influence"') :])[0] == "<td>b</td><td>75.0%</td>"
    low.facts = replace(known, influence_open=8)  # more than a tenth
    assert 'id="influence"' not in render(low)


def test_a_wrong_answer_is_the_first_suspect_and_weights_count(made, tmp_path):
    rows = ts.knn_triplets(X[::2], Y[::2], k=3).indices()
    rows[7] = rows[7][[0, 2, 1]]
    weights = np.ones(len(rows))
    problem = ts.Problem(X[::2], ts.given_triplets(rows, weights))
    path = ts.solve_path(problem, ratio=0.3, tol=1e-4)
    gather(path, problem, X[::2], None, maps=False, point_names=[f"p{i}" for i in range(75)])
    assert path.facts.suspects[1][:3] == [f"p{i}" for i in rows[7]]
    write_suspects(path, tmp_path / "s.csv")
    with open(tmp_path / "s.csv", encoding="utf-8", newline="") as file:
        assert [row[:3] for row in csv.reader(file)] == [row[:3] for row in path.facts.suspects]
    from triscreen.report.details import losses

    heavy = ts.Problem(X[::2], ts.given_triplets(rows, 2 * weights))
    m = path[-1].margins(problem)
    np.testing.assert_allclose(losses(heavy, m), 2 * losses(problem, m))
    with pytest.raises(ts.InputError, match="path has no suspects"):
        write_suspects(path.take(range(2)), tmp_path / "t.csv")


def test_the_command_and_the_lines_of_a_page_work(tmp_path, monkeypatch):
    rows = ["a b,c,kind", *(f"{x[2]},{x[3]},{'uvw'[c]}" for x, c in zip(X, Y, strict=True))]
    (tmp_path / "it's.csv").write_text("\n".join(rows), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    words = ("--label", "kind", "--output", "my.path", "--report", "r.html", "--suspects", "s.csv", "--n-lambdas", "4")
    done = invoke("path", "it's.csv", *words, "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")
    check_suspects_of_a_file(tmp_path, rows)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")

    def shown(name):
        return unescape(re.sub(r"<[^>]*>", "", re.search(f'<pre id="{name}"[^>]*>(.*?)</pre>', page, re.S)[1]))

    asked = shlex.split(shown("command"))
    assert asked[:3] == ["triscreen", "path", "it's.csv"]
    assert sorted(asked[3:]) == sorted([*words, "--quiet"])
    lines = shown("python").strip().splitlines()
    assert len(lines) == 3
    path = ts.load(tmp_path / "my.path")
    names = {"X": X[:, 2:]}
    exec("\n".join(lines).replace("my.path", str(tmp_path / "my.path")), names)
    t = int(re.search(r"components\((\d+)\)", lines[2])[1])
    np.testing.assert_allclose(names["Z"], (X[:, 2:] - path.facts.shift) * path.facts.factor @ path.components(t).T)
    names = {row[0] for row in path.facts.neighbours}
    assert all(re.fullmatch(r"row \d+", name) for name in names)
    assert "<td>kind</td>" in page


def check_suspects_of_a_file(folder, lines):
    """Rows and values are those of the file, and a finished path gives the same, with or without a page."""
    with open(folder / "s.csv", encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    assert len(found) > 5
    for row in found:
        *values, kind = lines[1 + int(row["row"])].split(",")
        assert row["label"] == kind
        np.testing.assert_allclose([float(row["a b"]), float(row["c"])], [float(v) for v in values], rtol=1e-5)
    done = invoke("report", "my.path", "--suspects", "t.csv")
    assert (done.code, done.err) == (0, "triscreen: wrote 't.csv'\n")
    assert invoke("report", "my.path", "--suspects", "u.csv", "-o", "u.html").code == 0
    assert (folder / "s.csv").read_bytes() == (folder / "t.csv").read_bytes() == (folder / "u.csv").read_bytes()
    assert (folder / "u.html").read_bytes() == (folder / "r.html").read_bytes()
    assert "output is not given" in refusal("report", "my.path")


def test_a_path_without_suspects_says_so(made, tmp_path):
    ts.save(made[0].take(range(2)), tmp_path / "bare")
    said = refusal("report", tmp_path / "bare", "--suspects", tmp_path / "s.csv", "-o", tmp_path / "r.html")
    assert "holds no suspects: triscreen path gathers them" in said
    assert [file.name for file in tmp_path.iterdir()] == ["bare"]
    said = refusal("path", "iris", "--triplets", "all", "-o", tmp_path / "p", "--suspects", tmp_path / "s.csv")
    assert "suspects=" in said
    assert "no effect with --triplets all" in said


def test_nothing_without_facts():
    problem = ts.Problem(X, ts.knn_triplets(X, Y, k=2))
    page = render(ts.solve_path(problem, ratio=0.3, tol=1e-2, n_lambdas=3))
    assert "Suspicious" not in page
    assert 'id="neighbours"' not in page
    assert "ts.save(path, 'my.path')" in page
