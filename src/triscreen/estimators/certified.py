"""A choice of lam / lambda_max that is proven: over the folds, no ratio of the range is better by more than eps."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from triscreen.errors import Interrupted
from triscreen.selection.bounds import votes_over
from triscreen.selection.journal import Journal
from triscreen.selection.search import Search
from triscreen.selection.sides import Side

# Where the search begins: the ratio of one lambda to the next on the paths of the folds, and their gap.
_STEP, TOL = 0.88, 1e-5
# Where little can be decided at all, so many further solves a fold are enough.
_MOST = 100


@dataclass(frozen=True, eq=False)
class Certified:
    """What was proven about the mean error of the folds.

    Attributes
    ----------
    ratio, error, gap : float
        The best ratio (inf: the start alone), an upper bound of its error, and by how much another may be better.
    errors : array
        Of each fold there; upper bounds.
    possible : list of (float, float)
    ratios, lower, upper : arrays
        Falling, and bounds between one and the next.
    n_solved : int
        Lambdas that were solved, on the paths and after them.
    stopped_by : str
    """

    ratio: float
    error: float
    gap: float
    errors: np.ndarray = field(repr=False)
    possible: list
    ratios: np.ndarray = field(repr=False)
    lower: np.ndarray = field(repr=False)
    upper: np.ndarray = field(repr=False)
    n_solved: int
    stopped_by: str


def dense(ratios):
    """Return falling ratios from the first to the last of these, close enough to begin a search with."""
    steps = int(np.ceil(np.log(ratios[0] / ratios[-1]) / -np.log(_STEP)))
    return np.geomspace(ratios[0], ratios[-1], 1 + steps) if steps else ratios[:1]


def certified_choice(eps, ratios, paths, data, k, scales, alone, seconds=None, checkpoint=None):
    """Return what is `Certified`.

    Parameters
    ----------
    eps : float
    ratios : array
        Of the lambdas of all paths; one that has fewer was ended by time, and nothing is known beyond.
    paths : list of (Path, Problem)
        One a fold.
    data : list of tuples
        (X, y, X_test, y_test) of each fold.
    k : int
        Neighbours that vote.
    scales : list of float
        lambda of the ratio 1.
    alone : array
        The errors of the folds without any learning.
    seconds : float, optional
    checkpoint : path, optional
        Folder for the steps of the search; not used where a path was ended by time: the next run has a longer one.
    """
    reached = min(len(path) for path, _ in paths)
    known, sides = ratios[:reached], []
    for (path, problem), scale, held_out in zip(paths, scales, data, strict=True):
        path = path._of(path._rows[:reached], problem)
        sides.append(Side(votes_over(path, problem, *held_out, min(k, len(held_out[0]))), known, scale))
    with Journal(checkpoint if reached == len(ratios) else None, sides) as journal:
        search = Search(sides, eps, journal)
        search.offer(np.inf, float(np.mean(alone)))
        try:
            stopped = search.run(seconds, _MOST * len(sides))
        except Interrupted as err:
            raise Interrupted(str(err), _certified(search, ratios, paths, alone, "interrupt")) from None
    return _certified(search, ratios, paths, alone, stopped)


def _certified(search, ratios, paths, alone, stopped):
    sides, ratio, reached = search.sides, search.key, len(search.sides[0].path)
    errors = alone if ratio == np.inf else np.array([side.upper_at(ratio) for side in sides])
    keys, lower, upper = search.curve()
    possible, gap = search.possible(), search.gap()
    if reached < len(ratios):
        stopped, gap = "max_seconds", search.error
        possible = [*possible, (float(ratios[reached - 1]), float(ratios[-1]))]
    solved = sum(len(path) for path, _ in paths) + search.n_solved
    return Certified(ratio, search.error, gap, errors, possible, keys, lower, upper, solved, stopped)
