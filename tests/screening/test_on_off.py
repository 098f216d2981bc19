"""Screening changes the work, never the answer."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import triscreen as ts
from oracles import loss_values, matrices
from problems import make_case, random_metric
from triscreen.screening import Sphere, rules
from triscreen.screening.by_triplet import Screener
from triscreen.solvers import BarzilaiBorwein

CONES = ["psd", "diagonal"]
BOUNDS = ["gb", "pgb", "dgb", "cdgb", "mid", ("rrpb", "pgb"), ("rrpb", "mid", "gb")]


def same_answer(problem, lam, screening, tol, start=None, **options):
    off = ts.solve(problem, lam, tol=tol, screening=None, start=start)
    on = ts.solve(problem, lam, tol=tol, screening=screening, start=start, **options)
    assert on.converged
    assert np.linalg.norm(on.M - off.M) <= on.radius + off.radius
    certificate = problem.certificate(on.M, lam)
    assert (on.gap, on.primal, on.dual) == (certificate.gap, certificate.primal, certificate.dual)
    return on, off


@pytest.mark.thinned(2)
@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("rule", rules.RULES)
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_every_combination_gives_the_same_metric(cone, rule, bounds):
    for seed in (3, 9):
        case = make_case(seed, cone=cone, n=30, d=4, m=300, weighted=seed == 3, kind="given" if seed == 3 else "knn")
        lam = 0.03 * case.problem.lambda_max()
        previous = ts.solve(case.problem, lam / 0.8, screening=None)
        on, _ = same_answer(case.problem, lam, ts.Screening(bounds, rule=rule, every=3), 1e-12, start=previous)
        assert on.screening


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("bounds", ["gb", "pgb", "dgb", "cdgb", "mid"])
def test_the_hinge_too(cone, bounds):
    case = make_case(9, cone=cone, gamma=0.0, n=30, d=4, m=300)
    lam = 0.3 * case.problem.lambda_max()
    same_answer(case.problem, lam, ts.Screening(bounds, rule="semidefinite", every=5), 1e-6)


def test_the_problem_really_gets_smaller():
    case = make_case(9, n=60, d=4, kind="knn")
    lam = 0.05 * case.problem.lambda_max()
    previous = ts.solve(case.problem, lam / 0.95, tol=1e-8, screening=None)
    on, off = same_answer(case.problem, lam, ts.Screening(("rrpb", "mid"), every=3), 1e-8, start=previous)
    assert on.passes < 0.7 * off.passes
    left = on.screening[-1]
    assert left["undecided"] < 0.3 * case.problem.triplets.n_triplets
    assert left["pairs"] < case.problem.triplets.n_pairs
    for event in on.screening:
        assert event["L"] + event["R"] == event["tried"] - event["undecided"]
    assert on.history["undecided"][0] <= case.problem.triplets.n_triplets
    assert (np.diff(on.history["undecided"]) <= 0).all()


@pytest.mark.parametrize("cone", CONES)
def test_from_lambda_max_on_everything_is_decided(cone):
    """No triplet is left; the reduced problem is a constant, and its optimum still certified."""
    case = make_case(8, cone=cone)
    lam = 3 * case.problem.lambda_max()
    start = ts.solve(case.problem, 1.05 * lam, screening=None)
    on = ts.solve(case.problem, lam, tol=1e-10, start=start, screening=ts.Screening(("rrpb", "mid")))
    assert on.converged
    assert on.screening[-1]["undecided"] == 0


@pytest.mark.parametrize("cone", CONES)
def test_a_sphere_that_includes_the_solution_saves_the_last_pass(cone, monkeypatch):
    """Then the reduced gap is the gap over all triplets: the same, to rounding, as recomputed."""
    case = make_case(9, cone=cone, n=60, d=4, kind="knn")
    problem = case.problem
    lam = 0.05 * problem.lambda_max()
    previous = ts.solve(problem, lam / 0.9, tol=1e-7, screening=None)
    calls = []
    real = ts.Problem.certificate
    monkeypatch.setattr(ts.Problem, "certificate", lambda *a: calls.append(1) or real(*a))
    screening = ts.Screening(("rrpb", "mid"), every=3, include_solution=True)
    on = ts.solve(problem, lam, tol=1e-7, start=previous, screening=screening)
    assert not calls
    assert on.converged
    assert on.screening[-1]["undecided"] < 0.5 * problem.triplets.n_triplets
    certificate = real(problem, on.M, lam)
    assert certificate.primal == pytest.approx(on.primal, rel=1e-12)
    assert certificate.gap == pytest.approx(on.gap, rel=1e-6, abs=1e-13 * on.primal)


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("gamma", [0.05, 0.0])
@pytest.mark.parametrize("bound", ["mid", "cdgb", "gb"])
def test_the_reduced_problem_is_the_one_the_paper_defines(cone, gamma, bound):
    """At any M: the loss of what is undecided, plus 1 - g/2 - <H, M> for L; along steps from ever better references."""
    case = make_case(9, cone=cone, gamma=gamma, n=40, d=4, m=400, weighted=True)
    problem = case.problem
    lam = 0.2 * problem.lambda_max()
    H = matrices(case.X, case.indices)
    screener = Screener(problem, ts.Screening(bound), lam, 1e-6)
    evaluation, shrunk = None, 0
    for step, tol in enumerate((1e-1, 1e-2, 1e-3, 1e-5)):
        M = ts.solve(problem, lam, tol=tol, screening=None).M
        engine = screener.engine
        dist = engine.distances(problem.cone.project(M).factor)
        evaluation = engine.evaluate(M, dist, lam, gamma or 1e-4)
        evaluation = screener.step(evaluation, step)
        shrunk += screener.engine is not engine
        zones, engine = screener.zones, screener.engine
        for seed in range(3):
            X = random_metric(seed, 4, cone, 0.3)
            margins = np.einsum("tij,ij->t", H, np.diag(X) if cone == "diagonal" else X)
            gone = np.ones(len(zones), dtype=bool)
            gone[slice(None) if screener.numbers is None else screener.numbers] = False
            loss = np.where(gone & (zones == 1), 1 - gamma / 2 - margins, loss_values(margins, gamma))
            loss = np.where(gone & (zones == 2), 0.0, loss)
            want = case.w @ loss + lam / 2 * np.sum(X * X)
            e = engine.evaluate(X, engine.distances(problem.cone.project(X).factor), lam, gamma or 1e-4)
            assert e.primal == pytest.approx(want, rel=1e-10)
            assert e.gap == pytest.approx(e.primal - e.dual, rel=1e-8)
        again = engine.evaluate(M, engine.distances(problem.cone.project(M).factor), lam, gamma or 1e-4)
        assert again.gap == pytest.approx(evaluation.gap, rel=1e-6, abs=1e-12 * again.primal)
        assert pytest.approx(evaluation.A, abs=1e-9 * np.abs(again.A).max()) == again.A
    assert shrunk > 0


def test_an_own_sphere_and_an_own_rule():
    seen = []

    def twice_the_gap(cone, evaluation, lam):
        gap = evaluation.slack + cone.gap(evaluation.M, evaluation.dual_point, lam)
        return Sphere(evaluation.M, float(np.sqrt(4 * gap / lam)), "twice the gap")

    def nothing(engine, region, norms, zones):
        seen.append(region.sphere.name)

    case = make_case(9, n=60, d=4, kind="knn")
    lam = 0.05 * case.problem.lambda_max()
    screening = ts.Screening((twice_the_gap, "mid"), rule=nothing, every=2)
    on, _ = same_answer(case.problem, lam, screening, 1e-9)
    assert {"twice the gap", "mid"} == set(seen)
    assert {event["rule"] for event in on.screening} == {"sphere", "own"}
    assert any(event["sphere"] == "twice the gap" and event["L"] + event["R"] > 0 for event in on.screening)


def test_screening_twice_is_screening_once_more():
    """A decided triplet stays decided; zones are reported for all triplets, whatever has left the engine."""
    case = make_case(9, n=60, d=4, kind="knn")
    problem = case.problem
    lam = 0.05 * problem.lambda_max()
    M = ts.solve(problem, lam, tol=1e-3, screening=None).M
    e = problem.evaluate(M, problem.distances(problem.cone.project(M).factor), lam, 0.05)
    screener = Screener(problem, ts.Screening("mid"), lam, 1e-6)
    e = screener.start(e, None)
    first = screener.zones.copy()
    screener.step(e, 1)
    second = screener.zones
    assert len(second) == problem.triplets.n_triplets
    assert np.array_equal(second[first > 0], first[first > 0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"bounds": ("xyz",)}, "bounds='xyz': bounds must be one of 'gb', 'pgb'"),
        ({"bounds": ()}, "name at least one sphere"),
        ({"bounds": None}, "bounds=None: bounds must be one of"),
        ({"bounds": 5}, "bounds=5: bounds must be one of"),
        ({"rule": "cubic"}, "rule='cubic': rule must be one of 'sphere', 'linear', 'semidefinite'"),
        ({"every": 0}, "every=0"),
    ],
)
def test_bad_switches(arguments, words):
    with pytest.raises(ts.InputError, match=words):
        ts.Screening(**arguments)


def test_rpb_believes_its_reference():
    case = make_case(9, n=60, d=4, kind="knn")
    lam = 0.05 * case.problem.lambda_max()
    exact = ts.solve(case.problem, lam / 0.9, tol=1e-12, screening=None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        on, _ = same_answer(case.problem, lam, ts.Screening(("rpb", "mid")), 1e-8, start=exact)
    assert on.screening[0]["sphere"] == "rpb"


@pytest.mark.parametrize("carried", [True, False])
@pytest.mark.parametrize("gamma", [0.05, 0.0])
@pytest.mark.parametrize("cone", CONES)
def test_the_linear_part_is_summed_up_rightly(cone, gamma, carried):
    """Zones decided at one M leave at another, where they do not hold; the hinge's L, where a smoothed alpha is < 1."""
    case = make_case(9, cone=cone, gamma=gamma, n=40, d=4, m=400, weighted=True)
    problem = case.problem
    H = matrices(case.X, case.indices)
    M1, M2 = random_metric(1, 4, cone, 0.3), random_metric(3, 4, cone, 0.3)
    # Spheres of any radius: what is tested is the bookkeeping, not whether the optimum is inside.
    h = np.einsum("tij,ij->t", H, np.diag(M1) if cone == "diagonal" else M1)
    few = float(np.quantile(np.maximum((1 - gamma - h) / problem.norms, (h - 1) / problem.norms), 0.8))
    steps = iter([Sphere(M1, few), Sphere(M2, 1e-9)] if carried else [Sphere(M2, 1e-9)])
    screener = Screener(problem, ts.Screening(lambda *_: next(steps)), 1.0, 1e-6)
    smoothing = gamma or 0.5
    for M in (M1, M2) if carried else (M2,):
        assert screener.engine is problem
        dist = problem.distances(problem.cone.project(M).factor)
        after = screener.step(problem.evaluate(M, dist, 1.0, smoothing), 1)
        decided = int((screener.zones > 0).sum())
        assert decided > 0
    assert screener.engine is not problem
    linear = screener.zones == 1
    linear[screener.numbers] = False  # those still in the engine
    want = np.einsum("t,tij->ij", case.w * linear, H)
    want = np.diag(want) if cone == "diagonal" else want
    assert screener.engine.linear_matrix == pytest.approx(want, abs=1e-10 * np.abs(want).max())
    engine = screener.engine
    again = engine.evaluate(M2, engine.distances(problem.cone.project(M2).factor), 1.0, smoothing)
    assert after.gap == pytest.approx(again.gap, rel=1e-9)
    assert after.primal == pytest.approx(again.primal, rel=1e-12)


def test_an_own_sphere_that_is_none_is_refused():
    case = make_case(9)
    with pytest.raises(ts.InputError, match=r"the own bound returned None: it must return a ts\.Sphere"):
        ts.solve(case.problem, 0.1 * case.problem.lambda_max(), screening=ts.Screening(lambda *_: None, every=1))


def test_the_enlargement_holds_any_solution_that_counts_as_converged():
    """The radius grows by the distance that a gap and a rounding of tol P each still allow."""
    case = make_case(9, n=60, d=4, kind="knn")
    lam, tol = 0.05 * case.problem.lambda_max(), 1e-5
    previous = ts.solve(case.problem, lam / 0.9, tol=1e-7, screening=None)
    plain, wide = (
        ts.solve(case.problem, lam, tol=tol, start=previous, screening=ts.Screening("rrpb", include_solution=include))
        for include in (False, True)
    )
    primal = case.problem.value(previous.M, lam)
    added = wide.screening[0]["radius"] - plain.screening[0]["radius"]
    assert added == pytest.approx(np.sqrt(4 * tol * primal / ((1 - tol) * lam)), rel=1e-9)
    assert wide.screening[0]["undecided"] >= plain.screening[0]["undecided"]


def test_a_lying_solver_is_not_believed_with_include_solution_either():
    class Liar(BarzilaiBorwein):
        def run(self, engine, lam, evaluation, monitor):
            engine, now = super().run(engine, lam, evaluation, monitor)
            return engine, replace(now, M=3 * now.M)

    case = make_case(9, n=60, d=4, kind="knn")
    lam = 0.05 * case.problem.lambda_max()
    sol = ts.solve(case.problem, lam, solver=Liar(), screening=ts.Screening("mid", include_solution=True, every=3))
    assert case.problem.certificate(sol.M, lam).rel_gap <= 2 * sol.rel_gap
