"""Every method that walks down a list of lambdas, by name, one lambda at a time.

gb, pgb+linear, ...     as the paper walked: one solve after the other, each from the last, one of its bounds
path.active, path.auto  `ts.solve_path` with the options of `solvers.triscreen.PATHS`
triplet.pgb, ...        the baseline per triplet
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.solvers import triscreen
from benchmarks.solvers.per_triplet import PerTriplet


@dataclass
class Lap:
    """One lambda of one method.

    Attributes
    ----------
    metric : callable
        Returns M.
    undecided : list of int
        Triplets that were not decided after each screening, the one before the first iteration first; empty: none was.
    """

    metric: Callable
    gap: float
    converged: bool
    seconds: float
    screening: float = 0.0
    n_iter: int = 0
    passes: float = 0.0
    undecided: list = field(default_factory=list)


def run(made, lambdas, case, tol=1e-6):
    """Yield the `Lap` of each lambda."""
    kind, _, name = case.partition(".") if "." in case else ("", "", case)
    yield from {"": _walk, "path": _path, "triplet": _per_triplet}[kind](made, lambdas, name, tol)


def _walk(made, lambdas, case, tol):
    # The hinge is solved by smoothing, ever sharper: Newton steps help there.
    solver = "bb" if made.problem.loss.gamma > 0 else "auto"
    for sol, seconds, screening in triscreen.walk(made.problem, lambdas, case, tol, solver):
        left = list({event["n_iter"]: event["undecided"] for event in sol.screening}.values())
        yield Lap(lambda sol=sol: sol.M, sol.gap, sol.converged, seconds, screening, sol.n_iter, sol.passes, left)


def _path(made, lambdas, case, tol):
    for path, seconds in triscreen.path(made.problem, lambdas, case, tol):
        left = [round((1 - path.screening_rates[0]) * made.problem.triplets.n_triplets)]
        yield Lap(lambda path=path: path.M(0), path.gaps[0], bool(path.converged[0]), seconds, 0.0, int(path.n_iter[0]),
                  float(path.passes[0]), left)  # fmt: skip


def _per_triplet(made, lambdas, case, tol):
    begin = time.perf_counter()
    baseline = PerTriplet(made.X, made.problem.triplets.indices(), made.problem.loss.gamma)
    setup = time.perf_counter() - begin
    for state, steps, left, seconds, screening in baseline.path(lambdas, tol, case):
        yield Lap(lambda state=state: state.M, state.gap, state.gap <= tol * abs(state.primal), seconds + setup,
                  screening, steps, float(steps), [left])  # fmt: skip
        setup = 0.0
