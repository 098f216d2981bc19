"""Imported by the server that workers are forked from: they have the kernels then, and need not load them each."""

from __future__ import annotations

import warnings

from kinds import KINDS, both, noisy

import triscreen as ts

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for kind in KINDS:
        for cone in ("psd", "diagonal"):
            problem = both(kind, n=30, cone=cone, n_jobs=1)[1]
            ts.solve_path(problem, ratio=0.5, n_lambdas=4)
            ts.solve(problem, 0.001 * problem.lambda_max(), tol=1e-8, solver="newton")
    ts.TripletMetricCV(3, cv=2, ratios=3, rounds=2, candidates=(None, "identity"), n_jobs=1).fit(*noisy())
