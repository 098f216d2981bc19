"""Lambda by what held-out data say: a short walk of certified metrics down from the top, while their score rises.

With many features a small lambda takes most of the time and is no better: what is learned there is noise of the points
at hand. So a part is held out, metrics are learned from the rest for one ratio lam / lambda_max after the other, the
largest first, and the walk ends where their score stops rising. The ratio is then that of the fit on everything.
"""

from __future__ import annotations

import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from triscreen._utils.progress import stage
from triscreen._utils.validation import as_positive, shortened
from triscreen.errors import (
    ConvergenceWarning,
    DegenerateProblemWarning,
    InputError,
    NoAnchorWarning,
    SmallClassWarning,
)
from triscreen.problem.cones import components_of
from triscreen.selection import choose
from triscreen.solvers import solve

# Up to so many dimensions of the points' span every ratio takes a moment, and this one is good without a look.
FEW, PLAIN = 64, 1e-3
RATIOS = np.array([0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003])
# With a prior nothing happens at larger ratios: lambda_max is where M is within 1 % of it.
_LARGEST_WITH_PRIOR = 0.03
# One in so many is held out, if that makes so many.
_HELD, _LEAST = 5, 20
# Metrics that are only ranked may have this gap, relative to the objective or to so much of the loss of M = 0.
_ROUGH, _FLOOR = 0.02, 0.5
# A walk ends after so many scores that rise by no more than this: of folds, and where one part alone is held out. There
# a rise of less is noise, and a ratio that takes more than this share of all passes before it is given up: the fit
# would take more yet.
_PATIENCE = 2
_RISE, _RISE_ALONE = 1e-3, 5e-3
_DEAR = 0.5
# No ratio is given up for so many passes, or for so many multiplications (some seconds).
_PASSES, _WORK = 20, 5e9
# Of the seconds that there are.
_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class Choice:
    """A ratio, and why.

    Attributes
    ----------
    ratio : float
    ratios : array or None
        Those that were looked at; None: there was no need to look.
    scores : array, shape (n_folds, n_ratios), or None
        NaN where a walk ended early.
    M : array or None
        The metric of the part that was learned from, to begin with.
    """

    ratio: float
    ratios: np.ndarray | None = None
    scores: np.ndarray | None = None
    M: np.ndarray | None = field(default=None, repr=False)


def as_ratio(value, name="lam_ratio"):
    """Return a positive number, or None for "auto"."""
    if isinstance(value, str):
        if value == "auto":
            return None
        raise InputError(f"{name}={shortened(value)}: it must be a positive number, or 'auto'")
    return as_positive(value, name)


def looks(problem):
    """Has a problem so many dimensions that its lambda is worth a look at the data?"""
    return problem.cone.name == "psd" and problem.triplets.dim > FEW


def ratio_by_folds(problems, judge, arguments, tell):
    """Return the `Choice` that held-out data make.

    Parameters
    ----------
    problems : iterable of callables
        One for each fold: makes the problem of the part that is learned from.
    judge : callable
        ``judge(k, L)`` is the score of a metric with these components on what fold k holds out, at most 1.
    arguments : dict
        Of every solve; "max_seconds" are those of the whole fit that are left.
    tell : callable
        Sees every iteration.
    """
    problems = list(problems)
    end = None if arguments["max_seconds"] is None else time.perf_counter() + _SHARE * arguments["max_seconds"]
    alone = len(problems) == 1
    rise = _RISE_ALONE if alone else _RISE
    scores, M = np.full((len(problems), len(RATIOS)), np.nan), {}
    for k, make in enumerate(problems):
        stage("held out" if alone else f"fold {k + 1}/{len(problems)}")
        problem = _make(make)
        first = 0 if problem.prior is None else int(np.argmax(RATIOS <= _LARGEST_WITH_PRIOR))
        for t, solution in _walk(problem, first, arguments, end, tell, alone):
            scores[k, t] = judge(k, components_of(solution.M, basis=problem.basis if problem.prior is None else None))
            M[t] = solution.M
            if _stopped(scores[k, first : t + 1], rise) or _late(end) or solution.stopped_by == "callback":
                break
    stage("all")
    return _chosen(scores, M, rise)


def held_out_points(y):
    """Return (rows to learn from, rows held out) of labelled points; None where there are too few."""
    codes = np.unique(y, return_inverse=True)[1]
    order = np.random.default_rng(0).permutation(len(y))
    order = order[np.argsort(codes[order], kind="stable")]
    starts = np.searchsorted(codes[order], np.arange(codes.max() + 1))
    place = np.arange(len(y)) - starts[codes[order]]  # of a point among those of its class
    held = np.zeros(len(y), dtype=bool)
    held[order] = place % _HELD == _HELD - 1
    return (np.flatnonzero(~held), np.flatnonzero(held)) if held.sum() >= _LEAST else None


def held_out_comparisons(rows):
    """Return (comparisons to learn from, those of held-out anchors); None where there are too few."""
    anchors, codes = np.unique(rows[:, 0], return_inverse=True)
    held = (np.random.default_rng(0).permutation(len(anchors)) % _HELD == 0)[codes]
    enough = held.sum() >= _LEAST and not held.all()
    return (np.flatnonzero(~held), np.flatnonzero(held)) if enough else None


def _make(make):
    """Return the problem of a part; what is to be said is said of the fit on everything."""
    with _quiet():
        problem = make()
    problem.floor = max(problem.floor, _FLOOR * problem.triplets.total_weight * problem.loss(0.0))
    return problem


def _walk(problem, first, arguments, end, tell, thrifty):
    """Yield (number of the ratio, the rough solution there) from the top on; thrifty: until one is too dear."""
    top, before, spent = problem.lambda_max(), None, 0.0
    a_pass = problem.triplets.dim * (problem.triplets.n_pairs + problem.triplets.dim**2)

    def seen(state):
        nonlocal dear
        dear = thrifty and state.passes > max(_DEAR * spent, _PASSES, _WORK / a_pass)
        return tell(state) is True or dear

    for t in range(first, len(RATIOS) if top > 0 else first):
        dear = False
        left = {**arguments, "tol": max(arguments["tol"], _ROUGH), "screening": None}
        left["max_seconds"] = None if end is None else max(end - time.perf_counter(), 1e-3)
        with _quiet():
            before = solve(problem, RATIOS[t] * top, start=before, callback=seen, **left)
        if dear:
            return
        spent += before.passes
        yield t, before


def _stopped(scores, rise):
    """Have the last scores stopped rising, or can none rise further?"""
    still = len(scores) > _PATIENCE and max(scores[-_PATIENCE:]) <= max(scores[:-_PATIENCE]) + rise
    return still or max(scores) + rise > 1


def _chosen(scores, M, rise):
    seen = ~np.isnan(scores).all(axis=0)
    if not seen.any():
        return Choice(PLAIN)
    # Where a walk ended before others did, its last metric stands for those after it.
    filled = scores.copy()
    for t in range(1, filled.shape[1]):
        gone = np.isnan(filled[:, t])
        filled[gone, t] = filled[gone, t - 1]
    means = filled[:, seen]
    best = means[:, choose(means)].mean()
    column = int(np.argmax(np.nan_to_num(means.mean(axis=0), nan=-np.inf) >= best - rise))
    t = int(np.flatnonzero(seen)[column])
    return Choice(float(RATIOS[t]), RATIOS[seen], scores[:, seen], M.get(t))


def _late(end):
    return end is not None and time.perf_counter() >= end


@contextmanager
def _quiet():
    """Within: no warnings of a rough fit on a part."""
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, SmallClassWarning, NoAnchorWarning, DegenerateProblemWarning):
            warnings.simplefilter("ignore", category)
        yield
