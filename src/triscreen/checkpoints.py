"""A folder of files for a run that can be resumed, and a record of which files are a run's own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import weakref
from contextvars import ContextVar
from pathlib import Path

from triscreen._validation import shortened
from triscreen.errors import InputError
from triscreen.files import OURS, as_dict, as_json, as_path, read, special, write

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = ["Checkpoint", "Written", "recording"]

_LOCK = OURS + "lock"
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
        self.files, self.folders = [], []

    def remove(self):
        """Remove these files, one by one, and then those of their folders that are empty; return whether all went.

        Files of others stay, and so does a folder that holds one. Call it when no checkpoint is open any more.
        """
        for file in self.files:
            with contextlib.suppress(OSError):
                file.unlink()
        for folder in reversed(self.folders):
            with contextlib.suppress(OSError):
                folder.rmdir()
        return not any(path.exists() for path in (*self.files, *self.folders))

    def _add(self, paths, path):
        path = Path(os.path.abspath(path))  # a run may change its working directory
        if path not in paths:
            paths.append(path)


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


class Checkpoint:
    """A folder that holds the entries of one run, so that a run that was killed can go on.

    It is a context manager; leaving it (or `close`) lets another run use the folder.

    Parameters
    ----------
    folder : path
        Made if it is missing. A folder with anything else in it, or with the entries of another run, is refused.
    identity : dict
        What makes the run this one: text and numbers, such as the `fingerprint` of the data and the arguments.

    Notes
    -----
    The folder holds ``checkpoint.tsc`` with the identity and ``000000.tsc``, ``000001.tsc``, ... with the entries; it
    can be read whenever the run was killed. Two runs at once on one folder are refused where the system has flock,
    and a killed run leaves no lock behind.
    """

    def __init__(self, folder, identity):
        self.folder = as_path(folder, "checkpoint")
        self._name = f"checkpoint={str(self.folder)!r}"
        identity = json.loads(json.dumps(as_json(as_dict(identity, "identity"), "identity")), object_hook=special)
        self._records = _records.get()
        try:
            self._make_folder()
        except (FileExistsError, NotADirectoryError):
            raise InputError(f"{self._name} is a file, or lies in one: it must be a folder") from None
        first = self.folder / "checkpoint.tsc"
        others = [name for name in sorted(os.listdir(self.folder)) if not name.startswith(OURS)]
        if others and not first.exists():
            raise InputError(
                f"{self._name} holds {others[0]!r} but no checkpoint: the folder must be new, empty or that of this run"
            )
        self._release = weakref.finalize(self, os.close, self._lock())
        try:
            if first.exists():
                self._compare(read(first, "checkpoint")[1], identity)
            else:
                write(first, "checkpoint", identity, {})
            self._own(first, self.folder / _LOCK)
            self._count = len(self._files())
            for leftover in self.folder.glob(f"{OURS}*.tmp"):
                leftover.unlink(missing_ok=True)
        except BaseException:
            self.close()
            raise

    def append(self, meta, arrays):
        """Write the next entry, as `write` does: it is there as a whole, or not at all."""
        file = self.folder / f"{self._count:06d}.tsc"
        if not self._release.alive:
            raise InputError(f"{self._name} was closed: open the checkpoint again to append to it")
        if file.exists():  # seen only where there is no lock
            raise InputError(f"{self._name} is in use by another run, which wrote {file.name!r}: use another folder")
        write(file, "entry", meta, arrays)
        self._own(file)
        self._count += 1

    def replace(self, number, meta, arrays):
        """Write an entry anew, as a whole or not at all."""
        write(self.folder / f"{number:06d}.tsc", "entry", meta, arrays)

    def entries(self):
        """Return the list of (meta, arrays), in the order in which they were appended."""
        files = self._files()
        try:
            entries = [read(file, "entry")[1:] for file in files]
        except InputError as err:
            raise InputError(f"{err} (the folder is left as it is)") from err
        self._own(*files)
        return entries

    def close(self):
        """Let other runs use the folder; what was appended can still be read here."""
        self._release()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __len__(self):
        return self._count

    def _make_folder(self):
        """Make the folder and those above it; remember which, and this one if it is there already."""
        missing = [self.folder]
        if re.fullmatch(r"round-[0-9]+-.+", self.folder.name):  # one of the paths of a cross-validation
            missing.append(self.folder.parent)
        while not missing[-1].parent.exists():
            missing.append(missing[-1].parent)
        self.folder.mkdir(parents=True, exist_ok=True)
        for record in self._records:
            for folder in reversed(missing):
                record._add(record.folders, folder)

    def _own(self, *files):
        for record in self._records:
            for file in files:
                record._add(record.files, file)

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

    def _files(self):
        names = [name for name in os.listdir(self.folder) if re.fullmatch(r"[0-9]{6,}\.tsc", name)]
        names.sort(key=lambda name: int(name[:-4]))
        for i, name in enumerate(names):
            if name != f"{i:06d}.tsc":
                raise InputError(
                    f"{self._name} holds {name!r} but no '{i:06d}.tsc': put that file back or use another folder "
                    "(the folder is left as it is)"
                )
        return [self.folder / name for name in names]


def _same(a, b):
    return a == b or json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)  # nan is nan here
