"""A large problem made small and quick, for the way to its solution: on its principal axes, in single precision.

M* lies where the points vary: A is a sum of delta delta', and directions in which they hardly vary hardly pull. On the
first q principal axes, M = V Q V' with V of shape (d, q), distances are those of the points V'x under Q, and the
problem in Q is the problem itself with M held to that span: its primal is that of M. A product n d^2 becomes one of
n q^2, an eigendecomposition q^3 in place of d^3, and single precision halves what is left.

Nothing is certified here. What comes out is a legal metric (V F F' V', in float64) and the gap that a user sees is
computed anew, over the points as they are, in float64.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from triscreen._utils.threads import Threads
from triscreen.problem.cones import PSD, Projection
from triscreen.problem.engine import Engine
from triscreen.triplets.pairs import ListedPairs, product

# Products of so many operations, and eigendecompositions of so many dimensions, are worth it.
_DIMENSIONS, _WORK = 256, 2e8
# Sizes of points, and of M and A, whose squares and products are ordinary numbers of single precision.
_POINTS, _MATRICES = 1e10, 1e20
# Eigenvalues below this share of the largest one are noise of single precision.
_NOISE = 4 * float(np.finfo(np.float32).eps)
# The first step leaves this share of the variance aside, where that takes so much fewer axes; the last one as much as
# this times the tolerance.
_FIRST, _FEWER, _LAST = 0.03, 0.6, 0.01


class Single(PSD):
    """The cone by eigendecompositions in single precision; what they give is in it all the same."""

    doubt = 1e-4

    def project(self, B):
        """Project a symmetric matrix: keep the eigenvalues that are positive beyond noise."""
        values, vectors = _eigh(B)
        keep, cut = values > _NOISE * np.abs(values).max(initial=0.0), values < 0
        F = vectors[:, keep] * np.sqrt(values[keep])
        wide = F.astype(float)
        return Projection(wide @ wide.T, F, (values[cut].astype(float), vectors[:, cut]))

    def basis(self, Y):
        """Return two functions, into the eigenbasis of Y and out of it; and the basis."""
        vectors = _eigh(Y)[1]

        def into(V):
            return (vectors.T @ V.astype(np.float32) @ vectors).astype(float)

        def out(V):
            V = (vectors @ V.astype(np.float32) @ vectors.T).astype(float)
            return 0.5 * (V + V.T)

        return into, out, vectors

    def spread(self, X, V, threads):
        """Return Y with (x_a - x_b)'(y_a - y_b) = <V, delta delta'>."""
        return product(X, V.astype(np.float32), threads)

    def embed(self, X, factor, threads):
        """Return G with |G_a - G_b|^2 = (x_a - x_b)' F F' (x_a - x_b)."""
        return product(X, factor, threads)

    def cut_off_inner(self, projection, M):
        """<-[B]_-, M> >= 0 for M in the cone."""
        return super().cut_off_inner(projection, M.astype(np.float32))


def _eigh(B):
    from scipy.linalg import lapack

    values, vectors, failed = lapack.ssyevd(B.astype(np.float32), lower=1, overwrite_a=1)
    if failed:
        values, vectors = (part.astype(np.float32) for part in np.linalg.eigh(B))
    return values, vectors


@dataclass(frozen=True, eq=False)
class Rough:
    """The problem on some of its axes.

    Attributes
    ----------
    engine : Engine
    axes : array, shape (d, q)
    aside : float
        The share of the variance that the other axes have.
    """

    engine: Engine
    axes: np.ndarray = field(repr=False)
    aside: float

    def into(self, M):
        """Return a core M of the problem on these axes."""
        return self.axes.T @ M @ self.axes

    def out(self, Q):
        """Return the core M that this one on the axes is."""
        M = self.axes @ Q @ self.axes.T
        return 0.5 * (M + M.T)


def pays(problem, lam):
    """Is the problem large enough, and of ordinary size in single precision?"""
    triplets = problem.triplets
    if problem.cone.name != "psd" or problem.prior is not None or not isinstance(triplets, ListedPairs):
        return False
    if triplets.dim < _DIMENSIONS or triplets.n_points * triplets.dim**2 < _WORK:
        return False
    square = triplets.largest_square
    pull = 4 * triplets.total_weight * square
    return all(1 / most < size < most for size, most in ((square, _POINTS), (pull, _MATRICES), (pull / lam, _MATRICES)))


def steps(problem, tol):
    """Return the problem on few axes, where few are enough to begin with, and on nearly all: a list of `Rough`."""
    threads = problem.threads
    triplets, axes, beyond = problem.triplets.on_axes(threads)
    few, most = (int(np.argmax(beyond <= share)) for share in (_FIRST, _LAST * tol))
    made = []
    for count in (few, most) if few <= _FEWER * most else (most,):
        share = problem.share * count / triplets.dim
        engine = Engine(triplets.along(count), problem.loss, Single(), Threads(threads.n_jobs), share=share)
        made.append(Rough(engine, np.ascontiguousarray(axes[:, :count]), float(beyond[count])))
    return made
