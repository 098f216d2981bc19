"""The public surface as a type checker sees it: never run, only read by `make lint` (mypy, strict).

What is wrong on purpose has an ``ignore``: were the argument without a type, mypy would call it unused.
"""

from __future__ import annotations

import numpy as np
from typing_extensions import assert_type

import triscreen as ts
from triscreen.datasets import Points, read_points
from triscreen.problem.cones import Cone
from triscreen.problem.engine import Engine, Evaluation
from triscreen.report import write_report
from triscreen.screening.rules import Region
from triscreen.solvers.contract import Watch


def from_points_to_a_path(X: np.ndarray, y: list[str]) -> None:
    """Triplets, problem, one lambda, all of them."""
    ts.given_triplets([[0, 1, 2]], weights=[1.0])
    assert_type(ts.triplet_count(y), int)
    ts.all_triplets(X, y, n_positives="3")  # type: ignore[arg-type]
    triplets = ts.knn_triplets(X, y, k=5)
    assert_type(triplets.n_triplets, int)
    problem = ts.Problem(X, triplets, loss=ts.Hinge(), cone="diagonal", prior=np.ones(3))
    ts.Problem(X, y)  # type: ignore[arg-type]
    assert_type(problem.lambda_max(), float)
    sol = ts.solve(problem, lam=1.0, start=np.eye(3), callback=lambda state: state.rel_gap < 1e-3)
    assert_type(sol, ts.Solution)
    assert_type(sol.converged, bool)
    assert_type(problem.certificate(sol.M, sol.lam).rel_gap, float)
    ts.solve(problem, lam="1")  # type: ignore[arg-type]
    path = ts.solve_path(problem, guarantee=0.01, checkpoint="folder")
    assert_type(path, ts.Path)
    assert_type(path.lambdas, np.ndarray)
    assert_type(path[3], ts.Solution)
    assert_type(path.at(0.5).M, np.ndarray)
    assert_type(path.ball(0.5).radius, float)
    ts.save(path, "my.path")
    write_report(path, "my.html")


def a_lambda(path: ts.Path, X: np.ndarray, y: list[str]) -> None:
    """Held-out errors, bounded."""
    bounds = ts.validation_bounds(path, X, y, X, y, k=3)
    assert_type(bounds.at(1.0), tuple[float, float])
    found = ts.select(path, bounds, eps=0.01)
    assert_type(found.lam, float)
    ts.select(path, path, eps=0.01)  # type: ignore[arg-type]


def estimators(X: np.ndarray, y: np.ndarray) -> None:
    """A fit returns what was fitted."""
    metric = ts.TripletMetric(n_neighbors=3, prior="identity").fit(X, y)
    assert_type(metric, ts.TripletMetric)
    assert_type(metric.components_, np.ndarray)
    assert_type(metric.rel_gap_, float)
    assert_type(metric.transform(X), np.ndarray)
    assert_type(ts.TripletMetricCV(candidates=("identity", metric.components_), cv=3).fit(X, y), ts.TripletMetricCV)
    assert_type(ts.ComparisonMetric(preprocessor=X).fit([[0, 1, 2]]), ts.ComparisonMetric)
    ts.TripletMetric(n_neighbors="5")  # type: ignore[arg-type]


def files() -> None:
    """From a file to points."""
    assert_type(read_points("iris"), Points)
    read_points(3)  # type: ignore[arg-type]


def own_sphere(cone: Cone, evaluation: Evaluation, lam: float) -> ts.Sphere:
    """An extension point: a sphere."""
    return ts.Sphere(evaluation.M, 1.0, "own")


def own_rule(engine: Engine, region: Region, norms: np.ndarray, zones: np.ndarray) -> None:
    """An extension point: a rule."""


class Own:
    """An extension point: a solver."""

    def run(self, engine: Engine, lam: float, now: Evaluation, monitor: Watch) -> tuple[Engine, Evaluation]:
        """Do nothing."""
        return engine, now


def extensions(problem: ts.Problem) -> None:
    """What is no sphere, rule or solver is none for the checker, too."""
    ts.solve(problem, 1.0, solver=Own(), screening=ts.Screening((own_sphere, "mid"), rule=own_rule))
    ts.solve(problem, 1.0, solver=object())  # type: ignore[arg-type]
    ts.Screening(rule=own_sphere)  # type: ignore[arg-type]
