"""Files that every worker can read: arrays and plans under names that say what is in them, and rows of points in parts.

A name ends with a hash of the content. So what is there already need not be written again (a second start, two fits at
once), and whoever knows a name knows the content.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from triscreen._utils.archive import fingerprint, replacing
from triscreen.errors import InputError


def keep(folder, name, array):
    """Write an array, unless it is there as it should be; return its name."""
    array = np.ascontiguousarray(array)
    known_by = fingerprint(array)
    file = f"{name}-{known_by}.npy"
    if not _holds(Path(folder) / file, known_by):
        with replacing(Path(folder) / file) as stream:
            np.lib.format.write_array(stream, array, allow_pickle=False)
    return file


def _holds(file, known_by):
    """Does a file that may be there hold what its name says? It may have been damaged since it was written."""
    try:
        return file.exists() and fingerprint(mapped(file)) == known_by
    except InputError:
        return False


def keep_text(folder, name, content):
    """Write what JSON can say; return its name."""
    text = json.dumps(content, sort_keys=True).encode()
    file = f"{name}-{hashlib.blake2b(text, digest_size=16).hexdigest()}.json"
    with replacing(Path(folder) / file) as stream:  # a few bytes: rather anew than damaged
        stream.write(text)
    return file


@lru_cache(maxsize=16)
def read_text(folder, file):
    """Return what `keep_text` wrote."""
    try:
        content = (Path(folder) / file).read_bytes()
        known = hashlib.blake2b(content, digest_size=16).hexdigest()
        if not file.endswith(f"-{known}.json"):
            raise ValueError("its content has changed")
        return json.loads(content)
    except (OSError, ValueError) as err:
        raise _unreadable(Path(folder) / file, err) from None


def mapped(file):
    """Return the array of an npy file, mapped: what is not looked at is not read."""
    try:
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as err:
        raise _unreadable(file, err) from None
    if not isinstance(array, np.ndarray):
        raise _unreadable(file, "it is no npy file")
    return array


def _unreadable(file, why):
    return InputError(f"{str(file)!r} cannot be read: {' '.join(str(why).split())}")


class Parts:
    """The rows of several npy files, one after the other.

    Parameters
    ----------
    files : list of (str, int)
        Paths, and how many rows each has.
    """

    def __init__(self, files):
        self.files = [Path(file) for file, _ in files]
        self.ends = np.cumsum([0, *(rows for _, rows in files)])

    def __len__(self):
        return int(self.ends[-1])

    def block(self, start, stop):
        """Return the rows start <= i < stop."""
        return self.take(np.arange(start, stop))

    def take(self, numbers):
        """Return the rows of these numbers, which rise."""
        places = np.searchsorted(numbers, self.ends)
        pieces = []
        for part, (begin, end) in enumerate(pairwise(places)):
            if end > begin:
                rows = numbers[begin:end] - self.ends[part]
                pieces.append(_rows(self._open(part), rows))
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def _open(self, part):
        rows = mapped(self.files[part])
        count = int(self.ends[part + 1] - self.ends[part])
        if rows.ndim != 2 or len(rows) != count or rows.dtype.kind not in "fiu":
            raise InputError(
                f"{str(self.files[part])!r} has shape {rows.shape} and type {rows.dtype}: it had {count} rows of "
                "numbers when the work began"
            )
        return rows


def _rows(array, rows):
    whole = len(rows) and rows[-1] - rows[0] + 1 == len(rows)
    found = array[rows[0] : rows[-1] + 1] if whole else array[rows]
    return np.ascontiguousarray(found, dtype=np.float32 if found.dtype == np.float32 else np.float64).view(np.ndarray)
