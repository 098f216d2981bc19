"""Own spheres speak in the units of X at every scale, and own solvers are not believed."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest

import triscreen as ts
from triscreen._utils import threads as _threads
from triscreen.errors import OutOfTime


def problem_at(exponent, n=60):
    rng = np.random.default_rng(1)
    y = np.arange(n) % 3
    X = np.ldexp(rng.normal(size=(n, 4)) + 0.7 * rng.normal(size=(3, 4))[y], exponent)
    return ts.Problem(X, ts.knn_triplets(X, y, 4, n_jobs=1), n_jobs=1)


@pytest.mark.parametrize("exponent", [-150, -40, 0, 40, 150])
def test_an_own_sphere_around_a_known_metric_holds_at_every_scale(exponent):
    problem = problem_at(exponent)
    lam = 0.01 * problem.lambda_max()
    known = ts.solve(problem, lam, tol=1e-5, screening=None)
    seen = []

    def around(cone, evaluation, told):
        seen.append((told, evaluation.M, evaluation.A, evaluation.dual_point))
        return ts.Sphere(known.M, known.radius, "known")

    sol = ts.solve(problem, lam, tol=1e-6, screening=ts.Screening(around, every=2, include_solution=True))
    assert sol.converged
    assert problem.certificate(sol.M, lam).rel_gap == pytest.approx(sol.rel_gap, rel=1e-4, abs=1e-9)
    assert sum(event["L"] + event["R"] for event in sol.screening) > 0
    assert sol.screening[0]["radius"] >= known.radius
    told, M, A, point = seen[0]  # later ones are of what is left of the problem
    size = np.abs(A).max()
    assert told == lam
    assert np.allclose(lam * M - A, problem.gradient(M, lam), atol=1e-9 * size)
    assert np.allclose(point.factor @ point.factor.T, point.plus, atol=1e-12 * size)


@dataclass
class Liar:
    """Shows the monitor a gap of nothing at every step."""

    def run(self, engine, lam, evaluation, monitor):
        for _ in range(4):
            M = engine.cone.project(evaluation.M + 0.1 * evaluation.A / lam)
            now = engine.evaluate(M.plus, engine.distances(M.factor), lam, evaluation.sums.smoothing)
            A = lam * now.M
            told = replace(now, A=A, dual_point=engine.cone.project(A), dual=now.primal, gap=0.0, slack=0.0)
            if monitor.saw(told, 1.0):
                return engine, told
            engine, evaluation = monitor.refresh(engine, now)
        return engine, evaluation


def is_true(problem, sol):
    assert sol.gap >= 0.99 * (sol.primal - ts.solve(problem, sol.lam, tol=1e-8).primal)
    assert sol.primal == pytest.approx(problem.value(sol.M, sol.lam), rel=1e-9)


@pytest.mark.parametrize("screening", [None, ts.Screening("mid", every=1, include_solution=True), "auto"])
def test_an_own_solver_that_lies_is_not_believed_wherever_it_ends(screening, monkeypatch):
    problem = problem_at(0)
    lambdas = problem.lambda_max() * np.array([0.5, 0.4])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.ConvergenceWarning)
        for max_iter in (1, 50):
            arguments = {"solver": Liar(), "max_iter": max_iter, "screening": screening}
            is_true(problem, ts.solve(problem, lambdas[1], **arguments))
            for sol in ts.solve_path(problem, lambdas, **arguments):
                is_true(problem, sol)
        # and when the time is over, where not even the certificate can be made
        looks = []

        def over(run):
            looks.append(run.limit is not None)
            if sum(looks) > 12 and run.limit is not None:
                raise OutOfTime("the time is over")

        with monkeypatch.context() as patch:
            patch.setattr(_threads._Run, "check", over)
            sol = ts.solve(problem, lambdas[1], solver=Liar(), max_seconds=1e9, screening=screening)
            looks.clear()
            path = ts.solve_path(problem, lambdas, solver=Liar(), max_seconds=1e9, screening=screening)
        is_true(problem, sol)
        is_true(problem, path[0])
