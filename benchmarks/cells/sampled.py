"""The rate of a rule that is too dear for every triplet: a random sample of what the sphere rule left."""

from __future__ import annotations

import time
import warnings

import numpy as np

import triscreen as ts
from benchmarks.cells.common import rounded, setting
from triscreen.screening import rules


def measure(context, data, bound, seed, stops=14, sample=400, ratio=0.9, length=None, k="paper"):
    """Return the share decided by sphere + semidefinite rule at some lambdas, from the solution before each."""
    made = setting(context, data, seed, k)
    problem, lambdas = made.problem, made.lambdas(data, ratio, length)
    path = ts.solve_path(problem, lambdas)
    total, rng = problem.triplets.n_triplets, np.random.default_rng(seed)
    rows = []
    for t in np.unique(np.linspace(1, len(lambdas) - 1, stops).round().astype(int)):
        if time.perf_counter() > context.until:
            break
        seen = {}
        screening = ts.Screening(bound, rule=_sampler(rng, sample, seen), every=10**9, ranges=False, active_set=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ts.ConvergenceWarning)
            sol = ts.solve(problem, lambdas[t], tol=1e-14, start=path[t - 1], screening=screening, max_iter=1)
        sphere = next(event for event in sol.screening if event["rule"] == "sphere")
        left = sphere["undecided"]
        more = left * seen["gained"] / max(seen["tried"], 1)
        each = seen["seconds"] / max(seen["tried"], 1)
        rows.append((lambdas[t], 1 - left / total, 1 - (left - more) / total, each, each * left))
    lams, sphere, rate, each, seconds = zip(*rows, strict=True)
    return {
        **made.facts,
        "cut": False,
        "lambdas": [float(lam) for lam in lams],
        "sphere_rate": rounded(sphere),
        "first_rate": rounded(rate),
        "microseconds": rounded((1e6 * value for value in each), 2),
        "seconds_for_all": rounded(seconds, 3),
    }


def _sampler(rng, size, seen):
    """Return an own rule that tries the semidefinite one on a sample, and decides nothing."""

    def rule(engine, region, norms, zones):
        left = np.flatnonzero(zones == rules.UNDECIDED)
        some = rng.choice(left, min(size, len(left)), replace=False)
        trial = np.full_like(zones, rules.ZERO)
        trial[some] = rules.UNDECIDED
        begin = time.perf_counter()
        if len(some):
            rules.semidefinite(engine, region, norms, trial)
        gained = int(np.count_nonzero(trial[some] != rules.UNDECIDED))
        seen.update(tried=len(some), gained=gained, seconds=time.perf_counter() - begin)

    return rule
