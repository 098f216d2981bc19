"""A small problem to the end: clarabel and SCS through cvxpy, and triscreen, all graded by the objective."""

from __future__ import annotations

import time

import triscreen as ts
from benchmarks.cells.common import setting
from benchmarks.objective import Objective
from benchmarks.solvers import exact


def measure(context, data, k, solver, ratio=1e-2, seed=0):
    """Return seconds and the relative gap of what a solver returns, at lambda_max * ratio."""
    made = setting(context, data, seed, k)
    lam = ratio * made.lambda_max
    objective = Objective.of(made.problem, made.X)
    if solver == "triscreen":
        ts.solve(made.problem, lam, tol=1e-9)  # warm
    begin = time.perf_counter()
    if solver == "triscreen":
        M = ts.solve(ts.Problem(made.X, made.problem.triplets), lam, tol=1e-9).M
    else:
        M = exact.solve(made.X, made.problem.triplets.indices(), made.problem.loss.gamma, lam, solver.upper())
    seconds = time.perf_counter() - begin
    score = objective.evaluate(M, lam)
    return {**made.facts, "cut": False, "lam": lam, "seconds": seconds, "primal": score.primal,
            "rel_gap": score.rel_gap}  # fmt: skip
