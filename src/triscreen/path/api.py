"""All lambdas: the whole path, certified, interrupted and resumed as you like."""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

from numpy.typing import ArrayLike

from triscreen._utils.checkpoint import Checkpoint
from triscreen._utils.progress import Stage, progress
from triscreen._utils.threads import deadline, single_threaded_blas
from triscreen._utils.validation import as_count, as_positive
from triscreen.errors import Interrupted, OutOfTime, convergence_warning, interruptible
from triscreen.path.checkpoint import entry_of, restore, state_of, take_up
from triscreen.path.grid import Grid, GuaranteedGrid
from triscreen.path.identity import identity_of
from triscreen.path.result import Path
from triscreen.path.walk import Walk
from triscreen.problem import Problem
from triscreen.problem.gap import Gap
from triscreen.problem.units import LAMBDA
from triscreen.screening import Screening
from triscreen.solvers.api import MAX_ITER, advice, check_arguments
from triscreen.solvers.contract import Solver
from triscreen.solvers.monitor import wants_stop

_log = logging.getLogger(__name__)
# The fastest choice measured (benchmarks/path.py): the working set alone; dynamic screening where a solve is long.
AUTO = Screening("mid", every=30, at_start=False, ranges=False, active_set=True)
# The same, and what is irrelevant is told: beforehand by ranges, and by tubes however small a problem is.
TOLD = replace(AUTO, ranges=True)


@dataclass(frozen=True)
class PathState(Gap):
    """What a callback sees after each lambda; returning True ends the path there.

    Attributes
    ----------
    lam, loss, primal, gap, rel_gap, passes, seconds, screening_rate : float
        Of this lambda.
    n_lambdas : int
        Done so far.
    total : int or None
        How many there will be, if that is known.
    components : callable
        ``components()`` returns L with M = L'L at this lambda, as `Path.components` does.
    floor : float
        With a prior, what the gap is relative to at least.

    References
    ----------
    docs/path.md; ours.

    Examples
    --------
    >>> import triscreen as ts
    >>> X, y = [[0.0], [1.0], [3.0], [4.5]], [0, 0, 1, 1]
    >>> problem = ts.Problem(X, ts.knn_triplets(X, y, k=1))
    >>> len(ts.solve_path(problem, callback=lambda state: state.n_lambdas == 4))
    4
    """

    lam: float
    loss: float
    primal: float
    gap: float
    passes: float
    seconds: float
    screening_rate: float
    n_lambdas: int
    total: int | None
    components: Callable = field(repr=False)
    floor: float = field(default=0.0, repr=False)  # what the gap is relative to at least


@interruptible
@single_threaded_blas()
def solve_path(
    problem: Problem,
    lambdas: ArrayLike | None = None,
    lambda_max: float | None = None,
    ratio: float = 0.9,
    tol: float = 1e-6,
    screening: str | Screening | None = "auto",
    solver: str | Solver = "auto",
    guarantee: float | None = None,
    n_lambdas: int | None = None,
    max_iter: int | None = None,
    max_seconds: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    callback: Callable[[PathState], object] | None = None,
) -> Path:
    """Compute the optimal metrics along a whole path of lambdas, each with a certificate over all triplets.

    Parameters
    ----------
    problem : Problem
        What is solved for every lambda.
    lambdas : array, optional
        Falling. By default the path starts at ``lambda_max`` and goes down by ``ratio`` until the loss settles: the
        paper's rule (the loss falls by less than 1 % of itself per unit of relative change of lambda), once it is below
        90 % of its first value; or until the loss is zero, or lambda has come down to lambda_max * 1e-8. With a prior
        it starts there, and the rule holds once the metric has moved away by a tenth of the prior and the loss is below
        90 % of that of M = 0.
    lambda_max : float, optional
        By default `Problem.lambda_max`.
    ratio : float
        0.9, or 0.99 for a dense path. Refused beside ``lambdas`` and ``guarantee``, which choose the lambdas.
    tol : float
        Relative gap of every solution.
    screening : "auto", None or Screening
        What saves work, never the answer. "auto": the working set of `Screening.active_set` where it is likely to save
        more than it takes (small problems do without), and the sphere "mid" every 30 iterations where a lambda takes so
        many; the fastest choice measured.
    solver : str or object
        As for `solve`.
    guarantee : float, optional
        Choose the lambdas such that the relative gap is at most this for *every* lambda between the first and the last
        (`Path.at` gives the metric); larger than tol. Where ``n_lambdas`` or ``max_seconds`` end the path early, holes
        may be left: `Path.at` says so by its gap.
    n_lambdas, max_iter, max_seconds : optional
        End after so many lambdas; iterations for one lambda at most; seconds for the whole path.
    checkpoint : path, optional
        A folder. After each lambda all that is needed to go on is there; the same call goes on where a killed run
        stopped, to the same bits.
    callback : callable, optional
        ``callback(state)`` sees a `PathState` after every lambda; returning True ends the path.

    Returns
    -------
    Path
        A `ConvergenceWarning` says how many lambdas did not reach tol, if any.

    Raises
    ------
    Interrupted
        On Ctrl-C; its ``result`` is the path so far.

    References
    ----------
    Yoshida, Takeuchi, Karasuyama, KDD 2018, arXiv:1802.03923, section 5 (how lambda falls, when to stop); tubes, the
    prediction and the guarantee are ours (docs/path.md).

    Examples
    --------
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> problem = ts.Problem((X - X.mean(0)) / X.std(0), ts.knn_triplets(X, y, k=5))
    >>> path = ts.solve_path(problem, ratio=0.8, n_lambdas=20)
    >>> len(path), bool((path.rel_gaps <= 1e-6).all())
    (20, True)
    """
    solver_object, screening_object = check_arguments(problem, solver, screening, AUTO, callback)
    tol = as_positive(tol, "tol")
    max_iter = as_count(max_iter, "max_iter", none="the default") or MAX_ITER
    max_seconds = as_positive(max_seconds, "max_seconds", none="no limit")
    begin = time.perf_counter()
    try:
        with deadline(max_seconds):
            if guarantee is None:
                grid = Grid(problem, lambdas, lambda_max, ratio, n_lambdas, tol)
            else:
                grid = GuaranteedGrid(problem, lambdas, lambda_max, ratio, guarantee, n_lambdas, tol)
    except OutOfTime:
        raise OutOfTime(f"max_seconds={max_seconds:g}: it was over before lambda_max was known; allow more") from None
    problem.check_path(grid.most)
    frugal = isinstance(screening, str)  # "auto"
    walk = Walk(problem, solver_object, screening_object, tol, max_iter, frugal)
    rows, ended = [], None
    opened = nullcontext()
    if checkpoint is not None:
        known_by = (problem, grid, tol, max_iter, solver_object, screening_object)
        opened = Checkpoint(
            checkpoint,
            identity_of(*known_by),
            earlier=lambda: identity_of(*known_by, version=1),
            accept=lambda found: take_up(found, checkpoint, problem, grid),
        )
    try:
        with opened as store, progress("path", grid.most) as show:
            if store is not None:
                rows, state = store.accepted
                if state is not None:
                    restore(walk, state, checkpoint)
            if rows:
                show(Stage(kept=len(rows) - 1))
                show(_state(problem, rows, grid))
            ended = grid.ends(rows) if rows else None
            while ended is None:
                lam = grid.next(rows)
                left = None if max_seconds is None else max_seconds - (time.perf_counter() - begin)
                if left is not None and left <= 0 and rows:
                    ended = "max_seconds"
                    break
                inside, ahead = (problem.units.into(value, LAMBDA) for value in (lam, grid.ahead(lam, rows)))
                try:
                    with deadline(left):
                        row = walk.step(inside, ahead, left, rows)
                except OutOfTime:
                    ended = "max_seconds"
                    break
                if row.stopped_by == "max_seconds":
                    rows = rows or [row]  # better than nothing, but not to go on from
                    ended = "max_seconds"
                    break
                rows.append(row)
                if store is not None:
                    store.append(*entry_of(row), state=state_of(walk))
                ended = grid.ends(rows)
                seen = _state(problem, rows, grid)
                show(seen)
                _log.debug("lambda %d: %.4g, relative gap %.2g, %.1f%% left out, %.3g s", seen.n_lambdas, lam,
                           seen.rel_gap, 100 * seen.screening_rate, seen.seconds)  # fmt: skip
                if callback is not None and wants_stop(callback(seen)):
                    ended = ended or "callback"
        path = _path(problem, rows, tol, guarantee, ended)
        _log.debug("the path ends after %d lambdas: %s", len(path), ended)
        if not path.converged.all():
            missed = [sol for sol in path if not sol.converged]
            worst = max(missed, key=lambda sol: max(sol.gap, sol.rounding) / sol.scale)
            warnings.warn(
                f"{len(missed)} of {len(path)} lambdas did not reach the relative gap {tol:.2g}; the worst has "
                f"{worst.rel_gap:.2g} at lam={worst.lam:.6g} (stopped by {worst.stopped_by}): "
                f"{advice(worst, screening_object)}",
                convergence_warning(),
                stacklevel=4,
            )
    except KeyboardInterrupt:
        path = _path(problem, rows, tol, guarantee, "interrupt")
        raise Interrupted(
            f"interrupted after {len(rows)} lambdas; the path so far is the .result of this exception"
            + (" and in the checkpoint" if checkpoint is not None else ""),
            path,
        ) from None
    return path


def _path(problem, rows, tol, guarantee, stopped_by):
    return Path(
        rows,
        cone=problem.cone.name,
        basis=problem.basis,
        outside=None if problem.prior is None else problem.prior.outside,
        n_features=problem.n_features,
        n_triplets=problem.triplets.n_triplets,
        tol=tol,
        guarantee=guarantee,
        stopped_by=stopped_by,
        problem=problem,
    )


def _state(problem, rows, grid):
    row, names = rows[-1], ("lam", "loss", "primal", "gap", "passes", "seconds", "floor")
    told = {name: getattr(row, name) for name in names}
    return PathState(**told, screening_rate=1 - row.undecided, n_lambdas=len(rows), total=grid.total,
                     components=lambda: _path(problem, [row], 0.0, None, None).components(0))  # fmt: skip
