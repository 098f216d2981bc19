"""Triplets that the user gives: two pair numbers each."""

from __future__ import annotations

import numpy as np

from triscreen._kernels.margins import alpha_list, sweep_list
from triscreen._threads import chunk_bounds
from triscreen._validation import as_weights
from triscreen.errors import InputError
from triscreen.triplets.base import Sums, TripletSet, add_up


class GivenTriplets(TripletSet):
    """Listed triplets, 8 bytes each and 8 more if weighted; make one with `given_triplets`."""

    def __init__(self, indices, weights):
        n_points = int(indices.max()) + 1
        anchor = indices[:, 0]
        keys = np.concatenate([_pair_keys(anchor, indices[:, c], n_points) for c in (1, 2)])
        keys, numbers = np.unique(keys, return_inverse=True)
        first, second = np.divmod(keys, n_points)
        self._set_pairs(n_points, first.astype(np.int32), second.astype(np.int32))
        m = len(indices)
        self._positive = numbers[:m].astype(np.int32)
        self._negative = numbers[m:].astype(np.int32)
        self._weights = np.empty(0) if weights is None else weights
        self.n_triplets = m
        self.total_weight = float(m) if weights is None else float(weights.sum())

    @property
    def weights(self):
        """The triplets' weights; None: 1 each."""
        return self._weights if len(self._weights) else None

    def check_points(self, n_points):
        """Refuse X with fewer points than the largest index needs."""
        if n_points < self.n_points:
            raise InputError(
                f"indices go up to {self.n_points - 1}: X has {n_points} points, so they must lie between 0 and "
                f"{n_points - 1}"
            )

    def indices(self, start=0, stop=None):
        """Return the triplets start <= t < stop as rows (i, j, l), in the order they were given."""
        pos, neg = self._positive[start:stop], self._negative[start:stop]
        ends = np.stack([self.first[pos], self.second[pos], self.first[neg], self.second[neg]], axis=1)
        # The anchor is the point that both pairs share; where both points are shared, j = l and either one will do.
        anchor = np.where((ends[:, 0] == ends[:, 2]) | (ends[:, 0] == ends[:, 3]), ends[:, 0], ends[:, 1])
        j = ends[:, 0] + ends[:, 1] - anchor
        k = ends[:, 2] + ends[:, 3] - anchor
        return np.stack([anchor, j, k], axis=1).astype(np.int32)

    def sweep(self, dist, smoothing, threads):
        """Return (Sums, pair weights) for alpha = clip((1 - margin) / smoothing, 0, 1)."""
        sums, pair_weights = self._in_chunks(
            "sweep", sweep_list, (dist, self._positive, self._negative, self._weights, smoothing), threads
        )
        return Sums(smoothing, *sums), pair_weights

    def sweep_alpha(self, dist, alpha, gamma, threads):
        """Return ((loss, dual sum, slack), pair weights) for alphas given one by one."""
        return self._in_chunks(
            "alpha", alpha_list, (dist, self._positive, self._negative, self._weights, alpha, gamma), threads
        )

    def largest_margin(self, dist):
        """Return the largest margin over the triplets."""
        best = -np.inf
        for start in range(0, self.n_triplets, 1 << 20):
            part = slice(start, start + (1 << 20))
            best = max(best, float((dist[self._negative[part]] - dist[self._positive[part]]).max()))
        return best

    def _in_chunks(self, kind, kernel, arguments, threads):
        # Every chunk needs pair weights of its own: few chunks, and one alone where pairs are as many as triplets.
        chunks = int(np.clip(self.n_triplets // (4 * self.n_pairs), 1, 8))
        bounds = chunk_bounds(self.n_triplets, chunks)
        parts = np.zeros((chunks, self.n_pairs))
        sums = np.zeros((chunks, 3))

        def task(c):
            kernel(*arguments, parts[c], sums[c], bounds[c], bounds[c + 1])

        threads.run(kind, task, chunks)
        return add_up(sums), parts[0] if chunks == 1 else parts.sum(axis=0)


def _pair_keys(anchor, other, n_points):
    return np.minimum(anchor, other) * n_points + np.maximum(anchor, other)


def given_triplets(indices, weights=None):
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

    Examples
    --------
    >>> import triscreen as ts
    >>> ts.given_triplets([[0, 1, 2], [1, 0, 2], [2, 3, 0]])
    <GivenTriplets: 3 triplets over 4 pairs>
    """
    try:
        given = np.asarray(indices)
    except ValueError as err:
        raise InputError(f"indices is not a rectangular array ({err})") from None
    if given.ndim != 2 or given.shape[1] != 3:
        raise InputError(f"indices has shape {given.shape}: indices must have shape (m, 3), rows (i, j, l)")
    if given.shape[0] == 0:
        raise InputError("indices is empty: at least one triplet is needed")
    if given.dtype.kind not in "iu":
        whole = given.dtype.kind == "f" and np.isfinite(given).all() and (given == np.floor(given)).all()
        if not whole:
            raise InputError(f"indices has dtype {given.dtype}: indices must hold whole numbers")
    if given.min() < 0 or given.max() > 2**31 - 2:
        row = int(np.argmax(((given < 0) | (given > 2**31 - 2)).any(axis=1)))
        raise InputError(f"indices[{row}] is {given[row].tolist()}: indices count points from 0 and cannot be negative")
    given = given.astype(np.int64)
    for column, name in ((1, "j"), (2, "l")):
        same = given[:, 0] == given[:, column]
        if same.any():
            row = int(np.argmax(same))
            raise InputError(
                f"indices[{row}] is {given[row].tolist()}: i = {name}, but a triplet compares point i with two others"
            )
    return GivenTriplets(given, as_weights(weights, len(given)))
