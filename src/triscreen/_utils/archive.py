"""One file for named arrays and a few words about them.

A file is a zip archive. Its first member, ``header.json``, is

    {"format": "triscreen", "version": 6, "kind": ..., "meta": {...}, "arrays": {name: {"dtype": ..., "shape": [...]}}}

and each array follows as ``name.npy``, so ``np.load(file)[name]`` reads it without triscreen. JSON has no infinity and
no NaN: such a float is the object {"$float": "inf"}, "-inf" or "nan"; keys that begin with $ are kept for rules like
this one. Members are stored, not deflated: noise in the last digits of floats hardly compresses, the bytes do not
depend on the version of zlib, and the checksum of a member is the checksum of its numbers. So no member can be larger
than the file, and sizes are compared before anything is read. Nothing is ever pickled.

Version 1 is the same but for checkpoints, whose entries were bound to nothing (`triscreen._utils.checkpoint`); version
2 knew no priors, which paths and solutions have from 3 on; paths have a recipe from 4 on; 5 has classifiers, and steps
of scikit-learn in pipelines; 6 knows what changes from one lambda to the next. All are read for ever.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import os
import secrets
import zipfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from triscreen._utils.validation import shortened
from triscreen.errors import InputError

__all__ = ["fingerprint", "read", "replacing", "target", "write"]

VERSION = 6
_HEADER = "header.json"
_LONGEST_HEADER = 2**28  # bytes
_LONGEST_NPY_HEADER = 2**16
_KINDS = "biufcSUmM"  # of numbers, text and dates
OURS = ".triscreen-"  # begins the name of every file that is not content: temporary files and locks


def target(file, name="file"):
    """Return the path that writing to a file will replace, or refuse one that cannot be written; links are followed."""
    path = Path(os.path.realpath(as_path(file, name)))  # a link stays a link
    if os.path.exists(path) and not os.path.isfile(path):
        raise InputError(f"{name}={str(path)!r} is a folder or a device: {name} must be the name of a file")
    if not os.path.isdir(path.parent):
        raise InputError(f"{name}={str(path)!r}: the folder {str(path.parent)!r} does not exist, make it first")
    if os.path.islink(path):
        raise InputError(f"{name}={str(path)!r} is a link that leads back to itself: {name} must be the name of a file")
    try:
        os.lstat(path)
    except FileNotFoundError:
        pass
    except OSError as err:  # such as a name that is too long
        raise InputError(f"{name}={shortened(str(path))}: {err.strerror}, take another name") from None
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise InputError(f"{name}={str(path)!r}: the folder {str(path.parent)!r} does not let you write, take another")
    return path


@contextlib.contextmanager
def replacing(file: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Give a binary stream whose bytes become the file at the end, all of them or none.

    The file appears under its name when it is complete and on the disk; whatever happens before (a full disk, Ctrl-C,
    the end of the process), a file that was there stays as it was.

    Parameters
    ----------
    file : path
        Where to; it is there whole afterwards, or as it was before.

    Returns
    -------
    context manager
        Of the stream.

    References
    ----------
    docs/architecture.md, "Files and formats"; ours.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "a.txt")
    ...     with replacing(file) as stream:
    ...         _ = stream.write(b"all of it")
    ...         before = os.path.exists(file)
    ...     before, os.path.exists(file)
    (False, True)
    """
    path = target(file)
    temporary = path.with_name(f"{OURS}{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException as err:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(err, OSError):
            raise OSError(err.errno, err.strerror, str(path)) from err  # the name that the user knows
        raise
    sync_folder(path.parent)


def sync_folder(folder):
    """See to it that what was made, renamed and removed in a folder is on the disk, where the system can do that."""
    with contextlib.suppress(OSError):  # not every system lets a folder be opened
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def write(file, kind, meta, arrays):
    """Write arrays and what is to be known about them to one file, all of it or nothing (see `replacing`).

    The same input gives the same bytes.

    Parameters
    ----------
    file : path
        Where to write; a file that is there is replaced.
    kind : str
        What the file holds, such as "solution"; `read` can ask for it.
    meta : dict
        Text, numbers (numpy's too), True, False, None, and lists and dicts of these. Every float comes back exactly,
        inf and nan included; a tuple comes back as a list, a number of numpy as one of Python.
    arrays : dict of str to array
        Of numbers, text or dates; no objects.
    """
    path = target(file)
    if not isinstance(kind, str):
        raise InputError(f"kind={shortened(kind)}: kind must be a text")
    arrays = as_dict(arrays, "arrays")
    arrays = {_as_name(name): _as_array(array, f"arrays[{name!r}]") for name, array in arrays.items()}
    shapes = {name: {"dtype": array.dtype.str, "shape": array.shape} for name, array in arrays.items()}
    meta = as_json(as_dict(meta, "meta"), "meta")
    header = {"format": "triscreen", "version": VERSION, "kind": kind, "meta": meta, "arrays": shapes}
    header = json.dumps(header, allow_nan=False, indent=1).encode()
    if len(header) > _LONGEST_HEADER:
        raise InputError(f"meta takes {len(header):,} bytes: at most {_LONGEST_HEADER:,} can be kept")
    with replacing(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(_member(_HEADER), header)
        for name, array in arrays.items():
            with archive.open(_member(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def read(file, kind=None):
    """Read what `write` wrote; every byte that matters is checked, and nothing is unpickled.

    Parameters
    ----------
    file : path
        A file of triscreen; another file, a damaged one or one of a newer format is refused in one sentence.
    kind : str, optional
        The kind that is wanted; a file of another kind is refused.

    Returns
    -------
    kind : str
    meta : dict
    arrays : dict of str to array
        With the dtype, the shape and the order (C or Fortran) they had.
    """
    return load(file, kind)[1:]


class Content(NamedTuple):
    """What a file holds, and the version of its format."""

    version: int
    kind: str
    meta: dict
    arrays: dict


def load(file, kind=None):
    """Return the `Content` of a file; see `read`."""
    path = as_path(file, "file")
    name = f"file={str(path)!r}"
    if not os.path.isfile(path):
        what = "is a folder or a device" if os.path.exists(path) else "does not exist"
        raise InputError(f"{name} {what}: file must be a file that triscreen has written")
    try:
        stream = open(path, "rb")  # noqa: SIM115
    except OSError as err:
        raise InputError(f"{name} cannot be read: {err.strerror}") from err
    stranger = InputError(f"{name} is not a triscreen file: file must be a file that triscreen has written")
    with stream:
        try:
            start = stream.read(30 + len(_HEADER))
            if start[:4] != b"PK\x03\x04" or start[30:] != _HEADER.encode():  # as every version begins
                raise stranger
            with zipfile.ZipFile(stream) as archive:
                _check_members(archive, [archive.getinfo(_HEADER)], os.fstat(stream.fileno()).st_size)
                header = json.loads(archive.read(_HEADER), object_hook=special, parse_constant=_refuse)
                if header.get("format") != "triscreen":
                    raise stranger
                if header["version"] > VERSION:
                    raise InputError(
                        f"{name} was written by a newer triscreen, format {header['version']}: this one reads up to "
                        f"{VERSION}, update triscreen"
                    )
                for key, type_ in (("version", int), ("kind", str), ("meta", dict), ("arrays", dict)):
                    if type(header[key]) is not type_:
                        raise ValueError(f"its {key} is {shortened(header[key])}")
                if kind is not None and header["kind"] != kind:
                    raise InputError(f"{name} is of kind {header['kind']!r}: a file of kind {kind!r} is needed here")
                _check_members(archive, archive.infolist(), os.fstat(stream.fileno()).st_size)
                return Content(header["version"], header["kind"], header["meta"], _arrays(archive, header["arrays"]))
        except (InputError, MemoryError):
            raise
        except Exception as err:  # damaged bytes lead zipfile, json and numpy to errors of a dozen classes
            why = " ".join(str(err).split()) or type(err).__name__
            raise InputError(f"{name} is damaged or cut short ({why:.80}): use another copy of it") from err


def read_npy(stream, size, most=math.inf):
    """Return the array of an npy file of so many bytes; one whose header tells of more or less is a ValueError.

    Memory is asked for only when that is known, so a file cannot ask for more than its own size; nor for more than
    ``most``, with 8 bytes for each number whatever its type, as data are kept.
    """
    shape, fortran, dtype, _ = _npy_header(stream, size)
    needed = max(size, 8 * math.prod(shape))
    if needed > most:
        raise ValueError(f"it would take {needed:,} bytes, and at most {most:,} are taken; use np.savez")
    flat = np.empty(math.prod(shape), dtype)
    _read_into(stream, memoryview(flat.view(np.uint8) if flat.nbytes else b""))
    return flat.reshape(shape[::-1]).transpose() if fortran else flat.reshape(shape)


def map_npy(stream, size):
    """Return the array of an npy file of so many bytes as one that stays on the disk, read-only; as `read_npy`."""
    shape, fortran, dtype, begin = _npy_header(stream, size)
    if not math.prod(shape):
        return np.empty(shape, dtype)
    return np.memmap(stream, dtype, "r", begin, shape, "F" if fortran else "C")


def _npy_header(stream, size):
    """Return (shape, is it in Fortran's order, type, bytes of the header) of an npy file of so many bytes."""
    begin = stream.read(12)
    width = 2 if begin[6:7] == b"\x01" else 4
    length = int.from_bytes(begin[8 : 8 + width], "little")
    if begin[:6] != b"\x93NUMPY" or not 0 < length <= _LONGEST_NPY_HEADER:
        raise ValueError("it does not begin as an npy file does")
    header = begin + stream.read(8 + width + length - len(begin))
    part = io.BytesIO(header)
    version = np.lib.format.read_magic(part)
    parse = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in parse:
        raise ValueError(f"its npy version {version} is unknown here")
    shape, fortran, dtype = parse[version](part)
    if dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded")
    count = math.prod(shape)
    if min(shape, default=0) < 0 or dtype.itemsize == 0 or len(header) + count * dtype.itemsize != size:
        raise ValueError(f"an array of shape {shape} and type {dtype} does not take {size:,} bytes")
    return shape, fortran, dtype, len(header)


def fingerprint(*arrays):
    """Return a hex digest of the dtypes, shapes and values of arrays; the order in memory does not matter."""
    digest = hashlib.blake2b(digest_size=16)
    for i, array in enumerate(arrays):
        array = _as_array(array, f"arrays[{i}]")
        digest.update(f"{array.dtype.str}{array.shape};".encode())
        flags = ["external_loop", "buffered", "zerosize_ok"]
        for piece in np.nditer(array, flags=flags, buffersize=1 << 16, order="C"):
            digest.update(piece.tobytes())
    return digest.hexdigest()


def as_path(path, name):
    if not isinstance(path, str | bytes | os.PathLike) or "\0" in os.fsdecode(path):
        raise InputError(f"{name}={shortened(path)}: {name} must be a path")
    return Path(os.fsdecode(path))


def as_dict(value, name):
    if not isinstance(value, dict):
        raise InputError(f"{name} is a {type(value).__name__}: {name} must be a dict")
    return value


def _as_name(name):
    good = isinstance(name, str) and 0 < len(name) <= 100 and name.isprintable()
    if not good or name.startswith("$") or "/" in name or "\\" in name:
        raise InputError(
            f"arrays has the name {shortened(name)}: it must be short, printable and without slashes or a leading $"
        )
    return name


def _as_array(array, name):
    if np.ma.is_masked(array):
        raise InputError(f"{name} has masked entries: fill them first")
    try:
        array = np.asarray(array)
    except ValueError as err:
        raise InputError(f"{name} is not a rectangular array ({err})") from None
    if array.dtype.kind not in _KINDS:
        raise InputError(f"{name} has dtype {array.dtype}: it must hold numbers, text or dates, no objects or records")
    return array


def as_json(value, name):
    """Return value as JSON can hold it, or refuse what would not come back as it was."""
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str) or key.startswith("$"):
                raise InputError(f"{name} has the key {shortened(key)}: keys must be texts that do not begin with $")
        return {str(key): as_json(item, f"{name}[{key!r}]") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item, f"{name}[{i}]") for i, item in enumerate(value)]
    if value is None:
        return None
    for kinds, plain in (((bool, np.bool_), bool), ((int, np.integer), int), (str, str)):
        if isinstance(value, kinds):
            return plain(value)
    if isinstance(value, float | np.floating) and (float(value) == value or value != value):
        return float(value) if math.isfinite(value) else {"$float": str(float(value))}
    hint = "put it among the arrays" if isinstance(value, np.ndarray) else "text, float64, lists and dicts can be kept"
    raise InputError(f"{name} is {shortened(value)} of type {type(value).__name__}: {hint}")


def special(item):
    """Give a float for an object that stands for one."""
    if not any(key.startswith("$") for key in item):
        return item
    if item.keys() != {"$float"} or item["$float"] not in ("inf", "-inf", "nan"):
        raise ValueError(f"{shortened(item)} is not known here")
    return float(item["$float"])


def _refuse(constant):
    raise ValueError(f"{constant} is not JSON")


def _member(name):
    member = zipfile.ZipInfo(name)  # of 1980-01-01: the time would make bytes differ
    member.create_system = 3
    member.external_attr = 0o644 << 16
    return member


def _check_members(archive, members, size):
    """Refuse members that are compressed, that overlap, or that are larger than the file: before any is read."""
    members = sorted(members, key=lambda member: member.header_offset)
    for member in members:
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            raise ValueError(f"{member.filename} is compressed")
        if member.filename == _HEADER and member.file_size > _LONGEST_HEADER:
            raise ValueError("its header is too long")
    lengths = [(member.header_offset, 30 + len(member.filename) + member.file_size) for member in members]
    for (begin, length), (following, _) in pairwise([*lengths, (min(archive.start_dir, size), 0)]):
        if begin + length > following:
            raise ValueError("it is shorter than its parts")


def _arrays(archive, shapes):
    if sorted(archive.namelist()) != sorted([_HEADER, *(f"{name}.npy" for name in shapes)]):
        raise ValueError("members are missing or unknown")
    bad = archive.testzip()  # before numpy looks at any byte
    if bad:
        raise ValueError(f"the checksum of {bad} is wrong")
    arrays = {}
    for name, told in shapes.items():
        with archive.open(f"{name}.npy") as member:
            array = read_npy(member, archive.getinfo(f"{name}.npy").file_size)
        if [array.dtype.str, list(array.shape)] != [told["dtype"], told["shape"]] or array.dtype.kind not in _KINDS:
            raise ValueError(f"{name} is not as the header says")
        arrays[name] = array
    return arrays


def _read_into(stream, view):
    """Fill a view with what comes next; a little at a time, because what unpacks takes as much again."""
    filled = 0
    while filled < len(view):
        piece = stream.read(min(1 << 20, len(view) - filled))
        if not piece:
            raise ValueError("it ends too early")
        view[filled : filled + len(piece)] = piece
        filled += len(piece)
    if stream.read(1):
        raise ValueError("it is longer than it says")
