"""What triplets of labelled points take, before any search: their number from the labels, seconds from a look."""

from __future__ import annotations

import time

import numpy as np

from triscreen._utils.threads import Threads
from triscreen._utils.validation import as_labels, as_points
from triscreen.triplets.all import AllTriplets, all_triplets
from triscreen.triplets.knn import in_blocks, name_small_classes
from triscreen.triplets.neighbours import search

_PATIENCE = 1.0  # seconds of a look
_NUMBERS = 30_000_000  # of points that are looked at; of more of them a part is, and a half of that
_WARM = 2100  # points of a first search, whose time compilers and caches take


def sketched_triplets(X, y, kind, k):
    """Return triplets as many and as large as those of `labelled_triplets`, of points at random: for estimates."""
    if kind == "all":
        return all_triplets(X, y)
    codes, classes = as_labels(y, len(X))
    n, sizes, rng = len(codes), np.bincount(codes), np.random.default_rng(0)
    name_small_classes(classes, sizes, k, n, every_negative=kind == "lmnn")
    order, own, begin = np.argsort(codes, kind="stable"), sizes[codes], (np.cumsum(sizes) - sizes)[codes]
    same = order[begin[:, None] + _any_of(own - 1, k, rng)]
    same[np.arange(same.shape[1]) >= (own - 1)[:, None]] = -1
    if kind == "lmnn":
        return AllTriplets(codes, same, None)
    places = _any_of(n - own, k, rng)
    other = order[places + np.where(places >= begin[:, None], own[:, None], 0)]
    other[(np.arange(other.shape[1]) >= (n - own)[:, None]) | (own == 1)[:, None]] = -1
    return in_blocks(same.astype(np.int32), other.astype(np.int32))


def _any_of(numbers, k, rng):
    """Return k numbers at random below each of ``numbers``, or as many as the largest of these."""
    shape = len(numbers), int(min(k, numbers.max()))
    return (rng.random(shape, dtype=np.float32) * numbers[:, None] * (1 - 1e-6)).astype(np.int64)


def search_seconds(X, y, k, n_jobs=None, kinds=(True, False)):
    """Return about how many seconds the search for neighbours of labelled points takes, within a few seconds.

    Some cells look for neighbours among all points; where there are very many, among a part of the points and among
    half of that part, from which the growth is taken.
    """
    X = as_points(X, narrow=True)
    codes = as_labels(y, len(X))[0]
    _look(X[:_WARM], codes[:_WARM], k, n_jobs, kinds)
    n, part = len(X), max(2 * _WARM, _NUMBERS // X.shape[1])
    if n <= part:
        return sum(_look(X, codes, k, n_jobs, kinds))
    rows = np.linspace(0, n - 1, part).astype(np.int64)
    X, codes = X[rows], codes[rows]
    half = _look(X[::2], codes[::2], k, n_jobs, kinds)[1]
    before, asking = _look(X, codes, k, n_jobs, kinds)
    growth = np.clip(np.log2(max(asking, 1e-9) / max(half, 1e-9)), 1.0, 2.0)
    return before * n / part + asking * (n / part) ** growth


def _look(X, codes, k, n_jobs, kinds):
    """Return (seconds before cells ask, seconds that they take about)."""
    threads, begin = _Looking(n_jobs), time.perf_counter()
    search(X, codes, k, threads, kinds, squares=False)
    spent = time.perf_counter() - begin
    return spent - threads.spent, threads.seconds


class _Looking(Threads):
    """Lets some cells of a search ask, here and there, and then ends it: what it finds is of no use."""

    spent = seconds = 0.0

    def run(self, kind, task, n_chunks):
        """Call the task for chunks at random, until a second is over."""
        if kind != "neighbours":
            super().run(kind, task, n_chunks)
            return
        order = np.random.default_rng(0).permutation(n_chunks)
        done, begin, step = 0, time.perf_counter(), 4 * self.n_jobs
        while done < n_chunks and self.spent < _PATIENCE:
            some = order[done : done + step]
            super().run(kind, lambda chunk, some=some: task(some[chunk]), len(some))
            done += len(some)
            self.spent = time.perf_counter() - begin
        self.seconds = self.spent * n_chunks / done
