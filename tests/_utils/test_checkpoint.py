"""A folder of entries is one run's, whatever happens to it: killed, damaged, mixed with others, removed."""

from __future__ import annotations

import errno
import math
import os
import pathlib
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from archives import ARRAYS, contents, refusal, same_array
from nightly import cases
from triscreen._utils import archive as files
from triscreen._utils import checkpoint as checkpoints
from triscreen._utils.checkpoint import Checkpoint

IDENTITY = {"data": "c0ffee", "lam": 0.1, "tol": math.nan, "k": 5}


def test_a_run_goes_on_where_it_was(tmp_path):
    folder = tmp_path / "deep" / "er"
    with Checkpoint(folder, IDENTITY) as run:
        assert run.entries() == []
        run.append({"step": 0}, ARRAYS)
        run.append({"step": 1}, {})
    with Checkpoint(str(folder), dict(reversed(IDENTITY.items())) | {"k": np.int64(5)}) as run:
        assert len(run) == 2
        run.append({"step": 2}, {})
        assert [meta["step"] for meta, _ in run.entries()] == [0, 1, 2]
        assert same_array(run.entries()[0][1]["M"], ARRAYS["M"])
    names = {name for name in contents(folder) if not name.startswith(".")}
    assert names == {"checkpoint.tsc", "000000.tsc", "000001.tsc", "000002.tsc"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lam": 0.2}, "(lam was 0.1 and is now 0.2)"),
        ({"lam": 0.2, "k": "five"}, "(lam was 0.1 and is now 0.2; k was 5 and is now 'five')"),
        ({"lam": math.inf, "k": 6, "data": "x", "tol": 0}, "; 2 more differ)"),
        ({"new": 1}, "(new was absent and is now 1)"),
        ({"tol": 1.0}, "(tol was nan and is now 1.0)"),
    ],
)
def test_another_run_is_refused(tmp_path, change, words):
    Checkpoint(tmp_path, IDENTITY).close()
    before = contents(tmp_path)
    text = refusal(Checkpoint, tmp_path, IDENTITY | change)
    assert text.startswith(f"checkpoint='{tmp_path}' belongs to another run (")
    assert text.endswith(words + ": use another folder")
    assert contents(tmp_path) == before
    Checkpoint(tmp_path, IDENTITY).close()


def test_an_entry_of_the_identity_that_is_gone_is_named(tmp_path):
    Checkpoint(tmp_path, IDENTITY).close()
    fewer = {key: IDENTITY[key] for key in ("data", "lam", "tol")}
    assert "(k was 5 and is now absent)" in refusal(Checkpoint, tmp_path, fewer)


def test_folders_of_others_are_refused(tmp_path):
    note = tmp_path / "note.txt"
    note.write_text("mine")
    assert "holds 'note.txt' but no checkpoint: the folder must be new, empty or" in refusal(Checkpoint, tmp_path, {})
    assert contents(tmp_path) == {"note.txt": b"mine"}
    for folder in (note, note / "sub"):
        assert "is a file, or lies in one: it must be a folder" in refusal(Checkpoint, folder, IDENTITY)
    assert "checkpoint=None: checkpoint must be a path" in refusal(Checkpoint, None, IDENTITY)
    assert "identity is a str: identity must be a dict" in refusal(Checkpoint, tmp_path / "new", "lam")
    assert "identity['a'] is" in refusal(Checkpoint, tmp_path / "new", {"a": {1}})
    assert not (tmp_path / "new").exists()


def test_a_damaged_checkpoint_is_refused_and_left(tmp_path):
    with Checkpoint(tmp_path, IDENTITY) as run:
        run.append({}, {})
    (tmp_path / ".triscreen-0123.tmp").write_bytes(b"half")
    first = tmp_path / "checkpoint.tsc"
    first.write_bytes(first.read_bytes()[:-30])
    before = contents(tmp_path)
    assert "checkpoint.tsc' is damaged or cut short" in refusal(Checkpoint, tmp_path, IDENTITY)
    assert contents(tmp_path) == before
    first.unlink()
    assert "holds '000000.tsc' but no checkpoint" in refusal(Checkpoint, tmp_path, IDENTITY)


def test_gaps_and_damaged_entries_are_refused_and_left(tmp_path):
    with Checkpoint(tmp_path, IDENTITY) as run:
        for step in range(3):
            run.append({"step": step}, ARRAYS)
        data = bytearray((tmp_path / "000001.tsc").read_bytes())
        data[data.index(b"NUMPY") + 200] ^= 1
        (tmp_path / "000001.tsc").write_bytes(data)
        before = contents(tmp_path)
        text = refusal(run.entries)
        assert "000001.tsc' is damaged or cut short" in text
        assert text.endswith("(the folder is left as it is)")
        assert contents(tmp_path) == before
        (tmp_path / "000001.tsc").unlink()
        before = contents(tmp_path)
        text = refusal(run.entries)
        assert "holds '000002.tsc' but no '000001.tsc'" in text
        assert text.count("(the folder is left as it is)") == 1
    assert refusal(Checkpoint, tmp_path, IDENTITY) == text
    assert contents(tmp_path) == before


def test_leftovers_of_a_killed_run_are_no_content_and_go(tmp_path):
    """Killed before checkpoint.tsc was there, and killed within an entry."""
    for _ in range(2):
        (tmp_path / ".triscreen-0123.tmp").write_bytes(b"half")
        with Checkpoint(tmp_path, IDENTITY) as run:
            assert run.entries() == []
        assert not list(tmp_path.glob("*.tmp"))


def test_a_failed_append_can_be_repeated(tmp_path, monkeypatch):
    with Checkpoint(tmp_path, IDENTITY) as run:
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
            with pytest.raises(OSError, match="full"):
                run.append({"step": 0}, {})
        assert run.entries() == []
        run.append({"step": 0}, {})
        assert run.entries() == [({"step": 0}, {})]


def test_a_closed_checkpoint_takes_no_entries(tmp_path):
    run = Checkpoint(tmp_path, IDENTITY)
    run.close()
    run.close()
    assert "was closed: open the checkpoint again" in refusal(run.append, {}, {})


@pytest.mark.parametrize("flock", [None, OSError(errno.ENOLCK, "no locks")], ids=["no fcntl", "no locks"])
def test_without_locks_an_entry_of_another_run_is_not_replaced(tmp_path, monkeypatch, flock):
    pytest.importorskip("fcntl")
    if flock is None:
        monkeypatch.setattr(checkpoints, "fcntl", None)
    else:
        monkeypatch.setattr(checkpoints.fcntl, "flock", lambda *_: (_ for _ in ()).throw(flock))
    with Checkpoint(tmp_path, IDENTITY) as a, Checkpoint(tmp_path, IDENTITY) as b:
        a.append({"by": "a"}, {})
        assert "is in use by another run, which wrote '000000.tsc'" in refusal(b.append, {"by": "b"}, {})
        assert a.entries() == [({"by": "a"}, {})]


def test_a_run_that_is_over_holds_no_lock(tmp_path):
    pytest.importorskip("fcntl")
    run = Checkpoint(tmp_path, IDENTITY)
    assert "is in use by another run" in refusal(Checkpoint, tmp_path, IDENTITY)
    run.close()
    assert "another run (lam" in refusal(Checkpoint, tmp_path, IDENTITY | {"lam": 1})
    run = Checkpoint(tmp_path, IDENTITY)  # a refusal held none
    del run  # nor does a run that nobody closed
    Checkpoint(tmp_path, IDENTITY).close()


KILLED = """
import os, random, signal, sys, time
from pathlib import Path
import numpy as np
from triscreen import InputError
from triscreen._utils.checkpoint import Checkpoint

folder, random = Path(sys.argv[1]), random.Random(0)
count = halves = refused = 0
for _ in range(int(sys.argv[2])):
    out, into = os.pipe()
    child = os.fork()
    if not child:
        run = Checkpoint(folder, {"lam": 0.1})
        n = len(run.entries())
        while True:
            run.append({"n": n}, {"A": np.full(random.randrange(200_000), n)})
            n += 1
            os.write(into, b".")
    os.read(out, 1)  # at least one entry a life
    time.sleep(random.random() * 0.02)
    try:
        Checkpoint(folder, {"lam": 0.1})
    except InputError as err:
        refused += "is in use by another run" in str(err)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(out), os.close(into)
    halves += len(list(folder.glob("*.tmp")))
    with Checkpoint(folder, {"lam": 0.1}) as run:
        entries = run.entries()
    assert len(entries) > count, "an entry was lost"
    count = len(entries)
    for n, (meta, arrays) in enumerate(entries):
        assert meta == {"n": n} and (arrays["A"] == n).all()
    if count > 30:
        for file in folder.iterdir():
            file.unlink()
        count = 0
print("halves", halves, "refused", refused)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_a_run_killed_at_any_moment_can_be_read_and_goes_on(tmp_path):
    lives = cases(10, 25)
    command = [sys.executable, "-c", KILLED, tmp_path, str(lives)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert run.stdout.endswith(f"refused {lives}\n"), run.stdout


def test_a_run_removes_its_own_files_only(tmp_path):
    """A user's file in the folder stays, and so does the folder then; an earlier life of the run is its own."""
    folder = tmp_path / "deep" / "run"
    with Checkpoint(folder, IDENTITY) as run:
        run.append({"step": 0}, ARRAYS)
    (folder / "notes.txt").write_text("mine")
    with checkpoints.recording() as written, Checkpoint(folder, IDENTITY) as run:
        run.entries()
        run.append({"step": 1}, {})
    assert not written.remove()
    assert contents(folder) == {"notes.txt": b"mine"}
    assert written.folders == [folder]  # this life did not make the one above
    (folder / "notes.txt").unlink()
    assert written.remove()
    assert contents(tmp_path / "deep") == {}


def test_folders_of_a_cross_validation_go_with_their_last_file_but_not_one_that_was_there(tmp_path):
    for there in (False, True):
        if there:
            (tmp_path / "cv" / "round-1-all").mkdir(parents=True)
        with checkpoints.recording() as written:
            for part in ("fold-0", "all"):
                Checkpoint(tmp_path / "cv" / f"round-1-{part}", IDENTITY).close()
        assert written.remove()
        assert list(tmp_path.iterdir()) == ([tmp_path / "cv"] if there else [])


def test_who_is_refused_leaves_the_lock_of_another_run(tmp_path, monkeypatch):
    """Both make the folder at once; the one that comes second must not take away the other's lock."""
    folder, first = tmp_path / "a", []
    make = Checkpoint._make_folder

    def meanwhile(self):
        if not first:
            first.append(None)
            first[0] = Checkpoint(folder, IDENTITY)
        make(self)

    monkeypatch.setattr(Checkpoint, "_make_folder", meanwhile)
    assert "in use by another run" in refusal(Checkpoint, folder, IDENTITY)
    assert (folder / ".triscreen-lock").exists()
    assert "in use by another run" in refusal(Checkpoint, folder, IDENTITY)
    first[0].close()


def test_what_was_refused_is_nobodys(tmp_path):
    Checkpoint(tmp_path / "a", IDENTITY).close()
    before = contents(tmp_path / "a")
    with checkpoints.recording() as written:
        refusal(Checkpoint, tmp_path / "a", IDENTITY | {"lam": 1})
    written.remove()
    assert contents(tmp_path / "a") == before


STATE = ({"eta": math.inf}, {"A": np.arange(6.0).reshape(2, 3)})


def make_run(folder, identity=IDENTITY, entries=4, states=True):
    """A checkpoint with some entries, each with a state or none."""
    with Checkpoint(folder, identity) as run:
        for step in range(len(run), entries):
            run.append({"step": step, "k": identity["k"]}, ARRAYS, STATE if states else None)
    return folder


def test_only_the_last_entry_has_its_state(tmp_path):
    folder = make_run(tmp_path / "a")
    names = {name for name in contents(folder) if not name.startswith(".")}
    assert names == {"checkpoint.tsc", *(f"{n:06d}.tsc" for n in range(4)), "state-000003.tsc"}
    with Checkpoint(folder, IDENTITY) as run:
        meta, arrays = run.state()
        assert meta == STATE[0]
        assert same_array(arrays["A"], STATE[1]["A"])
        run.append({"step": 4}, {})
        assert run.state() is None
    assert not list(folder.glob("state-*"))


def test_entries_are_written_once(tmp_path):
    folder = make_run(tmp_path / "a", entries=2)
    before = {name: (folder / name).stat() for name in ("checkpoint.tsc", "000000.tsc", "000001.tsc")}
    make_run(folder, entries=5)
    for name, stat in before.items():
        assert (folder / name).stat().st_ino == stat.st_ino
        assert (folder / name).stat().st_mtime_ns == stat.st_mtime_ns


def test_lists_in_lists_do_not_exhaust_the_stack(tmp_path):
    folder = make_run(tmp_path / "a")
    for depth in (200, 300, 400, 600, 900, 5000):
        with zipfile.ZipFile(folder / "000003.tsc") as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        members["header.json"] = re.sub(rb'"step": [^,}]*', b'"step": ' + b"[" * depth + b"]" * depth,
                                        members["header.json"])  # fmt: skip
        with zipfile.ZipFile(folder / "000003.tsc", "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        assert refusal(Checkpoint, folder, IDENTITY).startswith(f"checkpoint='{folder}'")


def edited(file, change):
    """Write a file anew after a change of (meta, arrays): its checksums are valid."""
    kind, meta, arrays = files.read(file)
    change(meta, arrays)
    files.write(file, kind, meta, arrays)


EDITS = {
    "a number": lambda meta, arrays: meta["meta"].update(step=7),
    "more": lambda meta, arrays: meta["meta"].update(more=None),
    "an array": lambda meta, arrays: arrays["M"].__setitem__((0, 0), 1e-300),
    "a type": lambda meta, arrays: arrays.update(M=arrays["M"].astype("f4")),
    "no array": lambda meta, arrays: arrays.pop("M"),
    "another name": lambda meta, arrays: arrays.update(N=arrays.pop("M")),
    "no seal": lambda meta, arrays: meta.pop("seal"),
    "an empty seal": lambda meta, arrays: meta.update(seal=None),
    "another run": lambda meta, arrays: meta.update(run="0" * 32),
    "another number": lambda meta, arrays: meta.update(number=meta["number"] + 1),
    "a number as text": lambda meta, arrays: meta.update(number=str(meta["number"])),
    "another before": lambda meta, arrays: meta.update(before=None if meta["before"] else "0" * 32),
    "another state": lambda meta, arrays: meta.update(state=None),
    "no entry": lambda meta, arrays: meta.clear(),
    "a list": lambda meta, arrays: meta.update(meta=[1]),
    "a key": lambda meta, arrays: meta.update(x=1),
}


@pytest.mark.parametrize("name", EDITS)
@pytest.mark.parametrize("number", [0, 2, 3])
def test_an_entry_that_was_edited_is_refused_and_left(tmp_path, name, number):
    folder = make_run(tmp_path / "a")
    edited(folder / f"{number:06d}.tsc", EDITS[name])
    before = contents(folder)
    text = refusal(Checkpoint, folder, IDENTITY)
    assert text.startswith(f"checkpoint='{folder}': '{number:06d}.tsc' ")
    assert text.endswith("(the folder is left as it is)")
    assert contents(folder) == before


@pytest.mark.parametrize(
    "change",
    [
        lambda meta, arrays: meta["meta"].update(eta=1.0),
        lambda meta, arrays: arrays["A"].__setitem__(0, 1.0),
        lambda meta, arrays: meta.update(number=2),
        lambda meta, arrays: meta.update(run=None),
        lambda meta, arrays: meta.update(meta=None),
        lambda meta, arrays: meta.clear(),
    ],
)
def test_a_state_that_was_edited_is_refused_and_left(tmp_path, change):
    folder = make_run(tmp_path / "a")
    edited(folder / "state-000003.tsc", change)
    before = contents(folder)
    assert refusal(Checkpoint, folder, IDENTITY).startswith(f"checkpoint='{folder}': 'state-000003.tsc' ")
    assert contents(folder) == before


def test_files_of_other_runs_and_places_are_refused_and_left(tmp_path):
    """Each file is replaced by each other file of this run and by each of another one; or these are added."""
    ours = contents(make_run(tmp_path / "a"))
    theirs = contents(make_run(tmp_path / "b", IDENTITY | {"k": 6}))
    names = [name for name in ours if not name.startswith(".")]
    folder, tried = tmp_path / "c", 0
    folder.mkdir()
    for place in [*names, "000004.tsc", "state-000004.tsc", "state-000002.tsc", "state-000005.tsc"]:
        for source in (ours, theirs):
            for name in names:
                if source is ours and name == place:
                    continue
                for file in folder.iterdir():
                    file.unlink()
                for old, data in (ours | {place: source[name]}).items():
                    (folder / old).write_bytes(data)
                before = contents(folder)
                assert refusal(Checkpoint, folder, IDENTITY).startswith(f"checkpoint='{folder}'")
                assert contents(folder) == before
                tried += 1
    assert tried == 10 * 6 * 2 - 6


def test_missing_files_are_refused_and_left(tmp_path):
    for name in ("checkpoint.tsc", "000000.tsc", "000002.tsc", "000003.tsc", "state-000003.tsc"):
        folder = make_run(tmp_path / name)
        (folder / name).unlink()
        before = contents(folder)
        assert refusal(Checkpoint, folder, IDENTITY).startswith(f"checkpoint='{folder}'")
        assert contents(folder) == before


@pytest.mark.parametrize("moment", ["state", "entry", "removal"])
def test_a_kill_between_any_two_files_leaves_a_run_that_goes_on(tmp_path, monkeypatch, moment):
    """Before the entry is there, and before the state before is gone; the next entry is written as if nothing was."""
    folder = make_run(tmp_path / "a", entries=3)
    whole = contents(make_run(tmp_path / "b", entries=5))

    class Killed(BaseException):
        pass

    def die(*_, **__):
        raise Killed

    real = checkpoints.write
    with Checkpoint(folder, IDENTITY) as run, monkeypatch.context() as patch:
        if moment == "removal":
            patch.setattr(run, "_drop_states", die)
        else:
            patch.setattr(
                checkpoints, "write", lambda file, kind, *rest: die() if kind == moment else real(file, kind, *rest)
            )
        with pytest.raises(Killed):
            run.append({"step": 3, "k": 5}, ARRAYS, STATE)
    assert len(checkpoints.look(folder).entries) == (4 if moment == "removal" else 3)
    assert checkpoints.look(folder).state[0] == STATE[0]
    make_run(folder, entries=5)
    assert contents(folder) == whole


def test_odd_paths_are_refused_in_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    before = sorted(os.listdir(tmp_path))
    odd = ["file", "fifo", "loop", "dangling", "file/in", "fifo/in/it", "loop/in", "x" * 300, f"new/{'y' * 300}"]
    for path in [
        *(tmp_path / name for name in odd),
        "/dev/null",
        "/dev/null/in",
        "/proc/x",
        "",
        3,
        "a\0b",
        b"\xff" * 300,
    ]:
        if path == "":
            continue
        assert refusal(Checkpoint, path, IDENTITY).startswith("checkpoint=")
        assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("call", ["mkdir", "open", "listdir", "scandir", "replace", "fsync"])
def test_a_folder_that_cannot_be_used_is_refused_in_one_sentence(tmp_path, monkeypatch, code, call):
    """As root modes do not bind, so the system's answers are put into its mouth."""

    def fail(*_, **__):
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        if hasattr(pathlib, "_NormalAccessor"):  # Python 3.10 has its own
            patch.setattr(pathlib._NormalAccessor, call, fail, raising=False)
        text = refusal(Checkpoint, tmp_path / "deep" / "run", IDENTITY)
    assert text.startswith("checkpoint=")
    assert os.strerror(code) in text
    assert contents(tmp_path) == {}


def test_an_identity_tells_nan_from_text_and_keeps_its_hash(tmp_path):
    assert checkpoints.hash_of(IDENTITY) == checkpoints.hash_of(dict(reversed(IDENTITY.items())))
    others = [
        {"tol": "nan"},
        {"tol": None},
        {"k": 5.0},
        {"k": True},
        {"k": "5"},
        {"lam": np.nextafter(0.1, 1)},
        {"": 0},
    ]
    assert len({checkpoints.hash_of(IDENTITY | other) for other in ({}, *others)}) == 1 + len(others)
    a, b = np.arange(4.0), np.arange(4)
    arrays = [{"a": a}, {"b": a}, {"a": b}, {"a": a[::-1]}, {"a": a.reshape(2, 2)}, {"a": a, "b": a}, {}]
    assert len({checkpoints.hash_of({}, each) for each in arrays}) == len(arrays)
