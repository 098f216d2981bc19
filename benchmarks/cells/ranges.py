"""What RRPB proves at every lambda from the solution at each of them: the map of range screening."""

from __future__ import annotations

import warnings

import numpy as np

import triscreen as ts
from benchmarks.cells.common import rounded, setting
from triscreen.report.maps import range_map


def measure(context, data, tol, seed, ratio=0.9, length=None, k="paper"):
    """Return the map, one row per reference solution of the relative gap tol (every second lambda)."""
    made = setting(context, data, seed, k)
    lambdas = made.lambdas(data, ratio, length)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.ConvergenceWarning)
        path = ts.solve_path(made.problem, lambdas, tol=tol, solver="bb", screening=None)
    stops = np.arange(0, len(path), 2)
    shares = range_map(made.problem, path, stops)
    # How far down from its own lambda, in decades, a solution still decides half of what it decides next to it.
    reach = []
    for row, t in zip(shares, stops, strict=True):
        below = row[t:] >= 0.5 * row[t] if row[t] > 0 else np.zeros(1, dtype=bool)
        last = len(below) if below.all() else int(np.argmin(below))
        reach.append(max(0, last - 1) * np.log10(1 / ratio))
    return {
        **made.facts,
        "cut": False,
        "lambdas": lambdas.tolist(),
        "stops": lambdas[stops].tolist(),
        "shares": [rounded(row, 4) for row in shares],
        "reach": rounded(reach),
        "median_rel_gap": float(np.median(path.rel_gaps)),
    }
