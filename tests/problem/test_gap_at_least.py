"""The gap's lower bound, which lets a solver do without the gap itself, is one."""

from __future__ import annotations

import numpy as np
import pytest

import triscreen as ts
from problems import make_case
from triscreen.problem.cones import PSD
from triscreen.problem.rough import Single
from triscreen.solvers.monitor import Monitor


@pytest.mark.parametrize("cone", [PSD(), Single()], ids=["double", "single"])
@pytest.mark.parametrize("seed", range(6))
def test_it_is_never_above_the_gap_and_reaches_it_in_the_right_basis(cone, seed):
    rng = np.random.default_rng(seed)
    for scale in (1e-3, 1.0, 1e3):
        lam, B = float(rng.exponential()), rng.normal(size=(2, 7, 7))
        M, A = scale * B[0] @ B[0].T, lam * scale * (B[1] + B[1].T)
        gap = cone.gap(M, PSD().project(A), lam)
        for share in (0.0, 0.1, 0.5, 1.0):
            trial = cone.project((1 - share) * M + share * A / lam)
            assert cone.gap_at_least(M, A / lam, trial, lam) <= gap * (1 + 1e-5)
        assert cone.gap_at_least(M, A / lam, trial, lam) >= gap * (1 - 1e-3)  # the basis of A itself


@pytest.mark.parametrize("gamma", [0.05, 0.0])
def test_gaps_that_are_skipped_are_too_large_and_a_path_stops_where_it_would_have(gamma, monkeypatch):
    problem = make_case(3, n=40, d=5, m=600, gamma=gamma).problem
    skipped, real = [], Monitor.saw

    def watched(self, evaluation, step, at_least=None):
        if at_least is not None:
            skipped.append(at_least > self.tol * evaluation.scale)
            assert at_least <= evaluation.gap * (1 + 1e-6) + 1e-12 * evaluation.primal
        return real(self, evaluation, step, at_least)

    lambdas = problem.lambda_max() * 0.6 ** np.arange(8)
    path = ts.solve_path(problem, lambdas, tol=1e-5, screening=None)
    monkeypatch.setattr(Monitor, "saw", watched)
    ts.solve_path(problem, lambdas, tol=1e-5, screening=None)
    assert any(skipped)
    monkeypatch.setattr(Monitor, "saw", lambda self, evaluation, step, at_least=None: real(self, evaluation, step))
    exact = ts.solve_path(problem, lambdas, tol=1e-5, screening=None)
    assert np.array_equal(path.n_iter, exact.n_iter)
    assert np.array_equal(path.gaps, exact.gaps)
