"""triscreen with its screening variants by name, and paths as the paper walked them."""

from __future__ import annotations

import time
import warnings
from contextlib import contextmanager

import numpy as np

import triscreen as ts
from triscreen.screening.state import Screener

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
# Dense paths: the paper's active set, with ranges and spheres on top; ours.
DENSE = {
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


def walk(problem, lambdas, case, tol=1e-6, solver="bb", until=np.inf):
    """Solve one lambda after the other, each from the solution before, as the paper does; stop when time is over.

    Yields (Solution, seconds, seconds of screening in them).
    """
    screening, sol = screening_of(case), None
    with screening_clock() as clock, warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.ConvergenceWarning)
        for lam in lambdas:
            if sol is not None and time.perf_counter() > until:
                return
            clock.clear()
            begin = time.perf_counter()
            sol = ts.solve(problem, lam, tol=tol, solver=solver, screening=screening, start=sol)
            yield sol, time.perf_counter() - begin, sum(clock)
