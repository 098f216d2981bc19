"""Points by their names, metric-learn's preprocessors: rows of an array or a table, or whatever a function returns."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from triscreen._utils.validation import shortened
from triscreen.errors import InputError


def check_preprocessor(preprocessor):
    """Refuse what gives no points, before any work."""
    if preprocessor is None or callable(preprocessor) or sparse.issparse(preprocessor):
        return
    wrong = isinstance(preprocessor, str | bytes | BaseEstimator) or _ndim(preprocessor) != 2
    if wrong or (isinstance(preprocessor, list | np.ndarray) and np.asarray(preprocessor).dtype.kind not in "biuf"):
        raise InputError(
            f"preprocessor={shortened(preprocessor)}: preprocessor must be points (n, d), or a function from names to "
            "such points"
        )


def are_names(X, preprocessor):
    """Is X a list of names (one-dimensional), for a preprocessor to turn into points?"""
    return preprocessor is not None and not sparse.issparse(X) and _ndim(X) == 1


def named_points(preprocessor, names, what):
    """Return (points, the rows of them that the names stand for).

    Parameters
    ----------
    preprocessor : array, sparse matrix, table or callable
        The names are rows of an array, entries of the index of a table that has one of its own, or anything that a
        function takes (in an array of one dimension, each name once).
    names : array, of any shape
    what : str
        What an error calls them.
    """
    check_preprocessor(preprocessor)
    if callable(preprocessor):
        once, rows = np.unique(names, return_inverse=True)
        return _called(preprocessor, once), rows.reshape(np.shape(names))  # numpy 1 gives them in one dimension
    index = _own_index(preprocessor)
    if index is not None:
        if not index.is_unique:
            twice = index[index.duplicated()][0]
            raise InputError(f"preprocessor has {twice!r} twice in its index: every name must stand for one point")
        rows = index.get_indexer(names.ravel()).reshape(names.shape)
        if (rows < 0).any():
            raise InputError(f"{what} has {names[rows < 0][0]!r}: that is not in the index of the preprocessor")
        return preprocessor, rows
    if isinstance(preprocessor, list | tuple):
        preprocessor = np.asarray(preprocessor)
    if sparse.issparse(preprocessor):
        preprocessor = preprocessor.tocsr()
    n = preprocessor.shape[0]
    if names.dtype.kind not in "iu":
        raise InputError(f"{what} has type {names.dtype}: whole numbers, the rows of the preprocessor, are needed")
    bad = (names < 0) | (names >= n)
    if bad.any():
        row = int(np.argwhere(bad)[0, 0])
        raise InputError(f"{what}[{row}] is {names[row].tolist()}: indices must lie between 0 and {n - 1}")
    return preprocessor, names


def points_of(preprocessor, names, what="X"):
    """Return the points (n, d) of a list of names."""
    points, rows = named_points(preprocessor, np.asarray(names), what)
    return points.iloc[rows] if hasattr(type(points), "iloc") else points[rows]


def savable(preprocessor):
    """Return a preprocessor as what a file can hold; None: it cannot."""
    if callable(preprocessor) or _own_index(preprocessor) is not None:
        return None
    return preprocessor.to_numpy() if hasattr(type(preprocessor), "to_numpy") else preprocessor


def _called(preprocessor, names):
    try:
        points = preprocessor(names)
    except Exception as error:  # a user's code
        raise InputError(f"preprocessor failed: {type(error).__name__}: {error}") from error
    if not sparse.issparse(points) and _ndim(points) != 2:
        shape = np.shape(points) if _ndim(points) else shortened(points)
        raise InputError(f"preprocessor returned {shape}: for {len(names)} names it must return points (n, d)")
    points = points if sparse.issparse(points) or hasattr(type(points), "iloc") else np.asarray(points)
    if points.shape[0] != len(names):
        raise InputError(f"preprocessor returned {points.shape[0]} points for {len(names)} names: one each is needed")
    return points


def _own_index(table):
    """Return the index of a table, unless its names are just the numbers of the rows."""
    index = getattr(table, "index", None) if hasattr(type(table), "iloc") else None
    if index is None:
        return None
    names = index.to_numpy()
    plain = names.dtype.kind in "iu" and np.array_equal(names, np.arange(len(names)))
    return None if plain else index


def _ndim(values):
    """Return how many axes an array has; 0 for what is none, such as rows of different lengths."""
    try:
        return np.ndim(values)
    except ValueError:
        return 0
