"""What a report is made of: numbers and small arrays, kept with the path, so that a report needs nothing else."""

from __future__ import annotations

import numpy as np

from triscreen.errors import InputError
from triscreen.report import maps
from triscreen.selection import comparison_error, neighbour_error

_FRAMES, _POINTS = 60, 600
# Maps solve the problem again at so many lambdas, at fewer from _MANY triplets on, and not at all from _MOST on.
_STOPS, _FEW_STOPS, _MANY, _MOST = 16, 8, 300_000, 3_000_000


def gather(path, problem, X, y, X_test=None, y_test=None, comparisons_test=None, feature_names=None, source="",
           k=3):  # fmt: skip
    """Collect what `write_report` shows, and keep it as ``path.facts``; `triscreen.save` saves it with the path.

    Parameters
    ----------
    path : Path
    problem : Problem
        The one that the path solves.
    X, y : arrays
        Its points, and their labels (None: no labels, no errors and no colours).
    X_test, y_test : arrays, optional
        Held-out points: their k-nearest-neighbour error says which lambda is good.
    comparisons_test : array, shape (m, 3), optional
        Or held-out comparisons of the points X: the share of them in the wrong order says it.
    feature_names : list of str, optional
    source : str
        What the data are called.
    k : int

    Returns
    -------
    dict
    """
    X = np.asarray(X, dtype=float)
    if not len(path):
        raise InputError("path has no lambda: there is nothing to report")
    if X.shape != (len(X), path.n_features) or len(X) != problem.n_points:
        raise InputError(f"X has shape {X.shape}: the path was learned from {problem.n_points} points of "
                         f"{path.n_features} features")  # fmt: skip
    frames = _spread(len(path), _FRAMES)
    facts = {
        "source": str(source),
        "n_points": len(X),
        "n_pairs": problem.triplets.n_pairs,
        "feature_names": [str(name) for name in feature_names] if feature_names is not None else None,
        "feature_spread": X.std(axis=0),
        "frames": frames,
        "classes": None,
        "k": k,
    }
    if y is not None:
        classes, codes = np.unique(y, return_inverse=True)
        facts["classes"] = [str(name) for name in classes]
    sample = _sample(codes if y is not None else np.zeros(len(X), dtype=int))
    if y is not None:
        facts["sample_classes"] = codes[sample]
    facts["before"], facts["after"] = _views(path, X[sample], frames)
    error = None
    if comparisons_test is not None and len(comparisons_test):
        facts["n_test"], facts["error_of"] = len(comparisons_test), "comparisons"

        def error(L):
            return comparison_error(_mapped(X, L), comparisons_test)

    elif X_test is not None and y is not None and len(X_test):
        facts["n_test"], facts["error_of"] = len(X_test), "neighbours"

        def error(L):
            return neighbour_error(_mapped(X, L), y, _mapped(X_test, L), y_test, k)

    if error is not None:
        facts["error_before"] = error(None)
        facts["errors"] = np.array([error(path.components(t)) for t in frames])
    triplets = problem.triplets
    if len(path) > 1 and triplets.numbered and triplets.n_triplets < _MOST:
        stops = 1 + _spread(len(path) - 1, _STOPS if triplets.n_triplets < _MANY else _FEW_STOPS)
        facts["stops"] = stops
        facts["rates"] = maps.rates_by_sphere(problem, path, stops)
        facts["dynamic_iterations"], facts["dynamic"] = maps.dynamic_map(problem, path, stops)
        facts["ranges"] = maps.range_map(problem, path, stops)[:, frames]
    path.facts = facts
    return facts


def _spread(n, most):
    """Return at most so many of 0 ... n - 1, evenly, the first and the last among them."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(int))


def _sample(codes):
    """Return the numbers of at most _POINTS points, every class with its share."""
    if len(codes) <= _POINTS:
        return np.arange(len(codes))
    order = np.argsort(codes, kind="stable")
    return np.sort(order[_spread(len(codes), _POINTS)])


def _views(path, X, frames):
    """Return (points before, points at each frame): the two widest directions, turned to follow each other."""
    before = _flat(X, None)
    after = np.empty((len(frames), len(X), 2), dtype=np.float32)
    last = before
    for place, t in enumerate(frames):
        last = _flat(X @ path.components(t).T, last)
        after[place] = last
    return before.astype(np.float32), after


def _flat(Z, like):
    """Return Z's two principal coordinates, of mean square 1, turned and mirrored to be close to ``like``."""
    Z = Z - Z.mean(axis=0)
    if Z.shape[1] < 2:
        Z = np.hstack([Z, np.zeros((len(Z), 2 - Z.shape[1]))])
    _, _, axes = np.linalg.svd(Z, full_matrices=False)
    flat = Z @ axes[:2].T if len(axes) > 1 else np.hstack([Z[:, :1], np.zeros((len(Z), 1))])
    size = np.sqrt(np.square(flat).mean())
    flat = flat / size if size > 0 else flat
    if like is None:
        return flat
    left, _, right = np.linalg.svd(flat.T @ like)
    return flat @ (left @ right)


def _mapped(X, L):
    """Return X L', X itself where L is None."""
    return X if L is None else X @ L.T
