"""The paper's theorems about spheres, and ours, on small problems."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import triscreen as ts
from problems import make_case, random_metric
from triscreen.screening import spheres

CONES = ["psd", "diagonal"]
PRIORS = [None, 1, 2]  # none, and random ones: of full rank, of rank one


def evaluated(case, M, lam, smoothing=None):
    problem = case.problem
    factor = problem.cone.project(M).factor
    return problem.evaluate(M, problem.distances(factor), lam, smoothing or case.gamma)


def scale(case):
    """A lambda at which the triplets begin to matter."""
    top = case.problem._lambda_max
    return top if case.prior is None else 0.02 * top


def optimum(case, ratio, tol=1e-13):
    problem = case.problem
    lam = ratio * scale(case)
    sol = ts.solve(problem, lam, tol=tol, screening=None)
    return lam, sol


def cdgb(case, e, lam):
    dist = case.problem.distances(e.dual_point.factor) / lam
    T, threads = case.problem.triplets, case.problem.threads
    return spheres.CDGB.at(
        case.problem.cone, e, lam, T.cross_slack(e.dist, e.sums.smoothing, dist, case.gamma, threads)
    )


def all_spheres(case, e, lam):
    cone = case.problem.cone
    made = [spheres.BOUNDS[name].at(cone, e, lam) for name in ("gb", "pgb", "dgb", "mid")]
    return [*made, cdgb(case, e, lam)]


def inside(small, large, slack=1e-9):
    distance = np.linalg.norm(small.center - large.center)
    return distance + small.radius <= large.radius * (1 + slack) + slack * np.linalg.norm(large.center)


@given(
    st.integers(0, 10**6), st.sampled_from(CONES), st.sampled_from([0.05, 1.0]), st.floats(-3, 0.2), st.floats(-2, 2),
    st.sampled_from(PRIORS),
)  # fmt: skip
def test_every_sphere_contains_the_optimum(seed, cone, gamma, log_ratio, log_size, prior):
    case = make_case(seed % 50, cone=cone, gamma=gamma, weighted=seed % 2 == 0, prior=prior)
    assume(case.problem._lambda_max > 0)
    lam, sol = optimum(case, 10**log_ratio, 1e-11)
    M = random_metric(seed, 3, cone, 10**log_size * np.linalg.norm(sol.M))
    for sphere in all_spheres(case, evaluated(case, M, lam), lam):
        distance = np.linalg.norm(sphere.center - sol.M)
        assert distance <= sphere.radius * (1 + 1e-9) + sol.radius, sphere.name


@given(
    st.integers(0, 10**6), st.sampled_from(CONES), st.floats(-1.0, -0.1), st.floats(-2, 2), st.floats(-3, 0),
    st.sampled_from(PRIORS),
)  # fmt: skip
def test_every_sphere_contains_the_optimum_of_the_hinge(seed, cone, log_ratio, log_size, log_smoothing, prior):
    """With a smoothed alpha, GB and PGB need their error term: d = 1 shows that they fail without it."""
    case = make_case(seed % 30, cone=cone, gamma=0.0, prior=prior)
    assume(case.problem._lambda_max > 0)
    lam, sol = optimum(case, 10**log_ratio, 1e-5)
    M = random_metric(seed, 3, cone, 10**log_size * np.linalg.norm(sol.M))
    for sphere in all_spheres(case, evaluated(case, M, lam, 10**log_smoothing), lam):
        assert np.linalg.norm(sphere.center - sol.M) <= sphere.radius * (1 + 1e-9) + sol.radius, sphere.name


def test_gb_of_the_hinge_needs_its_error_term():
    """d = 1, h = 1, lam = 0.5, M = 0.99: M* = 1, and GB without the slack ends at 0.99."""
    problem = ts.Problem([[0.0], [0.0], [1.0]], ts.given_triplets([[0, 1, 2]]), loss=ts.Hinge())
    e = problem.evaluate(np.array([[0.99]]), np.array([0.0, 0.99]), 0.5, 0.05)
    assert e.slack > 0
    sphere = spheres.GB.at(problem.cone, e, 0.5)
    assert abs(sphere.center[0, 0] - 1.0) <= sphere.radius
    blind = np.sqrt(sphere.radius**2 - e.slack / 0.5)
    assert abs(sphere.center[0, 0] - 1.0) > blind


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("change", [0.9, 0.5, 1.3])
def test_from_an_exact_optimum(cone, change, prior):
    """PGB = RPB = MID; r_DGB = 2 r_RPB, and DGB contains RPB; PGB, DGB, MID shrink to a point at lam0.

    With a prior, RPB is the ball of the multiplier of lam0. PGB, which takes the best one, is no larger; MID, which
    takes that of the projection, has a smaller gap, but may be larger.
    """
    for seed in range(6):
        case = make_case(seed, cone=cone, weighted=True, prior=prior)
        lam0, sol = optimum(case, 0.1)
        e, kind = evaluated(case, sol.M, lam0), case.problem.cone
        size = np.linalg.norm(sol.M)
        for name in ("pgb", "dgb", "mid"):
            assert spheres.BOUNDS[name].at(kind, e, lam0).radius <= 1e-5 * size
        lam = change * lam0
        rpb = spheres.RPB.at(sol.M, lam0, lam, case.problem.prior)
        e = evaluated(case, sol.M, lam)
        for name in ("pgb", "mid"):
            sphere = spheres.BOUNDS[name].at(kind, e, lam)
            if case.prior is not None:
                assert name == "mid" or sphere.radius <= rpb.radius * (1 + 1e-4) + 20 * sol.radius
                continue
            assert sphere.center == pytest.approx(rpb.center, abs=20 * sol.radius + 1e-9 * size)
            assert sphere.radius == pytest.approx(rpb.radius, rel=1e-4)
        dgb = spheres.DGB.at(kind, e, lam)
        assert dgb.radius <= 2 * rpb.radius * (1 + 1e-4) + 20 * sol.radius
        if case.prior is None:
            assert dgb.radius == pytest.approx(2 * rpb.radius, rel=1e-4)
            assert inside(rpb, dgb, 1e-4)


@given(st.integers(0, 10**6), st.sampled_from(CONES), st.floats(0.3, 1.5), st.floats(-2, 1), st.sampled_from(PRIORS))
def test_mid_is_inside_dgb_and_never_larger_than_rrpb(seed, cone, change, log_size, prior):
    case = make_case(seed % 40, cone=cone, prior=prior)
    assume(case.problem._lambda_max > 0)
    kind, lam0 = case.problem.cone, 0.1 * scale(case)
    M = random_metric(seed, 3, cone, 10**log_size * 0.1)
    lam = change * lam0
    e, there = evaluated(case, M, lam0), evaluated(case, M, lam)
    mid, dgb = spheres.MID.at(kind, there, lam), spheres.DGB.at(kind, there, lam)
    assert inside(mid, dgb)
    assert mid.radius <= dgb.radius
    if case.prior is not None:
        return
    # Where M0 = M(a0), as after a dual solver: not larger than RRPB from the same gap.
    Ma = e.dual_point.plus / lam0
    gap = cdgb(case, e, lam0).radius ** 2 * lam0
    eps = np.sqrt(2 * gap / lam0)
    rest = gap / lam + (np.linalg.norm(Ma - e.dual_point.plus / lam) / 2) ** 2
    assert np.sqrt(rest) <= spheres.RRPB.at(Ma, lam0, lam, eps).radius * (1 + 1e-9)


@given(st.integers(0, 10**6), st.sampled_from(CONES), st.sampled_from(PRIORS))
def test_rrpb_at_its_own_lambda_is_dgb(seed, cone, prior):
    case = make_case(seed % 40, cone=cone, prior=prior)
    assume(case.problem._lambda_max > 0)
    lam = 0.1 * scale(case)
    e = evaluated(case, random_metric(seed, 3, cone, 0.1), lam)
    dgb = spheres.DGB.at(case.problem.cone, e, lam)
    rrpb = spheres.RRPB.at(e.M, lam, lam, np.sqrt(2 * e.gap / lam), prior=case.problem.prior)
    assert rrpb.center == pytest.approx(dgb.center, abs=1e-15 * (1 + np.abs(dgb.center).max()))
    assert case.prior is not None or np.array_equal(rrpb.center, dgb.center)
    assert rrpb.radius == pytest.approx(dgb.radius, rel=1e-12)


@given(st.integers(0, 10**6), st.sampled_from(CONES), st.floats(0.5, 2.0), st.sampled_from(PRIORS))
def test_rrpb_contains_the_next_optimum(seed, cone, change, prior):
    case = make_case(seed % 40, cone=cone, prior=prior)
    assume(case.problem._lambda_max > 0)
    lam0 = 0.05 * scale(case)
    rough = ts.solve(case.problem, lam0, tol=1e-2, screening=None)
    exact = ts.solve(case.problem, change * lam0, tol=1e-11, screening=None)
    sphere = spheres.RRPB.at(rough.M, lam0, change * lam0, rough.radius, prior=case.problem.prior)
    assert np.linalg.norm(sphere.center - exact.M) <= sphere.radius + exact.radius


@given(st.integers(0, 10**6), st.sampled_from(CONES), st.floats(-2, 1), st.sampled_from(PRIORS))
def test_gb_with_its_half_space_is_inside_pgb(seed, cone, log_size, prior):
    """Every point of GB with <P, X> >= 0, P = -[Q_GB]_-, is in PGB."""
    case = make_case(seed % 40, cone=cone, prior=prior)
    assume(case.problem._lambda_max > 0)
    lam = 0.05 * scale(case)
    e = evaluated(case, random_metric(seed, 3, cone, 10**log_size * 0.1), lam)
    gb, pgb = spheres.GB.at(case.problem.cone, e, lam), spheres.PGB.at(case.problem.cone, e, lam)
    P = np.zeros_like(gb.center) if gb.normal is None else case.problem.cone.project(gb.center).plus - gb.center
    rng = np.random.default_rng(seed)
    for _ in range(200):
        step = rng.normal(size=gb.center.shape)
        step = step + step.T if cone == "psd" else step
        X = gb.center + gb.radius * rng.uniform() ** 0.2 * step / np.linalg.norm(step)
        if np.vdot(P, X) >= 0:
            assert np.linalg.norm(X - pgb.center) <= pgb.radius * (1 + 1e-9) + 1e-9 * np.linalg.norm(X)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("cone", CONES)
def test_the_terms_of_a_centre_add_up_to_it(cone, prior):
    case = make_case(3, cone=cone, prior=prior)
    lam = 0.05 * scale(case)
    e = evaluated(case, random_metric(5, 3, cone, 0.1), lam)
    rrpb, _ = spheres.RRPB.make(case.problem, e, lam, 1.3 * lam)
    for sphere in [*all_spheres(case, e, lam), rrpb]:
        total = 0.0
        for term in sphere.terms:
            dist = case.problem.distances(term.factor) if term.dist is None else term.dist
            total = total + term.coefficient * dist
        u = case.X[case.problem.triplets.first] - case.X[case.problem.triplets.second]
        center = np.diag(sphere.center) if cone == "diagonal" else sphere.center
        assert total == pytest.approx(np.einsum("pi,ij,pj->p", u, center, u), abs=1e-12 * np.abs(total).max())
