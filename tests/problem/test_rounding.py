"""The bounds on rounding hold, and are not vacuous: compared with extended precision."""

from __future__ import annotations

import numpy as np
import pytest

import triscreen as ts
from problems import random_metric
from triscreen.screening.by_triplet import Screener


def problem_of(seed, cone):
    rng = np.random.default_rng(seed)
    y = np.arange(40) % 2
    X = (rng.normal(size=(40, 5)) + y[:, None]) * 10.0 ** rng.uniform(-3, 3, 5) + 10.0 ** rng.uniform(0, 6)
    return ts.Problem(X, ts.knn_triplets(X, y, 4), cone=cone), X.astype(np.longdouble)


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
@pytest.mark.parametrize("seed", range(8))
def test_distances_norms_and_sums(cone, seed):
    problem, X = problem_of(seed, cone)
    T, rounding = problem.triplets, problem.rounding
    M = random_metric(2 * seed + 1, 5, cone)
    factor = problem.cone.project(M).factor
    F = np.diag(factor) if cone == "diagonal" else factor
    delta = X[T.first] - X[T.second]
    exact = np.square(delta @ F.astype(np.longdouble)).sum(axis=1)
    got = problem.distances(factor)
    bound = rounding.distances(got, float(np.square(factor).sum()))
    assert (np.abs(got - exact) <= bound).all()
    assert (bound > 0).all()
    assert np.median(bound / exact) < 1e-6
    i, j, k = T.indices().T
    u, v = X[i] - X[k], X[i] - X[j]
    H = u[:, :, None] * u[:, None, :] - v[:, :, None] * v[:, None, :]
    if cone == "diagonal":
        H = np.einsum("tii->ti", H)
    norms = np.sqrt(np.square(H).reshape(len(H), -1).sum(axis=1))
    assert (norms <= problem.norms * rounding.norm_factor + rounding.norm_offset).all()
    alpha = np.clip((1 - np.random.default_rng(seed).uniform(-1, 2, len(H))) / 0.5, 0, 1)
    _, c = T.sweep_alpha(got, alpha, 0.05, problem.threads)
    A = problem.assemble(c)
    exact = np.tensordot(alpha.astype(np.longdouble), H, axes=1)
    error = float(np.sqrt(np.square(A - exact).sum()))
    assert error <= rounding.sum_of_h(float(alpha.sum()))


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
def test_the_constant_matrix_of_a_reduced_problem(cone):
    for seed in range(6):
        problem, X = problem_of(seed, cone)
        lam = 0.05 * (problem._lambda_max or 1.0)
        sol = ts.solve(problem, lam, tol=1e-4, screening=None)
        core, _ = problem.to_core(sol.M)
        screener = Screener(problem, ts.Screening("mid"), lam, 1e-6)
        screener.start(problem.evaluate(core, problem.distances(problem.cone.project(core).factor), lam, 0.05), None)
        if screener.engine is problem:
            continue
        gone = screener.zones == 1
        gone[screener.numbers] = False
        i, j, k = problem.triplets.indices()[gone].T
        u, v = X[i] - X[k], X[i] - X[j]
        exact = u.T @ u - v.T @ v
        exact = np.diag(exact) if cone == "diagonal" else exact
        error = float(np.sqrt(np.square(screener.engine.linear_matrix - exact).sum()))
        assert error <= screener.rounding.linear_error
        assert screener.rounding.linear_error > 0
