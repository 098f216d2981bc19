"""Every state that a crash can leave of the files that a run writes, and faults of the system at every call.

A `Recorder` sits under the file module and records what a run does to a folder: files made, written, synced, renamed,
removed, folders made. From that `states` builds, for every moment, every folder that the disk may hold after a crash
then: all that was synced, and any choice of what was not (of many, choices that leave out or take in one), with
unsynced files empty, cut in half or whole. Each must be readable, with every entry that was synced, and going on from
it must give the same bits; where a finished run was being removed it may be refused, in one sentence, and is left as it
is.

    python tests/crashes.py      all of them, resumed; faults at every call; two writers (`make nightly`)
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import itertools
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from unittest import mock

import numpy as np

import triscreen as ts
from attacks import contents, is_a_sentence, judge, require
from triscreen._utils import archive, checkpoint

_MANY = 5  # operations that were not synced: of so many every choice


class _Stream:
    """A file that is open for writing, with its writes told."""

    def __init__(self, recorder, stream, path):
        self._recorder, self._stream, self._path, self._count = recorder, stream, path, 0

    def write(self, data):
        self._count += 1
        if self._count & (self._count - 1) == 0:  # the first, the second, the fourth and so on: there are many alike
            self._recorder.tell("write", self._path)
        return self._stream.write(data)

    def flush(self):
        self._recorder.tell("flush", self._path)
        return self._stream.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stream.close()

    def __getattr__(self, name):
        return getattr(self._stream, name)


class Recorder:
    """Record what is done below a folder; ``before(number, kind)`` is called first, and may fail."""

    def __init__(self, root, before=None):
        self.root, self.before = os.path.realpath(root), before
        self.calls, self.ops, self.inodes, self.data = 0, [], {}, {}

    def name(self, path):
        """A path below the folder, or None."""
        path = os.path.realpath(os.fsdecode(path))
        return os.path.relpath(path, self.root) if path.startswith(self.root + os.sep) or path == self.root else None

    def tell(self, kind, path):
        """Count a call."""
        if self.name(path) is not None:
            self.calls += 1
            if self.before is not None:
                self.before(self.calls, kind)

    def _create(self, path):
        name = self.name(path)
        self.inodes[name] = len(self.data)
        self.data[len(self.data)] = b""
        self.ops.append(("create", name, self.inodes[name]))

    def open_file(self, path, mode="r", *more, **named):
        """In place of ``open`` in the archive module."""
        if mode != "xb":
            return builtins.open(path, mode, *more, **named)
        self.tell("open", path)
        stream = builtins.open(path, mode, *more, **named)  # noqa: SIM115
        self._create(path)
        return _Stream(self, stream, path)

    def open_number(self, path, flags, *more, **named):
        """In place of ``os.open``."""
        new = flags & os.O_CREAT and not os.path.exists(path)
        self.tell("open", path)
        number = self.real["open"](path, flags, *more, **named)
        if new and self.name(path) is not None:
            self._create(path)
        return number

    def fsync(self, number):
        """In place of ``os.fsync``."""
        path = os.readlink(f"/proc/self/fd/{number}")
        self.tell("fsync", path)
        self.real["fsync"](number)
        name = self.name(path)
        if name is None:
            return
        if os.path.isdir(path):
            self.ops.append(("sync folder", name))
        elif name in self.inodes:  # not removed by another run
            self.data[self.inodes[name]] = Path(path).read_bytes()
            self.ops.append(("sync", name, self.inodes[name]))

    def replace(self, source, target):
        """In place of ``os.replace``."""
        self.tell("replace", target)
        self.real["replace"](source, target)
        if self.name(target) is not None:
            number = self.inodes.pop(self.name(source))
            self.inodes[self.name(target)] = number
            self.ops.append(("replace", self.name(source), self.name(target), number))

    def _simple(self, kind):
        def call(path, *more, **named):
            self.tell(kind, path)
            name = self.name(path)
            self.real[kind](path, *more, **named)
            if name is not None:
                self.ops.append((kind, name, self.inodes.pop(name, None)))

        return call

    @contextlib.contextmanager
    def recording(self):
        """Within, all that is done is recorded."""
        names = ("open", "fsync", "replace", "unlink", "mkdir", "rmdir")
        self.real = {name: getattr(os, name) for name in names}
        ours = {"open": self.open_number, "fsync": self.fsync, "replace": self.replace}
        ours |= {name: self._simple(name) for name in names if name not in ours}
        paths = getattr(pathlib, "_normal_accessor", None)  # Python 3.10: there paths keep the functions of os
        ours_too = {name: function for name, function in ours.items() if name not in ("open", "fsync")}
        with (
            mock.patch.multiple(os, **ours),
            mock.patch.multiple(paths, **ours_too) if paths is not None else contextlib.nullcontext(),
            mock.patch.object(archive, "open", self.open_file, create=True),
        ):
            yield self


def _pending(ops):
    """Return the numbers of the operations on folders that no later one has synced."""
    left = {}
    for number, (kind, name, *_) in enumerate(ops):
        if kind == "sync folder":
            left = {n: folder for n, folder in left.items() if folder != name}
        elif kind != "sync":
            left[number] = os.path.dirname(name) or "."
    return list(left)


def _choices(pending):
    """Every subset of a few operations; of many, those that leave out some at the end, or one, or take in one."""
    if len(pending) <= _MANY:
        return itertools.chain.from_iterable(itertools.combinations(pending, r) for r in range(len(pending) + 1))
    cut = [pending[:n] for n in range(len(pending) + 1)]
    return [*cut, *([p for p in pending if p != q] for q in pending), *([q] for q in pending)]


def states(recorder, step=1):
    """Give (state, names that every disk has by then) of every crash: a state is {name: bytes, None for a folder}."""
    seen = set()
    for moment in range(0, len(recorder.ops) + 1, step):
        ops = recorder.ops[:moment]
        pending = _pending(ops)
        synced = {op[2] for op in ops if op[0] == "sync"}
        sure = _apply(ops, set(range(len(ops))) - set(pending))
        removed = {op[1] for op in ops if op[0] in ("unlink", "rmdir")}
        for chosen in _choices(pending):
            files = _apply(ops, (set(range(len(ops))) - set(pending)) | set(chosen))
            for part in (0.0, 0.5, 1.0):
                state = {name: _content(recorder.data, number, synced, part) for name, number in files.items()}
                key = frozenset((name, hash(data)) for name, data in state.items())
                if key not in seen:
                    seen.add(key)
                    yield state, set(sure) - removed


def _content(data, number, synced, part):
    if number is None:
        return None
    return data[number] if number in synced else data[number][: int(part * len(data[number]))]


def _apply(ops, chosen):
    """Return {name: inode, None for a folder} after the chosen operations, without what lies in no folder."""
    files = {}
    for number, (kind, name, *more) in enumerate(ops):
        if number not in chosen:
            continue
        if kind == "create":
            files[name] = more[0]
        elif kind == "mkdir":
            files[name] = None
        elif kind == "replace":
            if files.get(name) == more[1]:
                del files[name]
            files[more[0]] = more[1]
        elif kind in ("unlink", "rmdir"):
            files.pop(name, None)
    return {name: value for name, value in files.items() if _has_folder(name, files)}


def _has_folder(name, files):
    above = os.path.dirname(name)
    return not above or (above in files and files[above] is None and _has_folder(above, files))


def build(state, folder):
    """Make a folder that holds a state."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for name, data in sorted(state.items()):
        if data is None:
            os.makedirs(os.path.join(folder, name), exist_ok=True)
        else:
            with open(os.path.join(folder, name), "wb") as stream:
                stream.write(data)


def crash(run, place, whole, every=1, where="run", opened=1):
    """Open every state of a run, and go on from every so many-th; return what came of it.

    The run is called with ``place/where``; what `look` says is asked of every folder with a checkpoint. opened: only
    crashes at every so many-th moment.
    """
    outcomes, folder = Counter(), Path(place) / "recorded"
    may_refuse = getattr(run, "removes", False)
    folder.mkdir(parents=True)
    recorder = Recorder(folder)
    with recorder.recording():
        assert run(folder / where) == whole
    assert recorder.name(folder / where) == where
    chosen = Path(place) / "state"
    for number, (state, sure) in enumerate(states(recorder, opened)):
        build(state, chosen)
        before = contents(chosen)
        outcomes["states"] += 1
        for part in {os.path.dirname(name) for name in {*state, *sure} if name.endswith(".tsc")}:
            here = {name for name in sure if os.path.dirname(name) == part}
            outcomes[_looked(chosen / part, here, may_refuse)] += 1
        require(contents(chosen) == before, "looking has changed it")
        if number % every == 0:
            outcome = judge(run, chosen / where, whole)
            require(outcome == "same bits" or may_refuse, "refused")
            outcomes[outcome] += 1
    shutil.rmtree(place)
    return outcomes


def _looked(folder, sure, may_refuse):
    """Return whether a folder is read or refused; it must hold the entries that are there for sure."""
    try:
        found = checkpoint.look(folder)
    except ts.InputError as err:
        require(may_refuse, err)
        is_a_sentence(err)
        return "refused"
    told = [name for name in sure if re.fullmatch(r"[0-9]+\.tsc", os.path.basename(name))]
    require(len(found.entries) >= len(told), f"entries are lost that were on the disk: {sorted(told)}")
    return "read" if told else "read, nothing sure yet"


def fail(run, folder, whole, step=1, where=""):
    """No room, or an error of the device, at the n-th call, for every n: the run ends with that, and then goes on.

    The run is called with ``folder/where``: what it writes beside that counts as well.
    """
    outcomes, place = Counter(), Path(folder) / where
    for number in (errno.ENOSPC, errno.EIO):
        for moment in itertools.count(1, step):
            shutil.rmtree(folder, ignore_errors=True)
            place.parent.mkdir(parents=True, exist_ok=True)

            def before(count, kind, number=number, moment=moment):
                if count == moment:
                    raise OSError(number, os.strerror(number))

            recorder = Recorder(folder, before)
            try:
                with recorder.recording():
                    require(run(place) == whole, "believed")
                outcomes["went on"] += 1  # such as a folder that cannot be synced
            except OSError as err:
                require(err.errno == number, err)
                outcomes["failed"] += 1
            except ts.InputError as err:
                require(os.strerror(number) in str(err), err)
                outcomes["refused"] += 1
            left = [name for name in contents(folder) if name.endswith(".tmp")] if folder.exists() else []
            require(not left or number == errno.EIO, f"left behind: {left}")
            outcomes[judge(run, place, whole)] += 1
            if recorder.calls < moment:
                break
    shutil.rmtree(folder, ignore_errors=True)
    return outcomes


def two_writers(run, folder, whole, step=1, locks=True):
    """Let another run begin, and end, before the n-th call of the first, for every n; without locks too."""
    outcomes = Counter()
    for moment in itertools.count(1, step):
        shutil.rmtree(folder, ignore_errors=True)
        other = []

        def before(count, kind, moment=moment, other=other):
            if count == moment:
                other.append(_ended(run, folder, whole))

        recorder = Recorder(folder, before)
        no_locks = mock.patch.object(checkpoint, "fcntl", None)
        with contextlib.nullcontext() if locks else no_locks:
            with recorder.recording():
                first = _ended(run, folder, whole)
            for ended in (first, *other):
                outcomes[ended] += 1
            require("same bits" in (first, *other), "neither came to its end")
            outcomes[f"then {judge(run, folder, whole)}"] += 1
        if recorder.calls < moment:
            break
    shutil.rmtree(folder, ignore_errors=True)
    return outcomes


def _ended(run, folder, whole):
    try:
        require(run(folder) == whole, "believed")
        return "same bits"
    except ts.InputError as err:
        is_a_sentence(err)
        return "refused"


class CommandRun:
    """``triscreen path`` with its output in a folder, whose checkpoint lies beside it and is removed at the end."""

    removes = may_go_on = True

    def __init__(self, data):
        self.data = data

    def __call__(self, folder):
        """Run it, and return the bits of the result."""
        from attack_checkpoints import bits_of
        from commands import invoke

        folder.mkdir(exist_ok=True)
        words = ("--n-lambdas", "4", "--ratio", "0.5", "--tol", "1e-3", "--test-share", "0", "-q", "-k", "2")
        done = invoke("path", self.data, "-o", folder / "out.path", *words)
        if done.code == 2:
            raise ts.InputError(done.err.removesuffix("\n"))
        assert done.code == 0, done.err
        return bits_of(ts.load(folder / "out.path"))


def crash_command(place, every=1):
    """Crash the command line: its output is there as a whole or not at all, whatever is left of its checkpoint."""
    place.mkdir(parents=True)
    run = CommandRun(place / "points.csv")
    rows = [f"{3 * (i % 2) + 0.4 * (i % 5)},{(i * i) % 7},{'ab'[i % 2]}" for i in range(12)]
    run.data.write_text("\n".join(["x,y,class", *rows, ""]))
    whole = run(place / "whole")
    return crash(run, place / "crash", whole, every, where=".")


class ShardedRun:
    """A path over a problem in shards, in this process: its files lie beside its checkpoint."""

    may_go_on = True

    def __init__(self, kind="knn", n_lambdas=4):
        rng = np.random.default_rng(3)
        self.X, self.y = rng.normal(size=(24, 3)) + np.arange(24)[:, None] % 3, np.arange(24) % 3
        self.kind, self.n_lambdas = kind, n_lambdas

    def __call__(self, folder):
        """Run it, and return the bits of the result."""
        from attack_checkpoints import bits_of
        from triscreen.distributed import shards, store
        from triscreen.path.api import AUTO

        store.read_text.cache_clear()  # another process begins: it knows nothing
        shards._states.clear()
        folder = Path(folder)
        problem = ts.distributed.problem(
            None, self.X, self.y, triplets=self.kind, k=2, n_shards=2, folder=folder.with_name("files"), n_jobs=1
        )
        arguments = {"n_lambdas": self.n_lambdas, "ratio": 0.7, "tol": 1e-4, "screening": AUTO}
        return bits_of(ts.solve_path(problem, **arguments, checkpoint=folder))


def attack(folder, names, every, step):
    """Give (what was done, what came of it) of runs of every kind."""
    from attack_checkpoints import targets

    yield "crashes, command line", crash_command(Path(folder) / "command", every)
    for kind in ("knn", "all"):
        run, place = ShardedRun(kind), Path(folder) / f"shards, {kind}"
        whole = run(place / "whole")
        yield f"crashes, shards, {kind}", crash(run, place / "crash", whole, every)
        yield f"faults, shards, {kind}", fail(run, place / "fault", whole, step, "run")
    for name in names:
        run, place = targets()[name], Path(folder) / name
        whole = run(place / "whole")
        yield f"crashes, {name}", crash(run, place / "crash", whole, every)
        yield f"faults, {name}", fail(run, place / "fault", whole, step)
        for locks in (True, False):
            outcomes = two_writers(run, place / "two", whole, step, locks)
            yield f"two writers, {'locks' if locks else 'no locks'}, {name}", outcomes


def main():
    """All of it."""
    warnings.simplefilter("ignore", ts.ConvergenceWarning)
    begin, total = time.time(), Counter()
    os.fsync = lambda number: None  # nobody waits for the disk: what it holds is made up here
    with tempfile.TemporaryDirectory() as folder:
        for what, outcomes in attack(folder, ["given", "knn, hinge", "all", "guarantee", "cv"], 1, 1):
            print(f"{what:45} {dict(outcomes)}", flush=True)
            total.update(outcomes)
    print(f"{'all':45} {dict(total)}, {time.time() - begin:.0f} s: nothing lost, nothing believed")


if __name__ == "__main__":
    main(*sys.argv[1:])
