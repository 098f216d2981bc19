"""A folder of entries is one run's, whatever happens to it: killed, damaged, mixed with others, removed."""

from __future__ import annotations

import errno
import math
import os
import subprocess
import sys

import numpy as np
import pytest

from test_files import ARRAYS, contents, refusal, same_array
from triscreen import checkpoints
from triscreen.checkpoints import Checkpoint

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
from triscreen.checkpoints import Checkpoint

folder, random = Path(sys.argv[1]), random.Random(0)
count = halves = refused = 0
for _ in range(25):
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
    run = subprocess.run([sys.executable, "-c", KILLED, tmp_path], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert run.stdout.endswith("refused 25\n"), run.stdout


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


def test_folders_of_a_cross_validation_go_with_their_last_file(tmp_path):
    (tmp_path / "cv" / "round-1-all").mkdir(parents=True)
    with checkpoints.recording() as written:
        for part in ("fold-0", "all"):
            Checkpoint(tmp_path / "cv" / f"round-1-{part}", IDENTITY).close()
    assert written.remove()
    assert contents(tmp_path) == {}


def test_what_was_refused_is_nobodys(tmp_path):
    Checkpoint(tmp_path / "a", IDENTITY).close()
    before = contents(tmp_path / "a")
    with checkpoints.recording() as written:
        refusal(Checkpoint, tmp_path / "a", IDENTITY | {"lam": 1})
    written.remove()
    assert contents(tmp_path / "a") == before
