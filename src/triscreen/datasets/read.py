"""Points and comparisons from files, from standard input, or by the name of a data set in scikit-learn.

The kind of a file is seen from its first bytes: npz, npy, parquet, LIBSVM/svmlight, or else a table of text, its
columns separated by tabs, semicolons, commas or blanks. A refusal is one sentence with the line and the column.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from triscreen._utils.archive import map_npy, read_npy
from triscreen._utils.extras import wanted
from triscreen._utils.validation import shortened
from triscreen.datasets.features import Preparation, Wanted
from triscreen.datasets.points import Points, as_table, from_columns, from_parts
from triscreen.datasets.table import brief
from triscreen.datasets.text import as_text, read_text
from triscreen.errors import InputError

EMBEDDED = ("iris", "wine", "digits", "breast_cancer")
# An array of an npz file may unpack to so many bytes, or to so many times the file, whichever is more.
_UNPACKED, _RATIO = 10**9, 100
_NUMBER = rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf)"
_SVMLIGHT = re.compile(rb"\s*(?:" + _NUMBER + rb")(?:\s+qid:\d+)?(?:\s+\d+:(?:" + _NUMBER + rb"))+\s*(?:#.*)?")


def read_points(
    source: str | os.PathLike[str],
    label: str | int | None = None,
    *,
    labelled: bool = True,
    names: str | int | None = None,
    drop: Sequence[str | int] = (),
    header: bool | None = None,
    features: Sequence[str] | None = None,
    n_features: int | None = None,
    missing: str | None = None,
    categories: Sequence[str | int] = (),
    dates: Sequence[str | int] = (),
    decimal: str = ".",
    keep: Sequence[str | int] = (),
    known: Preparation | None = None,
) -> Points:
    """Read points, and labels where there are any.

    Parameters
    ----------
    source : str or path
        A file; "-" for standard input; "X.npy,y.npy" for a pair of files; a folder of parts, X-*.npy with y-*.npy, or
        *.parquet; or a name: "iris", "wine", "digits" (pixels between 0 and 1), "breast_cancer". An npz file holds X
        and y (or data and target); other arrays are not read, and one that unpacks to more than 1 GB and to more than
        100 times the file is refused.
    label : str or int, optional
        The column of the labels, by name or by number (counted from 0; -1 is the last one). By default the column that
        is called label, class, target or y, otherwise the last one.
    labelled : bool
        False: without ``label``, no column holds labels.
    names : str or int, optional
        A column with the name of each point, for comparisons by name; it is no feature. Or a file with the names, one a
        line (or an npy file of texts or whole numbers), in the order of the points.
    drop : list of str or int
        Columns to leave out.
    header : bool, optional
        Whether the first row of a text holds names. By default it does where it has text above numbers.
    features : list of str, optional
        The columns wanted, in this order, where the table has names.
    n_features : int, optional
        Of an svmlight file that may not show the last ones.
    missing : {"error", "drop", "median"}, optional
        What to do about missing values: refuse them (the default), leave their rows out, or fill in the median of the
        column (of categories and of true or false: the most frequent value).
    categories, dates : lists of str or int
        Columns of categories, each of whose values becomes a feature of 0 or 1; and of dates (ISO 8601), which become
        days since 1970. ["all"]: all that are neither numbers nor true or false; all that look like dates.
    decimal : {".", ","}
        The sign before the fraction of a number in a text.
    keep : list of str or int
        Columns that are carried along and are no features (unless ``features`` has them, too).
    known : Preparation, optional
        Of other points (``points.preparation``): these become features in the same way.

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
    if names is not None and os.path.isfile(str(names)):
        points = read_points(
            source, label, labelled=labelled, drop=drop, header=header, features=features, n_features=n_features,
            missing=missing, categories=categories, dates=dates, decimal=decimal, keep=keep, known=known,
        )  # fmt: skip
        found = _ids(str(names), points.n_rows, points.name)
        here = found if points.rows is None else [found[row] for row in points.rows]
        return replace(points, row_names=here, source_names=found)
    name = os.fspath(source)
    wanted = Wanted(missing, tuple(categories), tuple(dates), known, decimal)
    choice = {"label": label, "labelled": labelled, "names": names, "drop": drop, "features": features, "keep": keep}
    if os.path.isdir(name):
        return _read_folder(name, header, choice, wanted)
    parts = files_of(name)
    kind = None
    if len(parts) == 1:
        data = _mapped(name)
        kind = "npy" if data is not None else None
        if kind is None:
            data = bytes_of(name)
            kind = _kind(data, name)
        if kind == "text":
            return read_text(data, name, header, choice, wanted)
    if header is not None:
        raise InputError(f"header={header}: source={name!r} is no table of text, so it has no header")
    if decimal != ".":
        raise InputError(f"decimal={decimal!r}: source={name!r} is no table of text, its numbers have no such sign")
    if not parts:
        return _embedded(name, choice, wanted)
    if len(parts) == 2:
        return from_parts(*map(_array_of, parts), None, name, choice, wanted, None)
    if kind == "svmlight":
        return _read_svmlight(data, name, n_features, choice, wanted)
    if kind == "npz":
        return _read_npz(data, name, choice, wanted)
    if kind == "npy":
        table = data if isinstance(data, np.ndarray) else _read_npy(data, name)
        as_table(table, name)
        return from_columns(None, table, name, choice, wanted)
    return _of_table(_table(data, name), name, choice, wanted)


def files_of(source: str | os.PathLike[str]) -> list[str]:
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


def _ids(file, n_rows, name):
    """Return the names in a file, one for each row of a source."""
    mapped = _mapped(file)
    if mapped is not None:
        if mapped.ndim != 1 or mapped.dtype.kind not in "iuU":
            raise InputError(
                f"names={file!r} holds an array of shape {mapped.shape} and type {mapped.dtype}: texts or whole "
                "numbers, one a row, are needed"
            )
        found = [str(item) for item in mapped.tolist()]
    else:
        found = [line.strip().strip('"') for line in as_text(bytes_of(file), file).splitlines() if line.strip()]
        if len(found) == n_rows + 1 and re.search(r"(?i)^(?:.*[\W_])?(?:id|ids|name|names)$", found[0]):
            found = found[1:]  # a title
    if len(found) != n_rows:
        raise InputError(f"names={file!r} has {len(found):,} names: source={name!r} has {n_rows:,} rows, one each")
    return found


def bytes_of(name):
    """Return what a file or standard input holds, unpacked where it is gz, or refuse it in a sentence."""
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
    if data.startswith(b"\x1f\x8b"):
        data = _unpacked(data, name)
    if not data.strip():
        raise InputError(f"source={name!r} is empty: a table of points is needed")
    return data


def _unpacked(data, name):
    """Return what gzip has packed, or refuse what is damaged or far larger than it looks."""
    most = max(_UNPACKED, _RATIO * len(data))
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            found = stream.read(most + 1)
    except (OSError, EOFError, zlib.error) as err:
        raise InputError(f"source={name!r} is no gz file that can be read ({brief(err)})") from None
    if len(found) > most:
        raise InputError(f"source={name!r} unpacks to more than {most:,} bytes: unpack it first")
    return found


def _mapped(name):
    """Return an npy file as an array that stays on the disk, or None where it is something else."""
    if not os.path.isfile(name):
        return None
    try:
        with open(name, "rb") as stream:
            if stream.read(6) != b"\x93NUMPY":
                return None
            stream.seek(0)
            return map_npy(stream, os.path.getsize(name))
    except OSError as err:
        raise InputError(f"source={name!r} cannot be read: {err.strerror}") from err
    except Exception as err:  # damaged bytes lead numpy to errors of many classes
        raise InputError(f"source={name!r} is no npy file that can be read ({brief(err)})") from None


def _array_of(name):
    """Return the array of an npy file, from the disk where that is possible."""
    found = _mapped(name)
    return _read_npy(bytes_of(name), name) if found is None else found


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


def _embedded(name, choice, wanted):
    from sklearn import datasets

    found = getattr(datasets, f"load_{name}")()
    X, y = (found.data / 16, found.target) if name == "digits" else (found.data, found.target_names[found.target])
    return from_parts(X, y, [str(feature) for feature in found.feature_names], name, choice, wanted, "target")


def _read_npy(data, name):
    try:
        return read_npy(io.BytesIO(data), len(data))
    except Exception as err:  # damaged bytes lead numpy to errors of many classes
        raise InputError(f"source={name!r} is no npy file that can be read ({brief(err)})") from None


def _read_folder(name, header, choice, wanted):
    """Return the points of X-*.npy with y-*.npy, or of *.parquet, in the order of names."""
    files = sorted(file for file in os.listdir(name) if re.fullmatch(r"X-.*\.npy", file))
    tables = sorted(file for file in os.listdir(name) if file.endswith(".parquet"))
    if bool(files) == bool(tables) or header is not None:
        raise InputError(
            f"source={name!r} is a folder: it must hold parts X-*.npy with y-*.npy, or *.parquet, which have no header"
        )
    if tables:
        return _of_table(_joined([os.path.join(name, file) for file in tables]), name, choice, wanted)
    paths = [os.path.join(name, file) for file in files]
    X = [_array_of(path) for path in paths]
    wrong = next((path for path, part in zip(paths, X, strict=True) if part.shape[1:] != X[0].shape[1:]), None)
    if wrong is not None:
        raise InputError(f"source={wrong!r} has other features than {paths[0]!r}")
    y = None
    if choice["labelled"]:
        labels = [os.path.join(name, "y" + file[1:]) for file in files]
        y = np.concatenate([np.atleast_1d(_array_of(path)) for path in labels])
    return from_parts(np.concatenate(X), y, None, name, choice, wanted, None)


def _read_npz(data, name, choice, wanted):
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
    return from_parts(X, y, features, name, choice, wanted, "y")


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


def _read_svmlight(data, name, n_features, choice, wanted):
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
    return from_parts(X.toarray(), y, None, name, choice, wanted, None)


def _table(data, name):
    parquet = wanted("pyarrow.parquet", "parquet files", "parquet")
    try:
        table = parquet.read_table(io.BytesIO(data))
        table.validate(full=True)  # texts, offsets and categories, which are looked at when they are asked for
        _ = table.column_names
    except Exception as err:
        raise _unreadable(name, err) from None
    return table


def _joined(files):
    """Return the tables of several parquet files, one below the other."""
    tables = [_table(bytes_of(file), file) for file in files]
    names = tables[0].column_names
    for file, table in zip(files, tables, strict=True):
        if table.column_names != names:
            raise InputError(f"source={file!r} has other columns than {files[0]!r}")
    import pyarrow as pa

    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except Exception as err:
        raise InputError(f"source={files[0]!r} and others have columns of other types ({brief(err)})") from None


def _of_table(table, name, choice, wanted_columns):
    """Return the points of a parquet table."""
    titles = table.column_names
    try:
        columns = [_as_array(title, table.column(number), name) for number, title in enumerate(titles)]
    except InputError:
        raise
    except Exception as err:
        raise _unreadable(name, err) from None
    return from_columns(titles, columns, name, choice, wanted_columns)


def _unreadable(name, err):
    return InputError(f"source={name!r} is no parquet file that can be read ({brief(err)})")


def _as_array(title, column, name):
    """Return a column of a parquet file: numbers (NaN: missing), dates, texts ("": missing), or (n, m) of vectors."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):  # pandas' categories
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _vectors(title, column, name)
    if pa.types.is_boolean(kind):
        words = {True: "true", False: "false", None: ""}
        return np.array([words[value] for value in column.to_pylist()], dtype=object)
    if pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return column.to_numpy()  # integers of which some are missing become float64
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return column.to_numpy().astype("datetime64[us]")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return np.array(["" if value is None else value.strip() for value in column.to_pylist()], dtype=object)
    return column.to_numpy()


def _vectors(title, column, name):
    """Return a column of lists as a matrix; one that is missing is NaN."""
    import pyarrow as pa

    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    given = ~np.asarray(column.is_null())
    lists = column.drop_null()
    lengths = {len(lists[0])} if pa.types.is_fixed_size_list(column.type) and len(lists) else None
    if lengths is None:
        lengths = set(np.unique(lists.value_lengths().to_numpy(zero_copy_only=False)).tolist())
    values = lists.flatten().to_numpy(zero_copy_only=False)
    if len(lengths) != 1 or 0 in lengths or values.dtype.kind not in "biuf":
        told = f"lists of {', '.join(map(str, sorted(lengths)[:5]))} items" if lengths else "no lists"
        raise InputError(
            f"source={name!r}, column {title!r} holds {told} of {values.dtype}: a column of vectors has lists of one "
            "length, of numbers"
        )
    found = values.reshape(-1, lengths.pop())
    if given.all():
        return found
    narrow = np.float32 if np.can_cast(found.dtype, np.float32) else np.float64
    whole = np.full((len(given), found.shape[1]), np.nan, narrow)
    whole[given] = found
    return whole
