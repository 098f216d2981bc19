"""What to screen with: the user's switches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from triscreen._utils.validation import as_choice, as_count, as_flag, shortened
from triscreen.errors import InputError
from triscreen.problem.cones import Cone
from triscreen.problem.engine import Engine, Evaluation
from triscreen.screening.rules import RULES, Region
from triscreen.screening.spheres import BOUNDS, Sphere


class OwnSphere(Protocol):
    """An own sphere, for type checkers: from an evaluation to a ball that holds the optimum for lam.

    References
    ----------
    docs/screening.md, "An own sphere, an own rule"; ours.

    Examples
    --------
    The duality gap bound (KDD 2018, Theorem 3.5), from what an `Evaluation` knows:

    >>> import triscreen as ts
    >>> from sklearn.datasets import load_iris
    >>> def gap_ball(cone, evaluation, lam):
    ...     gap = evaluation.slack + cone.gap(evaluation.M, evaluation.dual_point, lam)
    ...     return ts.Sphere(evaluation.M, (2 * gap / lam) ** 0.5, "gap")
    >>> X, y = load_iris(return_X_y=True)
    >>> problem = ts.Problem(X, ts.knn_triplets(X, y, k=3))
    >>> sol = ts.solve(problem, 0.01 * problem.lambda_max(), screening=ts.Screening(gap_ball, every=1))
    >>> sol.converged, sum(event["L"] + event["R"] for event in sol.screening) > 0
    (True, True)
    """

    def __call__(self, cone: Cone, evaluation: Evaluation, lam: float, /) -> Sphere:
        """Return the ball, in the units of the user."""


class OwnRule(Protocol):
    """An own rule, for type checkers: writes 1 (zone L) or 2 (zone R) where the zone is 0.

    References
    ----------
    docs/screening.md, "An own sphere, an own rule"; ours.

    Examples
    --------
    Of weaker reach than the sphere rule: u'Mu - v'Mv <= u'Mu, whatever v is.

    >>> import numpy as np
    >>> import triscreen as ts
    >>> def near_negatives(engine, region, norms, zones):
    ...     squares = engine.distances(np.eye(engine.triplets.dim)) * (1 + 1e-12)
    ...     most = region.values + region.errors + region.radius * squares
    ...     negative = engine.triplets.pair_numbers(zones == 0)[1]
    ...     zones[np.flatnonzero(zones == 0)[most[negative] < 1 - engine.loss.gamma]] = 1
    >>> problem = ts.Problem([[0.0], [1.0], [3.0]], ts.given_triplets([[0, 1, 2]]))
    >>> ts.solve(problem, 1.0, screening=ts.Screening("dgb", rule=near_negatives)).converged
    True
    """

    def __call__(self, engine: Engine, region: Region, norms: np.ndarray, zones: np.ndarray, /) -> None:
        """Decide what the sphere rule left."""


@dataclass(frozen=True)
class Screening:
    """Which spheres and which rule prove triplets irrelevant, and how often.

    Parameters
    ----------
    bounds : sequence of str or callable
        Spheres, tried one after the other: "gb", "pgb", "dgb", "cdgb", "rpb", "rrpb", "mid", or an own function
        ``sphere(cone, evaluation, lam)`` that returns a `Sphere`. "rpb" and "rrpb" look from another lambda and are
        used once, when `solve` starts from a solution for it, and not at all otherwise ("rpb" believes that solution to
        be exact: for experiments only). By default ("rrpb", "mid"); the paper's choice is ("rrpb", "pgb").
    rule : str or callable
        "sphere", "linear" (and the half-space that the last projection gave), "semidefinite" (and the cone), or an own
        function ``rule(engine, region, norms, zones)`` that writes zones for triplets the sphere rule left.
    every : int
        Iterations between two screenings within one lambda.
    at_start : bool
        Screen before the first iteration too (where the start is good, and many iterations are ahead).
    ranges : bool
        For paths: leave out the triplets whose zone RRPB proves for every lambda of a stretch of the path.
    active_set : bool or "loss"
        For paths: fix the triplets that keep their zone in a tube of metrics around the way ahead, zero on one side and
        linear on the other, and prove the solution over the rest (`triscreen.screening.working_set`). "loss": the
        paper's set, triplets of zero loss are left out until they have one. Neither has an effect in `solve`.
    include_solution : bool
        Enlarge every sphere so that it also holds the approximate solution that will be returned. Then the gap of the
        reduced problem is the gap over all triplets, and `solve` reports it without another pass over them (which it
        takes all the same where a sphere or the rule is an own one).

    References
    ----------
    Yoshida, Takeuchi, Karasuyama, KDD 2018, arXiv:1802.03923, sections 3 and 4, appendix K. "mid" and the tubes of
    ``active_set=True`` are ours (docs/screening.md).

    Examples
    --------
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> X = (X - X.mean(0)) / X.std(0)
    >>> problem = ts.Problem(X, ts.knn_triplets(X, y, k=10))
    >>> sol = ts.solve(problem, 0.01 * problem.lambda_max(), screening=ts.Screening(("pgb", "mid"), every=5))
    >>> sol.converged, len(sol.screening) > 0
    (True, True)
    """

    bounds: str | OwnSphere | Sequence[str | OwnSphere] = ("rrpb", "mid")
    rule: str | OwnRule = "sphere"
    every: int = 10
    at_start: bool = True
    ranges: bool = True
    active_set: bool | str = True
    include_solution: bool = False

    def __post_init__(self):
        bounds = self.bounds
        if not isinstance(bounds, tuple | list):
            bounds = (bounds,)
        bounds = tuple(bounds)
        for bound in bounds:
            if not callable(bound):
                as_choice(bound, "bounds", BOUNDS)
        if not bounds:
            raise InputError("bounds=(): name at least one sphere, or pass screening=None")
        object.__setattr__(self, "bounds", bounds)
        if not callable(self.rule):
            as_choice(self.rule, "rule", RULES)
        object.__setattr__(self, "every", as_count(self.every, "every"))
        for name in ("at_start", "ranges", "include_solution"):
            object.__setattr__(self, name, as_flag(getattr(self, name), name))
        if not (isinstance(self.active_set, str) and self.active_set == "loss"):
            if not isinstance(self.active_set, bool | np.bool_):
                raise InputError(f"active_set={shortened(self.active_set)}: active_set must be True, False or 'loss'")
            object.__setattr__(self, "active_set", bool(self.active_set))

    @property
    def own_parts(self) -> bool:
        """Is a sphere or the rule an own one? What these decide is not believed at the end."""
        return any(map(callable, (*self.bounds, self.rule)))
