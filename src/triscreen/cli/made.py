"""From data to problems: what ``triscreen path`` and ``fit`` make, and ``verify`` makes again."""

from __future__ import annotations

from dataclasses import dataclass

from triscreen.cli.common import read
from triscreen.errors import InputError


def read_data(data, comparisons, names, **choice):
    """Return (comparisons as rows of points, or None; the points)."""
    from triscreen.datasets import read_comparisons

    if comparisons is None:
        return None, read(data, names=names, **choice)
    if data == comparisons == "-":
        raise InputError("comparisons='-': standard input holds the points already, give a file")
    points = read(data, names=names, labelled=False, **choice)
    return read_comparisons(comparisons, points.row_names, len(points.X)), points


@dataclass(frozen=True)
class Made:
    """Points with labels, or with comparisons of them; None for what there is not.

    numbers: the rows of the file that the points are.
    """

    X: object = None
    y: object = None
    rows: object = None
    numbers: object = None


def hold_out(points, rows, share, seed, scale, known=None):
    """Return (data to learn from, data held out, scaling): all scaled as what is learned from; or as facts know."""
    import numpy as np

    import triscreen as ts

    everyone = np.arange(len(points.X))
    if rows is None:
        some, y, others, y_test = _split(everyone, points.y, share, seed)
        scaling = _as_known(ts.Scaling(scale).fit(points.X[some]), known)
        X_test = None if others is None else scaling.transform(points.X[others])
        return Made(scaling.transform(points.X[some]), y, numbers=some), Made(X_test, y_test), scaling
    scaling = _as_known(ts.Scaling(scale).fit(points.X), known)
    rows, _, rows_test, _ = _split(rows, None, share, seed)
    return Made(scaling.transform(points.X), rows=rows, numbers=everyone), Made(rows=rows_test), scaling


def validation(file, data, points, rows, names, scaling, choice):
    """Return the data of a file to validate with: points like those learned from, or comparisons of these."""
    if file == "-" and data == "-":
        raise InputError("validate='-': standard input holds the points already, give a file")
    if rows is not None:
        from triscreen.datasets import read_comparisons

        return Made(rows=read_comparisons(file, points.row_names, len(points.X)))
    found = read(file, names=names, **choice)
    if found.X.shape[1] != points.X.shape[1]:
        raise InputError(
            f"validate={file!r}: it has {found.X.shape[1]} features, {points.name} has {points.X.shape[1]}"
        )
    unseen = sorted(set(found.y.tolist()) - set(points.y.tolist()))
    if unseen:
        raise InputError(f"validate={file!r}: it has the label {unseen[0]!r}, which {points.name} has not")
    return Made(scaling.transform(found.X), found.y)


def _as_known(scaling, facts):
    """Return a scaling with the numbers that facts have, where these fit: a mean may round elsewhere."""
    if facts is not None and facts.shift is not None and facts.shift.shape == scaling.shift_.shape:
        scaling.shift_, scaling.factor_ = facts.shift, facts.factor
    return scaling


def _split(X, y, share, seed):
    """Return (X, y, X_test, y_test), the last two None where nothing is held out; y may be None."""
    if share == 0 or len(X) < 2:
        return X, y, None, None
    import numpy as np
    from sklearn.model_selection import train_test_split

    if y is None:
        X, X_test = train_test_split(X, test_size=share, random_state=seed)
        return X, None, X_test, None
    sizes = np.unique(y, return_counts=True)[1]
    parts = min(share, 1 - share) * len(y)
    balanced = sizes.min() > 1 and parts >= len(sizes)
    split = train_test_split(X, y, test_size=share, random_state=seed, stratify=y if balanced else None)
    X, X_test, y, y_test = split
    return X, y, X_test, y_test


def points_of_neighbours(data, start, cone):
    """Return the points where neighbours are chosen: where Euclidean distance is that of the start."""
    from triscreen.estimators.starts import make_start, moved

    identity = isinstance(start, str) and start == "identity"
    return data.X if identity else moved(data.X, make_start(start, data.X, data.y, cone))


def make_problem(data, kind, k, gamma, cone, jobs, budget, start):
    """Return the problem of labelled points, or of comparisons, with a start as its prior."""
    from triscreen.estimators.starts import make_start, scaled_start
    from triscreen.problem import Problem
    from triscreen.problem.losses import loss_of
    from triscreen.triplets import given_triplets, labelled_triplets

    loss, N = loss_of(gamma), make_start(start, data.X, data.y, cone)
    if data.rows is None:
        T = labelled_triplets(points_of_neighbours(data, start, cone), data.y, kind, k, n_jobs=jobs)
    else:
        T = given_triplets(data.rows)
    N, _ = scaled_start(N, data.X, T, loss, jobs)
    return Problem(data.X, T, loss, cone, n_jobs=jobs, memory_budget=budget, prior=N)
