"""What a screener asks for, decides and counts: against the rule triplet by triplet, with errors made large."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import triscreen as ts
from oracles import matrices
from problems import make_case, random_metric
from triscreen.screening import by_pair, by_triplet, rules
from triscreen.screening.by_pair import PairScreener
from triscreen.screening.by_triplet import Screener
from triscreen.screening.spheres import BOUNDS, Sphere


def a_case(cone="psd", **options):
    case = make_case(9 if cone == "psd" else 2, n=20, d=3, m=150, cone=cone, weighted=True, **options)
    problem = case.problem
    lam = 0.05 * problem.lambda_max()
    M = random_metric(5, 3, cone, 0.3)
    e = problem.evaluate(M, problem.distances(problem.cone.project(M).factor), lam, 0.05)
    return case, problem, lam, e


def decided(case, problem, center, radius):
    """Zones by the sphere rule, for one triplet after the other; None where rounding decides."""
    H = matrices(case.X, case.indices)
    margins = np.einsum("tij,ij->t", H, np.diag(center) if center.ndim == 1 else center)
    reach = radius * problem.norms
    zones = np.where(margins - reach > 1, rules.ZERO, np.where(margins + reach < 1 - case.gamma, rules.LINEAR, 0))
    sure = (np.abs(margins - reach - 1) > 1e-9) & (np.abs(margins + reach - 1 + case.gamma) > 1e-9)
    return zones, sure


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
def test_events_count_what_the_zones_say(cone):
    _case, problem, lam, e = a_case(cone)
    screener = Screener(problem, ts.Screening(("gb", "mid"), rule="semidefinite"), lam, 1e-6)
    screener._shrink_if_it_pays = lambda evaluation: evaluation
    undecided = problem.triplets.n_triplets
    screener.start(e, None)
    for event in screener.events:
        assert event["tried"] == undecided
        undecided -= event["L"] + event["R"]
        assert event["undecided"] == undecided
        assert event["L"] >= 0 <= event["R"]
    zones = screener.zones
    assert undecided == screener.undecided == np.count_nonzero(zones == 0) < len(zones)
    assert [(event["sphere"], event["rule"]) for event in screener.events] == [
        (sphere, rule) for sphere in ("gb", "mid") for rule in rules.RULES
    ]
    assert sum(event["L"] for event in screener.events) == np.count_nonzero(zones == rules.LINEAR)


@pytest.mark.parametrize(("rule", "ran"), [("sphere", 1), ("linear", 2), ("semidefinite", 3), ("own", 2)])
def test_rules_run_up_to_the_one_that_is_asked_for(rule, ran):
    _, problem, lam, e = a_case()

    def own(engine, region, norms, zones):
        zones[np.flatnonzero(zones == 0)[:3]] = rules.LINEAR
        zones[np.flatnonzero(zones == 0)[:2]] = rules.ZERO

    screener = Screener(problem, ts.Screening("mid", rule=own if rule == "own" else rule), lam, 1e-6)
    screener._shrink_if_it_pays = lambda evaluation: evaluation
    screener.start(e, None)
    assert [event["rule"] for event in screener.events] == [
        *["sphere", "linear", "semidefinite", "own"][:ran][:-1],
        rule,
    ]
    if rule == "own":
        assert (screener.events[1]["L"], screener.events[1]["R"], screener._whole) == (3, 2, None)
        assert screener.undecided == np.count_nonzero(screener.zones == 0)
    else:
        assert screener._whole is not None


def test_a_sphere_decides_by_its_radius_with_all_that_may_be_wrong(monkeypatch):
    case, problem, lam, e = a_case()
    sphere, _ = BOUNDS["mid"].make(problem, e, lam, None)
    for include in (False, True):
        screener = Screener(problem, ts.Screening("mid", include_solution=include), lam, 0.3)
        screener._shrink_if_it_pays = lambda evaluation: evaluation
        screener.start(e, None)
        safe = sphere.safe_radius(problem.rounding, e, lam)
        wanted = safe + (np.sqrt(4 * 0.3 * e.scale / (0.7 * lam)) if include else 0.0)
        assert screener._radius(sphere, e) == pytest.approx(wanted, rel=1e-12)
        assert screener.events[0]["radius"] == pytest.approx(problem.units.out(wanted, by_triplet.METRIC))
        zones, sure = decided(case, problem, problem.from_core(sphere.center), wanted)
        np.testing.assert_array_equal(screener.zones[sure], zones[sure])


def test_a_radius_without_bound_decides_nothing():
    _, problem, lam, e = a_case()
    screener = Screener(problem, ts.Screening(lambda *_: Sphere(e.M, np.inf)), lam, 1e-6)
    assert screener.start(e, None) is e
    assert not screener.events
    assert screener.undecided == problem.triplets.n_triplets


@pytest.mark.parametrize(("lam0", "ran"), [(None, ["mid"]), (1.0, ["mid"]), (0.7, ["rrpb"]), (1.2, ["rrpb"])])
def test_a_start_from_another_lambda_is_looked_from_once(lam0, ran):
    _, problem, lam, e = a_case()
    screener = Screener(problem, ts.Screening(("rrpb", "mid")), lam, 1e-6)
    screener._shrink_if_it_pays = lambda evaluation: evaluation
    screener.start(e, lam0 and lam0 * lam)
    assert [event["sphere"] for event in screener.events] == ran
    screener.step(e, 4)
    assert [event["sphere"] for event in screener.events] == [*ran, "mid"]
    assert [event["n_iter"] for event in screener.events] == [0, 4]
    only = Screener(problem, ts.Screening("mid"), lam, 1e-6)  # none looks from there: a step
    only.start(e, lam0 and lam0 * lam)
    assert [event["sphere"] for event in only.events] == ["mid"]


ENOUGH = [(70, 100, True), (71, 100, False), (100, 100, False), (0, 0, False), (0, 9, True)]


@pytest.mark.parametrize(("undecided", "last", "shrinks"), ENOUGH)
def test_triplets_go_when_enough_have_gathered(undecided, last, shrinks):
    screener = object.__new__(Screener)
    screener._undecided, screener._last_undecided, screener._shrink = undecided, last, lambda evaluation: "less"
    assert screener._shrink_if_it_pays("all") == ("less" if shrinks else "all")
    assert screener._last_undecided == (undecided if shrinks else last)


def test_nothing_is_tried_where_all_is_decided():
    _, problem, lam, e = a_case()
    screener = Screener(problem, ts.Screening("mid"), lam, 1e-6)
    screener._undecided = 0
    screener._apply(None, e, 0)
    assert not screener.events


@pytest.mark.parametrize("strays", [True, False])
def test_passes_add_up_and_the_errors_of_what_left_are_kept(strays, monkeypatch):
    """Half of what leaves where its matrix is summed up, and half of what stays; by difference only the latter."""
    case, problem, lam, e = a_case()
    screener = Screener(problem, ts.Screening("mid"), lam, 1e-6)
    H = matrices(case.X, case.indices)
    margins = np.einsum("tij,ij->t", H, problem.from_core(e.M))
    zones = np.where(margins > 1.2, rules.ZERO, np.where(margins < 0.7, rules.LINEAR, 0)).astype(np.int8)
    if strays:
        zones[np.argmin(margins)] = rules.ZERO
    screener._zones = zones
    problem.rounding._matrix, problem.rounding.linear_error = 0.1, 3.0
    after = screener._shrink(e)
    engine = screener.engine
    assert engine.triplets.n_triplets < problem.triplets.n_triplets
    linear = (zones == rules.LINEAR).copy()
    linear[screener.numbers] = False
    weight = float(case.w[linear].sum())
    assert engine.linear_weight == pytest.approx(weight)
    wanted = np.einsum("t,tij->ij", case.w * linear, H)
    np.testing.assert_allclose(problem.from_core(engine.linear_matrix), wanted, atol=1e-9 * np.abs(wanted).max())
    if strays:
        assert engine.rounding.linear_error == pytest.approx(3.0 + 0.1 * weight, rel=1e-9)
        assert screener.passes == pytest.approx(0.5 * problem.share + 0.5 * engine.share)
    else:
        assert engine.rounding.linear_error > 3.0 + 0.1 * e.sums.alpha + 0.05 * after.sums.alpha
        assert screener.passes == pytest.approx(0.5 * engine.share)
        assert after.gap == pytest.approx(e.gap)
        assert after.primal == pytest.approx(e.primal)
    again = engine.evaluate(e.M, engine.distances(problem.cone.project(e.M).factor), lam, 0.05)
    assert after.primal == pytest.approx(again.primal)


class Found(SimpleNamespace):
    """What a set without numbers answers."""


def a_pair_screener(monkeypatch, counts=(3, 4), n=10, triplets="some", lists=True):
    asked = []

    def reduce(*arguments, **more):
        asked.append((arguments, more))
        return Found(counts=counts, triplets=triplets)

    some = SimpleNamespace(
        n_triplets=n, n_pairs=5, reduce=reduce, lists_pairs=lists, quantum=lambda largest, gamma: 100 * largest + gamma,
        distances_of=lambda center: "values",
    )  # fmt: skip
    engine = SimpleNamespace(
        triplets=some, loss=SimpleNamespace(gamma=0.05), share=0.5, threads="threads", norms=None,
        rounding=SimpleNamespace(norm_offset=0.7, margin=lambda values, trace: (values, trace)),
        units=SimpleNamespace(out=lambda value, _: 2 * value),
    )  # fmt: skip
    screener = PairScreener(engine, SimpleNamespace(include_solution=False, bounds=()), 1.0, 1e-6)
    sphere = SimpleNamespace(name="made up", center="center", safe_radius=lambda *_: 0.25)
    return screener, engine, sphere, asked


def test_pairs_that_leave_are_counted(monkeypatch):
    screener, _engine, sphere, asked = a_pair_screener(monkeypatch)
    screener._values = lambda *_: ("values", 0.125)
    screener._apply(sphere, None, 7)
    (arguments, more) = asked[0]
    assert arguments == (("values", "values"), (0.25, 0.25), 0.125, 0.7, 1 - 0.05, True, 0.05, "threads")
    assert more == {"most": 0.7}
    event = screener.events[0]
    assert {key: event[key] for key in ("n_iter", "L", "R", "tried", "undecided", "radius")} == {
        "n_iter": 7, "L": 3, "R": 4, "tried": 10, "undecided": 3, "radius": 0.5,
    }  # fmt: skip
    assert screener.passes == 0.5
    assert screener._reduction.triplets == "some"
    screener._undecided = 2  # another sphere has decided more
    screener._apply(sphere, None, 8)
    assert screener.undecided == 2


def test_the_hinge_keeps_away_from_its_corner(monkeypatch):
    screener, engine, sphere, asked = a_pair_screener(monkeypatch, triplets=None)
    engine.loss.gamma = 0.0
    screener._values = lambda *_: ("values", 0.125)
    screener._apply(sphere, None, 0)
    assert asked[0][0][4:7] == (1 - 1e-6, True, 1e-6)
    assert screener._reduction is None
    assert screener._shrink_if_it_pays("as it is") == "as it is"


@pytest.mark.parametrize(("radius", "n"), [(np.inf, 10), (0.25, 0)])
def test_nothing_is_tried_by_a_radius_without_bound_or_where_nothing_is_left(monkeypatch, radius, n):
    screener, _, sphere, asked = a_pair_screener(monkeypatch, n=n)
    sphere.safe_radius = lambda *_: radius
    screener._apply(sphere, None, 0)
    assert not asked
    assert not screener.events


def test_values_of_pairs_have_the_errors_of_two_and_the_quantum(monkeypatch):
    screener, engine, sphere, _ = a_pair_screener(monkeypatch)
    region = SimpleNamespace(values=np.array([1.0, -3.0, 2.0]), errors=np.array([0.1, 0.4, 0.2]))
    monkeypatch.setattr(by_pair.rules, "prepare", lambda *_: (region, 0.125))
    values, error = screener._values(sphere, 0.25)
    assert values is region.values
    assert error == pytest.approx(2 * 0.4 + 100 * 3.0 + 0.05)
    assert screener.passes == 0.125
    engine.triplets.lists_pairs = False
    assert screener._values(sphere, 0.25) == ("values", ("values", None))
    assert screener.passes == 0.125 + 0.25


def test_what_is_left_is_evaluated_where_it_was(monkeypatch):
    screener, engine, _, _ = a_pair_screener(monkeypatch)
    less = SimpleNamespace(
        cone=SimpleNamespace(project=lambda M: SimpleNamespace(factor=("factor", M))), share=0.25,
        distances=lambda factor: ("dist", factor), evaluate=lambda *arguments: arguments,
    )  # fmt: skip
    monkeypatch.setattr(by_pair, "fix_reduction", lambda *arguments: less if arguments == (engine, "found") else None)
    screener._reduction = "found"
    evaluation = SimpleNamespace(M="M", sums=SimpleNamespace(smoothing=0.05))
    assert screener._shrink_if_it_pays(evaluation) == ("M", ("dist", ("factor", "M")), 1.0, 0.05)
    assert (screener._reduction, screener.engine, screener.passes) == (None, less, 0.25)
