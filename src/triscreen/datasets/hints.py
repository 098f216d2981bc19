"""What a table of texts needs before it is features, in options of the command line: all of it at once."""

from __future__ import annotations

import re

_FEW = 50  # values of a column that is taken for a category


def needed(columns, wanted, is_gap, looks):
    """Return the options that columns seem to need beside those that were given, as they are typed, in one text.

    Parameters
    ----------
    columns : list of (name, values, whether something was said of it)
    wanted : Wanted
    is_gap : callable
        Does a cell lack a value?
    looks : tuple of callables
        Is a cell a number with a point, true or false, a date?
    """
    found, gaps, commas = [], False, False
    is_number, is_truth, is_date = looks
    for name, values, said in columns:
        if values.dtype.kind not in "OU" or values.ndim > 1:
            gaps |= bool(values.ndim == 1 and (values != values).any())
            continue
        cells = list(dict.fromkeys(values.tolist()))
        full = [cell for cell in cells if not is_gap(cell)]
        gaps |= len(full) < len(cells)
        comma = [cell for cell in full if re.fullmatch(r"-?\d+,\d+", cell)]
        commas |= bool(comma)
        if said or all(is_number(cell) or cell in comma for cell in full) or all(map(is_truth, full)):
            continue
        if all(map(is_date, full)):
            found.append(f"--dates {name}")
        else:
            found.append(f"--{'categories' if len(full) <= _FEW and len(full) < len(values) else 'drop'} {name}")
    first = ["--decimal ,"] if commas and wanted.decimal == "." else []
    last = ["--missing median"] if gaps and wanted.policy == "error" else []
    return " ".join(first + found + last)
