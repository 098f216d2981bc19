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
    if dim == 0:
        return None
    if n > dim:
        too_many = int(_PAYS * n_features) + 1
        if dim >= too_many:
            eigenvalues = np.linalg.eigvalsh(centred.T @ centred)
            if eigenvalues[dim - too_many] > 1e-10 * eigenvalues[-1]:
                return None  # far above the rounding of the squares: too few directions could go
        rows = np.linalg.qr(centred, mode="r")
    else:
        rows = centred
    _, values, vectors = np.linalg.svd(rows, full_matrices=False)
    rank = int((values > max(n, dim) * _EPS * values[0]).sum())
    if rank == 0 or rank > _PAYS * n_features:
        return None
    basis = np.ascontiguousarray(vectors[:rank].T)
    # A rotation mixes features: where their scales differ so much that the faint ones drown, it is not exact.
    lost = np.linalg.norm(centred - (centred @ basis) @ basis.T, axis=0)
    return basis if (lost <= _FAITHFUL * np.linalg.norm(centred, axis=0)).all() else None
