"""Checkpoints of a search: killed anywhere, it goes on with nothing lost, to the same bits."""

from __future__ import annotations

import os
import signal
from collections import Counter
from copy import deepcopy

import numpy as np
import pytest

import triscreen as ts
from triscreen._utils import checkpoint as folders
from triscreen._utils.archive import OURS
from triscreen.selection.sides import Side

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked here"),
]
EPS = 0.1


def made(tol=1e-3, cone="psd", loss=None, prior=None, k=3):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(120, 4)), np.arange(120) % 3
    X[:, 0] += 0.8 * y
    loss = ts.SmoothedHinge() if loss is None else loss
    problem = ts.Problem(X[:60], ts.knn_triplets(X[:60], y[:60], 3), loss=loss, cone=cone, prior=prior, n_jobs=1)
    path = ts.solve_path(problem, ratio=0.6, n_lambdas=4, tol=tol)
    return path, ts.validation_bounds(path, X[:60], y[:60], X[60:], y[60:], k=k)


def bits(found):
    rows = found.path._rows
    return {
        "plain": (found.lam, found.error, found.gap, found.possible, found.n_solved, found.n_evaluated),
        "stopped_by": found.stopped_by,
        "lambdas": [row.lam for row in rows],
        "metrics": [row.factor.tobytes() for row in rows],
        "gaps": [(row.gap, row.rounding, row.loss, row.slack, row.away) for row in rows],
        "intervals": found.bounds.lambdas.tobytes(),
        "outcomes": found.bounds.outcomes.tobytes(),
    }


class Killer:
    """Kills the process at the n-th file of a checkpoint that is written: before it, half way, or after it."""

    def __init__(self, at, when):
        self.at, self.when, self.calls, self.write = at, when, 0, folders.write

    def __call__(self, file, *what):
        self.calls += 1
        if self.calls < self.at or self.when == "after":
            self.write(file, *what)
        if self.calls == self.at:
            if self.when == "half":
                (file.parent / f"{OURS}0123abcd.tmp").write_bytes(b"PK half of it")
            os.kill(os.getpid(), signal.SIGKILL)


def killed(work, at, when):
    """Whether the work is killed there, in a process of its own."""
    child = os.fork()
    if child == 0:
        try:
            folders.write = Killer(at, when)
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def counted(monkeypatch):
    counts = Counter()
    for name in ("step", "_solve"):
        real = getattr(Side, name)

        def counting(self, *given, real=real, name=name):
            counts[name] += 1
            return real(self, *given)

        monkeypatch.setattr(Side, name, counting)
    return counts


@pytest.fixture(scope="module")
def counted_search():
    path, bounds = made()
    with pytest.MonkeyPatch.context() as patch:
        counts = counted(patch)
        whole = ts.select(path, bounds, EPS)
    assert whole.n_solved >= 5
    assert whole.n_evaluated >= 5
    return path, bounds, bits(whole), counts


@pytest.fixture
def search(counted_search):
    return counted_search[:3]


@pytest.mark.parametrize("when", ["before", "half", "after"])
def test_killed_anywhere_it_goes_on_to_the_same_bits(counted_search, tmp_path, when, monkeypatch):
    path, bounds, whole, all_of_it = counted_search
    steps, solves = all_of_it["step"], all_of_it["_solve"]
    counts = counted(monkeypatch)
    # The first file is the identity, then one a step; before one is after the one that comes before it.
    for at in {"before": (1, steps + 1), "half": (2, steps // 2), "after": (1, 2, steps + 1)}[when]:
        folder = tmp_path / str(at)
        assert killed(lambda folder=folder: ts.select(path, bounds, EPS, checkpoint=folder), at, when)
        kept = len(list(folder.glob("0*.tsc")))
        assert kept == max(0, at - 1 - (when != "after"))
        counts.clear()
        assert bits(ts.select(path, bounds, EPS, checkpoint=folder)) == whole
        assert counts["step"] == steps - kept
        assert counts["_solve"] < solves or kept < 5
        assert not list(folder.glob("*.tmp"))
    counts.clear()
    assert bits(ts.select(path, bounds, EPS, checkpoint=folder)) == whole
    assert not counts  # all of it is known


def test_killed_again_and_again(search, tmp_path):
    path, bounds, whole = search
    times = 0
    while killed(lambda: ts.select(path, bounds, EPS, checkpoint=tmp_path / "a"), 13, "half"):
        times += 1
    assert times >= 4
    assert bits(ts.select(path, bounds, EPS, checkpoint=tmp_path / "a")) == whole


@pytest.mark.parametrize(
    "kind", [{"cone": "diagonal"}, {"loss": ts.Hinge()}, {"prior": "identity"}], ids=["diagonal", "hinge", "prior"]
)
def test_of_every_kind_of_problem(tmp_path, kind):
    path, bounds = made(**kind)
    whole = ts.select(path, bounds, EPS, max_lambdas=8)
    for at in (2, 6):
        work = lambda at=at: ts.select(path, bounds, EPS, max_lambdas=8, checkpoint=tmp_path / str(at))  # noqa: E731
        killed(work, at, "after")
        assert bits(work()) == bits(whole)


def test_limits_and_eps_make_no_other_search(search, tmp_path):
    path, bounds, whole = search
    few = ts.select(path, bounds, EPS, max_lambdas=2, checkpoint=tmp_path / "a")
    assert few.stopped_by == "max_lambdas"
    assert bits(few) == bits(ts.select(path, bounds, EPS, max_lambdas=2))
    soon = ts.select(path, bounds, EPS, max_seconds=1e-9, checkpoint=tmp_path / "a")
    assert soon.n_evaluated == few.n_evaluated  # what is known takes no time
    rough = ts.select(path, bounds, 0.3, checkpoint=tmp_path / "a")
    assert bits(rough) == bits(ts.select(path, bounds, 0.3))
    assert bits(ts.select(path, bounds, EPS, checkpoint=tmp_path / "a")) == whole
    assert bits(ts.select(path, bounds, EPS, max_lambdas=2, checkpoint=tmp_path / "a")) == bits(few)


def test_interrupts_keep_what_was_done(search, tmp_path, monkeypatch):
    path, bounds, whole = search
    real, calls = Side.step, []

    def interrupted(self, *given):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return real(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(Side, "step", interrupted)
        with pytest.raises(ts.Interrupted) as caught:
            ts.select(path, bounds, EPS, checkpoint=tmp_path / "a")
    assert caught.value.result.stopped_by == "interrupt"
    assert len(list((tmp_path / "a").glob("0*.tsc"))) == 4
    assert bits(ts.select(path, bounds, EPS, checkpoint=tmp_path / "a")) == whole


def test_comparisons_too(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), np.arange(50) % 2
    X[:, 0] += y
    rows = ts.knn_triplets(X, y, 4).indices()
    path = ts.solve_path(ts.Problem(X, ts.given_triplets(rows[::2]), n_jobs=1), ratio=0.5, n_lambdas=8)
    bounds = ts.comparison_bounds(path, X, rows[1::2])
    whole = ts.select(path, bounds, 0.01)
    assert killed(lambda: ts.select(path, bounds, 0.01, checkpoint=tmp_path / "a"), 4, "after")
    assert bits(ts.select(path, bounds, 0.01, checkpoint=tmp_path / "a")) == bits(whole)


def test_another_search_and_damaged_files_are_refused(search, tmp_path):
    path, bounds, _ = search
    folder = tmp_path / "a"
    ts.select(path, bounds, EPS, max_lambdas=2, checkpoint=folder)
    for other in (made(k=1), made(tol=1e-4)):
        with pytest.raises(ts.InputError, match=r"checkpoint=.*belongs to another run"):
            ts.select(*other, EPS, checkpoint=folder)
    file = folder / "000001.tsc"
    whole = file.read_bytes()
    for content in (whole[:-9], whole[: len(whole) // 2] + b"x" + whole[len(whole) // 2 + 1 :], b""):
        file.write_bytes(content)
        with pytest.raises(ts.InputError, match=r"checkpoint=.*000001\.tsc"):
            ts.select(path, bounds, EPS, checkpoint=folder)
        assert file.read_bytes() == content
    file.unlink()
    with pytest.raises(ts.InputError, match=r"no '000001\.tsc'"):
        ts.select(path, bounds, EPS, checkpoint=folder)
    with pytest.raises(ts.InputError, match="checkpoint=3"):
        ts.select(path, bounds, EPS, checkpoint=3)


@pytest.fixture(scope="module")
def kept(counted_search, tmp_path_factory):
    path, bounds, *_ = counted_search
    folder = tmp_path_factory.mktemp("kept") / "a"
    ts.select(path, bounds, EPS, max_lambdas=9, checkpoint=folder)
    found = folders.look(folder)
    return found.identity, found.entries


@pytest.mark.parametrize(
    "harm",
    [
        lambda meta, arrays: meta.pop("kind"),
        lambda meta, arrays: meta.update(kind="shrink"),
        lambda meta, arrays: meta.update(side=1),
        lambda meta, arrays: meta.update(places=[-1]),
        lambda meta, arrays: meta.update(places=[99]),
        lambda meta, arrays: meta.update(lefts=[]),
        lambda meta, arrays: meta.update(made=None),
        lambda meta, arrays: meta.update(points=[[0, 1.0]]),
        lambda meta, arrays: arrays.update(M=arrays["M"][:2]),
        lambda meta, arrays: arrays.update(M=np.nan * arrays["M"]),
        lambda meta, arrays: arrays.update({"outcomes 0": arrays["outcomes 0"][1:]}),
        lambda meta, arrays: arrays.pop("left 0 1"),
    ],
)
def test_entries_that_are_sealed_but_no_steps_are_refused(search, kept, tmp_path, harm):
    path, bounds, _ = search
    identity, entries = deepcopy(kept)
    harmed = next(number for number, (meta, _) in enumerate(entries) if meta["kind"] == "cut")
    harm(*entries[harmed])
    with folders.Checkpoint(tmp_path / "b", identity) as run:
        for meta, arrays in entries[: harmed + 2]:
            run.append(meta, arrays)
    said = rf"checkpoint=.*'00000{harmed}\.tsc' is (no step of a|a step of another) search"
    with pytest.raises(ts.InputError, match=said):
        ts.select(path, bounds, EPS, checkpoint=tmp_path / "b")
