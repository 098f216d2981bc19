"""Text: CSV and its relatives, numbers by numpy, and the first place that is wrong."""

from __future__ import annotations

import csv
import io
import re
from collections import deque
from itertools import islice

import numpy as np

from triscreen.datasets.features import is_gap, looks_like
from triscreen.datasets.points import from_columns
from triscreen.datasets.table import LABELS, columns_of, is_number
from triscreen.errors import InputError

_HEAD = 20  # rows that tell whether there is a header
# What a spreadsheet may take for a formula, or an escaped one.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def read_text(data, name, header, choice, wanted):
    """Return the points of a text; header: True, False, or None to look."""
    text = as_text(data, name)
    delimiter = delimiter_of(text, name, wanted.decimal)
    if text.count('"') % 2 and delimiter is not None:
        deque(rows(text, delimiter, name), maxlen=0)  # refuses a quote that is not closed: it would swallow rows
    head = [cells for _, cells in islice(rows(text, delimiter, name), _HEAD)]
    if not head:
        raise InputError(f"source={name!r} has no rows: a table of points is needed")
    header = _has_header(head, wanted.decimal) if header is None else header
    titles = [cell.strip() for cell in head[0]] if header else None
    n_columns = len(head[0])
    if header and len(head) == 1:
        raise InputError(f"source={name!r} has a header and no rows: a table of points is needed")
    roles = columns_of(titles, n_columns, name, **choice)
    columns = place_of = None
    if wanted.numbers and wanted.decimal == ".":
        columns = _by_numpy(_without_first(text, delimiter, name) if header else io.StringIO(text, newline=""),
                            delimiter, n_columns, roles)  # fmt: skip
    if columns is None:
        columns, place_of = _cell_by_cell(text, delimiter, header, n_columns, roles, name)
    return from_columns(titles, columns, name, choice, wanted, place_of)


def _by_numpy(stream, delimiter, n_columns, roles):
    """Return the columns of a table of finite numbers, or None where it is anything else."""
    others = {column for column in (roles.label, roles.names, *roles.keep) if column is not None}
    if others & set(roles.features):
        return None
    codes = {column: {} for column in others}

    def coded(known):
        return lambda cell: float(known.setdefault(cell.strip(), len(known)))

    converters = {column: coded(known) for column, known in codes.items()}
    idle = set(range(n_columns)).difference(codes, roles.features)
    converters.update({column: lambda _: 0.0 for column in idle})
    try:
        table = np.loadtxt(stream, delimiter=delimiter, comments=None, quotechar=None if delimiter is None else '"',
                           converters=converters, ndmin=2, encoding="utf-8")  # fmt: skip
    except ValueError:
        return None
    if table.shape[1] != n_columns or not np.isfinite(table).all() or any("" in known for known in codes.values()):
        return None
    columns = list(table.T)
    for column, known in codes.items():
        columns[column] = np.array(list(known))[columns[column].astype(int)]
    return columns


def _cell_by_cell(text, delimiter, header, n_columns, roles, name):
    """Return (columns of texts, None for those that nobody needs; row -> its line)."""
    needed = [c for c in (roles.label, roles.names, *roles.keep, *roles.features) if c is not None]
    found, lines = {column: [] for column in needed}, []
    for line, cells in islice(rows(text, delimiter, name), 1 if header else 0, None):
        if len(cells) != n_columns:
            raise InputError(
                f"source={name!r}, line {line}: it has {len(cells)} columns, the first line has {n_columns}"
            )
        lines.append(line)
        for column, values in found.items():
            values.append(cells[column].strip())
    if not lines:
        raise InputError(f"source={name!r} has a header and no rows: a table of points is needed")
    unnamed = found.get(roles.names, ())
    if "" in unnamed:
        raise InputError(
            f"source={name!r}, line {lines[unnamed.index('')]}: the value is missing, the point has no name"
        )
    nothing = np.zeros(len(lines), dtype=np.int8)
    columns = [np.array(found[c], dtype=object) if c in found else nothing for c in range(n_columns)]
    return columns, lambda row: f"line {lines[row]}"


def as_text(data, name):
    """Return bytes as text, lines that begin with # left blank; or refuse what is not UTF-8."""
    try:
        return _without_comments(data.decode("utf-8-sig"))
    except UnicodeDecodeError as err:
        line = data[: err.start].count(b"\n") + 1
        raise InputError(f"source={name!r}, line {line}: the text is not UTF-8, save it as UTF-8") from None


def _without_comments(text):
    """Return a text with its comments blank, so that lines keep their numbers; within quotes nothing is a comment."""
    if "#" not in text:
        return text
    lines, quoted = text.splitlines(keepends=True), False
    for number, line in enumerate(lines):
        if not quoted and line.lstrip().startswith("#"):
            lines[number] = "\n"
        else:
            quoted ^= bool(line.count('"') % 2)
    return "".join(lines)


def delimiter_of(text, name, decimal="."):
    """Return the separator of columns: by the name of the file, or the first of a few that its first line has."""
    if re.search(r"\.tsv(\.gz)?$", name):
        return "\t"
    line = next((line for line in io.StringIO(text) if line.strip()), "")
    line = re.sub(r'"[^"]*"', "", line)
    if decimal == "," and line.count(",") > 1 and len(line.split()) == 1 and not re.search("[\t;]", line):
        raise InputError(
            f"decimal=',': commas separate the columns of source={name!r}, so its numbers have points; leave it out"
        )
    return next((sign for sign in "\t;," if sign in line and sign != decimal), None)


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


def _has_header(head, decimal):
    """Tell whether the first row holds names: text above numbers, and no number of its own; or a name for labels.

    Dates and true or false are like numbers here, and what is missing says nothing.
    """
    first, rest = [cell.strip() for cell in head[0]], head[1:]

    def valued(cell):
        return is_number(cell if decimal == "." else cell.replace(decimal, ".")) or looks_like(cell)

    if not rest:
        return not any(map(valued, first))

    def below(column):
        return [cell for row in rest if column < len(row) and not is_gap(cell := row[column].strip())]

    if any(cell.lower() in LABELS[:3] and cell not in below(column) for column, cell in enumerate(first)):
        return True
    above = [bool(below(c)) and all(map(valued, below(c))) and not valued(cell) for c, cell in enumerate(first)]
    return any(above) and not any(map(valued, first))
