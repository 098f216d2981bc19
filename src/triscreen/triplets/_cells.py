"""Points in cells: small boxes of neighbours, class by class, as float32 offsets from float64 centres.

An offset is rounded by 2^-24 of itself. Together with what `Frame` allows for, the most of it in a cell is the cell's
slack (four times that, as the kernel puts another such part of its own error on it).
"""

from __future__ import annotations

import numpy as np

from triscreen._kernels.neighbours import Cells
from triscreen.triplets._positions import blocks

_LOOK = 512  # points that choose the axis of a cut
_COPY = 1 << 30  # bytes: points are copied in the order of the cells up to here


def cell_size(axes):
    """Points of a cell: fewer axes let more of smaller cells be passed by."""
    return 128 if axes <= 4 else 256 if axes <= 8 else 768


def _cut(guide, members, size):
    """Cut points into near equal parts of at most ``size``, again and again across their longest axis.

    Where values tie, the smaller numbers go to the left, and every part keeps its order: equal points stay in order.
    """
    parts, stack = [], [members]
    while stack:
        rows = stack.pop()
        pieces = -(-len(rows) // size)
        if pieces == 1:
            parts.append(rows)
            continue
        axis = int(np.argmax(guide[rows[:: max(1, len(rows) // _LOOK)]].var(axis=0, dtype=np.float64)))
        values, half = guide[rows, axis], len(rows) * (pieces // 2) // pieces
        middle = np.partition(values, half)[half]
        left = values < middle
        left[np.flatnonzero(values == middle)[: half - np.count_nonzero(left)]] = True
        stack += [rows[~left], rows[left]]
    return parts


def _bounds(parts, size):
    """Return where cells begin and end: parts of small classes share one."""
    ends, total, begun = [], 0, 0
    for part in parts:
        if total + len(part) - begun > size and total > begun:
            ends.append(total)
            begun = total
        total += len(part)
    return np.array([0, *ends, total])


def make_cells(frame, X, codes, size, threads):
    """Return the cells of points in classes ``codes``; classes follow one another, and so do the parts of a class."""
    by_class = np.argsort(codes, kind="stable")
    classes = np.split(by_class, np.flatnonzero(np.diff(codes[by_class])) + 1)
    guide = X if frame.axes is None else _guide(frame, X)
    parts = [part for members in classes for part in _cut(guide, members, size)]
    del guide
    order, bounds = np.concatenate(parts), _bounds(parts, size)
    n, axes, count = len(X), frame.n_axes, len(bounds) - 1
    wider = 0 if frame.axes is None else frame.axes.shape[1] + 1
    copied = X.nbytes <= _COPY
    cells = Cells(
        offsets=np.empty(n * axes, np.float32),
        squares=np.empty(n, np.float32),
        wide=np.empty((n, wider), np.float32),
        numbers=order.astype(np.int32),
        rows=np.arange(n) if copied else order,
        X=np.empty_like(X) if copied else X,
        bounds=bounds,
        first=np.minimum.reduceat(order, bounds[:-1]),
        centres=np.empty((count, axes)),
        halves=np.empty((count, axes), np.float32),
        spans=np.empty((count, 3)),
    )

    def fill(t):
        _fill(cells, t, X[order[bounds[t] : bounds[t + 1]]], frame, copied)

    threads.run("cells", fill, count)
    return cells


def _fill(cells, t, X, frame, copied):
    """Put points into their cell."""
    part = slice(cells.bounds[t], cells.bounds[t + 1])
    narrow, wide, off = frame.put(X)
    centre = (narrow.min(axis=0) + narrow.max(axis=0)) / 2
    offsets = (narrow - centre).astype(np.float32)
    squares = np.einsum("ij,ij->i", offsets, offsets, dtype=np.float64)
    axes = offsets.shape[1]
    cells.offsets[axes * part.start : axes * part.stop].reshape(axes, -1)[:] = offsets.T
    cells.squares[part], cells.wide[part] = squares, wide
    if copied:
        cells.X[part] = X
    cells.centres[t], cells.halves[t] = centre, np.abs(offsets).max(axis=0)
    largest, widest = squares.max(), np.einsum("ij,ij->i", wide, wide).max()
    off = off.max() + (axes + wide.shape[1]) * 2.0**-100  # underflow
    cells.spans[t] = largest, off + 2.0**-22 * np.sqrt(largest), off + 2.0**-22 * np.sqrt(widest)


def _guide(frame, X):
    """Return about where points are, for the cuts only."""
    guide = np.empty((len(X), frame.cut), np.float32)
    for b in blocks(*X.shape):
        guide[b] = (X[b] - frame.centre) @ (frame.axes[:, : frame.cut] * frame.scale)
    return guide
