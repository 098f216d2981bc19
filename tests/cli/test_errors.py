"""How commands end: whose fault an error is, what spreadsheets read, time that is up, and files of any content."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import triscreen as ts
from commands import invoke, make_files
from triscreen._utils.extras import wanted
from triscreen.cli.common import _explained, from_file
from triscreen.datasets import read_points

SMALL = ("--label", "class", "--drop", "name", "-k", "2", "--tol", "1e-3")


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("errors"))


def raised(call):
    try:
        call()
    except Exception as err:
        return _explained(err)
    raise AssertionError("nothing was raised")


def test_only_what_scikit_learn_refuses_is_wrong_use():
    """A ValueError of numpy, or one of ours that is no refusal, is a defect: exit code 1, and it says so."""
    from sklearn.model_selection import StratifiedKFold, train_test_split
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.preprocessing import StandardScaler

    y = np.array([0, 1, 1])
    for refused in (
        lambda: list(StratifiedKFold(3).split(y[:, None], y)),
        lambda: train_test_split([1], test_size=0.5),
        lambda: KNeighborsClassifier(0).fit(y[:, None], y),
        lambda: StandardScaler().fit([[np.inf]]),
    ):
        code, text = raised(refused)
        assert code == 2, text
        assert "should not happen" not in text
    for broken in (
        lambda: np.linalg.cholesky(-np.eye(2)),
        lambda: np.zeros(2) + np.zeros(3),
        lambda: int("x"),
        lambda: {}["x"],
    ):
        code, text = raised(broken)
        assert code == 1, text
        assert "this should not happen" in text


def test_labels_are_no_formulas(given, tmp_path):
    lines = given["data"].read_text().splitlines()
    odd = ["=cmd|' /C calc'!A0", "+1+1", "-x", "@SUM(A1)", "'=quoted", "plain", "'plain"]
    rows = [",".join([*line.split(",")[:2], f'"{odd[i % 7]}"']) for i, line in enumerate(lines[1:])]
    (tmp_path / "odd.csv").write_text("\n".join(["a,b,class", *rows, ""]))
    before = read_points(tmp_path / "odd.csv")
    assert set(before.y) == set(odd)
    done = invoke("transform", given["model"], tmp_path / "odd.csv", "--label", "class", "-o", tmp_path / "z.csv")
    assert done.code == 0, done
    cells = [line.rsplit(",", 1)[1].strip('"') for line in (tmp_path / "z.csv").read_text().splitlines()]
    assert not [cell for cell in cells if cell[0] in "=+-@"]
    formulas = [label[0] in "=+-@" or label == "'=quoted" for label in before.y]
    wanted = [f"'{label}" if formula else label for label, formula in zip(before.y, formulas, strict=True)]
    assert read_points(tmp_path / "z.csv").y.tolist() == wanted
    numbers = "\n".join(["a,b,class", *(f"1,{i},{-1 if i % 2 else 1}" for i in range(6)), ""])
    (tmp_path / "signs.csv").write_text(numbers)
    out = invoke("transform", given["model"], tmp_path / "signs.csv", "--label", "class").out
    assert [line.rsplit(",", 1)[1] for line in out.splitlines()[1:]] == ["1", "-1"] * 3


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_stdout_on_a_full_disk(given):
    command = [sys.executable, "-m", "triscreen", "transform", str(given["model"]), str(given["data"])]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, "triscreen: error: No space left on device\n")


def test_max_seconds_is_for_the_whole_command(given, tmp_path, monkeypatch):
    """A path that is done when the time is up has what there was time for; the same command goes on to the rest."""
    from triscreen.report import facts

    words = ("path", given["data"], *SMALL, "--n-lambdas", "6", "-o", tmp_path / "p", "--report", tmp_path / "r.html")
    with monkeypatch.context() as patch:
        clock = iter(range(0, 10**9, 1000))  # every look at it takes 1,000 s
        patch.setattr(facts, "time", SimpleNamespace(perf_counter=clock.__next__))
        patch.setattr("triscreen.cli.common.Clock.spent", lambda clock: 0.0)
        done = invoke(*words, "--max-seconds", "5000", "--json")
    assert done.code == 1, done
    assert "stopped by max_seconds=5000, without " in done.err
    told = json.loads(done.out)
    assert told["stopped_by"] == "n_lambdas"
    assert "lambdas of the maps" in told["left_out"][-1]
    assert (tmp_path / "p.checkpoint").is_dir()
    with monkeypatch.context() as patch:
        patch.setattr(facts, "time", SimpleNamespace(perf_counter=iter(range(0, 10**9, 1000)).__next__))
        patch.setattr("triscreen.cli.common.Clock.spent", lambda clock: 0.0)
        done = invoke(*words, "--max-seconds", "5000")
    assert "at the best lambda of 2 looked at" in done.err
    assert sum(line.startswith("│") for line in done.err.splitlines()) == 6  # the table has them all the same
    done = invoke(*words, "--max-seconds", "5000")
    assert done.code == 0, done
    assert "going on from" in done.err
    assert sorted(file.name for file in tmp_path.iterdir()) == ["p", "r.html"]
    assert ts.load(tmp_path / "p").facts["left_out"] == []


def test_maps_are_made_for_a_report_only(given, tmp_path):
    words = ("path", given["data"], *SMALL, "--n-lambdas", "4", "-o", tmp_path / "p", "--quiet")
    assert invoke(*words).code == 0
    facts = ts.load(tmp_path / "p").facts
    assert "rates" not in facts
    assert len(facts["errors"]) == 4
    assert (facts["scale"], facts["shift"].shape, facts["factor"].shape) == ("standard", (2,), (2,))
    done = invoke("report", tmp_path / "p", "-o", tmp_path / "r.html")
    assert "without the panels that solve the problem again" in done.err
    assert invoke(*words, "--report", tmp_path / "r.html").code == 0
    assert "rates" in ts.load(tmp_path / "p").facts
    assert "without" not in invoke("report", tmp_path / "p", "-o", tmp_path / "r.html").err


def test_files_of_any_content_end_in_a_sentence(tmp_path):
    """A hundred or so of the nightly run's files."""
    spec = importlib.util.spec_from_file_location("fuzz_files", Path(__file__).with_name("fuzz_files.py"))
    fuzz_files = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fuzz_files)
    ended, findings = fuzz_files.fuzz(fuzz_files.Files(tmp_path), 96, seed=7)
    assert findings == []
    assert len({kind for kind, _ in ended}) == 12


def test_no_time_for_any_metric_is_an_error_and_replaces_nothing(tmp_path, monkeypatch):
    from triscreen._utils import threads as _threads

    def over(run):
        if run.limit is not None:
            raise ts.OutOfTime("the time is over")

    monkeypatch.setattr(_threads._Run, "check", over)
    for command in (["path"], ["fit"], ["fit", "--lam-ratio", "0.01"], ["fit", "--lam", "1"]):
        (tmp_path / "good").write_text("what was there")
        done = invoke(*command, "iris", "-o", tmp_path / "good", "--max-seconds", "100")
        assert done.code == 1, done
        assert "triscreen: error: max_seconds=100: it was over " in done.err
        assert (tmp_path / "good").read_text() == "what was there"


def test_a_package_that_is_missing_is_not_blamed_on_the_file():
    with pytest.raises(ts.InputError) as told, from_file("my.model", "model"):
        wanted("no_such_package", "models for elsewhere", "onnx")
    assert str(told.value).endswith("models for elsewhere need it (pip install 'triscreen[onnx]')")
    assert "my.model" not in str(told.value)
