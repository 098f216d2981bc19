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

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what __getattr__ gives, for editors and type checkers
    from triscreen.errors import (
        ClusterError,
        ConvergenceWarning,
        DegenerateProblemWarning,
        InputError,
        Interrupted,
        NoAnchorWarning,
        OutOfTime,
        ScaleWarning,
        SmallClassWarning,
    )
    from triscreen.estimators import (
        ComparisonKFold,
        ComparisonMetric,
        Scaling,
        TripletClassifier,
        TripletMetric,
        TripletMetricCV,
    )
    from triscreen.estimators.exports import export
    from triscreen.estimators.of_path import as_model
    from triscreen.path import Path, solve_path
    from triscreen.persistence import load, save
    from triscreen.problem import Certificate, Problem
    from triscreen.problem.losses import Hinge, SmoothedHinge
    from triscreen.screening import Screening, Sphere
    from triscreen.selection.bounds import Bounds, comparison_bounds, validation_bounds
    from triscreen.selection.retrieval import retrieval_scores
    from triscreen.selection.select import Selection, select
    from triscreen.solvers import Solution, State, solve
    from triscreen.solvers.truncation import Truncation, truncation
    from triscreen.triplets import all_triplets, given_triplets, knn_triplets, triplet_count
    from triscreen.verification import Verification, verify

__version__ = "0.1.0.dev0"

__all__ = [
    "Bounds",
    "Certificate",
    "ClusterError",
    "ComparisonKFold",
    "ComparisonMetric",
    "ConvergenceWarning",
    "DegenerateProblemWarning",
    "Hinge",
    "InputError",
    "Interrupted",
    "NoAnchorWarning",
    "OutOfTime",
    "Path",
    "Problem",
    "ScaleWarning",
    "Scaling",
    "Screening",
    "Selection",
    "SmallClassWarning",
    "SmoothedHinge",
    "Solution",
    "Sphere",
    "State",
    "TripletClassifier",
    "TripletMetric",
    "TripletMetricCV",
    "Truncation",
    "Verification",
    "all_triplets",
    "as_model",
    "comparison_bounds",
    "export",
    "given_triplets",
    "knn_triplets",
    "load",
    "retrieval_scores",
    "save",
    "select",
    "solve",
    "solve_path",
    "triplet_count",
    "truncation",
    "validation_bounds",
    "verify",
]


# Where each name lives; a module is imported, and numpy, numba or scikit-learn with it, when a name is first asked for.
_HOMES = {
    "errors": (
        "ClusterError", "ConvergenceWarning", "DegenerateProblemWarning", "InputError", "Interrupted",
        "NoAnchorWarning", "OutOfTime", "ScaleWarning", "SmallClassWarning",
    ),
    "estimators": (
        "ComparisonKFold", "ComparisonMetric", "Scaling", "TripletClassifier", "TripletMetric", "TripletMetricCV",
    ),
    "estimators.exports": ("export",),
    "estimators.of_path": ("as_model",),
    "path": ("Path", "solve_path"),
    "persistence": ("load", "save"),
    "problem": ("Certificate", "Problem"),
    "problem.losses": ("Hinge", "SmoothedHinge"),
    "screening": ("Screening", "Sphere"),
    "selection.bounds": ("Bounds", "comparison_bounds", "validation_bounds"),
    "selection.retrieval": ("retrieval_scores",),
    "selection.select": ("Selection", "select"),
    "solvers": ("Solution", "State", "solve"),
    "solvers.truncation": ("Truncation", "truncation"),
    "triplets": ("all_triplets", "given_triplets", "knn_triplets", "triplet_count"),
    "verification": ("Verification", "verify"),
}  # fmt: skip


def __getattr__(name):
    from importlib import import_module
    from importlib.util import find_spec

    for home, names in _HOMES.items():
        if name in names:
            return globals().setdefault(name, getattr(import_module(f"triscreen.{home}"), name))
    if not name.startswith("__") and find_spec(f"triscreen.{name}") is not None:  # ts.solvers without an import
        return import_module(f"triscreen.{name}")
    raise AttributeError(f"module 'triscreen' has no attribute {name!r}")


def __dir__():
    return sorted(
        {*__all__, *_HOMES, "datasets", "distributed", "report", "__version__", "__all__", "__doc__", "__file__"}
    )
