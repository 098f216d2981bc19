"""References that share no code with the package: brute force over triplets, and cvxpy with clarabel."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np


def brute_knn(X, y, k):
    """All (i, j, l) with j, l among the k nearest by (distance, index), as a list in the package's order."""
    X = np.asarray(X, dtype=float)
    triplets = []
    for i in range(len(X)):
        d = [float(sum((a - b) ** 2 for a, b in zip(X[i], X[j], strict=True))) for j in range(len(X))]
        same = sorted((d[j], j) for j in range(len(X)) if y[j] == y[i] and j != i)
        other = sorted((d[j], j) for j in range(len(X)) if y[j] != y[i])
        triplets += [(i, j, m) for _, j in same[:k] for _, m in other[:k]]
    return np.array(triplets).reshape(-1, 3)


def matrices(X, indices):
    """H_t = u u' - v v', one by one."""
    X = np.asarray(X, dtype=float)
    u, v = X[indices[:, 0]] - X[indices[:, 2]], X[indices[:, 0]] - X[indices[:, 1]]
    return np.einsum("ti,tj->tij", u, u) - np.einsum("ti,tj->tij", v, v)


def as_matrix(M):
    return np.diag(M) if np.ndim(M) == 1 else np.asarray(M)


def plus(A, cone):
    if cone == "diagonal":
        return np.diag(np.maximum(np.diag(A), 0))
    values, vectors = np.linalg.eigh(A)
    return (vectors * np.maximum(values, 0)) @ vectors.T


def loss_values(margins, gamma):
    b = 1 - margins
    if gamma == 0:
        return np.maximum(b, 0)
    a = np.clip(b / gamma, 0, 1)
    return a * b - gamma / 2 * a**2


def primal(X, indices, w, gamma, M, lam, prior=0.0):
    M = as_matrix(M)
    margins = np.einsum("tij,ij->t", matrices(X, indices), M)
    away = M - (as_matrix(prior) if np.ndim(prior) else prior)
    return w @ loss_values(margins, gamma) + lam / 2 * np.sum(away**2)


def dual(X, indices, w, gamma, alpha, lam, cone, prior=0.0):
    A = np.einsum("t,tij->ij", w * alpha, matrices(X, indices))
    N = as_matrix(prior) if np.ndim(prior) else prior * np.eye(len(A))
    B = plus(N + A / lam, cone)
    return w @ (alpha - gamma / 2 * alpha**2) - lam / 2 * np.sum((B - N) * (B + N))


def alpha_of(X, indices, gamma, M):
    margins = np.einsum("tij,ij->t", matrices(X, indices), as_matrix(M))
    return np.clip((1 - margins) / gamma, 0, 1)


def cvxpy_optimum(X, indices, w, gamma, lam, cone, prior=0.0):
    """(M, objective) by clarabel at its tightest tolerances; l(m) = min xi + z^2/(2 gamma), xi + z >= 1 - m."""
    H = matrices(X, indices)
    d, m = H.shape[1], len(H)
    if cone == "psd":
        M = cp.Variable((d, d), PSD=True)
        margins = H.reshape(m, d * d) @ cp.reshape(M, (d * d,), order="C")
        square = cp.sum_squares(M - prior)
    else:
        M = cp.Variable(d, nonneg=True)
        margins = np.einsum("tii->ti", H) @ M
        square = cp.sum_squares(M - prior)
    xi = cp.Variable(m, nonneg=True)
    constraints, value = [xi >= 1 - margins], w @ xi
    if gamma > 0:
        z = cp.Variable(m, nonneg=True)
        constraints, value = (
            [xi + z >= 1 - margins],
            w @ xi + cp.sum(cp.multiply(w, cp.square(z))) / (2 * gamma),
        )
    problem = cp.Problem(cp.Minimize(value + lam / 2 * square), constraints)
    tight = {f"tol_{name}": 1e-12 for name in ("gap_abs", "gap_rel", "feas")}
    with warnings.catch_warnings():  # it may say that its very last digits are missing
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        problem.solve(solver=cp.CLARABEL, max_iter=500, **tight)
    assert problem.status in ("optimal", "optimal_inaccurate")
    return np.asarray(M.value), float(problem.value)
