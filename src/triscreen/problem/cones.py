"""Where M lives: all positive semi-definite matrices, or the diagonal ones.

A cone turns pair weights into its kind of element (a symmetric matrix; the vector of a diagonal), projects, and
gives the factor F with M = F F' through which distances are taken. Elements of either kind are numpy arrays that
add and scale; ``numpy.vdot`` is their inner product.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from triscreen._kernels.norms import diagonal_norms, full_norms
from triscreen._utils.threads import chunk_bounds, count_chunks
from triscreen._utils.validation import as_choice, as_numbers
from triscreen.errors import InputError
from triscreen.triplets.pairs import WIDE, product

# From WIDE dimensions on, eigenvalues that rounding alone explains are left out of factors: each costs a column.
_NOTHING = 4 * np.finfo(float).eps
# An eigenvalue below zero by less than this, times the dimension and the largest one, is rounding.
_ROUNDING = 100 * np.finfo(float).eps
# Dimensions up to which LAPACK is called without numpy in between.
_SMALL = 64


@dataclass(frozen=True)
class Projection:
    """A matrix projected onto the cone.

    Attributes
    ----------
    plus : array
        The projection.
    factor : array
        F with F F' = plus, one column per positive eigenvalue; for the diagonal cone the vector of square roots.
    negative : tuple
        What was cut off: (values, vectors) with values < 0; the vectors are None for the diagonal cone.

    References
    ----------
    KDD 2018, arXiv:1802.03923, section 2; docs/maths.md.

    Examples
    --------
    What an own sphere finds in its evaluation: M(alpha) is ``dual_point.plus`` over lambda.

    >>> import triscreen as ts
    >>> def ball(cone, evaluation, lam):
    ...     gap = evaluation.slack + cone.gap(evaluation.M, evaluation.dual_point, lam)
    ...     return ts.Sphere(evaluation.dual_point.plus / lam, (2 * gap / lam) ** 0.5, "around M(alpha)")
    >>> problem = ts.Problem([[0.0], [1.0], [3.0]], ts.given_triplets([[0, 1, 2]]))
    >>> ts.solve(problem, 1.0, screening=ts.Screening(ball, every=1)).converged
    True
    """

    plus: np.ndarray
    factor: np.ndarray
    negative: tuple[np.ndarray, np.ndarray | None]


class Cone:
    """Where M lives: full positive semi-definite matrices, or diagonal ones; own spheres are given it.

    References
    ----------
    KDD 2018, arXiv:1802.03923, section 2; docs/maths.md.

    Examples
    --------
    The gap of a metric against the dual point of its evaluation, for any lambda:

    >>> import triscreen as ts
    >>> gaps = []
    >>> def ball(cone, evaluation, lam):
    ...     gaps.append(evaluation.slack + cone.gap(evaluation.M, evaluation.dual_point, lam))
    ...     return ts.Sphere(evaluation.M, (2 * gaps[-1] / lam) ** 0.5, "gap")
    >>> problem = ts.Problem([[0.0], [1.0], [3.0]], ts.given_triplets([[0, 1, 2]]))
    >>> sol = ts.solve(problem, 1.0, screening=ts.Screening(ball, every=1))
    >>> min(gaps) >= 0
    True
    """

    def assemble_few(self, triplets: Any, pair_weights: Any, count: int, threads: Any) -> np.ndarray:
        """Return what `assemble` does, within its error, where so many of the listed pairs have a weight."""
        return self.assemble(triplets, pair_weights, threads)

    def gap(self, M: np.ndarray, projection: Projection, lam: float) -> float:
        """Return the gap of M against a dual point, without the slack: <-[A]_-, M> + (lam/2) |M - [A]_+/lam|^2.

        Parameters
        ----------
        M : array
            In the cone.
        projection : Projection
            A as it was projected, an evaluation's ``dual_point``.
        lam : float
            Any lambda.
        """
        cut, away = self.gap_parts(M, projection, lam)
        return cut + 0.5 * lam * away

    def gap_parts(self, M: np.ndarray, projection: Projection, lam: float) -> tuple[float, float]:
        """Return <-[A]_-, M> and |M - [A]_+/lam|^2.

        Parameters
        ----------
        M, projection, lam :
            As for `gap`.
        """
        rest = M - projection.plus / lam
        return self.cut_off_inner(projection, M), float(np.vdot(rest, rest))


class PSD(Cone):
    """Symmetric positive semi-definite matrices."""

    name = "psd"
    doubt = 1e-10  # rounding of sums of squares, relative

    def shape(self, dim):
        """Shape of an element."""
        return (dim, dim)

    def element(self, factor):
        """Return F F'."""
        return factor @ factor.T

    def project(self, B):
        """Project a symmetric matrix: keep the positive eigenvalues."""
        values, vectors = eigh(B)
        n = int(values.searchsorted(0.0, side="right"))  # they ascend
        first = n if len(values) < WIDE else int(values.searchsorted(_NOTHING * np.abs(values).max(), side="right"))
        F = vectors[:, first:] * np.sqrt(values[first:])
        return Projection(F @ F.T, F, (values[:n], vectors[:, :n]))

    def gap_at_least(self, M, target, trial, lam):
        """Return a lower bound of `gap`, without the eigenvectors of the target T = A/lam; trial: a projection near by.

        The gap is (lam/2) (|M - T|^2 - dist(T, cone)^2), and the nearest point of the cone is no farther than the one
        that T has in the eigenbasis of the trial, sum_i [t_i]_+ v_i v_i' with t_i = v_i'T v_i. Zero where rounding
        could make it more than it is.
        """
        F = trial.factor
        along = np.einsum("ij,ij->j", F, target.astype(F.dtype, copy=False) @ F)
        along = np.maximum(along / np.maximum(np.einsum("ij,ij->j", F, F), 1e-30), 0.0)
        size, near = float(np.vdot(M, M)), float(along @ along)
        rest = size - 2 * float(np.vdot(M, target)) + near
        return 0.5 * lam * rest if rest > self.doubt * (size + near) else 0.0

    def basis(self, Y):
        """Return two functions, into the eigenbasis of Y and out of it; and the basis."""
        vectors = eigh(Y)[1]

        def into(V):
            return vectors.T @ V @ vectors

        def out(V):
            V = vectors @ V @ vectors.T
            return 0.5 * (V + V.T)

        return into, out, vectors

    def diagonal(self, V):
        """Return the diagonal of an element."""
        return np.diag(V)

    def sums(self, values):
        """Return v_i + v_j for every entry (i, j) of an element."""
        return values[:, None] + values[None, :]

    def spread(self, X, V, threads):
        """Return Y with (x_a - x_b)'(y_a - y_b) = <V, delta delta'>."""
        return X @ V if len(V) < WIDE else product(X, V.astype(X.dtype, copy=False), threads)

    def cut_off_inner(self, projection, M):
        """<-[B]_-, M> >= 0 for M in the cone, as a sum of non-negative terms."""
        values, vectors = projection.negative
        return float(np.maximum(np.einsum("ij,ij->j", vectors, M @ vectors), 0.0) @ -values)

    def negative_factor(self, projection):
        """Return F with F F' = -[B]_-, what the projection cut off."""
        values, vectors = projection.negative
        return vectors * np.sqrt(-values)

    def embed(self, X, factor, threads):
        """Return G with |G_a - G_b|^2 = (x_a - x_b)' F F' (x_a - x_b)."""
        if X.shape[1] >= WIDE:
            return product(X, factor, threads)
        chunks = count_chunks(len(X), X.shape[1] * factor.shape[1] // 4 + 1)
        if chunks == 1:
            return X @ factor
        G = np.empty((len(X), factor.shape[1]))
        bounds = chunk_bounds(len(X), chunks)

        def task(c):
            np.matmul(X[bounds[c] : bounds[c + 1]], factor, out=G[bounds[c] : bounds[c + 1]])

        threads.run("embed", task, chunks)
        return G

    def assemble(self, triplets, pair_weights, threads):
        """Sum over pairs of c_p (x_a - x_b)(x_a - x_b)'."""
        return triplets.matrix(pair_weights, threads)

    def assemble_few(self, triplets, pair_weights, count, threads):
        """Add up the pairs themselves, where they are few."""
        A = triplets.matrix_of_few(pair_weights, count)
        return self.assemble(triplets, pair_weights, threads) if A is None else A

    def norms(self, X, indices, out):
        """|H_t|_F of the triplets in the rows of indices."""
        full_norms(X, indices, out)

    def check(self, M, dim, name="M"):
        """Return M symmetrised, float64, or refuse what is no symmetric (dim, dim) matrix."""
        M = _as_real(M, name)
        if M.shape != (dim, dim):
            raise InputError(f"{name} has shape {M.shape}: X has {dim} features, so it must have shape ({dim}, {dim})")
        skew = np.abs(M - M.T).max()
        if skew > 1e-10 * np.abs(M).max():
            raise InputError(f"{name} differs from its transpose by {skew:.3g}: it must be symmetric")
        return 0.5 * (M + M.T)

    def check_positive(self, M, name="M", size=0.0):
        """Refuse a symmetric matrix with an eigenvalue below zero beyond rounding (of a larger one of this size)."""
        tolerance = _ROUNDING * len(M) * max(float(np.linalg.norm(M)), size)
        if tolerance > 0:
            try:
                np.linalg.cholesky(M + tolerance * np.eye(len(M)))
            except np.linalg.LinAlgError:
                lowest = np.linalg.eigvalsh(M)[0]
                raise InputError(
                    f"{name} has the eigenvalue {lowest:.3g}: it must be positive semi-definite (project it first)"
                ) from None


class Diagonal(Cone):
    """Diagonal matrices with entries >= 0, kept as the vector of the diagonal."""

    name = "diagonal"

    def shape(self, dim):
        """Shape of an element."""
        return (dim,)

    def element(self, factor):
        """Return the vector of the diagonal whose square roots these are."""
        return np.square(factor)

    def project(self, B):
        """Project a vector: keep the positive entries."""
        plus = np.maximum(B, 0.0)
        return Projection(plus, np.sqrt(plus), (np.minimum(B, 0.0), None))

    def gap_at_least(self, M, target, trial, lam):
        """Return 0: the gap itself is as cheap."""
        return 0.0

    def basis(self, Y):
        """Return two functions and no basis: a vector is its own."""
        return np.asarray, np.asarray, None

    def diagonal(self, V):
        """Return the vector itself."""
        return V

    def sums(self, values):
        """Return the values: an entry belongs to one direction."""
        return values

    def spread(self, X, V, threads):
        """Return Y with (x_a - x_b)'(y_a - y_b) = sum_c v_c (x_a - x_b)_c^2."""
        return X * V

    def cut_off_inner(self, projection, M):
        """<-[b]_-, m> >= 0 for m in the cone."""
        return float(-projection.negative[0] @ M)

    def negative_factor(self, projection):
        """Return the square roots of -[b]_-, what the projection cut off."""
        return np.sqrt(-projection.negative[0])

    def embed(self, X, factor, threads):
        """Return G with |G_a - G_b|^2 = sum_c m_c (x_a - x_b)_c^2."""
        used = factor > 0
        return np.multiply(X[:, used], factor[used], order="C")  # columns that are picked come as rows of memory

    def assemble(self, triplets, pair_weights, threads):
        """Sum over pairs of c_p (x_a - x_b)^2, feature by feature."""
        return triplets.diagonal(pair_weights, threads)

    def norms(self, X, indices, out):
        """|h_t|_2 of the triplets in the rows of indices."""
        diagonal_norms(X, indices, out)

    def check(self, M, dim, name="M"):
        """Return the vector of the diagonal, float64, or refuse what has other shape or entries beside it."""
        M = _as_real(M, name)
        if M.shape == (dim, dim):
            if np.count_nonzero(M - np.diag(np.diag(M))):
                raise InputError(f"{name} has entries off its diagonal: the cone is 'diagonal'")
            M = np.diag(M).copy()
        if M.shape != (dim,):
            raise InputError(
                f"{name} has shape {M.shape}: X has {dim} features, so it must be the diagonal, of shape ({dim},)"
            )
        return M

    def check_positive(self, M, name="M", size=0.0):
        """Refuse a vector with an entry below zero beyond rounding."""
        if M.min() < -_ROUNDING * len(M) * np.abs(M).max():
            raise InputError(f"{name} has the diagonal entry {M.min():.3g}: the entries must not be negative")


def eigh(B):
    """Return what numpy's ``eigh`` does; of a small matrix from LAPACK itself, in a fifth to two thirds of the time.

    numpy looks at types and error states for as long as LAPACK works there.
    """
    if not 0 < len(B) <= _SMALL or B.dtype != np.float64:
        return np.linalg.eigh(B)
    from scipy.linalg.lapack import dsyevd  # models are loaded without it

    values, vectors, info = dsyevd(B.T, lower=0)
    if info or not math.isfinite(values @ values):  # numpy knows what to say of it
        return np.linalg.eigh(B)
    return values, np.ascontiguousarray(vectors)


def components_of(M=None, factor=None, basis=None):
    """Return L with L'L = M, one row per direction: the most important first, signs fixed, never less than one row.

    Parameters
    ----------
    M : array
        A matrix (d, d), or the vector (d,) of a diagonal one.
    factor : array, shape (d, r)
        F with F F' = M instead, which is quicker.
    basis : array, shape (d, s), optional
        Of a span outside of which M is known to be zero, where s is smaller than d.
    """
    if M is not None and M.ndim == 1:
        order = np.argsort(-M, kind="stable")[: max(1, np.count_nonzero(M))]
        L = np.zeros((len(order), len(M)))
        L[np.arange(len(order)), order] = np.sqrt(M[order])
        return L
    if factor is None:
        values, vectors = np.linalg.eigh(M if basis is None else basis.T @ M @ basis)
        lengths, vectors = np.sqrt(np.maximum(values[::-1], 0.0)), vectors[:, ::-1]
        vectors = vectors if basis is None else basis @ vectors
    elif factor.shape[1]:
        vectors, lengths, _ = np.linalg.svd(factor, full_matrices=False)
    else:
        vectors, lengths = np.zeros((len(factor), 1)), np.zeros(1)
    rank = max(1, int(np.count_nonzero(lengths > 1e-7 * lengths[0])))
    L = (vectors[:, :rank] * lengths[:rank]).T
    # Signs do not matter to distances: the largest entry of each row is positive, on every machine.
    signs = np.sign(L[np.arange(rank), np.abs(L).argmax(axis=1)])
    return np.ascontiguousarray(L * np.where(signs == 0, 1.0, signs)[:, None])


_CONES = {cone.name: cone for cone in (PSD, Diagonal)}


def make_cone(name):
    """Return the cone of that name."""
    return _CONES[as_choice(name, "cone", tuple(_CONES))]()


def _as_real(M, name):
    M = as_numbers(M, name)
    if not np.isfinite(M).all():
        raise InputError(f"{name} holds NaN or infinity: it must be finite")
    return M
