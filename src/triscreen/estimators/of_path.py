"""A path is a model: the metric at one of its lambdas, with the scaling that belongs to it."""

from __future__ import annotations

import numbers

import numpy as np
from sklearn.pipeline import Pipeline

from triscreen._utils.validation import shortened
from triscreen.errors import InputError
from triscreen.estimators.comparison import ComparisonMetric
from triscreen.estimators.scaling import Scaling
from triscreen.estimators.triplet import TripletMetric
from triscreen.path import Path
from triscreen.problem import Problem
from triscreen.problem.cones import components_of


def as_model(path: Path, lam: str | float | int = "best", problem: Problem | None = None) -> Pipeline:
    """Return the metric at one lambda of a path as a model: what ``triscreen fit`` writes, a scaling and a metric.

    Parameters
    ----------
    path : Path
        In memory, or from a file.
    lam : "best", float or int
        "best": that of the lowest held-out error, of several the largest, where the path has such errors, as those of
        ``triscreen path`` do. A float is a lambda between the ends of the path, an int the number of one of its
        lambdas, from 0; negative ones count from the end.
    problem : Problem, optional
        Of a path from a file, for a lambda between two of its own (`Path.at`).

    Returns
    -------
    Pipeline
        Of `Scaling` (the one that ``triscreen path`` learned, or none) and a fitted `TripletMetric`, where the path is
        of comparisons a `ComparisonMetric`; ``rel_gap_`` is the certified gap at that lambda.

    References
    ----------
    docs/path.md, "A path is a model"; ours.

    Examples
    --------
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> path = ts.solve_path(ts.Problem(X, ts.knn_triplets(X, y, k=3)), ratio=0.5, n_lambdas=5)
    >>> model = ts.as_model(path, lam=-1)
    >>> bool(model[-1].lam_ == path.lambdas[-1]), model.transform(X).shape[0]
    (True, 150)
    """
    if not isinstance(path, Path):
        raise InputError(f"path is a {type(path).__name__}: a Path is needed, as of ts.solve_path or ts.load")
    if not len(path):
        raise InputError("path has no lambda yet: there is no metric in it")
    solution, number = _solution(path, lam, problem)
    facts = path.facts
    compared = getattr(facts, "error_of", None) == "comparisons" or bool(
        ((path.recipe or {}).get("command") or {}).get("comparisons")
    )
    shared = {"lam": solution.lam, "cone": path.cone, "tol": path.tol}
    metric = ComparisonMetric(**shared) if compared else TripletMetric(**shared)
    L = components_of(solution.M) if number is None else path.components(number)
    metric._set_solution(solution, L)
    metric.n_features_in_, metric.n_triplets_ = path.n_features, path.n_triplets
    metric.lam_ratio_ = metric.prior_ = None
    if path.has_prior:
        metric.prior_scale_ = 1.0
    return Pipeline([("scale", _scaling(path)), ("metric", metric)])


def best_of(path):
    """Return the number of the lambda with the lowest held-out error, None where there are no such errors."""
    facts = path.facts
    if facts is None or facts.errors is None or not len(facts.errors):
        return None
    errors = np.asarray(facts.errors, dtype=float)
    return None if np.isnan(errors).all() else int(facts.frames[int(np.nanargmin(errors))])


def _solution(path, lam, problem):
    """Return (the solution, its number on the path; None where it is between two)."""
    if isinstance(lam, str):
        number = best_of(path) if lam == "best" else None
        if lam != "best":
            raise InputError(f"lam={lam!r}: it must be 'best', a lambda or the number of one")
        if number is None:
            raise InputError(
                f"lam='best': this path has no held-out errors to choose by; give a lambda from {path.lambdas[0]:.6g} "
                f"to {path.lambdas[-1]:.6g}, or the number of one, from 0 to {len(path) - 1}"
            )
        return path[number], number
    if isinstance(lam, numbers.Integral) and not isinstance(lam, bool | np.bool_):
        if not -len(path) <= lam < len(path):
            raise InputError(f"lam={lam}: this path has {len(path)} lambdas, numbered from 0 to {len(path) - 1}")
        return path[int(lam)], int(lam) % len(path)
    if isinstance(lam, bool | np.bool_) or not isinstance(lam, numbers.Real):
        raise InputError(f"lam={shortened(lam)}: it must be 'best', a lambda or the number of one")
    found = path.at(float(lam), problem)
    same = np.flatnonzero([np.array_equal(path.M(t), found.M) for t in _near(path, float(lam))])
    return found, _near(path, float(lam))[same[0]] if len(same) else None


def _near(path, lam):
    """Return the numbers of the lambdas on both sides."""
    place = int(np.searchsorted(-path.lambdas, -lam))
    return sorted({max(0, place - 1), min(place, len(path) - 1)})


def _scaling(path):
    """Return the scaling of the points that a path is about; one that does nothing where it knows of none."""
    facts, d = path.facts, path.n_features
    known = facts is not None and facts.shift is not None
    scaling = Scaling(facts.scale if known else "none")
    scaling.shift_, scaling.factor_ = (facts.shift, facts.factor) if known else (np.zeros(d), np.ones(d))
    scaling.n_features_in_ = d
    if facts is not None and facts.columns is not None:
        scaling.columns_ = facts.columns
    if facts is not None and facts.feature_names is not None and len(facts.feature_names) == d:
        scaling.feature_names_in_ = np.array([str(name) for name in facts.feature_names], dtype=object)
    return scaling
