"""Each rule decides what the exact minimum and maximum over its region say, no more and (almost) no less."""

from __future__ import annotations

import itertools
import warnings
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from sklearn.datasets import load_wine

import triscreen as ts
from nightly import cases
from oracles import matrices
from problems import make_case, random_metric
from triscreen._kernels.rules import _negative_eigenvalue, _slope
from triscreen.screening import rules, spheres
from triscreen.screening.by_triplet import Screener
from triscreen.screening.spheres import Sphere

CONES = ["psd", "diagonal"]


def extreme(H, sphere, normal, in_cone, largest):
    """min (or max) <H, X> over the sphere, the half-space and the cone; None if the region is empty."""
    d = len(sphere.center)
    if sphere.center.ndim == 1:
        X = cp.Variable(d, nonneg=in_cone)
        h = np.diag(H)
        P = None if normal is None else normal * normal
    else:
        X = cp.Variable((d, d), PSD=True) if in_cone else cp.Variable((d, d), symmetric=True)
        h = H
        P = None if normal is None else normal @ normal.T
    constraints = [cp.norm(cp.vec(X - sphere.center, order="C")) <= sphere.radius]
    if P is not None:
        constraints.append(cp.sum(cp.multiply(P / np.linalg.norm(P), X)) >= 0)
    value = cp.sum(cp.multiply(h, X))
    problem = cp.Problem(cp.Maximize(value) if largest else cp.Minimize(value), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(solver=cp.CLARABEL)
    return None if problem.status not in ("optimal", "optimal_inaccurate") else float(problem.value)


def decide(problem, sphere, rule):
    """Zones by one rule and the cheaper ones."""
    region, _ = rules.prepare(problem, sphere, sphere.radius, problem.rounding)
    zones = np.zeros(problem.triplets.n_triplets, dtype=np.int8)
    rules.sphere_rule(problem, region, problem.norms, zones)
    if rule != "sphere":
        rules.linear(problem, region, problem.norms, zones, problem.rounding)
    if rule == "semidefinite":
        rules.semidefinite(problem, region, problem.norms, zones)
    return zones


def random_sphere(problem, seed, cone, psd_center=True):
    """A sphere on which margins are near the thresholds, with a half-space."""
    rng = np.random.default_rng(seed)
    d = problem.points.shape[1]
    M = random_metric(2 * seed + 1, d, cone) + (0.1 if cone == "diagonal" else 0.0)
    if not psd_center:
        shift = rng.normal(size=M.shape)
        M = M + 0.3 * np.linalg.norm(M) * (shift + shift.T if cone == "psd" else shift) / 2
    M = M * 1.5 / np.abs(np.einsum("tij,ij->t", problem.H, np.diag(M) if cone == "diagonal" else M)).mean()
    projection = problem.cone.project(M - 0.5 * np.linalg.norm(M) * random_metric(seed, d, cone, 0.3))
    away = np.linalg.norm(M - problem.cone.project(M).plus)
    radius = away * 1.2 + 0.4 * np.linalg.norm(M) * rng.uniform(0.3, 1.0)
    return Sphere(M, float(radius), "own", None, spheres.normal_of(problem.cone, projection))


def make(seed, cone, gamma=0.3):
    case = make_case(seed, n=9, d=3, m=14, cone=cone, gamma=gamma)
    case.problem.H = matrices(case.X, case.indices)
    return case.problem


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("psd_center", [True, False])
@pytest.mark.parametrize("rule", ["sphere", "linear", "semidefinite"])
def test_decisions_are_those_of_the_exact_extremes(cone, psd_center, rule):
    gamma, seen = 0.3, np.zeros(3, dtype=int)
    for seed in range(cases(2, 5)):
        problem = make(seed, cone, gamma)
        sphere = random_sphere(problem, seed, cone, psd_center)
        zones = decide(problem, sphere, rule)
        for t, H in enumerate(problem.H):
            # The linear rule has the half-space, the semidefinite one the cone; together they see the union.
            regions = [(None, False)] + ([(sphere.normal, False)] if rule != "sphere" else [])
            regions += [(None, True)] if rule == "semidefinite" else []
            seen[zones[t]] += 1
            if zones[t] != 1:
                low = max(v for r in regions if (v := extreme(H, sphere, *r, False)) is not None)
                assert low > 1 - 1e-6 if zones[t] == 2 else low < 1 + 1e-4
            if zones[t] != 2:
                high = min(v for r in regions if (v := extreme(H, sphere, *r, True)) is not None)
                assert high < 1 - gamma + 1e-6 if zones[t] == 1 else high > 1 - gamma - 1e-4
    assert (seen > 0).all(), seen


@pytest.mark.parametrize("cone", CONES)
def test_a_dearer_rule_decides_no_less(cone):
    more = 0
    for seed in range(20):
        problem = make(seed, cone)
        sphere = random_sphere(problem, seed, cone)
        by = [decide(problem, sphere, rule) for rule in rules.RULES]
        for cheap, dear in itertools.pairwise(by):
            assert np.array_equal(dear[cheap > 0], cheap[cheap > 0])
            more += int((dear > 0).sum() - (cheap > 0).sum())
    assert more > 0


def test_the_half_space_in_every_case_of_its_theorem():
    """H a multiple of P, the sphere's minimiser inside and outside, an empty region, a half-space that cuts nothing."""
    X = [[0.0, 0.0], [0.0, 0.0], [2.0, 0.0], [0.0, 2.0]]
    problem = ts.Problem(X, ts.given_triplets([[0, 1, 2], [0, 1, 3]]), loss=ts.SmoothedHinge(0.3))
    # H = 4 e1 e1'; <H, X> = 4 X_11.
    e1 = np.array([[1.0], [0.0]])

    def zone(center, radius, normal, rule="linear"):
        return decide(problem, Sphere(np.diag(center), radius, "own", None, normal), rule)[0]

    assert zone([1.0, 1.0], 0.9, e1) == 0  # H = 4 P: X_11 goes down to 0.1
    assert zone([0.0, 1.0], 0.05, e1) == 1
    assert zone([0.3, 1.0], 0.1, None) == 0
    assert zone([2.0, 1.0], 1.0, e1) == 2
    assert zone([-2.0, 1.0], 1.0, e1) == 1  # empty: the sphere rule's answer stands
    assert zone([0.05, -0.5], 0.51, np.array([[0.0], [1.0]])) == 1  # only a cap with X_11 <= 0.15 is left
    assert zone([0.05, -0.5], 0.51, None) == 0


@pytest.mark.parametrize("cone", CONES)
def test_equal_points_have_margin_zero_and_are_linear(cone):
    X = [[0.0, 1.0], [2.0, 0.0], [2.0, 0.0], [5.0, 5.0]]
    problem = ts.Problem(X, ts.given_triplets([[0, 1, 2], [0, 1, 3]]), cone=cone, loss=ts.SmoothedHinge(0.3))
    M = np.full(2, 0.1) if cone == "diagonal" else 0.1 * np.eye(2)
    for rule in rules.RULES:
        assert decide(problem, Sphere(M, 50.0), rule)[0] == 1


def test_the_secular_equation_finds_the_negative_eigenvalue():
    rng = np.random.default_rng(0)
    for trial in range(300):
        d = int(rng.integers(1, 7))
        q = np.sort(rng.uniform(0, 2, d)) * (rng.uniform(size=d) > 0.3 * (trial % 2))
        u, v = rng.normal(size=(2, d))
        y = rng.choice([-1, 1]) * 10 ** rng.uniform(-2, 2)
        Z = np.diag(q) + y * (np.outer(u, u) - np.outer(v, v))
        want = max(0.0, -np.linalg.eigvalsh(Z)[0])
        got = _negative_eigenvalue(y, q, u, u - v, u + v, u @ u, v @ v, 1e-13)
        assert got <= want * (1 + 1e-9) + 1e-12
        assert got >= want * (1 - 2e-4) - 1e-12
        if want > 1e-3:
            z, W = np.linalg.eigh(Z)
            slope = (W[:, 0] @ u) ** 2 - (W[:, 0] @ v) ** 2
            assert _slope(z[0], y, q, u, v) == pytest.approx(slope, rel=1e-4, abs=1e-6)


def exactly_negative(z, y, q, u, w):
    """f(z) < 0 in rational arithmetic, with v = u - w exactly."""
    z, y = Fraction(z), Fraction(y)
    u, w, q = ([Fraction(float(x)) for x in a] for a in (u, w, q))
    v = [a - b for a, b in zip(u, w, strict=True)]

    def s(a, b):
        return sum(x * z_ / (c - z) for x, z_, c in zip(a, b, q, strict=True))

    return (1 + y * s(u, u)) * (1 - y * s(v, v)) + y * y * s(u, v) ** 2 < 0


def test_nearly_equal_u_and_v_make_no_eigenvalue_out_of_rounding():
    """x_j close to x_l: the plain secular equation cancels, and its sign is noise."""
    rng = np.random.default_rng(1)
    found = 0
    for trial in range(800):
        d = int(rng.integers(1, 5))
        q = np.sort(10 ** rng.uniform(-3, 1, d)) * (rng.uniform(size=d) > 0.5 * (trial % 2))
        u = rng.normal(size=d)
        w = rng.normal(size=d) * 10 ** rng.uniform(-12, -2)
        if d == 1 or trial % 3 == 0:
            w = u * 10 ** rng.uniform(-12, -2) * rng.choice([-1, 1])
        v = u - w
        w = u - v  # exact, by Sterbenz
        y = rng.choice([-1, 1]) * 10 ** rng.uniform(-3, 12)
        got = _negative_eigenvalue(y, q, u, w, u + v, u @ u, v @ v, 1e-250)
        if got > 0:
            found += 1
            assert exactly_negative(-got, y, q, u, w), (trial, got)
    assert found > 50


def test_close_negatives_are_not_screened_wrongly_in_one_dimension():
    """x_j and x_l 1e-10 to 1e-7 apart, lambda at that triplet's own scale, so that its margin ends in (1 - g, 1)."""
    rng = np.random.default_rng(2)
    for _ in range(150):
        gap = 10 ** rng.uniform(-10, -7)
        X = np.array([[rng.normal() - 3], [1.0], [1.0 + gap]])
        h = float((X[0, 0] - X[2, 0]) ** 2 - (X[0, 0] - X[1, 0]) ** 2)
        problem = ts.Problem(X, ts.given_triplets([[0, 1, 2]]))
        lam = h * h * 10 ** rng.uniform(-1, 1) * 20
        margin = h * h / (0.05 * lam + h * h)
        if not 0.951 < margin < 0.999:
            continue
        for M in (0.0, margin / h, 0.5 / h, 2 / h):
            M = np.array([[M]])
            e = problem.evaluate(M, problem.distances(problem.cone.project(M).factor), lam, 0.05)
            for bound in ("gb", "pgb", "dgb", "cdgb", "mid"):
                screener = Screener(problem, ts.Screening(bound, rule="semidefinite"), lam, 1e-6)
                screener.start(e, None)
                assert screener.zones[0] == 0, (gap, margin, float(M[0, 0]), bound)


@pytest.mark.parametrize("cone", CONES)
def test_a_region_carries_the_errors_of_all_its_terms(cone):
    """The values are <delta delta', Q> and no further off than the errors say, compared with extended precision."""
    case = make_case(5, cone=cone, scale=1e3, n=30, d=4, m=200)
    problem = case.problem
    lam = 0.05 * problem.lambda_max()
    M = random_metric(5, 4, cone, 1e-6)
    e = problem.evaluate(M, problem.distances(problem.cone.project(M).factor), lam, case.gamma)
    X, T = case.X.astype(np.longdouble), problem.triplets
    delta = X[T.point_ids[T.first]] - X[T.point_ids[T.second]]
    for name in ("gb", "pgb", "dgb", "mid"):
        sphere = spheres.BOUNDS[name].at(problem.cone, e, lam)
        region, _ = rules.prepare(problem, sphere, sphere.radius, problem.rounding)
        Q = np.diag(sphere.center) if cone == "diagonal" else sphere.center
        exact = np.einsum("pi,ij,pj->p", delta, Q.astype(np.longdouble), delta)
        least = 0.5 * sphere.radius * problem.rounding.norm_offset
        known = sum(
            abs(term.coefficient)
            * problem.rounding.distances(problem.distances(term.factor) if term.dist is None else term.dist, term.trace)
            for term in sphere.terms
        )
        assert (region.errors >= (least + known) * (1 - 1e-12)).all()
        assert (np.abs(region.values - exact) <= region.errors + 64 * 4 * 2.0**-53 * np.abs(exact)).all()


def test_gb_with_its_half_space_decides_what_pgb_decides():
    """It lies inside PGB (the paper's remark); its centre may lie outside the half-space, on the other side of 1."""
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    problem = ts.Problem(X, ts.knn_triplets(X, y, 5))
    path = ts.solve_path(problem, problem.lambda_max() * 0.5 ** np.arange(16), tol=1e-6)
    for t in (5, 10, 15):
        decided = {}
        for bound, rule in (("pgb", "sphere"), ("gb", "linear")):
            screening = ts.Screening(bound, rule=rule, every=10**9)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ts.ConvergenceWarning)
                sol = ts.solve(problem, path.lambdas[t], 1e-14, start=path[t - 1], max_iter=1, screening=screening)
            decided[bound] = sum(event["L"] + event["R"] for event in sol.screening if event["n_iter"] == 0)
        assert decided["gb"] >= decided["pgb"]
