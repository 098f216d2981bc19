"""``--dry-run``: triplets, bytes and seconds of a command, before any search."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, log, sqrt

from triscreen.cli.common import answer, in_words
from triscreen.cli.rehearsal import rehearse

# A score looks for one short list where a search has two longer ones, in the learned space.
_SCORE = 0.6
_LAMBDAS = (4, 8)  # of a path in a cross-validation
# Passes, measured on tables of 4 to 384 features: of one lambda, of the look at held-out data before it, and of a path
# in a fold. tests/cli/test_dry_run.py holds them to what happens.
_SINGLE, _FOLD = (12, 108), (8, 40)
_RATIOS = (2, 7)  # that held-out data are asked about
# Of the maps of a path's report, which solve some lambdas again.
_MAPS = (160, 1440)
# Lambdas of a path of ratio 0.9: from, to, and those that its passes are counted for.
_FEWEST, _MOST, _USUAL = 100, 175, 145
_SHOWN = (30, 60)  # lambdas of a path that errors are shown for
# Seconds to load what is compiled, and those of a lambda however small the problem.
_START, _STEP = (1.0, 4.0), (0.01, 0.04)


@dataclass(frozen=True)
class Plan:
    """What a command does, from the least to the most of it.

    Lambdas, passes, searches among all points, and scores of as many points; metrics that are kept at a time. Passes
    are those of a rehearsal, where there is one; more: how many times as many as it counted, if it did not end; maps:
    passes of a report, which it has none of.
    """

    lambdas: tuple
    passes: tuple
    searches: float
    scores: tuple
    kept: int = 0
    more: Callable = lambda rehearsal: 1.0
    maps: tuple = (0, 0)

    def rehearsed(self, found):
        """Return the plan with the passes and lambdas that a rehearsal counted; of a part: within three times of it."""
        likely = found.passes * (1.0 if found.ended else max(self.more(found), 1.0))
        near = 1.25 if found.whole and found.ended else 3.0
        low = max(1, ceil(likely / near))
        high = max(low + 5, int(near * likely))  # lambdas are counted, not what is looked at beside them
        lambdas = (found.lambdas, found.lambdas) if found.ended else self.lambdas
        return replace(self, lambdas=lambdas, passes=(low + self.maps[0], high + self.maps[1]))

    def seconds(self, a_pass, a_search):
        """Return the least and the most that it takes."""
        each = zip(_START, _STEP, self.lambdas, self.passes, self.scores, strict=True)
        return [
            start + step * lambdas + passes * a_pass + (self.searches + _SCORE * scores) * a_search
            for start, step, lambdas, passes, scores in each
        ]


def plan_of_path(test_share, ratio=0.9, n_lambdas=None, maps=False):
    """Return what a path does; the points that are held out are scored along it; maps: are those of a report made?

    Twice as many lambdas take some 1.4 times as many passes: each begins nearer to its end. n_lambdas leaves some out,
    those that take most.
    """
    times = log(0.9) / log(ratio) if 0 < ratio < 1 else 1.0
    lambdas = tuple(n * times if n_lambdas is None else min(n * times, n_lambdas) for n in (_FEWEST, _MOST))
    n = min(_USUAL, lambdas[1] / times)
    least = max(1, round(sqrt(times) * _passes_until(n) / 3))
    shown = _MAPS if maps else (0, 0)
    passes = [n + more for n, more in zip((least, 9 * least), shown, strict=True)]
    scores = tuple(min(n, some) * test_share / (1 - test_share) for n, some in zip(_SHOWN, lambdas, strict=True))

    def more(found):  # it may end at the next lambda, or go on to the last
        return sqrt(_passes_until(n) / _passes_until(min(found.lambdas / times, n)))

    return Plan(lambdas, tuple(passes), 1.0, scores, kept=round(lambdas[1]), more=more, maps=shown)


def _passes_until(n):
    """Return the passes of the first n lambdas of a path of ratio 0.9, as a multiple of what the first take."""
    return n * (1 + (n / 60) ** 2.1)


def plan_of_fit(single, cv, rounds, starts=1, repeats=1, walks=0, tol=1e-4):
    """Return what a fit does: for one lambda, or paths in folds and over all points, at first with one search for all.

    A fold has a share 1 - 1/cv of the points, and scores the others; all that may be repeated. walks: of comparisons,
    how many walks down look for the one lambda; `passes_of_comparisons` has their passes.
    """
    if single:
        passes = tuple(n * rounds for n in _SINGLE)
        lambdas = tuple(rounds + n * walks for n in _RATIOS)
        return Plan(lambdas, passes, rounds, (0.0, 0.0), more=lambda found: found.steps_to(tol))
    staying, paths = 1 - 1 / cv, (starts + 2 * (rounds - 1)) * cv * repeats + 1
    return Plan(
        tuple(n * paths for n in _LAMBDAS),
        tuple(n * paths for n in _FOLD),
        1 + (rounds - 1) * (1 + cv * repeats * staying**2),
        tuple(n * rounds * staying * repeats for n in _LAMBDAS),
        kept=_LAMBDAS[1],
        more=lambda found: sqrt(_LAMBDAS[0] * _LAMBDAS[1]) * paths / found.lambdas,
    )


def one_lambda(lam, lam_ratio, cv, dim):
    """Return (share of lambda_max or None, lambda or None, walks that look for it) of a fit by comparisons."""
    from triscreen.estimators.choosing import FEW, PLAIN

    if lam is not None or lam_ratio is not None:
        return lam_ratio, lam, 0
    walks = cv or (1 if dim > FEW else 0)
    return (None if walks else PLAIN), None, walks


def passes_of_comparisons(n, dim, ratio, walks=0):
    """Return the passes of one lambda for n comparisons, from a third to three times of what is likely.

    A metric has d (d + 1) / 2 unknowns. Where comparisons are fewer than that, some metric has them all right with any
    margin, lambda alone holds it back, and passes grow like 1 / lambda: 150 comparisons of points with 40 features took
    27 passes at 0.3 lambda_max, and 23,745 at 0.001. The more comparisons there are to an unknown, the fewer; and the
    smaller is the lambda that held-out comparisons choose (ratio=None). Constants: 60 fits of 5 to 80 features, 0.2 to
    90 comparisons to an unknown, and 11 for which held-out comparisons chose; the tests have others.

    walks: down from the top, on a part, until held-out comparisons say stop: one for each fold, or one in all.
    """
    share = n / (dim * (dim + 1) / 2)
    ratio = min(max(0.03 / share**2, 0.003), 0.3) if ratio is None else ratio
    likely = 20 + 1.6 * share ** (-1.3 if share < 1 else -1.5) * ratio**-1.1 * (min(dim, 40) / 30) ** 0.8
    likely += walks * (0.2 * likely if walks == 1 else 40 + 0.7 * likely)  # with folds a walk goes on a step longer
    low = max(6, round(likely / 3))
    return low, 9 * low


def _dimension(points):
    """Return the number of features, less where few directions have most of the variance.

    The geometric mean of d and tr(C)^2 / tr(C^2), which is d where all directions have the same variance.
    """
    import numpy as np

    C = np.cov(points, rowvar=False).reshape(points.shape[1], -1)
    squares = float((C * C).sum())
    return float(np.sqrt(points.shape[1] * (np.trace(C) ** 2 / squares if squares > 0 else 1.0)))


def _resident():
    """Return the bytes that this process takes now, where the system tells; before the work that is libraries only."""
    try:
        import resource
    except ImportError:  # not on Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def estimate(plan, data, kind, k, gamma, cone, jobs, budget, json, work, prior=False, compared=None):
    """Print what a command takes; prior: is there a metric to begin with?

    work: ``work(data, callback)`` does it, for a rehearsal; compared: what `one_lambda` says of a fit by comparisons.
    """
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
    problem = Problem(data.X, T, loss_of(gamma), cone, **limits, prior=N)
    found = problem.estimate()
    if compared is not None and cone == "psd":
        ratio, lam, walks = compared
        ratio = ratio if lam is None else lam / max(problem.lambda_max(), 1e-300)
        ratio = None if ratio is None else min(ratio, 1.0)
        plan = replace(plan, passes=passes_of_comparisons(len(data.rows), _dimension(problem.points), ratio, walks))
    rehearsal = rehearse(work, data)
    if rehearsal is not None and (rehearsal.ended or compared is None):
        plan = plan.rehearsed(rehearsal)
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
