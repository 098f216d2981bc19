"""What rules and spheres hand to their kernels: errors and radii of a region, made large."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import triscreen as ts
from problems import make_case, random_metric
from triscreen.errors import InputError
from triscreen.problem.cones import make_cone
from triscreen.problem.rounding import U
from triscreen.problem.units import Units
from triscreen.screening import rules, spheres
from triscreen.screening.ranges import _around
from triscreen.screening.rules import Region
from triscreen.screening.spheres import CDGB, Sphere, normal_of, split


def near(value, rel=1e-6):
    """Numbers that are tiny are compared like all others."""
    return pytest.approx(value, rel=rel, abs=0)


def a_region(center, radius, cone="psd", factor=3.0, **options):
    """A problem, and a region of which a third of the triplets is decided."""
    case = make_case(9, n=20, d=3, m=150, cone=cone, **options)
    rng = np.random.default_rng(0)
    n = case.problem.triplets.n_pairs
    region = Region(Sphere(center, radius, normal=None), radius, rng.normal(size=n), rng.uniform(0.1, 1, n), factor)
    zones = np.where(np.arange(150) % 3 == 0, rules.LINEAR, 0).astype(np.int8)
    return case.problem, region, zones


def captured(monkeypatch, name):
    """The arguments of a kernel, which says that all are in R."""
    seen = []

    def kernel(*arguments):
        seen.append(arguments)
        arguments[-1][:] = rules.ZERO

    monkeypatch.setattr(rules, name, kernel)
    return seen


def of_all(seen, number):
    return np.concatenate([arguments[number] for arguments in seen])


def margins_of(problem, region, zones):
    """<H, Q> and its error of the triplets that are left, and who they are."""
    positive, negative = problem.triplets.pair_numbers(zones == 0)
    hq = region.values[negative] - region.values[positive]
    return hq, region.errors[negative] + region.errors[positive], (positive, negative), np.flatnonzero(zones == 0)


CENTERS = {
    "semidefinite_rule": np.diag([4.0, 1.0, 0.0]), "by_eigendecompositions": np.diag([4.0, 1.0, -0.5]),
    "orthant_rule": np.array([4.0, 0.0, -0.5]),
}  # fmt: skip


@pytest.mark.parametrize("name", list(CENTERS))
@pytest.mark.parametrize("chunk", [1 << 14, 70])
def test_the_dearest_rule_gets_margins_with_both_errors_and_norms_that_are_enlarged(name, chunk, monkeypatch):
    center = CENTERS[name]
    problem, region, zones = a_region(center, 0.25, "diagonal" if center.ndim == 1 else "psd")
    monkeypatch.setattr(rules, "_CHUNK", chunk)
    seen = captured(monkeypatch, name)
    hq, errors, _, left = margins_of(problem, region, zones)
    rules.semidefinite(problem, region, problem.norms, zones)
    assert len(seen) > 1 or chunk == 1 << 14
    np.testing.assert_array_equal(of_all(seen, 2), hq)
    np.testing.assert_array_equal(of_all(seen, 3), errors)
    np.testing.assert_array_equal(zones[left], rules.ZERO)
    assert np.count_nonzero(zones == rules.LINEAR) == 50
    points = problem.points[problem.triplets.local_indices()[left]]
    corners = of_all(seen, 0)
    if name == "orthant_rule":
        assert seen[0][4:6] == (0.25, problem.loss.gamma)
        np.testing.assert_array_equal(corners, points)
        return
    np.testing.assert_allclose(of_all(seen, 4), 3 * problem.norms[left])
    assert seen[0][5:7] == (0.25, problem.loss.gamma)
    if name == "by_eigendecompositions":
        np.testing.assert_array_equal(corners, points)
        return
    # In the eigenbasis of the centre distances are the same.
    gram = np.einsum("tic,tjc->tij", points, points)
    np.testing.assert_allclose(np.einsum("tic,tjc->tij", corners, corners), gram, atol=1e-9 * np.abs(gram).max())
    assert (seen[0][1] >= 0).all()
    np.testing.assert_allclose(seen[0][1], [0.0, 1.0, 4.0], atol=1e-15)
    floor, e_h = seen[0][7:9]
    assert floor == near(256 * 3 * U * 4)
    assert e_h == near(64 * (3 + problem.point_error) * U * problem.triplets.largest_square)


def test_a_centre_that_is_in_the_cone_but_for_rounding_is_taken_to_be_in_it(monkeypatch):
    for last, name in ((-63 * 3 * U * 4, "semidefinite_rule"), (-65 * 3 * U * 4, "by_eigendecompositions")):
        problem, region, zones = a_region(np.diag([4.0, 1.0, last]), 0.25)
        seen = {name: captured(monkeypatch, name) for name in ("semidefinite_rule", "by_eigendecompositions")}
        rules.semidefinite(problem, region, problem.norms, zones)
        assert [key for key, calls in seen.items() if calls] == [name]
        if name == "semidefinite_rule":
            assert (seen[name][0][1] >= 0).all()
    problem, region, zones = a_region(np.zeros((3, 3)), 0.25)
    seen = captured(monkeypatch, "semidefinite_rule")
    rules.semidefinite(problem, region, problem.norms, zones)
    assert seen[0][7] == 1e-250


@pytest.mark.parametrize("chunk", [1, 30, 99, 100, 1000])
def test_chunks_are_no_longer_than_they_may_be_and_together_are_all(chunk):
    problem, _, zones = a_region(np.eye(3), 0.25)
    seen = []

    def kernel(left, positive, negative, out):
        seen.append(left)
        assert len(left) == len(positive) == len(negative) == len(out) <= chunk
        out[:] = rules.ZERO

    left = np.flatnonzero(zones == 0)
    rules._in_chunks(problem, zones, kernel, chunk)
    assert len(seen) == -(-len(left) // chunk)
    np.testing.assert_array_equal(np.sort(np.concatenate(seen)), left)
    np.testing.assert_array_equal(zones[left], rules.ZERO)


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
def test_the_linear_rule_gets_the_half_space_with_its_errors(cone, monkeypatch):
    center = np.diag([4.0, 1.0, -2.0]) if cone == "psd" else np.array([4.0, 1.0, -2.0])
    problem, region, zones = a_region(center, 0.25, cone)
    factor = np.array([[1.0, 2.0], [0.0, 1.0], [3.0, 0.0]]) if cone == "psd" else np.array([1.0, 2.0, 3.0])
    assert rules.linear(problem, region, problem.norms, zones, problem.rounding) == 0.0  # no half-space
    region = replace(region, sphere=replace(region.sphere, normal=factor))
    seen = captured(monkeypatch, "linear_rule")
    hq, errors, (positive, negative), left = margins_of(problem, region, zones)
    passes = rules.linear(problem, region, problem.norms, zones, problem.rounding)
    assert passes == 0.5 * problem.share
    P = factor * factor if cone == "diagonal" else factor @ factor.T
    dist = problem.distances(factor)
    doubts = problem.rounding.distances(dist, float(np.vdot(factor, factor)))
    np.testing.assert_array_equal(of_all(seen, 0), hq)
    np.testing.assert_array_equal(of_all(seen, 1), errors)
    np.testing.assert_allclose(of_all(seen, 2), dist[negative] - dist[positive])
    np.testing.assert_allclose(of_all(seen, 3), doubts[negative] + doubts[positive])
    np.testing.assert_allclose(of_all(seen, 4), 3 * problem.norms[left])
    radius, pq, e_pq, p_norm, gamma = seen[0][5:10]
    assert (radius, gamma) == (0.25, problem.loss.gamma)
    assert pq == near(np.vdot(P, center))
    assert p_norm == near(np.linalg.norm(P))
    scale = np.linalg.norm(center) + 0.25
    assert e_pq == near(64 * 3 * U * np.vdot(factor, factor) * scale)


def test_the_sphere_rule_has_its_radius_enlarged_by_the_norms():
    asked = []
    triplets = SimpleNamespace(decide=lambda *arguments: asked.append(arguments) or "counts")
    engine = SimpleNamespace(triplets=triplets, loss=SimpleNamespace(gamma=0.05), threads="threads")
    region = Region(None, 0.5, "values", "errors", 3.0)
    assert rules.sphere_rule(engine, region, "norms", "zones", "whole") == "counts"
    assert asked == [("values", "errors", "norms", 1.5, "zones", 0.05, "threads", "whole")]


def test_a_region_begins_with_what_norms_are_off_by():
    problem, _, _ = a_region(np.eye(3), 1.0)
    problem.rounding.norm_offset, problem.rounding._distance, problem.rounding._relative = 0.5, 0.0, 0.0
    terms = (spheres.Term(0.25, np.eye(3), None, 3.0), spheres.Term(-2.0, None, np.ones(problem.triplets.n_pairs), 1.0))
    region, passes = rules.prepare(problem, Sphere(np.eye(3), 0.75, terms=terms), 0.75, problem.rounding)
    np.testing.assert_array_equal(region.errors, 0.5 * 0.75 * 0.5)
    np.testing.assert_allclose(region.values, 0.25 * problem.distances(np.eye(3)) - 2.0)
    assert passes == 0.5 * problem.share
    assert (region.radius, region.norm_factor) == (0.75, problem.rounding.norm_factor)


def test_a_centre_is_its_positive_part_less_its_negative_part():
    problem = make_case(9).problem
    center = np.diag([4.0, 1.0, -2.0])
    one, two = split(problem.cone, center)
    np.testing.assert_allclose(one.factor @ one.factor.T, np.diag([4.0, 1.0, 0.0]), atol=1e-14)
    np.testing.assert_allclose(two.factor @ two.factor.T, np.diag([0.0, 0.0, 2.0]), atol=1e-14)
    assert (one.coefficient, two.coefficient, one.trace, two.trace) == (1.0, -1.0, near(5), near(2))
    assert normal_of(problem.cone, problem.cone.project(np.diag([1.0, 1.0, -1e-11]))) is None
    kept = normal_of(problem.cone, problem.cone.project(np.diag([100.0, 1.0, -1e-7])))
    np.testing.assert_allclose(kept @ kept.T, np.diag([0.0, 0.0, 1e-7]), atol=1e-20)


@pytest.mark.parametrize("prior", [None, 2])
@pytest.mark.parametrize("primal", [0.25, -0.25, -1e13])
def test_without_a_list_cdgb_has_the_rounding_of_both_objectives(prior, primal):
    """gap = P(M(a)) - D(a), no less than 0, and 1e-12 of all that was added up for it."""
    case = make_case(9, prior=prior)
    problem = case.problem
    lam = 0.5
    e = problem.evaluate(random_metric(3, 3, "psd"), problem.distances(np.eye(3)), lam, 0.05)
    there = SimpleNamespace(primal=primal, M=3 * np.eye(3))
    asked = []
    engine = SimpleNamespace(
        triplets=SimpleNamespace(lists_triplets=False), distances=lambda factor: 4.0, cone=problem.cone, share=0.5,
        evaluate=lambda *arguments: asked.append(arguments) or there, linear_weight=1e10, prior=problem.prior,
    )  # fmt: skip
    sphere, passes = CDGB.make(engine, e, lam)
    np.testing.assert_allclose(asked[0][0], e.projected(lam))
    assert asked[0][1:] == (4.0 / lam, lam, 0.05)
    size = abs(primal) + abs(e.dual) + 1e10
    if prior is not None:
        size += lam * (np.square(problem.prior.core).sum() + 27.0)
    gap = max(0.0, primal - e.dual) + 1e-12 * size
    assert sphere.radius == near(np.sqrt(gap / lam), rel=1e-9)
    assert (passes, sphere.terms[0].dist) == (0.5, 4.0)


def test_without_a_list_cdgb_has_the_rounding_of_the_dual_value():
    """Nothing else is large."""
    cone = make_case(9).problem.cone
    point = cone.project(np.zeros((3, 3)))
    e = SimpleNamespace(
        dual_point=point, projected=lambda lam: point.plus, dual=-3.0, sums=SimpleNamespace(smoothing=1.0)
    )
    engine = SimpleNamespace(
        triplets=SimpleNamespace(lists_triplets=False), distances=lambda factor: 4.0, cone=cone, share=0.5,
        evaluate=lambda *_: SimpleNamespace(primal=-3.0, M=point.plus), linear_weight=0.0, prior=None,
    )  # fmt: skip
    assert CDGB.make(engine, e, 1.0)[0].radius == near(np.sqrt(6e-12))
    e.dual = -2.0
    assert CDGB.make(engine, e, 1.0)[0].radius == near(np.sqrt(5e-12))  # no less than 0
    e.dual = -4.0
    assert CDGB.make(engine, e, 1.0)[0].radius == near(1.0)


def test_with_a_prior_the_squares_of_cdgb_are_rounded():
    problem = make_case(9, prior=2).problem
    lam = 0.5
    e = problem.evaluate(random_metric(3, 3, "psd"), problem.distances(np.eye(3)), lam, 0.05)
    for N, M in ((1e7, 0.0), (0.0, 1e7)):
        engine = SimpleNamespace(
            triplets=SimpleNamespace(lists_triplets=False), distances=lambda factor: 4.0, cone=problem.cone, share=0.5,
            evaluate=lambda *_, M=M: SimpleNamespace(primal=e.dual - 1.0, M=M * np.eye(3)), linear_weight=0.0,
            prior=SimpleNamespace(core=N * np.eye(3)),
        )  # fmt: skip
        sphere, _ = CDGB.make(engine, e, lam)
        assert sphere.radius == near(np.sqrt(1e-12 * lam * 3e14 / lam), rel=1e-6)


@pytest.mark.parametrize(("lam0", "lam"), [(2.0, 0.5), (0.5, 2.0)])
@pytest.mark.parametrize("prior", [False, True])
def test_rrpb_is_its_theorem(lam0, lam, prior):
    rng = np.random.default_rng(0)
    M0, N = np.diag(rng.uniform(1, 2, 3)), np.diag(rng.uniform(1, 2, 3))
    of = SimpleNamespace(core=N, error=0.125, factor=np.sqrt(N)) if prior else None
    dist = np.ones(4)
    sphere = spheres.RRPB.at(M0, lam0, lam, 0.25, dist, "normal", of)
    N, error = (N, 0.125) if prior else (0 * N, 0.0)
    change, scale = abs(lam0 - lam), (lam0 + lam) / (2 * lam)
    radius = (
        change / (2 * lam) * np.linalg.norm(M0 - N) + (change + lam0 + lam) / (2 * lam) * 0.25 + change / lam * error
    )
    assert sphere.radius == near(radius)
    np.testing.assert_allclose(sphere.center, N + scale * (M0 - N))
    assert (sphere.normal, sphere.name) == ("normal", "rrpb")
    assert (sphere.terms[0].coefficient, sphere.terms[0].trace) == (near(scale), near(np.trace(M0)))
    assert sphere.terms[0].dist is dist
    assert len(sphere.terms) == 1 + prior
    if prior:
        assert sphere.terms[1].coefficient == near(1 - scale)
    assert spheres.RRPB.at(M0, lam0, lam, 0.25, prior=of).terms is None
    rpb = spheres.RPB.at(M0, lam0, lam, of)
    assert rpb.radius == near(change / (2 * lam) * np.linalg.norm(M0 - N))
    np.testing.assert_allclose(rpb.center, sphere.center)


def test_a_sphere_counts_the_size_of_its_centre_and_of_itself():
    rounding = SimpleNamespace(element=lambda M: 0.5)
    for size, radius in ((1e15, 0.0), (0.0, 1e15)):
        found = Sphere(size * np.eye(3) / np.sqrt(3), radius).arithmetic(rounding, SimpleNamespace(M=None))
        assert found == near(64 * 3 * U * 1e15 + 0.5)


def test_intervals_are_shortened_by_a_hair_and_hold_on_both_sides_of_their_lambda():
    low, high = _around(np.array([1.0, 2.0, 1.0, 1.0]), np.array([4.0, 4.0, 2.0, np.inf]), 2.0)
    np.testing.assert_allclose(low, [1 + 1e-9, np.inf, np.inf, 1 + 1e-9], rtol=1e-13)
    np.testing.assert_allclose(high, [4 - 4e-9, 0.0, 0.0, np.inf], rtol=1e-13)


def test_the_square_of_a_radius_that_is_given_is_rounded():
    """CDGB: r^2 (1 + 1e-13)."""
    calm = SimpleNamespace(
        margin=lambda *_: 0.0, element=lambda M: 0.0, pull=lambda *_: 0.0, triplets=SimpleNamespace(total_weight=1.0)
    )
    term = spheres.Term(1.0, None, None, 0.0)
    sphere = CDGB(np.zeros((3, 3)), 1e3, "cdgb", (term,))
    e = SimpleNamespace(pull=None, sums=SimpleNamespace(alpha=0.0), M=None)
    own = 64 * 3 * U * 1e3
    assert sphere.safe_radius(calm, e, 1.0) - 1e3 - own == near(5e-14 * 1e3, rel=0.02)


def test_spheres_of_a_gap_have_its_slack():
    problem = make_case(9).problem
    e = problem.evaluate(random_metric(3, 3, "psd"), problem.distances(np.eye(3)), 0.5, 0.05)
    e = replace(e, slack=100.0)
    gap = 100 + problem.cone.gap(e.M, e.dual_point, 0.5)
    assert spheres.DGB.at(problem.cone, e, 0.5).radius == near(np.sqrt(2 * gap / 0.5))
    away = np.linalg.norm(e.M - e.projected(0.5))
    assert spheres.MID.at(problem.cone, e, 0.5).radius == near(np.sqrt(gap / 0.5 - away**2 / 4))


@pytest.mark.parametrize("exponent", [0, 3, -40])
def test_a_sphere_of_the_user_is_in_the_units_inside(exponent):
    normal = np.array([[2.0], [1.0]])
    sphere = Sphere(np.diag([1.0, 2.0]), 0.5, "own", normal=normal)
    inside = sphere.into(Units(exponent))
    np.testing.assert_array_equal(inside.center, np.ldexp(sphere.center, 2 * exponent))
    assert inside.radius == np.ldexp(0.5, 2 * exponent)
    np.testing.assert_array_equal(inside.normal, np.ldexp(normal, exponent))
    assert (inside is sphere) == (exponent == 0)


def test_slack_is_over_lambda_in_the_square_of_a_radius():
    evaluation = SimpleNamespace(M=np.array([2.0]), slack=0.5, target=lambda lam: np.array([1.0]))
    sphere = spheres.BOUNDS["pgb"].at(make_cone("diagonal"), evaluation, 0.25)
    assert sphere.radius == near(np.sqrt(0.25 + 0.5 / 0.25))


@pytest.mark.parametrize(
    "made", [Sphere(np.eye(3), -0.5, "own"), Sphere(np.eye(2), 0.5, "own"), Sphere(np.eye(3), np.nan, "own"), (0, 1)]
)
def test_an_own_sphere_that_is_none_is_refused(made):
    problem = make_case(0, n=12, d=3, m=20).problem
    with pytest.raises(InputError, match="the own bound returned"):
        ts.solve(problem, 0.1 * problem.lambda_max(), screening=ts.Screening(lambda *_: made, every=1))


def test_alphas_of_margins_that_are_off_cost_the_square_of_both_errors(monkeypatch):
    problem = make_case(0, n=12, d=3, m=20).problem
    rounding, gamma, M = problem.rounding, problem.loss.gamma, np.zeros((3, 3))
    for name in ("pull", "element"):
        monkeypatch.setattr(rounding, name, lambda *_: 0.0)
    monkeypatch.setattr(rounding, "margin", lambda *_: 4 * U * gamma)
    found = rounding.gap(M, M, M, np.zeros(1), 0.0, 1.0, 1.0, True)
    assert found == near(3 * problem.triplets.total_weight * (8 * U * gamma) ** 2 / gamma)
