"""The exact nearest neighbours of points: of their class, of other classes, or of all.

Exact means: ordered by the float64 value of the squared distance, added feature by feature, and then by number. Points
are put into cells (`_cells`) by few numbers that bound distances from below (`_positions`). Cells meet, nearest first,
in one float32 product each, which drops what cannot be a neighbour, rounding included
(`triscreen._kernels.neighbours`). What is left is measured; of few points all pairs are, without cells.
The result does not depend on threads, cells or axes; only the time does.

Nothing grows like n^2: a thread has one product of two cells at a time.
"""

from __future__ import annotations

import threading

import numpy as np

from triscreen._kernels.neighbours import Lists, between, compare_all, finish, visit
from triscreen._utils.threads import breathe, single_threaded_blas
from triscreen.triplets._cells import cell_size, make_cells
from triscreen.triplets._positions import Frame, choose_axes

_AT_ONCE = 1e8  # nanoseconds of work, roughly, that nothing may interrupt
_FIRST = 8  # cells that are met before the others are sorted
_FEW, _PAIR = 8e6, 8  # differences of features (a pair has some more) that take no longer than what cells ask for


def nearest(X, codes, k, threads, kinds=(True, False), progress=None):
    """Return index arrays, a row a point: the k nearest of its class and of other classes; -1 where they end."""
    return [numbers for numbers, _ in search(X, codes, k, threads, kinds, progress=progress, squares=False)]


def k_nearest(X, k, threads, queries=None, progress=None):
    """Return (numbers, squared distances) of the k nearest of X: of each query, or of each point among the others."""
    codes = np.zeros(len(X), dtype=np.int64)
    asking = None if queries is None else np.zeros(len(queries), dtype=np.int64)
    return search(X, codes, k, threads, (True,), queries, asking, progress)[0]


def search(
    X, codes, k, threads, kinds=(True, False), queries=None, query_codes=None, progress=None, squares=True
):  # fmt: skip
    """Return, for each kind, (numbers, squared distances) of the k nearest of X, nearest first, a row a query.

    Parameters
    ----------
    X : array, shape (n, d)
        Finite; float32 stays what it is, everything else becomes float64.
    codes : int array, shape (n,)
        Classes, from 0 on.
    k : int
    threads : Threads
    kinds : tuple of bool
        True: neighbours of the own class; False: of all other ones.
    queries, query_codes : arrays, shapes (n', d) and (n',), optional
        Who asks. Without, the points themselves do, and none is its own neighbour.
    progress : callable, optional
        Called with the share that is done, by one thread at a time.
    squares : bool
        False: None instead of the squared distances.

    Returns
    -------
    list of (int32 array, float64 array)
        As wide as k or the largest number of neighbours that there are; -1 and infinity where a row ends before.
    """
    X, queries = _floats(X, queries)
    alone = queries is None
    most = {True: int(np.bincount(codes).max()) - alone, False: len(codes) - alone}
    widths = np.array([min(k, most[kind]) if kind in kinds else 0 for kind in (True, False)])
    if len(X if alone else queries) * len(X) * (_PAIR + X.shape[1] + widths.max() / 2) <= _FEW:
        found = _of_all(X, codes, *((X, codes) if alone else (queries, query_codes)), alone, widths, threads)
        if progress is not None:
            progress(1.0)
        return [(found[not kind][0], found[not kind][1] if squares else None) for kind in kinds]
    with single_threaded_blas():
        frame = Frame(X, queries)
        choose_axes(frame, X, codes, k)
        size = cell_size(frame.n_axes)
        cells = make_cells(frame, X, codes, size, threads)
        asking = cells if queries is None else make_cells(frame, queries, query_codes, size, threads)
        return _Search(frame, cells, asking, codes, query_codes, widths, kinds, squares).run(threads, progress)


def _of_all(X, codes, queries, query_codes, alone, widths, threads):
    """Return (numbers, squared distances) of both kinds, all pairs measured."""
    shapes, columns = [(len(queries), w) for w in widths], np.ascontiguousarray(X.T)
    found, squares = tuple(np.empty(s, np.int32) for s in shapes), tuple(np.empty(s) for s in shapes)

    def task(_):
        compare_all(queries, query_codes, columns, codes, alone, widths, found, squares)

    threads.run("few neighbours", task, 1)
    return list(zip(found, squares, strict=True))


def _floats(*arrays):
    """Return arrays of one type, float32 or float64, row by row in memory; float32 only if all are."""
    dtype = np.float32 if all(a is None or a.dtype == np.float32 for a in arrays) else np.float64
    return [None if a is None else np.ascontiguousarray(a, dtype=dtype).view(np.ndarray) for a in arrays]


class _Search:
    """Who asks whom for what, and what has been found."""

    def __init__(self, frame, cells, asking, codes, query_codes, widths, kinds, squares):
        self.frame, self.cells, self.asking, self.widths, self.kinds = frame, cells, asking, widths, kinds
        alone, n = asking is cells, len(codes)
        codes = codes[cells.numbers]
        askers = codes if alone else query_codes[asking.numbers]
        own = np.arange(n) if alone else np.full(len(askers), n)
        self.anchors = np.stack([*(np.searchsorted(codes, askers, side) for side in ("left", "right")), own], axis=1)
        self.columns = int(np.diff(cells.bounds).max())
        self.found = [
            (np.empty((len(askers), w), np.int32), np.empty((len(askers), w)) if squares else None) for w in self.widths
        ]

    def run(self, threads, progress=None):
        """Let every cell ask; return what is found, kind by kind."""
        count, done, lock = len(self.asking.first), 0, threading.Lock()

        def task(tq):
            nonlocal done
            self._ask(tq)
            if progress is not None:
                with lock:
                    done += 1
                    progress(done / count)

        threads.run("neighbours", task, count)
        return [self.found[0 if kind else 1] for kind in self.kinds]

    def _ask(self, tq):
        """Find the neighbours of the points of one cell: the nearest cells first, then all that are in reach."""
        rows, scale = int(self.asking.bounds[tq + 1] - self.asking.bounds[tq]), self.frame.scale
        cells, asking, lists = self.cells, self.asking, self._lists(rows)
        gaps, distances = np.empty((2, len(cells.first)))
        between(cells.centres, cells.halves, asking.centres[tq], asking.halves[tq], gaps, distances)
        for order in self._ways(rows, gaps, distances, lists):
            breathe()
            visit(cells, order, gaps, self.columns, asking, tq, self.anchors, lists, scale)
        self._keep(tq, lists)

    def _ways(self, rows, gaps, distances, lists):
        """Yield the cells to visit, nearest first, some at a time: after a few only those that are in reach."""
        step = max(1, int(_AT_ONCE / (rows * self.columns * (0.5 + 0.015 * self.frame.n_axes))))
        left = np.ones(len(gaps), dtype=bool)
        first = np.argpartition(distances, _FIRST)[:_FIRST] if len(gaps) > _FIRST else np.flatnonzero(left)
        yield from _in_steps(first, distances, step)
        left[first] = False
        left &= gaps <= 1.001 * (lists.roots.max() + self.cells.spans[:, 1].max()) ** 2
        yield from _in_steps(np.flatnonzero(left), distances, step)

    def _keep(self, tq, lists):
        numbers = self.asking.numbers[self.asking.bounds[tq] : self.asking.bounds[tq + 1]]
        for kind, (found, squares) in enumerate(self.found):
            shape = len(numbers), self.widths[kind]
            some, values = np.empty(shape, np.int32), np.empty(shape)
            finish(lists.values, lists.numbers, lists.counts, kind, some, values)
            found[numbers] = some
            if squares is not None:
                squares[numbers] = values

    def _lists(self, rows):
        width = max(1, int(self.widths.max()))
        return Lists(
            values=np.empty(2 * rows * width),
            numbers=np.empty(2 * rows * width, np.int32),
            counts=np.zeros((2, rows), np.int64),
            roots=np.repeat(np.where(self.widths > 0, np.inf, -1.0)[:, None], rows, axis=1),
            facts=np.concatenate([self.widths, [0, 0]]),
        )


def _in_steps(cells, distances, step):
    cells = cells[np.argsort(distances[cells], kind="stable")]
    return (cells[begin : begin + step] for begin in range(0, len(cells), step))
