"""How far each point, or each comparison, can move the metric at most.

The optimum of the whole lies in one ball, the optimum without a unit in another (`triscreen.path.without`): they are no
farther apart than the centres and both radii, |dA|/lam where the solution is exact. No problem is solved for that.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from triscreen._utils.progress import searching
from triscreen._utils.threads import check_time, single_threaded_blas
from triscreen.errors import interruptible
from triscreen.path.without import Without, norms, sharpened
from triscreen.problem.units import METRIC
from triscreen.triplets.leaving import LeavingPoints, leaving_each


@dataclass(frozen=True, eq=False)
class Influence:
    """Bounds of how far the optimal metric moves without each point, or each comparison, the largest first.

    Attributes
    ----------
    lam : float
    of : str
        "points" or "comparisons": what leaves.
    indices : int array
        Rows of X, or of the comparisons that were given.
    bounds : array
        |M - M without it| is at most this, in the Frobenius norm; M the optimum at lam.
    size : float
        |M|, to compare them with.

    References
    ----------
    docs/selection.md; ours.

    Examples
    --------
    >>> import triscreen as ts
    >>> X, y = [[0.0], [1.0], [3.0], [4.5], [5.5]], [0, 0, 1, 1, 1]
    >>> path = ts.solve_path(ts.Problem(X, ts.knn_triplets(X, y, k=1)), ratio=0.5)
    >>> who = path.influence(-1)
    >>> who.of, len(who), bool(who.bounds[0] >= who.bounds[-1])
    ('points', 5, True)
    """

    lam: float
    of: str
    indices: np.ndarray = field(repr=False)
    bounds: np.ndarray = field(repr=False)
    size: float

    def __len__(self):
        return len(self.indices)

    def __repr__(self):
        first = ", ".join(map(str, self.indices[:5].tolist()))
        return (
            f"<Influence: {len(self)} {self.of} at lambda {self.lam:.4g}, |M| = {self.size:.4g}; the most, up to "
            f"{self.bounds.max(initial=0.0):.3g}: {first}>"
        )


@interruptible
@single_threaded_blas()
def influence(path, t, problem):
    """See `Path.influence`."""
    leaving = leaving_each(problem.triplets)
    whole = Without(problem, sharpened(path, t, problem), leaving)
    ball = whole.end.ball(whole.lam, None if problem.prior is None else problem.prior.core)
    bounds = np.empty(leaving.n_units)
    with searching("who could move it most") as tell:
        for units in whole.blocks(np.arange(leaving.n_units)):
            check_time()
            centers, radii = whole.balls(units)
            bounds[units] = norms(centers - ball.center) * (1 + 1e-12) + radii + ball.radius
            tell((units[-1] + 1) / leaving.n_units)
    bounds = problem.units.out(bounds, METRIC)
    order = np.argsort(-bounds, kind="stable")
    of = "points" if isinstance(leaving, LeavingPoints) else "comparisons"
    size = float(problem.units.out(float(np.linalg.norm(whole.M)), METRIC))
    return Influence(float(path.lambdas[t]), of, order, bounds[order], size)
