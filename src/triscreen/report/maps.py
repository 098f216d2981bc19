"""What screening can prove along a path, measured anew: the figures of the paper for a problem of one's own.

References
----------
T. Yoshida, I. Takeuchi, M. Karasuyama. Safe Triplet Screening for Distance Metric Learning. KDD 2018. arXiv:1802.03923:
section 5 (screening rates of the spheres along a path, and of ranges).
"""

from __future__ import annotations

import warnings

import numpy as np

from triscreen.errors import ConvergenceWarning
from triscreen.problem.units import LAMBDA
from triscreen.screening import Screening
from triscreen.screening.ranges import rrpb_ranges
from triscreen.screening.working_set import Reference
from triscreen.solvers import solve

# (sphere, rule): all spheres with the sphere rule, and the half-space that makes the oldest of them better.
CASES = (
    ("gb", "sphere"), ("gb", "linear"), ("pgb", "sphere"), ("dgb", "sphere"), ("cdgb", "sphere"), ("rrpb", "sphere"),
    ("mid", "sphere"),
)  # fmt: skip
EVERY = 2
_NEVER = 10**9


def rates_by_sphere(problem, path, stops, max_seconds=None):
    """Return {"sphere + rule": shares}: what each proves at each stop from the solution before it, at once."""
    rates = {f"{sphere} + {rule}": [] for sphere, rule in CASES}
    for t in stops:
        for sphere, rule in CASES:
            screening = Screening(sphere, rule=rule, every=_NEVER)
            sol = _solve(problem, path.lambdas[t], 1e-14, path[t - 1], screening, max_iter=1, max_seconds=max_seconds)
            decided = sum(event["L"] + event["R"] for event in sol.screening if event["n_iter"] == 0)
            rates[f"{sphere} + {rule}"].append(decided / problem.triplets.n_triplets)
    return rates


def dynamic_map(problem, path, stops, sphere="pgb", max_seconds=None):
    """Return (iterations, shares): one row per stop, what is decided after so many iterations; NaN after the end."""
    rows = []
    for t in stops:
        screening = Screening(("rrpb", sphere), every=EVERY)
        sol = _solve(problem, path.lambdas[t], path.tol, path[t - 1], screening, max_iter=400, solver="bb",
                     max_seconds=max_seconds)  # fmt: skip
        decided = 1 - sol.history["undecided"] / problem.triplets.n_triplets
        rows.append(decided[::EVERY] if len(decided) else np.zeros(1))
    longest = max(map(len, rows), default=0)
    shares = np.full((len(rows), longest), np.nan)
    for row, values in zip(shares, rows, strict=True):
        row[: len(values)] = values
    return EVERY * np.arange(longest), shares


def range_map(problem, path, stops):
    """Return shares (len(stops), len(path)): what RRPB proves at each lambda from the solution at a stop."""
    triplets = problem.triplets
    positive, negative = triplets.pair_numbers(np.ones(triplets.n_triplets, dtype=bool))
    norms = problem.norms * problem.rounding.norm_factor + problem.rounding.norm_offset
    shares, lambdas = np.zeros((len(stops), len(path))), problem.units.into(path.lambdas, LAMBDA)
    for row, t in zip(shares, stops, strict=True):
        sol, lam = path[t], float(lambdas[t])
        reference = Reference.at(problem, problem.checked(sol.M)[1], lam, sol.smoothing)
        evaluation, bound = reference.evaluate(problem, lam)
        eps = np.sqrt(2 * (evaluation.gap + bound) / lam) + problem.rounding.element(reference.M)
        margins = reference.dist[negative] - reference.dist[positive]
        errors, away, prior = np.full(len(margins), reference.margin_error(problem)), reference.M, problem.prior
        if prior is not None:
            eps, away, own = eps + prior.error, reference.M - prior.core, problem.prior_distances
            prior = own[negative] - own[positive], np.full(len(margins), problem.scaled_error(0.0, 0.0))
            margins, errors = margins - prior[0], errors + prior[1]
        size = float(np.linalg.norm(away))
        ranges = rrpb_ranges(margins, errors, norms, size, lam, float(eps), problem.loss.gamma, prior)
        for low, high in ranges.values():
            some = low < high
            row += np.searchsorted(np.sort(low[some]), lambdas, "left")
            row -= np.searchsorted(np.sort(high[some]), lambdas, "right")
    return shares / triplets.n_triplets


def _solve(problem, lam, tol, start, screening, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return solve(problem, lam, tol=tol, start=start, screening=screening, **more)
