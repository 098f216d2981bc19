"""What a command may write, and what it may remove: nothing that it reads, nothing that is not its own."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

from triscreen.cli import signals
from triscreen.cli.common import say
from triscreen.errors import InputError


def check_files(inputs, outputs, folders=("checkpoint",)):
    """Refuse, before any work, an output that cannot be written or that would replace an input or another output.

    Parameters
    ----------
    inputs, outputs : dict of str to path
        By the names of the command's arguments, None where one is not given. Inputs may be any source of points, and
        pairs (name, path) where a name has several.
    folders : tuple of str
        The outputs that are folders; that of a checkpoint may hold nothing else and lie in nothing else.
    """
    pairs = inputs.items() if isinstance(inputs, dict) else inputs
    read = [(name, source, file) for name, source in pairs for file in _files(source)]
    written = []
    for name, file in outputs.items():
        if file is None:
            continue
        for other, given, path in (*read, *written):
            if _same(file, path):
                what = "is what is read" if (other, given, path) in read else "is the same file"
                raise InputError(f"{name}={str(file)!r} {what}, {other}={str(given)!r}: give it a name of its own")
            if "checkpoint" in (name, other) and (_within(file, path) or _within(path, file)):
                raise InputError(
                    f"{name}={str(file)!r} and {other}={str(given)!r} lie one in the other: a checkpoint needs a "
                    "folder of its own"
                )
        written.append((name, file, file))
        _check_writable(name, Path(file), name in folders)


def _check_writable(name, file, folder):
    from triscreen._utils.archive import target

    if not folder:
        target(file, name)
    elif file.is_dir():
        target(file / "entry", name)
    elif file.exists():
        raise InputError(f"{name}={str(file)!r} is a file: it must be a folder")
    else:
        target(next(above for above in file.absolute().parents if above.exists()) / "entry", name)


def _files(source):
    """Return what an input is read from: paths, or the open file that standard input is."""
    from triscreen.datasets import files_of

    if source is None:
        return []
    if os.fspath(source) != "-":
        return files_of(source)
    try:
        number = sys.stdin.fileno()
        return [number] if stat.S_ISREG(os.fstat(number).st_mode) else []
    except (OSError, ValueError, AttributeError):  # closed, or no file at all
        return []


def _same(a, b):
    try:
        return os.path.samefile(a, b)
    except OSError:  # one of them is not there yet
        return not isinstance(b, int) and os.path.realpath(a) == os.path.realpath(b)


def _within(inner, outer):
    return not isinstance(inner, int) and any(_same(folder, outer) for folder in Path(os.path.realpath(inner)).parents)


@contextmanager
def resumable(folder, keep, quiet=False):
    """Give an object whose ``keep`` says whether the checkpoint stays when all is done.

    Only files that checkpoints inside wrote, or went on from, are ever removed, one by one, and their folders where
    they are then empty. Ctrl-C and errors get a sentence that says what is kept. folder=None: there is no checkpoint.
    """
    from triscreen._utils.checkpoint import recording

    kept = SimpleNamespace(keep=keep)
    if folder is None:
        yield kept
        return
    if _has_entries(folder) and not quiet:
        say(f"going on from {str(folder)!r}")
    with recording() as written:
        signals.enter("keeping")
        try:
            yield kept
        except BaseException as err:
            _explain(err, folder, written, keep)
            raise
        finally:
            signals.enter("running")
    if not kept.keep:
        _remove(written, folder, keep)


def _explain(err, folder, written, keep):
    """Say what is left of a run that ended early, and remove what is of no use."""
    where = f"what is done is kept in {str(folder)!r}; the same command goes on from there"
    if signals.stopped(err):
        if _has_entries(folder):
            raise KeyboardInterrupt(f"interrupted, {where}") from None
        if not keep:
            _remove(written, folder, keep)
    elif isinstance(err, InputError) and "checkpoint=" in str(err) and any(Path(folder).rglob("checkpoint.tsc")):
        raise InputError(f"{err}, or remove this one to begin anew") from None
    elif isinstance(err, OSError) and _has_entries(folder):
        raise OSError(err.errno, f"{err.strerror} ({where})", err.filename) from err


def _remove(written, folder, named):
    """Remove what the run wrote, and its own folder (not one that the user named) where it is then empty."""
    written.remove()
    if not named:
        with suppress(OSError):
            os.rmdir(folder)


def _has_entries(folder):
    return any(Path(folder).rglob("[0-9]*.tsc"))
