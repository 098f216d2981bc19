"""The harness of the benchmarks: who grades, what resumes, what is skipped, what the page needs."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks.cells import common
from benchmarks.datasets import DATA, Missing, lambdas, load, subsample
from benchmarks.experiments import EXPERIMENTS
from benchmarks.experiments.common import QUICK
from benchmarks.objective import Objective, Refused
from benchmarks.solvers import exact
from benchmarks.solvers.per_triplet import CASES as BASELINE_CASES
from benchmarks.solvers.per_triplet import PerTriplet
from benchmarks.solvers.triscreen import CASES, PATHS, screening_clock, walk
from benchmarks.solvers.triscreen import path as one_by_one

import triscreen as ts
from benchmarks import cells, datasets, page, run
from oracles import alpha_of, dual, primal
from problems import make_case, random_metric

ROOT = Path(page.__file__).parents[1]


@pytest.fixture(autouse=True)
def one_commit(monkeypatch):
    """Whatever has changed here."""
    monkeypatch.setattr(run, "_commit", lambda: "0123456789ab")


def silent(text):
    pass


def objective_of(case):
    return Objective(case.X, case.indices, case.gamma, case.cone, case.w)


# The objective.


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
@pytest.mark.parametrize("seed", range(4))
def test_the_objective_agrees_with_brute_force(cone, seed):
    case = make_case(seed, cone=cone, weighted=True)
    lam = 0.1 * case.problem.lambda_max()
    M = random_metric(seed, 3, cone, 0.3)
    score = objective_of(case).evaluate(M, lam)
    P = primal(case.X, case.indices, case.w, case.gamma, M, lam)
    D = dual(case.X, case.indices, case.w, case.gamma, alpha_of(case.X, case.indices, case.gamma, M), lam, cone)
    assert score.primal == pytest.approx(P, rel=1e-12)
    assert score.gap == pytest.approx(P - D, rel=1e-10)


@pytest.mark.parametrize("gamma", [0.05, 0.0])
def test_the_objective_agrees_with_the_certificate_it_does_not_use(gamma):
    case = make_case(1, gamma=gamma)
    sol = ts.solve(case.problem, 0.05 * case.problem.lambda_max(), tol=1e-8)
    score = objective_of(case).check(sol.M, sol.lam, sol.gap)
    assert score.primal == pytest.approx(sol.primal, rel=1e-12)
    assert score.gap == pytest.approx(sol.gap, rel=1e-3, abs=1e-13 * sol.primal)


def test_the_objective_catches_a_solver_that_lies_about_its_gap():
    case = make_case(2)
    lam = 0.05 * case.problem.lambda_max()
    rough = ts.solve(case.problem, lam, tol=1e-2, solver="bb")
    objective = objective_of(case)
    assert objective.check(rough.M, lam, rough.gap).gap > 1e-6
    with pytest.raises(Refused, match="recomputed from M"):
        objective.check(rough.M, lam, rough.gap / 10)
    with pytest.raises(Refused, match="recomputed from M"):
        objective.check(rough.M, lam, float("nan"))


def test_a_lie_fails_the_cell_and_leaves_no_result(tmp_path, monkeypatch):
    honest = common.grade
    monkeypatch.setattr(
        cells.race, "grade", lambda made, metrics: honest(made, [(M, lam, gap / 100) for M, lam, gap in metrics])
    )
    status, text = run._here(EXPERIMENTS["rules"].cells(True, 1)[0], {"limit": 30})
    assert status == "failed"
    assert "Refused" in text


@pytest.mark.parametrize(
    ("M", "said"), [(-np.eye(3), "semi-definite"), (np.eye(2), "shape"), (np.triu(np.ones((3, 3))), "symmetric")]
)
def test_the_objective_refuses_what_is_no_metric(M, said):
    with pytest.raises(Refused, match=said):
        objective_of(make_case(0)).evaluate(M, 1.0)


# The solvers.


def test_the_per_triplet_baseline_agrees_with_the_problem():
    case = make_case(3, n=40, d=4, kind="knn")
    lam, M = 0.1 * case.problem.lambda_max(), random_metric(3, 4, "psd", 0.2)
    state = PerTriplet(case.X, case.indices, case.gamma).evaluate(M, lam)
    assert state.primal == pytest.approx(case.problem.value(M, lam), rel=1e-10)
    gradient = case.problem.gradient(M, lam)
    assert np.abs(lam * M - state.A - gradient).max() <= 1e-10 * np.abs(gradient).max()
    assert state.gap == pytest.approx(case.problem.certificate(M, lam).gap, rel=1e-10)


@pytest.mark.parametrize("bounds", [name for name in BASELINE_CASES if name != "none"])
@pytest.mark.parametrize("seed", range(3))
def test_the_baselines_screening_is_safe(seed, bounds, monkeypatch):
    case = make_case(seed, n=40, d=3, kind="knn")
    baseline, decided = PerTriplet(case.X, case.indices, case.gamma), 0
    everything, screen = PerTriplet(case.X, case.indices, case.gamma), baseline.screen

    def watched(margins, radius):
        nonlocal decided
        left = baseline.left
        keep = screen(margins, radius)
        gone, linear = left[~keep], margins[~keep] < 1
        m, room = everything.margins(best.M)[gone], baseline.norms[gone] * best.radius
        assert (m[linear] < 1 - case.gamma + room[linear]).all()
        assert (m[~linear] > 1 - room[~linear]).all()
        decided += len(gone)
        return keep

    monkeypatch.setattr(baseline, "screen", watched)
    last = eta = None
    for lam in case.problem.lambda_max() * 0.8 ** np.arange(22):
        best = ts.solve(case.problem, lam, tol=1e-12)
        now, eta, _, _ = baseline.solve(lam, 1e-6, last, bounds, eta)
        assert now.gap <= 1e-6 * now.primal
        assert np.linalg.norm(now.M - best.M) <= np.sqrt(2 * now.gap / lam) + best.radius
        last = (now, lam)
    assert decided > 100


def test_the_exact_solver_and_ours_meet():
    case = make_case(5)
    lam = 0.05 * case.problem.lambda_max()
    M = exact.solve(case.X, case.indices, case.gamma, lam)
    assert objective_of(case).evaluate(M, lam).rel_gap < 1e-7


def test_every_case_walks_to_the_same_optimum():
    case = make_case(6, n=40, d=3, kind="knn")
    lams = case.problem.lambda_max() * 0.7 ** np.arange(12)
    ends = {name: [sol.primal for sol, _, _ in walk(case.problem, lams, name)] for name in CASES}
    for name, primals in ends.items():
        np.testing.assert_allclose(primals, ends["none"], rtol=2e-6, err_msg=name)


def test_a_path_in_turns_is_the_path_of_solve_path():
    case = make_case(6, n=40, d=3, kind="knn")
    lams = case.problem.lambda_max() * 0.9 ** np.arange(25)
    for name, options in PATHS.items():
        whole = ts.solve_path(case.problem, lams, **options)
        turns = [path for path, _ in one_by_one(case.problem, lams, name)]
        assert [path.passes[0] for path in turns] == whole.passes.tolist(), name
        np.testing.assert_array_equal([path.M(0) for path in turns], [whole.M(t) for t in range(len(whole))])


def test_a_race_grades_every_case_and_ends_for_all_at_the_same_lambda(monkeypatch):
    cell = {"data": "wine", "cases": ["none", "triplet.pgb", "path.auto"], "seed": 0, "k": 3, "length": 40}
    whole = cells.race.measure(common.Context(), **cell, ratio=0.8)
    assert not whole["cut"]
    assert len(whole["lambdas"]) == whole["wanted"] == 40
    for numbers in whole["cases"].values():
        assert len(numbers["seconds"]) == numbers["converged"] == 40
        assert numbers["graded"] == 8
        assert numbers["worst_rel_gap"] <= 1e-6
    ticks = iter(range(10**9))
    monkeypatch.setattr(cells.race.time, "perf_counter", lambda: next(ticks))  # more than a second a look
    short = cells.race.measure(common.Context(limit=200.0), **cell, ratio=0.8, repeats=2)
    assert short["cut"]
    assert 0 < len(short["lambdas"]) < 40
    assert {len(numbers["seconds"]) for numbers in short["cases"].values()} == {len(short["lambdas"])}


def test_the_clock_of_screening_counts_once_and_puts_things_back():
    from triscreen.screening.by_triplet import Screener

    before = Screener.start, Screener.step
    case = make_case(7, n=40, d=3, kind="knn")
    with screening_clock() as seconds:
        sol = ts.solve(case.problem, 0.1 * case.problem.lambda_max(), screening=ts.Screening("pgb", every=10**6))
    assert len(seconds) == 1
    assert 0 < seconds[0] < sol.seconds
    assert (Screener.start, Screener.step) == before


# Data.


def test_a_data_set_that_is_missing_says_where_it_was_looked_for(tmp_path, monkeypatch):
    with pytest.raises(Missing, match=r"segment not found .* has no segment\.npz"):
        load("segment", tmp_path)
    monkeypatch.delenv("TRISCREEN_DATA", raising=False)
    with pytest.raises(Missing, match="--data FOLDER or TRISCREEN_DATA"):
        load("segment")
    with pytest.raises(ValueError, match="data='nothing': data must be one of"):
        load("nothing")


def test_data_come_from_npz_sparse_npz_and_libsvm_files(tmp_path):
    from scipy import sparse
    from sklearn.datasets import dump_svmlight_file

    rng = np.random.default_rng(0)
    X, y = rng.random((12, 5)), np.arange(12) % 2
    np.savez(tmp_path / "segment.npz", X=X, y=y)
    C = sparse.csr_matrix(X)
    np.savez(tmp_path / "phishing.npz", data=C.data, indices=C.indices, indptr=C.indptr, shape=C.shape, y=y)
    dump_svmlight_file(X, 2 * y - 1, str(tmp_path / "madelon.txt"))
    segment, _ = load("segment", tmp_path)
    assert (segment.min(axis=0), segment.max(axis=0)) == (pytest.approx(-np.ones(5)), pytest.approx(np.ones(5)))
    np.testing.assert_array_equal(load("phishing", tmp_path)[0], X)
    found, labels = load("madelon", tmp_path)
    np.testing.assert_allclose(found, X)
    np.testing.assert_array_equal(labels, y)


def test_data_are_fetched_once_if_wanted(tmp_path, monkeypatch):
    from sklearn.datasets import dump_svmlight_file

    monkeypatch.delenv("TRISCREEN_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "home"))
    monkeypatch.setattr(datasets, "LIBSVM", (tmp_path / "site").as_uri())
    with pytest.raises(Missing, match="phishing could not be fetched"):
        load("phishing", fetch=True)
    (tmp_path / "site" / "binary").mkdir(parents=True)
    X, y = np.random.default_rng(0).random((12, 5)), np.arange(12) % 2
    dump_svmlight_file(X, y, str(tmp_path / "site" / "binary" / "phishing"))
    np.testing.assert_allclose(load("phishing", fetch=True)[0], X)
    (tmp_path / "site" / "binary" / "phishing").unlink()
    np.testing.assert_allclose(load("phishing", fetch=True)[0], X)
    with pytest.raises(Missing, match="no folder is given"):
        load("phishing")

    asked = []

    def openml(name, version, as_frame):
        asked.append(name)
        return SimpleNamespace(data=X, target=np.array(["b", "a"] * 6))

    monkeypatch.setattr(datasets.sklearn_datasets, "fetch_openml", openml)
    _, labels = load("covtype", fetch=True)
    assert asked == ["covertype"]
    np.testing.assert_array_equal(labels, [1, 0] * 6)


def test_the_lists_of_lambdas_are_the_papers():
    lams = lambdas("segment", 1.0)
    assert lams[0] == 2.5e6
    assert 0.9 * lams[-1] < 4.2 <= lams[-1] * (1 + 1e-12)
    assert lambdas("mnist", 1234.0)[0] == 1234.0


def test_ninety_per_cent_of_iris_are_the_papers_problem():
    # Its count fits n_c^2 (n - n_c), every point its own positive, too; that is 2 % more.
    _, y = subsample(*load("iris"))
    assert ts.triplet_count(y) == pytest.approx(DATA["iris"].paper.triplets, rel=0.03)


# Running.

ONE = {"kind": "scaling", "n": 60, "d": 2, "k": 2}


@pytest.fixture
def tiny(monkeypatch):
    """Two cells that take no time, one without data and one that fails."""
    lost = {"kind": "race", "cases": ["none"], "data": "segment", "seed": 0}
    also_lost, broken = {**lost, "seed": 1}, {**ONE, "n": 2}
    listed = [ONE, lost, also_lost, {**ONE, "n": 70}, broken]
    monkeypatch.setattr(EXPERIMENTS["scaling"], "cells", lambda quick, seeds: listed)
    return listed


def test_a_missing_data_set_is_skipped_with_one_line_and_a_failure_costs_one_cell(tmp_path, tiny):
    said = []
    counts = run.run(["scaling"], True, data=tmp_path, out=tmp_path / "out", isolate=False, say=said.append)
    assert counts == {"done": 2, "there": 0, "missing": 2, "failed": 1, "left": 0}
    assert sum("segment not found" in line for line in said) == 1
    record = json.loads((tmp_path / "out" / "scaling,d=2,k=2,n=60.json").read_text())
    assert record["cell"] == ONE
    assert {"machine", "versions", "commit", "date", "seconds", "status", "result"} <= set(record)


def test_a_peer_that_is_not_installed_is_skipped_with_one_line(tmp_path, monkeypatch):
    def absent(context, data, peer, seed):
        raise Missing(f"{peer} is not installed", "peer")

    monkeypatch.setattr(cells.accuracy, "measure", absent)
    said = []
    counts = run.run(["peers"], False, out=tmp_path, seeds=1, isolate=False, say=said.append)
    assert counts["missing"] == len(EXPERIMENTS["peers"].cells(False, 1))
    assert sum("is not installed" in line for line in said) == 8  # once for each
    assert not list(tmp_path.glob("accuracy*"))


def test_an_interrupted_run_resumes(tmp_path, tiny, monkeypatch):
    said, measured, here = [], [], run._here

    def interrupted(cell, options):
        if len(measured) == 1:
            raise KeyboardInterrupt
        measured.append(cell)
        return here(cell, options)

    monkeypatch.setattr(run, "_here", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run.run(["scaling"], True, data=tmp_path, out=tmp_path / "out", isolate=False, say=said.append)
    assert "the same command goes on" in said[-1]
    kept = (tmp_path / "out" / "scaling,d=2,k=2,n=60.json").read_bytes()
    monkeypatch.setattr(run, "_here", here)
    counts = run.run(["scaling"], True, data=tmp_path, out=tmp_path / "out", isolate=False, say=silent)
    assert counts["there"] == 1
    assert counts["done"] == 1
    assert (tmp_path / "out" / "scaling,d=2,k=2,n=60.json").read_bytes() == kept
    assert not list((tmp_path / "out").glob(".*"))


def test_a_cell_runs_in_a_process_of_its_own_and_is_ended_in_time(monkeypatch):
    status, result = run._in_a_process(ONE, {"limit": 60})
    assert status == "ok"
    assert result["n"] == 60
    monkeypatch.setattr(run, "_GRACE", 0.0)
    status, result = run._in_a_process(ONE, {"limit": 0.1})
    assert status == "cut"
    assert result["why"].startswith("over")


def test_quick_and_full_results_are_not_mixed(tmp_path, tiny):
    run.run(["scaling"], True, data=tmp_path, out=tmp_path / "out", isolate=False, say=silent)
    with pytest.raises(ValueError, match="holds a quick run"):
        run.run(["scaling"], False, data=tmp_path, out=tmp_path / "out", isolate=False, say=silent)


def test_an_unknown_experiment_is_refused(tmp_path):
    with pytest.raises(ValueError, match="experiment='nothing': it must be one of rules"):
        run.run(["nothing"], out=tmp_path)


def test_every_experiment_has_cells_with_names_of_their_own():
    for quick in (True, False):
        for name, experiment in EXPERIMENTS.items():
            listed = experiment.cells(quick, 2)
            assert listed, name
            assert len({cells.name_of(cell) for cell in listed}) == len(listed), name
            assert all(json.loads(json.dumps(cell)) == cell for cell in listed), name


# The history of speed.


@pytest.fixture
def faster(monkeypatch):
    monkeypatch.setattr(cells.speed, "PATHS", {"iris": {"n_lambdas": 3}, "segment": {}})
    monkeypatch.setattr(cells.speed, "FITS", {"TripletMetric wine": ts.TripletMetric})
    monkeypatch.setattr(cells.speed, "SECONDS", 0.0)


@pytest.mark.filterwarnings("ignore")
def test_each_run_of_speed_adds_one_line_to_the_history_and_the_page_draws_it(tmp_path, faster):
    pytest.importorskip("matplotlib")
    history, out = tmp_path / "history.jsonl", tmp_path / "out"
    for _ in range(2):
        counts = run.run(["speed"], True, data=tmp_path, out=out, isolate=False, say=silent, history=history)
        assert counts["done"] == 1
    lines = [json.loads(line) for line in history.read_text().splitlines()]
    assert len(lines) == 2
    for line in lines:
        assert set(line) == {"commit", "date", "cores", "measured"}
        assert set(line["measured"]) == {"path iris", "TripletMetric wine"}  # what has no data is left out
        assert set(line["measured"]["path iris"]) == {"seconds", "passes", "overhead"}
        assert line["measured"]["path iris"]["overhead"] > 0
    text, figures = EXPERIMENTS["speed"].show(page.read(out, history))
    assert "Overhead" in text
    (figure,) = figures.values()
    assert {handle.get_label() for handle in figure.axes[0].get_lines()} == set(lines[0]["measured"])


def test_speed_is_run_only_where_it_is_named(tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr(run, "_here", lambda cell, options: (ran.append(cell["kind"]), ("ok", {}))[1])
    run.run(quick=True, out=tmp_path, isolate=False, say=silent, history=tmp_path / "history.jsonl")
    assert ran
    assert "speed" not in ran
    assert not (tmp_path / "history.jsonl").exists()


# The page.

ASIDE = ("peers", "tables", "speed", "neighbours", "dask")


@pytest.fixture(scope="module")
def quick_run(tmp_path_factory):
    """A quick run in this process, with even smaller cells; ASIDE, which start processes or take long, are not."""
    out = tmp_path_factory.mktemp("results")
    said = []
    wanted = [name for name in EXPERIMENTS if name not in ASIDE]
    with pytest.MonkeyPatch.context() as patch:
        for key, value in {"ratio": 0.5, "length": 8, "k": 3}.items():
            patch.setitem(QUICK, key, value)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            counts = run.run(wanted, True, out=out, isolate=False, limit=20, say=said.append)
        assert counts["failed"] == 0, said
        yield out


def test_every_experiment_shows_what_its_cells_measured(quick_run):
    pytest.importorskip("matplotlib")
    results = page.read(quick_run, history=quick_run / "none")
    for name, experiment in EXPERIMENTS.items():
        text, figures = experiment.show(results)
        if name in ASIDE:
            assert text == "Not run.\n"
        else:
            assert "|---|" in text, name
            assert name in ("exact", "paths", "selection") or figures, name


def test_the_page_is_made_from_the_files(quick_run, tmp_path):
    pytest.importorskip("matplotlib")
    file = page.page(page.read(quick_run), tmp_path)
    text = file.read_text()
    assert "**Quick run**" in text
    assert "(segment)" not in text  # the data of a quick run are others
    assert "## Rules compared (small data)" in text
    assert "[Rules compared (small data)](#rules-compared-small-data)" in text
    assert not re.search(r"\bnan\b", text)
    assert "recomputed" in text
    for figure in (tmp_path / "figures").glob("*.svg"):
        assert f"(figures/{figure.name})" in text
        assert figure.stat().st_size < 300_000


def test_the_page_of_the_docs_is_that_of_the_results(tmp_path, monkeypatch):
    figure = pytest.importorskip("matplotlib.figure")
    monkeypatch.setattr(figure.Figure, "savefig", lambda self, file, **_: Path(file).touch())  # names are compared
    docs = ROOT / "docs"
    made = page.page(page.read(ROOT / "benchmarks" / "published"), tmp_path)
    assert made.read_text() == (docs / "benchmarks.md").read_text(), "make it again: benchmarks/README.md"
    assert {file.name for file in (tmp_path / "figures").iterdir()} == {
        file.name for file in (docs / "figures").glob("bench-*.svg")
    }


def test_the_tables_of_experiments_that_were_named_are_printed(quick_run, capsys, monkeypatch):
    """A run of minutes ended without any table."""
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(run, "run", lambda *_, **__: {"failed": 0})
    assert run.main(["totals", "hinge", "--quick", "--out", str(quick_run)]) == 0
    said = capsys.readouterr().out
    assert said.count("|---|") >= 2
    assert "Total time by bound (small data)" in said
    assert "The hinge with PGB (small data)" in said
    assert run.main(["--quick", "--out", str(quick_run)]) == 0  # all of them: that is what the page is for
    assert capsys.readouterr().out == ""


def test_experiments_that_were_not_run_are_said_so(tmp_path):
    results = page.Results([], True, 1)
    for experiment in EXPERIMENTS.values():
        assert experiment.show(results) == ("Not run.\n", {})
    with pytest.raises(ValueError, match=r"run python benchmarks/run\.py first"):
        page.read(tmp_path)


def test_the_command_lists_its_experiments(capsys):
    run.main(["--list"])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(EXPERIMENTS)
