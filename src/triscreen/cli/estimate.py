"""``--dry-run``: triplets, bytes and seconds of a command, before any search."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

from triscreen.cli.common import answer, in_words

# A score looks for one short list where a search has two longer ones, in the learned space.
_SCORE = 0.6
_LAMBDAS = (4, 8)  # of a path in a cross-validation
# Passes, measured on tables of 4 to 384 features: of one lambda, of the look at held-out data before it, and of a path
# in a fold. tests/cli/test_dry_run.py holds them to what happens.
_SINGLE, _LOOKING, _FOLD = (12, 108), (32, 288), (8, 40)
_RATIOS = (2, 7)  # that held-out data are asked about
_SHOWN = (30, 60)  # lambdas of a path that errors are shown for
# Seconds to load what is compiled, and those of a lambda however small the problem.
_START, _STEP = (1.0, 4.0), (0.01, 0.04)


@dataclass(frozen=True)
class Plan:
    """What a command does, from the least to the most of it.

    Lambdas, passes, searches among all points, and scores of as many points; metrics that are kept at a time.
    """

    lambdas: tuple
    passes: tuple
    searches: float
    scores: tuple
    kept: int = 0

    def seconds(self, a_pass, a_search):
        """Return the least and the most that it takes."""
        each = zip(_START, _STEP, self.lambdas, self.passes, self.scores, strict=True)
        return [
            start + step * lambdas + passes * a_pass + (self.searches + _SCORE * scores) * a_search
            for start, step, lambdas, passes, scores in each
        ]


def plan_of_path(test_share):
    """Return what a path does; the points that are held out are scored along it."""
    return Plan((100, 150), (130, 1150), 1.0, tuple(n * test_share / (1 - test_share) for n in _SHOWN), kept=150)


def plan_of_fit(single, cv, rounds, starts=1, repeats=1, looks=False):
    """Return what a fit does: for one lambda, or paths in folds and over all points, at first with one search for all.

    A fold has a share 1 - 1/cv of the points, and scores the others; all that may be repeated. looks: is the one lambda
    chosen by held-out data?
    """
    if single:
        passes = tuple(n * rounds for n in _SINGLE)
        if not looks:
            return Plan((rounds, rounds), passes, rounds, (0.0, 0.0))
        passes = tuple(n + more for n, more in zip(passes, _LOOKING, strict=True))
        return Plan(tuple(rounds + n for n in _RATIOS), passes, rounds + 0.8, tuple(n / 5 for n in _RATIOS))
    staying, paths = 1 - 1 / cv, (starts + 2 * (rounds - 1)) * cv * repeats + 1
    return Plan(
        tuple(n * paths for n in _LAMBDAS),
        tuple(n * paths for n in _FOLD),
        1 + (rounds - 1) * (1 + cv * repeats * staying**2),
        tuple(n * rounds * staying * repeats for n in _LAMBDAS),
        kept=_LAMBDAS[1],
    )


def _resident():
    """Return the bytes that this process takes now, where the system tells; before the work that is libraries only."""
    try:
        import resource
    except ImportError:  # not on Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def estimate(plan, data, kind, k, gamma, cone, jobs, budget, json, prior=False):
    """Print what a command takes; prior: is there a metric to begin with?"""
    import numpy as np

    from triscreen.problem import Problem
    from triscreen.problem.losses import loss_of
    from triscreen.triplets import given_triplets
    from triscreen.triplets.sketch import search_seconds, sketched_triplets

    plan = replace(plan, searches=0.0) if kind == "all" or data.rows is not None else plan
    T = given_triplets(data.rows) if data.rows is not None else sketched_triplets(data.X, data.y, kind, k)
    limits, dim = {"n_jobs": jobs, "memory_budget": budget}, data.X.shape[1]
    size = float(np.abs(data.X - data.X.mean(axis=0)).max())
    N = (
        (np.ones(dim) if cone == "diagonal" else np.eye(dim)) / size**2 if prior and size > 0 else None
    )  # like any other
    found = Problem(data.X, T, loss_of(gamma), cone, **limits, prior=N).estimate()
    found = replace(found, bytes=found.bytes + plan.kept * found.bytes_per_lambda, bytes_per_lambda=0)
    a_search = 0.0
    if data.rows is None and (plan.searches or any(plan.scores)):
        a_search = search_seconds(data.X, data.y, k, jobs, (True,) if kind == "lmnn" else (True, False))
    low, high = plan.seconds(found.seconds, a_search)
    if json:
        answer(
            {
                "n_triplets": found.n_triplets,
                "n_pairs": found.n_pairs,
                "bytes": found.bytes,
                "bytes_of_libraries": _resident(),
                "passes": plan.passes,
                "seconds_per_pass": found.seconds,
                "seconds_per_search": a_search,
                "seconds": [low, high],
            }
        )
        return
    print(found)
    print(f"beside some {_resident() / 1e6:.0f} MB of Python and its libraries")
    if a_search:
        print(f"one search for neighbours: about {in_words(a_search)}")
    print(f"with some {plan.passes[0]} to {plan.passes[1]} passes: roughly {in_words(low)} to {in_words(high)}")
