"""The whole program: what it writes, says, refuses and leaves behind; in a process of its own where that matters."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import zipfile
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import triscreen as ts
from commands import invoke
from triscreen import datasets
from triscreen.selection.votes import interval

PROGRAM = [sys.executable, "-m", "triscreen"]
SMALL = ("--k", "3", "--ratio", "0.7", "--tol", "1e-4", "--n-lambdas", "4")


def run(*arguments, code=0, folder=None, text="", alone=False, **more):
    """Run a command and return (stdout, stderr), alone: as a process; an error is one line and no traceback."""
    if alone:
        words = [*PROGRAM, *map(str, arguments)]
        done = subprocess.run(words, capture_output=True, text=True, cwd=folder, input=text, timeout=100, **more)
        done = SimpleNamespace(code=done.returncode, out=done.stdout, err=done.stderr)
    else:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder or os.curdir)
            done = invoke(*arguments, stdin=text.encode())
    assert done.code == code, done.err
    assert "Traceback" not in done.err
    assert "Warning" not in done.err
    return done.out, done.err


def refusal(*arguments, code=2, **more):
    """Return the sentence of a command that fails, having written nothing to stdout."""
    out, err = run(*arguments, code=code, **more)
    assert out == ""
    lines = [line for line in err.splitlines() if line.startswith("triscreen: error: ")]
    assert len(lines) == 1, err
    assert err.splitlines()[-1] == lines[0]
    return lines[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Points in a CSV, comparisons, a model and a path."""
    folder = tmp_path_factory.mktemp("cli")
    rng = np.random.default_rng(0)
    y = np.repeat(["cat", "dog", "cow"], 20)
    X = rng.normal(size=(60, 3)) + 3 * np.stack([y == "dog", y == "cow", y == "none"], axis=1)
    X[:, 2] *= 50
    rows = [f"{a!r},{b!r},{c!r},{label},n{i}" for i, ((a, b, c), label) in enumerate(zip(X.tolist(), y, strict=True))]
    (folder / "pets.csv").write_text("weight,height,noise,species,name\n" + "\n".join(rows) + "\n")
    triplets = [rng.choice(60, 3, replace=False) for _ in range(150)]
    triplets = [(a, b, c) if abs(X[a, 0] - X[b, 0]) < abs(X[a, 0] - X[c, 0]) else (a, c, b) for a, b, c in triplets]
    (folder / "compared.csv").write_text("a,b,c\n" + "".join(f"n{a},n{b},n{c}\n" for a, b, c in triplets))
    pets = ("pets.csv", "--label", "species", "--drop", "name")
    out, err = run("fit", *pets, "-o", "pets.model", "--k", 3, "--cv", 2, folder=folder, alone=True)
    assert out == ""
    assert "wrote 'pets.model'" in err
    out, err = run("path", *pets, "-o", "pets.path", "--report", "pets.html", "--json", "-q", *SMALL, folder=folder)
    assert err == ""
    told = json.loads(out)
    path = ts.load(folder / "pets.path")
    assert told["lambdas"] == path.lambdas.tolist()
    assert told["rel_gaps"] == path.rel_gaps.tolist()
    assert told["converged"] is True
    assert told["n_points"] == 45
    assert 0 <= told["error_after"] <= told["error_before"] <= 1
    assert (folder / "pets.html").read_text().startswith("<")
    assert sorted(file.name for file in folder.iterdir()) == [
        "compared.csv", "pets.csv", "pets.html", "pets.model", "pets.path",
    ]  # fmt: skip
    return folder


def test_the_model_scales_as_it_was_told_and_transforms_by_names(folder, tmp_path):
    model = ts.load(folder / "pets.model")
    assert model[0].kind == "standard"
    assert model[0].feature_names_in_.tolist() == ["weight", "height", "noise"]
    lines = (folder / "pets.csv").read_text().splitlines()[1:]
    X = np.array([line.split(",")[:3] for line in lines], dtype=float)
    Z = model[1].transform((X - X.mean(axis=0)) / X.std(axis=0))
    # Columns in another order, and on standard input: the same points.
    text = "noise,height,weight\n" + "\n".join(",".join(line.split(",")[2::-1]) for line in lines)
    out, err = run("transform", folder / "pets.model", "-", text=text, alone=True)
    assert err == ""
    np.testing.assert_allclose(np.loadtxt(out.splitlines()[1:], delimiter=","), Z, rtol=1e-9, atol=1e-12)
    # To files: CSV with labels, npy.
    run("transform", folder / "pets.model", folder / "pets.csv", "--label", "species", "-o", tmp_path / "z.csv")
    first = (tmp_path / "z.csv").read_text().splitlines()
    assert first[0] == ",".join([*(f"z{c}" for c in range(Z.shape[1])), "species"])
    assert first[1].endswith(",cat")
    run("transform", folder / "pets.model", folder / "pets.csv", "-o", tmp_path / "z.npy", "--components", 2)
    np.testing.assert_allclose(np.load(tmp_path / "z.npy"), Z[:, :2], rtol=1e-9, atol=1e-12)


def test_evaluate_says_before_and_after(folder):
    out, err = run("evaluate", folder / "pets.model", folder / "pets.csv", "--label", "species", "--json", "--quiet")
    told = json.loads(out)
    assert err == ""
    assert (told["n_points"], told["leave_one_out"]) == (60, True)
    model = ts.load(folder / "pets.model")
    lines = [line.split(",") for line in (folder / "pets.csv").read_text().splitlines()[1:]]
    X, y = np.array([line[:3] for line in lines], dtype=float), np.array([line[3] for line in lines])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    for name, Z in (("error_before", X), ("error_after", X @ model[1].components_.T)):
        wrong = 0
        for i, z in enumerate(Z):
            distances = np.linalg.norm(Z - z, axis=1)
            distances[i] = np.inf
            labels, votes = np.unique(y[np.argsort(distances)[:3]], return_counts=True)
            wrong += labels[np.argmax(votes)] != y[i]
        assert told[name] == pytest.approx(wrong / 60)
        assert told[f"{name}_interval"] == pytest.approx(interval(wrong / 60, 60))
        out, _ = run("evaluate", folder / "pets.model", folder / "pets.csv", "--label", "species", "--quiet")
        assert f"{wrong} of 60" in out


def test_comparisons_by_name(folder, tmp_path):
    points = (folder / "pets.csv", "--names", "name", "--drop", "species", "--comparisons", folder / "compared.csv")
    out, _ = run("fit", *points, "-o", tmp_path / "c.model", "--json", "--scale", "minmax")
    assert json.loads(out)["n_triplets"] == 150
    assert ts.load(tmp_path / "c.model")[1].preprocessor is None
    out, _ = run("evaluate", tmp_path / "c.model", *points, "--json")
    assert json.loads(out)["right_after"] > max(0.9, json.loads(out)["right_before"])
    out, _ = run("path", *points, "-o", tmp_path / "c.path", "--report", tmp_path / "c.html", "--json", "--ratio", 0.5)
    told = json.loads(out)
    assert told["n_triplets"] == 112  # a quarter is held out
    assert told["error_after"] < told["error_before"]
    assert "comparisons not learned from" in (tmp_path / "c.html").read_text()


def test_report_info_and_bench(folder, tmp_path):
    run("report", folder / "pets.path", "-o", tmp_path / "r.html")
    assert (tmp_path / "r.html").stat().st_size > 0
    out, err = run("info", folder / "pets.path", "--json")
    assert (json.loads(out)["kind"], json.loads(out)["lambdas"], err) == ("path", 4, "")
    assert "TripletMetricCV" in run("info", folder / "pets.model")[0]
    assert json.loads(run("info", "--json")[0])["triscreen"] == ts.__version__
    results = json.loads(run("bench", "--quick", "--json")[0])["results"]
    assert all(r["numpy_seconds"] > 0 for r in results)
    assert "data and output are for experiments" in refusal("bench", "-o", tmp_path)


def test_bench_runs_experiments_of_a_checkout(tmp_path):
    out, _ = run("bench", "exact", "--quick", "-o", tmp_path / "results", alone=True)
    assert "exact" in out
    assert list((tmp_path / "results").rglob("*.json"))


def test_demo_tells_the_story(tmp_path, monkeypatch):
    read = datasets.read_points

    def some(name):
        """Every sixth of the digits: what is told is the same."""
        found = read(name)
        return replace(found, X=found.X[::6], y=found.y[::6])

    monkeypatch.setattr(datasets, "read_points", some)
    out, err = run("demo", folder=tmp_path)
    assert "left out as safe beforehand" in out
    assert float(out.split("on average ")[1].split("%")[0]) > 0.5
    assert "proven irrelevant afterwards" in out
    assert "before" in out
    assert err.splitlines()[-1] == "triscreen: wrote 'triscreen-demo.html'"
    assert (tmp_path / "triscreen-demo.html").exists()


def test_dry_run_writes_nothing(folder, tmp_path):
    out, _ = run("path", folder / "pets.csv", "--label", 3, "--drop", "name", "--dry-run", folder=tmp_path)
    assert "triplets over" in out
    assert "passes: roughly" in out
    out, _ = run("fit", "iris", "--dry-run", "--json", "--triplets", "all", folder=tmp_path)
    told = json.loads(out)
    assert told["n_triplets"] == 3 * 50 * 49 * 100
    assert 0 < told["seconds"][0] < told["seconds"][1]
    assert not list(tmp_path.iterdir())


BAD = {
    "missing file": ("none.csv", None, "does not exist"),
    "empty file": ("a.csv", "", "is empty"),
    "ragged rows": ("a.csv", "a,b,label\n1,2,x\n3,4,y,5\n1,1,x\n", "line 3: it has 4 columns"),
    "text in a numeric column": ("a.csv", "a,b,label\n1,2,x\n3,four,y\n1,1,x\n", "line 3, column 'b': 'four'"),
    "continuous labels": ("a.csv", "a,b,c\n1,2,0.1\n3,4,0.2\n5,6,0.3\n", "looks continuous"),
    "binary file": ("a.csv", "\0\1\2\3" * 9, "is a binary file"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_data_is_one_sentence(tmp_path, what):
    name, text, words = BAD[what]
    if text is not None:
        (tmp_path / name).write_text(text)
    before = sorted(tmp_path.iterdir())
    assert words in refusal("path", name, "-o", "a.path", "--quiet", folder=tmp_path)
    assert sorted(tmp_path.iterdir()) == before


def test_an_unknown_label_column(folder):
    sentence = refusal("fit", "pets.csv", "--label", "kind", "-o", "x.model", folder=folder)
    assert "label='kind'" in sentence
    assert "its columns are weight, height, noise, species, name" in sentence


def test_bad_models(folder, tmp_path):
    data = (folder / "pets.model").read_bytes()
    (tmp_path / "damaged").write_bytes(data[: len(data) // 2])
    assert "is damaged or cut short" in refusal("transform", tmp_path / "damaged", "iris")
    with zipfile.ZipFile(folder / "pets.model") as old, zipfile.ZipFile(tmp_path / "newer", "w") as new:
        for member in old.infolist():
            content = old.read(member)
            if member.filename == "header.json":
                content = re.sub(rb'"version": \d+', b'"version": 99', content)
            new.writestr(member, content)
    assert "was written by a newer triscreen" in refusal("info", tmp_path / "newer")
    assert "holds a path: a model is needed" in refusal("evaluate", folder / "pets.path", "iris")
    rng = np.random.default_rng(0)
    ts.save(ts.TripletMetric(2).fit(rng.normal(size=(20, 3)), np.arange(20) % 2), tmp_path / "plain")
    assert "has 13 features: the model was learned from 3" in refusal("transform", tmp_path / "plain", "wine")


def test_an_output_that_cannot_be_written_is_refused_before_the_work(folder, tmp_path):
    begin = ("path", "none.csv")  # the output is looked at first: the missing file is not even noticed
    assert "does not exist, make it first" in refusal(*begin, "-o", tmp_path / "no" / "a.path")
    assert "is a folder" in refusal(*begin, "-o", tmp_path)
    assert "report=" in refusal(*begin, "-o", tmp_path / "a", "--report", tmp_path / "no" / "r.html")
    if os.geteuid() != 0:  # root may write everywhere
        tmp_path.chmod(0o500)
        assert "does not let you write" in refusal(*begin, "-o", tmp_path / "a.path")


def test_a_full_disk_leaves_no_partial_file(folder, tmp_path):
    """A limit on the size of files stands for it."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))

    (tmp_path / "z.csv").write_text("old")
    out = ("-o", tmp_path / "z.csv")
    words = refusal("transform", folder / "pets.model", folder / "pets.csv", *out, code=1, alone=True, preexec_fn=limit)
    assert "z.csv': File too large" in words
    assert (tmp_path / "z.csv").read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["z.csv"]


def test_not_converged_is_written_and_exit_code_1(tmp_path):
    out, err = run("fit", "iris", "--lam-ratio", "1e-6", "--tol", "1e-17", "--json", "-o", tmp_path / "m", code=1)
    assert json.loads(out)["converged"] is False
    progress = r", after \d+:\d\d"  # told after ten seconds, on a busy machine
    (told,) = (line for line in err.splitlines() if not re.search(progress, line))
    assert told.startswith("triscreen: warning: ")
    assert ts.load(tmp_path / "m")[1].converged_ is False


STOPPED = """
import os, signal
from triscreen._utils.checkpoint import Checkpoint
append = Checkpoint.append
def appended(self, *arguments, **more):
    append(self, *arguments, **more)
    if len(self) == 3: os.kill(os.getpid(), signal.SIGINT)
Checkpoint.append = appended
from triscreen.cli import main
main()
"""


@pytest.mark.frugal  # as the process that is stopped does
@pytest.mark.parametrize("verb", ["path", "fit"])
def test_ctrl_c_keeps_a_checkpoint_and_the_same_command_goes_on(tmp_path, verb):
    more = ("--ratio", "0.9", "--n-lambdas", "6") if verb == "path" else ("--cv", "3", "--candidates", "none")
    for name in ("whole", "stopped"):
        (tmp_path / name).mkdir()
    command = (verb, "iris", "--k", "3", "-o", "out", *more)
    words = [sys.executable, "-c", STOPPED, *command]
    done = subprocess.run(words, cwd=tmp_path / "stopped", capture_output=True, text=True, timeout=100)
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    kept = "interrupted, what is done is kept in 'out.checkpoint'; the same command goes on from there"
    assert kept in done.stderr
    assert [file.name for file in (tmp_path / "stopped").iterdir()] == ["out.checkpoint"]
    run(*command, "--quiet", folder=tmp_path / "whole")
    _, err = run(*command, folder=tmp_path / "stopped")
    assert "going on from 'out.checkpoint'" in err
    assert [file.name for file in (tmp_path / "stopped").iterdir()] == ["out"]
    a, b = (ts.load(tmp_path / name / "out") for name in ("whole", "stopped"))
    if verb == "fit":
        np.testing.assert_array_equal(a[1].cv_scores_, b[1].cv_scores_)
        np.testing.assert_array_equal(a[1].components_, b[1].components_)
        a, b = a[1].path_, b[1].path_
    np.testing.assert_array_equal(a.lambdas, b.lambdas)
    np.testing.assert_array_equal(a.gaps, b.gaps)


def test_a_closed_pipe_is_silent(folder):
    process = subprocess.Popen(
        [*PROGRAM, "transform", str(folder / "pets.model"), str(folder / "pets.csv")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == 141
    process.stderr.close()


def test_debug_shows_where(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = invoke("info", "none", "--debug")
    assert done.code == 2
    assert "Traceback" in done.err
    assert done.err.splitlines()[-1].startswith("triscreen: error: file='none' does not exist")


def test_usage_errors_and_help():
    from typer.testing import CliRunner

    from triscreen.cli.app import app

    runner = CliRunner()
    for arguments in (["path"], ["fit", "iris", "--cv", "one"], ["path", "iris", "--scale", "odd"], ["unknown"]):
        assert runner.invoke(app, arguments).exit_code == 2
    for name in ("demo", "path", "fit", "transform", "evaluate", "report", "bench", "info"):
        shown = runner.invoke(app, [name, "--help"])
        assert shown.exit_code == 0
        assert f"Example: triscreen {name}" in shown.output
