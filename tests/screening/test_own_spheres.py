"""Own spheres speak in the units of X at every scale, and own solvers are not believed."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import triscreen as ts
from triscreen._utils import threads as _threads
from triscreen.errors import OutOfTime
from triscreen.screening import spheres


def problem_at(exponent, n=60):
    rng = np.random.default_rng(1)
    y = np.arange(n) % 3
    X = np.ldexp(rng.normal(size=(n, 4)) + 0.7 * rng.normal(size=(3, 4))[y], exponent)
    return ts.Problem(X, ts.knn_triplets(X, y, 4, n_jobs=1), n_jobs=1)


@pytest.mark.parametrize("exponent", [-150, -40, 0, 40, 150])
def test_an_own_sphere_around_a_known_metric_holds_at_every_scale(exponent):
    problem = problem_at(exponent)
    lam = 0.01 * problem.lambda_max()
    known = ts.solve(problem, lam, tol=1e-5, screening=None)
    seen = []

    def around(cone, evaluation, told):
        seen.append((told, evaluation.M, evaluation.A, evaluation.dual_point))
        return ts.Sphere(known.M, known.radius, "known")

    sol = ts.solve(problem, lam, tol=1e-6, screening=ts.Screening(around, every=2, include_solution=True))
    assert sol.converged
    assert problem.certificate(sol.M, lam).rel_gap == pytest.approx(sol.rel_gap, rel=1e-4, abs=1e-9)
    assert sum(event["L"] + event["R"] for event in sol.screening) > 0
    assert sol.screening[0]["radius"] >= known.radius
    told, M, A, point = seen[0]  # later ones are of what is left of the problem
    size = np.abs(A).max()
    assert told == lam
    assert np.allclose(lam * M - A, problem.gradient(M, lam), atol=1e-9 * size)
    assert np.allclose(point.factor @ point.factor.T, point.plus, atol=1e-12 * size)


@dataclass
class Liar:
    """Shows the monitor a gap of nothing at every step."""

    def run(self, engine, lam, evaluation, monitor):
        for _ in range(4):
            M = engine.cone.project(evaluation.M + 0.1 * evaluation.A / lam)
            now = engine.evaluate(M.plus, engine.distances(M.factor), lam, evaluation.sums.smoothing)
            A = lam * now.M
            told = replace(now, A=A, dual_point=engine.cone.project(A), dual=now.primal, gap=0.0, slack=0.0)
            if monitor.saw(told, 1.0):
                return engine, told
            engine, evaluation = monitor.refresh(engine, now)
        return engine, evaluation


def is_true(problem, sol):
    assert sol.gap >= 0.99 * (sol.primal - ts.solve(problem, sol.lam, tol=1e-8).primal)
    assert sol.primal == pytest.approx(problem.value(sol.M, sol.lam), rel=1e-9)


@pytest.mark.parametrize("screening", [None, ts.Screening("mid", every=1, include_solution=True), "auto"])
def test_an_own_solver_that_lies_is_not_believed_wherever_it_ends(screening, monkeypatch):
    problem = problem_at(0)
    lambdas = problem.lambda_max() * np.array([0.5, 0.4])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.ConvergenceWarning)
        for max_iter in (1, 50):
            arguments = {"solver": Liar(), "max_iter": max_iter, "screening": screening}
            is_true(problem, ts.solve(problem, lambdas[1], **arguments))
            for sol in ts.solve_path(problem, lambdas, **arguments):
                is_true(problem, sol)
        # and when the time is over, where not even the certificate can be made
        looks = []

        def over(run):
            looks.append(run.limit is not None)
            if sum(looks) > 12 and run.limit is not None:
                raise OutOfTime("the time is over")

        with monkeypatch.context() as patch:
            patch.setattr(_threads._Run, "check", over)
            sol = ts.solve(problem, lambdas[1], solver=Liar(), max_seconds=1e9, screening=screening)
            looks.clear()
            path = ts.solve_path(problem, lambdas, solver=Liar(), max_seconds=1e9, screening=screening)
        is_true(problem, sol)
        is_true(problem, path[0])


def too_small(cone, evaluation, lam):
    gap = evaluation.slack + cone.gap(evaluation.M, evaluation.dual_point, lam)
    return ts.Sphere(evaluation.M, 0.02 * float(np.sqrt(2 * gap / lam)), "wrong")


def all_linear(engine, region, norms, zones):
    zones[zones == 0] = 1


@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize(("bounds", "rule"), [(too_small, "sphere"), ("dgb", all_linear)], ids=["sphere", "rule"])
def test_an_own_part_that_is_wrong_is_not_believed(bounds, rule, include):
    problem = problem_at(0)
    screening = ts.Screening(bounds, rule=rule, every=1, include_solution=include)
    with pytest.warns(ts.ConvergenceWarning, match="a sphere or rule of your own decided"):
        sol = ts.solve(problem, 0.05 * problem.lambda_max(), solver="bb", screening=screening)
    assert not sol.converged
    is_true(problem, sol)
    with pytest.warns(ts.ConvergenceWarning):
        path = ts.solve_path(problem, problem.lambda_max() * np.array([0.2, 0.05]), screening=screening)
    is_true(problem, path[-1])


@pytest.mark.parametrize(("radius", "size"), [(-1.0, 4), (float("nan"), 4), (0.5, 3)])
def test_an_own_sphere_that_is_none_is_refused_in_a_sentence(radius, size):
    """A radius below 0 had decided everything, and the solve stalled without a word about the sphere."""
    problem = problem_at(0)
    screening = ts.Screening(lambda *_: ts.Sphere(np.eye(size), radius, "mine"), every=2)
    with pytest.raises(ts.InputError, match=r"sphere 'mine' with radius .* must be at least 0, the shape \(4, 4\)"):
        ts.solve(problem, 0.01 * problem.lambda_max(), screening=screening)


class Around(ts.Sphere):
    """A ball around a metric, with twice its radius to be safe."""

    def safe_radius(self, rounding, evaluation, lam):
        return 2 * self.radius


@pytest.mark.parametrize("exponent", [-40, 0, 40])
@pytest.mark.parametrize("name", ["own", *spheres.BOUNDS])
def test_an_own_sphere_keeps_its_name_and_its_rounding(exponent, name):
    problem = problem_at(exponent)
    lam = 0.01 * problem.lambda_max()
    known = ts.solve(problem, lam, tol=1e-5, screening=None)
    radii = {}
    for kind in (ts.Sphere, Around):
        bound = lambda *_, kind=kind: kind(known.M, known.radius, name)  # noqa: E731
        sol = ts.solve(problem, lam, screening=ts.Screening(bound, every=3))
        assert {event["sphere"] for event in sol.screening} == {name}
        radii[kind] = {event["radius"] for event in sol.screening}
    # whatever it is called: the arithmetic on its centre, or what it says itself
    assert all(known.radius < radius < known.radius * (1 + 1e-6) for radius in radii[ts.Sphere])
    assert radii[Around] == {2 * known.radius}


def test_an_own_theorem_is_one_class_with_a_name(monkeypatch):
    """It gets what those of the paper get: here DGB, written once more."""

    class Mine(spheres.Sphere):
        at = classmethod(lambda cls, *given: replace(cls.of(*given), name="mine"))
        of = classmethod(lambda cls, *given: cls(**vars(spheres.DGB.at(*given))))
        safe_radius = spheres.DGB.safe_radius

    with pytest.raises(ts.InputError, match="bounds='mine': bounds must be one of 'gb'"):
        ts.Screening("mine")
    monkeypatch.setitem(spheres.BOUNDS, "mine", Mine)
    problem = problem_at(40)
    lam = 0.01 * problem.lambda_max()
    mine, dgb = (ts.solve(problem, lam, screening=ts.Screening(name, every=3)) for name in ("mine", "dgb"))
    shown = [[event[key] for key in ("radius", "L", "R", "pairs")] for event in mine.screening]
    assert shown == [[event[key] for key in ("radius", "L", "R", "pairs")] for event in dgb.screening]
    assert {event["sphere"] for event in mine.screening} == {"mine"}
    assert np.array_equal(mine.M, dgb.M)


@pytest.mark.parametrize("name", spheres.BOUNDS)
def test_a_theorem_is_found_by_its_name(name):
    theorem = spheres.BOUNDS[name]
    assert theorem.__name__ == name.upper()
    assert f"(Theorem {name.upper()})" in theorem.__doc__ or name == "mid"
    assert "Safe: " in theorem.__doc__
    assert "at" in vars(theorem)


def test_no_sphere_is_known_by_comparing_its_name_and_none_divides_by_lambda_itself():
    screening = Path(spheres.__file__).parent
    for file in screening.parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Compare):
                named = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)} & set(spheres.BOUNDS)
                assert not named, f"{file.name}, line {node.lineno}"
                asked = [part for part in ast.walk(node) if getattr(part, "attr", None) == "name"]
                assert not asked or file.parent != screening, f"{file.name}, line {node.lineno}"
            elif file.parent == screening and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
                assert getattr(node.left, "attr", None) not in ("A", "plus"), f"{file.name}, line {node.lineno}"
