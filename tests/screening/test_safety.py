"""No triplet is screened wrongly: the fast part of the sweep (`make nightly` runs the long one), and exact ties."""

from __future__ import annotations

import numpy as np
import pytest
from safety import sweep, sweep_all

import triscreen as ts
from triscreen.screening.by_triplet import Screener


def is_safe(counts):
    assert counts["wrong"] == 0, {k: v for k, v in counts.items() if k.startswith("wrong")}


@pytest.mark.parametrize("seed", range(30))
def test_no_triplet_is_screened_wrongly(seed):
    is_safe(sweep([seed]))


@pytest.mark.parametrize("seed", range(24))
def test_no_pair_of_all_triplets_leaves_wrongly(seed):
    is_safe(sweep_all([seed]))


def test_the_sweep_decides_much_and_hard_cases_too():
    counts = sweep(range(30, 34))
    is_safe(counts)
    assert counts["decisions"] > 1_500
    assert counts["hard"] > 500
    assert sweep_all(range(30, 34))["decisions"] > 1_000


def zones_from(problem, M, lam, bounds, rule, lam0=None):
    M = np.asarray(M, dtype=float)
    dist = problem.distances(problem.cone.project(M).factor)
    screener = Screener(problem, ts.Screening(bounds, rule=rule), lam, 1e-6)
    screener.start(problem.evaluate(M, dist, lam, problem.loss.gamma or 1e-3), lam0)
    return screener.zones


@pytest.mark.parametrize("rule", ["sphere", "linear", "semidefinite"])
@pytest.mark.parametrize("cone", ["psd", "diagonal"])
def test_exact_ties_are_never_screened(cone, rule):
    """d = 1, closed form: at lam = lambda_max the largest margin is exactly 1; at lam_max/(1 - g) exactly 1 - gamma.

    On the threshold a triplet is neither below nor above it, from whatever reference and however close.
    """
    rng = np.random.default_rng(0)
    for trial in range(60):
        X = rng.normal(size=(6, 1)) * 10.0 ** rng.integers(-3, 4)
        indices = np.array([[0, 1, 2], [0, 1, 3], [2, 3, 4]])
        gamma = float(rng.choice([0.05, 0.3]))
        problem = ts.Problem(X, ts.given_triplets(indices), loss=ts.SmoothedHinge(gamma), cone=cone)
        u, v = X[indices[:, 0]] - X[indices[:, 2]], X[indices[:, 0]] - X[indices[:, 1]]
        h = (u * u - v * v).ravel()
        S = max(h.sum(), 0.0)
        if S == 0 or h.max() <= 0:
            continue
        lam = S * h.max() / (1 - gamma)  # every triplet linear, the largest margin exactly 1 - gamma
        best = np.full((1, 1) if cone == "psd" else (1,), S / lam)
        tie = int(np.argmax(h))
        for factor in (1.0, 1 - 1e-15, 1 + 1e-12, 1 - 1e-9, 0.99, 1.3):
            for bound in ("gb", "pgb", "dgb", "cdgb", "mid"):
                zones = zones_from(problem, best * factor, lam, (bound,), rule)
                assert zones[tie] == 0, (trial, factor, bound)
            zones = zones_from(problem, best * factor, lam, ("rrpb",), rule, lam0=lam * 1.0000001)
            assert zones[tie] == 0, (trial, factor)


def test_a_tie_of_the_zero_zone_is_never_screened():
    """One triplet, hinge: for lam < h^2 its margin at the optimum is exactly 1, the kink."""
    problem = ts.Problem([[0.0], [1.0], [3.0]], ts.given_triplets([[0, 1, 2]]), loss=ts.Hinge())
    for factor in (1.0, 1 - 1e-15, 1 + 1e-15, 1 - 1e-8, 1 + 1e-8, 0.9, 1.1):
        for bound in ("gb", "pgb", "dgb", "cdgb", "mid"):
            for rule in ("sphere", "linear", "semidefinite"):
                assert zones_from(problem, [[factor / 8]], 1.0, (bound,), rule)[0] == 0, (factor, bound, rule)
