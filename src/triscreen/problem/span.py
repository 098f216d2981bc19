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

    Directions with singular values at the level of rounding are outside the span.
    """
    n, dim = centred.shape
    if n > dim:
        eigenvalues = np.linalg.eigvalsh(centred.T @ centred)
        if eigenvalues[int((1 - _PAYS) * dim)] > 1e-10 * eigenvalues[-1]:
            return None  # far above the rounding of the squares: too few directions could go
        rows = np.linalg.qr(centred, mode="r")
    else:
        rows = centred
    _, values, vectors = np.linalg.svd(rows, full_matrices=False)
    rank = int((values > max(n, dim) * _EPS * values[0]).sum())
    if rank == 0 or rank > _PAYS * dim:
        return None
    basis = np.ascontiguousarray(vectors[:rank].T)
    # A rotation mixes features: where their scales differ so much that the faint ones drown, it is not exact.
    lost = np.linalg.norm(centred - (centred @ basis) @ basis.T, axis=0)
    return basis if (lost <= _FAITHFUL * np.linalg.norm(centred, axis=0)).all() else None
