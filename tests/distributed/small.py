"""The small problem that clusters are tried with, and the mark of what only the night has time for."""

from __future__ import annotations

import pytest
from kinds import labelled

import triscreen as ts
from nightly import NIGHTLY

LAMBDAS = 8
# With the others half a minute more than the tests have.
nightly = pytest.mark.skipif(not NIGHTLY, reason="for make nightly")


def made(client, n_shards=5, **more):
    """Return a small problem."""
    X, y = labelled(n=150)
    return ts.distributed.problem(client, X, y, k=4, n_shards=n_shards, **{"patience": 1.5, "waiting": 120.0, **more})


def walked(problem, **more):
    """Return a path of it."""
    return ts.solve_path(problem, ratio=0.75, n_lambdas=LAMBDAS, **more)
