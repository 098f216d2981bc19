"""Crash states, faults and two writers: a part of what tests/crashes.py does at length."""

from __future__ import annotations

import os

import numpy as np
import pytest

import triscreen as ts
from attack_checkpoints import CvRun, PathRun, targets
from crashes import Recorder, ShardedRun, crash, crash_command, fail, states, two_writers
from problems import make_case
from triscreen._utils import archive, checkpoint
from triscreen.path.api import AUTO

pytestmark = pytest.mark.filterwarnings("ignore::triscreen.ConvergenceWarning")


@pytest.fixture(autouse=True)
def nobody_waits_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda number: None)


@pytest.fixture(scope="module")
def short():
    return PathRun(make_case(7, n=20, m=90).problem, n_lambdas=3, ratio=0.8, tol=1e-5, screening=AUTO)


def test_every_crash_of_a_path_leaves_what_was_synced(tmp_path):
    run = targets()["given"]
    outcomes = crash(run, tmp_path / "crash", run(tmp_path / "whole"), every=20)
    assert outcomes["states"] > 100
    assert outcomes["read"] > 90
    assert outcomes["same bits"] > 5


def test_crashes_of_a_cross_validation(tmp_path):
    X, y = np.random.default_rng(3).normal(size=(24, 3)) + np.arange(24)[:, None] % 3, np.arange(24) % 3
    run = CvRun(X, y, cv=2, ratios=3, n_neighbors=2, n_jobs=1, screening=AUTO, candidates=(None,), max_iter=50)
    outcomes = crash(run, tmp_path / "crash", run(tmp_path / "whole"), every=25, opened=15)
    assert outcomes["read"] > 100
    assert outcomes["same bits"] > 1


def test_crashes_of_the_command_line(tmp_path):
    outcomes = crash_command(tmp_path / "command", every=40)
    assert outcomes["states"] > 100
    assert outcomes["refused"] > 10  # what is left while the checkpoint of a finished run is removed


def test_crashes_of_a_run_in_shards(tmp_path):
    """Points, tables and plan of the shards are files, too: whole, or written again."""
    run = ShardedRun()
    outcomes = crash(run, tmp_path / "crash", run(tmp_path / "whole"), every=20)
    assert outcomes["states"] > 60
    assert outcomes["read"] > 20
    assert outcomes["same bits"] > 3
    assert not outcomes["refused"]


def test_no_room_and_errors_of_the_device(tmp_path, short):
    outcomes = fail(short, tmp_path / "fault", short(tmp_path / "whole"), step=5)
    assert outcomes["failed"] > 10
    assert outcomes["refused"] > 0
    assert outcomes["same bits"] > 20


@pytest.mark.parametrize("locks", [True, False])
def test_two_writers(tmp_path, short, locks):
    outcomes = two_writers(short, tmp_path / "two", short(tmp_path / "whole"), step=7, locks=locks)
    assert outcomes["refused"] > 5
    assert outcomes["then same bits"] > 5


def _no_sync_of_files(monkeypatch):
    real = Recorder.fsync  # as if nobody had called it
    folders_only = lambda self, number: os.path.isdir(f"/proc/self/fd/{number}") and real(self, number)  # noqa: E731
    monkeypatch.setattr(Recorder, "fsync", folders_only)


def _no_sync_of_folders(monkeypatch):
    monkeypatch.setattr(archive, "sync_folder", lambda folder: None)
    monkeypatch.setattr(checkpoint, "sync_folder", lambda folder: None)


def _no_sync_of_new_folders(monkeypatch):
    monkeypatch.setattr(checkpoint, "sync_folder", lambda folder: None)


def _in_place(monkeypatch):
    monkeypatch.setattr(checkpoint, "write", lambda file, *content: _write_in_place(file, content))


def _write_in_place(file, content):
    archive.write(file.with_name(".triscreen-0.tmp"), *content)
    with getattr(archive, "open", open)(file, "xb") as stream:
        stream.write(file.with_name(".triscreen-0.tmp").read_bytes())
        stream.flush()
        os.fsync(stream.fileno())
    archive.sync_folder(file.parent)


def _entry_first(monkeypatch):
    real = checkpoint.Checkpoint._write

    def write(self, number, file, meta, arrays, state):
        name = checkpoint.state_name(number)
        seal = real(self, number, file, meta, arrays, state)
        os.replace(self.folder / name, self.folder / ".triscreen-1.tmp")
        archive.sync_folder(self.folder)
        os.replace(self.folder / ".triscreen-1.tmp", self.folder / name)
        return seal

    monkeypatch.setattr(checkpoint.Checkpoint, "_write", write)


def _state_goes_early(monkeypatch):
    real = checkpoint.Checkpoint._write

    def write(self, number, *more):
        self._drop_states(keep=number)
        return real(self, number, *more)

    monkeypatch.setattr(checkpoint.Checkpoint, "_write", write)


BROKEN = [_no_sync_of_files, _no_sync_of_folders, _in_place, _entry_first, _state_goes_early]


@pytest.mark.parametrize("breaks", BROKEN, ids=lambda breaks: breaks.__name__)
def test_a_missing_step_would_show(tmp_path, short, monkeypatch, breaks):
    """Files that are not synced, not renamed, or in the wrong order: some crash state is found that loses something."""
    whole = short(tmp_path / "whole")
    breaks(monkeypatch)
    with pytest.raises((AssertionError, ts.InputError)):
        crash(short, tmp_path / "crash", whole, every=10**6)


def test_a_new_folder_is_on_the_disk_before_its_first_entry(tmp_path, short, monkeypatch):
    def surely(folder):
        recorder = Recorder(folder)
        os.mkdir(folder)
        with recorder.recording():
            short(folder / "a" / "b")
        return max((len([name for name in sure if name.endswith(".tsc")]) for _, sure in states(recorder)), default=0)

    assert surely(tmp_path / "one") >= 4
    _no_sync_of_new_folders(monkeypatch)
    assert surely(tmp_path / "two") == 0


def test_states_of_a_small_example(tmp_path):
    """By hand: a file that is replaced, synced before but its folder not yet."""
    (tmp_path / "a").mkdir()
    recorder = Recorder(tmp_path / "a")
    with recorder.recording():
        archive.write(tmp_path / "a" / "x.tsc", "test", {}, {"v": np.arange(3)})
    kinds = [op[0] for op in recorder.ops]
    assert kinds == ["create", "sync", "replace", "sync folder"]
    found = list(states(recorder))
    data = (tmp_path / "a" / "x.tsc").read_bytes()
    final = [state for state, _ in found if "x.tsc" in state]
    assert all(state == {"x.tsc": data} for state in final)
    assert {len(next(iter(state.values()), b"")) for state, _ in found} == {0, len(data) // 2, len(data)}
    assert [sure for _, sure in found if sure] == []  # the last operation gives no new state: it only makes one sure
