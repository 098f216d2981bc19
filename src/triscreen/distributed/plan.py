"""What a shard is: a pure function of a plan and a number.

A plan is a file. It names the parts that hold the points, the frame that leads inside, the tables that triplets are
made of (neighbours, labels, weights, comparisons) and which anchors each shard has. Any process that can read the
folder makes the same shard of it, to the bit.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from triscreen._utils.archive import fingerprint
from triscreen._utils.threads import chunk_bounds
from triscreen.distributed.frame import Frame
from triscreen.distributed.store import Parts, keep, keep_text, mapped, read_text
from triscreen.problem.units import Units
from triscreen.triplets.all import AllTriplets
from triscreen.triplets.blocks import BlockTriplets
from triscreen.triplets.given import GivenTriplets
from triscreen.triplets.ordered import OrderedTriplets

# Bytes that the lists of all shards may take together, where what is left of all triplets is listed.
LIST_AT_MOST = 2**31
_PLANS = 2  # whose points a process keeps, where its shards share them
_shared, _reading = OrderedDict(), threading.Lock()  # plan -> what its shards share


@dataclass(frozen=True)
class Plan:
    """Where a plan is: a few bytes, which go with every task."""

    folder: str
    file: str

    def read(self):
        """Return the plan's content, a dict."""
        return read_text(self.folder, self.file)

    def table(self, name):
        """Return one of its arrays, mapped; None where it has none of this name."""
        file = self.read()["tables"].get(name)
        return None if file is None else mapped(Path(self.folder) / file)

    def frame(self):
        """Return the `Frame` of its points."""
        basis = self.table("basis")
        return Frame(np.array(self.table("mean")), Units(self.read()["exponent"]),
                     None if basis is None else np.array(basis))  # fmt: skip

    def points(self, ids):
        """Return (the points of these numbers as they are inside, a hash of what the files say of them)."""
        rows, frame = Parts(self.read()["files"]).take(ids), self.frame()
        known_by = fingerprint(rows, *(array for array in (frame.mean, frame.basis) if array is not None))
        return frame.inside(rows), known_by


def make_plan(source, known_by, kind, cone, frame, n_shards, tables):
    """Write a plan and its tables; return it."""
    tables = {**tables, "mean": frame.mean, "basis": frame.basis}
    content = {
        "points": known_by,
        "kind": kind,
        "cone": cone,
        "exponent": frame.units.exponent,
        "n_shards": n_shards,
        "tables": {
            name: array if isinstance(array, str) else keep(source.folder, name, array)
            for name, array in tables.items()
            if array is not None
        },
    }
    # What makes a run this one: not where its files are, nor how they are cut into parts.
    identity = hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()
    content = {**content, "identity": identity, "files": source.files}
    return Plan(str(source.folder), keep_text(source.folder, "plan", content))


def load(plan, number):
    """Return (the set of triplets of a shard, over its points; a hash of what it was made of)."""
    content = plan.read()
    return {"knn": _nearest, "all": _all, "given": _given}[content["kind"]](plan, number, content["n_shards"])


def _range(n, number, n_shards):
    bounds = chunk_bounds(n, n_shards)
    return slice(bounds[number], bounds[number + 1])


def needed(anchors, near, n):
    """Return the mask of the points, of n, that anchors and their neighbours (-1: none) are."""
    here = np.zeros(n, dtype=bool)
    here[anchors] = here[near[near >= 0]] = True
    return here


def _nearest(plan, number, n_shards):
    """Neighbours of some anchors, which count the points that they need anew."""
    order = plan.table("order")
    anchors = np.sort(np.array(order[_range(len(order), number, n_shards)]))
    same, other = (np.array(plan.table(name)[anchors]) for name in ("same", "other"))
    both = np.concatenate([same, other], axis=1)
    ids = np.flatnonzero(needed(anchors, both, len(plan.table("same"))))
    counts = np.zeros((2, len(ids)), dtype=np.int64)
    places = np.searchsorted(ids, anchors)
    counts[0, places], counts[1, places] = (same >= 0).sum(axis=1), (other >= 0).sum(axis=1)
    second = np.searchsorted(ids, both[both >= 0]).astype(np.int32)
    points, known_by = plan.points(ids)
    weights = plan.table("weights")
    if weights is None:
        made = BlockTriplets(second, *counts)
    else:
        own = np.array(weights[ids])
        made, known_by = OrderedTriplets(second, *counts, own), known_by + fingerprint(own)
    made.point_ids = ids
    return made.over(points), fingerprint(second, counts) + known_by


def _all(plan, number, n_shards):
    """All points, of which some are anchors here."""
    whole, known_by = _whole(plan)
    made = whole.of_anchors(whole.anchors[_range(len(whole.anchors), number, n_shards)])
    made.list_at_most(LIST_AT_MOST / n_shards)
    return made, fingerprint(made.anchors) + known_by


def _whole(plan):
    """All anchors, and a hash of what they were made of: the shards of a process share the points."""
    with _reading:
        found = _shared.get(plan)
        if found is None:
            weights, near = plan.table("weights"), plan.table("same")
            codes = np.array(plan.table("codes"), dtype=np.int64)
            tables = [None if table is None else np.array(table) for table in (near, weights)]
            points, known_by = plan.points(np.arange(len(codes)))
            known_by += fingerprint(codes, *(table for table in tables if table is not None))
            whole = AllTriplets(codes, *tables)
            found = _shared[plan] = whole.over(points[whole.point_ids]), known_by
            while len(_shared) > _PLANS:
                _shared.popitem(last=False)
        return found


def forget_points(plan):
    """Drop what the shards of a plan share."""
    _shared.pop(plan, None)


def _given(plan, number, n_shards):
    """Some comparisons, which count the points that they need anew."""
    rows, weights = plan.table("rows"), plan.table("weights")
    some = _range(len(rows), number, n_shards)
    made = GivenTriplets(np.array(rows[some]), None if weights is None else np.array(weights[some]))
    points, known_by = plan.points(made.point_ids)
    return made.over(points), fingerprint(*made.identity()[1]) + known_by
