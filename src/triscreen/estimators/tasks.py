"""Starts of a cross-validation in its folds, as tasks on the workers of a cluster.

A task is a function of files (points, labels, folds), options and numbers, so any worker can do it, again if need be;
none of them writes anything. What has come back is kept in the folder of the checkpoint, if there is one, under a name
that says what it is the answer to.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from pathlib import Path

import numpy as np

from triscreen._utils.archive import as_path, fingerprint, replacing
from triscreen._utils.progress import stage
from triscreen._utils.threads import single_threaded_blas
from triscreen.distributed.source import Temporary
from triscreen.distributed.store import keep, mapped
from triscreen.errors import InputError
from triscreen.estimators.cluster import client_of
from triscreen.estimators.graphs import neighbours_of_parts
from triscreen.estimators.trying import Tried
from triscreen.triplets.graph import Given, Lists

# What does not concern a fold, or is a worker's own.
_NOT_OF_A_FOLD = ("candidates", "cv", "n_jobs", "max_seconds", "scheduler", "checkpoint", "callback", "verbose",
                  "preprocessor")  # fmt: skip
_PAIR_BYTES, _COPIES = 120, 6  # of a fold at work: for each pair, and copies of its points


@dataclass(frozen=True)
class Data:
    """Where the data are: a few bytes, which go with every task.

    Attributes
    ----------
    folder : str
    files : tuple of (str, str)
        Names, and files in the folder: X, y, weights, and the lists of given neighbours.
    folds : tuple of (str, str)
        Files of the rows to learn from and of those held out.
    """

    folder: str
    files: tuple
    folds: tuple

    @classmethod
    def written(cls, folder, X, y, weights, given, folds):
        """Write the data."""
        arrays = {"X": X, "y": np.array(y.tolist()) if y.dtype == object else y, "weights": weights}
        if given is not None:
            parts = {"same": given.same, "other": given.other}
            arrays |= {f"{name}_{one}": getattr(parts[name], one) for name in parts for one in Lists._fields}
        files = tuple((name, keep(folder, name, array)) for name, array in arrays.items() if array is not None)
        return cls(str(folder), files, tuple((keep(folder, "train", a), keep(folder, "test", b)) for a, b in folds))

    def array(self, name):
        """Return an array; None where there is none."""
        file = dict(self.files).get(name)
        return None if file is None else np.array(mapped(Path(self.folder) / file))

    def fold(self, k):
        """Return (rows to learn from, rows held out)."""
        return tuple(np.array(mapped(Path(self.folder) / file)) for file in self.folds[k])

    def given(self):
        """Return the neighbours that the fit was given, or None."""
        if self.array("same_ptr") is None:
            return None
        return Given(*(Lists(*(self.array(f"{name}_{one}") for one in Lists._fields)) for name in ("same", "other")))


_read_before, _reading = {}, threading.Lock()  # what was read last, of one cross-validation: a cache of a worker's own


def _read(data, triplets, n_neighbors, n_jobs):
    """Return (X, y, weights, given neighbours, the search for those of the folds): the tasks of a worker share them."""
    key = data, triplets, n_neighbors
    with _reading:
        if key not in _read_before:
            X, y, weights, given = data.array("X"), data.array("y"), data.array("weights"), data.given()
            parts = [data.fold(k) for k in range(len(data.folds))]
            asking = _Asking(triplets, n_neighbors, n_jobs)
            near = neighbours_of_parts(asking, X, y, given, [*parts, (np.arange(len(X)), None)])
            _read_before.clear()
            _read_before[key] = X, y, weights, given, near
        return _read_before[key]


def forget(data):
    """Drop what a process has read of a cross-validation that is over."""
    for key in tuple(_read_before):
        if key[0] == data:
            _read_before.pop(key, None)


@dataclass(frozen=True)
class _Asking:
    """What a search for neighbours has to know of a metric."""

    triplets: str
    n_neighbors: int
    n_jobs: int


@single_threaded_blas()
def try_start(data, kind, options, candidate, k, seconds, n_jobs=1):
    """Return the `Tried` of one start in one fold, or the text of why the fold was refused (a task).

    kind: the class of the metric.
    """
    metric = kind(**options, n_jobs=n_jobs, max_seconds=seconds)
    metric._begin()
    metric._so_far = None
    X, y, weights, metric._given, near = _read(data, metric.triplets, metric.n_neighbors, n_jobs)
    metric._near = near
    begin = time.perf_counter()
    try:
        return metric._try_one(
            candidate, k, len(data.folds), data.fold(k), X, y, weights, begin, 1, lambda state: False
        )
    except InputError as error:
        return str(error)


@contextmanager
def crew_of(metric, X, y, weights, folds):
    """Give who tries starts in folds on the cluster of a metric's scheduler; None: nobody else does."""
    if metric.scheduler is None:
        yield None
        return
    from triscreen.distributed.pool import Cluster

    with client_of(metric.scheduler) as client:
        home = Temporary()
        pool = Cluster(client)
        pool.check(home.name)
        pairs = 0 if metric.triplets == "all" else 2 * metric.n_neighbors * len(X)
        nothing_kept = [0.0] * (len(folds) * len(metric.candidates))
        pool.check_memory("folds", nothing_kept, 8.0 * _COPIES * X.size + _PAIR_BYTES * pairs)
        data = Data.written(home.name, X, y, weights, metric._given, folds)
        try:
            yield FoldCrew(pool, data, home)
        finally:
            pool.close(pool.crew.run(forget, data))


@dataclass(eq=False)
class FoldCrew:
    """Tries starts in folds on a cluster."""

    pool: object
    data: Data
    home: Temporary = field(repr=False)

    def ask(self, metric, wanted, n_folds, begin):
        """Yield the `Tried` of every (candidate, fold), in their order."""
        options = {name: value for name, value in metric.get_params(deep=False).items() if name not in _NOT_OF_A_FOLD}
        places = [None if metric.checkpoint is None else self._file(metric, options, *one) for one in wanted]
        found = [None if file is None else _kept(file) for file in places]
        todo = [i for i, tried in enumerate(found) if tried is None]
        seconds = self._seconds(metric, wanted, n_folds, begin)
        jobs = [(self.data, type(metric), options, _bare(wanted[i][0]), wanted[i][1], seconds) for i in todo]

        def arrived(number, tried):
            i = todo[number]
            found[i] = tried
            if places[i] is not None and isinstance(tried, Tried) and not tried.cut:
                _keep(places[i], tried)
            stage(f"{sum(one is not None for one in found)} of {len(wanted)} tasks of folds")

        stage(f"{len(wanted) - len(todo)} of {len(wanted)} tasks of folds")
        self.pool.map("fold", try_start, jobs, arrived=arrived, long=True)
        for tried in found:
            if isinstance(tried, str):
                raise InputError(tried)
            yield tried

    def _seconds(self, metric, wanted, n_folds, begin):
        """Return the seconds of a task: an even share of those that are left, the fit on all points has one too."""
        left = metric._arguments(begin)["max_seconds"]
        if left is None:
            return None
        later = n_folds - 1 - max(k for _, k in wanted)
        tasks = len(wanted) * (1 + later / len({k for _, k in wanted}))
        return left / (1 + -(-tasks // self.pool.room))

    def _file(self, metric, options, candidate, k):
        """Return where the answer to a task is kept."""
        prior = None if candidate is None else candidate.prior
        if not (prior is None or isinstance(prior, str)):
            matrix = getattr(getattr(prior, "estimator", prior), "get_mahalanobis_matrix", lambda: prior)()
            prior = fingerprint(np.asarray(matrix, dtype=float))
        before = ()
        if candidate is not None:
            before = *candidate.before, bool(candidate.dropped), candidate.until, *candidate.ratios.tolist()
        version = import_module("triscreen").__version__
        said = repr(
            (
                version,
                type(metric).__name__,
                self.data.files,
                self.data.folds[k],
                sorted(options.items()),
                candidate is None,
                prior,
            )
        )
        said += repr((before, k))
        name = hashlib.blake2b(said.encode(), digest_size=16).hexdigest()
        return as_path(metric.checkpoint, "checkpoint") / f"tried-{name}.json"


def _bare(candidate):
    """Return a candidate without what other folds have said."""
    if candidate is None:
        return None
    nothing = np.zeros((0, 2))
    return replace(candidate, alone=nothing, scores=nothing, seconds=0.0, cut=0)


def _keep(file, tried):
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as stream:
        stream.write(json.dumps(asdict(tried)).encode())


def _kept(file):
    """Return what was found before; None: nothing was."""
    try:
        said = json.loads(file.read_bytes())
        scores = None if said["scores"] is None else [tuple(map(float, one)) for one in said["scores"]]
        return Tried(tuple(map(float, said["alone"])), scores, False, float(said["seconds"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as err:
        raise InputError(f"checkpoint: {str(file)!r} is damaged ({type(err).__name__}); delete it") from None
