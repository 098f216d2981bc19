"""Exact neighbours on a cluster: blocks of those who ask times blocks of those who are asked, merged.

The order is that of `triscreen.triplets.neighbours`, by distance and then by number, so the result is the same to the
last tie. What a block has found is kept in the folder: a search that was ended goes on where it was.
"""

from __future__ import annotations

import hashlib
from itertools import pairwise

import numpy as np

from triscreen._utils.archive import fingerprint, replacing
from triscreen._utils.progress import searching
from triscreen._utils.threads import Threads, chunk_bounds
from triscreen.distributed.store import Parts, mapped
from triscreen.errors import InputError
from triscreen.triplets.neighbours import search

# Bytes of points that are asked at a time; those who ask, in blocks of so many.
ASKED, ASKING = 1 << 29, 1 << 17


def nearest_on(pool, source, codes_file, known_by, k, kinds, check=lambda: None):
    """Return tables of neighbours, one for each kind, as `triscreen.triplets.neighbours.nearest` does.

    Parameters
    ----------
    pool
        Who works.
    source : Source
    codes_file : str
        Of the folder.
    known_by : str
        Hash of the points and labels.
    k : int
    kinds : tuple of bool
        True: of the own class; False: of other classes.
    check : callable
        Raises where the points have changed meanwhile: then nothing is kept.
    """
    n = len(source)
    name = hashlib.blake2b(f"{known_by} {k} {kinds}".encode(), digest_size=16).hexdigest()
    kept = _kept(source.folder / f"nearest-{name}.npz")
    if kept is not None:
        return kept
    asking, asked = _blocks(n, source.dim)
    blocks = [(q, p) for q in asking for p in asked]
    files = [source.folder / f"near-{name}-{'-'.join(map(str, (*q, *p)))}.npz" for q, p in blocks]
    found = [_kept(file) for file in files]
    todo = [i for i, block in enumerate(found) if block is None]
    jobs = [(source.files, str(source.folder / codes_file), *blocks[i], k, kinds) for i in todo]
    with searching("neighbours") as tell:

        def arrived(number, block):
            found[todo[number]] = block
            _keep(files[todo[number]], block)
            tell(1 - sum(other is None for other in found) / len(found))

        pool.map("neighbours", find, jobs, arrived=arrived, long=True)
    try:
        check()
    except InputError:
        _drop(files)
        raise
    rows = [found[i : i + len(asked)] for i in range(0, len(found), len(asked))]
    tables = [np.concatenate([merged(some, kind, k) for some in rows]) for kind in range(len(kinds))]
    tables = [table[:, : max(1, int((table >= 0).sum(axis=1).max()))] for table in tables]
    _keep(source.folder / f"nearest-{name}.npz", tables)
    _drop(files)
    return tables


def _drop(files):
    for file in files:
        file.unlink(missing_ok=True)


def size_of(n, dim):
    """Return how many blocks there are, and bytes that a task of one takes: points of both kinds, and copies."""
    asking, asked = _blocks(n, dim)
    return len(asking) * len(asked), 3.0 * min(ASKED, 8 * n * dim) + 16.0 * dim * min(ASKING, n)


def _blocks(n, dim):
    """Return the bounds of blocks of those who ask, and of those who are asked."""
    return _bounds(n, -(-n // ASKING)), _bounds(n, -(-8 * n * dim // ASKED))


def _bounds(n, count):
    bounds = chunk_bounds(n, max(1, min(n, count)))
    return list(pairwise(bounds))


def _keep(file, arrays):
    with replacing(file) as stream:
        np.savez(stream, *arrays, seal=_seal(file, arrays))


def _seal(file, arrays):
    return np.frombuffer((file.name + fingerprint(*arrays)).encode(), dtype=np.uint8)


def _kept(file):
    """Return what was found before; None: nothing was, or the file is damaged."""
    try:
        with open(file, "rb") as stream, np.load(stream, allow_pickle=False) as content:
            arrays = [content[name] for name in content.files if name != "seal"]
            return arrays if np.array_equal(content["seal"], _seal(file, arrays)) else None
    except Exception:  # a zip whose directory is damaged may raise anything
        return None


def merged(blocks, kind, k):
    """Return the k nearest of what several blocks of points have found for the same askers: -1 where they end."""
    numbers = np.concatenate([block[2 * kind] for block in blocks], axis=1)
    squares = np.concatenate([block[2 * kind + 1] for block in blocks], axis=1)
    order = np.lexsort((numbers, squares), axis=1)[:, :k]
    found = np.full((len(numbers), k), -1, dtype=np.int32)
    found[:, : order.shape[1]] = np.take_along_axis(numbers, order, axis=1)
    return found


def find(files, codes_file, asking, asked, k, kinds, n_jobs=1):
    """Return numbers and squared distances, kind by kind, of the nearest of one block for those of another (a task).

    Where a row ends, the number is -1 and the square infinite.
    """
    parts, codes = Parts(files), mapped(codes_file)
    X, queries = parts.block(*asked), parts.block(*asking)
    own, others = np.asarray(codes[slice(*asked)], dtype=np.int64), np.asarray(codes[slice(*asking)], dtype=np.int64)
    out = []
    # One more than wanted: a point finds itself.
    for numbers, squares in search(X, own, k + 1, Threads(n_jobs), kinds, queries, others):
        itself = numbers == (np.arange(*asking) - asked[0])[:, None]
        squares = np.where(itself | (numbers < 0), np.inf, squares)
        numbers = np.where(np.isinf(squares), -1, numbers + asked[0]).astype(np.int32)
        # Those that are left keep their order.
        order = np.argsort(np.isinf(squares), axis=1, kind="stable")[:, :k]
        out += [np.take_along_axis(numbers, order, axis=1), np.take_along_axis(squares, order, axis=1)]
    return out
