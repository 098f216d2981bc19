"""Metric learning from triplets, to a certified optimum.

>>> import triscreen as ts
>>> from sklearn.datasets import load_wine
>>> X, y = load_wine(return_X_y=True)
>>> X = (X - X.mean(0)) / X.std(0)
>>> problem = ts.Problem(X, ts.knn_triplets(X, y, k=5))
>>> sol = ts.solve(problem, lam=0.01 * problem.lambda_max())
>>> bool(sol.rel_gap <= 1e-6)
True
"""

from triscreen.errors import (
    ConvergenceWarning,
    DegenerateProblemWarning,
    InputError,
    Interrupted,
    SmallClassWarning,
)
from triscreen.losses import Hinge, SmoothedHinge
from triscreen.path import Path, solve_path
from triscreen.persistence import load, save
from triscreen.problem import Certificate, Problem
from triscreen.screening import Screening, Sphere
from triscreen.solvers import Solution, State, solve
from triscreen.triplets import all_triplets, given_triplets, knn_triplets, triplet_count

__version__ = "0.1.0.dev0"

__all__ = [
    "Certificate",
    "ComparisonKFold",
    "ComparisonMetric",
    "ConvergenceWarning",
    "DegenerateProblemWarning",
    "Hinge",
    "InputError",
    "Interrupted",
    "Path",
    "Problem",
    "Scaling",
    "Screening",
    "SmallClassWarning",
    "SmoothedHinge",
    "Solution",
    "Sphere",
    "State",
    "TripletMetric",
    "TripletMetricCV",
    "all_triplets",
    "given_triplets",
    "knn_triplets",
    "load",
    "save",
    "solve",
    "solve_path",
    "triplet_count",
]


def __getattr__(name):
    # Estimators bring scikit-learn, a second or two of imports: only when asked for.
    if name in ("ComparisonKFold", "ComparisonMetric", "Scaling", "TripletMetric", "TripletMetricCV"):
        from importlib import import_module

        return getattr(import_module("triscreen.estimators"), name)
    raise AttributeError(f"module 'triscreen' has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
