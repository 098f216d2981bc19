"""Models from files: read, from a path at one lambda, and points with the features that they want."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated

import typer

from triscreen.cli.common import from_file, read
from triscreen.errors import InputError

_METRICS = ("TripletMetric", "TripletMetricCV", "ComparisonMetric")
_LARGEST = 1e70  # as for learning: squares of distances must not overflow
ModelOrPath = Annotated[
    Path, typer.Argument(help="A file that triscreen fit or triscreen path has written.", show_default=False)
]
Lam = Annotated[
    str,
    typer.Option(
        help="Of a path: best (lowest held-out error), a lambda such as 0.01, or the number of one, from 0. By default "
        "best.",
        show_default=False,
    ),
]


def load_model(file):
    """Return what a file holds, a path or a pipeline of fitted steps, or refuse it."""
    import numpy as np
    from sklearn.exceptions import NotFittedError
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import check_is_fitted

    import triscreen as ts

    with from_file(file, "model"):
        found = ts.load(file)
        if isinstance(found, ts.Path):
            return found
        if isinstance(found, np.ndarray | ts.Solution):
            raise InputError(
                f"model={str(file)!r} holds a metric without its features: make a model with triscreen fit"
            )
        made = found if isinstance(found, Pipeline) else Pipeline([("model", found)])
        try:
            for _, step in made.steps:
                if not isinstance(step, str):
                    check_is_fitted(step)
        except NotFittedError:
            raise InputError(f"model={str(file)!r} is not fitted: make one with triscreen fit") from None
    return made


def of_path(found, lam, file):
    """Return a model; of a path the one at a lambda as the command line says it (None: best)."""
    import triscreen as ts

    if not isinstance(found, ts.Path):
        if lam is not None:
            raise InputError(f"lam={lam!r}: model={str(file)!r} has one lambda only, this is for a path")
        return found
    wanted = as_lam(lam)
    try:
        return ts.as_model(found, wanted)
    except InputError as err:
        raise InputError(f"{err} (model={str(file)!r})") from None


def as_lam(text):
    """Return "best", a number of a lambda (whole), or a lambda; of a word of the command line."""
    if text is None or text == "best":
        return "best"
    try:
        return int(text) if re.fullmatch(r"[-+]?[0-9]+", text) else float(text)
    except ValueError:
        raise InputError(
            f"lam={text!r}: it must be best, a lambda such as 0.01, or the number of one, such as 12 (1.0 is a lambda)"
        ) from None


def parts_of(file, lam=None, paths=False, numbers=False):
    """Return (scaling, metric) of a model; paths: of a path, too; numbers: their attributes are enough.

    Attributes are read without scikit-learn and its imports, which take longer than what is done with them.
    """
    import numpy as np

    with from_file(file, "model"):
        known = _numbers_of(file) if numbers and lam is None else None
        if known is not None and hasattr(known[1], "components_"):
            return _checked(*known)
    import triscreen as ts

    found = load_model(file)
    if isinstance(found, ts.Path) and not paths:
        raise InputError(
            f"model={str(file)!r} holds a path: a model is needed, make one with triscreen fit or triscreen export"
        )
    steps = [step for _, step in of_path(found, lam, file).steps]
    if len(steps) > 2 or not isinstance(steps[0] if len(steps) == 2 else ts.Scaling(), ts.Scaling):
        names = ", ".join(type(step).__name__ for step in steps)
        raise InputError(f"model={str(file)!r} has the steps {names}: a scaling of triscreen and a metric are needed")
    metric, d = steps[-1], steps[-1].n_features_in_
    scaling = steps[0] if len(steps) == 2 else ts.Scaling("none").fit(np.zeros((2, d)))
    with from_file(file, "model"):
        return _checked(scaling, metric)


def _numbers_of(file):
    """Return (scaling, metric) as the attributes that they have, or None: the file holds something else."""
    from triscreen._utils.archive import read

    kind, meta, arrays = read(file)
    steps = meta.get("steps") if kind == "pipeline" else None
    if not isinstance(steps, list) or len(steps) != 2:
        return None
    if steps[0].get("class") != "Scaling" or steps[1].get("class") not in _METRICS:
        return None
    found = []
    for number, step in enumerate(steps):
        begin = f"step {number} attributes "
        parts = {name[len(begin) :]: array for name, array in arrays.items() if name.startswith(begin)}
        found.append(SimpleNamespace(**step["attributes"], **parts))
    return found


def _checked(scaling, metric):
    """Return scaling and metric, or raise ValueError where they do not fit together."""
    import numpy as np

    d, names = metric.n_features_in_, getattr(scaling, "feature_names_in_", None)
    if len(metric.components_) > d or scaling.n_features_in_ != d or (names is not None and len(names) != d):
        raise ValueError("its parts do not fit together")
    known = _preparation_of(scaling)
    if known is not None and len(known.names()) != d:
        raise ValueError("its columns are not its features")
    for array, shape in ((metric.components_, (len(metric.components_), d)),
                         (scaling.shift_, (d,)), (scaling.factor_, (d,))):  # fmt: skip
        if array.shape != shape or array.dtype != np.float64 or not np.isfinite(array).all():
            raise ValueError("its numbers are not those of a metric")
    return scaling, metric


def scaled(scaling, X):
    """Yield points by blocks of rows, scaled as for fit; computed in float64, float32 stays float32."""
    from triscreen.datasets.features import in_blocks

    for some in in_blocks(X):
        yield ((some - scaling.shift_) * scaling.factor_).astype(X.dtype, copy=False)


def mapped(scaling, metric, X, components=None):
    """Return points where Euclidean distance is the learned one."""
    import numpy as np

    L = metric.components_[:components].astype(X.dtype)
    return np.concatenate([some @ L.T for some in scaled(scaling, X)])


def check_components(model, components):
    """Keep the most important directions only; None: all."""
    last = model.steps[-1][1]
    n = len(getattr(last, "components_", ()))
    if components is None:
        return
    if not 1 <= components <= n:
        raise InputError(f"components={components}: the model has {n} directions")
    last.components_ = last.components_[:components]


def _preparation_of(scaling):
    """Return what a model knows of the columns that its features are made of, or None: they are numbers."""
    from triscreen.datasets.features import Preparation

    told = getattr(scaling, "columns_", None)
    return None if told is None else Preparation.of(told)


def points_of(data, first, choice, **more):
    """Return points with the features that the first step of a model wants, by name where both have names."""
    import numpy as np

    from triscreen.datasets.features import in_blocks, numbers_only
    from triscreen.datasets.table import place

    d, known = int(first.n_features_in_), _preparation_of(first)
    if known is None:  # numbers, whose medians nobody knows
        known = numbers_only(getattr(first, "feature_names_in_", None), d)
    points = read(data, **choice, n_features=d, features=known.titles, known=known, **more)
    if points.X.shape[1] != d:
        raise InputError(
            f"source={points.name!r} has {points.X.shape[1]} features: the model was learned from {d}; name a column "
            "of labels with --label, leave others out with --drop"
        )
    blocks = scaled(first, points.X) if hasattr(first, "factor_") else in_blocks(points.X)
    with np.errstate(over="ignore"):
        largest = np.max([np.abs(some).max(axis=0) for some in blocks], axis=0)
    if not (largest < _LARGEST).all():
        column = int(np.argmin(largest < _LARGEST))
        raise InputError(
            f"source={points.name!r}, {place(column, points.feature_names)}: a value is {largest[column]:.2g} when "
            f"scaled as for fit, it must be smaller than {_LARGEST:.0e}"
        )
    return points
