"""Every accepted scale of the points is the middle scale: the same digits, decision by decision, at any of them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import triscreen as ts
from problems import SWITCHES
from triscreen.problem.units import FACTOR, LAMBDA, MATRIX, METRIC, POINT, STEP, Units

EXPONENTS = [-215, -150, -31, 31, 150, 225]
CONES = [("psd", 3, 0.05), ("psd", 20, 0.05), ("diagonal", 3, 0.05), ("psd", 3, 0.0)]
SETS = {
    "knn": lambda X, y, T: ts.knn_triplets(X, y, 3, n_jobs=1),
    "given": lambda X, y, T: ts.given_triplets(T, np.linspace(0.3, 2, len(T))),
    "all": lambda X, y, T: ts.all_triplets(X, y, n_jobs=1),
    "lmnn": lambda X, y, T: ts.all_triplets(X, y, 2, n_jobs=1),
}


def points(d=3, n=16, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, d)) + 0.8 * y[:, None], y


def problem_at(kind, exponent, cone="psd", d=3, gamma=0.05):
    X, y = points(d)
    T = ts.knn_triplets(X, y, 3, n_jobs=1).indices()
    X = np.ldexp(X, exponent)
    loss = ts.SmoothedHinge(gamma) if gamma else ts.Hinge()
    return ts.Problem(X, SETS[kind](X, y, T), loss=loss, cone=cone, n_jobs=1)


def unscaled(solution, exponent):
    """A solution in the units of exponent 0."""
    events = [
        {**event, "radius": float(np.ldexp(event["radius"], 2 * exponent)), "seconds": 0}
        for event in solution.screening
    ]
    return {
        "lam": np.ldexp(solution.lam, -4 * exponent),
        "M": np.ldexp(solution.M, 2 * exponent).tolist(),
        "numbers": (solution.primal, solution.dual, solution.gap, solution.rounding, solution.n_iter, solution.passes),
        "radius": float(f"{np.ldexp(solution.radius, 2 * exponent):.12g}"),
        "steps": [float(step) for step in np.ldexp(solution.history["step"], 4 * exponent)] if solution.history else [],
        "events": events,
        "stopped_by": solution.stopped_by,
    }


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("kind", "cone", "d", "gamma", "exponent"),
    [(kind, *cone, EXPONENTS[(a + 2 * b) % 6]) for a, kind in enumerate(SETS) for b, cone in enumerate(CONES)],
)
def test_solutions_have_the_same_digits_at_every_scale(kind, cone, d, gamma, exponent):
    rules = ("sphere",) if kind in ("all", "lmnn") else ("linear", "semidefinite") if d == 3 else ("linear",)
    told = []
    for e in (0, exponent):
        problem, answers = problem_at(kind, e, cone, d, gamma), []
        assert abs(np.log2(np.abs(problem.points).max())) < 32
        lam, seen = 0.01 * problem.lambda_max(), []
        assert lam == np.ldexp(0.01 * problem_at(kind, 0, cone, d, gamma).lambda_max(), 4 * e)
        for rule in rules:
            for bounds in (("gb", "mid"), ("rrpb", "pgb")):
                screening = ts.Screening(bounds, rule=rule, every=2, include_solution=rule == "semidefinite")
                first = ts.solve(problem, 2 * lam, tol=1e-4, screening=screening, callback=seen.append)
                answers.append(unscaled(first, e))
                answers.append(unscaled(ts.solve(problem, lam, tol=1e-5, screening=screening, start=first), e))
        told.append((answers, [(s.n_iter, np.ldexp(s.lam, -4 * e), np.ldexp(s.step, 4 * e), s.gap) for s in seen]))
        M = answers[-1]["M"]
        certificate = problem.certificate(np.ldexp(M, -2 * e), lam)
        told[-1] += (certificate, problem.value(np.ldexp(M, -2 * e), lam))
        told[-1] += (np.ldexp(problem.gradient(np.ldexp(M, -2 * e), lam), -2 * e).tolist(),)
    assert told[0] == told[1]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("screening", SWITCHES)
@pytest.mark.parametrize(("kind", "exponent"), [("knn", -215), ("given", 225), ("all", 225), ("lmnn", -215)])
def test_paths_have_the_same_digits_at_every_scale(kind, screening, exponent, tmp_path):
    if kind in ("all", "lmnn") and getattr(screening, "rule", "sphere") != "sphere":
        return
    told = []
    for e in (0, exponent):
        problem = problem_at(kind, e)
        arguments = {"ratio": 0.6, "tol": 1e-5, "screening": screening, "checkpoint": tmp_path / f"{e}"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ts.ConvergenceWarning)
            ts.solve_path(problem, n_lambdas=4, **arguments)
            path = ts.solve_path(problem, n_lambdas=9, **arguments)  # goes on from the checkpoint
            between = path.at(float(np.sqrt(path.lambdas[4]) * np.sqrt(path.lambdas[5])))
        rows = [unscaled(sol, e) for sol in path]
        told.append((rows, path.gaps.tolist(), path.losses.tolist(), path.passes.tolist(), path.scanned.tolist()))
        told[-1] += (float(f"{between.gap:.9g}"), float(f"{between.primal:.9g}"), path.screening_rates.tolist())
        for certificate, gap in zip(path.certify(), path.gaps, strict=True):
            assert certificate.gap <= gap * (1 + 1e-6) + certificate.rounding + 1e-12
    assert told[0] == told[1]


@pytest.mark.parametrize("exponent", [-215, 225])
def test_a_guarantee_has_the_same_digits_at_every_scale(exponent):
    told = []
    for e in (0, exponent):
        path = ts.solve_path(problem_at("knn", e), guarantee=0.3, tol=1e-4, n_lambdas=12)
        told.append([[np.ldexp(sol.lam, -4 * e), sol.primal] for sol in path])
    assert told[1] == pytest.approx(np.array(told[0]), rel=1e-3)


@pytest.mark.parametrize("scale", [1e-150, 1e-100, 1e-71, 1e71, 1e100, 1e150])
def test_scales_whose_lambda_would_be_no_number_are_refused(scale):
    X, y = points()
    with pytest.raises(ts.InputError, match="rescale it to lie between 1e-70 and 1e"):
        ts.knn_triplets(X * scale, y, 2)
    with pytest.raises(ts.InputError, match="rescale it to lie between 1e-70 and 1e"):
        ts.Problem(X * scale, ts.knn_triplets(X, y, 2))


def test_lambdas_beyond_what_is_inside_are_refused():
    for exponent, lam, why in ((-200, 1e200, "too large"), (200, 1e-200, "too small"), (0, 1e-300, "too small")):
        with pytest.raises(ts.InputError, match=f"lam is {why}"):
            ts.solve(problem_at("knn", exponent), lam)


def test_units_are_exact_and_only_for_what_is_far_from_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5, 2))
    assert Units.of(X * 2.0**29).exponent == Units.of(X * 1e-6).exponent == Units.of(np.zeros((3, 2))).exponent == 0
    units = Units.of(np.ldexp(X, 200))
    assert 0.5 <= np.abs(units.into(np.ldexp(X, 200), POINT)).max() < 1
    for power in (POINT, MATRIX, FACTOR, METRIC, LAMBDA, STEP):
        assert np.array_equal(units.out(units.into(X, power), power), X)
        assert units.out(units.into(3.7, power), power) == 3.7
    assert units.into(None, LAMBDA) is None


@pytest.mark.parametrize("exponent", [-150, 0, 150])
def test_what_is_called_converged_is_so_at_every_scale(exponent):
    """Spheres with the solution inside prove a solution by what they decided: a wrong decision is a false gap."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 3
    X = np.ldexp(rng.normal(size=(40, 4)) + rng.normal(size=(3, 4))[y], exponent)
    problem = ts.Problem(X, ts.knn_triplets(X, y, 4, n_jobs=1), n_jobs=1)
    lam = 6e-3 * problem.lambda_max()
    screening = ts.Screening("gb", rule="semidefinite", every=3, include_solution=True)
    sol = ts.solve(problem, lam, screening=screening)
    assert sol.converged
    assert problem.certificate(sol.M, lam).rel_gap == pytest.approx(sol.rel_gap, rel=1e-6)


@pytest.mark.parametrize("exponent", [-150, 0, 150])
def test_estimators_where_every_lambda_gives_zero_take_any_scale(exponent):
    """On the whole closer to their negatives: lambda_max is 0, and what stands for it has a scale, too."""
    X = np.ldexp([[0.0], [1.0], [0.1], [1.1]], exponent)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ts.TripletMetric(n_neighbors=1).fit(X, [0, 0, 1, 1])
    assert not model.components_.any()


def test_the_scale_is_that_of_the_points_that_triplets_speak_of():
    X = np.array([[1.0], [1e-90], [2e-90], [5e-90]])
    with pytest.raises(ts.InputError, match="of which triplets speak, has a largest magnitude of"):
        ts.Problem(X, ts.given_triplets([[1, 2, 3]]))
