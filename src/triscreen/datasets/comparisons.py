"""Comparisons from files: three columns, or columns by their titles, or lines of JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

import numpy as np

from triscreen._utils.validation import shortened
from triscreen.datasets.read import bytes_of
from triscreen.datasets.table import is_whole
from triscreen.datasets.text import as_text, delimiter_of, rows
from triscreen.errors import InputError

# Titles of columns of comparisons: a first row of three of these is a header.
_TITLES = {
    "a", "b", "c", "i", "j", "k", "l", "x", "y", "z", "anchor", "query", "reference", "item", "point", "object", "who",
    "this", "positive", "negative", "same", "other", "target", "near", "nearer", "close", "closer", "similar", "far",
    "farther", "further", "than", "different", "dissimilar", "first", "second", "third",
}  # fmt: skip
# Titles that say which of the three a column or a key is, whatever the order.
_ROLES = (
    ("anchor", "query", "reference"),
    ("positive", "near", "nearer", "close", "closer", "similar"),
    ("negative", "far", "farther", "further", "different", "dissimilar"),
)


def read_comparisons(
    source: str | os.PathLike[str], names: Sequence[str] | None = None, n_points: int | None = None
) -> np.ndarray:
    """Read comparisons "a is closer to b than to c" from a table or from lines of JSON.

    A table has three columns in this order, or columns in any order, and others beside them, under titles such as
    query, positive, negative or anchor, near, far. Without such titles the first row is a header where its three cells
    are words such as a, b, c: anything else would be a comparison lost without a word where names are misspelled. A
    line of JSON is an object with such keys, or a list of three.

    Parameters
    ----------
    source : str or path
        A text file, packed by gzip or not, or "-".
    names : list of str, optional
        The names of the points, if the comparisons speak of these; otherwise they are numbers, counted from 0.
    n_points : int, optional
        Numbers must be smaller.

    Returns
    -------
    array of int, shape (m, 3)

    References
    ----------
    docs/cli.md; ours.

    Examples
    --------
    >>> import os, tempfile
    >>> from triscreen.datasets import read_comparisons
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "said.csv")
    ...     with open(file, "w") as stream:
    ...         _ = stream.write("apple,pear,brick\\nbrick,stone,pear\\n")
    ...     read_comparisons(file, names=["apple", "brick", "pear", "stone"]).tolist()
    [[0, 2, 1], [1, 3, 2]]
    """
    source = os.fspath(source)
    text = as_text(bytes_of(source), source)
    numbers = None
    if names is not None:
        numbers = {str(name): number for number, name in enumerate(names)}
        if len(numbers) < len(names):
            seen = set()
            twice = next(name for name in names if name in seen or seen.add(name))
            raise InputError(f"names has {twice!r} twice: every point needs a name of its own")
    found = []
    for line, cells, hint in _cells(text, source, numbers):
        strange = [cell for cell in cells if not _known(cell, numbers)]
        if strange:
            what = "a whole number (for names: --names FILE, one a line, or --names COLUMN)"
            what = what if numbers is None else "the name of a point"
            hint = hint if len(strange) == 3 else ""
            raise InputError(f"source={source!r}, line {line}: {shortened(strange[0])} is not {what}{hint}")
        row = [int(cell) if numbers is None else numbers[cell] for cell in cells]
        if n_points is not None and not all(0 <= item < n_points for item in row):
            raise InputError(
                f"source={source!r}, line {line}: {row} must be numbers of points, between 0 and {n_points - 1}"
            )
        if len(set(row)) < 3:
            raise InputError(
                f"source={source!r}, line {line}: {cells} has a point twice, three different ones are needed"
            )
        found.append(row)
    if not found:
        raise InputError(f"source={source!r} has no comparison: rows of three points are needed")
    return np.array(found, dtype=np.int64)


def _known(cell, numbers):
    return is_whole(cell) if numbers is None else cell in numbers


def _cells(text, source, numbers):
    """Yield (line, three cells, what to say where none of them is a point) for each comparison."""
    if text.lstrip()[:1] in ("{", "["):
        yield from _of_json(text, source)
        return
    order = None
    for place, (line, cells) in enumerate(rows(text, delimiter_of(text, source), source)):
        cells = [cell.strip() for cell in cells]
        if place == 0:
            order, width = _order(cells), len(cells)
            if order is not None and not all(_known(cells[column], numbers) for column in order):
                continue
            order = None
        if order is not None and len(cells) != width:
            raise InputError(f"source={source!r}, line {line}: it has {len(cells)} columns, the first line has {width}")
        if order is None and len(cells) != 3:
            raise InputError(
                f"source={source!r}, line {line}: it has {len(cells)} columns, a comparison has three (a is closer to "
                "b than to c), or titles such as query, positive, negative"
            )
        cells = cells if order is None else [cells[column] for column in order]
        titles = all(cell.lower() in _TITLES for cell in cells) and not any(_known(cell, numbers) for cell in cells)
        if place or not titles:
            yield line, cells, "" if place else "; a header has titles such as a, b, c or anchor, near, far"


def _order(titles):
    """Return which of the titles are anchor, positive and negative, or None where they do not say so."""
    words = [title.strip().lower() for title in titles]
    found = [[place for place, word in enumerate(words) if word in role] for role in _ROLES]
    return [places[0] for places in found] if all(len(places) == 1 for places in found) else None


def _of_json(text, source):
    for line, said in enumerate(text.splitlines(), 1):
        if not said.strip():
            continue
        try:
            one = json.loads(said)
        except (ValueError, RecursionError):
            raise InputError(
                f"source={source!r}, line {line}: {shortened(said)} is no JSON, put the line right"
            ) from None
        if isinstance(one, dict):
            order = _order(list(one))
            cells = None if order is None else [list(one.values())[place] for place in order]
        else:
            cells = one if isinstance(one, list) and len(one) == 3 else None
        good = cells is not None and all(isinstance(c, str | int) and not isinstance(c, bool) for c in cells)
        if not good:
            raise InputError(
                f"source={source!r}, line {line}: {shortened(said)} is no comparison, one has the keys query, positive "
                "and negative, each with one point, or is a list of three"
            )
        yield line, [str(cell).strip() for cell in cells], ""
