"""Save and load: arrays and JSON in one file, written atomically, never pickle."""

from __future__ import annotations

import importlib

from triscreen.errors import InputError
from triscreen.files import read, write
from triscreen.path import Path

_ESTIMATORS = "triscreen.estimators"


def save(obj, file):
    """Write a path, an estimator or a pipeline of our estimators to a file, all of it or nothing.

    An old file is replaced only when the new one is complete. An estimator's callback and checkpoint are not saved; nor
    are objects given as its cv, scoring, solver or random_state, which a warning names.

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
    elif type(obj).__module__.startswith(_ESTIMATORS) and hasattr(obj, "get_params"):
        write(file, "estimator", *_storage().to_arrays(obj))
    elif type(obj).__module__ == "sklearn.pipeline" and hasattr(obj, "steps"):
        write(file, "pipeline", *_storage().pipeline_to_arrays(obj))
    else:
        raise InputError(f"obj is a {type(obj).__name__}: what can be saved is a path or an estimator")


def load(file):
    """Return what `save` wrote."""
    kind, meta, arrays = read(file)
    if kind == "path":
        return Path.from_arrays(meta, arrays)
    if kind == "estimator":
        return _storage().from_arrays(meta, arrays)
    if kind == "pipeline":
        return _storage().pipeline_from_arrays(meta, arrays)
    raise InputError(f"file={str(file)!r} holds a {kind}: load reads paths and estimators")


def _storage():
    """Import what knows estimators, and scikit-learn with it, only when it is needed."""
    return importlib.import_module(f"{_ESTIMATORS}.storage")
