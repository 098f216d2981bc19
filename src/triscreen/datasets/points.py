"""From arrays and columns to points: features, labels, names and what is carried along, row by row."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from triscreen.datasets.features import Preparation, Table, in_blocks
from triscreen.datasets.table import columns_of, is_number, place
from triscreen.errors import InputError

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
    kept : dict of str to list
        The columns ``keep``, by their titles or numbers, as they are.
    preparation : Preparation or None
        What was learned of the columns (categories, medians); None where all of them are numbers that stay as they are.
    rows : array of int, or None
        The rows of the source that the points are, where some were left out.
    source_names : list of str, or None
        The column ``names``, with the rows that were left out.
    n_rows : int or None
        Rows of the source.

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
    feature_names: list[str] | None
    name: str
    label: str | None = None
    row_names: list[str] | None = None
    label_name: str | None = None
    kept: dict[str, list[Any]] = field(default_factory=dict)
    preparation: Preparation | None = None
    rows: np.ndarray | None = None
    source_names: list[str] | None = None
    n_rows: int | None = None


def from_parts(X, y, titles, name, choice, wanted, kept_as):
    """Return the points of a source that keeps its labels apart from the features.

    kept_as: the name that the source has for its labels, or None where it has none.
    """
    label, labelled = choice["label"], choice["labelled"]
    if label is not None and (kept_as is None or str(label) != kept_as):
        known = "they need no name" if kept_as is None else f"they are called {kept_as!r}"
        raise InputError(f"label={label!r}: source={name!r} keeps its labels apart from the features, and {known}")
    if choice["names"] is not None:
        raise InputError(f"names={choice['names']!r}: source={name!r} has no column of names, a table has")
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
    roles = columns_of(
        titles, X.shape[1], name, **{**choice, "label": None, "labelled": False}
    )  # its labels are no column of it
    where = f"the array {kept_as}" if kept_as else "its labels"
    return _made(X, y, None, replace(roles, classes=labelled or y is not None), titles, name, wanted, where)


def from_columns(titles, columns, name, choice, wanted, place_of=None):
    """Return the points of a table whose columns are arrays, or of one array (n, d); place_of: row -> where it is."""
    if not len(columns) or not len(columns[0]):
        raise InputError(f"source={name!r} has no rows: a table of points is needed")
    whole = isinstance(columns, np.ndarray)
    roles = columns_of(titles, columns.shape[1] if whole else len(columns), name, **choice)
    y, names = (
        None if c is None else np.asarray(columns[:, c] if whole else columns[c]) for c in (roles.label, roles.names)
    )
    where = None if roles.label is None else place(roles.label, titles)
    return _made(columns, y, names, roles, titles, name, wanted, where, place_of)


def _made(columns, y, names, roles, titles, name, wanted, where, place_of=None):
    """Return points: features by what is wanted, everything else by the rows that stay."""
    place_of = place_of or (lambda row: f"row {row}")
    whole, n = isinstance(columns, np.ndarray), len(columns if isinstance(columns, np.ndarray) else columns[0])
    lacking = None if y is None else _without_label(y)
    if lacking is not None and wanted.policy != "drop":
        raise InputError(
            f"source={name!r}, {place_of(int(lacking.argmax()))}, {where}: the value is missing, every point needs a "
            "label (--missing drop leaves rows out)"
        )
    if whole and wanted.as_it_is:
        chosen, made, stay = roles.features, None, None
        X = columns if chosen == list(range(columns.shape[1])) else columns[:, chosen]
        features = None if titles is None else [titles[column] for column in chosen]
    else:
        some = [columns[:, c] if whole else columns[c] for c in roles.features]
        table = Table(some, titles, roles.features, name, place_of, wanted.decimal)
        X, features, made, stay = table.features(wanted, lacking)
    rows = None if stay is None else np.flatnonzero(stay)

    def staying(values):
        return values if rows is None or values is None else values[rows]

    labels = None if y is None else as_labels(staying(y), name, where, roles.classes)
    all_names = None if names is None else [str(item) for item in names.tolist()]
    first = X[:, 0]
    if features and not features[0].strip() and np.array_equal(first, first[0] + np.arange(len(X))):
        raise InputError(f"source={name!r}: its first column has no name and counts the rows, so drop it (drop 0)")
    kept = {
        str(c) if titles is None else titles[c]: staying(np.asarray(columns[:, c] if whole else columns[c])).tolist()
        for c in roles.keep
    }
    found = make_points(X, labels, features, name, where, place_of if rows is None else lambda row: place_of(rows[row]))
    return replace(
        found,
        row_names=all_names if rows is None or all_names is None else [all_names[row] for row in rows],
        source_names=all_names,
        label_name=str(titles[roles.label]) if titles is not None and roles.label is not None else None,
        kept=kept,
        preparation=made,
        rows=rows,
        n_rows=n,
    )


def _without_label(y):
    """Return which rows have no label, or None: all have one."""
    if y.dtype.kind == "f":
        found = np.isnan(y)
    elif y.dtype.kind in "OU":
        found = np.array([value is None or value == "" or value != value for value in y.tolist()], dtype=bool)
    else:
        return None
    return found if found.any() else None


def make_points(X, y, features, name, label=None, place_of=lambda row: f"row {row}"):
    """Return the points, or refuse arrays that are no table of finite numbers; float32 stays float32."""
    as_table(X, name)
    X = np.ascontiguousarray(X, dtype=np.float32 if np.can_cast(X.dtype, np.float32) else np.float64)
    start = 0
    for some in in_blocks(X):
        if not np.isfinite(some).all():
            row, column = np.argwhere(~np.isfinite(some))[0]
            raise InputError(
                f"source={name!r}, {place_of(start + row)}, {place(column, features)}: the value is "
                f"{some[row, column]}, features must be finite"
            )
        start += len(some)
    return Points(X, y, None if features is None else [str(f) for f in features], name, label)


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


_CODE = re.compile(r"(?:^|[\W_])(?:code|codes|zip|zip_?code|postcode|postal_?code|plz|class_?nr|type)$", re.IGNORECASE)


_WIDE = 50


def look_like_codes(points):
    """Return the titles of features that are whole numbers, some of them repeated, called zip_code or the like."""
    found = []
    for column, title in enumerate(points.feature_names or ()):
        values = points.X[:, column]
        if _CODE.search(title) and (values == np.floor(values)).all() and 2 < len(np.unique(values)) < len(values):
            found.append(title)
    return found


def wide_categories(points):
    """Return (title, number of values) of the columns of categories that become more than 50 features each."""
    columns = () if points.preparation is None else points.preparation.columns
    return [(column.title, len(column.values)) for column in columns if len(column.values) > _WIDE]


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
