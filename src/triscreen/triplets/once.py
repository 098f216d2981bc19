"""Pairs that are the same for distances and matrices: of identical points, or one the other way round.

Where many points are identical (data of yes and no, of counts), so are their neighbours, and many pairs. Each of these
is worked on once: distances are found for those that differ, and handed out; weights are added up, and then make the
matrix. Triplets know nothing of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from triscreen._utils.threads import chunk_bounds, count_chunks

# It pays where at most this share of the points is left, and of the pairs.
_POINTS, _PAIRS = 0.7, 0.7
# Columns of the points that are looked at first: these tell most points apart.
_COLUMNS = 16


@dataclass(frozen=True, eq=False)
class Once:
    """What differs among the pairs of a set.

    Attributes
    ----------
    pairs : ListedPairs
        The pairs that differ, over the points that differ.
    places : intp array
        For each pair of the set, its number among these.
    kinds : intp array
        For each point of the set, its number among those.
    most : int
        How often the most frequent pair occurs.
    """

    pairs: object
    places: np.ndarray
    kinds: np.ndarray
    most: int

    @classmethod
    def of(cls, triplets, kind):
        """Return what differs in a set; None: nearly all. kind: makes a set of pairs."""
        kinds = _kinds(triplets.points) if triplets.n_pairs else None
        if kinds is None:
            return None
        count = int(kinds.max()) + 1
        first, second = kinds[triplets.first], kinds[triplets.second]
        differ, places = np.unique(
            np.minimum(first, second) * np.int64(count) + np.maximum(first, second), return_inverse=True
        )
        if len(differ) > _PAIRS * triplets.n_pairs:
            return None
        first, second = (part.astype(np.int32) for part in divmod(differ, count))
        pairs = _set(kind, count, first, second, triplets.points[_rows(kinds, count)])
        places = places.ravel().astype(np.intp)
        return cls(pairs, places, kinds, int(np.bincount(places).max()))

    def restrict(self, pairs, points):
        """Return what differs among some of the set's pairs, which need these points."""
        places, used = self.places[pairs], np.zeros(self.pairs.n_pairs, dtype=bool)
        used[places] = True
        _, kept, first, second = self.pairs._needed(used)
        less = _set(type(self.pairs), len(kept), first, second, self.pairs.points[kept])
        number = np.empty(self.pairs.n_points, dtype=np.intp)
        number[kept] = np.arange(len(kept))
        return Once(less, (np.cumsum(used) - 1)[places], number[self.kinds[points]], self.most)

    def over(self, points):
        """Return the same with the set's points in other coordinates, in which identical ones still are."""
        pairs = self.pairs
        made = _set(type(pairs), pairs.n_points, pairs.first, pairs.second, points[_rows(self.kinds, pairs.n_points)])
        return Once(made, self.places, self.kinds, self.most)

    def hand_out(self, values, threads):
        """Return a number for each pair of the set from those of the pairs that differ."""
        out = np.empty(len(self.places))
        chunks = count_chunks(len(out), 2)
        bounds = chunk_bounds(len(out), chunks)

        def task(c):
            part = slice(bounds[c], bounds[c + 1])
            values.take(self.places[part], out=out[part], mode="clip")

        threads.run("hand out", task, chunks)
        return out

    def add_up(self, weights):
        """Return the weights of the pairs that differ from those of the pairs of the set."""
        return np.bincount(self.places, weights, self.pairs.n_pairs)


def _set(kind, n_points, first, second, points):
    made = kind.__new__(kind)
    made._set_pairs(n_points, first, second)
    made.points, made._once = points, None
    return made


def _kinds(X):
    """Return for every point its number among those that differ; None: nearly all of them do."""
    some = X[:, :: max(1, X.shape[1] // _COLUMNS)]
    for part in (some, X) if some.shape[1] < X.shape[1] else (X,):
        kinds, rows = _numbered(part)
        if len(rows) > _POINTS * len(X):
            return None
    return kinds if (X[rows][kinds] == X).all() else None


def _numbered(X):
    """Return a number for every row, the same for identical ones, and a row for each number."""
    factors = np.random.default_rng(0).integers(1 << 62, size=X.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    sums = np.zeros(len(X), dtype=np.uint64)
    for column, factor in zip(X.T, factors, strict=True):  # a column at a time: nothing else is as large as the points
        sums += np.ascontiguousarray(column).view(f"u{X.dtype.itemsize}").astype(np.uint64) * factor
    _, rows, kinds = np.unique(sums, return_index=True, return_inverse=True)
    order = np.argsort(rows)  # in the order of the points: neighbours in memory stay neighbours
    number = np.empty(len(rows), dtype=np.intp)
    number[order] = np.arange(len(rows))
    return number[kinds.ravel()], rows[order]


def _rows(kinds, count):
    """Return a point of each kind, the first one."""
    rows = np.empty(count, dtype=np.intp)
    rows[kinds[::-1]] = np.arange(len(kinds))[::-1]
    return rows
