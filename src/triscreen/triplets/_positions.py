"""Where points are put so that few numbers say how far apart they are at least.

z = s (x - c): c near the mean, s a power of two, every |z_f| <= 1. With orthonormal axes U (d, r) the position of a
point is q(z) = (U'z, |z - UU'z|), r + 1 numbers, and |q(z) - q(w)| <= |z - w|: by Pythagoras, and since lengths differ
by no more than vectors do. Without axes q(z) = z. What is computed is off by at most (g = 2^-53):

* z: g |z|, as x - c is rounded once and s only moves the exponent.
* axes V with |V'V - I| <= e in the Frobenius norm (as computed, plus 2 g r d for computing it): the nearest
  orthonormal U has |V - U| <= e, and V'z is rounded by 2 g sqrt(r) d |z| at most, so it is off by t |z| with t = e + 4
  g sqrt(r) d.
* the last number, rho: its square is the difference of two that are off by at most 4 t |z|^2 together, so rho itself
  is off by at most the square root of that, and by at most that divided by rho as computed.
"""

from __future__ import annotations

import numpy as np

_BLOCK = 1 << 21  # numbers that are converted at a time
_SAMPLE, _ASKING = 2048, 96  # points that are looked at to choose axes
_MANY = 32  # features: for fewer there are no axes to be chosen
_MOST_AXES, _OPERATIONS = 256, 400_000_000  # so many axes, and operations of a step towards them, at most
_AXES = (16, 24, 32, 48, 64, 96, 128, 192)
# Nanoseconds of a product, of an axis of it, of a pair that is left over and of a feature of that.
_PRODUCT, _AXIS, _PAIR, _FEATURE = 0.2, 0.012, 60.0, 0.1
_WIDER = 2  # times as many axes, for the pairs that the first ones leave


def blocks(n, dim):
    """Cut rows into slices of a bounded size."""
    rows = max(1, _BLOCK // dim)
    return [slice(start, min(start + rows, n)) for start in range(0, n, rows)]


class Frame:
    """Centre, unit and axes of the positions.

    Parameters
    ----------
    X : array (n, d)
    queries : array (n', d) or None
        Further points that are to be put there.
    """

    def __init__(self, X, queries=None):
        self.dim, self.axes = X.shape[1], None
        self.centre = sum(X[b].sum(axis=0, dtype=np.float64) for b in blocks(*X.shape)) / len(X)
        every = [Y[b] for Y in (X, queries) if Y is not None for b in blocks(*Y.shape)]
        largest = max(np.abs(Y - self.centre).max() for Y in every)
        self.scale = 2.0 ** min(-int(np.frexp(largest)[1]), 1000)

    @property
    def n_axes(self):
        """Numbers that make a position."""
        return self.dim if self.axes is None else self.cut + 1

    def turn(self, axes, cut):
        """Use the first ``cut`` of these orthonormal axes for positions, and all of them for wider ones."""
        gap = np.linalg.norm(axes.T @ axes - np.eye(axes.shape[1])) + axes.size * 2.0**-52
        self.axes, self.cut = axes, cut
        self.doubt = gap + np.sqrt(axes.shape[1]) * self.dim * 2.0**-51

    def put(self, X):
        """Return (positions, wider positions, how far off each one of either may be)."""
        Z = (X - self.centre) * self.scale
        square = np.einsum("ij,ij->i", Z, Z)
        length = np.sqrt(square)
        if self.axes is None:
            return Z, np.empty((len(Z), 0)), 2.0**-52 * length
        P, error = Z @ self.axes, 4 * self.doubt * square
        (narrow, one), (wide, other) = (_with_rest(P[:, :r], square, error) for r in (self.cut, P.shape[1]))
        return narrow, wide, (self.doubt + 2.0**-52) * length + np.maximum(one, other)


def _with_rest(P, square, error):
    """Return (P and a column of what is left of the length, how far off that may be)."""
    rest = np.sqrt(np.maximum(square - np.einsum("ij,ij->i", P, P), 0.0))
    off = np.sqrt(error)
    np.divide(error, rest, out=off, where=rest > off)
    return np.concatenate([P, rest[:, None]], axis=1), off


def choose_axes(frame, X, codes, k):
    """Turn the frame to the principal axes of a sample if a few of them promise to tell most pairs apart."""
    n, dim = X.shape
    if dim <= _MANY or n < _SAMPLE:
        return
    some = np.arange(_SAMPLE) * n // _SAMPLE
    Z = (X[some] - frame.centre) * frame.scale
    if not Z.any():
        return
    rows = min(len(Z), max(1, _OPERATIONS // (dim * _MOST_AXES)))
    axes = _principal(Z[np.arange(rows) * len(Z) // rows], min(dim, rows, _MOST_AXES))
    cut = _best_cut(Z, Z @ axes, codes[some], max(1, round(k * _SAMPLE / n)), n)
    if cut:
        frame.turn(np.ascontiguousarray(axes[:, : _WIDER * cut]), cut)


def _principal(Z, count):
    """Return about the first principal axes, the longest first: by subspace iteration where they are not all."""
    Q = np.eye(Z.shape[1])
    if count < len(Q):
        Q = np.random.default_rng(0).normal(size=(Z.shape[1], count))
        for _ in range(3):
            Q = np.linalg.qr(Z.T @ (Z @ Q))[0]
    P = Z @ Q
    return Q @ np.linalg.eigh(P.T @ P)[1][:, ::-1]


def _best_cut(Z, P, codes, rank, n):
    """Return how many axes promise the least work, None for all features: by the pairs that a sample leaves over."""
    asking = np.arange(_ASKING) * len(Z) // _ASKING
    square = np.einsum("ij,ij->i", Z, Z)
    apart = square[asking, None] + square - 2 * Z[asking] @ Z.T
    apart[np.arange(_ASKING), asking] = np.inf
    same = codes[asking, None] == codes
    kth = (np.partition(np.where(kind, apart, np.inf), rank - 1)[:, rank - 1, None] for kind in (same, ~same))
    limit = np.where(same, *kth)
    dim, best, choice = Z.shape[1], _PRODUCT + _AXIS * Z.shape[1], None
    for r in _AXES:
        if r < min(dim, P.shape[1]):
            narrow = _with_rest(P[:, :r], square, 0 * square)[0]
            bound = square[asking, None] + square - 2 * narrow[asking] @ narrow.T
            left = np.mean((bound <= limit) & np.isfinite(limit))
            cost = _PRODUCT + _AXIS * (r + 1) + left * (_PAIR + _FEATURE * dim) + 0.1 * dim * r / n
            if cost < 0.9 * best:
                best, choice = cost, r
    return choice
