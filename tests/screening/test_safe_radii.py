"""Radii with their rounding are those of the theorems: every term is there, on the safe side.

The errors themselves are made up, and large, so that a term that is missing or has the wrong sign shows.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import triscreen as ts
from problems import make_case, random_metric
from triscreen.problem.rounding import U
from triscreen.screening import spheres
from triscreen.screening.ranges import rrpb_ranges
from triscreen.screening.rules import LINEAR, ZERO

PULL, ELEMENT, MARGIN, GAP = 0.31, 0.07, 0.011, 0.53
CASES = [("psd", 0.05, None), ("diagonal", 0.3, None), ("psd", 0.0, None), ("psd", 0.05, 1), ("diagonal", 0.05, 2)]


def made_up(problem):
    """Errors of the right kind and of any size."""
    return SimpleNamespace(
        pull=lambda pull, weight, lam: PULL, element=lambda M: ELEMENT, margin=lambda dist, trace: MARGIN,
        gap=lambda *_: GAP, cone=problem.cone, loss=problem.loss, triplets=problem.triplets,
    )  # fmt: skip


@pytest.fixture(params=CASES, ids=str)
def at(request):
    """(problem, evaluation, lam) away from the optimum."""
    cone, gamma, prior = request.param
    problem = make_case(3, cone=cone, gamma=gamma, prior=prior, weighted=True).problem
    lam = 0.05 * problem._lambda_max
    M = random_metric(5, 3, cone, 0.2)
    dist = problem.distances(problem.cone.project(M).factor)
    return problem, problem.evaluate(M, dist, lam, gamma or 0.2), lam


def safe(at, bound, lam0=None):
    problem, e, lam = at
    sphere, _ = spheres.BOUNDS[bound].make(problem, e, lam, lam0)
    own = 64 * len(sphere.center) * U * (np.linalg.norm(sphere.center) + sphere.radius) + ELEMENT
    return sphere, sphere.safe_radius(made_up(problem), e, lam), own, PULL / lam


def test_gb(at):
    sphere, found, own, dA = safe(at, "gb")
    assert found == pytest.approx(sphere.radius + dA + own, rel=1e-12)


def test_pgb(at):
    sphere, found, own, dA = safe(at, "pgb")
    _, e, lam = at
    gb = np.linalg.norm(e.M - e.target(lam)) / 2 + np.sqrt(e.slack / lam)
    assert found == pytest.approx(np.sqrt(sphere.radius**2 + 2 * gb * (dA + own) + (dA + own) ** 2) + own, rel=1e-12)


def test_dgb(at):
    sphere, found, own, _ = safe(at, "dgb")
    assert found == pytest.approx(np.sqrt(sphere.radius**2 + 2 * GAP / at[2]) + own, rel=1e-12)


def test_cdgb(at):
    problem, e, lam = at
    sphere, found, own, dA = safe(at, "cdgb")
    error = 2 * problem.triplets.total_weight * MARGIN / lam + np.linalg.norm(e.projected(lam)) * PULL
    error += PULL**2 / (2 * lam)
    assert found == pytest.approx(np.sqrt(sphere.radius**2 + error / lam) + dA + own, rel=1e-9)


@pytest.mark.parametrize("share", [0.8, 1.3])
def test_rrpb_from_a_gap_with_its_error(at, share, monkeypatch):
    problem, e, lam = at
    lam0 = share * lam
    monkeypatch.setattr(spheres, "gap_error", lambda *_: GAP)
    monkeypatch.setattr(problem.rounding, "element", lambda M: ELEMENT)
    sphere, _ = spheres.BOUNDS["rrpb"].make(problem, e, lam, lam0)
    there = problem.at_lambda(e, lam0)
    gap = there.slack + problem.cone.gap(there.M, there.dual_point, lam0)
    eps = np.sqrt(2 * (gap + GAP) / lam0) + problem.rounding.element(e.M)
    N, error = (0.0, 0.0) if problem.prior is None else (problem.prior.core, problem.prior.error)
    away, change = np.linalg.norm(e.M - N), abs(lam0 - lam)
    radius = change / (2 * lam) * away + (change + lam0 + lam) / (2 * lam) * eps + change / lam * error
    assert sphere.radius == pytest.approx(radius, rel=1e-9)
    np.testing.assert_allclose(sphere.center, N + (lam0 + lam) / (2 * lam) * (e.M - N), rtol=1e-12, atol=1e-14)
    assert sphere.safe_radius(made_up(problem), e, lam) >= sphere.radius + ELEMENT


def test_mid(at):
    sphere, found, own, dA = safe(at, "mid")
    assert found == pytest.approx(np.sqrt(sphere.radius**2 + GAP / at[2]) + dA / 2 + own, rel=1e-12)


def test_a_sphere_of_the_users_grows_by_its_arithmetic(at):
    problem, e, lam = at
    sphere = ts.Sphere(e.M, 0.5)
    own = 64 * len(e.M) * U * (np.linalg.norm(e.M) + 0.5) + ELEMENT
    assert sphere.safe_radius(made_up(problem), e, lam) == pytest.approx(0.5 + own, rel=1e-14)


def holds(zone, margins, errors, norms, size, lam0, lam, eps, gamma, prior):
    """Which triplets RRPB at lam decides so, by the theorem itself."""
    of_prior, more = (0.0, 0.0) if prior is None else prior
    scale, change = (lam0 + lam) / (2 * lam), abs(lam0 - lam)
    center, off = of_prior + scale * margins, more + scale * errors
    off = off + norms * (change / (2 * lam) * size + (change + lam0 + lam) / (2 * lam) * eps)
    return center - off > 1 if zone == ZERO else center + off < 1 - gamma


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("with_prior", [False, True])
def test_ranges_are_those_of_the_rule_at_every_lambda(seed, with_prior):
    """Inside an interval the rule decides at every lambda, and outside of it at none."""
    rng = np.random.default_rng(seed)
    n, lam0, gamma = 200, 10 ** rng.uniform(-2, 2), float(rng.choice([0.0, 0.3]))
    norms, size, eps = rng.uniform(0.1, 2, n), rng.uniform(0.8, 3), 10 ** rng.uniform(-6, -1)
    most = norms * size  # |<H, M>| <= |H| |M|
    margins = rng.uniform(-0.9, 0.9, n) * most
    margins[::3] = np.minimum(rng.uniform(0.6, 1.5, len(margins[::3])), 0.9 * most[::3])
    errors = np.minimum(10 ** rng.uniform(-6, -2, n), 0.1 * most)
    prior = (rng.uniform(-0.5, 2, n), 10 ** rng.uniform(-6, -2, n)) if with_prior else None
    found = rrpb_ranges(margins, errors, norms, size, lam0, eps, gamma, prior)
    for zone in (ZERO, LINEAR):
        low, high = found[zone]
        here = holds(zone, margins, errors, norms, size, lam0, lam0, eps, gamma, prior)
        np.testing.assert_array_equal(here, low < high)
        seen = set()
        for lam in lam0 * np.geomspace(1e-4, 1e4, 81):
            told = holds(zone, margins, errors, norms, size, lam0, lam, eps, gamma, prior) & here
            clear = (np.abs(lam - low) > 1e-6 * lam) & (np.abs(lam - high) > 1e-6 * lam)
            np.testing.assert_array_equal(((low < lam) & (lam < high))[clear], told[clear])
            seen |= set(told.tolist())
        assert seen == {True, False}
