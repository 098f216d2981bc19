"""Text: CSV and its relatives, numbers by numpy, and the first place that is wrong."""

from __future__ import annotations

import csv
import io
import re
from collections import deque
from itertools import islice
from math import isfinite

import numpy as np

from triscreen._utils.validation import shortened
from triscreen.datasets.table import LABELS, brief, columns_of, is_number, of_table, place
from triscreen.errors import InputError

_HEAD = 20  # rows that tell whether there is a header
# What a spreadsheet may take for a formula, or an escaped one.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def read_text(data, name, header, choice):
    """Return the points of a text; header: True, False, or None to look."""
    text = as_text(data, name)
    delimiter = delimiter_of(text, name)
    if text.count('"') % 2 and delimiter is not None:
        deque(rows(text, delimiter, name), maxlen=0)  # refuses a quote that is not closed: it would swallow rows
    head = [cells for _, cells in islice(rows(text, delimiter, name), _HEAD)]
    if not head:
        raise InputError(f"source={name!r} has no rows: a table of points is needed")
    header = _has_header(head) if header is None else header
    titles = [cell.strip() for cell in head[0]] if header else None
    n_columns = len(head[0])
    if header and len(head) == 1:
        raise InputError(f"source={name!r} has a header and no rows: a table of points is needed")
    roles = columns_of(titles, n_columns, name, **choice)
    codes = {column: {} for column in (roles.label, roles.names) if column is not None}

    def coded(known):
        return lambda cell: float(known.setdefault(cell.strip(), len(known)))

    converters = {column: coded(known) for column, known in codes.items()}
    others = set(range(n_columns)).difference(codes, roles.features)
    converters.update({column: lambda _: 0.0 for column in others})
    try:
        table = np.loadtxt(
            _without_first(text, delimiter, name) if header else io.StringIO(text, newline=""),
            delimiter=delimiter, comments=None, quotechar=None if delimiter is None else '"',
            converters=converters, ndmin=2, encoding="utf-8",
        )  # fmt: skip
        good = table.shape[1] == n_columns and np.isfinite(table).all() and not any("" in k for k in codes.values())
    except ValueError as err:
        _explain(text, delimiter, header, titles, n_columns, roles, name)
        raise InputError(f"source={name!r} is no table of numbers ({brief(err)})") from None
    if not good:
        _explain(text, delimiter, header, titles, n_columns, roles, name)

    def values(column):
        if column is None:
            return None
        return np.array(list(codes[column]))[table[:, column].astype(int)]

    X = np.ascontiguousarray(table[:, roles.features])
    return of_table(X, values(roles.label), values(roles.names), roles, titles, name)


def as_text(data, name):
    """Return bytes as text, or refuse what is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        line = data[: err.start].count(b"\n") + 1
        raise InputError(f"source={name!r}, line {line}: the text is not UTF-8, save it as UTF-8") from None


def delimiter_of(text, name):
    """Return the separator of columns: by the name of the file, or the first of a few that its first line has."""
    if name.endswith(".tsv"):
        return "\t"
    line = next((line for line in io.StringIO(text) if line.strip()), "")
    line = re.sub(r'"[^"]*"', "", line)
    return next((sign for sign in "\t;," if sign in line), None)


def rows(text, delimiter, name):
    """Yield (line, cells) for each row that is not blank."""
    yield from _rows_of(io.StringIO(text, newline=""), delimiter, name)


def _rows_of(stream, delimiter, name):
    if delimiter is None:
        yield from ((number, line.split()) for number, line in enumerate(stream, 1) if line.strip())
        return
    reader, line = csv.reader(stream, delimiter=delimiter, strict=True), 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, cells
            line = reader.line_num + 1
    except csv.Error as err:
        why = 'a quote (") that begins in this row is not closed' if "end of data" in str(err) else f"no table ({err})"
        raise InputError(f"source={name!r}, line {line}: {why}, put the row right") from None


def _without_first(text, delimiter, name):
    """Return the text as a stream, past its first row that is not blank."""
    stream = io.StringIO(text, newline="")
    next(_rows_of(stream, delimiter, name))
    return stream


def escaped(cell):
    """Return a text as a cell that no spreadsheet takes for a formula; numbers stay as they are."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) and not is_number(cell) else cell


def _has_header(head):
    """Tell whether the first row holds names: text above numbers, and no number of its own; or a name for labels."""
    first, rest = [cell.strip() for cell in head[0]], head[1:]

    if not rest:
        return not any(map(is_number, first))

    def below(column):
        return [row[column].strip() for row in rest if column < len(row)]

    if any(cell.lower() in LABELS[:3] and cell not in below(column) for column, cell in enumerate(first)):
        return True
    above = [bool(below(c)) and all(map(is_number, below(c))) and not is_number(cell) for c, cell in enumerate(first)]
    return any(above) and not any(map(is_number, first))


def _explain(text, delimiter, header, titles, n_columns, roles, name):
    """Refuse a text that is no table of numbers, with the first place that is wrong."""
    others = [column for column in (roles.label, roles.names) if column is not None]
    for line, cells in islice(rows(text, delimiter, name), 1 if header else 0, None):
        if len(cells) != n_columns:
            raise InputError(
                f"source={name!r}, line {line}: it has {len(cells)} columns, the first line has {n_columns}"
            )
        try:  # most rows are good ones
            good = isfinite(sum(float(cells[column]) for column in roles.features)) and all(cells[c] for c in others)
            if good and not any("_" in cells[column] for column in roles.features):
                continue
        except ValueError:
            pass
        for column in sorted([*roles.features, *others]):
            cell, where = cells[column].strip(), f"source={name!r}, line {line}, {place(column, titles)}"
            if not cell or (column in roles.features and cell.lower() in ("nan", "na", "null", "none", "?")):
                raise InputError(f"{where}: the value is missing ({cell!r}), fill it in or leave the row out")
            if column in others:
                continue
            if not is_number(cell):
                comma = re.fullmatch(r"-?\d+,\d+", cell)
                hint = (
                    "numbers have a point, not a comma"
                    if comma
                    else "features are numbers (drop the column, or say that it holds labels)"
                )
                raise InputError(f"{where}: {shortened(cell)} is not a number, and {hint}")
            if not isfinite(float(cell)):
                raise InputError(f"{where}: the value is {cell}, features must be finite")
