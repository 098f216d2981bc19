"""One search for many uses: the neighbours of parts of points from those of all.

Of the m nearest of all points those that belong to a part are the nearest of the part, in the same order. Where fewer
than k of them are left though the part has more, the point is searched for again. m is chosen so that this is rare for
parts at random: of m neighbours m (1 - s) +- sqrt(m s (1 - s)) stay where a share s of the points leaves.
"""

from __future__ import annotations

import numpy as np

from triscreen._utils.progress import searching
from triscreen.triplets.graph import Found, Lists
from triscreen.triplets.neighbours import nearest, search

_DEVIATIONS = 2.5
_MOST = 4  # times as many neighbours as are wanted, and a few: more of them cost as much as they save
_RARE = 0.2  # share of points that are searched for again one by one


class SharedSearch:
    """The k nearest of each kind for any part of some points.

    Parameters
    ----------
    X : array, shape (n, d)
    codes : int array, shape (n,)
    k : int
    leaving : float
        The largest share of points that a part leaves out.
    threads : Threads
    kinds : tuple of bool
        As for `search`.
    """

    def __init__(self, X, codes, k, leaving, threads, kinds=(True, False)):
        self.X, self.codes, self.k, self.threads, self.kinds = X, codes, k, threads, kinds
        self.more = _enough(k, leaving)
        self._lists = None

    def part(self, rows):
        """Return the neighbours of the points in ``rows`` among these, as a search in ``X[rows]`` finds them."""
        X, codes = self.X[rows], self.codes[rows]
        whole = len(rows) == len(self.X)
        # The order of equal distances is that of numbers: parts in another order are searched by themselves.
        if not (np.diff(rows) > 0).all() or (self.more is None and not whole):
            return self._found(self._search(X, codes, self.k))
        if self._lists is None:
            tables = self._search(self.X, self.codes, self.more or self.k)
            self._lists = [Lists.of_table(table) for table in tables]
        there = _there(codes)
        tables = [
            self._table(lists.part(rows), there[kind]) for lists, kind in zip(self._lists, self.kinds, strict=True)
        ]
        short = np.zeros(len(rows), dtype=bool)
        for table, kind in zip(tables, self.kinds, strict=True):
            short |= (table >= 0).sum(axis=1) < np.minimum(there[kind], self.k)
        if short.mean() > _RARE:
            return self._found(self._search(X, codes, self.k))
        if short.any():
            self._again(X, codes, np.flatnonzero(short), tables)
        return self._found(tables)

    def _search(self, X, codes, k):
        with searching("neighbours") as tell:
            return nearest(X, codes, k, self.threads, self.kinds, progress=tell)

    def _table(self, lists, there):
        """Return lists as a table that is as wide as the one of a search."""
        return lists.table(self.k, width=int(min(self.k, there.max())))

    def _again(self, X, codes, rows, tables):
        """Search for the neighbours of some points once more, and write them into their rows."""
        found = search(X, codes, self.k + 1, self.threads, self.kinds, X[rows], codes[rows], squares=False)
        for table, (numbers, _) in zip(tables, found, strict=True):
            numbers = numbers.copy()
            numbers[numbers == rows[:, None]] = -1  # a point that asks is none of its own neighbours
            order = np.argsort(numbers < 0, axis=1, kind="stable")
            width = min(table.shape[1], numbers.shape[1])
            table[rows, :width] = np.take_along_axis(numbers, order, axis=1)[:, :width]

    def _found(self, tables):
        by_kind = dict(zip(self.kinds, tables, strict=True))
        return Found(by_kind.get(True), by_kind.get(False))


def _there(codes):
    """Return how many neighbours of each kind a point has at most."""
    own = np.bincount(codes)[codes]
    return {True: own - 1, False: len(codes) - own}


def _enough(k, leaving):
    """Return how many neighbours to look for so that k of them are left, mostly; None: too many to be worth it."""
    staying = 1.0 - leaving
    for more in range(k, _MOST * k + 8):
        if more * staying - _DEVIATIONS * np.sqrt(more * staying * leaving) >= k:
            return more
    return None
