"""Triplets that the user gives."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from triscreen._utils.validation import as_weights
from triscreen.errors import InputError
from triscreen.triplets.listed import ListedTriplets


class GivenTriplets(ListedTriplets):
    """Triplets from a list of comparisons; make one with `given_triplets`."""

    def __init__(self, indices, weights):
        self.point_ids, local = np.unique(indices, return_inverse=True)
        local, n_points = local.reshape(indices.shape), len(self.point_ids)
        keys = np.concatenate([_pair_keys(local[:, 0], local[:, c], n_points) for c in (1, 2)])
        keys, numbers = np.unique(keys, return_inverse=True)
        first, second = (part.astype(np.int32) for part in np.divmod(keys, n_points))
        positive, negative = numbers.reshape(2, -1).astype(np.int32)
        super().__init__(n_points, first, second, positive, negative, np.empty(0) if weights is None else weights)

    def check_points(self, n_points):
        """Refuse X with fewer points than the largest index needs."""
        largest = int(self.point_ids[-1])
        if n_points <= largest:
            raise InputError(
                f"indices go up to {largest}: X has {n_points} points, so they must lie between 0 and {n_points - 1}"
            )


def _pair_keys(anchor, other, n_points):
    return np.minimum(anchor, other) * n_points + np.maximum(anchor, other)


def as_rows(rows, name):
    """Return comparisons (m, 3) as whole numbers, or refuse what is none."""
    try:
        given = np.asarray(rows)
    except ValueError as err:
        raise InputError(f"{name} is not a rectangular array ({err})") from None
    if given.ndim != 2 or given.shape[1] != 3:
        raise InputError(f"{name} has shape {given.shape}: {name} must have shape (m, 3), rows (i, j, l)")
    if given.shape[0] == 0:
        raise InputError(f"{name} is empty: at least one triplet is needed")
    if given.dtype.kind not in "iu":
        whole = given.dtype.kind == "f" and np.isfinite(given).all() and (given == np.floor(given)).all()
        if not whole:
            raise InputError(f"{name} has dtype {given.dtype}: {name} must hold whole numbers")
    for wrong, why in ((given < 0, "points are counted from 0"), (given > 2**31 - 2, "that is more points than fit")):
        if wrong.any():
            row = int(np.argmax(wrong.any(axis=1)))
            raise InputError(f"{name}[{row}] is {given[row].tolist()}: {why}")
    return given.astype(np.int64)


def given_triplets(indices: ArrayLike, weights: ArrayLike | None = None) -> GivenTriplets:
    """Make a set of triplets from a list of comparisons.

    Parameters
    ----------
    indices : array of int, shape (m, 3)
        Rows (i, j, l): point i is closer to point j than to point l. The same row may stand there more than once.
    weights : array of float, shape (m,), optional
        Positive weights of the triplets' losses; 1 each if not given.

    Returns
    -------
    GivenTriplets

    References
    ----------
    Yoshida, Takeuchi, Karasuyama, KDD 2018, arXiv:1802.03923, section 2; weights are ours.

    Examples
    --------
    >>> import triscreen as ts
    >>> ts.given_triplets([[0, 1, 2], [1, 0, 2], [2, 3, 0]])
    <GivenTriplets: 3 triplets over 4 pairs>
    """
    given = as_rows(indices, "indices")
    for column, name in ((1, "j"), (2, "l")):
        same = given[:, 0] == given[:, column]
        if same.any():
            row = int(np.argmax(same))
            raise InputError(
                f"indices[{row}] is {given[row].tolist()}: i = {name}, but a triplet compares point i with two others"
            )
    return GivenTriplets(given, as_weights(weights, len(given)))
