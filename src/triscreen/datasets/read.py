"""Points and comparisons from files, from standard input, or by the name of a data set in scikit-learn.

The kind of a file is seen from its first bytes: npz, npy, parquet, LIBSVM/svmlight, or else a table of text, its
columns separated by tabs, semicolons, commas or blanks. A refusal is one sentence with the line and the column.
"""

from __future__ import annotations

import io
import os
import re
import sys
import zipfile
from collections.abc import Sequence

import numpy as np

from triscreen._utils.archive import read_npy
from triscreen._utils.extras import wanted
from triscreen._utils.validation import shortened
from triscreen.datasets.table import Points, as_table, brief, from_columns, from_parts, is_whole
from triscreen.datasets.text import as_text, delimiter_of, read_text, rows
from triscreen.errors import InputError

EMBEDDED = ("iris", "wine", "digits", "breast_cancer")
# An array of an npz file may unpack to so many bytes, or to so many times the file, whichever is more.
_UNPACKED, _RATIO = 10**9, 100
# Titles of columns of comparisons: a first row of three of these is a header.
_TITLES = {
    "a", "b", "c", "i", "j", "k", "l", "x", "y", "z", "anchor", "query", "reference", "item", "point", "object", "who",
    "this", "positive", "negative", "same", "other", "target", "near", "nearer", "close", "closer", "similar", "far",
    "farther", "further", "than", "different", "dissimilar", "first", "second", "third",
}  # fmt: skip
_NUMBER = rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf)"
_SVMLIGHT = re.compile(rb"\s*(?:" + _NUMBER + rb")(?:\s+qid:\d+)?(?:\s+\d+:(?:" + _NUMBER + rb"))+\s*(?:#.*)?")


def read_points(
    source: str | os.PathLike,
    label: str | int | None = None,
    *,
    labelled: bool = True,
    names: str | int | None = None,
    drop: Sequence[str | int] = (),
    header: bool | None = None,
    features: Sequence[str] | None = None,
    n_features: int | None = None,
) -> Points:
    """Read points, and labels where there are any.

    Parameters
    ----------
    source : str or path
        A file; "-" for standard input; "X.npy,y.npy" for a pair of files; a folder of parts, X-*.npy with y-*.npy; or a
        name: "iris", "wine", "digits" (pixels between 0 and 1), "breast_cancer". An npz file holds X and y (or data and
        target); other arrays are not read, and one that unpacks to more than 1 GB and to more than 100 times the file
        is refused.
    label : str or int, optional
        The column of the labels, by name or by number (counted from 0; -1 is the last one). By default the column that
        is called label, class, target or y, otherwise the last one.
    labelled : bool
        False: without ``label``, no column holds labels.
    names : str or int, optional
        A column with the name of each point, for comparisons by name; it is no feature.
    drop : list of str or int
        Columns to leave out.
    header : bool, optional
        Whether the first row of a text holds names. By default it does where it has text above numbers.
    features : list of str, optional
        The columns wanted, in this order, where the table has names.
    n_features : int, optional
        Of an svmlight file that may not show the last ones.

    Returns
    -------
    Points

    References
    ----------
    docs/cli.md; "iris", "wine", "digits" and "breast_cancer" are those of scikit-learn.

    Examples
    --------
    >>> from triscreen.datasets import read_points
    >>> iris = read_points("iris")
    >>> iris.X.shape, str(iris.y[0])
    ((150, 4), 'setosa')
    """
    name = os.fspath(source)
    if os.path.isdir(name):
        return _read_folder(name, header, {"label": label, "labelled": labelled, "names": names, "drop": drop,
                                           "features": features})  # fmt: skip
    choice = {"label": label, "labelled": labelled, "names": names, "drop": drop, "features": features}
    parts = files_of(name)
    if len(parts) == 1:
        data = _bytes(name)
        kind = _kind(data, name)
        if kind == "text":
            return read_text(data, name, header, choice)
    if header is not None:
        raise InputError(f"header={header}: source={name!r} is no table of text, so it has no header")
    if not parts:
        return _embedded(name, choice)
    if len(parts) == 2:
        return from_parts(*(_read_npy(_bytes(part), part) for part in parts), None, name, choice, None)
    if kind == "svmlight":
        return _read_svmlight(data, name, n_features, choice)
    if kind == "npz":
        return _read_npz(data, name, choice)
    if kind == "npy":
        table = _read_npy(data, name)
        as_table(table, name)
        return from_columns(None, list(table.T), name, choice)
    return _read_parquet(data, name, choice)


def files_of(source: str | os.PathLike) -> list[str]:
    """Return the files that a source is read from: one, two (X.npy,y.npy), or none; "-" is standard input.

    Parameters
    ----------
    source : str or path
        As for `read_points`.

    Returns
    -------
    list of str

    References
    ----------
    docs/cli.md; ours.

    Examples
    --------
    >>> from triscreen.datasets import files_of
    >>> files_of("X.npy,y.npy"), files_of("iris")
    (['X.npy', 'y.npy'], [])
    """
    name = os.fspath(source)
    if os.path.exists(name) or name == "-":
        return [name]
    if name in EMBEDDED:
        return []
    return name.split(",", 1) if name.endswith(".npy") and "," in name else [name]


def read_comparisons(
    source: str | os.PathLike, names: Sequence[str] | None = None, n_points: int | None = None
) -> np.ndarray:
    """Read comparisons "a is closer to b than to c" from a table of three columns.

    The first row is a header where its three cells are words such as a, b, c; anchor, positive, negative; query, near,
    far: anything else would be a comparison lost without a word where names are misspelled.

    Parameters
    ----------
    source : str or path
        A text file, or "-".
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
    text = as_text(_bytes(source), source)
    numbers = None
    if names is not None:
        numbers = {str(name): number for number, name in enumerate(names)}
        if len(numbers) < len(names):
            seen = set()
            twice = next(name for name in names if name in seen or seen.add(name))
            raise InputError(f"names has {twice!r} twice: every point needs a name of its own")
    found = []
    for place, (line, cells) in enumerate(rows(text, delimiter_of(text, source), source)):
        if len(cells) != 3:
            raise InputError(
                f"source={source!r}, line {line}: it has {len(cells)} columns, a comparison has three (a is closer to "
                "b than to c)"
            )
        cells = [cell.strip() for cell in cells]
        strange = [cell for cell in cells if not (is_whole(cell) if numbers is None else cell in numbers)]
        if place == 0 and len(strange) == 3 and all(cell.lower() in _TITLES for cell in cells):
            continue
        if strange:
            what = "the name of a point" if numbers is not None else "a whole number (for names, say in which column)"
            hint = "" if place or len(strange) < 3 else "; a header has titles such as a, b, c or anchor, near, far"
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


def _bytes(name):
    if name == "-":
        data = sys.stdin.buffer.read()
    else:
        if not os.path.isfile(name):
            what = "is a folder or a device" if os.path.exists(name) else "does not exist"
            raise InputError(
                f"source={name!r} {what}: it must be a file, - for standard input, or one of {', '.join(EMBEDDED)}"
            )
        try:
            with open(name, "rb") as stream:
                data = stream.read()
        except OSError as err:
            raise InputError(f"source={name!r} cannot be read: {err.strerror}") from err
    if not data.strip():
        raise InputError(f"source={name!r} is empty: a table of points is needed")
    return data


def _kind(data, name):
    for kind, begin in (("npz", b"PK\x03\x04"), ("npy", b"\x93NUMPY"), ("parquet", b"PAR1")):
        if data.startswith(begin):
            return kind
    if b"\0" in data[:4096]:
        raise InputError(f"source={name!r} is a binary file of a kind unknown here: give text, npz, npy or parquet")
    lines = (line for line in data[:100_000].splitlines() if line.strip() and not line.lstrip().startswith(b"#"))
    if _SVMLIGHT.fullmatch(next(lines, b"")) or name.endswith((".svm", ".libsvm", ".svmlight")):
        return "svmlight"
    return "text"


def _embedded(name, choice):
    from sklearn import datasets

    found = getattr(datasets, f"load_{name}")()
    X, y = (found.data / 16, found.target) if name == "digits" else (found.data, found.target_names[found.target])
    return from_parts(X, y, [str(feature) for feature in found.feature_names], name, choice, "target")


def _read_npy(data, name):
    try:
        return read_npy(io.BytesIO(data), len(data))
    except Exception as err:  # damaged bytes lead numpy to errors of many classes
        raise InputError(f"source={name!r} is no npy file that can be read ({brief(err)})") from None


def _read_folder(name, header, choice):
    """Return the points of X-*.npy with y-*.npy, in the order of names."""
    files = sorted(file for file in os.listdir(name) if re.fullmatch(r"X-.*\.npy", file))
    if not files or header is not None:
        raise InputError(f"source={name!r} is a folder: it must hold parts X-*.npy with y-*.npy, which have no header")
    paths = [os.path.join(name, file) for file in files]
    X = [_read_npy(_bytes(path), path) for path in paths]
    wrong = next((path for path, part in zip(paths, X, strict=True) if part.shape[1:] != X[0].shape[1:]), None)
    if wrong is not None:
        raise InputError(f"source={wrong!r} has other features than {paths[0]!r}")
    y = None
    if choice["labelled"]:
        labels = [os.path.join(name, "y" + file[1:]) for file in files]
        y = np.concatenate([np.atleast_1d(_read_npy(_bytes(path), path)) for path in labels])
    return from_parts(np.concatenate(X), y, None, name, choice, None)


def _read_npz(data, name, choice):
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            most = max(_UNPACKED, _RATIO * len(data))
            X = _array(archive, most, "X", "data")
            y = _array(archive, most - (0 if X is None else 8 * X.size), "y", "target")
            features = _array(archive, most, "feature_names")
    except Exception as err:
        raise InputError(f"source={name!r} is no npz file that can be read ({brief(err)})") from None
    features = None if features is None else features.ravel().tolist()
    if X is None:
        raise InputError(f"source={name!r} lacks the array X: an npz file needs X and y")
    return from_parts(X, y, features, name, choice, "y")


def _array(archive, most, *names):
    """Return the first array of these names, or None; refuse one that is not what its size says, or takes too much."""
    members = {member.filename: member for member in archive.infolist()}
    name = next((f"{name}.npy" for name in names if f"{name}.npy" in members), None)
    if name is None:
        return None
    if members[name].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name} is compressed otherwise than numpy does")
    with archive.open(name) as member:
        try:
            return read_npy(member, members[name].file_size, most)
        except ValueError as err:
            raise ValueError(f"{name}: {err}") from None


def _read_svmlight(data, name, n_features, choice):
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(io.BytesIO(data))
    except Exception as err:
        for number, line in enumerate(data.splitlines(), 1):
            if line.split(b"#")[0].strip() and not _SVMLIGHT.fullmatch(line):
                raise InputError(
                    f"source={name!r}, line {number}: {shortened(line.decode(errors='replace'))} is not "
                    "'label index:value ...' with rising indices"
                ) from None
        raise InputError(f"source={name!r} is no svmlight file that can be read ({brief(err)})") from None
    if n_features is not None and X.shape[1] < n_features:
        X.resize(X.shape[0], n_features)
    needed, most = 8 * X.shape[0] * X.shape[1], max(_UNPACKED, _RATIO * len(data))
    if needed > most:
        raise InputError(
            f"source={name!r} has {X.shape[0]:,} points of {X.shape[1]:,} features: as an array that takes {needed:,} "
            f"bytes, and at most {most:,} are taken; reduce it first (sklearn.decomposition.TruncatedSVD)"
        )
    return from_parts(X.toarray(), y, None, name, choice, None)


def _read_parquet(data, name, choice):
    parquet = wanted("pyarrow.parquet", "parquet files", "parquet")
    try:
        table = parquet.read_table(io.BytesIO(data))
    except Exception as err:
        raise InputError(f"source={name!r} is no parquet file that can be read ({brief(err)})") from None
    columns = []
    for title, column in zip(table.column_names, table.columns, strict=True):
        if column.null_count:
            row = column.is_null().to_pylist().index(True)
            raise InputError(f"source={name!r}, row {row}, column {title!r}: the value is missing")
        columns.append(column.to_numpy())
    return from_columns(table.column_names, columns, name, choice)
