"""What a path is: metrics as factors, a certificate for each, and for every lambda in between."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from triscreen._utils.display import html_table
from triscreen._utils.extras import wanted
from triscreen._utils.threads import single_threaded_blas
from triscreen._utils.validation import as_positive
from triscreen.errors import InputError
from triscreen.path.balls import Between, End, mixture_share
from triscreen.path.columns import Columns
from triscreen.path.each_point import EachPoint
from triscreen.path.facts import Facts
from triscreen.path.joint import change, joint
from triscreen.path.plots import Plots
from triscreen.path.row import NUMBERS, Row
from triscreen.path.verified import Verified
from triscreen.problem import Certificate, Problem
from triscreen.problem.cones import components_of, make_cone
from triscreen.problem.rounding import U, gap_error
from triscreen.problem.units import FACTOR, LAMBDA, METRIC
from triscreen.screening.spheres import Sphere
from triscreen.solvers import Solution

_FACTS = "facts "


class Path(Columns, Plots, EachPoint, Verified):
    """Certified metrics along a path of falling lambdas; made by `solve_path`.

    Attributes
    ----------
    lambdas, primals, duals, gaps, rel_gaps, losses, n_iter, passes, seconds : arrays
        One entry per lambda. Gaps are over all triplets. Passes are pair work: all pairs once, distances and gradient,
        is one.
    screening_rates : array
        Share of the triplets that were not in the problem that was solved, safe_rates + proven_rates.
    safe_rates, proven_rates : arrays
        Of these, the share that was safe beforehand (spheres and ranges, before they left), and the share that was left
        out of a working set and proven afterwards not to matter.
    scanned : array
        Triplets looked at by screening rules and proofs, over all triplets.
    converged : array of bool
    stopped_by : str
        Why the path ends: "loss settled" (the paper's rule), "loss is zero", "lambda_min", "lambdas", "n_lambdas",
        "max_seconds", "callback" or "interrupt"; "no guarantee": lambdas could not be solved well enough for it. Where
        one of the last five ends a path with a guarantee, it may have holes.
    tol, guarantee : float, float or None
        Relative gaps asked for, at the lambdas and between them.
    n_triplets, n_features : int
    cone : str
    facts : Facts or None
        What a report shows beside the path (`triscreen.report.gather`); saved with it.

    References
    ----------
    Yoshida, Takeuchi, Karasuyama, KDD 2018, arXiv:1802.03923, sections 4 and 5; metrics, gaps and balls between two
    lambdas are ours (docs/path.md).

    Examples
    --------
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> problem = ts.Problem(X, ts.knn_triplets(X, y, k=5))
    >>> path = ts.solve_path(problem, ratio=0.7)
    >>> bool(path.converged.all()), path.stopped_by
    (True, 'loss settled')
    >>> path.M(-1).shape, bool(path.at(path.lambdas[3]).rel_gap <= 1e-6)
    ((4, 4), True)
    """

    cone: str
    n_features: int
    n_triplets: int
    tol: float
    guarantee: float | None
    stopped_by: str
    facts: Facts | None

    def __init__(
        self,
        rows: Iterable[Row],
        *,
        cone: str,
        basis: np.ndarray | None,
        n_features: int,
        n_triplets: int,
        tol: float,
        guarantee: float | None,
        stopped_by: str,
        outside: np.ndarray | None = None,
        problem: Problem | None = None,
    ) -> None:
        self._rows = sorted(rows, key=lambda row: -row.lam)
        self.cone, self.n_features, self.n_triplets = cone, n_features, n_triplets
        self.tol, self.guarantee, self.stopped_by = tol, guarantee, stopped_by
        self._basis, self._outside, self._problem = basis, outside, problem
        self.facts = self._recipe = None
        self.certificate_passes = 0.0
        self._ends, self._intervals = {}, {}  # number of a lambda -> End, of the two last ones; -> Between

    @property
    def converged(self) -> np.ndarray:
        """Whether each gap, and its rounding, are at most tol times the primal."""
        return np.array([row.within(self.tol, row.rounding) for row in self._rows], dtype=bool)

    def __len__(self) -> int:
        return len(self._rows)

    def M(self, t: int) -> np.ndarray:
        """Return the metric at the t-th lambda, in the coordinates of X: (d, d), or the vector (d,) of a diagonal."""
        return self._metric(self._rows[t].factor)

    def _metric(self, factor):
        if factor.ndim == 1:
            return np.square(factor)
        F = factor if self._basis is None else self._basis @ factor
        return F @ F.T if self._outside is None else F @ F.T + self._outside

    def components(self, t: int) -> np.ndarray:
        """Return L with M = L'L at the t-th lambda: the transform x -> L x, what estimators have as ``components_``.

        One row per direction of M, the most important first; M = 0 has one row of zeros.
        """
        factor = self._rows[t].factor
        if factor.ndim == 1:
            return components_of(np.square(factor))
        with single_threaded_blas():
            if self._outside is not None:
                return components_of(self.M(t))
            return components_of(factor=factor if self._basis is None else self._basis @ factor)

    def __getitem__(self, t: int) -> Solution:
        """The t-th solution."""
        return self._solution(self._rows[t], self._rows[t].lam)

    def take(self, numbers: Iterable[int]) -> Path:
        """Return the path of some of its lambdas only; it knows nothing of the problem, like one from a file."""
        return self._of([self._rows[t] for t in numbers])

    def _of(self, rows, problem=None):
        """Return a path of these rows instead; it knows nothing of the problem unless told."""
        names = ("cone", "n_features", "n_triplets", "tol", "stopped_by")
        meta = {name: getattr(self, name) for name in names}
        made = Path(rows, basis=self._basis, outside=self._outside, guarantee=None, problem=problem, **meta)
        made._recipe = self.recipe if problem is None else None
        return made

    @single_threaded_blas()
    def at(self, lam: float, problem: Problem | None = None) -> Solution:
        """Return the solution for any lambda between the first and the last, with its certified gap.

        It is the metric of the neighbour on the path whose gap at lam is the smaller one, or, where that gap is larger
        than tol (with ``guarantee``: than that), the mixture of both neighbours: with the gap that follows from what is
        known of these, no pass, if that is small enough or the problem is not at hand. Otherwise the mixture is
        evaluated, a pass; its gap is some hundred times smaller than that of either. With ``guarantee`` the gap is at
        most so much everywhere, without a pass.

        Parameters
        ----------
        lam : float
        problem : Problem, optional
            Of a path from a file, for the mixture.

        Returns
        -------
        Solution
        """
        lam = self._check_lam(lam)
        place = int(np.searchsorted(-self.lambdas, -lam))
        near = self._rows[max(0, place - 1) : place + 1]
        best = self._solution(min(near, key=lambda row: row.gap_at(lam) / row.scale_at(lam)), lam)
        problem = self._problem if problem is None else self._check_problem(problem)
        if len(near) < 2 or best.converged:
            return best
        best = self._together(lam, near, best)
        if best.converged or problem is None or not problem.triplets.lists_triplets:
            return best
        mixed = self._mixture(lam, near, problem)
        if mixed.gap + mixed.rounding < best.gap + best.rounding:
            return mixed.knowing(problem)
        if best.stopped_by == "mixture":  # the same metric, whose objective is known now
            best = replace(best, primal=mixed.primal, dual=mixed.primal - best.gap, passes=mixed.passes)
        return best.knowing(problem)

    def _together(self, lam, near, best):
        """Return the mixture of two rows with the gap that both together prove, if that is smaller than the best."""
        both = joint(*near)
        if both is None or not both.gap_at(lam) < best.gap + best.rounding:
            return best
        gap, primal = both.gap_at(lam), both.primal_at(lam)
        return replace(
            best, M=self._metric(both.factor_at(lam)), primal=primal, dual=primal - gap, gap=gap, rounding=0.0,
            stopped_by="mixture", n_iter=0, passes=0.0, seconds=0.0, screening=[],
            smoothing=min(row.smoothing for row in near),
        ).knowing(self._problem)  # fmt: skip

    def _mixture(self, lam, near, problem):
        """Return the metric between two rows that stands for lam, evaluated over all triplets."""
        above, below = near
        inside, *ends = (problem.units.into(value, LAMBDA) for value in (lam, above.lam, below.lam))
        share = mixture_share(inside, *ends)
        elements = [problem.cone.element(problem.units.into(row.factor, FACTOR)) for row in near]
        projection = problem.cone.project((1 - share) * elements[0] + share * elements[1])
        evaluation = problem.evaluate(
            projection.plus, problem.distances(projection.factor), inside, min(row.smoothing for row in near)
        )
        return Solution(
            lam=lam, M=problem.from_core(projection.plus), primal=evaluation.primal, dual=evaluation.dual,
            gap=evaluation.gap, rounding=gap_error(problem.rounding, evaluation, inside),
            tol=self.tol if self.guarantee is None else self.guarantee, stopped_by="mixture", n_iter=0, passes=1.0,
            seconds=0.0, history={}, screening=[], smoothing=evaluation.sums.smoothing, floor=above.floor,
        )  # fmt: skip

    def _solution(self, row, lam):
        own = lam == row.lam
        gap = row.gap if own else row.gap_at(lam)
        primal = row.primal if own else row.primal_at(lam)
        number = self._rows.index(row)
        return Solution(
            lam=lam,
            M=self.M(number),
            primal=primal,
            dual=row.dual if own else primal - gap,
            gap=gap,
            rounding=row.rounding if own else row.rounding_at(lam),
            tol=self.tol if own or self.guarantee is None else self.guarantee,
            stopped_by=row.stopped_by,
            n_iter=row.n_iter,
            passes=row.passes,
            seconds=row.seconds,
            history={},
            screening=row.events,
            smoothing=row.smoothing,
            floor=row.floor,
        ).knowing(self._problem)

    def _check_lam(self, lam):
        """Return a lambda between the ends of the path."""
        lam = as_positive(lam, "lam")
        if not self._rows:
            raise InputError(f"lam={lam!r}: this path has no lambda yet")
        first, last = self._rows[0].lam, self._rows[-1].lam
        if not last * (1 - 1e-12) <= lam <= first * (1 + 1e-12):
            raise InputError(f"lam={lam!r}: this path goes from {first:.6g} to {last:.6g}")
        return lam

    def _check_problem(self, problem):
        """Return the problem of the path."""
        problem = self._problem if problem is None else problem
        if problem is None:
            raise InputError("problem=None: this path was loaded from a file; pass the problem that it belongs to")
        if not hasattr(problem, "triplets"):
            raise InputError(f"problem is a {type(problem).__name__}: make one with ts.Problem(X, triplets)")
        found = problem.n_features, problem.triplets.n_triplets, problem.cone.name
        if found != (self.n_features, self.n_triplets, self.cone):
            raise InputError(
                f"problem has {found[0]} features, {found[1]} triplets and cone={found[2]!r}: this path belongs to one "
                f"with {self.n_features} features, {self.n_triplets} triplets and cone={self.cone!r}"
            )
        self._check_recipe(problem)
        return problem

    @single_threaded_blas()
    def ball(self, lam: float, problem: Problem | None = None) -> Sphere:
        """Return the smallest ball known to hold the optimal metric at any lambda between the first and the last.

        From the metrics at the two neighbours of lam on the path: by both of them together, by either of them, and what
        lies in all of these (`triscreen.path.balls`). Each neighbour is evaluated once, a pass, and what balls need is
        kept: eight matrices of the size of M an interval. The radius has all that rounding may have done.

        Parameters
        ----------
        lam : float
        problem : Problem, optional
            Of the path; needed if that was loaded from a file.

        Returns
        -------
        Sphere
            ``center``, in the coordinates of X, and ``radius`` in the Frobenius norm.

        Examples
        --------
        >>> import numpy as np
        >>> import triscreen as ts
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> problem = ts.Problem(X, ts.knn_triplets(X, y, k=5))
        >>> path = ts.solve_path(problem, ratio=0.9, n_lambdas=20)
        >>> lam = 0.95 * path.lambdas[10]
        >>> ball, exact = path.ball(lam), ts.solve(problem, lam, tol=1e-10)
        >>> bool(np.linalg.norm(exact.M - ball.center) <= ball.radius)
        True
        """
        lam, problem = self._check_lam(lam), self._check_problem(problem)
        lam = min(max(lam, self._rows[-1].lam), self._rows[0].lam)
        inside = problem.units.into(lam, LAMBDA)
        place = int(np.searchsorted(-self.lambdas, -lam))
        ball = self._interval(min(max(0, place - 1), max(0, len(self) - 2)), problem).best(inside)
        center, radius = problem.from_core(ball.center), problem.units.out(ball.radius, METRIC)
        doubt = 64 * self.n_features * U * float(np.linalg.norm(center))
        if problem.prior is not None:
            doubt += problem.units.out(problem.prior.error, METRIC)
        return Sphere(center, radius + doubt, "ball")

    def _interval(self, number, problem):
        """Return what balls need between the number-th lambda and the next one (of a single lambda: itself)."""
        if number not in self._intervals or self._intervals[number][0] is not problem:
            ends = [self._end(t, problem) for t in (number, min(number + 1, len(self) - 1))]
            self._intervals[number] = (problem, Between(problem, *ends))
        return self._intervals[number][1]

    def _quick_end(self, number, problem):
        """Return the metric at the number-th lambda as an end of balls without a pass, where the walk kept enough."""
        row = self._rows[number]
        if row.pull is None or problem is not self._problem:  # of another problem it says nothing
            return replace(self._end(number, problem), dist=None)
        factor = problem.units.into(row.factor, FACTOR)
        return End.kept(problem, row, problem.cone.element(factor), problem.units.into(row.lam, LAMBDA))

    def _end(self, number, problem):
        """Return the metric at the number-th lambda as an end of balls; the last two are kept, with their distances."""
        if number not in self._ends or self._ends[number][0] is not problem:
            row = self._rows[number]
            factor = problem.units.into(row.factor, FACTOR)
            lam = problem.units.into(row.lam, LAMBDA)
            end = End.of(problem, problem.cone.element(factor), lam, row.smoothing, factor)
            kept = list(self._ends.items())[-1:]
            self._ends = dict([*kept, (number, (problem, end))])
        return self._ends[number][1]

    @single_threaded_blas()
    def certify(self, problem: Problem | None = None) -> list[Certificate]:
        """Recompute the certificate of every metric over all triplets, and return them.

        Counted apart, in ``certificate_passes``. A path that was loaded from a file needs its problem again.
        """
        problem = self._check_problem(problem)
        self.certificate_passes += len(self)
        return [problem.certificate(self.M(t), row.lam) for t, row in enumerate(self._rows)]

    def to_frame(self) -> Any:
        """Return one row per lambda as a pandas DataFrame."""
        pd = wanted("pandas", "tables", "notebook")
        names = ("lambdas", "losses", "primals", "gaps", "rel_gaps", "converged", "n_iter", "passes", "scanned",
                 "screening_rates", "safe_rates", "proven_rates", "seconds")  # fmt: skip
        return pd.DataFrame({name: getattr(self, name) for name in names})

    @property
    def has_prior(self) -> bool:
        """Does the problem of this path have a prior?"""
        return bool(self._rows) and self._rows[0].floor > 0

    def to_arrays(self) -> tuple[dict, dict]:
        """Return (numbers, arrays) that hold all of the path; see `triscreen.save`."""
        meta = {
            "cone": self.cone,
            "n_features": self.n_features,
            "n_triplets": self.n_triplets,
            "tol": self.tol,
            "guarantee": self.guarantee,
            "stopped_by": self.stopped_by,
            "recipe": self.recipe,
            "rows": [{"stopped_by": row.stopped_by, "events": row.events} for row in self._rows],
        }
        arrays = {name: self._column(name) for name in NUMBERS}
        known = [change(above, below) for above, below in pairwise(self._rows)]
        arrays["changes"] = np.array([np.nan if value is None else value for value in known])
        factors = [row.factor if row.factor.ndim == 2 else row.factor[:, None] for row in self._rows]
        arrays["ranks"] = np.array([factor.shape[1] for factor in factors])
        arrays["factors"] = np.concatenate(factors, axis=1) if factors else np.empty((0, 0))
        if self._basis is not None:
            arrays["basis"] = self._basis
        if self.has_prior:
            meta["prior"] = {name: getattr(self._rows[0], name) for name in ("floor", "prior_error")}
        if self._outside is not None:
            arrays["outside"] = self._outside
        if self.facts is not None:
            meta["facts"], tables = self.facts.to_arrays()
            arrays.update({_FACTS + name: value for name, value in tables.items()})
        return meta, arrays

    @classmethod
    def from_arrays(cls, meta: dict, arrays: dict) -> Path:
        """Make a path from what `to_arrays` gave."""
        ends = np.concatenate([[0], np.cumsum(arrays["ranks"])]).astype(int)
        flat = make_cone(meta["cone"]).name == "diagonal"
        rows = []
        for t, more in enumerate(meta["rows"]):
            factor = arrays["factors"][:, ends[t] : ends[t + 1]]
            numbers = {name: arrays[name][t].item() for name in NUMBERS}
            factor = np.ascontiguousarray(factor[:, 0] if flat else factor)
            changed = arrays["changes"][t - 1].item() if t and "changes" in arrays else np.nan  # not before format 6
            numbers["changes"] = () if np.isnan(changed) else ((rows[-1].lam, changed),)
            rows.append(Row(**numbers, **more, **meta.get("prior", {}), factor=factor))
        names = ("cone", "n_features", "n_triplets", "tol", "guarantee", "stopped_by")
        own = {name: meta[name] for name in names}
        made = cls(rows, basis=arrays.get("basis"), outside=arrays.get("outside"), **own)
        made._recipe = meta.get("recipe")
        if "facts" in meta:
            tables = {name[len(_FACTS) :]: value for name, value in arrays.items() if name.startswith(_FACTS)}
            made.facts = Facts.from_arrays(meta["facts"], tables)
        return made

    def _repr_html_(self):
        """What a notebook shows: the sentence, and at most a dozen of the lambdas."""
        shown = np.unique(np.linspace(0, len(self) - 1, min(len(self), 12)).round().astype(int))
        names = ("lambda", "relative gap", "loss", "safe beforehand", "proven afterwards", "iterations", "passes")
        columns = (
            self.lambdas,
            self.rel_gaps,
            self.losses,
            self.safe_rates,
            self.proven_rates,
            self.n_iter,
            self.passes,
        )
        forms = (".4g", ".1e", ".5g", ".1%", ".1%", "d", ".1f")
        cells = [[format(column[t], form) for column, form in zip(columns, forms, strict=True)] for t in shown]
        return html_table(repr(self)[1:-1], names, cells)

    def __repr__(self):
        if not self._rows:
            return "<Path: no lambda yet>"
        lams = self.lambdas
        return (
            f"<Path: {len(self)} lambdas from {lams[0]:.4g} to {lams[-1]:.4g}, {self.n_triplets:,} triplets, largest "
            f"relative gap {self.rel_gaps.max():.2g}, {self.passes.sum():.0f} passes, {self.seconds.sum():.3g} s, "
            f"stopped by: {self.stopped_by}>"
        )
