"""Small problems as conic programs, for cvxpy with clarabel or SCS."""

from __future__ import annotations

import warnings

import numpy as np


def solve(X, triplets, gamma, lam, solver="CLARABEL"):
    """Return M of the smoothed hinge problem: l(m) = min xi + z^2/(2 gamma) with xi + z >= 1 - m, both >= 0."""
    import cvxpy as cp

    X = np.asarray(X, dtype=float)
    i, j, k = np.asarray(triplets).T
    u, v = X[i] - X[k], X[i] - X[j]
    d, m = X.shape[1], len(i)
    M = cp.Variable((d, d), PSD=True)
    H = (np.einsum("ti,tj->tij", u, u) - np.einsum("ti,tj->tij", v, v)).reshape(m, d * d)
    xi, z = cp.Variable(m, nonneg=True), cp.Variable(m, nonneg=True)
    entries = cp.reshape(M, (d * d,), order="C")  # the square of M itself is wrong in cvxpy 1.7
    value = cp.sum(xi) + cp.sum_squares(z) / (2 * gamma) + lam / 2 * cp.sum_squares(entries)
    program = cp.Problem(cp.Minimize(value), [xi + z >= 1 - H @ entries])
    with warnings.catch_warnings():  # it may say that its last digits are missing: the objective will tell
        warnings.simplefilter("ignore")
        program.solve(solver=solver)
    if M.value is None:
        raise RuntimeError(f"solver={solver!r} found no solution ({program.status})")
    return in_cone(M.value)


def in_cone(M):
    """The nearest positive semi-definite matrix: interior points may be outside by rounding."""
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    return (vectors * np.maximum(values, 0)) @ vectors.T
