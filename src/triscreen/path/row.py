"""One lambda of a path: its metric, its certificate, and what the same metric is worth at other lambdas."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from triscreen.problem.gap import Gap
from triscreen.problem.rounding import U
from triscreen.problem.rounding import size as norm
from triscreen.problem.units import FACTOR, LAMBDA, MATRIX, METRIC

# One number per lambda each; see `Row`.
NUMBERS = (
    "lam", "loss", "primal", "dual", "gap", "rounding", "error", "slack", "away", "along", "square", "size",
    "smoothing", "n_iter", "passes", "scanned", "share", "undecided", "seconds",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Row(Gap):
    """One lambda of a path.

    Attributes
    ----------
    lam, loss, primal, dual, gap, rounding : float
    error : float
        Bound of the error of A.
    slack, away, along, square, size : float
        With P = [A]_+ and E = M - P/lam: the part of the gap that does not depend on lambda (slack + <-[A]_-, M>),
        |E|^2, <E, P>, |P|^2, |M|^2. They give the gap of the same M and alpha for any other lambda. With a prior N the
        multiplier is kept: P = [A + lam N]_+ - lam N (which is A + G0 for G0 = -[A + lam N]_-), E = M - N - P/lam, and
        |M - N|^2 in place of |M|^2.
    smoothing : float
        Of the alphas.
    n_iter, passes, scanned, share, undecided, seconds : numbers
        Iterations; pair work; triplets looked at by rules and references, over all triplets; pairs of the problem that
        was solved, over all pairs; triplets of it that were not decided, over all triplets.
    stopped_by : str
    factor : array
        F with M = F F' in core coordinates, but in the user's units, like all else here.
    events : list of dict
        What each sphere and rule decided (see `Solution.screening`).
    floor, prior_error : float
        Of the prior, if there is one: see `Gap`, and the bound of its error.
    changes : tuple of (float, float)
        (lam, |P - P there|^2) of the lambdas that were solved just before: what two neighbours are worth together
        (`triscreen.path.joint`).
    pull : tuple or None
        P as it is inside, a bound of its error, and |A + lam N|: what makes it an end of balls without another pass.
        Kept with new paths as long as it is small, and never saved.
    """

    lam: float
    loss: float
    primal: float
    dual: float
    gap: float
    rounding: float
    error: float
    slack: float
    away: float
    along: float
    square: float
    size: float
    smoothing: float
    n_iter: int
    passes: float
    scanned: float
    share: float
    undecided: float
    seconds: float
    stopped_by: str
    factor: np.ndarray = field(repr=False)
    events: list = field(repr=False)
    floor: float = field(default=0.0, repr=False)
    prior_error: float = field(default=0.0, repr=False)
    changes: tuple = field(default=(), repr=False)
    pull: tuple | None = field(default=None, repr=False)

    @classmethod
    def of(cls, problem, lam, solved, keep=False, before=(), **work):
        """Make one from what lam (as it is inside) came to, a `Solved` by an evaluation, and what that took.

        before: (lambda, P there) of those solved just before.
        """
        evaluation, cone, units = solved.proof, problem.cone, problem.units
        M, point = evaluation.M, evaluation.dual_point
        away, P = M if problem.prior is None else M - problem.prior.core, pulled_by(problem, lam, point)
        size = float(np.vdot(away, away))
        rest, parts = M - point.plus / lam, getattr(evaluation, "gap_parts", None)
        if parts is None or evaluation.at != lam:
            parts = cone.gap_parts(M, point, lam)
        pull = None
        if keep:
            pulled = norm(evaluation.pull)
            of_N = 0.0 if problem.prior is None else lam * problem.prior.error
            error = float(solved.error) + 64 * problem.triplets.dim * U * pulled + of_N
            pull = P, error, pulled
        factor = cone.project(M).factor if evaluation.factor is None else evaluation.factor
        if factor.ndim == 2:  # columns of rounding size would only take room
            lengths = np.einsum("ij,ij->j", factor, factor)
            counts = lengths > 1e-15 * lengths.max(initial=0.0)
            factor = factor if counts.all() else factor[:, counts]
        return cls(
            lam=units.out(lam, LAMBDA),
            loss=evaluation.primal - 0.5 * lam * size,
            primal=evaluation.primal,
            dual=evaluation.dual,
            gap=evaluation.gap,
            rounding=float(solved.rounding),
            error=units.out(float(solved.error), MATRIX),
            slack=evaluation.slack + parts[0],
            away=units.out(parts[1], 2 * METRIC),
            along=float(np.vdot(rest, P)),
            square=units.out(float(np.vdot(P, P)), 2 * MATRIX),
            size=units.out(size, 2 * METRIC),
            smoothing=evaluation.sums.smoothing,
            factor=units.out(factor, FACTOR),
            changes=tuple(
                (units.out(other, LAMBDA), units.out(norm(P - there) ** 2, 2 * MATRIX)) for other, there in before
            ),
            pull=pull,
            **work,
            **of_prior(problem),
        )

    def _away_at(self, lam):
        """Return |M - P/lam|^2 for another lambda."""
        change = 1.0 / self.lam - 1.0 / lam
        return max(self.away + 2 * change * self.along + (change * np.sqrt(self.square)) ** 2, 0.0)

    def gap_at(self, lam):
        """Return the gap of this M and its alpha for another lambda: convex in lam."""
        return self.slack + 0.5 * lam * self._away_at(lam)

    def rounding_at(self, lam):
        """Return the bound of what rounding may hide of that gap (see `triscreen.problem.rounding`)."""
        error = self.error + (lam + self.lam) * self.prior_error
        more = np.sqrt(self._away_at(lam)) * error + (error / np.sqrt(2 * lam)) ** 2
        return self.rounding + more + 1e-13 * self.gap_at(lam)

    def primal_at(self, lam):
        """Return the objective of this M for another lambda."""
        return self.loss + 0.5 * lam * self.size

    def scale_at(self, lam):
        """Return what its gap for another lambda is relative to."""
        return max(abs(self.primal_at(lam)), self.floor)

    def reach(self, eps, lowest, highest):
        """Return the (smallest, largest) lambda for which the relative gap of this M is at most eps."""

        def proven(lam):
            return self.gap_at(lam) + self.rounding_at(lam) <= eps * self.scale_at(lam)

        if not proven(self.lam):
            return self.lam, self.lam
        return tuple(_last(proven, self.lam, end) for end in (lowest, highest))


def pulled_by(problem, lam, point):
    """Return P as it is inside, of the projection of A + lam N."""
    return point.plus if problem.prior is None else point.plus - lam * problem.prior.core


def of_prior(problem):
    """Return what rows of a problem know of its prior, as fields of a `Row`."""
    if problem.prior is None:
        return {}
    return {"floor": problem.floor, "prior_error": problem.units.out(problem.prior.error, METRIC)}


def _last(proven, inside, end):
    """Return the last point between inside and end that is proven; the proven ones are an interval."""
    if proven(end):
        return end
    low, high = np.log(inside), np.log(end)
    for _ in range(50):
        middle = 0.5 * (low + high)
        if proven(np.exp(middle)):
            low = middle
        else:
            high = middle
    found = float(np.exp(low))
    return found if proven(found) else inside
