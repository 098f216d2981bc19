"""One evaluation, on the coordinates that solvers work in: distances, sweep, assemble, project.

An engine is a problem with all its triplets, or a smaller one with the same optimum in which some triplets are *fixed*:
those proven to lie in the linear part of the loss stand in a constant matrix and a constant, those proven to have zero
loss are gone.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from triscreen._utils.lazy import cached_property
from triscreen._utils.threads import Threads, chunk_bounds
from triscreen.problem.cones import Projection
from triscreen.problem.gap import Gap
from triscreen.problem.rounding import Rounding, trace
from triscreen.problem.units import MATRIX, METRIC, POINT, STEP, Units
from triscreen.triplets import Sums

_NORM_CHUNK = 1 << 18
_LATER = ("dual_point", "dual", "gap", "gap_parts")


@dataclass(frozen=True, eq=False)
class Evaluation(Gap):
    """All that one evaluation at a core M tells, for alpha = clip((1 - margin) / smoothing, 0, 1).

    One that an engine makes has no ``dual_point``, ``dual`` and ``gap`` until somebody asks for one of them: they take
    an eigendecomposition, and most iterations of a solver do without. With them come its ``gap_parts`` (see `Cone`).

    Attributes
    ----------
    M, dist : arrays
        Where, and the pair distances there.
    sums : Sums
    A : array
        sum_t w_t alpha_t H_t.
    pull : array
        A + lam N, or A without a prior N: the smoothed objective has the gradient lam M - pull.
    dual_point : Projection
        [pull]_+, from which M(alpha) = [pull]_+ / lam.
    objective : float
        The smoothed problem's objective, which solvers descend on (for a smoothed hinge: the primal).
    primal, dual, gap : float
        Of the problem itself.
    slack : float
        The part of the gap that the smoothing costs (zero for a smoothed hinge).
    weights : array or None
        The pair weights that A was made of, if it was made here.
    step : float
        The size of the gradient step to go on with from here, where a solver has found one (inf: none has).
    at : float
        The lambda that the gap is for, if it is nothing but what the engine says of these M and A (else NaN).
    floor : float
        See `Gap`.
    factor : array or None
        F with M = F F', where it is known.

    References
    ----------
    KDD 2018, primal and dual; docs/maths.md, docs/engine.md.

    Examples
    --------
    What an own sphere is given:

    >>> import triscreen as ts
    >>> seen = []
    >>> def ball(cone, evaluation, lam):
    ...     seen.append(evaluation.primal >= evaluation.dual)
    ...     gap = evaluation.slack + cone.gap(evaluation.M, evaluation.dual_point, lam)
    ...     return ts.Sphere(evaluation.projected(lam), (2 * gap / lam) ** 0.5, "around M(alpha)")
    >>> problem = ts.Problem([[0.0], [1.0], [3.0]], ts.given_triplets([[0, 1, 2]]))
    >>> sol = ts.solve(problem, 1.0, screening=ts.Screening(ball, every=1))
    >>> bool(seen) and all(seen)
    True
    """

    M: np.ndarray
    dist: np.ndarray = field(repr=False)
    sums: Sums
    A: np.ndarray = field(repr=False)
    pull: np.ndarray = field(repr=False)
    dual_point: Projection = field(repr=False)
    objective: float
    primal: float
    dual: float
    gap: float
    slack: float
    weights: np.ndarray | None = field(default=None, repr=False)
    step: float = np.inf
    floor: float = 0.0
    factor: np.ndarray | None = field(default=None, repr=False)
    at: float = np.nan

    @classmethod
    def without_dual(cls, later: Callable[[], tuple], **known: Any) -> Evaluation:
        """Return one whose dual point, dual and gap are what ``later()`` returns, when somebody asks."""
        made = object.__new__(cls)
        vars(made).update(known, _later=later)
        return made

    def __getattr__(self, name):  # of what is not there yet
        if name not in _LATER or "_later" not in vars(self):
            raise AttributeError(f"'Evaluation' object has no attribute {name!r}")
        vars(self).update(zip(_LATER, self._later(), strict=True))
        return vars(self)[name]

    def going_on(self, step: float) -> Evaluation:
        """Return it with the size of the gradient step to go on with."""
        made = object.__new__(type(self))
        vars(made).update(vars(self), step=step)
        return made

    def gradient(self, lam: float) -> np.ndarray:
        """Return the gradient of the smoothed objective, lam M - pull."""
        return lam * self.M - self.pull

    def target(self, lam: float) -> np.ndarray:
        """Return pull/lam (A/lam without a prior): the metric where the gradient vanishes, in the cone or not."""
        return self.pull / lam

    def projected(self, lam: float) -> np.ndarray:
        """Return M(alpha) = [pull]_+ / lam, the target projected onto the cone."""
        return self.dual_point.plus / lam

    def out_of(self, units: Units) -> Evaluation:
        """Return it in the units of the user; distances, sums and objectives are the same there."""
        if not units.exponent:
            return self
        values, vectors = self.dual_point.negative
        plus, factor = units.out(self.dual_point.plus, MATRIX), units.out(self.dual_point.factor, POINT)
        point = Projection(plus, factor, (units.out(values, MATRIX), vectors))
        matrices = {"A": units.out(self.A, MATRIX), "pull": units.out(self.pull, MATRIX)}
        M, step = units.out(self.M, METRIC), units.out(self.step, STEP)
        return replace(self, M=M, dual_point=point, step=step, factor=None, at=np.nan, **matrices)


class Engine:
    """Triplets with their points, loss and cone; every method takes and returns core elements of the cone.

    A `Problem` is one; own rules and solvers are given one, which may have fewer triplets. What they use of it:
    ``distances(F)``, |F'(x_a - x_b)|^2 of every pair; ``evaluate(M, dist, lam, smoothing)``, the `Evaluation` at M with
    its pair distances; ``triplets``, ``loss``, ``cone``; and ``share``, what an evaluation counts as a pass.

    Parameters
    ----------
    triplets : TripletSet
        With its points.
    loss, cone, threads :
        Those of the problem.
    linear_matrix : array or None
        sum of w_t H_t over the triplets that are fixed in the linear part.
    linear_weight : float
        Their weight.
    share : float
        Pairs of this engine over pairs of the whole problem: what one evaluation counts as a pass.

    References
    ----------
    KDD 2018, arXiv:1802.03923, section 2; pairs in place of triplets are ours (docs/engine.md, docs/architecture.md).

    Examples
    --------
    >>> import numpy as np
    >>> import triscreen as ts
    >>> problem = ts.Problem([[0.0], [1.0], [3.0]], ts.given_triplets([[0, 1, 2]]))
    >>> dist = problem.distances(np.eye(1))  # of the pairs (0, 1) and (0, 2)
    >>> sorted(dist.tolist())
    [1.0, 9.0]
    >>> now = problem.evaluate(np.eye(1), dist, 1.0, problem.loss.gamma)
    >>> bool(now.primal >= now.dual)
    True
    """

    point_error = 4  # the points are exact to so many units of rounding; see triscreen.problem.rounding
    units = Units()
    prior = None  # a `Prior`: what the regulariser pulls to, if not to zero
    floor = 0.0  # what a gap is relative to at least

    def __init__(self, triplets, loss, cone, threads, linear_matrix=None, linear_weight=0.0, share=1.0):
        self.triplets, self.loss, self.cone, self.threads = triplets, loss, cone, threads
        self.linear_matrix, self.linear_weight, self.share = linear_matrix, linear_weight, share

    @property
    def shape(self):
        """Shape of a core element of the cone."""
        return self.cone.shape(self.triplets.dim)

    def distances(self, factor):
        """Pair distances under F F' (half a pass)."""
        return self.triplets.distances_under(self.cone, factor, self.threads)

    def sweep(self, dist, smoothing):
        """Loss and dual sums over the triplets, and pair weights."""
        return self.triplets.sweep(dist, smoothing, self.threads)

    def assemble(self, pair_weights):
        """Sum over pairs of c_p delta_p delta_p' (half a pass)."""
        return self.cone.assemble(self.triplets, pair_weights, self.threads)

    def objective(self, M, lam, sums):
        """Return the smoothed objective at M, where the sweep gave these sums."""
        return sums.loss + self._linear_loss(M) + self.penalty(M, lam)

    def penalty(self, M, lam):
        """Return the regulariser, (lam/2) |M - N|^2."""
        away = M if self.prior is None else M - self.prior.core
        return 0.5 * lam * float(np.vdot(away, away))

    def pull(self, A, lam):
        """Return A + lam N."""
        return A if self.prior is None else A + lam * self.prior.core

    def slope(self, M, step, lam, pair_weights, dist_step):
        """Return the derivative of the smoothed objective at M along a step under which pair distances change so."""
        fixed = 0.0 if self.linear_matrix is None else float(np.vdot(self.linear_matrix, step))
        away = M if self.prior is None else M - self.prior.core
        return lam * float(np.vdot(away, step)) - self.triplets.inner(pair_weights, dist_step, self.cone) - fixed

    def evaluate(self, M, dist, lam, smoothing, swept=None, A=None, factor=None):
        """Return the `Evaluation` at a core M whose pair distances (and perhaps sweep, A, and factor) are known."""
        sums, pair_weights = self.sweep(dist, smoothing) if swept is None else swept
        if A is None:
            A = self.assemble(pair_weights)
            if self.linear_matrix is not None:
                A = A + self.linear_matrix
        pull, loss = self.pull(A, lam), self.loss
        slack, penalty, linear = loss.slack(sums), self.penalty(M, lam), self._linear_loss(M)

        def later():
            projection = self.cone.project(pull)
            dual_term = loss.dual_term(sums) + (1 - 0.5 * loss.gamma) * self.linear_weight
            cut, away = self.cone.gap_parts(M, projection, lam)
            gap = slack + (cut + 0.5 * lam * away)
            return projection, dual_term - self.dual_penalty(projection, lam), gap, (cut, away)

        return Evaluation.without_dual(
            later,
            M=M,
            dist=dist,
            sums=sums,
            A=A,
            pull=pull,
            objective=sums.loss + linear + penalty,
            primal=loss.value(sums) + linear + penalty,
            slack=slack,
            weights=pair_weights,
            step=np.inf,
            floor=self.floor,
            factor=factor,
            at=lam,
        )

    def dual_penalty(self, projection, lam):
        """Return (lam/2) <[B]_+ - N, [B]_+ + N>, what the dual loses; B the target that was projected."""
        plus = projection.plus
        if self.prior is None:
            return float(np.vdot(plus, plus)) / (2 * lam)
        plus = plus / lam
        return 0.5 * lam * float(np.vdot(plus - self.prior.core, plus + self.prior.core))

    def nothing(self, lam):
        """Return the `Evaluation` at M = 0 with every alpha 0: what is known without any work, a relative gap of 1."""
        M, smoothing = np.zeros(self.shape), self.loss.smoothings[0]
        slack = self.triplets.total_weight * self.loss(0.0)
        value, pull = slack + self.penalty(M, lam), self.pull(M, lam)
        return Evaluation(
            M, None, Sums(smoothing, slack, 0.0, 0.0), M, pull, self.cone.project(pull), value, value, 0.0, value,
            slack, floor=self.floor,
        )  # fmt: skip

    def at_lambda(self, evaluation, lam):
        """Return an evaluation whose slack and dual point are those of its M and alphas at another lambda.

        Without a prior these do not depend on lambda, and it is the same one.
        """
        if self.prior is None:
            return evaluation
        swept = (evaluation.sums, evaluation.weights)
        return self.evaluate(evaluation.M, evaluation.dist, lam, evaluation.sums.smoothing, swept, evaluation.A)

    def away_from_prior(self, M, scale):
        """Return N + scale (M - N): without a prior, scale M."""
        return scale * M if self.prior is None else self.prior.core + scale * (M - self.prior.core)

    def scaled(self, dist, scale):
        """Return the pair distances there, from those under M."""
        return scale * dist if self.prior is None else self.prior_distances + scale * (dist - self.prior_distances)

    def scaled_error(self, error, scale):
        """Bound on the error of a margin there, from that of a margin under M."""
        if self.prior is None:
            return scale * error
        return scale * error + abs(1 - scale) * self.rounding.margin(self.prior_distances, trace(self.prior.core))

    @cached_property
    def prior_distances(self):
        """Pair distances under the prior: 8 bytes a pair where these are listed."""
        return self.distances(self.prior.factor)

    def restrict(self, triplets, pairs):
        """Return the engine of a smaller set; its constant matrix and weight are still those of this one."""
        less = Engine(
            triplets,
            self.loss,
            self.cone,
            Threads(self.threads.n_jobs),
            self.linear_matrix,
            self.linear_weight,
            self.share * triplets.n_pairs / max(1, self.triplets.n_pairs),
        )
        less.point_error, less.units, less.prior, less.floor = self.point_error, self.units, self.prior, self.floor
        less.rounding = self.rounding.reduced(self.rounding.linear_error, triplets, pairs)
        return less

    def with_fixed(self, matrix, weight, error):
        """Return this engine with another constant matrix and weight (for `triscreen.screening.fixing` only).

        ``error`` bounds what rounding did to the matrix.
        """
        other = copy(self)
        other.linear_matrix, other.linear_weight = matrix, weight
        other.rounding = self.rounding.reduced(error)
        return other

    @property
    def sweep_share(self):
        """What another sweep at known distances counts as a pass: nothing, or all of it where these are not kept."""
        return 0.0 if self.triplets.lists_pairs else self.share

    @cached_property
    def rounding(self):
        """Bounds on what rounding does to this engine's numbers."""
        error = 0.0 if self.prior is None else self.prior.error
        return Rounding(self.triplets, self.loss, self.cone, self.point_error, self.threads, error)

    @cached_property
    def norms(self):
        """|H_t|_F (diagonal cone: |h_t|_2) of every triplet; computed when first needed, 8 bytes each."""
        n_triplets = self.triplets.n_triplets
        out = np.empty(n_triplets)
        chunks = max(1, -(-n_triplets // _NORM_CHUNK))
        bounds = chunk_bounds(n_triplets, chunks)

        def task(c):
            part = slice(bounds[c], bounds[c + 1])
            self.triplets.norms(self.cone, part.start, part.stop, out[part])

        self.threads.run("norms", task, chunks)
        return out

    def _linear_loss(self, M):
        if self.linear_matrix is None:
            return 0.0
        return (1 - 0.5 * self.loss.gamma) * self.linear_weight - float(np.vdot(self.linear_matrix, M))
