"""Tables: which column is what; each refusal is one sentence with its place."""

from __future__ import annotations

import re
from dataclasses import dataclass

from triscreen.errors import InputError

LABELS = ("label", "class", "target", "y")


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are what; numbers are counted from 0."""

    features: list
    label: int | None
    names: int | None
    keep: tuple = ()  # carried along, as they are
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


def columns_of(titles, n_columns, name, *, label, labelled, names, drop, features, keep=()):
    """Return the `Columns` of a table, by what was asked for and by its titles (None: it has none)."""
    if label is not None:
        label = _find(label, titles, n_columns, "label", name)
    elif labelled:
        known = [title.strip().lower() for title in titles or []]
        label = next((known.index(word) for word in LABELS if word in known), n_columns - 1)
    names = None if names is None else _find(names, titles, n_columns, "names", name)
    if names is not None and names == label:
        raise InputError(f"names={titles[names] if titles else names!r}: source={name!r} has its labels in that column")
    keep = tuple(dict.fromkeys(_find(column, titles, n_columns, "keep", name) for column in keep))
    roles = {"label": label, "names": names}
    roles = {key: column for key, column in roles.items() if column is not None}
    return Columns(features_of(titles, n_columns, name, roles, drop, features, keep), label, names, keep, labelled)


def features_of(titles, n_columns, name, roles, drop, wanted, keep=()):
    """Return the columns that are features: those wanted, by their names, or all that are nothing else.

    keep: columns that are carried along, which a model may want as features, too.
    """
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
        chosen = [column for column in range(n_columns) if column not in out and column not in keep]
    if not chosen:
        raise InputError(f"source={name!r} has {n_columns} columns: no feature is left beside the labels")
    found = [titles[column] for column in chosen] if titles is not None else []
    if len(set(found)) < len(found):
        seen = set()
        twice = next(title for title in found if title in seen or seen.add(title))
        raise InputError(f"source={name!r} has two columns called {twice!r}: names of features must differ")
    return chosen


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
