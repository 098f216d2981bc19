"""Distances of all pairs of points, as a recipe instead of a matrix.

Made by `AllTriplets`; others add, subtract and scale them, or make one of a matrix of their own (screening by pairs).
"""

from __future__ import annotations

import math

import numpy as np

from triscreen._kernels.pairs import pair_products
from triscreen._utils.lazy import cached_property


def grain_of(largest, smoothing, count):
    """Return (grain, 1 in grains, the smoothing in grains, rounded up) for distances up to ``largest``.

    The grain is a power of two, small enough not to matter beside the rounding of the distances themselves, and large
    enough for sums of ``count`` numbers between 0 and the smoothing to fit into 64 bits.
    """
    grain = 2.0 ** math.ceil(math.log2(max(max(1.0, largest) * 2.0**-50, count * smoothing * 2.0**-61)))
    return grain, int(1 / grain), math.ceil(smoothing / grain)


class PairList:
    """Pairs that a set has listed, where the whole of it is never listed: their points."""

    def __init__(self, first, second):
        self.first, self.second = first, second

    def __len__(self):
        return len(self.first)


class Quadratic:
    """What stands for the distances (x_a - x_b)' M (x_a - x_b) of all pairs: s_a + s_b - 2 left_a' right_b.

    Adds, subtracts and scales like the array that it stands for, because distances are linear in M. Indexing with a
    `PairList` gives the distances of its pairs.

    Parameters
    ----------
    points : array, shape (n, s)
    M : array
        Symmetric matrix, or the vector of a diagonal one; need not be in the cone.
    factor : array, optional
        F with M = F F' (or its vector), if that is known: fewer columns, and no distance below zero by more than
        rounding.
    """

    __array_ufunc__ = None  # numpy leaves arithmetic to this class
    doubt = 16  # a margin is off by so many units of rounding times |x|^2 |M| (`triscreen.problem.rounding`)

    def __init__(self, points, M, factor=None):
        self.points, self.M, self._factor = points, M, factor
        self._left = None

    @cached_property
    def _sides(self):
        X, factor = self.points, self._factor
        if self._left is not None:
            return self._left, X
        if factor is None:
            return (X @ self.M if self.M.ndim == 2 else X * self.M), X
        G = X @ factor if factor.ndim == 2 else X[:, factor > 0] * factor[factor > 0]
        return G, G

    @classmethod
    def of_sides(cls, points, left):
        """Return the one of M where points M is known and M itself is not: it can be looked at, not added."""
        made = cls(points, None)
        made._left = left
        return made

    left = property(lambda self: self._sides[0])
    right = property(lambda self: self._sides[1])

    @cached_property
    def squares(self):
        """x' M x for every point."""
        return np.einsum("ij,ij->i", self.left, self.right)

    @cached_property
    def largest(self):
        """An upper bound of every distance's magnitude."""
        if not len(self.points):
            return 0.0
        lengths = [math.sqrt(float(np.einsum("ij,ij->i", side, side).max())) for side in self._sides]
        return 2.0 * (float(np.abs(self.squares).max()) + lengths[0] * lengths[1])

    @cached_property
    def size(self):
        """|M| as the bound of rounding counts it: |F|^2 where a factor is known."""
        return float(np.linalg.norm(self.M)) if self._factor is None else float(np.vdot(self._factor, self._factor))

    def products(self, rows, out):
        """Write left_a' right_b for the points a of rows and every b."""
        np.matmul(self.left[rows], self.right.T, out=out)

    def __getitem__(self, pairs):
        if not isinstance(pairs, PairList):
            return self
        out = np.empty(len(pairs))
        pair_products(self.right, self.left, pairs.first, pairs.second, out, 0, len(pairs))
        return out

    def __add__(self, other):
        return Quadratic(self.points, self.M + other.M)

    def __sub__(self, other):
        return Quadratic(self.points, self.M - other.M)

    def __mul__(self, scale):
        return Quadratic(self.points, self.M * scale)

    __rmul__ = __mul__

    def __truediv__(self, scale):
        return Quadratic(self.points, self.M / scale)
