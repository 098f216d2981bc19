"""Are the triplets of labelled points those of their nearest neighbours? In exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from triscreen._utils.validation import as_count, as_labels, as_points
from triscreen.errors import InputError

MOST, MOST_TRIPLETS = 5000, 100_000_000
_U, _TINY = 2.0**-52, 1e-290


class Neighbours(NamedTuple):
    """What was found: anchors; those that floating point could not tell about; those where it chose the wrong one.

    The last are no mistakes: squared distances that differ by less than their rounding, (d + 6) 2^-52 of them.

    Attributes
    ----------
    anchors, exact, rounded : int

    References
    ----------
    docs/reliability.md; ours.

    Examples
    --------
    >>> import triscreen as ts
    >>> X, y = [[0.0], [1.0], [3.0], [4.5]], [0, 0, 1, 1]
    >>> ts.verification.check_neighbours(X, y, ts.knn_triplets(X, y, k=1), 1, 1)
    Neighbours(anchors=4, exact=0, rounded=0)
    """

    anchors: int
    exact: int
    rounded: int


def check_neighbours(
    X: ArrayLike, y: ArrayLike, triplets: Any, n_positives: int | None, n_negatives: int | None
) -> Neighbours:
    """Compare triplets with the nearest neighbours of each point, or refuse them.

    Parameters
    ----------
    X, y : arrays, shapes (n, d) and (n,)
        Points and labels, as they were given.
    triplets : TripletSet
        Or whatever has ``n_triplets`` and ``indices(start, stop)``.
    n_positives, n_negatives : int or None
        So many nearest points of the class, and of other classes, all of them where there are fewer; None: all.

    Returns
    -------
    Neighbours

    References
    ----------
    docs/reliability.md; ours.

    Examples
    --------
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_iris
    >>> from triscreen.verification import check_neighbours
    >>> X, y = load_iris(return_X_y=True)
    >>> check_neighbours(X, y, ts.knn_triplets(X, y, k=3), 3, 3).anchors
    150
    """
    X, wanted = as_points(X), [as_count(k, "k", none="all") for k in (n_positives, n_negatives)]
    codes, _ = as_labels(y, len(X))
    if len(X) > MOST:
        raise InputError(f"X has {len(X)} points: neighbours are looked at again for at most {MOST}")
    if triplets.n_triplets > MOST_TRIPLETS:
        raise InputError(
            f"triplets are {triplets.n_triplets:,}: they are looked at one by one, at most {MOST_TRIPLETS:,}"
        )
    chosen = _chosen(triplets, len(X))
    found = np.zeros(2, dtype=int)
    anchors, count = 0, 0
    for i in range(len(X)):
        same = codes == codes[i]
        groups = same.copy(), ~same
        groups[0][i] = False
        mine = [part[i] for part in chosen]
        if groups[0].any() and groups[1].any():
            anchors += 1
            count += int(mine[0].sum()) * int(mine[1].sum())
            for group, k, part in zip(groups, wanted, mine, strict=True):
                found += _compare(X, i, group, k, part)
        elif mine[0].any() or mine[1].any():
            raise InputError(f"triplets have the anchor {i}, which has no point of its own class, or of another")
    if count != triplets.n_triplets:
        raise InputError(f"triplets are {triplets.n_triplets}: the neighbours of {anchors} anchors make {count}")
    _each_once(triplets, chosen)
    return Neighbours(anchors, *found.tolist())


def _chosen(triplets, n):
    """Return (positives, negatives) of every point, as masks (n, n)."""
    masks = np.zeros((2, n, n), dtype=bool)
    for start in range(0, triplets.n_triplets, 1 << 20):
        rows = triplets.indices(start, min(start + (1 << 20), triplets.n_triplets))
        for mask, column in zip(masks, (1, 2), strict=True):
            mask[rows[:, 0], rows[:, column]] = True
    return masks


def _each_once(triplets, chosen):
    """Refuse triplets that are as many as positives times negatives of each anchor, but one of them twice."""
    positive, negative = (np.cumsum(mask, axis=1) - 1 for mask in chosen)  # numbers among those of their anchor
    width = negative[:, -1] + 1
    first = np.concatenate([[0], np.cumsum((positive[:, -1] + 1) * width)])
    seen = np.zeros(triplets.n_triplets, dtype=bool)
    for start in range(0, len(seen), 1 << 20):
        i, j, k = triplets.indices(start, min(start + (1 << 20), len(seen))).T.astype(np.int64)
        seen[first[i] + positive[i, j] * width[i] + negative[i, k]] = True
    if not seen.all():
        raise InputError(f"triplets have {int((~seen).sum())} of their rows twice, and leave out as many")


def _compare(X, i, group, k, chosen):
    """Return (1 if exact arithmetic was needed, 1 if rounding chose) for the neighbours of one point in one group."""
    k = int(group.sum()) if k is None else min(k, int(group.sum()))
    if (chosen & ~group).any() or chosen.sum() != k:
        raise InputError(f"triplets have {int(chosen.sum())} neighbours of point {i}: {k} of its group are needed")
    rest = group & ~chosen
    if not rest.any():
        return 0, 0
    # Differences, squares and sums are rounded, by (d + 2) 2^-53 of a sum without negative terms at most, or vanish.
    distances = np.square(X - X[i]).sum(axis=1) + _TINY
    doubt = (X.shape[1] + 6) * _U
    far, near = distances[chosen].max(), distances[rest].min()
    if far * (1 + doubt) + _TINY < near * (1 - doubt):
        return 0, 0
    last = max(_exact(X, i, j) for j in np.flatnonzero(chosen & (distances * (1 + 4 * doubt) >= far)))
    first = min(_exact(X, i, j) for j in np.flatnonzero(rest & (distances <= near * (1 + 4 * doubt))))
    if last > first * (1 + Fraction(doubt)):
        raise InputError(
            f"triplets have a neighbour of point {i} at the distance {float(last) ** 0.5:.17g}, and leave out one at "
            f"{float(first) ** 0.5:.17g}"
        )
    return 1, int(last > first)


def _exact(X, i, j):
    """|x_i - x_j|^2, exactly."""
    return sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(X[i].tolist(), X[j].tolist(), strict=True))
