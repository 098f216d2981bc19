"""From what a user has to files that workers can read: arrays, a folder of parts, a dask array or dataframe."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import weakref
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from triscreen._utils.validation import as_labels, as_numbers, as_points, shortened
from triscreen.distributed.store import keep, mapped
from triscreen.errors import ClusterError, InputError, OutOfTime


@dataclass(frozen=True, eq=False)
class Source:
    """Points in files, with their labels if there are any.

    Attributes
    ----------
    folder : Path
        Where what is made on the way goes to; every worker can read it.
    files : list of (str, int)
        As for `Parts`.
    dim : int
    codes, classes : arrays or None
    """

    folder: Path
    files: list
    dim: int
    codes: np.ndarray | None
    classes: np.ndarray | None

    def __len__(self):
        return sum(rows for _, rows in self.files)


def open_source(X, y, folder, needs_labels=True, pool=None):
    """Return the `Source` of what a user passes as X and y, and what must be kept alive as long as it (or None).

    pool: who computes what dask has; arrays and files need nobody.
    """
    if isinstance(X, str | Path):
        if not Path(X).is_dir():
            raise InputError(f"X={str(X)!r}: there is no such folder")
        folder = _made(Path(X) / "triscreen" if folder is None else folder)
        files, labels = _parts(Path(X), y, folder, needs_labels)
        return _source(folder, files, labels, needs_labels), None
    temporary = None
    if folder is None:
        temporary = Temporary()
        folder = temporary.name
    folder = _made(folder)
    if hasattr(X, "__dask_graph__"):
        files, labels = _of_dask(X, y, folder, needs_labels, pool)
        return _source(folder, files, labels, needs_labels), temporary
    X = as_points(X, narrow=True)
    if needs_labels:
        as_labels(y, len(X))
    return _source(folder, [_written(folder, "X", X)], y, needs_labels), temporary


class Temporary:
    """A folder that goes when nobody has this object any more; in Dask's ``temporary-directory`` where that is set."""

    def __init__(self):
        dask = sys.modules.get("dask")
        place = None if dask is None else dask.config.get("temporary-directory", None)
        self.name = tempfile.mkdtemp(prefix="triscreen-", dir=place)
        weakref.finalize(self, shutil.rmtree, self.name, ignore_errors=True)


def _source(folder, files, labels, needs_labels):
    shapes = [mapped(file).shape for file, _ in files]
    wrong = next((i for i, shape in enumerate(shapes) if len(shape) != 2 or shape[1] != shapes[0][1]), None)
    if wrong is not None:
        raise InputError(
            f"{files[wrong][0]!r} has shape {shapes[wrong]}: every part must have shape (n, d), the first has "
            f"{shapes[0]}"
        )
    n = sum(rows for _, rows in files)
    codes, classes = as_labels(labels, n) if needs_labels else (None, None)
    return Source(Path(folder).resolve(), files, shapes[0][1], codes, classes)


def _made(folder):
    if not isinstance(folder, str | Path):
        raise InputError(f"folder={shortened(folder)}: folder must be a path that this process can write to")
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise InputError(f"folder={str(folder)!r}: it cannot be made ({err.strerror}); pass another folder") from None
    return Path(folder).resolve()


def _written(folder, name, array):
    """Write an array as a part, unless it is there; return (file, rows)."""
    return str(Path(folder) / keep(folder, name, array)), len(array)


# -- a folder of parts -------------------------------------------------------------------------------------------------


def _parts(folder, y, made, needs_labels):
    """Return (files, labels) of X-*.npy with y-*.npy, or of parquet files with a column of labels."""
    points, tables = sorted(folder.glob("X-*.npy")), sorted(folder.glob("*.parquet"))
    if bool(points) == bool(tables):
        raise InputError(f"X={str(folder)!r}: the folder must hold parts X-*.npy with y-*.npy, or *.parquet")
    if tables:
        return _of_tables(tables, y, made, needs_labels)
    files = [(str(file.resolve()), len(mapped(file))) for file in points]
    if y is not None or not needs_labels:
        return files, y
    labels = []
    for file, rows in files:
        other = Path(file).with_name(re.sub("^X-", "y-", Path(file).name))
        found = mapped(other)
        if found.shape != (rows,):
            raise InputError(f"{str(other)!r} has shape {found.shape}: {Path(file).name} has {rows} points")
        labels.append(np.asarray(found))
    return files, np.concatenate(labels)


def _of_tables(tables, label, made, needs_labels):
    import pyarrow.parquet as parquet

    if needs_labels and not isinstance(label, str):
        raise InputError(
            f"y={shortened(label)}: of a folder of parquet files y must be the name of the column of labels"
        )
    files, labels = [], []
    for file in tables:
        frame = parquet.read_table(file).to_pandas()
        if needs_labels and label not in frame:
            raise InputError(f"y={label!r}: {file.name} has no such column, it has {shortened(list(frame))}")
        points, own = _columns(frame, label if needs_labels else None)
        files.append(_written(made, file.stem, as_numbers(points, file.name, narrow=True)))
        labels.append(own)
    return files, np.concatenate(labels) if needs_labels else None


def _columns(frame, label):
    """Return (points, labels or None) of a table."""
    if label is None:
        return frame.to_numpy(), None
    return frame.drop(columns=label).to_numpy(), frame[label].to_numpy()


# -- a dask array or dataframe -----------------------------------------------------------------------------------------


def _of_dask(X, y, folder, needs_labels, pool):
    """Write the blocks of rows one after the other."""
    table, files, labels = hasattr(X, "columns"), [], []
    if table and needs_labels and not (isinstance(y, str) and y in X.columns):
        raise InputError(f"y={shortened(y)}: of a dask dataframe y must be the name of the column of labels")
    if not table and (X.ndim != 2 or X.numblocks[1] != 1):
        raise InputError(f"X has blocks {X.numblocks}: a dask array must have whole rows, X.rechunk({{1: -1}})")
    for number, block in enumerate(np.ravel(X.to_delayed())):
        points, own = _computed(block, pool, f"block {number} of X"), None
        if table:
            points, own = _columns(points, y if needs_labels else None)
        if len(points):
            files.append(_written(folder, f"X-{number:06d}", as_numbers(points, "X", narrow=True)))
            labels.append(own)
    if table and needs_labels:
        return files, np.concatenate(labels)
    return files, _computed(y, pool, "y") if hasattr(y, "__dask_graph__") else y


def _computed(collection, pool, what):
    try:
        return pool.computed(collection)
    except (ClusterError, OutOfTime):
        raise
    except Exception as err:
        why = " ".join(str(err).split()) or type(err).__name__
        raise ClusterError(f"{what} cannot be had of dask: {why:.300}") from err
