"""Save and load: arrays and JSON in one file, written atomically, never pickle."""

from __future__ import annotations

import importlib
import os
from typing import Any

import numpy as np

from triscreen._utils.archive import read, write
from triscreen._utils.validation import shortened
from triscreen.errors import InputError
from triscreen.path import Path
from triscreen.solvers import Solution

_ESTIMATORS = "triscreen.estimators"
_SAVED = (
    "a Path, a Solution, a metric M as an array, a TripletMetric, TripletMetricCV, TripletClassifier, ComparisonMetric "
    "or Scaling, or a pipeline of these and of scikit-learn's scalers, PCA, TruncatedSVD and KNeighborsClassifier"
)


def save(obj: Any, file: str | os.PathLike[str]) -> None:
    """Write a path, a solution, a metric, an estimator or a pipeline to a file, all of it or nothing.

    An old file is replaced only when the new one is complete. A metric is the array M, (d, d) or the diagonal (d,). A
    pipeline may have scikit-learn's StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, PCA, TruncatedSVD and
    KNeighborsClassifier beside our estimators; it is kept as numbers, and what is loaded predicts the same. An
    estimator's callback and checkpoint are not saved; nor are objects given as its cv, scoring, solver or random_state,
    which a warning names. A metric that is frozen, as a prior or a candidate, is saved as its matrix.

    Parameters
    ----------
    obj : Path, Solution, array, estimator or pipeline
        What is kept.
    file : path
        Where to; what was there is replaced.

    References
    ----------
    docs/path.md, "Files"; ours.

    Examples
    --------
    >>> import tempfile, os
    >>> import triscreen as ts
    >>> X, y = [[0.0], [1.0], [3.0], [4.5]], [0, 0, 1, 1]
    >>> path = ts.solve_path(ts.Problem(X, ts.knn_triplets(X, y, k=1)), ratio=0.5, n_lambdas=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "my.path")
    ...     ts.save(path, file)
    ...     again = ts.load(file)
    >>> bool((again.lambdas == path.lambdas).all())
    True
    """
    if isinstance(obj, Path):
        write(file, "path", *obj.to_arrays())
    elif isinstance(obj, Solution):
        write(file, "solution", *_storage().solution_to_arrays(obj))
    elif isinstance(obj, np.ndarray):
        write(file, "metric", {}, {"M": _as_metric(obj)})
    elif type(obj).__module__.startswith(_ESTIMATORS) and hasattr(obj, "get_params"):
        write(file, "estimator", *_storage().to_arrays(obj))
    elif type(obj).__module__ == "sklearn.pipeline" and hasattr(obj, "steps"):
        write(file, "pipeline", *_storage().pipeline_to_arrays(obj))
    else:
        raise InputError(f"obj is a {type(obj).__name__}: what can be saved is {_SAVED}")


def load(file: str | os.PathLike[str]) -> Any:
    """Return what `save` wrote.

    Parameters
    ----------
    file : path
        What `save` has written.

    Returns
    -------
    Path, Solution, array, estimator or pipeline
        What was saved.

    References
    ----------
    docs/path.md, "Files"; ours.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import triscreen as ts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "my.metric")
    ...     ts.save(np.eye(2), file)
    ...     ts.load(file).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    kind, meta, arrays = read(file)
    make = {
        "path": lambda: Path.from_arrays,
        "solution": lambda: _storage().solution_from_arrays,
        "metric": lambda: lambda _, arrays: _as_metric(arrays["M"]),
        "estimator": lambda: _storage().from_arrays,
        "pipeline": lambda: _storage().pipeline_from_arrays,
    }
    if kind not in make:
        raise InputError(f"file={str(file)!r} holds a {kind}: what load reads is {_SAVED}")
    try:
        return make[kind]()(meta, arrays)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as err:  # its bytes are valid
        why = " ".join(f"{type(err).__name__}: {err}".split())
        raise InputError(f"file={str(file)!r} holds no {kind} that fits ({why:.80}): use another copy of it") from err


def _as_metric(M):
    """Return a metric as an array, or refuse one that is none."""
    square = M.ndim == 2 and M.shape[0] == M.shape[1]
    if M.dtype.kind not in "fiu" or not (square or M.ndim == 1) or not M.size or not np.isfinite(M).all():
        raise InputError(
            f"obj is an array of shape {M.shape} and type {M.dtype}: a metric has shape (d, d), or (d,) for its "
            "diagonal, and finite numbers"
        )
    if square and np.abs(M - M.T).max() > 1e-8 * np.abs(M).max():
        row, column = np.unravel_index(np.abs(M - M.T).argmax(), M.shape)
        raise InputError(
            f"obj[{row}, {column}] is {shortened(float(M[row, column]))} and obj[{column}, {row}] is "
            f"{shortened(float(M[column, row]))}: a metric is symmetric"
        )
    return M


def _storage():
    """Import what knows estimators, and scikit-learn with it, only when it is needed."""
    return importlib.import_module(f"{_ESTIMATORS}.storage")
