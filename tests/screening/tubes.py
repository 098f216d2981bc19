"""Tubes, working sets and ranges along a walk, decision by decision."""

from __future__ import annotations

import warnings

import numpy as np
from probes import _margins as margins_at

import triscreen as ts
from triscreen.path.walk import Walk
from triscreen.problem.units import LAMBDA, METRIC


def tubes_at(problem, lam, rng, counts, label):
    """Walk a few lambdas down; every triplet that a working set fixes must keep its zone in all of the tube.

    The least margin over a tube is known: that of the worse end, less |H| times the radius. Zones of ranges are
    compared with optima down to the end of their stretch.
    """
    active, ranges = bool(rng.uniform() < 0.7), bool(rng.uniform() < 0.5)
    if not (active or ranges):
        active = True
    screening = ts.Screening("mid", ranges=ranges, active_set=active)
    tol = 1e-4 if problem.loss.gamma == 0 else 1e-6
    walk = Walk(problem, ts.solvers.BarzilaiBorwein(), screening, tol, 300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.ConvergenceWarning)
        for step in range(4):
            now = lam * 1.3 * 0.85**step
            walk.step(now, 0.93 * now)
            working = walk.working
            if working is None or not walk.references:
                continue
            if active:
                _in_tube(problem, walk, working, counts, f"tube, {label}")
            if ranges and step == 2:
                _ranges(problem, walk, counts, f"ranges, {label}")


def _in_tube(problem, walk, working, counts, label):
    reference, tube = walk.references[-1], working.tube
    begin, end = margins_at(problem, tube.begin), margins_at(problem, tube.end)
    smoothing = reference.sums.smoothing
    width = tube.radius * problem.norms
    least, largest = np.minimum(begin, end) - width, np.maximum(begin, end) + width
    fixed = _fixed(problem, working)
    doubt = 1e-11 * (1 + np.abs(begin) + np.abs(end))
    if walk.screening.ranges:  # those may be fixed by what holds at optima only
        fixed &= (least > 1 - doubt) | (largest < 1 - smoothing + doubt)
    wrong = fixed & ~((least > 1 - doubt) | (largest < 1 - smoothing + doubt))
    counts["fixed by tubes"] += int(fixed.sum())
    if wrong.any():
        counts["wrong"] += int(wrong.sum())
        counts[f"wrong: {label}"] += int(wrong.sum())


def _fixed(problem, working):
    """Mask of the problem's triplets that are not in the working set."""
    pairs, part = working.pairs, working.engine.triplets
    positive, negative = part.pair_numbers(np.ones(part.n_triplets, dtype=bool))
    inside = set(zip(pairs[positive].tolist(), pairs[negative].tolist(), strict=True))
    everything = np.ones(problem.triplets.n_triplets, dtype=bool)
    both = zip(*(numbers.tolist() for numbers in problem.triplets.pair_numbers(everything)), strict=True)
    return np.array([pair not in inside for pair in both])


def _ranges(problem, walk, counts, label):
    reference, gamma = walk.references[-1], problem.loss.gamma
    if walk.until > reference.lam or gamma == 0:
        return
    zones = walk._range_zones(reference, gamma)
    for share in (0.0, 0.5, 1.0):
        lam = reference.lam ** (1 - share) * walk.until**share
        told = problem.units.out(float(lam), LAMBDA)
        best = ts.solve(problem, told, tol=1e-12, screening=None, max_iter=800)
        margins = margins_at(problem, problem.to_core(best.M)[0])
        doubt = problem.norms * problem.units.into(best.radius, METRIC) * (1 + 1e-9) + 1e-11 * (1 + np.abs(margins))
        wrong = ((zones == 2) & (1 - margins > doubt)) | ((zones == 1) & (margins - (1 - gamma) > doubt))
        counts["zones of ranges"] += int(np.count_nonzero(zones))
        if wrong.any():
            counts["wrong"] += int(wrong.sum())
            counts[f"wrong: {label}"] += int(wrong.sum())
