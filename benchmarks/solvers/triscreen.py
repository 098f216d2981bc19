"""triscreen with its screening variants by name, and paths as the paper walked them."""

from __future__ import annotations

import time
import warnings
from contextlib import contextmanager

import triscreen as ts
from triscreen._utils.threads import single_threaded_blas
from triscreen.path.api import AUTO, _path
from triscreen.path.grid import Grid
from triscreen.path.walk import Walk
from triscreen.problem.units import LAMBDA
from triscreen.screening.by_triplet import Screener
from triscreen.solvers.api import MAX_ITER, check_arguments

# The paper's methods: (bounds, rule). Its RRPB, once the optimisation runs, looks from the iterate: that is DGB.
CASES = {
    "none": None,
    "gb": ("gb", "sphere"),
    "gb+linear": ("gb", "linear"),
    "pgb": ("pgb", "sphere"),
    "pgb+linear": ("pgb", "linear"),
    "pgb+semidefinite": ("pgb", "semidefinite"),
    "dgb": ("dgb", "sphere"),
    "dgb+linear": ("dgb", "linear"),
    "dgb+semidefinite": ("dgb", "semidefinite"),
    "rrpb": (("rrpb", "dgb"), "sphere"),
    "rrpb+pgb": (("rrpb", "pgb"), "sphere"),
    "mid": ("mid", "sphere"),
}
# Paths: the paper's active set, with ranges and spheres on top; ours.
PATHS = {
    "active": {
        "solver": "bb",
        "screening": ts.Screening("mid", every=10**6, at_start=False, ranges=False, active_set="loss"),
    },
    "active+rrpb": {"solver": "bb", "screening": ts.Screening("rrpb", every=10, ranges=True, active_set="loss")},
    "active+rrpb+pgb": {
        "solver": "bb",
        "screening": ts.Screening(("rrpb", "pgb"), every=10, ranges=True, active_set="loss"),
    },
    "none": {"solver": "bb", "screening": None},
    "auto": {},
}


def screening_of(case):
    """Return the `Screening` of one of the CASES, every ten iterations, or None."""
    if CASES[case] is None:
        return None
    bounds, rule = CASES[case]
    return ts.Screening(bounds, rule=rule, every=10, ranges=False, active_set=False)


@contextmanager
def screening_clock():
    """Yield a list that gets the seconds of every screening: spheres, rules, and making the problem smaller."""
    seconds, start, step = [], Screener.start, Screener.step

    def timed(method):
        def call(self, *arguments, **more):
            begin, before = time.perf_counter(), len(seconds)
            try:
                return method(self, *arguments, **more)
            finally:
                del seconds[before:]  # `start` calls `step`: its time is counted once
                seconds.append(time.perf_counter() - begin)

        return call

    Screener.start, Screener.step = timed(start), timed(step)
    try:
        yield seconds
    finally:
        Screener.start, Screener.step = start, step


def walk(problem, lambdas, case, tol=1e-6, solver="bb"):
    """Solve one lambda after the other, each from the solution before, as the paper does.

    Yields (Solution, seconds, seconds of screening in them).
    """
    screening, sol = screening_of(case), None
    for lam in lambdas:
        with screening_clock() as clock, warnings.catch_warnings():
            warnings.simplefilter("ignore", ts.ConvergenceWarning)
            begin = time.perf_counter()
            sol = ts.solve(problem, lam, tol=tol, solver=solver, screening=screening, start=sol)
            seconds = time.perf_counter() - begin
        yield sol, seconds, sum(clock)


def path(problem, lambdas, case, tol=1e-6):
    """Walk as `ts.solve_path` does, one lambda at a time; yields (Path of this lambda alone, seconds)."""
    options = {"solver": "auto", "screening": "auto", **PATHS[case]}
    solver, screening = check_arguments(problem, options["solver"], options["screening"], AUTO, None)
    grid, rows = Grid(problem, lambdas, None, 0.9, None, tol), []
    walk = Walk(problem, solver, screening, tol, MAX_ITER)
    while len(rows) < len(lambdas):
        begin = time.perf_counter()
        with single_threaded_blas():
            lam = grid.next(rows)
            inside, ahead = (problem.units.into(value, LAMBDA) for value in (lam, grid.ahead(lam, rows)))
            rows.append(walk.step(inside, ahead))
        seconds = time.perf_counter() - begin
        yield _path(problem, rows[-1:], tol, None, "lambdas"), seconds
