"""A folder of files for a run that can be resumed, and a record of which files are a run's own.

The folder of a run with n + 1 entries holds files of `triscreen._utils.archive`, and nothing else that counts:

    checkpoint.tsc      the identity of the run: what makes it this one
    000000.tsc ...      its entries, each written once and never again
    state-00000n.tsc    what only the last entry needs to go on from

An entry of format 2 is {"run": hash of the identity, "number": its own, "before": seal of the entry before (null: the
first one), "state": hash of its state or null, "meta": {...}, "seal": hash of all this and of its arrays}; a state is
{"run": ..., "number": ..., "meta": {...}}. So an entry of another run, an entry at another place, a copy, an edited one
or one whose state is another one's is refused, and the folder is left as it is. The state is on the disk before its
entry, and goes after the next entry is there: whenever the run is killed, the last entry has its state.

Entries of format 1 are {...} without any of this, their state inside; a run that goes on from them writes entries of
format 2, and the first of these takes the hash of the last old one as the seal before.

A hash is BLAKE2b (16 bytes, hexadecimal) of what was written as JSON with sorted keys, followed, for each array in the
order of the names, by its name and its `triscreen._utils.archive.fingerprint`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import weakref
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

from triscreen._utils.archive import OURS, as_dict, as_json, as_path, fingerprint, load, special, sync_folder, write
from triscreen._utils.validation import shortened
from triscreen.errors import InputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = ["Checkpoint", "Written", "look", "recording"]

_FIRST, _LOCK = "checkpoint.tsc", OURS + "lock"
_ENTRY, _STATE, _LEFTOVER = r"([0-9]{6,})\.tsc", r"state-([0-9]{6,})\.tsc", re.escape(OURS) + r"[0-9a-f]+\.tmp"
_LEFT = "(the folder is left as it is)"
_records = ContextVar("records of what checkpoints write", default=())


class Written:
    """Files that belong to the runs whose checkpoints were opened within `recording`; nothing else is ever removed.

    Attributes
    ----------
    files : list of Path
        Those that these runs wrote, and those of the same runs' earlier lives that they went on from.
    folders : list of Path
        Those that these runs made or went on in, the innermost last.
    """

    def __init__(self):
        self._files, self._folders = {}, {}  # as sets that keep their order

    files = property(lambda self: list(self._files))
    folders = property(lambda self: list(self._folders))

    def remove(self):
        """Remove these files, one by one, and then those of their folders that are empty; return whether all went.

        Files of others stay, and so does a folder that holds one. Call it when no checkpoint is open any more.
        """
        for file in reversed(self.files):  # what says whose run it was goes last
            with contextlib.suppress(OSError):
                file.unlink()
        for folder in reversed(self.folders):
            with contextlib.suppress(OSError):
                folder.rmdir()
        return not any(path.exists() for path in (*self.files, *self.folders))

    def add(self, files=(), folders=()):
        """Take up files and folders of a run."""
        for known, paths in ((self._files, files), (self._folders, folders)):
            known.update((Path(os.path.abspath(path)), None) for path in paths)  # a run may change its directory


@contextlib.contextmanager
def recording():
    """Give a `Written` that knows the files of every checkpoint opened inside, by `solve_path` or an estimator.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     folder = os.path.join(parent, "run")
    ...     with recording() as written, Checkpoint(folder, {"lam": 0.1}) as run:
    ...         run.append({"step": 0}, {})
    ...     sorted(file.name for file in written.files), written.remove(), os.listdir(parent)
    (['.triscreen-lock', '000000.tsc', 'checkpoint.tsc'], True, [])
    """
    written = Written()
    token = _records.set((*_records.get(), written))
    try:
        yield written
    finally:
        _records.reset(token)


class Found(NamedTuple):
    """What a folder holds: its run (None: nothing yet), and what it can go on from.

    identity, version : of ``checkpoint.tsc``; entries : list of (meta, arrays), the first ``old`` of format 1; seals :
    theirs; state : (meta, arrays) of the last entry, or None; states : numbers of the states that are there.
    """

    identity: dict | None = None
    version: int = 0
    entries: list | tuple = ()
    seals: list | tuple = ()
    old: int = 0
    state: tuple | None = None
    states: tuple = ()

    @property
    def run(self):
        """Hash of the identity."""
        return hash_of(self.identity)


def look(folder):
    """Return what a checkpoint `Found` in a folder holds, each entry bound to the one before, or refuse it.

    Nothing is written; a folder that is missing or empty holds nothing.
    """
    folder = as_path(folder, "checkpoint")
    name = _named(folder)
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return Found()
    except OSError as err:
        raise InputError(f"{name} cannot be read: {err.strerror}; it must be a folder") from None
    names = [item for item in names if not item.startswith(OURS)]
    if _FIRST not in names:
        if names:
            raise InputError(
                f"{name} holds {names[0]!r} but no checkpoint: the folder must be new, empty or that of this run"
            )
        return Found()
    try:
        return _Look(folder, name, names).found
    except RecursionError:
        raise InputError(f"{name} holds lists in lists too deep to be a run's; use another folder {_LEFT}") from None


class _Look:
    """One look at a folder with a checkpoint: ``found`` is what it holds."""

    def __init__(self, folder, name, names):
        self.folder, self.name = folder, name
        first = self._load(_FIRST, "checkpoint")
        self.found = Found(first.meta, first.version, [], [])
        self.run, self.old = self.found.run, 0
        # Hashes of the states, as the entries tell.
        told = [self._take(number, self._load(file, "entry")) for number, file in enumerate(self._in_order(names))]
        numbers = [int(match[1]) for match in (re.fullmatch(_STATE, item) for item in names) if match]
        states = {number: self._state(number, told) for number in sorted(numbers)}
        last = len(told) - 1
        if told and told[last] is not None and last not in states:
            raise self._refusal(f"{state_name(last)!r} is missing, which the last entry goes on from: put it back")
        self.found = self.found._replace(old=self.old, state=states.get(last), states=tuple(states))

    def _take(self, number, content):
        """Add an entry; return the hash of its state."""
        file, meta, seals = entry_name(number), content.meta, self.found.seals
        if content.version == 1:
            if self.found.version > 1 or self.old < number:
                raise self._refusal(f"{file!r} is of format 1 and the files before are not")
            self.old = number + 1
            self.found.entries.append((meta, content.arrays))
            seals.append(hash_of(meta, content.arrays))
            return None
        if meta.keys() != {"run", "number", "before", "state", "meta", "seal"} or type(meta["meta"]) is not dict:
            raise self._refusal(f"{file!r} is no entry of a checkpoint")
        if meta["run"] != self.run:
            raise self._refusal(f"{file!r} belongs to another run")
        if meta["number"] != number:
            raise self._refusal(f"{file!r} is the entry number {shortened(meta['number'])}")
        if meta["before"] != (seals[-1] if seals else None):
            raise self._refusal(f"{file!r} does not follow the entry before it")
        if meta["seal"] != hash_of({key: meta[key] for key in meta if key != "seal"}, content.arrays):
            raise self._refusal(f"{file!r} is not as the run wrote it")
        self.found.entries.append((meta["meta"], content.arrays))
        seals.append(meta["seal"])
        return meta["state"]

    def _state(self, number, told):
        """Return (meta, arrays) of the state of an entry, or of the entry that would have come next."""
        file = state_name(number)
        content = self._load(file, "state")
        meta = content.meta
        if meta.keys() != {"run", "number", "meta"} or type(meta["meta"]) is not dict:
            raise self._refusal(f"{file!r} is no state of a checkpoint")
        if meta["run"] != self.run:
            raise self._refusal(f"{file!r} belongs to another run")
        if meta["number"] != number or number > len(told):
            raise self._refusal(f"{file!r} is not the state of the last entry")
        if number < len(told) and hash_of(meta, content.arrays) != told[number]:
            raise self._refusal(f"{file!r} is not as the run wrote it")
        return meta["meta"], content.arrays

    def _in_order(self, names):
        names = [item for item in names if re.fullmatch(_ENTRY, item)]
        names.sort(key=lambda item: int(item[:-4]))
        for number, item in enumerate(names):
            if item != entry_name(number):
                raise InputError(
                    f"{self.name} holds {item!r} but no {entry_name(number)!r}: put that file back or use another "
                    f"folder {_LEFT}"
                )
        return names

    def _load(self, file, kind):
        path = self.folder / file
        try:
            return load(path, kind)
        except InputError as err:
            said = str(err).removeprefix(f"file={str(path)!r}")
            raise InputError(f"{self.name}: {file!r}{said} {_LEFT}") from err

    def _refusal(self, why):
        return InputError(f"{self.name}: {why}; use another folder {_LEFT}")


class Checkpoint:
    """A folder that holds the entries of one run, so that a run that was killed can go on.

    It is a context manager; leaving it (or `close`) lets another run use the folder.

    Parameters
    ----------
    folder : path
        Made if it is missing. A folder with anything else in it, or with the entries of another run, is refused.
    identity : dict
        What makes the run this one: text and numbers, such as the `fingerprint` of the data and the arguments.
    earlier : callable, optional
        Returns the identity that the same run had in format 1, for a folder of that format.
    accept : callable, optional
        ``accept(found)`` sees what was `Found` before anything is written; it may refuse it, and what it returns is
        kept as ``accepted``.

    Notes
    -----
    The folder can be read whenever the run was killed. Two runs at once on one folder are refused where the system has
    flock, and a killed run leaves no lock behind.
    """

    def __init__(self, folder, identity, earlier=None, accept=None):
        self.folder = as_path(folder, "checkpoint")
        self._name = _named(self.folder)
        self._records = _records.get()
        identity = json.loads(json.dumps(as_json(as_dict(identity, "identity"), "identity")), object_hook=special)
        made = self._missing()
        try:
            self._make_folder()
            for folder in made:
                sync_folder(folder.parent)
            before = self._listed()
            found = self._look(identity, earlier, accept)
            self._release = weakref.finalize(self, os.close, self._lock())
            if self._listed() != before:  # another run was here until now
                found = self._look(identity, earlier, accept)
            if found.identity is None:
                found = found._replace(identity=identity)
                write(self.folder / _FIRST, "checkpoint", identity, {})
            self._adopt(found, made)
        except BaseException as err:
            with contextlib.suppress(OSError):
                if self.folder in made and hasattr(self, "_release"):  # the lock is ours
                    (self.folder / _LOCK).unlink()
            self.close()
            for folder in reversed(made):
                with contextlib.suppress(OSError):
                    folder.rmdir()
            if isinstance(err, OSError):
                raise InputError(f"{self._name} cannot be used: {err.strerror}; take another folder") from err
            raise

    def append(self, meta, arrays, state=None):
        """Write the next entry, as `write` does: it is there as a whole, or not at all.

        state: (meta, arrays) that only the last entry needs; it is there before its entry, and the one of the entry
        before goes.
        """
        number = self._count
        file = self.folder / entry_name(number)
        if not self._release.alive:
            raise InputError(f"{self._name} was closed: open the checkpoint again to append to it")
        if file.exists():  # seen only where there is no lock
            raise InputError(f"{self._name} is in use by another run, which wrote {file.name!r}: use another folder")
        try:
            seal = self._write(number, file, meta, arrays, state)
        except FileNotFoundError as err:  # where there is no lock, another run took it for one that a killed run left
            raise InputError(
                f"{self._name} is in use by another run, or somebody removes its files: use another folder"
            ) from err
        self._count, self._before = number + 1, seal
        self._drop_states(keep=number)
        if state is not None:
            self._states.append(number)

    def _write(self, number, file, meta, arrays, state):
        """Write the state and then the entry; return the seal of that."""
        told = None
        if state is not None:
            place = {"run": self._run, "number": number, "meta": state[0]}
            self._own(self.folder / state_name(number))
            write(self.folder / state_name(number), "state", place, state[1])
            told = hash_of(place, state[1])
        meta = {"run": self._run, "number": number, "before": self._before, "state": told, "meta": meta}
        seal = hash_of(meta, arrays)
        self._own(file)
        write(file, "entry", {**meta, "seal": seal}, arrays)
        return seal

    def entries(self):
        """Return the list of (meta, arrays), in the order in which they were appended; read and checked anew."""
        return list(look(self.folder).entries)

    def state(self):
        """Return the (meta, arrays) that the last entry goes on from, or None; read and checked anew."""
        return look(self.folder).state

    def close(self):
        """Let other runs use the folder; what was appended can still be read here."""
        if hasattr(self, "_release"):
            self._release()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __len__(self):
        return self._count

    def _missing(self):
        """Return the folder and those above it that are not there, the innermost last."""
        missing = []
        for folder in (self.folder, *self.folder.parents):
            if os.path.lexists(folder):
                break
            missing.insert(0, folder)
        return missing

    def _make_folder(self):
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            what = "a file, or lies in one"
            if os.path.islink(self.folder) and not os.path.exists(self.folder):
                what = "a link that leads nowhere"
            raise InputError(f"{self._name} is {what}: it must be a folder") from None

    def _look(self, identity, earlier, accept):
        found = look(self.folder)
        if found.identity is not None:
            old = found.version == 1 and earlier is not None
            self._compare(found.identity, earlier() if old else identity)
        self.accepted = None if accept is None else accept(found)
        return found

    def _adopt(self, found, made):
        """Go on from what was found: it is this run's own; what a killed one left behind goes."""
        self._run, self._count = found.run, len(found.entries)
        self._before = found.seals[-1] if found.seals else None
        self._states = list(found.states)
        self._own(self.folder / _FIRST, self.folder / _LOCK)
        self._own(*(self.folder / entry_name(number) for number in range(self._count)))
        self._own(*(self.folder / state_name(number) for number in self._states))
        folders = [*made, self.folder]
        for record in self._records:
            record.add(folders=folders)
        for name in os.listdir(self.folder):
            if re.fullmatch(_LEFTOVER, name):
                (self.folder / name).unlink(missing_ok=True)
        self._drop_states(keep=self._count - 1)

    def _drop_states(self, keep):
        """Remove states that no entry goes on from; one that cannot be removed now will be later."""
        for number in [number for number in self._states if number < keep]:
            with contextlib.suppress(OSError):
                (self.folder / state_name(number)).unlink(missing_ok=True)
                self._states.remove(number)

    def _own(self, *files):
        for record in self._records:
            record.add(files)

    def _listed(self):
        """Return what can be seen of the folder without reading any file."""
        seen = [item for item in os.scandir(self.folder) if item.name != _LOCK]
        stats = [(item.name, item.stat(follow_symlinks=False)) for item in seen]
        return sorted((name, stat.st_size, stat.st_mtime_ns, stat.st_ino) for name, stat in stats)

    def _lock(self):
        """Return an open file that keeps other runs out until it is closed, if only by the end of the process."""
        lock = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if fcntl:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise InputError(
                f"{self._name} is in use by another run: wait for it, close it or use another folder"
            ) from None
        except OSError:
            pass  # a file system without locks
        return lock

    def _compare(self, old, new):
        def shown(identity, key):
            return shortened(identity[key]) if key in identity else "absent"

        differ = [key for key in old | new if key not in old or key not in new or not _same(old[key], new[key])]
        if differ:
            words = [f"{key} was {shown(old, key)} and is now {shown(new, key)}" for key in differ[:2]]
            words += [f"{len(differ) - 2} more differ"] if len(differ) > 2 else []
            raise InputError(f"{self._name} belongs to another run ({'; '.join(words)}): use another folder")


def entry_name(number):
    """Return the name of the file of an entry."""
    return f"{number:06d}.tsc"


def state_name(number):
    """Return the name of the file of an entry's state."""
    return f"state-{number:06d}.tsc"


def hash_of(meta, arrays=None):
    """Return the hash of what `write` keeps; the same for what was read again."""
    digest = hashlib.blake2b(json.dumps(as_json(meta, "meta"), sort_keys=True).encode(), digest_size=16)
    for name, array in sorted((arrays or {}).items()):
        digest.update(f"{name}\0{fingerprint(array)}".encode())
    return digest.hexdigest()


def _named(folder):
    text = str(folder)
    return f"checkpoint={text!r}" if len(text) < 1000 else f"checkpoint={shortened(text)}"


def _same(a, b):
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)  # nan is nan here, and 1 is not True
