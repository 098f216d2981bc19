"""Which anchors go together: those that are near to each other need fewer points between them.

A tree of cuts through a few of the points gives every point a leaf; shards are ranges of the points in the order of
their leaves. It decides about time and memory, never about the triplets.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from triscreen._utils.threads import single_threaded_blas
from triscreen.distributed.frame import blocks_of
from triscreen.distributed.store import Parts

_SAMPLE = 4096  # points that the cuts are made of, for each shard 16 at least
_STEPS = 8  # of the power method, for the direction in which points vary most


def near_to_each_other(pool, source, anchors, n_shards):
    """Return the anchors in an order in which neighbours are not far from each other, as far as that can be."""
    if n_shards == 1:
        return anchors
    with single_threaded_blas():
        rows = np.unique(np.linspace(0, len(source) - 1, max(_SAMPLE, 16 * n_shards)).astype(np.int64))
        cuts = make_cuts(Parts(source.files).take(rows).astype(np.float64), n_shards)
    bounds = blocks_of(len(source), source.dim)
    jobs = [(source.files, start, stop, cuts) for start, stop in pairwise(bounds)]
    leaves = np.concatenate(pool.map("order", leaves_of, jobs))
    return anchors[np.argsort(leaves[anchors], kind="stable")]


def make_cuts(sample, n_leaves):
    """Return cuts (direction, threshold) for a tree with so many leaves, level by level; None where there are none."""
    cuts, groups = [], [sample]
    while len(groups) < n_leaves:
        level, halves = [], []
        for points in groups:
            cut = _cut(points) if len(points) > 1 else None
            level.append(cut)
            right = np.zeros(len(points), dtype=bool) if cut is None else points @ cut[0] > cut[1]
            halves += [points[~right], points[right]]
        cuts.append(level)
        groups = halves
    return cuts


def _cut(points):
    """Return a direction in which points vary much, and their median along it."""
    centred = points - points.mean(axis=0)
    direction = np.ones(points.shape[1])
    for _ in range(_STEPS):
        direction = centred.T @ (centred @ direction)
        size = float(np.linalg.norm(direction))
        if not 0 < size < np.inf:
            return None
        direction = direction / size
    return direction, float(np.median(points @ direction))


@single_threaded_blas()
def leaves_of(files, start, stop, cuts, n_jobs=1):
    """Return the leaf of every row of a block (a task)."""
    rows = Parts(files).block(start, stop).astype(np.float64)
    leaves = np.zeros(len(rows), dtype=np.int32)
    for level in cuts:
        right = np.zeros(len(rows), dtype=bool)
        for leaf, cut in enumerate(level):
            here = np.flatnonzero(leaves == leaf) if cut is not None else ()
            if len(here):
                right[here] = rows[here] @ cut[0] > cut[1]
        leaves = 2 * leaves + right
    return leaves
