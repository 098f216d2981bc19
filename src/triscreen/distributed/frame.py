"""The coordinates inside, where no machine has all points: centre, unit of length, span of the data, block by block.

Blocks are cut by the number of points and features alone, and what they give is added in their order.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from triscreen._utils.threads import chunk_bounds, single_threaded_blas
from triscreen._utils.validation import check_scale
from triscreen.distributed.store import Parts
from triscreen.distributed.sums import added
from triscreen.errors import InputError
from triscreen.problem.span import basis_of, is_faithful, is_full, lengths_of
from triscreen.problem.units import POINT, Units

_BLOCK = 1 << 23  # numbers in a block of rows


@dataclass(frozen=True, eq=False)
class Frame:
    """From points of the user's to points inside.

    Attributes
    ----------
    mean : array, shape (d,)
    units : Units
    basis : array, shape (d, s), or None
    """

    mean: np.ndarray = field(repr=False)
    units: Units
    basis: np.ndarray | None = field(repr=False)

    def inside(self, rows):
        """Return some points as they are inside."""
        centred = self.units.into(rows.astype(np.float64) - self.mean, POINT)
        return centred if self.basis is None else centred @ self.basis


@dataclass(frozen=True, eq=False)
class Look:
    """What a first look at all points tells: their mean, their corners (2, d), and a hash of them."""

    mean: np.ndarray = field(repr=False)
    corners: np.ndarray = field(repr=False)
    known_by: str


def blocks_of(n, dim):
    """Return the bounds of blocks of rows."""
    return chunk_bounds(n, max(1, -(-n * dim // _BLOCK)))


def look_at(pool, source):
    """Look at all points once: refuse what is not finite or of no scale to work with."""
    found = _by_blocks(pool, "look", _look, source)
    total = added([block[0] for block in found])
    corners = np.stack([np.min([block[1] for block in found], axis=0), np.max([block[2] for block in found], axis=0)])
    known_by = hashlib.blake2b("".join(block[3] for block in found).encode(), digest_size=16).hexdigest()
    check_scale(corners, "X")
    return Look(total / len(source), corners, known_by)


def check_unchanged(pool, source, look):
    """Refuse files that are not as they were at a first look: what was made of them since is of neither state."""
    if look_at(pool, source).known_by != look.known_by:
        raise InputError("X: its files have changed since the work began; start again when nobody writes to them")


@single_threaded_blas()
def make_frame(pool, source, look, reduces, keeps=lambda basis: True):
    """Return the `Frame`; reduces: to the span of the data, where that pays and ``keeps(basis)`` says that it may."""
    check_scale(look.corners - look.mean, "X, of which triplets speak,")
    frame = Frame(look.mean, Units.of(look.corners - look.mean), None)
    n, dim = len(source), source.dim
    if not reduces or (n > dim and is_full(added(_by_blocks(pool, "squares", _squares, source, frame)))):
        return frame
    rows = np.concatenate(_by_blocks(pool, "span", _triangle, source, frame))
    basis = basis_of(rows if len(rows) <= dim else np.linalg.qr(rows, mode="r"), n)
    if basis is None or not keeps(basis):
        return frame
    lengths = np.sqrt(added(_by_blocks(pool, "lengths", _lengths, source, frame, basis)))
    return Frame(frame.mean, frame.units, basis) if is_faithful(*lengths) else frame


def _by_blocks(pool, title, function, source, *more):
    bounds = blocks_of(len(source), source.dim)
    jobs = [(source.files, start, stop, *more) for start, stop in pairwise(bounds)]
    return pool.map(title, function, jobs)


# -- tasks: functions of what files hold -------------------------------------------------------------------------------


def _look(files, start, stop, n_jobs=1):
    rows = Parts(files).block(start, stop)
    good = np.isfinite(rows)
    if not good.all():
        row, column = np.argwhere(~good)[0]
        raise InputError(
            f"X[{start + row}, {column}] is {rows[row, column]}: X must be finite, without NaN or infinity"
        )
    known_by = hashlib.blake2b(f"{rows.dtype.str}{rows.shape}".encode() + rows.tobytes(), digest_size=16).hexdigest()
    total = rows.sum(axis=0, dtype=np.float64)
    return total, rows.min(axis=0).astype(np.float64), rows.max(axis=0).astype(np.float64), known_by


@single_threaded_blas()
def _squares(files, start, stop, frame, n_jobs=1):
    rows = frame.inside(Parts(files).block(start, stop))
    return rows.T @ rows


@single_threaded_blas()
def _triangle(files, start, stop, frame, n_jobs=1):
    rows = frame.inside(Parts(files).block(start, stop))
    return np.linalg.qr(rows, mode="r") if len(rows) > rows.shape[1] else rows


@single_threaded_blas()
def _lengths(files, start, stop, frame, basis, n_jobs=1):
    return np.square(lengths_of(frame.inside(Parts(files).block(start, stop)), basis))
