"""The problem and its certificate.

    primal  P(M) = sum_t w_t l(m_t(M)) + (lam/2) |M|^2          over M in the cone   (a prior: (lam/2) |M - N|^2)
    dual    D(a) = sum_t w_t (a_t - (g/2) a_t^2) - |[A(a)]_+|^2 / (2 lam),   A(a) = sum_t w_t a_t H_t,  0 <= a_t <= 1
    gap     P(M) - D(a) = sum_t w_t [l(m_t) - a_t (1 - m_t) + (g/2) a_t^2] + <-[A]_-, M> + (lam/2) |M - [A]_+/lam|^2

Every term of the last line is >= 0, and it is computed in that form: a relative gap of 1e-13 can be measured. Whatever
is expensive happens per pair: distances through a factor of M, margins as differences of two distances, A(a) from pair
weights.

Solvers work on *core* elements of the cone, in the coordinates of `Problem.points` (centred, and rotated into the span
of the data where that pays), and in its units of length (`triscreen.problem.units`; where these are not the user's,
lambda is not, either). Users see M in the coordinates of X. What a prior changes is in `triscreen.problem.prior`.

References
----------
T. Yoshida, I. Takeuchi, M. Karasuyama. Safe Triplet Screening for Distance Metric Learning. KDD 2018. arXiv:1802.03923:
section 2 (primal and dual), appendix A; weights, and the gap as a sum of terms >= 0, are ours.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from triscreen._utils.archive import fingerprint
from triscreen._utils.lazy import cached_property
from triscreen._utils.threads import Threads, single_threaded_blas
from triscreen._utils.validation import as_alpha, as_points, as_positive, check_scale
from triscreen.errors import DegenerateProblemWarning, InputError, OutOfTime
from triscreen.problem.cones import Projection, make_cone
from triscreen.problem.engine import Engine
from triscreen.problem.gap import Gap
from triscreen.problem.losses import Hinge, SmoothedHinge, check_loss
from triscreen.problem.memory import Memory
from triscreen.problem.prior import CLOSE, check_prior, is_apart, make_prior
from triscreen.problem.span import span_basis
from triscreen.problem.units import LAMBDA, MATRIX, METRIC, POINT, Units
from triscreen.triplets import TripletSet

_SAMPLED_ANCHORS = 64
LARGEST_GAMMA = 1e4
# |M| must be such that |M|^2 is a number: of the user's, and with some room inside.
_LARGEST_METRIC, _LARGEST_INSIDE = 1e150, 1e140
_ELEMENTS = 64  # arrays of the size of M that are alive at a time where most are: on a path
_KEEP = 1 << 26  # bytes of the last certificate's distances and weights, at most: a solve may start from there
_OF_PRIOR = 8  # and of a prior: as given, inside, its factor, what is outside of the span, and while these are made


@dataclass(frozen=True)
class Certificate(Gap):
    """A proof of how far M is from optimal: primal - optimum <= gap.

    Attributes
    ----------
    primal, dual : float
        P(M) and D(alpha).
    gap : float
        Their difference, computed as a sum of non-negative terms; |M - M*|_F <= sqrt(2 gap / lam).
    rel_gap : float
        gap / |primal| (with a prior: or the floor, where that is larger).
    rounding : float
        The exact gap exceeds the computed one by no more than this, whatever the data (`triscreen.problem.rounding`).
    floor : float
        With a prior, what the gap is relative to at least: 1e-3 times the loss of M = 0.

    References
    ----------
    Yoshida, Takeuchi, Karasuyama, KDD 2018, arXiv:1802.03923, section 2.2; the gap as a sum of terms that are not
    negative, and its rounding, are ours.

    Examples
    --------
    >>> import numpy as np
    >>> import triscreen as ts
    >>> problem = ts.Problem([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], ts.given_triplets([[0, 1, 2]]))
    >>> proof = problem.certificate(np.zeros((2, 2)), lam=1.0)  # of any metric, from wherever
    >>> proof.primal, bool(proof.gap >= proof.primal - proof.dual - proof.rounding)
    (0.975, True)
    """

    primal: float
    dual: float
    gap: float
    rounding: float
    floor: float = 0.0


@dataclass(frozen=True)
class Estimate:
    """What a problem takes.

    Attributes
    ----------
    n_triplets, n_pairs : int
    bytes : int
        Of the problem and the most that a solve or a path takes beside it: no more than the memory budget.
    seconds : float
        One pass: loss, gradient, dual and gap over all triplets.
    bytes_per_lambda : int
        With a prior, what a path keeps for each of its lambdas on top of that: a metric of full rank. Without one it is
        0, for a rank that is often small.

    References
    ----------
    Ours: docs/engine.md.

    Examples
    --------
    >>> import triscreen as ts
    >>> X = [[0.0], [1.0], [3.0], [4.5]]
    >>> problem = ts.Problem(X, ts.knn_triplets(X, [0, 0, 1, 1], k=1))
    >>> problem.estimate().n_pairs
    8
    """

    n_triplets: int
    n_pairs: int
    bytes: int
    seconds: float
    bytes_per_lambda: int = 0

    def __str__(self):
        kept = f", {self.bytes_per_lambda / 1e6:.3g} MB for each lambda of a path" if self.bytes_per_lambda else ""
        return (
            f"{self.n_triplets:,} triplets over {self.n_pairs:,} pairs: about {self.seconds:.2g} s a pass and "
            f"{self.bytes / 1e6:.3g} MB{kept}"
        )


class Problem(Memory, Engine):
    """Regularised triplet loss minimisation over a cone of metrics.

    Parameters
    ----------
    X : array, shape (n, d)
        Points; copied, never changed.
    triplets : TripletSet
        From `knn_triplets`, `all_triplets` or `given_triplets`.
    loss : SmoothedHinge or Hinge
        Of a margin; None: ``SmoothedHinge(0.05)``.
    cone : {"psd", "diagonal"}
        Full positive semi-definite M, or M = diag(m) with m >= 0. For the diagonal cone every M is the vector m.
    n_jobs : int or None
        Threads at most; None: all cores, for as long as they help.
    memory_budget : float or None
        Bytes that the problem and whatever is done with it (solve, path, screening) may take at most; more is refused
        before work starts.
    prior : None, "identity" or array
        N of the regulariser (lam/2) |M - N|^2, taken as it is: a matrix (d, d) in the cone (for the diagonal cone its
        diagonal). For large lam the optimum is N, where a path begins. None: the paper's problem, N = 0.

    Attributes
    ----------
    n_points, n_features : int
    points : array, shape (m, s)
        The points that the triplets speak of, centred, and rotated to the s dimensions of their span where that pays
        (psd cone only); in other units where their size is far from 1.
    basis : array, shape (d, s), or None
        The rotation.
    units : Units
        From numbers of the user's to those inside, and back.
    hash_of_points : str
        Of X as it was given.

    References
    ----------
    Yoshida, Takeuchi, Karasuyama, KDD 2018, arXiv:1802.03923, section 2. Pairs in place of triplets, weights and the
    prior are ours (docs/maths.md).

    Examples
    --------
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> problem = ts.Problem(X, ts.knn_triplets(X, y, k=5))
    >>> sol = ts.solve(problem, lam=0.01 * problem.lambda_max())
    >>> sol.converged, sol.M.shape
    (True, (4, 4))
    """

    n_points: int
    n_features: int
    basis: np.ndarray | None
    units: Units
    hash_of_points: str

    _certified = None  # see `certified_at`

    def __init__(
        self,
        X: ArrayLike,
        triplets: TripletSet,
        loss: SmoothedHinge | Hinge | None = None,
        cone: str = "psd",
        n_jobs: int | None = None,
        memory_budget: float | None = None,
        *,
        prior: str | ArrayLike | None = None,
    ) -> None:
        loss = check_loss(SmoothedHinge() if loss is None else loss)
        cone = make_cone(cone)
        threads = Threads(n_jobs)
        self.memory_budget = as_positive(memory_budget, "memory_budget", none="no limit")
        if not isinstance(triplets, TripletSet):
            raise InputError(
                f"triplets is a {type(triplets).__name__}: make a set with ts.knn_triplets(X, y, k), "
                "ts.all_triplets(X, y) or ts.given_triplets(indices)"
            )
        self._given, X = X, as_points(X)
        self.hash_of_points = fingerprint(X)
        triplets.check_points(len(X))
        if not triplets.lists_triplets and loss.gamma > LARGEST_GAMMA:
            raise InputError(
                f"gamma={loss.gamma:g}: {triplets.unlisted}, and their sums are exact for gamma up to "
                f"{LARGEST_GAMMA:g} only"
            )
        self.n_points, self.n_features = X.shape
        N = check_prior(prior, cone, X)
        self._elements = _ELEMENTS + (_OF_PRIOR if N is not None else 0)
        self._check_memory(cone, triplets, threads.n_jobs)
        if self.memory_budget is not None:
            left = self.memory_budget - self._bytes_of_points(cone)
            triplets = triplets.within(left, self.n_features, threads.n_jobs)
        own = isinstance(self._given, np.ndarray) and self._given.dtype != X.dtype  # a copy already, float32 it was
        if triplets.point_ids is not None:
            X, own = X[triplets.point_ids], True
        centred = np.subtract(X, X.mean(axis=0), out=X if own else None)
        check_scale(centred, "X, of which triplets speak,")
        self.units = Units.of(centred)
        centred = self.units.into(centred, POINT)
        self.basis, points = None, centred
        if cone.name == "psd":
            with single_threaded_blas():
                self.basis = span_basis(centred)
                if N is not None and self.basis is not None and not is_apart(N, self.basis):
                    self.basis = None
                if self.basis is not None:
                    points = centred @ self.basis
                    self.point_error += 2 * self.n_features
        super().__init__(triplets.over(points), loss, cone, threads)
        if N is not None:
            with single_threaded_blas():
                self.prior = make_prior(N, cone, self.basis, self.units, triplets.total_weight * loss(0.0))
            self.floor = self.prior.floor

    @property
    def points(self) -> np.ndarray:
        """The points inside, which the set of triplets has."""
        return self.triplets.points

    def given_points(self) -> np.ndarray:
        """Return X as it was given, or refuse one that has been changed since."""
        X = as_points(self._given)
        if fingerprint(X) != self.hash_of_points:
            raise InputError("X was changed after the problem was made of it: make the problem again")
        return X

    @single_threaded_blas()
    def certificate(self, M: ArrayLike, lam: float, alpha: ArrayLike | None = None) -> Certificate:
        """Certify M over all triplets, in float64.

        Parameters
        ----------
        M : array
            In the coordinates of X: (d, d) symmetric positive semi-definite; for the diagonal cone (d,) >= 0 (or the
            diagonal matrix).
        lam : float
        alpha : array, shape (n_triplets,), optional
            A dual point; by default it is taken from the margins of M (for the hinge the best of
            clip((1 - m)/s, 0, 1) over a grid of s).

        Returns
        -------
        Certificate
        """
        lam = self.check_lam(lam)
        _, core, outside = self.checked(M)
        if alpha is not None and not self.triplets.lists_triplets:
            raise InputError(f"alpha is given: {self.triplets.unlisted}, so alphas cannot be given one by one")
        alpha = None if alpha is None else as_alpha(alpha, self.triplets.n_triplets)
        lam = self.units.into(lam, LAMBDA)
        beyond = 0.5 * lam * outside
        factor = self.cone.project(core).factor
        dist = self.distances(factor)
        if alpha is not None:
            (value, dual_term, slack), pair_weights = self.triplets.sweep_alpha(
                dist, alpha, self.loss.gamma, self.threads
            )
            pull = self.pull(self.assemble(pair_weights), lam)
            projection = self.cone.project(pull)
            gap = slack + self.cone.gap(core, projection, lam)
            primal = value + self.penalty(core, lam)
            dual = dual_term - self.dual_penalty(projection, lam)
            error = self.rounding.gap(core, pull, projection.plus, dist, gap, self.triplets.total_weight, lam, False)
            return Certificate(primal + beyond, dual, gap + beyond, float(error), self.floor)
        best = None
        for smoothing in self.loss.smoothings:
            try:
                now = self.evaluate(core, dist, lam, smoothing, factor=factor)
            except OutOfTime:  # any of them will do
                if best is None:
                    raise
                break
            best = now if best is None or now.gap < best.gap else best
        if self.triplets.lists_pairs and 16 * self.triplets.n_pairs <= _KEEP and self.memory_budget is None:
            self._certified = core.copy(), dist, (best.sums, best.weights), best.A, factor
        own = best.sums.smoothing == self.loss.gamma
        error = self.rounding.gap(core, best.pull, best.dual_point.plus, dist, best.gap, best.sums.alpha, lam, own)
        return Certificate(best.primal + beyond, best.dual, best.gap + beyond, float(error), self.floor)

    def certified_at(self, core: np.ndarray) -> tuple | None:
        """Return what `evaluate` takes beside lam and smoothing, if this core M was certified last; it is forgotten."""
        known, self._certified = self._certified, None
        return known if known is not None and np.array_equal(known[0], core) else None

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "_certified"}

    @single_threaded_blas()
    def value(self, M: ArrayLike, lam: float) -> float:
        """Return the primal objective P(M)."""
        _, evaluation, outside = self._evaluate_at(M, lam)
        return evaluation.primal + 0.5 * self.units.into(lam, LAMBDA) * outside

    @single_threaded_blas()
    def gradient(self, M: ArrayLike, lam: float) -> np.ndarray:
        """Return the gradient of P at M, in the coordinates of X (for the hinge: of a smoothed one, s = 1e-12)."""
        M, evaluation, _ = self._evaluate_at(M, lam)
        away = M if self.prior is None else M - self.prior.matrix
        return lam * away - self.units.out(self._rotated_back(evaluation.A), MATRIX)

    @single_threaded_blas()
    def lambda_max(self) -> float:
        """Return max_t <H_t, S_+> with S = sum_t w_t H_t, the scale at which the first triplet reaches its margin.

        From lambda_max / (1 - gamma) on (gamma < 1), every triplet is in the linear part of the loss and the optimum is
        S_+ / lam exactly. It is 0, with a warning, where S has no positive part: then M* = 0 for every lambda.

        With a prior N it is the lambda at which the optimum is proven to lie within 1 % of |N| of it; 0, with a
        warning, where N satisfies every triplet, or those that it does not cancel out: then M* = N for every lambda.
        """
        if self._lambda_max == 0 and self.prior is not None:
            why = "satisfies every triplet" if self.at_prior.sums.loss == 0 else "is pulled nowhere by the triplets"
            warnings.warn(
                f"the prior {why}: it is optimal for every lambda",
                DegenerateProblemWarning,
                stacklevel=3,
            )
        elif self._lambda_max == 0:
            warnings.warn(
                "the sum of all H is negative semi-definite: M = 0 is optimal for every lambda (on the whole, the "
                "points are closer to their negatives than to their positives in every direction)",
                DegenerateProblemWarning,
                stacklevel=3,
            )
        return self.units.out(self._lambda_max, LAMBDA)

    @cached_property
    def _sum_of_h(self):
        """(Pair weights, S, its projection) with S = sum_t w_t H_t; S_+/lam is the optimum for large lam."""
        nothing = self.cone.project(np.zeros(self.shape))
        _, pair_weights = self.sweep(self.distances(nothing.factor), 1.0)  # margins 0, so every alpha is 1
        S = self.assemble(pair_weights)
        return pair_weights, S, self.cone.project(S)

    @cached_property
    def at_prior(self):
        """The evaluation at the prior, for any lambda: its sums and A do not depend on that."""
        return self.evaluate(self.prior.core, self.prior_distances, 1.0, self.loss.smoothings[-1])

    def start(self, lam: float) -> Projection:
        """Return the projection of where a path begins: M(alpha) for the alphas of M = 0, or of the prior."""
        if self.prior is None:
            return self.cone.project(self._sum_of_h[1] / lam)
        return self.cone.project(self.prior.core + self.at_prior.A / lam)

    @cached_property
    def _lambda_max(self) -> float:
        """As it is inside."""
        if self.prior is not None:
            now, close = self.at_prior, CLOSE * float(np.linalg.norm(self.prior.core))
            size, error = float(np.linalg.norm(now.A)), self.rounding.matrix(now.A, now.sums.alpha)
            return 0.0 if size == 0 and now.slack == 0 else (size + error) / close + now.slack / close**2
        pair_weights, _, projection = self._sum_of_h
        factor = projection.factor
        # Eigenvalues that rounding alone can explain are zero.
        magnitude = self.triplets.magnitude(pair_weights, self.threads)
        noise = 8 * self.triplets.dim * np.finfo(float).eps * magnitude
        factor = factor * (np.square(factor).sum(axis=0) > noise if factor.ndim == 2 else np.square(factor) > noise)
        return max(0.0, self.triplets.largest_margin(self.distances(factor)))

    def check_lam(self, lam: float) -> float:
        """Return lam if it is a positive number that float64 can work with for these points."""
        lam = as_positive(lam, "lam")
        inside = self.units.into(lam, LAMBDA)
        with np.errstate(divide="ignore", over="ignore"):
            size = 4 * self.triplets.total_weight * self.triplets.largest_square  # |M(alpha)| is at most that / lam
            size = float(np.divide(size, inside))
            size += 0.0 if self.prior is None else float(np.linalg.norm(self.prior.core))
        if size > _LARGEST_INSIDE or self.units.out(size, METRIC) > _LARGEST_METRIC:
            raise InputError(f"lam={lam!r}: lam is too small for points of this size, M would overflow")
        if not inside < np.inf:
            raise InputError(f"lam={lam!r}: lam is too large for points of this size, M would vanish")
        return lam

    def checked(self, M: ArrayLike, name: str = "M") -> tuple[np.ndarray, np.ndarray, float]:
        """Return (M, its core, |the rest|^2 inside), or refuse what is no element of the cone beyond rounding."""
        M = self.cone.check(M, self.n_features, name)
        core, outside = self.to_core(M)
        # Where M lies in the span of the data, its core tells whether it is positive, at less cost.
        size = float(np.linalg.norm(self.units.into(M, METRIC)))
        inside = outside <= (1e-12 * size) ** 2
        # The core of M is off by the rounding of all of M, which with a prior may be much larger.
        self.cone.check_positive(core if inside else M, name, size if inside and self.prior is not None else 0.0)
        return M, core, outside

    def to_core(self, M: np.ndarray) -> tuple[np.ndarray, float]:
        """Return (the core element, |the rest of M|^2 inside); the rest is outside the span and no margin sees it."""
        M = self.units.into(M, METRIC)
        if self.basis is None:
            return M, 0.0
        core = self.basis.T @ M @ self.basis
        core = 0.5 * (core + core.T)
        rest = M - self.basis @ core @ self.basis.T
        if self.prior is not None:
            rest -= self.units.into(self.prior.outside, METRIC)
        return core, float(np.vdot(rest, rest))

    def from_core(self, core: np.ndarray) -> np.ndarray:
        """Return a core element in the coordinates of X."""
        M = self.units.out(self._rotated_back(core), METRIC)
        return M if self.prior is None or self.prior.outside is None else M + self.prior.outside

    def _rotated_back(self, core):
        if self.basis is None:
            return core
        M = self.basis @ core @ self.basis.T
        return 0.5 * (M + M.T)

    def _evaluate_at(self, M, lam):
        lam = self.units.into(self.check_lam(lam), LAMBDA)
        M, core, outside = self.checked(M)
        dist = self.distances(self.cone.project(core).factor)
        return M, self.evaluate(core, dist, lam, self.loss.smoothings[-1]), outside

    @single_threaded_blas()
    def estimate(self) -> Estimate:
        """Measure what one pass takes, on a small part of it where there are many anchors.

        Returns
        -------
        Estimate
            A solution takes some 10 to 100 passes, a whole path some hundred.

        Examples
        --------
        >>> import triscreen as ts
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(return_X_y=True)
        >>> ts.Problem(X, ts.all_triplets(X, y)).estimate().n_triplets
        519439560
        """
        triplets = self.triplets.sample(_SAMPLED_ANCHORS)
        part = Engine(triplets, self.loss, self.cone, Threads(self.threads.n_jobs))
        M = self.cone.project(np.ones(triplets.dim) if self.cone.name == "diagonal" else np.eye(triplets.dim))
        seconds = []
        for _ in range(2):  # the first one compiles
            begin = time.perf_counter()
            part.evaluate(M.plus, part.distances(M.factor), 1.0, self.loss.smoothings[0])
            seconds.append(time.perf_counter() - begin)
        return Estimate(
            n_triplets=self.triplets.n_triplets,
            n_pairs=self.triplets.n_pairs,
            bytes=int(self._bytes(self.cone, self.triplets, self.threads.n_jobs, rows=None)),
            seconds=min(seconds) * self.triplets.n_pairs / max(1, triplets.n_pairs),
            bytes_per_lambda=self._bytes_per_lambda,
        )

    def __repr__(self):
        return (
            f"<Problem: {self.n_points:,} points, {self.n_features} features, {self.triplets.n_triplets:,} triplets, "
            f"{self.triplets.n_pairs:,} pairs, {self.loss}, cone={self.cone.name!r}>"
        )
