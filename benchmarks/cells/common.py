"""What kinds of cells share: how a problem is made, how long a cell may take, how its metrics are graded."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits

import triscreen as ts
from benchmarks import datasets
from benchmarks.objective import Objective

_GRADED = 8


@dataclass
class Context:
    """Where a cell runs: folder of the data, whether OpenML may be asked, seconds at most, peers' interpreters."""

    folder: str | None = None
    fetch: bool = False
    limit: float = 600.0
    interpreters: dict = field(default_factory=dict)

    def __post_init__(self):
        self.start()

    def start(self):
        """Time counts from now on."""
        self.until = time.perf_counter() + self.limit

    def interpreter(self, peer):
        """Return the Python that has a peer installed; this one by default."""
        return self.interpreters.get(peer, sys.executable)


@dataclass(frozen=True)
class Setting:
    """A problem, the points it was made of, and the facts that go into every result."""

    problem: ts.Problem
    X: np.ndarray
    y: np.ndarray
    lambda_max: float
    own_start: bool
    facts: dict

    def lambdas(self, data, ratio, length):
        """Return the fixed list of lambdas of this data set."""
        return datasets.lambdas(data, self.lambda_max, ratio, length, self.own_start)


def setting(context, data, seed, k="paper", loss="smoothed", points=None, cone=None, threads=None):
    """Make the problem of a data set: a random 90 % of the points, triplets as in the paper (or by another k)."""
    X, y = datasets.subsample(*datasets.load(data, context.folder, context.fetch, points), seed=seed)
    row = datasets.DATA[data]
    T = ts.knn_triplets(X, y, row.k if k == "paper" else k)
    loss = ts.Hinge() if loss == "hinge" else ts.SmoothedHinge(0.05)
    problem = ts.Problem(X, T, loss=loss, cone=cone or row.cone, n_jobs=threads)
    top = problem.lambda_max()
    facts = {"n": len(X), "d": X.shape[1], "classes": int(y.max()) + 1, "triplets": T.n_triplets, "pairs": T.n_pairs,
             "lambda_max": top}  # fmt: skip
    context.start()
    return Setting(problem, X, y, top, k != "paper" or cone is not None, facts)


def graded(count):
    """Return the numbers of the lambdas whose metrics are graded: evenly spread, the last one among them."""
    return set(np.unique(np.linspace(0, count - 1, min(count, _GRADED)).round().astype(int)).tolist())


def grade(setting, metrics):
    """Recompute what metrics (M, lam, claimed gap) are worth; refuse lies; return the numbers for the result."""
    objective = Objective.of(setting.problem, setting.X)
    with threadpool_limits(1, "blas"):
        scores = [objective.check(M, lam, gap) for M, lam, gap in metrics]
    return {
        "graded": len(scores),
        "worst_rel_gap": max((score.rel_gap for score in scores), default=None),
    }


def rounded(values, digits=5):
    """Return floats for JSON, short ones."""
    return [round(float(value), digits) for value in values]
