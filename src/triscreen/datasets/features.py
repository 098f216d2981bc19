"""From columns to features: numbers, categories, booleans, dates and vectors, and what is learned of each.

A column of a file is an array of numbers (NaN: missing), of dates (datetime64), of texts ("" : missing), or a matrix
(n, m), a column of vectors. What is learned of it (its kind, its values, what fills its gaps) is a `Column`; all of
them are a `Preparation`, which is part of a saved model, so that new files become features in the same way.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone

import numpy as np

from triscreen._utils.validation import shortened
from triscreen.datasets.hints import needed
from triscreen.datasets.table import cut, is_number, is_whole
from triscreen.datasets.table import place as place_in
from triscreen.errors import InputError

MISSING = ("error", "drop", "median")
NOTHING = frozenset(("", "nan", "na", "n/a", "#n/a", "null", "none", "?"))
_TRUTH = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[-+]\d\d:?\d\d)?)?")
_MOST = 1000  # categories of a column
_LONGEST_HINT = 1000  # characters
_BLOCK = 1 << 20  # numbers that are looked at at a time


@dataclass(frozen=True)
class Column:
    """One column: its title (None: it has none), kind, values of a category, what fills a gap, features it becomes."""

    title: str | None
    kind: str = "number"  # number, boolean, category, date, vector
    values: tuple = ()
    fill: float | str | None = None
    size: int = 1

    def names(self, number):
        """Return the names of the features that it becomes; number: its place, where it has no title."""
        title = str(number) if self.title is None else self.title
        if self.kind == "category":
            return [f"{title}={value}" for value in self.values]
        return [f"{title}[{item}]" for item in range(self.size)] if self.kind == "vector" else [title]


@dataclass(frozen=True)
class Preparation:
    """What was learned of the columns that features are made of, in their order; missing: what is done with gaps."""

    columns: tuple
    missing: str = "error"

    @property
    def titles(self):
        """The titles of the columns, or None where the table had none."""
        return None if any(column.title is None for column in self.columns) else [c.title for c in self.columns]

    def names(self):
        """Return the names of all features."""
        return [name for number, column in enumerate(self.columns) for name in column.names(number)]

    def plain(self):
        """Return it as numbers, texts and lists, for a file."""
        columns = [{**asdict(column), "values": list(column.values)} for column in self.columns]
        return {"missing": self.missing, "columns": columns}

    @classmethod
    def of(cls, told):
        """Return what `plain` took apart, or raise ValueError, KeyError or TypeError where it is something else."""
        columns = tuple(Column(**{**one, "values": tuple(one["values"])}) for one in told["columns"])
        kinds = {"number", "boolean", "category", "date", "vector"}
        if told["missing"] not in MISSING or not columns or not all(column.kind in kinds for column in columns):
            raise ValueError("its columns are none")
        for column in columns:
            text = column.kind == "category"
            if not all(isinstance(value, str) for value in column.values) or text != bool(column.values):
                raise ValueError("its categories are none")
            good = str if text else (int, float)
            if column.fill is not None and not isinstance(column.fill, good):
                raise ValueError("its medians are none")
        return cls(columns, told["missing"])


def numbers_only(titles, n):
    """Return the `Preparation` of n columns of numbers, with titles or None, of which no median is known."""
    return Preparation(tuple(Column(None if titles is None else str(titles[number])) for number in range(n)))


@dataclass(frozen=True)
class Wanted:
    """How columns shall become features.

    missing: None, or one of `MISSING`; categories, dates: columns by title or number, or "all"; known: the
    `Preparation` of a model, which says the rest.
    """

    missing: str | None = None
    categories: tuple = ()
    dates: tuple = ()
    known: Preparation | None = None
    decimal: str = "."

    def __post_init__(self):
        if self.decimal not in (".", ","):
            raise InputError(f"decimal={shortened(self.decimal)}: it must be . or ,")
        if self.missing is not None and self.missing not in MISSING:
            raise InputError(f"missing={shortened(self.missing)}: it must be one of {', '.join(MISSING)}")
        if self.known is not None and self.missing == "median" != self.known.missing:
            raise InputError(
                "missing='median': the model knows no medians, as it was learned without; fill the gaps in, learn it "
                "again with --missing median, or say --missing drop"
            )
        for name in ("categories", "dates"):
            if self.known is not None and getattr(self, name):
                raise InputError(f"{name}={list(getattr(self, name))}: the model knows what its columns are")

    @property
    def policy(self):
        """What is done with gaps."""
        return self.missing or (self.known.missing if self.known is not None else "error")

    @property
    def numbers(self):
        """Are all columns numbers, as far as anybody has said?"""
        known = self.known is None or all(column.kind == "number" for column in self.known.columns)
        return known and not self.categories and not self.dates

    @property
    def as_it_is(self):
        """Does a matrix of numbers stay as it is?"""
        return self.numbers and self.policy == "error"


class Table:
    """Columns of a file on their way to features; row -> words of its place, for messages."""

    def __init__(self, columns, titles, numbers, name, place_of, decimal="."):
        self.columns, self.titles, self.numbers = columns, titles, numbers
        self.name, self.place_of, self.decimal = name, place_of, decimal

    def features(self, wanted, lacking=None):
        """Return (X, names of features or None, Preparation or None, rows that stay or None for all).

        lacking: rows without a label, which leave where rows with gaps do.
        """
        for place in range(len(self.columns)):
            self._refuse_strange(place)
        if wanted.known is not None:
            kinds = self._as_known(wanted.known)
        else:
            chosen = {
                argument: self._chosen(getattr(wanted, argument), argument) for argument in ("categories", "dates")
            }
            kinds = [self._look(place, chosen) for place in range(len(self.columns))]
        try:
            parts = [self._read(place, column) for place, column in enumerate(kinds)]
        except InputError as err:
            raise InputError(f"{err}{self._all_needed(wanted, kinds)}") from None
        gaps = [self._gaps(part) for part in parts]
        stay = None
        if lacking is not None or any(gap is not None for gap in gaps):
            gone = np.zeros(len(self.columns[0]), dtype=bool)
            for gap in [*gaps, lacking]:
                gone |= False if gap is None else gap
            if wanted.policy == "error":
                self._refuse_gap(gaps, gone)
            stay = ~gone if wanted.policy == "drop" else None
            if stay is not None and not stay.any():
                raise InputError(f"missing='drop': every row of source={self.name!r} lacks a value, none is left")
        if wanted.policy == "median":
            each = zip(kinds, parts, gaps, range(len(parts)), strict=True)
            kinds, parts = map(list, zip(*(self._filled(*one, wanted.known) for one in each), strict=True))
        if stay is not None:
            parts = [part[stay] for part in parts]
        kinds = [self._levels(*one) for one in zip(kinds, parts, strict=True)] if wanted.known is None else kinds
        blocks = [self._block(*one, stay) for one in zip(kinds, parts, range(len(parts)), strict=True)]
        made = Preparation(tuple(kinds), wanted.policy)
        plain = wanted.known is None and wanted.policy == "error" and all(column.kind == "number" for column in kinds)
        titled = self.titles is not None or any(column.kind in ("category", "vector") for column in kinds)
        return _stacked(blocks), made.names() if titled else None, None if plain else made, stay

    def _refuse_strange(self, place):
        values = self.columns[place]
        good = (
            values.dtype.kind in "biufM"
            if values.dtype.kind not in "OU"
            else all(isinstance(cell, str) for cell in values.ravel().tolist())
        )
        if not good:
            raise InputError(
                f"source={self.name!r}, {self._place(place)} holds {values.dtype}: features are numbers, texts, dates "
                "or vectors, drop the column (--drop)"
            )

    def _place(self, column):
        return place_in(self.numbers[column], self.titles)

    def _title(self, column):
        return None if self.titles is None else self.titles[self.numbers[column]]

    def _chosen(self, columns, argument):
        """Return the columns that an argument names, or "all"."""
        if list(columns) == ["all"] and "all" not in (self.titles or ()):
            return "all"
        known = {self._title(place): place for place in range(len(self.columns)) if self.titles is not None}
        by_number = {number: place for place, number in enumerate(self.numbers)}
        found = set()
        for one in columns:
            if str(one) in known:
                found.add(known[str(one)])
            elif is_whole(one) and int(one) in by_number:
                found.add(by_number[int(one)])
            else:
                told = cut(", ".join(map(str, known or by_number)), 200)
                raise InputError(
                    f"{argument}={one!r}: source={self.name!r} has no such column of features, these are {told}"
                )
        return found

    def _look(self, place, chosen):
        """Return what a column is, by what was asked for and by what it holds."""
        values, title = self.columns[place], self._title(place)
        category, date = ("all" if argument == "all" else place in argument for argument in chosen.values())
        if values.ndim == 2:
            if category is True or date is True:
                raise InputError(
                    f"source={self.name!r}, {self._place(place)} holds vectors: they are features as they are"
                )
            return Column(title, "vector", size=values.shape[1])
        if category is True:
            return Column(title, "category")
        if values.dtype.kind == "M":
            if not date:
                told = _dates_hint(title, self.numbers[place])
                raise InputError(f"source={self.name!r}, {self._place(place)} holds dates: {told}")
            return Column(title, "date")
        if date is True:
            return Column(title, "date")
        if values.dtype.kind == "b":
            return Column(title, "boolean")
        if values.dtype.kind in "iuf":
            return Column(title)
        cells = [cell for cell in dict.fromkeys(values.tolist()) if not is_gap(cell)]
        if all(self._number(cell) is not None for cell in cells):
            return Column(title)
        if all(cell.lower() in _TRUTH for cell in cells):
            return Column(title, "boolean")
        days = bool(cells) and all(_DATE.fullmatch(cell) for cell in cells)
        if date and days:
            return Column(title, "date")
        if category and days:  # "all": a feature for each day would be a surprise
            told = _dates_hint(title, self.numbers[place])
            raise InputError(f"source={self.name!r}, {self._place(place)} holds dates: {told}")
        if category:
            return Column(title, "category")
        return Column(title)  # refused where it is read, with the place

    def _as_known(self, known):
        """Return the columns as a model knows them, or refuse others."""
        if len(known.columns) != len(self.columns):
            raise InputError(
                f"source={self.name!r} has {len(self.columns)} columns of features: the model was learned from "
                f"{len(known.columns)}; name a column of labels with --label, leave others out with --drop"
            )
        for place, column in enumerate(known.columns):
            found = self.columns[place].shape[1:]
            if found != ((column.size,) if column.kind == "vector" else ()):
                what = f"vectors of {found[0]} numbers" if found else "one value a row"
                wants = f"vectors of {column.size}" if column.kind == "vector" else f"a {column.kind}"
                raise InputError(
                    f"source={self.name!r}, {self._place(place)} holds {what}: the model was learned from {wants}"
                )
        return list(known.columns)

    def _number(self, cell):
        if self.decimal != ".":
            if "." in cell:
                return None
            cell = cell.replace(self.decimal, ".")
        return float(cell) if is_number(cell) else None

    def _read(self, place, column):
        """Return a column as numbers (NaN: missing), or as texts where it is a category ("": missing)."""
        values = self.columns[place]
        if column.kind == "category":
            if values.dtype.kind not in "OU":
                gap = ~np.isfinite(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
                values = np.array([_as_text(value) for value in values.tolist()], dtype=object)
                values[gap] = ""
            return np.array(["" if is_gap(cell) else cell for cell in values.tolist()], dtype=object)
        if values.dtype.kind == "M":
            days = (values - np.datetime64("1970-01-01")) / np.timedelta64(1, "D")
            return np.where(np.isnat(values), np.nan, days.astype(float))
        if values.dtype.kind not in "OU":
            return values
        known, found = {}, np.empty(len(values))
        for row, cell in enumerate(values.tolist()):
            if cell not in known:
                known[cell] = np.nan if is_gap(cell) else self._value(cell, row, place, column)
            found[row] = known[cell]
        return found

    def _value(self, cell, row, place, column):
        """Return the number that a text is, by the kind of its column, or refuse it."""
        where = f"source={self.name!r}, {self.place_of(row)}, {self._place(place)}"
        if column.kind == "date":
            if not _DATE.fullmatch(cell):
                raise InputError(f"{where}: {shortened(cell)} is no date such as 2024-12-31 or 2024-12-31T23:59:00")
            try:
                return _days(cell)
            except ValueError:
                raise InputError(f"{where}: {shortened(cell)} is no day of the calendar") from None
        if column.kind == "boolean":
            if cell.lower() in _TRUTH:
                return _TRUTH[cell.lower()]
            if self._number(cell) in (0.0, 1.0):
                return self._number(cell)
            raise InputError(f"{where}: {shortened(cell)} is not true or false, as the others of this column are")
        number = self._number(cell)
        if number is None:
            raise InputError(f"{where}: {shortened(cell)} is not a number, and {self._hint(cell, place)}")
        if not np.isfinite(number):
            raise InputError(f"{where}: the value is {cell}, features must be finite")
        return number

    def _hint(self, cell, place):
        title = self._title(place)
        if self.decimal != "." and "." in cell:
            return f"with decimal={self.decimal!r} numbers have no point"
        if re.fullmatch(r"-?\d+,\d+", cell):
            return "numbers have a point, not a comma (unless you say so: --decimal ,)"
        if _DATE.fullmatch(cell):
            return _dates_hint(title, self.numbers[place])
        word = shown(title, self.numbers[place])
        return (
            f"features are numbers (take the column for categories: --categories {word}; drop it: --drop; or "
            "say that it holds labels)"
        )

    def _all_needed(self, wanted, kinds):
        """Return what the whole table seems to need, where that is more than one option, for the end of a sentence."""
        if wanted.known is not None:
            return ""
        columns = [
            (shown(self._title(place), self.numbers[place]), values, column.kind in ("category", "date"))
            for place, (values, column) in enumerate(zip(self.columns, kinds, strict=True))
        ]
        looks = (
            lambda cell: self._number(cell) is not None,
            lambda cell: cell.lower() in _TRUTH,
            _DATE.fullmatch,
        )
        options = needed(columns, wanted, is_gap, looks)
        count = options.count("--")
        if len(options) > _LONGEST_HINT:
            return f"; the columns seem to need {count} options: take a file with fewer columns"
        return f"; all that the columns seem to need: {options}" if count > 1 else ""

    def _gaps(self, part):
        """Return where a column lacks values, or None: nowhere."""
        if part.dtype == object:
            found = part == ""
        elif part.dtype.kind != "f":
            return None
        elif part.ndim == 2:
            found = np.concatenate([np.isnan(some).any(axis=1) for some in in_blocks(part)])
        else:
            found = np.isnan(part)
        return found if found.any() else None

    def _refuse_gap(self, gaps, gone):
        row = int(gone.argmax())
        column = next(place for place, gap in enumerate(gaps) if gap is not None and gap[row])
        values = self.columns[column]
        cell = f" ({values[row]!r})" if values.dtype.kind in "OU" else ""
        raise InputError(
            f"source={self.name!r}, {self.place_of(row)}, {self._place(column)}: the value is missing{cell}, fill it "
            f"in or say what to do ({int(gone.sum()):,} of {len(gone):,} rows lack one): --missing median fills in the "
            "median, --missing drop leaves rows out"
        )

    def _filled(self, column, part, gap, place, known):
        """Return a column with what fills its gaps, and its values without any."""
        if column.kind == "vector":
            if gap is not None:
                raise InputError(
                    f"source={self.name!r}, {self.place_of(int(gap.argmax()))}, {self._place(place)}: a vector lacks "
                    "numbers, and has no median; --missing drop leaves rows out"
                )
            return column, part
        fill = column.fill
        if known is None:
            if gap is not None and gap.all():
                raise InputError(f"missing='median': source={self.name!r}, {self._place(place)} has no value at all")
            some = part if gap is None else part[~gap]
            if column.kind == "category" or column.kind == "boolean":  # the most frequent one
                values, counts = np.unique(some.astype(str) if column.kind == "category" else some, return_counts=True)
                fill = values[counts.argmax()].item()
            else:
                fill = float(np.median(some))
        if gap is not None:
            part = part.copy()
            part[gap] = fill
        return replace(column, fill=fill), part

    def _levels(self, column, part):
        """Return a category with its values, as they are among the rows that stay."""
        if column.kind != "category":
            return column
        values = sorted(set(part.tolist()))
        if len(values) > _MOST or (len(values) == len(part) > 4):
            title = column.title
            raise InputError(
                f"categories={title!r}: the column has {len(values):,} values in {len(part):,} rows of "
                f"source={self.name!r}: categories are few, drop it (--drop) or carry it along (--keep)"
            )
        return replace(column, values=tuple(values), size=len(values))

    def _block(self, column, part, place, stay):
        """Return a column as a matrix of features."""
        if column.kind != "category":
            return part.reshape(len(part), -1)
        codes = {value: code for code, value in enumerate(column.values)}
        found = np.zeros((len(part), len(codes)))
        for row, cell in enumerate(part.tolist()):
            if cell not in codes:
                row = row if stay is None else int(np.flatnonzero(stay)[row])
                raise InputError(
                    f"source={self.name!r}, {self.place_of(row)}, {self._place(place)}: {shortened(cell)} is a "
                    f"category that the model has not seen, it knows {cut(', '.join(codes), 200)}"
                )
            found[row, codes[cell]] = 1.0
        return found


def shown(title, number):
    """Return what names a column in a shell, in one line: its number where the title cannot be typed, or is long."""
    text = str(number if title is None or not str(title).isprintable() or len(str(title)) > 80 else title)
    return text if re.fullmatch(r"[\w.-]+", text) else shlex.quote(text)


def _as_text(value):
    """Return a number as a category is called: whole ones without a point."""
    return str(int(value)) if isinstance(value, float) and value == int(value or 0) else str(value)


def is_gap(cell):
    """Tell whether a cell stands for a value that is missing."""
    return not cell or cell.lower() in NOTHING


def looks_like(cell):
    """Tell whether a cell looks like a date, or like true or false."""
    return cell.lower() in _TRUTH or _DATE.fullmatch(cell) is not None


def _dates_hint(title, number):
    return f"dates become numbers, days since 1970, where you say so: --dates {shown(title, number)}"


def _days(cell):
    """Return a date of ISO 8601 as days since 1970; without a zone it is taken for UTC."""
    text = re.sub(r"([-+]\d\d)(\d\d)$", r"\1:\2", cell.replace("Z", "+00:00")) if len(cell) > 10 else cell
    text = re.sub(r"\.(\d+)", lambda found: "." + found.group(1).ljust(6, "0"), text)
    when = datetime.fromisoformat(text)
    when = when.replace(tzinfo=timezone.utc) if when.tzinfo is None else when
    return (when - datetime(1970, 1, 1, tzinfo=timezone.utc)).total_seconds() / 86400


def in_blocks(X):
    """Return the rows of a matrix in blocks of some megabytes."""
    rows = max(1, _BLOCK // max(1, X.shape[1]))
    return (X[start : start + rows] for start in range(0, len(X), rows))


def _stacked(blocks):
    """Return matrices side by side; one alone as it is. They are float32 only if all of them are."""
    if len(blocks) == 1:
        return blocks[0]
    narrow = all(block.dtype in (np.float32, np.float16) for block in blocks)
    X = np.empty((len(blocks[0]), sum(block.shape[1] for block in blocks)), np.float32 if narrow else np.float64)
    start = 0
    for block in blocks:
        X[:, start : start + block.shape[1]] = block
        start += block.shape[1]
    return X
