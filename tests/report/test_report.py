"""The report and the figures: that they show what the path holds."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier

import triscreen as ts
from triscreen.report import gather, maps, write_report
from triscreen.report.page import render


@pytest.fixture(scope="module")
def made():
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X, X_test, y, y_test = X[::2], X[1::2], y[::2], y[1::2]
    problem = ts.Problem(X, ts.knn_triplets(X, y, k=5))
    path = ts.solve_path(problem, ratio=0.6, tol=1e-5)
    names = ["sepal length", "sepal <b>width</b>", "petal length", "</script>"]
    gather(path, problem, X, y, X_test, y_test, feature_names=names, source="<iris>")
    return path, problem, X, y, X_test, y_test


def numbers(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


def test_the_page_holds_what_the_path_holds(made):
    path, problem, X, y, X_test, y_test = made
    page = render(path)
    data = numbers(page)
    np.testing.assert_allclose(data["lambdas"], path.lambdas, rtol=1e-4)
    np.testing.assert_allclose(data["rel_gaps"], np.maximum(path.rel_gaps, 1e-16), rtol=1e-4)
    np.testing.assert_allclose(data["decided"], path.screening_rates, atol=1e-4)
    np.testing.assert_allclose(data["safe"], path.safe_rates, atol=1e-4)
    np.testing.assert_allclose(np.add(data["safe"], data["proven"]), data["decided"], atol=1e-4)
    assert f"<strong>{path.safe_rates.mean():.1%} + {path.proven_rates.mean():.1%}</strong>" in page
    assert "not about accuracy" in page
    assert data["n_triplets"] == problem.triplets.n_triplets
    place, t = 3, data["frames"][3]
    L = path.components(t).T
    near = KNeighborsClassifier(3).fit(X @ L, y)
    assert data["errors"][place] == pytest.approx(1 - near.score(X_test @ L, y_test), abs=1e-5)
    assert data["error_before"] == pytest.approx(1 - KNeighborsClassifier(3).fit(X, y).score(X_test, y_test))
    assert data["best"] == np.argmin(data["errors"])
    most = path.influence(data["frames"][data["best"]], problem)
    bounded = np.flatnonzero(most.bounds <= most.size)[:12]
    assert [name for name, _ in data["influence"]] == [f"row {i} ({y[i]})" for i in most.indices[bounded]]
    np.testing.assert_allclose([share for _, share in data["influence"]], most.bounds[bounded] / most.size, rtol=1e-4)
    assert "Which points weigh most" in page
    bounds = ts.validation_bounds(path, X, y, X_test, y_test, problem=problem)
    corners = np.concatenate([run["x"] for run in data["band"]])
    np.testing.assert_allclose(corners[::2], bounds.lambdas[:-1] / bounds.lambdas[0], rtol=1e-4)
    for name, bound in (("lower", bounds.lower), ("upper", bounds.upper)):
        np.testing.assert_allclose(np.concatenate([run[name] for run in data["band"]])[::2], bound, atol=1e-5)
    worse = np.concatenate([[run["worse"]] * (len(run["x"]) // 2) for run in data["band"]])
    assert np.array_equal(worse, bounds.lower > bounds.upper.min())
    values = np.linalg.eigvalsh(path.M(t))[::-1]
    np.testing.assert_allclose(data["spectrum"][place], values / values.sum(), atol=1e-4)
    shares = np.diag(path.M(t)) * X.var(axis=0)
    name, share = data["features"][place][0]
    names = path.facts["feature_names"]
    assert (name, share) == (names[np.argmax(shares)], pytest.approx(shares.max() / shares.sum(), abs=1e-4))
    assert f"{path.n_triplets:,}" in page


def test_the_page_is_alone_and_safe(made, tmp_path):
    page = render(made[0])
    before = page[: page.index('<script type="application/json"')]
    assert "&lt;iris&gt;" in before
    assert "<iris>" not in page
    assert page.count("</script>") == 3
    assert not re.search(r'<(script|img|link)[^>]*(src|href)="?http', before)
    write_report(made[0], tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == page
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(ts.InputError, match="folder"):
        write_report(made[0], tmp_path / "nowhere" / "report.html")


def test_facts_are_saved_with_the_path(made, tmp_path):
    path = made[0]
    ts.save(path, tmp_path / "path")
    again = ts.load(tmp_path / "path")
    assert render(again) == render(path)
    np.testing.assert_array_equal(again.facts["after"], path.facts["after"])


def test_a_path_alone_has_a_report_too(made):
    bare = made[0].take(range(len(made[0])))
    data = numbers(render(bare))
    assert data["after"] is None
    assert data["errors"] is None
    assert len(data["features"]) == len(bare)
    diagonal = ts.solve_path(ts.Problem(made[2], ts.knn_triplets(made[2], made[3], 3), cone="diagonal"), n_lambdas=4)
    assert len(numbers(render(diagonal))["spectrum"]) == 4


def test_all_triplets_have_a_report_without_maps(made):
    _, _, X, y, X_test, y_test = made
    problem = ts.Problem(X, ts.all_triplets(X, y))
    path = ts.solve_path(problem, ratio=0.3, tol=1e-3)
    facts = gather(path, problem, X, y, X_test, y_test)
    assert "rates" not in facts
    assert numbers(render(path))["errors"] is not None


def test_held_out_comparisons_are_an_error_too(made):
    _, problem, X, *_ = made
    rows = problem.triplets.indices()
    learned = ts.Problem(X, ts.given_triplets(rows[::2]))
    path = ts.solve_path(learned, ratio=0.3, tol=1e-3)
    facts = gather(path, learned, X, None, comparisons_test=rows[1::2])
    Z = X @ path.components(facts["frames"][2]).T
    near, far = (np.linalg.norm(Z[rows[1::2, 0]] - Z[rows[1::2, k]], axis=1) for k in (1, 2))
    assert facts["errors"][2] == pytest.approx(np.mean(near >= far))
    assert "comparisons not learned from" in render(path)


def test_what_does_not_belong_together_is_refused(made):
    path, problem, X, y, *_ = made
    with pytest.raises(
        ts.InputError, match=r"X has shape \(10, 4\): the path was learned from 75 points of 4 features"
    ):
        gather(path, problem, X[:10], y[:10])


# -- maps: each share is that of triplets that are decided rightly ---------------------------------------------------


def test_maps_count_what_is_true_at_the_optimum(made):
    path, problem, *_ = made
    exact = [ts.solve(problem, lam, tol=1e-12, start=path[t]).M for t, lam in enumerate(path.lambdas)]
    indices, X = problem.triplets.indices(), made[2]
    u, v = X[indices[:, 0]] - X[indices[:, 2]], X[indices[:, 0]] - X[indices[:, 1]]
    truly = []
    for M in exact:
        margins = np.einsum("ni,ij,nj->n", u, M, u) - np.einsum("ni,ij,nj->n", v, M, v)
        truly.append(np.mean((margins > 1) | (margins < 0.95)))
    stops = np.arange(1, len(path), 3)
    shares = maps.range_map(problem, path, stops)
    assert (shares <= np.array(truly) + 1e-12).all()
    for row, t in zip(shares, stops, strict=True):
        assert row.argmax() in (t - 1, t, t + 1)
        assert row[t] > 0.5 * truly[t]
    for name, rates in maps.rates_by_sphere(problem, path, stops).items():
        assert (np.array(rates) <= np.array(truly)[stops] + 1e-12).all(), name
    iterations, dynamic = maps.dynamic_map(problem, path, stops)
    assert dynamic.shape == (len(stops), len(iterations))
    for row, t in zip(dynamic, stops, strict=True):
        seen = row[~np.isnan(row)]
        assert (np.diff(seen) >= 0).all()
        assert seen[-1] <= truly[t] + 1e-12


def test_the_range_map_is_that_of_each_triplet(made):
    """Counting by sorted ends gives what asking each interval gives."""
    from triscreen.screening.ranges import rrpb_ranges

    path, problem, *_ = made
    seen = []

    def remember(*arguments):
        seen.append(rrpb_ranges(*arguments))
        return seen[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maps, "rrpb_ranges", remember)
        shares = maps.range_map(problem, path, [2, 5])
    for row, ranges in zip(shares, seen, strict=True):
        inside = sum(((low[:, None] < path.lambdas) & (path.lambdas < high[:, None])) for low, high in ranges.values())
        np.testing.assert_allclose(row, inside.mean(axis=0))


# -- time, names and locales ---------------------------------------------------------------------------------------


def test_facts_are_gathered_as_far_as_the_time_allows(made, monkeypatch):
    """A second passes with every look at the clock; what there is no time for is said, and the rest is the same."""
    from types import SimpleNamespace

    from triscreen.report import facts as module

    path, problem, X, y, X_test, y_test = made
    whole = dict(path.facts)
    path = path.take(range(len(path)))
    seen = []
    for seconds in (3, 8, 25, 60, 10**6):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=iter(range(10**6)).__next__))
        facts = gather(path, problem, X, y, X_test, y_test, max_seconds=seconds)
        places = [whole["frames"].tolist().index(t) for t in facts["frames"]]
        np.testing.assert_array_equal(facts["errors"], whole["errors"][places])
        seen.append((len(facts["frames"]), len(facts.get("stops", [])), len(facts["left_out"])))
        assert numbers(render(path))["frames"] == facts["frames"].tolist()
    assert seen == sorted(seen, key=lambda row: row[:2])
    assert seen[0][:2] == (1, 0)
    assert seen[-1] == (len(whole["frames"]), len(whole["stops"]), 0)
    np.testing.assert_array_equal(facts["dynamic"], whole["dynamic"])
    np.testing.assert_array_equal(facts["ranges"], whole["ranges"])
    assert facts["rates"] == whole["rates"]


def test_what_could_move_the_metric_ends_in_time_and_says_how_far_it_is(made, monkeypatch):
    from triscreen._utils import progress as shown
    from triscreen.path import influence as module
    from triscreen.report import facts as gathered

    path, problem, X, y, X_test, y_test = made
    path, told = path.take(range(3)), []
    monkeypatch.setattr(shown, "_PATIENCE", 0.0)
    monkeypatch.setattr(gathered, "progress", lambda _: shown.nullcontext(told.append))
    token = shown._around.set(told.append)
    gather(path, problem, X, y, X_test, y_test, maps=False)
    shown._around.reset(token)
    assert "who could move it most 100%" in told

    def late():
        raise ts.errors.OutOfTime("the time is over")

    monkeypatch.setattr(module, "check_time", late)
    facts = gather(path, problem, X, y, X_test, y_test, maps=False)
    assert facts.left_out == ["who could move the metric most"]
    assert facts.influence_of is None
    assert facts.suspects is not None


def test_no_time_at_all_and_no_maps(made):
    path, problem, X, y, X_test, y_test = made
    path = path.take(range(len(path)))
    facts = gather(path, problem, X, y, X_test, y_test, max_seconds=1e-9)
    assert facts["left_out"][0] == "errors"
    assert "errors" not in facts
    assert len(facts["frames"]) == 1
    page = render(path)
    assert numbers(page)["errors"] is None
    assert "Not all of it is here: there was no time for errors, " in page
    facts = gather(path, problem, X, y, X_test, y_test, maps=False)
    assert facts["left_out"] == []
    assert "Not all of it is here" not in render(path)
    assert "rates" not in facts
    with pytest.raises(ts.InputError, match="max_seconds=-1"):
        gather(path, problem, X, y, max_seconds=-1)


def test_files_are_opened_as_utf8_whatever_the_locale():
    """Every text that this package opens has its encoding."""
    import ast
    from pathlib import Path

    found = 0
    for file in Path(ts.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            binary = any(isinstance(a, ast.Constant) and "b" in str(a.value) for a in node.args[1:])
            method = isinstance(node.func, ast.Attribute) and name in ("read_text", "write_text", "TextIOWrapper")
            if method or (name == "open" and isinstance(node.func, ast.Name) and not binary):
                found += 1
                assert [k for k in node.keywords if k.arg == "encoding"], f"{file.name}, line {node.lineno}"
    assert found


def test_a_report_and_labels_in_a_locale_without_utf8(tmp_path):
    import os
    import subprocess
    import sys

    text = "größe,名前\n" + "".join(f"{i % 7 + 9 * (i % 2)},{'猫犬'[i % 2]}\n" for i in range(30))
    (tmp_path / "päts.csv").write_text(text, encoding="utf-8")
    env = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}

    # One process for three commands: to import everything takes longer than they do.
    script = """
import os, sys
from triscreen.cli import main
words = sys.argv[1:]
while words:
    end = words.index("then")
    sys.argv[1:], words = words[:end], words[end + 1:]
    try:
        main()
    except SystemExit as done:
        if done.code: raise
"""
    small = ("-k", "2", "--tol", "1e-2")
    words = ("path", "päts.csv", "-o", "p", "--report", "r.html", "--n-lambdas", "3", *small, "then",
             "fit", "päts.csv", "-o", "m", "--lam-ratio", "0.1", *small, "then",
             "transform", "m", "päts.csv", "--label", "名前", "then")  # fmt: skip
    command = [os.fsencode(word) for word in (sys.executable, "-c", script, *words)]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "“a is closer to b than to c”" in page
    assert numbers(page)["features"][0][0][0] == "größe"
    assert done.stdout.decode("utf-8").splitlines()[1].endswith(",猫")


# -- notebooks -------------------------------------------------------------------------------------------------------


def test_figures_for_notebooks(made):
    pytest.importorskip("matplotlib.pyplot").close("all")  # what other tests left open: matplotlib 3.8 minds
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    path = made[0]
    for name in ("gaps", "losses", "screening", "spectrum", "errors", "influence", "dynamic", "ranges"):
        ax = getattr(path, f"plot_{name}")()
        ax.figure.canvas.draw()
        assert getattr(path, f"plot_{name}")(ax=pyplot.figure().subplots()) is not ax
        pyplot.close("all")
    np.testing.assert_allclose(path.plot_losses().lines[0].get_ydata(), path.losses)
    ax = path.plot_influence()
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], path.facts.influence_shares)
    assert [label.get_text() for label in ax.get_yticklabels()] == path.facts.influence_names
    pyplot.close("all")
    bare = path.take(range(len(path)))
    with pytest.raises(ts.InputError, match=r"this path has no errors: call triscreen.report.gather"):
        bare.plot_errors()


def test_results_display_as_tables(made):
    path, problem, *_ = made
    shown = path._repr_html_()
    assert shown.count("<tr>") == 1 + min(len(path), 12)
    assert f"{path.lambdas[-1]:.4g}" in shown
    sol = ts.solve(problem, path.lambdas[3])
    assert f"{sol.rel_gap:.4g}" in sol._repr_html_()
    assert "Converged" in sol._repr_html_()
