"""Save and load: arrays and JSON in one file, written atomically, never pickle."""

from __future__ import annotations

from triscreen.errors import InputError
from triscreen.files import read, write
from triscreen.path import Path

_KINDS = {"path": Path}


def save(obj, file):
    """Write a path to a file; an old file is replaced only when the new one is complete.

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
    for kind, cls in _KINDS.items():
        if isinstance(obj, cls):
            write(file, kind, *obj.to_arrays())
            return
    raise InputError(f"obj is a {type(obj).__name__}: what can be saved is a {' or a '.join(_KINDS)}")


def load(file):
    """Return what `save` wrote."""
    kind, meta, arrays = read(file)
    if kind not in _KINDS:
        raise InputError(f"file={str(file)!r} holds a {kind}: load reads {', '.join(_KINDS)}")
    return _KINDS[kind].from_arrays(meta, arrays)
