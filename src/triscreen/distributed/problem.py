"""One verb: from a cluster and data that its workers can read to a problem that everything else takes as it is."""

from __future__ import annotations

import logging
import math
import os
import weakref
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from triscreen._utils.archive import fingerprint
from triscreen._utils.threads import Threads, chunk_bounds, single_threaded_blas
from triscreen._utils.validation import as_choice, as_count, as_positive, as_weights, shortened
from triscreen.distributed.frame import check_unchanged, look_at, make_frame
from triscreen.distributed.here import Here
from triscreen.distributed.neighbours import nearest_on, size_of
from triscreen.distributed.order import near_to_each_other
from triscreen.distributed.plan import LIST_AT_MOST, make_plan, needed
from triscreen.distributed.shards import MAKING, POINT, perform
from triscreen.distributed.source import open_source
from triscreen.distributed.store import keep
from triscreen.distributed.triplets import ShardedTriplets
from triscreen.errors import InputError
from triscreen.problem.cones import make_cone
from triscreen.problem.engine import Engine
from triscreen.problem.losses import SmoothedHinge, check_loss
from triscreen.problem.prior import check_prior, is_apart, make_prior
from triscreen.problem.problem import LARGEST_GAMMA, Problem
from triscreen.problem.units import METRIC
from triscreen.triplets.given import as_rows, given_triplets
from triscreen.triplets.knn import name_small_classes
from triscreen.triplets.labelled import KINDS

_log = logging.getLogger(__name__)
# Pairs of a shard, about: few enough for several shards a worker, so many that a round trip is nothing beside a pass.
_PAIRS, _MOST = 1 << 20, 256
# Bytes of a shard for each of its pairs, and as many while it works; copies of its points that are kept, with what is
# left of it after steps, and more of them while it works; blocks of all pairs.
_PAIR_BYTES, _KEPT, _COPIES, _BLOCK_BYTES = 60, 3, 3, 1 << 27
_LISTED = 200  # bytes of a pair of all, where these are few enough to be listed


class ShardedProblem(Problem):
    """A `Problem` whose triplets live in shards; made by `triscreen.distributed.problem`.

    Attributes
    ----------
    n_shards : int
    folder : Path
        Where its files are.

    References
    ----------
    docs/distributed.md; ours.

    Examples
    --------
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_iris
    >>> problem = ts.distributed.problem(None, *load_iris(return_X_y=True), n_shards=2)
    >>> isinstance(problem, ts.distributed.ShardedProblem), problem.n_shards
    (True, 2)
    """

    folder: Path

    def __init__(
        self, triplets: Any, frame: Any, loss: Any, n_jobs: int | None, N: Any, source: Any, alive: Any
    ) -> None:
        self.n_points, self.n_features, self.memory_budget = len(source), source.dim, None
        self.folder, self._alive = source.folder, alive
        self.units, self.basis = frame.units, frame.basis
        if self.basis is not None:
            self.point_error += 2 * self.n_features
        self._elements = 64
        Engine.__init__(self, triplets, loss, triplets.cone, Threads(n_jobs))
        if N is not None:
            with single_threaded_blas():
                self.prior = make_prior(N, self.cone, self.basis, self.units, triplets.total_weight * loss(0.0))
            self.floor = self.prior.floor
        weakref.finalize(self, triplets.pool.forget, triplets.plan)

    @property
    def n_shards(self) -> int:
        """Into how many shards the triplets are cut."""
        return self.triplets.n_shards

    @property
    def points(self) -> np.ndarray:
        """Refused: the points are with the shards."""
        raise InputError("points: those of a problem in shards are in its files, not in this process")

    def __repr__(self):
        return super().__repr__()[:-1] + f", {self.n_shards} shards>"


def problem(
    client: Any,
    X: Any,
    y: ArrayLike | str | None = None,
    triplets: str = "knn",
    k: int = 5,
    n_shards: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    *,
    comparisons: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    loss: Any = None,
    cone: str = "psd",
    n_jobs: int | None = None,
    prior: ArrayLike | None = None,
    patience: float = 30.0,
    waiting: float = 300.0,
) -> ShardedProblem:
    """Make a problem whose triplets live on the workers of a Dask cluster.

    `solve`, `solve_path` and all else take it as they take a `Problem`. The result is the same to the bit for any
    number of workers, wherever the shards are, and whatever dies on the way.

    Parameters
    ----------
    client : dask.distributed.Client or None
        None: the shards work in this process, one after the other.
    X : array, path, dask array or dask dataframe
        Points. A path is a folder of parts: ``X-*.npy`` with ``y-*.npy``, or parquet files with a column of labels, in
        the order of their names. Arrays, and what dask holds, are written to ``folder`` first.
    y : array or str, optional
        Labels; for parquet files and dataframes the name of their column.
    triplets : {"knn", "lmnn", "all"}
        As for `TripletMetric`.
    k : int
        Neighbours.
    n_shards : int, optional
        By default from the numbers of points and neighbours alone. The bits depend on it.
    folder : path, optional
        Where files go that every worker can read and this process can write. By default ``triscreen`` in the folder of
        parts, or for arrays a temporary one (in Dask's ``temporary-directory`` where that is set), which is enough
        where all workers are on this machine.
    comparisons : array of int, shape (m, 3), optional
        Rows (i, j, l), as for `given_triplets`, in place of labels.
    weights : array, optional
        One for each comparison; or for each point, that of the triplets that it is the anchor of (0: it is no anchor).
    loss, cone, prior :
        As for `Problem`.
    n_jobs : int or None
        Threads of this process; those of a worker follow its ``nthreads``.
    patience : float
        Seconds after which a shard that is late is sent to another worker, too.
    waiting : float
        Seconds to wait for workers where there are none, before `ClusterError` ends the work.

    Returns
    -------
    Problem

    References
    ----------
    docs/distributed.md; ours. Dask, M. Rocklin, SciPy 2015.

    Examples
    --------
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> problem = ts.distributed.problem(None, X, y, k=5, n_shards=3)  # in place of None: Client(...)
    >>> problem
    <Problem: 150 points, 4 features, 3,750 triplets, 1,500 pairs, SmoothedHinge(gamma=0.05), cone='psd', 3 shards>
    >>> sol = ts.solve(problem, lam=0.01 * problem.lambda_max())
    >>> bool(sol.rel_gap <= 1e-6)
    True
    """
    pool = pool_of(client, n_jobs, as_positive(patience, "patience"), as_positive(waiting, "waiting"))
    more = {"comparisons": comparisons, "weights": weights, "loss": loss, "cone": cone, "n_jobs": n_jobs}
    ready = prepare(pool, X, y, triplets, k, n_shards, folder, prior=prior, **more)
    return ready.problem(ready.prior)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Triplets in shards, before it is known how large the prior is.

    Attributes
    ----------
    triplets : ShardedTriplets
    frame : Frame
    prior : array or None
        As it was given, checked.
    """

    triplets: ShardedTriplets
    frame: Any = field(repr=False)
    prior: Any = field(repr=False)
    _rest: tuple = field(repr=False)

    @property
    def n_triplets(self):
        """Number of triplets."""
        return self.triplets.n_triplets

    def same_as(self, other):
        """Are these the same triplets?"""
        return self.triplets.same_as(other.triplets)

    def along(self, N):
        """Return how the loss grows along the multiples of a metric: what `least_scale` asks for."""
        T, units, basis = self.triplets, self.frame.units, self.frame.basis
        loss, n_jobs = self._rest[:2]
        inside = units.into(N, METRIC)
        core = inside if basis is None else basis.T @ inside @ basis
        dist, threads = T.distances_of(core), Threads(n_jobs)

        def look(s):
            sums, A = T.sweep(s * dist, loss.smoothings[-1], threads)
            return sums.loss, -T.inner(A, dist, T.cone)

        return look, T.total_weight, T.largest_square * float(np.linalg.norm(core, 2 if core.ndim == 2 else np.inf))

    def problem(self, N):
        """Return the problem with this prior, a multiple of the one that was given, or None."""
        return ShardedProblem(self.triplets, self.frame, *self._rest[:2], N, *self._rest[2:])


def prepare(
    pool, X, y, triplets="knn", k=5, n_shards=None, folder=None, *, comparisons=None, weights=None, loss=None,
    cone="psd", n_jobs=None, prior=None, space=None,
):  # fmt: skip
    """Return what is `Prepared`; pool: who works; space: where neighbours are nearest, an array (n, s), if not in X."""
    loss, cone = check_loss(SmoothedHinge() if loss is None else loss), make_cone(cone)
    as_choice(triplets, "triplets", KINDS)
    k, n_shards = as_count(k, "k"), as_count(n_shards, "n_shards", none="a number that fits the data")
    if comparisons is not None and y is not None:
        raise InputError("comparisons is given: pass either it or y")
    source, alive = open_source(X, y, folder, comparisons is None, pool)
    kind = "given" if comparisons is not None else triplets
    tables = _given_tables(comparisons, weights, len(source)) if kind == "given" else _own_weights(weights, len(source))
    n_shards = n_shards or _count_shards(kind, len(source), k, tables)
    pool.check(source.folder)
    n_blocks, working = size_of(len(source), source.dim)
    pool.check_memory("points", [0.0] * n_blocks, working)
    look = look_at(pool, source)
    if kind != "given":
        moved = None if space is None else open_source(space, None, source.folder, needs_labels=False)[0]
        tables = _labelled_tables(pool, source, look, kind, k, tables, n_shards, moved)
    n_shards = min(n_shards, len(tables[{"given": "rows", "knn": "order"}.get(kind, "anchors")]))
    tables.pop("anchors", None)
    N = check_prior(prior, cone, look.corners)
    frame = make_frame(pool, source, look, cone.name == "psd", lambda basis: N is None or is_apart(N, basis))
    kind = {"lmnn": "all"}.get(kind, kind)
    _check_memory(pool, kind, source, n_shards, tables)
    plan = make_plan(source, look.known_by, kind, cone.name, frame, n_shards, tables)
    pool.serve(plan)
    try:
        jobs = [(plan, shard, None, (), None, "facts", ()) for shard in range(n_shards)]
        facts = pool.map(MAKING, perform, jobs, places=range(n_shards))
        check_unchanged(pool, source, look)
        if loss.gamma > LARGEST_GAMMA and any(one.grains for one in facts):
            most = f"sums over such triplets are exact for gamma up to {LARGEST_GAMMA:g}"
            raise InputError(f"gamma={loss.gamma:g}: {most}")
    except BaseException:
        pool.forget(plan)
        raise
    dim = source.dim if frame.basis is None else frame.basis.shape[1]
    made = ShardedTriplets(pool, plan, facts, cone, dim, len(source))
    _log.info("%s triplets in %d shards", f"{made.n_triplets:,}", n_shards)
    return Prepared(made, frame, N, (loss, n_jobs, source, alive))


def pool_of(client, n_jobs=None, patience=30.0, waiting=300.0):
    """Return who works for a client; None: this process."""
    if client is None:
        return Here(n_jobs)
    if not all(hasattr(client, name) for name in ("submit", "scheduler_info", "nthreads")):
        raise InputError(f"client={shortened(client)}: client must be a dask.distributed.Client, or None")
    if client.asynchronous:
        raise InputError(f"client={shortened(client)}: client must be one that waits, Client(asynchronous=False)")
    from triscreen.distributed.pool import Cluster

    return Cluster(client, patience, waiting)


def _count_shards(kind, n, k, tables):
    """Return a power of two that depends on the data alone."""
    pairs = {"knn": 2 * k * n, "given": 2 * len(tables.get("rows", ()))}.get(kind, n * n)
    return min(_MOST, 2 ** max(0, round(math.log2(max(1, pairs / _PAIRS)))))


def _check_memory(pool, kind, source, n_shards, tables):
    """Refuse workers that have too little memory for their shards."""
    n, dim = len(source), source.dim
    if kind == "all":
        points = 8.0 * n * dim
        lists = min(LIST_AT_MOST, _LISTED * n * n)  # at work; what is kept of two steps takes a quarter of that
        pool.check_memory("shards", [lists / n_shards] * n_shards, 3 * points + _BLOCK_BYTES)
        return
    kept, working = [], 0.0
    bounds = chunk_bounds(len(tables["rows" if kind == "given" else "order"]), n_shards)
    for start, stop in pairwise(bounds):
        if kind == "given":
            points, pairs = len(np.unique(tables["rows"][start:stop])), 2 * (stop - start)
        else:
            anchors = tables["order"][start:stop]
            near = np.concatenate([tables[name][anchors] for name in ("same", "other")], axis=1)
            points, pairs = np.count_nonzero(needed(anchors, near, n)), np.count_nonzero(near >= 0)
        kept.append(8.0 * points * (dim + POINT) * _KEPT + _PAIR_BYTES * pairs)
        working = max(working, 8.0 * points * dim * _COPIES + _PAIR_BYTES * pairs)
    pool.check_memory("shards", kept, working)


def _own_weights(weights, n):
    """Return the weights of points, as tables."""
    if weights is None:
        return {}
    w = np.array(weights, dtype=np.float64)
    if w.shape != (n,) or not np.isfinite(w).all() or (w < 0).any() or not w.any():
        raise InputError(f"weights={shortened(weights)}: one finite weight for each of the {n} points, none negative")
    return {"weights": w}


def _given_tables(comparisons, weights, n):
    rows = as_rows(comparisons, "comparisons")
    given_triplets(rows[:1])  # the checks of rows that are no comparisons are its own
    same = (rows[:, 1:] == rows[:, :1]).any(axis=1)
    if same.any():
        row = int(np.argmax(same))
        raise InputError(f"comparisons[{row}] is {rows[row].tolist()}: a triplet compares a point with two others")
    if rows.max() >= n:
        raise InputError(f"comparisons go up to {rows.max()}: X has {n} points")
    weights = as_weights(weights, len(rows))
    order = np.argsort(rows[:, 0], kind="stable")  # shards that share fewer points
    return {"rows": rows[order], **({} if weights is None else {"weights": weights[order]})}


def _labelled_tables(pool, source, look, kind, k, tables, n_shards, moved):
    """Return the tables of labelled points: neighbours (among those of ``moved``, if any), and the order of anchors."""
    codes, sizes, weights = source.codes, np.bincount(source.codes), tables.get("weights")
    name_small_classes(source.classes, sizes, None if kind == "all" else k, len(source), kind != "knn")
    codes_file = keep(source.folder, "codes", codes.astype(np.int32))
    near, look = (source, look) if moved is None else (moved, look_at(pool, moved))
    known_by = fingerprint(codes) + look.known_by
    anchors = np.flatnonzero((sizes[codes] > 1) & (True if weights is None else weights > 0))
    if not len(anchors):
        raise InputError("weights are 0 for every point of a class of two points or more: no triplet is left")
    if kind == "all":
        return {**tables, "codes": codes_file, "anchors": anchors}
    kinds, check = ((True,) if kind == "lmnn" else (True, False)), partial(check_unchanged, pool, near, look)
    same, *others = nearest_on(pool, near, codes_file, known_by, k, kinds, check)
    if kind == "lmnn":
        return {**tables, "codes": codes_file, "same": same, "anchors": anchors}
    (other,) = others
    other[sizes[codes] == 1] = -1
    return {**tables, "same": same, "other": other, "order": near_to_each_other(pool, source, anchors, n_shards)}
