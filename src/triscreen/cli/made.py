"""From data to problems: what ``triscreen path`` and ``fit`` make, and ``verify`` makes again."""

from __future__ import annotations

from dataclasses import dataclass

from triscreen.cli.common import read, say
from triscreen.errors import InputError


def read_data(data, comparisons, names, **choice):
    """Return (comparisons as rows of points, or None; the points)."""
    if comparisons is None:
        return None, read(data, names=names, **choice)
    if data == comparisons == "-":
        raise InputError("comparisons='-': standard input holds the points already, give a file")
    points = read(data, names=names, labelled=False, **choice)
    return compared(comparisons, points), points


def compared(source, points):
    """Return comparisons of points as rows of these; those of points that were left out are left out, too."""
    import numpy as np

    from triscreen.datasets import read_comparisons

    rows = read_comparisons(source, points.source_names, points.n_rows)
    if points.rows is None:
        return rows
    here = np.full(points.n_rows, -1)
    here[points.rows] = np.arange(len(points.rows))
    found = here[rows]
    good = (found >= 0).all(axis=1)
    if not good.all():
        say(f"{int((~good).sum()):,} of {len(good):,} comparisons are of rows that lack a value: left out")
    if not good.any():
        raise InputError(f"comparisons={str(source)!r}: all of them are of rows that lack a value, none is left")
    return found[good]


@dataclass(frozen=True)
class Made:
    """Points with labels, or with comparisons of them; None for what there is not.

    numbers: the rows of the file that the points are.
    """

    X: object = None
    y: object = None
    rows: object = None
    numbers: object = None


def names_of(numbers, points):
    """Return what points are called: by their column of names, or by their row, the first after a header being 0."""
    if points.row_names is not None:
        return [points.row_names[number] for number in numbers.tolist()]
    return (numbers if points.rows is None else points.rows[numbers]).tolist()


def fit_scaling(kind, X, feature_names=None):
    """Return a fitted `Scaling`; of points in float32 by blocks, without all of them in float64."""
    import numpy as np

    import triscreen as ts
    from triscreen.datasets.features import in_blocks

    if X.dtype != np.float32:
        return ts.Scaling(kind).fit(X, feature_names=feature_names)
    low, high = (
        np.array(end([end(some, axis=0) for some in in_blocks(X)], axis=0), dtype=float) for end in (np.min, np.max)
    )
    if kind == "standard":  # two points with the mean and the standard deviation of all, and constants as they are
        mean = np.sum([some.sum(axis=0, dtype=float) for some in in_blocks(X)], axis=0) / len(X)
        mean = np.where(low == high, low, mean)
        squares = np.sum([((some - mean) ** 2).sum(axis=0) for some in in_blocks(X)], axis=0)
        width = np.where(low == high, 0.0, np.sqrt(squares / len(X)))
        low, high = mean - width, mean + width
    return ts.Scaling(kind).fit(np.stack([low, high]), feature_names=feature_names)


def put(scaling, X):
    """Return points as they are scaled; of points in float32 by blocks, and in float32."""
    import numpy as np

    from triscreen.cli.model import scaled

    if X.dtype != np.float32:
        return scaling.transform(X)
    found, start = np.empty(X.shape, np.float32), 0
    for some in scaled(scaling, X):
        found[start : start + len(some)] = some
        start += len(some)
    return found


def hold_out(points, rows, share, seed, scale, known=None):
    """Return (data to learn from, data held out, scaling): all scaled as what is learned from; or as facts know."""
    import numpy as np

    everyone = np.arange(len(points.X))
    if rows is None:
        some, y, others, y_test = _split(everyone, points.y, share, seed)
        scaling = _as_known(fit_scaling(scale, points.X[some]), known)
        X_test = None if others is None else put(scaling, points.X[others])
        return Made(put(scaling, points.X[some]), y, numbers=some), Made(X_test, y_test, numbers=others), scaling
    scaling = _as_known(fit_scaling(scale, points.X), known)
    rows, _, rows_test, _ = _split(rows, None, share, seed)
    return Made(put(scaling, points.X), rows=rows, numbers=everyone), Made(rows=rows_test), scaling


def validation(file, data, points, rows, names, scaling, choice):
    """Return the data of a file to validate with: points like those learned from, or comparisons of these."""
    if file == "-" and data == "-":
        raise InputError("validate='-': standard input holds the points already, give a file")
    if rows is not None:
        return Made(rows=compared(file, points))
    if points.preparation is not None:  # as those that are learned from
        choice = {**choice, "categories": (), "dates": (), "known": points.preparation}
        choice["features"] = points.preparation.titles
    found = read(file, names=names, **choice)
    if found.X.shape[1] != points.X.shape[1]:
        raise InputError(
            f"validate={file!r}: it has {found.X.shape[1]} features, {points.name} has {points.X.shape[1]}"
        )
    unseen = sorted(set(found.y.tolist()) - set(points.y.tolist()))
    if unseen:
        raise InputError(f"validate={file!r}: it has the label {unseen[0]!r}, which {points.name} has not")
    return Made(put(scaling, found.X), found.y)


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
