"""What every solver keeps to, and what comes back.

A solver is an object with numbers for attributes and one method,

    run(engine, lam, evaluation, monitor) -> (engine, Evaluation)

that starts from an `Evaluation` (whose smoothing it keeps), calls ``monitor.saw(evaluation, step)`` after each
iteration and returns when that says True; otherwise it goes on with what ``monitor.refresh(engine, evaluation)``
returns, a smaller engine where screening has decided triplets. It counts its pair work by ``monitor.count(passes)``, a
whole evaluation as ``engine.share``, and says ``monitor.stop("stalled")`` before it returns where it can go no further.
It is run again where a smaller smoothing or another lambda is next; what it then wants to know of its last step size is
the ``step`` of the evaluation that it returned. An evaluation's gap costs an eigendecomposition when it is first asked
for; a solver that knows a lower bound of it may say so, ``monitor.saw(evaluation, step, at_least)``.

It declares what it needs: ``needs = ("triplets",)`` if it looks at triplets one by one, as "dual" does, so that it is
refused for sets that are never listed; nothing, if it has no such attribute. Nothing it claims is believed: the result
is certified again from M alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from triscreen._utils.display import html_table
from triscreen.problem import Problem
from triscreen.problem.engine import Engine, Evaluation
from triscreen.problem.gap import Gap


class Watch(Protocol):
    """The monitor, as a solver sees it.

    References
    ----------
    docs/engine.md; ours.

    Examples
    --------
    A solver that only looks whether a start is good enough:

    >>> import triscreen as ts
    >>> class Looks:
    ...     def run(self, engine, lam, now, monitor):
    ...         monitor.count(0.0)
    ...         if not monitor.saw(now, 1.0):
    ...             monitor.stop("stalled")
    ...         return engine, now
    >>> problem = ts.Problem([[0.0], [1.0], [3.0]], ts.given_triplets([[0, 1, 2]]))
    >>> ts.solve(problem, lam=1.0, solver=Looks(), start=ts.solve(problem, lam=1.0)).converged
    True
    """

    def saw(self, evaluation: Evaluation, step: float, at_least: float | None = None) -> bool:
        """Show an iteration; True: it is the last one."""

    def refresh(self, engine: Engine, evaluation: Evaluation) -> tuple[Engine, Evaluation]:
        """Return what to go on with."""

    def count(self, passes: float) -> None:
        """Count pair work."""

    def stop(self, reason: str) -> None:
        """Say why no further iteration makes sense."""


class Solver(Protocol):
    """What a solver is, for type checkers; nothing has to inherit from it. It may have ``needs``, too.

    References
    ----------
    docs/engine.md; CONTRIBUTING, "Add a solver"; ours.

    Examples
    --------
    Half of the way to M(alpha) in each iteration; what comes back is certified from M alone:

    >>> import triscreen as ts
    >>> from sklearn.datasets import load_iris
    >>> class Halfway:
    ...     def run(self, engine, lam, now, monitor):
    ...         while not monitor.saw(now, 0.5):
    ...             engine, now = monitor.refresh(engine, now)
    ...             there = engine.distances(now.dual_point.factor / lam**0.5)
    ...             M, dist = (now.M + now.projected(lam)) / 2, (now.dist + there) / 2
    ...             now = engine.evaluate(M, dist, lam, now.sums.smoothing)
    ...             monitor.count(engine.share)
    ...         return engine, now
    >>> X, y = load_iris(return_X_y=True)
    >>> problem = ts.Problem(X, ts.knn_triplets(X, y, k=3))
    >>> ts.solve(problem, lam=0.5 * problem.lambda_max(), solver=Halfway()).converged
    True
    """

    def run(self, engine: Engine, lam: float, now: Evaluation, monitor: Watch) -> tuple[Engine, Evaluation]:
        """Iterate from an evaluation until the monitor stops it."""


@dataclass(frozen=True)
class State(Gap):
    """What a callback sees after each iteration; returning True stops the solver.

    Attributes
    ----------
    lam, primal, gap, rel_gap, step, passes, seconds : float
    n_iter : int
    floor : float
        With a prior, what the gap is relative to at least.

    References
    ----------
    docs/engine.md; ours.

    Examples
    --------
    >>> import triscreen as ts
    >>> X, y = [[0.0], [1.0], [3.0], [4.5]], [0, 0, 1, 1]
    >>> seen = []
    >>> problem = ts.Problem(X, ts.knn_triplets(X, y, k=1))
    >>> sol = ts.solve(problem, lam=1.0, callback=lambda state: seen.append(state.n_iter))
    >>> seen == list(range(1, sol.n_iter + 1))
    True
    """

    lam: float
    n_iter: int
    primal: float
    gap: float
    step: float
    passes: float
    seconds: float
    floor: float = 0.0


@dataclass(frozen=True, eq=False)
class Solution(Gap):
    """A metric and the proof of how good it is.

    Attributes
    ----------
    lam : float
    M : array
        (d, d); for the diagonal cone the vector (d,).
    primal, dual, gap, rel_gap : float
        Exactly what ``problem.certificate(M, lam)`` returns (of a path: up to rounding, and for the hinge with the
        alphas that the path ended with; where nothing was evaluated (see ``passes``), bounds of them; and where there
        was no time left for that certificate, a larger but true gap); |M - M*|_F <= `radius`.
    tol : float
        The relative gap that was asked for.
    rounding : float
        Bound on what rounding may have hidden of the gap; tiny unless the data mix very different scales.
    converged : bool
        The gap, and its rounding, are at most tol |primal| (with a prior: or tol times the floor).
    stopped_by : str
        "converged", "max_iter", "max_seconds", "callback", "stalled", "rounding" or "interrupt"; "mixture": nothing
        was solved (`Path.at`). Where it is none of the first and the last, M is the iterate with the lowest objective
        (of equal ones, the one with the smallest gap).
    n_iter : int
    passes : float
        Pair work: distances of every pair count 1/2, weights of every pair into a matrix 1/2. The final certificate is
        not counted.
    seconds : float
    screening : list of dict
        What each sphere and rule decided: n_iter, sphere, rule, radius, L, R (newly decided), tried, undecided, pairs
        (of the engine at the time), seconds.
    smoothing : float
        Of the alphas that the solver ended with (for the smoothed hinge its gamma); a later solve may start from there.
    history : dict of arrays
        One entry for the start and one per iteration: n_iter, primal, gap, step, passes, seconds, undecided. A rough
        walk to a small lam comes before: it is counted, but not in here. With more than 100 features the gap of most
        iterations is not computed, but proven to be larger than tol: NaN.
    floor : float
        With a prior, what the gap is relative to at least: 1e-3 times the loss of M = 0. Zero without.

    References
    ----------
    Yoshida, Takeuchi, Karasuyama, KDD 2018, arXiv:1802.03923, section 2; what is certified over all triplets, and
    ``rounding``, are ours.

    Examples
    --------
    >>> import numpy as np
    >>> import triscreen as ts
    >>> X, y = [[0.0], [1.0], [3.0], [4.5]], [0, 0, 1, 1]
    >>> problem = ts.Problem(X, ts.knn_triplets(X, y, k=1))
    >>> rough, fine = ts.solve(problem, lam=1.0, tol=1e-2), ts.solve(problem, lam=1.0, tol=1e-10)
    >>> rough.converged, bool(np.linalg.norm(rough.M - fine.M) <= rough.radius + fine.radius)
    (True, True)
    """

    lam: float
    M: np.ndarray = field(repr=False)
    primal: float
    dual: float
    gap: float
    rounding: float
    tol: float
    stopped_by: str
    n_iter: int
    passes: float
    seconds: float
    history: dict[str, np.ndarray] = field(repr=False)
    screening: list[dict[str, Any]] = field(repr=False)
    smoothing: float = field(repr=False)
    floor: float = field(default=0.0, repr=False)

    @property
    def converged(self) -> bool:
        """Whether the relative gap is at most tol, and rounding cannot have hidden more than that."""
        return self.within(self.tol, self.rounding)

    @property
    def radius(self) -> float:
        """The optimal metric lies within this distance of M: sqrt(2 (gap + rounding) / lam)."""
        return float(np.sqrt(2 * (self.gap + self.rounding) / self.lam))

    def margins(self, problem: Problem | None = None) -> np.ndarray:
        """Return d(i, l)^2 - d(i, j)^2 under M for every triplet, in the order of ``problem.triplets.indices()``.

        Parameters
        ----------
        problem : Problem, optional
            By default the one that was solved; a solution from a file, or an estimator's, does not know it.

        Examples
        --------
        >>> import triscreen as ts
        >>> X = [[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [1.0, 2.1]]
        >>> problem = ts.Problem(X, ts.given_triplets([[0, 1, 2], [3, 2, 1]]))
        >>> sol = ts.solve(problem, lam=0.01)
        >>> sol.margins().round(2).tolist(), sol.zones().tolist()
        ([1.0, 1.1], [0, 2])
        """
        from triscreen.solvers.one_by_one import check_problem, margins

        return margins(check_problem(self._problem, problem), self.M)

    def alpha(self, problem: Problem | None = None) -> np.ndarray:
        """Return the dual variable of every triplet, between 0 and 1, by its margin and the smoothing of the solve."""
        short = 1.0 - self.margins(problem)
        return np.clip(short / self.smoothing, 0.0, 1.0) if self.smoothing > 0 else (short > 0).astype(float)

    def zones(self, problem: Problem | None = None) -> np.ndarray:
        """Return what is proven of every triplet at the optimum, which lies within `radius` of M.

        1 (L): its margin is below 1 - gamma, its alpha is 1. 2 (R): its margin is above 1, its alpha is 0, the optimum
        is the same without it. 0: the radius is too large to tell.
        """
        from triscreen.solvers.one_by_one import check_problem, zones

        return zones(check_problem(self._problem, problem), self.M, self.radius)

    _problem = None

    def knowing(self, problem: Problem) -> Solution:
        """Return this solution, with the problem that it solves, which is neither saved nor pickled."""
        object.__setattr__(self, "_problem", problem)
        return self

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "_problem"}

    def _repr_html_(self):
        """What a notebook shows."""
        said = f"{'Converged' if self.converged else 'Not converged'} after {self.n_iter} iterations, stopped by: "
        names = ("lambda", "objective", "relative gap", "asked for", "optimum within", "passes", "seconds")
        cells = (self.lam, self.primal, self.rel_gap, self.tol, self.radius, self.passes, self.seconds)
        return html_table(said + self.stopped_by, names, [[f"{cell:.4g}" for cell in cells]])
