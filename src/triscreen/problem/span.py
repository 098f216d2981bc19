"""The exact reduction of the dimension: M* lives on the span of the differences of the points."""

from __future__ import annotations

import numpy as np

_EPS = np.finfo(float).eps
# Rotating pays from this share of the dimensions on; a constant feature or two is not worth it.
_PAYS = 0.9
# Every feature must survive the rotation and back to this share of its own size.
_FAITHFUL = 1e-8


def span_basis(centred):
    """Return an orthonormal basis (d, s) of the span of the rows, or None where reducing does not pay.

    Directions with singular values at the level of rounding are outside the span, and so are constant features:
    their mean need not be that number to the last digit, but no difference of points has anything of them.
    """
    varies = centred.min(axis=0) != centred.max(axis=0)
    if not varies.all():
        inner = _basis_of(centred[:, varies], centred.shape[1])
        if inner is None:
            return None
        basis = np.zeros((len(varies), inner.shape[1]))
        basis[varies] = inner
        return basis
    return _basis_of(centred, centred.shape[1])


def _basis_of(centred, n_features):
    """Return the basis for features that vary; n_features: with those that do not."""
    n, dim = centred.shape
    if dim == 0 or (n > dim and is_full(centred.T @ centred, n_features)):
        return None
    basis = basis_of(np.linalg.qr(centred, mode="r") if n > dim else centred, n, n_features)
    return basis if basis is not None and is_faithful(*lengths_of(centred, basis)) else None


def is_full(squares, n_features=None):
    """Is X'X such that too few directions could go: eigenvalues far above the rounding of the squares?"""
    dim = len(squares)
    too_many = int(_PAYS * (n_features or dim)) + 1
    if dim < too_many:
        return False
    eigenvalues = np.linalg.eigvalsh(squares)
    return bool(eigenvalues[dim - too_many] > 1e-10 * eigenvalues[-1])


def basis_of(rows, n, n_features=None):
    """Return the basis of the span of rows R with R'R = X'X for n points X, or None where reducing does not pay."""
    dim = rows.shape[1]
    _, values, vectors = np.linalg.svd(rows, full_matrices=False)
    rank = int((values > max(n, dim) * _EPS * values[0]).sum())
    if rank == 0 or rank > _PAYS * (n_features or dim):
        return None
    return np.ascontiguousarray(vectors[:rank].T)


def lengths_of(centred, basis):
    """Return, feature by feature, (what is lost on the way into the basis and back, the feature's length)."""
    return np.linalg.norm(centred - (centred @ basis) @ basis.T, axis=0), np.linalg.norm(centred, axis=0)


def is_faithful(lost, lengths):
    """Is a rotation exact? It mixes features: where their scales differ too much, the faint ones drown."""
    return bool((lost <= _FAITHFUL * lengths).all())
