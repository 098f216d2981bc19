"""Where the optimum goes when a point, or a comparison, leaves: balls from the solution of the whole.

With M0 and its alphas a over all triplets, and dA = A of what leaves - A of what comes in its place (alphas of M0's own
margins), the ball of one end (`triscreen.path.balls`) for the smaller problem needs nothing else: what stays keeps its
alphas, slack that leaves only makes the radius smaller, and G may be the old one. So

    C = C0 - dA/lam,    Q = (M0 + C)/2,    r^2 = (T0 + slack of what comes)/lam + |M0 - C|^2/4,

which is Q = M0 - dA/(2 lam), r = |dA|/(2 lam) if M0 is exact. No triplets but those that leave and come are looked at.

Rounding: dA is a sum over m pairs of weights that are sums of at most so many alphas as `Change.size` has; each term is
off by a few units of |delta| (|x_a| + |x_b|).
"""

from __future__ import annotations

import warnings

import numpy as np

from triscreen.errors import ConvergenceWarning
from triscreen.path.balls import End
from triscreen.problem.engine import Engine
from triscreen.problem.rounding import U
from triscreen.problem.units import LAMBDA
from triscreen.solvers import solve

# How much smaller the gap of the whole's solution is than those of the path, and the smallest one.
_SHARPER, _SHARPEST = 1e-3, 1e-10
_SUM = 1e-13
# Numbers of the matrices that are made at a time.
_BLOCK = 1 << 22


class Without:
    """The solution of a whole problem, and balls for what is left of it when units leave.

    Parameters
    ----------
    problem : Problem
    solution : Solution
    leaving : LeavingPoints or LeavingComparisons

    Attributes
    ----------
    engine : Engine
        Over all pairs that any of the smaller problems has.
    end : End
        The solution, evaluated over the whole; in core elements, like all else here.
    """

    def __init__(self, problem, solution, leaving):
        self.problem, self.leaving, self.smoothing = problem, leaving, solution.smoothing
        self.lam = problem.units.into(solution.lam, LAMBDA)
        self.flat = problem.cone.name == "diagonal"
        self.engine = problem
        if leaving.triplets is not problem.triplets:
            self.engine = Engine(leaving.triplets, problem.loss, problem.cone, problem.threads)
            for name in ("units", "prior", "floor", "point_error"):
                setattr(self.engine, name, getattr(problem, name))
        projection = problem.cone.project(problem.to_core(solution.M)[0])
        self.factor, dist = projection.factor, self.engine.distances(projection.factor)
        self.evaluation = self.engine.evaluate(
            projection.plus, dist, self.lam, self.smoothing, leaving.base(dist, self.smoothing), factor=self.factor
        )
        self.end = End.at(self.engine, self.evaluation, self.lam)

    @property
    def M(self):
        """The solution."""
        return self.end.M

    def blocks(self, units):
        """Cut units into parts whose matrices fit into some megabytes."""
        step = max(1, _BLOCK // self.M.size)
        return (units[start : start + step] for start in range(0, len(units), step))

    def change(self, units):
        """Return the `Change` of some units at the solution, and bounds of the errors of its A."""
        change = self.leaving.changes(units, self.evaluation.dist, self.smoothing, self.flat)
        dim, longest = self.leaving.triplets.dim, self.leaving.triplets.most_triplets_at_a_pair()
        return change, (change.n_pairs + 4 * longest + 8 * dim + 4 * self.engine.point_error + 64) * U * change.size

    def balls(self, units):
        """Return (centres, radii) of balls that hold the optimum without each of some units."""
        end, lam = self.end, self.lam
        change, error = self.change(units)
        C, dC = end.lagrangian(lam, None if self.problem.prior is None else self.problem.prior.core)
        C, dC = C - change.A / lam, dC + error / lam
        slack = end.slack + (0.0 if self.problem.loss.gamma > 0 else self.smoothing) * change.spread * (1 + 1e-9)
        return ball_of(lam, end.M, C, slack, end.dM, dC)


def ball_of(lam, M, C, slack, dM, dC):
    """Return (centres, radii) of balls of one end; C: a stack of elements; dM, dC: bounds of errors of M and C."""
    root = np.sqrt(slack / lam + 0.25 * (norms(M - C) * (1 + _SUM) + dM + dC) ** 2) * (1 + _SUM)
    Q = 0.5 * (M + C)
    return Q, root + 0.5 * (dM + dC) + 64 * C.shape[-1] * U * (norms(Q) + root)


def norms(stack):
    """Return the norm of every element of a stack."""
    flat = stack.reshape(len(stack), -1)
    return np.sqrt(np.einsum("ij,ij->i", flat, flat))


def sharpened(path, t, problem):
    """Return the solution at the t-th lambda of a path, to a gap that is far smaller: balls begin there."""
    tol = max(_SHARPEST, _SHARPER * path.tol)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # balls have the gap that was reached
        return solve(problem, float(path.lambdas[t]), tol=min(tol, path.tol), start=path[t])
