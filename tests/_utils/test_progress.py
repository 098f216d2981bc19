"""One bar on a terminal, one line in a notebook, silence elsewhere; and never two at a time."""

from __future__ import annotations

import io
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import triscreen as ts
from commands import invoke
from triscreen._utils import progress as module
from triscreen._utils.progress import Pace, Stage, in_lines, progress, searching, silent, stage

Y = np.arange(30) % 2
X = np.random.default_rng(0).normal(size=(30, 3)) + Y[:, None]
PROBLEM = ts.Problem(X, ts.knn_triplets(X, Y, 2))


class Terminal(io.StringIO):
    """A stderr that somebody looks at."""

    def isatty(self):
        return True


@pytest.fixture
def bars(monkeypatch):
    """Return the (title, total, steps told of) of every bar that is opened."""
    opened = []

    class Bar:
        def __init__(self, title, total):
            self.told = []
            opened.append((title, total, self.told))

        def __enter__(self):
            return self.told.append

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(module, "_display", Bar)
    return opened


def test_a_bar_shows_what_there_is_to_know(monkeypatch):
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        path = ts.solve_path(PROBLEM, n_lambdas=3, tol=1e-3)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue())
    last = f"lambda {path.lambdas[-1]:.3g} gap {path.rel_gaps[-1]:.1e} left out {path.screening_rates[-1]:.1%}"
    assert f" 3/3 {last} left ~0:00" in text
    assert max(map(len, re.split(r"[\r\n]", text))) <= 80
    assert terminal.getvalue().endswith("\x1b[2K")  # nothing of it stays


def test_silence_where_nobody_looks(capfd):
    ts.solve_path(PROBLEM, n_lambdas=3, tol=1e-3)
    ts.TripletMetricCV(2, ratios=3, cv=2).fit(X, Y)
    assert capfd.readouterr() == ("", "")


def test_a_line_in_a_notebook(monkeypatch):
    shown = []

    def display(data, raw, display_id):
        shown.append(data["text/plain"])
        return SimpleNamespace(update=lambda data, raw: shown.append(data["text/plain"]))

    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    monkeypatch.setattr(module.time, "perf_counter", iter(range(10**6)).__next__)  # a second each time
    path = ts.solve_path(PROBLEM, n_lambdas=3, tol=1e-3)
    assert shown[0] == "path"
    assert shown[-1] == ""
    assert [text.split(",")[0] for text in shown[1:-1]] == ["path 1/3", "path 2/3", "path 3/3"]
    assert f"lambda {path.lambdas[1]:.3g}" in shown[2]
    assert "left at most" in shown[1]


def test_work_inside_other_work_shows_nothing_of_its_own(bars):
    with progress("outer") as show:
        ts.solve_path(PROBLEM, n_lambdas=2, tol=1e-3, callback=show)
        with progress("inner") as inner:
            inner(None)
    ((title, total, told),) = bars
    assert (title, total, told[0], len(told)) == ("outer", None, Stage(total=2), 3)  # the path knew how many
    ts.solve_path(PROBLEM, n_lambdas=2, tol=1e-3)
    assert bars[1][:2] == ("path", 2)


def test_silence_on_demand(bars):
    with silent():
        ts.solve_path(PROBLEM, n_lambdas=2, tol=1e-3)
        with silent(False):
            ts.solve_path(PROBLEM, n_lambdas=2, tol=1e-3)
    assert bars == []
    with silent(False):
        ts.solve_path(PROBLEM, n_lambdas=2, tol=1e-3)
    assert len(bars) == 1


def test_a_path_knows_how_many_lambdas_there_are_at_most(bars):
    path = ts.solve_path(PROBLEM, ratio=0.5, tol=1e-3)
    ts.solve_path(PROBLEM, lambdas=path.lambdas[:4], tol=1e-3)
    ts.solve_path(PROBLEM, ratio=0.5, n_lambdas=10**6, tol=1e-3)
    ts.solve_path(PROBLEM, guarantee=0.1, tol=1e-3)
    bound = 1 + int(np.ceil(np.log(1e-8) / np.log(0.5)))
    assert [total for _, total, _ in bars] == [bound, 4, bound, None]
    assert len(path) <= bound
    assert all(len(told) <= (total or np.inf) for _, total, told in bars)


def test_a_fit_shows_one_bar_and_only_if_asked(bars):
    ts.TripletMetricCV(2, ratios=3, cv=2).fit(X, Y)
    ts.TripletMetric(2).fit(X, Y)
    assert bars == []
    model = ts.TripletMetricCV(2, ratios=3, cv=2, rounds=2, verbose=1).fit(X, Y)
    ((title, total, told),) = bars
    assert title == "fit"
    assert 2 * 3 <= len(told) <= total  # two folds of three starts, at least
    model = ts.TripletMetric(2, verbose=1).fit(X, Y)
    assert (bars[1][:2], len(bars[1][2])) == (("fit", None), model.n_iter_)


@pytest.mark.parametrize("words", ["path iris --n-lambdas 3", "fit iris --cv 2", "fit iris --lam-ratio 0.1"])
def test_a_command_shows_one_bar_unless_it_is_to_be_quiet(words, bars, tmp_path):
    words = (*words.split(), "-o", tmp_path / "out")
    assert invoke(*words, "--quiet").code == 0
    assert bars == []
    assert invoke(*words).code == 0
    assert [title for title, *_ in bars] == [words[0], *(["facts"] if words[0] == "path" else [])]
    assert all(told for *_, told in bars)


@pytest.fixture
def clock(monkeypatch):
    """Time that passes when it is told to."""
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(module.time, "perf_counter", lambda: now.seconds)
    return now


def step(lam=1.0):
    return SimpleNamespace(lam=lam, rel_gap=0.1)


def test_the_time_left_is_that_of_the_last_steps(clock):
    """It said "< 0:00:08" and grew to 4:09: the first, quick steps were taken for all of them."""
    pace = Pace(100)
    assert pace.left is None
    for _ in range(50):
        clock.seconds += 0.1
        pace.see(step())
    assert pace.left == pytest.approx(50 * 0.1)
    for _ in range(10):
        clock.seconds += 4.0
        pace.see(step())
    assert pace.left == pytest.approx(40 * 4.0)
    assert str(pace) == "60/100, lambda 1 gap 1.0e-01, after 0:45, at this pace 2:40 left at most"
    clock.seconds += 3600
    assert "after 1:00:45" in str(pace)


def test_what_was_kept_is_shown_and_has_no_pace(clock):
    pace = Pace(176)
    pace.see(Stage(kept=107))
    assert (pace.place, pace.left) == ("107/176", None)
    clock.seconds += 3.0
    pace.see(step())
    assert (pace.place, pace.left) == ("108/176", 68 * 3.0)


def test_a_resumed_path_shows_what_it_goes_on_from(bars, tmp_path):
    """It showed "0/176 lambda 0 gap 1.0e+00"."""
    path = ts.solve_path(PROBLEM, n_lambdas=3, tol=1e-3, checkpoint=tmp_path / "c")
    bars.clear()
    ts.solve_path(PROBLEM, n_lambdas=5, tol=1e-3, checkpoint=tmp_path / "c")
    ((_, total, told),) = bars
    assert (total, told[0], told[1].lam, len(told)) == (5, Stage(kept=2), path.lambdas[2], 4)


def test_a_fit_says_which_fold_and_how_many_steps_there_are(bars):
    with progress("fit") as show:
        model = ts.TripletMetricCV(2, ratios=2, cv=2, candidates=[None, "within"], callback=show).fit(X, Y)
    ((_, _, told),) = bars
    stages = [each for each in told if isinstance(each, Stage)]
    assert next(each.total for each in stages if each.total) >= 2 * 2 * 2
    wanted = [f"fold {k}/2 {name}" for k in (1, 2) for name in ("none", "within")]
    assert [each.text for each in stages if each.text] == wanted + ["all points"] * (model.path_ is not None)
    assert len(told) - len(stages) >= 2


def test_in_a_pipe_a_command_says_a_line_now_and_then(clock, capfd):
    with in_lines(), progress("path", 50) as show:
        show(Stage(kept=10))
        show(Stage("fold 1/2"))
        for _ in range(39):
            clock.seconds += 0.9
            show(step())
    lines = capfd.readouterr().err.splitlines()
    assert lines[0] == (
        "triscreen: path 15/50, fold 1/2, lambda 1 gap 1.0e-01, after 0:04, at this pace 0:32 left at most"
    )
    assert [line.split(",")[0] for line in lines] == [f"triscreen: path {n}/50" for n in range(15, 50, 5)]
    with in_lines(), progress("fit") as show:  # nobody knows how many
        for _ in range(25):
            clock.seconds += 0.9
            show(step())
    lines = capfd.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines] == ["triscreen: fit 12", "triscreen: fit 24"]
    with in_lines(), silent(), progress("path", 50) as show:
        clock.seconds += 100
        show(step())
    with progress("path", 50) as show:  # no command
        clock.seconds += 100
        show(step())
    assert capfd.readouterr().err == ""


def test_a_short_command_in_a_pipe_is_silent_until_its_end(tmp_path):
    told = invoke("path", "iris", "--n-lambdas", "2", "-o", tmp_path / "p")
    assert told.code == 0
    assert "at this pace" not in told.err


def test_stages_without_anybody_who_shows_them():
    stage("fold 1/2", 7)


# -- searches ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def impatient(monkeypatch):
    """Every search is one that takes long."""
    monkeypatch.setattr(module, "_PATIENCE", 0.0)


def test_a_search_shows_nothing_for_its_first_seconds(bars):
    ts.knn_triplets(X, Y, 2)
    ts.all_triplets(X, Y, 2)
    assert bars == []


@pytest.mark.parametrize("make", [ts.knn_triplets, ts.all_triplets])
def test_a_long_search_has_a_bar_of_its_own(make, bars, impatient):
    make(X, Y, 2, n_jobs=1)
    ((title, total, told),) = bars
    assert (title, total) == ("neighbours", 100)
    assert told[-1] == 100.0
    assert told == sorted(told)
    with silent():
        make(X, Y, 2)
    assert len(bars) == 1


def test_a_long_search_inside_other_work_leaves_notes_there(bars, impatient):
    ts.TripletMetric(2, n_jobs=1).fit(X, Y)
    assert bars == []
    for model in (ts.TripletMetric(2, verbose=1, n_jobs=1), ts.TripletMetricCV(2, ratios=2, verbose=1, n_jobs=1)):
        model.fit(X, Y)
        ((title, _, told),) = bars
        assert title == "fit"
        assert next(each for each in told if not isinstance(each, Stage)) == "neighbours 100%"
        bars.clear()


def test_only_the_thread_that_searches_shows_something(bars, impatient):
    from threading import Thread

    with searching("neighbours") as tell:
        other = Thread(target=tell, args=(0.5,))
        other.start()
        other.join()
        assert bars == []
        tell(0.75)
    assert bars == [("neighbours", 100, [75.0])]


def test_the_bar_of_a_search_tells_how_far_it_is(monkeypatch, impatient):
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        with searching("neighbours") as tell:
            for share in (0.1, 0.25, 0.5):
                tell(share)
        with progress("fit", 9) as show:
            show("neighbours 30%")
            show(SimpleNamespace(lam=1.0, rel_gap=0.1))
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue())
    assert re.search(r"neighbours .* 50/100 left ~", text)
    assert re.search(r"fit .* 1/9 lambda 1 gap 1.0e-01", text)
    assert max(map(len, re.split(r"[\r\n]", text))) <= 80
