"""Ways to attack a checkpoint, and what may come of it; see attack_checkpoints.py."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

import triscreen as ts
from triscreen._utils import archive as files
from triscreen._utils import checkpoint as checkpoints

LOCK = ".triscreen-lock"


def contents(folder):
    """All files below a folder but locks."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(Path(folder).rglob("*"))
        if file.is_file() and file.name != LOCK
    }


def require(condition, words):
    """Fail, unless."""
    assert condition, words


def is_a_sentence(err):
    """Fail, unless an error is one, about the checkpoint."""
    assert "\n" not in str(err), err
    assert "checkpoint=" in str(err), err


def judge(run, folder, whole):
    """Run on what is there; return "same bits" or "refused", or fail."""
    may_go_on = getattr(run, "may_go_on", False)
    before = contents(folder)
    try:
        found = run(folder)
    except ts.InputError as err:
        is_a_sentence(err)
        after = contents(folder)
        more = {name: after[name] for name in after if name not in before}
        require({**after, **before} == after and (may_go_on or not more), f"changed, and then refused: {err}")
        return "refused"
    assert found == whole, "believed"
    return "same bits"


def kill(run, folder, whole, chance, times, signals=(signal.SIGKILL,), longest=0.15):
    """Kill a process at random moments until it is through; a new life each time."""
    outcomes = Counter()
    while outcomes["killed"] < times:
        child = fork(lambda: run(folder))
        time.sleep(chance.uniform(0, longest))
        os.kill(child, chance.choice(signals))
        _, status = os.waitpid(child, 0)
        if status:
            outcomes["killed"] += 1
            if chance.random() < 0.2:
                copy = Path(f"{folder}-copy")
                if Path(folder).exists():
                    shutil.copytree(folder, copy)
                outcomes[judge(run, copy, whole)] += 1
                shutil.rmtree(copy)
        else:
            assert run(folder) == whole
            outcomes["same bits"] += 1
            shutil.rmtree(folder)
    if Path(folder).exists():
        assert run(folder) == whole
    outcomes["same bits"] += 1
    return outcomes


def fork(call):
    """Call something in a child; return its number."""
    child = os.fork()
    if not child:
        try:
            call()
            os._exit(0)
        except BaseException:
            os._exit(3)
    return child


def kill_between(run, folder, whole, step=1):
    """Die before each call that touches the disk, in turn: opening, syncing, replacing, removing a file."""
    calls = [(os, "fsync"), (os, "replace"), (os, "unlink"), (os, "mkdir"), (os, "open")]
    moment, done = 1, 0
    while True:
        shutil.rmtree(folder, ignore_errors=True)

        def dying(last=moment):
            left = [last]

            def counted(real):
                def call(*arguments, **more):
                    left[0] -= 1
                    if left[0] == 0:
                        os.kill(os.getpid(), signal.SIGKILL)
                    return real(*arguments, **more)

                return call

            for module, name in calls:
                setattr(module, name, counted(getattr(module, name)))
            run(folder)

        _, status = os.waitpid(fork(dying), 0)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            return Counter({"killed": done, "same bits": done})
        assert run(folder) == whole, f"after {moment} calls"
        done += 1
        moment += step


DAMAGES = (
    "flip",
    "flips",
    "cut",
    "delete",
    "empty",
    "swap",
    "copy",
    "add",
    "zeros",
    "noise",
    "append",
    "folder",
    "link",
)


def damage(folder, chance):
    """Do one bad thing to a folder."""
    names = sorted(str(file.relative_to(folder)) for file in Path(folder).rglob("*.tsc"))
    file, other = (Path(folder) / chance.choice(names) for _ in range(2))
    data, how = bytearray(file.read_bytes()), chance.choice(DAMAGES)
    if how in ("flip", "flips"):
        for _ in range(1 if how == "flip" else 20):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        file.write_bytes(data)
    elif how == "cut":
        file.write_bytes(data[: chance.randrange(len(data))])
    elif how == "delete":
        file.unlink()
    elif how == "empty":
        file.write_bytes(b"")
    elif how == "swap":
        file.write_bytes(other.read_bytes())
        other.write_bytes(data)
    elif how == "copy":
        shutil.copy(file, other) if file != other else None
    elif how == "add":
        number = chance.randrange(40)
        (file.parent / chance.choice([f"{number:06d}.tsc", f"state-{number:06d}.tsc"])).write_bytes(data)
    elif how == "zeros":
        begin = chance.randrange(len(data))
        data[begin : begin + 64] = bytes(len(data[begin : begin + 64]))
        file.write_bytes(data)
    elif how == "noise":
        file.write_bytes(chance.randbytes(len(data)))
    elif how == "append":
        file.write_bytes(data + chance.randbytes(50))
    elif how == "folder":
        file.unlink()
        file.mkdir()
    else:
        file.unlink()
        file.symlink_to(chance.choice([other, file, "/dev/zero", "nothing"]))
    return how


VALUES = (
    None,
    True,
    -1,
    0,
    0.0,
    1e308,
    -1e308,
    5e-324,
    float("nan"),
    float("inf"),
    "",
    "x",
    [],
    {},
    [1.0],
    {"a": 1},
    10**400,
)


def edit(file, chance, seal=False):
    """Change a number, text, key or array of a file and write it with valid checksums; seal: and valid seals."""
    kind, meta, arrays = files.read(file)
    if arrays and chance.random() < 0.4:
        edit_array(arrays, chance)
    else:
        edit_value(meta, chance)
    if seal and kind == "entry" and "seal" in meta:
        meta["seal"] = checkpoints.hash_of({key: meta[key] for key in meta if key != "seal"}, arrays)
    files.write(file, kind, meta, arrays)


def edit_array(arrays, chance):
    """Change, rename or remove an array."""
    name = chance.choice(sorted(arrays))
    array = arrays[name]
    change = chance.choice(["scale", "nan", "shape", "type", "text", "remove", "rename", "last digit", "more", "empty"])
    arrays[name] = {
        "scale": lambda: array * chance.choice([0.0, -1.0, 2.0, 1e150]),
        "nan": lambda: np.where(np.arange(array.size).reshape(array.shape) == 0, np.nan, array),
        "shape": lambda: array.T if array.ndim == 2 and array.shape[0] != array.shape[1] else array[..., None],
        "type": lambda: array.astype("f4"),
        "text": lambda: array.astype("U5"),
        "last digit": lambda: np.nextafter(array, np.inf),
        "more": lambda: np.concatenate([array, array]),
        "empty": lambda: array[:0],
    }.get(change, lambda: array)()
    if change in ("remove", "rename"):
        arrays.pop(name)
        if change == "rename":
            arrays[name + " "] = array


def edit_value(meta, chance):
    """Change, add or remove a value somewhere in a tree of dicts and lists."""
    places = []

    def walk(item):
        for key in item if isinstance(item, dict) else range(len(item)):
            places.append((item, key))
            if isinstance(item[key], dict | list):
                walk(item[key])

    walk(meta)
    item, key = chance.choice(places)
    how = chance.random()
    if how < 0.2 and isinstance(item, dict):
        del item[key]
    elif how < 0.3 and isinstance(item, dict):
        item[f"{key}2"] = 1
    elif how < 0.6 and type(item[key]) is float:
        item[key] = float(np.nextafter(item[key], np.inf)) if chance.random() < 0.5 else item[key] * 0.5
    else:
        item[key] = chance.choice(VALUES)


def mix(folder, foreign, chance):
    """Put files of other runs into a folder, under a name that belongs there."""
    names = [str(file.relative_to(folder)) for file in Path(folder).rglob("*.tsc")]
    for name in chance.sample(names, chance.choice([1, 1, 2, len(names)])):
        same = [file for file in foreign if file.name == Path(name).name] if chance.random() < 0.8 else foreign
        shutil.copy(chance.choice(same or foreign), Path(folder) / name)


def fill_the_disk(run, folder, whole, step=1):
    """No room at the n-th write, for every n: the run fails by a system's error, and goes on when there is room."""
    real, done = files.open if hasattr(files, "open") else open, Counter()
    moment = 1
    while True:
        left = [moment]

        def full(path, mode, left=left):
            stream = real(path, mode)
            if mode == "xb":
                left[0] -= 1
                if left[0] == 0:
                    stream.close()
                    os.unlink(path)
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return stream

        shutil.rmtree(folder, ignore_errors=True)
        files.open = full
        try:
            run(folder)
            return done
        except OSError as err:
            require(err.errno == errno.ENOSPC, err)
            done["failed"] += 1
        except ts.InputError as err:
            require(os.strerror(errno.ENOSPC) in str(err), err)
            done["refused"] += 1
        finally:
            files.open = real
            if real is open:
                del files.open
        done[judge(run, folder, whole)] += 1
        moment += step


def limit_the_files(run, folder, whole):
    """A limit on the length of files, as the system sets it: the run fails, and goes on without it."""
    outcomes = Counter()
    for limit in (0, 100, 700, 1500, 2500):
        shutil.rmtree(folder, ignore_errors=True)

        def limited(limit=limit):
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            run(folder)

        _, status = os.waitpid(fork(limited), 0)
        outcomes["failed" if os.WEXITSTATUS(status) else "through"] += 1
        outcomes[judge(run, folder, whole)] += 1
    return outcomes


def fill_a_real_disk(run, whole):
    """A file system of 64 KB, where the machine lets us make one: None where not."""
    disk = tempfile.mkdtemp()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True).returncode:
        os.rmdir(disk)
        return None
    outcomes = Counter()
    try:
        for room in range(0, 60_000, 4_000):
            folder, ballast = Path(disk) / "run", Path(disk) / "ballast"
            ballast.write_bytes(bytes(64_000 - room - 4_096))
            try:
                outcomes["through" if run(folder) == whole else "wrong"] += 1
            except (OSError, ts.InputError) as err:
                require(os.strerror(errno.ENOSPC) in str(err), err)
                outcomes["failed"] += 1
            ballast.unlink()
            outcomes[judge(run, folder, whole)] += 1
            shutil.rmtree(folder)
    finally:
        subprocess.run(["umount", disk], check=True)
        os.rmdir(disk)
    assert not outcomes["wrong"]
    return outcomes


def attack_files(folder, chance, rounds, run, whole, foreign):
    """Damage, mix and edit copies of a run's folder, finished or not, so many times each."""
    outcomes = {"damages": Counter(), "foreign and edited": Counter()}
    total = len(checkpoint_entries(folder / "whole"))
    for kind, count in zip(("damage", "mix", "edit"), rounds, strict=True):
        for _ in range(count):
            kept = folder / f"stopped {chance.randrange(1, total)}"
            if not kept.exists():
                run(kept, stop=int(kept.name.split()[1]))
            kept = chance.choice([kept, folder / "whole"])
            copy = folder / "copy"
            shutil.copytree(kept, copy)
            if kind == "damage":
                damage(copy, chance)
            elif kind == "mix":
                mix(copy, foreign, chance)
            else:
                edit(chance.choice(sorted(copy.rglob("*.tsc"))), chance)
            group = outcomes["damages" if kind == "damage" else "foreign and edited"]
            group[judge(run, copy, whole)] += 1
            shutil.rmtree(copy)
    return outcomes


def checkpoint_entries(folder):
    """The files of entries."""
    return [file for file in Path(folder).rglob("*.tsc") if file.name[0].isdigit()]


def forge(folder, chance, run, count):
    """Edit the last entry of a path and give it a valid seal: nothing but a sentence or a path may come of it."""
    outcomes = Counter()
    for _ in range(count):
        copy = folder / "copy"
        kept = folder / f"stopped {chance.randrange(2, 9)}"
        if not kept.exists():
            run(kept, stop=int(kept.name.split()[1]))
        shutil.copytree(kept, copy)
        edit(max(checkpoint_entries(copy)), chance, seal=True)
        before = contents(copy)
        try:
            run(copy)
            outcomes["a path"] += 1
        except ts.InputError as err:
            is_a_sentence(err)
            require(contents(copy) == before, "changed, and then refused")
            outcomes["refused"] += 1
        shutil.rmtree(copy)
    return outcomes
