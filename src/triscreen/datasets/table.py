"""Tables: which column is what, and from columns to points; each refusal is one sentence with its place."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from triscreen.errors import InputError

LABELS = ("label", "class", "target", "y")
_CLASSES = 20  # numbers that are not whole, and of more values than this, are measurements


@dataclass(frozen=True, eq=False)
class Points:
    """Points as they were read.

    Attributes
    ----------
    X : array, shape (n, d)
    y : array of int or str, shape (n,), or None
        Labels.
    feature_names : list of str, or None
    name : str
        Where they come from.
    label : str or None
        The column that the labels are from, in words.
    row_names : list of str, or None
        The column ``names``.
    label_name : str or None
        The title of the column that the labels are from, where it has one.

    References
    ----------
    docs/cli.md; ours.

    Examples
    --------
    >>> from triscreen.datasets import read_points
    >>> wine = read_points("wine")
    >>> wine.X.shape, wine.feature_names[0]
    ((178, 13), 'alcohol')
    """

    X: np.ndarray
    y: np.ndarray | None
    feature_names: list | None
    name: str
    label: str | None = None
    row_names: list | None = None
    label_name: str | None = None


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are what; numbers are counted from 0."""

    features: list
    label: int | None
    names: int | None
    classes: bool = True  # do the labels name classes? Otherwise they are carried along, whatever they are


def _numbers(titles):
    """Return {title: number of the first column of that name}."""
    return {title: number for number, title in reversed(list(enumerate(titles or [])))}


def _find(column, titles, n_columns, argument, name):
    """Return the number of a column that is given by its name or its number."""
    if titles is not None and str(column) in titles:
        return titles.index(str(column))
    if is_whole(column) and -n_columns <= int(column) < n_columns:
        return int(column) % n_columns
    known = f"it has {n_columns} columns without names" if titles is None else f"its columns are {', '.join(titles)}"
    raise InputError(f"{argument}={column!r}: source={name!r} has no such column, {cut(known, 300)}")


def columns_of(titles, n_columns, name, *, label, labelled, names, drop, features):
    """Return the `Columns` of a table, by what was asked for and by its titles (None: it has none)."""
    if label is not None:
        label = _find(label, titles, n_columns, "label", name)
    elif labelled:
        known = [title.strip().lower() for title in titles or []]
        label = next((known.index(word) for word in LABELS if word in known), n_columns - 1)
    names = None if names is None else _find(names, titles, n_columns, "names", name)
    if names is not None and names == label:
        raise InputError(f"names={titles[names] if titles else names!r}: source={name!r} has its labels in that column")
    roles = {"label": label, "names": names}
    chosen = _features_of(
        titles, n_columns, name, {key: c for key, c in roles.items() if c is not None}, drop, features
    )
    return Columns(chosen, label, names, labelled)


def _features_of(titles, n_columns, name, roles, drop, wanted):
    """Return the columns that are features: those wanted, by their names, or all that are nothing else."""
    out = {_find(column, titles, n_columns, "drop", name): "drop" for column in drop}
    out.update({column: role for role, column in roles.items()})
    if wanted is not None and titles is not None:
        numbers = _numbers(titles)
        for feature in wanted:
            if feature not in numbers:
                raise InputError(
                    f"source={name!r} lacks the column {feature!r}: the model was learned from "
                    f"{cut(', '.join(wanted), 200)}"
                )
            if numbers[feature] in out:
                raise InputError(
                    f"{out[numbers[feature]]}={feature!r}: the model was learned from this column of source={name!r}, "
                    "it needs it as a feature"
                )
        chosen = [numbers[feature] for feature in wanted]
    else:
        chosen = [column for column in range(n_columns) if column not in out]
    if not chosen:
        raise InputError(f"source={name!r} has {n_columns} columns: no feature is left beside the labels")
    found = [titles[column] for column in chosen] if titles is not None else []
    if len(set(found)) < len(found):
        seen = set()
        twice = next(title for title in found if title in seen or seen.add(title))
        raise InputError(f"source={name!r} has two columns called {twice!r}: names of features must differ")
    return chosen


def from_parts(X, y, titles, name, choice, kept_as):
    """Return the points of a source that keeps its labels apart from the features.

    kept_as: the name that the source has for its labels, or None where it has none.
    """
    label, names, labelled = choice["label"], choice["names"], choice["labelled"]
    if label is not None and (kept_as is None or str(label) != kept_as):
        known = "they need no name" if kept_as is None else f"they are called {kept_as!r}"
        raise InputError(f"label={label!r}: source={name!r} keeps its labels apart from the features, and {known}")
    if names is not None:
        raise InputError(f"names={names!r}: source={name!r} has no column of names, a table has")
    if y is None and labelled:
        raise InputError(f"source={name!r} lacks the array y: an npz file needs X and y")
    as_table(X, name)
    titles = None if titles is None else [str(title) for title in titles]
    if y is not None and not (isinstance(y, np.ndarray) and y.ndim == 1):
        raise InputError(f"source={name!r} has labels of shape {np.shape(y)}: one label per point is needed")
    if y is not None and len(y) != len(X):
        raise InputError(f"source={name!r} has {len(y)} labels for {len(X)} points: one label each is needed")
    if titles is not None and len(titles) != X.shape[1]:
        raise InputError(f"source={name!r} has {len(titles)} names for {X.shape[1]} features: one name each is needed")
    chosen = _features_of(titles, X.shape[1], name, {}, choice["drop"], choice["features"])
    if chosen != list(range(X.shape[1])):
        X, titles = X[:, chosen], None if titles is None else [titles[column] for column in chosen]
    where = f"the array {kept_as}" if kept_as else "its labels"
    return make_points(X, None if y is None else as_labels(y, name, where), titles, name, where)


def from_columns(titles, columns, name, choice):
    """Return the points of a table whose columns are arrays."""
    if not columns or not len(columns[0]):
        raise InputError(f"source={name!r} has no rows: a table of points is needed")
    roles = columns_of(titles, len(columns), name, **choice)
    for column in roles.features:
        if columns[column].dtype.kind not in "biuf":
            raise InputError(
                f"source={name!r}, {place(column, titles)} holds {columns[column].dtype}, not numbers: features must "
                "be numbers"
            )
    X = np.stack([columns[column].astype(np.float64) for column in roles.features], axis=1)
    return of_table(X, *(None if c is None else columns[c] for c in (roles.label, roles.names)), roles, titles, name)


def of_table(X, y, row_names, roles, titles, name):
    """Return the points of a table, features already in one array."""
    where = None if roles.label is None else place(roles.label, titles)
    labels = None if y is None else as_labels(y, name, where, roles.classes)
    features = None if titles is None else [titles[column] for column in roles.features]
    row_names = None if row_names is None else [str(item) for item in row_names]
    first = X[:, 0]
    if features and not features[0].strip() and np.array_equal(first, first[0] + np.arange(len(X))):
        raise InputError(f"source={name!r}: its first column has no name and counts the rows, so drop it (drop 0)")
    titled = titles is not None and roles.label is not None
    made = make_points(X, labels, features, name, where, row_names)
    return replace(made, label_name=str(titles[roles.label]) if titled else None)


def make_points(X, y, features, name, label=None, row_names=None):
    """Return the points, or refuse arrays that are no table of finite numbers with one label a row."""
    as_table(X, name)
    X = np.ascontiguousarray(X, dtype=np.float64)
    if not np.isfinite(X).all():
        row, column = np.argwhere(~np.isfinite(X))[0]
        raise InputError(
            f"source={name!r}, row {row}, {place(column, features)}: the value is {X[row, column]}, features must be "
            "finite"
        )
    return Points(X, y, None if features is None else [str(f) for f in features], name, label, row_names)


def as_table(X, name):
    """Refuse an array that is no table of numbers, or an empty one."""
    if not isinstance(X, np.ndarray):
        raise InputError(f"source={name!r} holds an X that is no array: (n, d) numbers are needed")
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise InputError(f"source={name!r} holds X of shape {X.shape} and type {X.dtype}: (n, d) numbers are needed")
    if not X.size:
        lacks = "columns" if len(X) else "rows"
        raise InputError(f"source={name!r} holds X of shape {X.shape}, which has no {lacks}: points are needed")


def as_labels(y, name, where, classes=True):
    """Return labels as whole numbers or as text; those that are to name classes must not look like measurements."""
    if y.ndim != 1:
        raise InputError(f"source={name!r}: {where} holds labels of shape {y.shape}, one label per point is needed")
    if y.dtype.kind == "O" and not all(isinstance(value, str | bytes | int | float) for value in y):
        raise InputError(f"source={name!r}: {where} holds {type(y[0]).__name__} objects, labels are texts or numbers")
    values, codes = np.unique(y.astype(str) if y.dtype.kind not in "biuf" else y, return_inverse=True)
    numbers = None
    if all(is_number(str(value)) for value in values):
        numbers = values.astype(np.float64)
        if not np.isfinite(numbers).all():
            raise InputError(f"source={name!r}: {where} holds NaN or infinity, every point needs a label")
        if (numbers != np.floor(numbers)).any():
            if classes and len(values) > min(_CLASSES, len(y) / 2):
                raise InputError(
                    f"source={name!r}: {where} looks continuous ({len(values)} different values such as {values[0]}), "
                    "labels must name classes; say which column holds them"
                )
            numbers = None
    if classes and len(values) == len(y) > 2:
        raise InputError(
            f"source={name!r}: {where} has a different value in every row, labels must name classes; say which column "
            "holds them"
        )
    if numbers is not None and np.abs(numbers).max() < 2**53:
        return numbers.astype(np.int64)[codes]
    return values.astype(str)[codes]


# Titles of columns that tell rows apart: id, patient_id, "row number", customerID, uuid.
_ID = re.compile(r"(?:^|[\W_])(?:id|ids|idx|index|uuid|guid|row|row[\W_]?number|nr)$", re.IGNORECASE)


def look_like_ids(points):
    """Return the titles (or numbers) of features that tell rows apart and measure nothing.

    Whole numbers, each another one, under a title such as patient_id, or in the order of the rows.
    """
    found = []
    for column in range(points.X.shape[1]):
        values = points.X[:, column]
        if len(values) < 5 or (values != np.floor(values)).any() or len(np.unique(values)) < len(values):
            continue
        title = None if points.feature_names is None else points.feature_names[column]
        if (title is not None and _ID.search(title)) or (np.diff(values) == 1).all():
            found.append(str(column) if title is None else title)
    return found


def is_number(cell):
    """Tell whether a cell is a number, as numpy reads one too."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def is_whole(cell):
    """Tell whether a cell is a whole number."""
    return re.fullmatch(r"\s*[-+]?\d+\s*", str(cell)) is not None


def place(column, titles):
    """Say which column, by its name where it has one."""
    return f"column {column} (from 0)" if titles is None else f"column {titles[column]!r}"


def brief(err):
    """Return an error of another library in a few words."""
    return cut(" ".join(str(err).split()) or type(err).__name__, 80)


def cut(text, length):
    """Return a text, its end left out where it is long."""
    return text if len(text) <= length else text[: length - 3] + "..."
