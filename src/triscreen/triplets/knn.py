"""Triplets from labels: each point's k nearest of its class against its k nearest of other classes."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike

from triscreen._utils.progress import searching
from triscreen._utils.threads import Threads
from triscreen._utils.validation import as_count, as_labels, as_points
from triscreen.errors import InputError, SmallClassWarning
from triscreen.triplets.blocks import BlockTriplets
from triscreen.triplets.graph import Given, as_given
from triscreen.triplets.neighbours import nearest
from triscreen.triplets.pairs import MOST_PAIRS

_NAMED_CLASSES = 8


def knn_triplets(
    X: ArrayLike,
    y: ArrayLike,
    k: int | None = 5,
    n_jobs: int | None = None,
    neighbors: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
) -> BlockTriplets:
    """Make triplets from labelled points: k nearest of the same class times k nearest of other classes.

    Neighbours are exact, by Euclidean distance in float64; ties go to the smaller index, so the set is reproducible.
    Small classes are no error: a class of fewer than k + 1 points gives what it has, and a class of one point gives
    no anchor but remains a negative for others; one warning names them all.

    Parameters
    ----------
    X : array, shape (n, d)
        float32 stays what it is, also where it is mapped from a file (``np.memmap``); distances are float64 all the
        same.
    y : array, shape (n,)
        Labels of any type that can be sorted.
    k : int or None
        None: all points of the class times all points of other classes.
    n_jobs : int or None
        Threads for the search.
    neighbors : int array (n, m), sparse matrix (n, n), or a pair of these, optional
        Neighbours that somebody else has found (faiss, pynndescent, a database), instead of a search. A row has numbers
        of points, the nearest first, and ends before the first -1; of a sparse matrix, distances, the smallest first
        (also zeros that are stored; equal ones as they are stored). Those of the point's class are its positives, the
        others its negatives, at most k each. A pair is (positives, negatives). A point that is its own neighbour is
        passed over. Points without a positive or without a negative are no anchors: one warning counts them.

    Returns
    -------
    BlockTriplets

    References
    ----------
    Yoshida, Takeuchi, Karasuyama, KDD 2018, arXiv:1802.03923, section 5 (how triplets are chosen); blocks of them, and
    graphs of neighbours, are ours.

    Examples
    --------
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> ts.knn_triplets(X, y, k=5)
    <BlockTriplets: 3,750 triplets over 1,500 pairs>

    A graph that somebody else has made, here 60 neighbours of any class:

    >>> from sklearn.neighbors import kneighbors_graph
    >>> graph = kneighbors_graph(X, 60, mode="distance")
    >>> ts.knn_triplets(X, y, k=5, neighbors=graph)
    <BlockTriplets: 3,750 triplets over 1,500 pairs>
    """
    k = as_count(k, "k", none="all points")
    threads = Threads(n_jobs)
    X = as_points(X, narrow=True)
    codes, classes = as_labels(y, len(X))
    neighbors = None if neighbors is None else as_given(neighbors, codes)
    if isinstance(neighbors, Given):
        return in_blocks(*neighbors.tables(k))
    sizes = np.bincount(codes)
    name_small_classes(classes, sizes, k, len(X))
    if k is None:
        return _every_pair(codes, sizes)
    if neighbors is None:
        with searching("neighbours") as tell:
            same, other = nearest(X, codes, k, threads, progress=tell)
    else:
        same, other = neighbors.same, neighbors.other
    other[sizes[codes] == 1] = -1
    return in_blocks(same, other)


def _every_pair(codes, sizes):
    n = len(codes)
    if n * (n - 1) > MOST_PAIRS:
        raise InputError(f"k=None for {n} points: all triplets can be listed for at most 46341 points")
    members = [np.flatnonzero(codes == c).astype(np.int32) for c in range(len(sizes))]
    others = [np.flatnonzero(codes != c).astype(np.int32) for c in range(len(sizes))]
    rows = [part for i, c in enumerate(codes) if sizes[c] > 1 for part in (members[c][members[c] != i], others[c])]
    n_positive, n_negative = sizes[codes] - 1, n - sizes[codes]
    n_negative[n_positive == 0] = 0
    return BlockTriplets(np.concatenate(rows), n_positive, n_negative)


def in_blocks(same, other):
    """Return the triplets of tables of positives and negatives, -1 where a row ends; neither for no anchors."""
    both = np.concatenate([same, other], axis=1)
    return BlockTriplets(both[both >= 0], (same >= 0).sum(axis=1), (other >= 0).sum(axis=1))


def name_small_classes(classes, sizes, k, n_points, every_negative=False):
    """Warn of classes that are smaller than k asks for; refuse labels that give no triplet at all."""
    if (sizes < 2).all():
        raise InputError(
            f"y has {len(classes)} classes of one point each: a triplet needs a class of two points or more"
        )
    single = [f"{c!r}" for c in classes[sizes == 1].tolist()]
    small = [] if k is None else [f"{c!r} ({s})" for c, s in zip(classes.tolist(), sizes, strict=True) if 1 < s <= k]
    few = [] if k is None or every_negative else [
        f"{c!r}" for c, s in zip(classes.tolist(), sizes, strict=True) if n_points - s < k
    ]  # fmt: skip
    parts = []
    if small:
        parts.append(f"fewer than k + 1 = {k + 1} points, all of them used: class {_some(small)}")
    if few:
        parts.append(f"fewer than k = {k} points outside, all of them used: class {_some(few)}")
    if single:
        parts.append(f"one point only, no anchor but still a negative: class {_some(single)}")
    if parts:
        warnings.warn("small classes in y; " + "; ".join(parts), SmallClassWarning, stacklevel=3)


def _some(names):
    more = len(names) - _NAMED_CLASSES
    return ", ".join(names[:_NAMED_CLASSES]) + (f" and {more} more" if more > 0 else "")
