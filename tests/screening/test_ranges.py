"""Intervals of lambda against the sphere rule applied at each lambda."""

from __future__ import annotations

import numpy as np
import pytest
from general_ranges import general_form, general_ranges
from hypothesis import given
from hypothesis import strategies as st

from problems import make_case, random_metric
from triscreen._kernels.common import LINEAR
from triscreen.screening import spheres
from triscreen.screening.ranges import rrpb_ranges


def brute(margin_at, norms, radius_at, lam, gamma):
    h, r = margin_at(lam), radius_at(lam)
    return {2: h - r * norms > 1, 1: h + r * norms < 1 - gamma}


def compare(ranges, decided_at, lam0, clear=1e-5):
    """Inside an interval the rule holds; and where it holds from lam0 on without a break, the interval reaches."""
    for direction in (0.97, 1.03):
        lam, steps = lam0, 120
        alive = {zone: decided_at(lam0)[zone] for zone in (1, 2)}
        for _ in range(steps):
            now = decided_at(lam)
            for zone in (1, 2):
                low, high = ranges[zone]
                inside = (low < lam) & (lam < high)
                assert not (inside & ~now[zone]).any()
                alive[zone] = alive[zone] & now[zone]
                surely = alive[zone] & ~inside
                # only those within a hair of an end may be missing
                near = (np.abs(low / lam - 1) < clear) | (np.abs(high / lam - 1) < clear)
                assert not (surely & ~near).any()
            lam *= direction


@given(
    st.integers(0, 10**6), st.floats(0, 0.2), st.floats(-1, 1), st.sampled_from([0.05, 0.5, 0.0]),
    st.sampled_from([None, 0.1, 1.0, 10.0]),
)  # fmt: skip
def test_rrpb_intervals(seed, eps, log_size, gamma, of_prior):
    rng = np.random.default_rng(seed)
    size, lam0, n = 10**log_size, 3.0, 400
    norms = 10 ** rng.uniform(-2, 1.5, n)
    margins = size * norms * rng.uniform(-1, 1, n)
    b = np.zeros(n) if of_prior is None else of_prior * norms * rng.uniform(-1, 1, n)
    prior = None if of_prior is None else (b, np.zeros(n))
    ranges = rrpb_ranges(margins, np.zeros(n), norms, size, lam0, eps * size, gamma, prior)

    def margin_at(lam):
        return b + (lam0 + lam) / (2 * lam) * margins

    def radius_at(lam):
        change = abs(lam0 - lam)
        return change / (2 * lam) * size + (change + lam0 + lam) / (2 * lam) * eps * size

    compare(ranges, lambda lam: brute(margin_at, norms, radius_at, lam, gamma), lam0)


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
@pytest.mark.parametrize("name", ["gb", "dgb", "mid"])
@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5, 6])
def test_general_intervals(cone, name, seed):
    case = make_case(seed, cone=cone, gamma=0.3, m=200)
    problem = case.problem
    lam0 = 0.2 * problem.lambda_max()
    M = random_metric(seed, 3, cone, 0.05)
    e = problem.evaluate(M, problem.distances(problem.cone.project(M).factor), lam0, 0.3)
    B, A, square = general_form(name, problem.cone, e)
    H = np.einsum("ti,tj->tij", *[case.X[case.indices[:, 0]] - case.X[case.indices[:, 2]]] * 2)
    H -= np.einsum("ti,tj->tij", *[case.X[case.indices[:, 0]] - case.X[case.indices[:, 1]]] * 2)
    if cone == "diagonal":
        H = np.einsum("tii->ti", H)
    flat = H.reshape(len(H), -1)
    hA, hB = flat @ A.ravel(), flat @ B.ravel()
    zero = np.zeros(len(H))
    ranges = general_ranges(hA, hB, (zero, zero), problem.norms, square, lam0, 0.3)

    def sphere_at(lam):
        return spheres.BOUNDS[name].at(problem.cone, e, lam)

    # the general form is the sphere itself, for every lambda
    for lam in (0.5 * lam0, lam0, 3 * lam0):
        sphere = sphere_at(lam)
        assert A + B / lam == pytest.approx(sphere.center, abs=1e-12 * np.abs(sphere.center).max())
        a, b, c = square
        assert a + b / lam + c / lam**2 == pytest.approx(sphere.radius**2, rel=1e-9)

    def decided(lam):
        sphere = sphere_at(lam)
        return brute(lambda _: flat @ sphere.center.ravel(), problem.norms, lambda _: sphere.radius, lam, 0.3)

    for zone, (low, high) in ranges.items():
        for lam in lam0 * 1.05 ** np.arange(-60, 61):
            inside = (low < lam) & (lam < high)
            assert not (inside & ~decided(lam)[zone]).any()
        here = decided(lam0)[zone]
        assert (((low < lam0) & (lam0 < high)) == here).mean() > 0.9


def test_a_triplet_along_the_solution_itself_stays_linear_for_every_larger_lambda():
    """<H, M0> = |H| |M0|, as always in one dimension: no upper end, and no range if the margin is too large."""
    for margin, high in ((0.2, np.inf), (0.6, np.inf), (0.94, np.inf), (0.96, 0.0)):
        found = rrpb_ranges(np.array([margin]), np.zeros(1), np.ones(1), margin, 1.0, 0.0, 0.05)[LINEAR]
        assert found[1][0] == high
        assert (found[0][0] < 1) == (high > 0)
