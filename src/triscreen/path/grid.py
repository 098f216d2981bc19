"""Which lambdas: a given list, or down by a ratio until the loss settles.

References
----------
T. Yoshida, I. Takeuchi, M. Karasuyama. Safe Triplet Screening for Distance Metric Learning. KDD 2018. arXiv:1802.03923:
section 5 (lambda_max, the ratio 0.9, and the rule that ends a path; the safeguards around it are ours).
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from triscreen._utils.archive import fingerprint
from triscreen._utils.validation import as_count, as_numbers, as_positive, shortened
from triscreen.errors import InputError
from triscreen.path.joint import joint
from triscreen.problem.units import LAMBDA

# Where a path without an end of its own stops, relative to lambda_max.
_LOWEST = 1e-8
# The ratio of neighbouring lambdas where nothing else is said.
RATIO = 0.9
# A tube of metrics serves as far as the first ratio of lambdas (see `triscreen.path.walk`), or the second where lambdas
# take so few iterations that a larger working set costs less than another tube; how many lambdas to look back for that.
_AHEAD, _FAR_AHEAD = 0.93, 0.88
_QUICK, _RECENT = 3, 5
# A guarantee: the next lambda, in lengths of the interval that the last metric serves alone.
_BOLD = 2.6


class Grid:
    """The lambdas of a path, one after the other.

    Parameters
    ----------
    problem : Problem
    lambdas : array or None
        Falling; None: from lambda_max down by ``ratio``.
    lambda_max, ratio, n_lambdas :
        As for `solve_path`.
    tol : float
        The path also ends where the loss is below tol times the weight of all triplets.
    """

    def __init__(self, problem, lambdas, lambda_max, ratio, n_lambdas, tol):
        self.tol, self._weight = tol, problem.triplets.total_weight
        self._prior_size = None if problem.prior is None else float(np.linalg.norm(problem.prior.matrix))
        self._loss_of_zero = self._weight * problem.loss(0.0)
        self.lambdas = None
        self.ratio = _as_ratio(ratio)
        self.n_lambdas = as_count(n_lambdas, "n_lambdas", none="no limit")
        if lambdas is not None:
            if lambda_max is not None:
                raise InputError(
                    f"lambda_max={lambda_max!r}: the lambdas are given, so there is no lambda_max to choose"
                )
            if self.ratio != RATIO:
                raise InputError(f"ratio={ratio!r}: the lambdas are given, so there is no ratio to choose")
            self.lambdas = _as_lambdas(lambdas)
            problem.check_lam(float(self.lambdas[-1]))
            self.start = float(self.lambdas[0])
        elif lambda_max is not None:
            self.start = problem.check_lam(as_positive(lambda_max, "lambda_max"))
        else:
            self.start = problem.units.out(problem._lambda_max, LAMBDA)
            if self.start == 0 and problem.prior is not None:  # the prior, for whatever lambda
                self.lambdas, self.start = np.array([problem.units.out(1.0, LAMBDA)]), problem.units.out(1.0, LAMBDA)
            elif self.start == 0:
                raise InputError(
                    "the sum of all H is negative semi-definite, so M = 0 is optimal for every lambda and there is no "
                    "path (on the whole, the points are closer to their negatives than to their positives)"
                )

    @property
    def total(self):
        """How many lambdas there will be, None if only the loss will tell."""
        if self.lambdas is not None:
            return min(len(self.lambdas), self.n_lambdas or len(self.lambdas))
        return self.n_lambdas

    @property
    def most(self):
        """How many lambdas there will be at most, None if that is not known."""
        if self.lambdas is not None:
            return self.total
        lowest = 1 + math.ceil(math.log(_LOWEST) / math.log(self.ratio))
        return min(lowest, self.n_lambdas or lowest)

    def identity(self):
        """What makes this grid this one, for a checkpoint."""
        lambdas = None if self.lambdas is None else fingerprint(self.lambdas)
        return {"start": self.start, "lambdas": lambdas, "ratio": self.ratio}

    def next(self, rows):
        """Return the lambda after those done."""
        if self.lambdas is not None:
            return float(self.lambdas[len(rows)])
        return rows[-1].lam * self.ratio if rows else self.start

    def ahead(self, lam, rows):
        """Return the last lambda of the grid, from lam on, that one tube may serve."""
        recent = rows[-_RECENT:]
        quick = sum(row.n_iter for row in recent) <= _QUICK * len(recent)
        reach = _FAR_AHEAD if quick else _AHEAD
        if self.lambdas is None:
            steps = int(np.floor(np.log(reach) / np.log(self.ratio)))
            return lam * self.ratio**steps
        rest = self.lambdas[len(rows) :]
        return float(rest[rest >= reach * lam].min(initial=lam))

    def ends(self, rows):
        """Return why the path ends after these lambdas, or None."""
        if self.n_lambdas is not None and len(rows) >= self.n_lambdas:
            return "n_lambdas"
        if self.lambdas is not None:
            return "lambdas" if len(rows) == len(self.lambdas) else None
        return self._settled(rows, self.ratio)

    def _settled(self, rows, ratio):
        last = rows[-1]
        if last.loss <= self.tol * self._weight:
            return "loss is zero"
        if last.lam * ratio < _LOWEST * self.start:
            return "lambda_min"
        if len(rows) > 1 and self._has_left(last, rows[0]):
            before = rows[-2]
            drop = (before.loss - last.loss) / before.loss
            if drop * before.lam / (before.lam - last.lam) < 0.01:
                return "loss settled"
        return None

    def _has_left(self, last, first):
        """Has something happened since the first lambda? Before, the paper's rule would end a path at once."""
        if self._prior_size is None:
            return last.loss < 0.9 * first.loss
        # A tenth of a prior so small that no triplet feels it is nothing, either.
        return np.sqrt(last.size) > 0.1 * self._prior_size and last.loss < 0.9 * self._loss_of_zero


class GuaranteedGrid(Grid):
    """Lambdas such that between two neighbours a metric is known whose relative gap is at most ``guarantee``.

    For a fixed metric and its alphas the gap is an explicit convex function of lambda, so each solution serves an
    interval around its lambda; where the intervals of two neighbours do not meet, their mixture may serve what is in
    between (`triscreen.path.joint`). The next lambda is tried at `_BOLD` times the length of the interval below the
    last one; if there is a hole between them, a lambda in there is added.
    """

    def __init__(self, problem, lambdas, lambda_max, ratio, guarantee, n_lambdas, tol):
        self.guarantee = as_positive(guarantee, "guarantee")
        if self.guarantee <= tol:
            raise InputError(
                f"guarantee={guarantee!r}: between the lambdas the gap cannot be as small as at them; guarantee must "
                f"be larger than tol={tol!r}"
            )
        if lambdas is not None:
            raise InputError(f"guarantee={guarantee!r}: it chooses the lambdas itself; pass either it or lambdas")
        if _as_ratio(ratio) != RATIO:
            raise InputError(
                f"ratio={ratio!r}: guarantee={guarantee!r} chooses the lambdas itself; pass either of them"
            )
        super().__init__(problem, None, lambda_max, ratio, n_lambdas, tol)
        self._reaches, self._joined = {}, {}

    @property
    def most(self):
        """How many lambdas there will be at most: nobody knows, unless that was said."""
        return self.n_lambdas

    def identity(self):
        """What makes this grid this one, for a checkpoint."""
        return {"start": self.start, "guarantee": self.guarantee, "bold": _BOLD}

    def next(self, rows):
        """Return a lambda that closes the first hole, or the next one down."""
        if not rows:
            return self.start
        hole = self._hole(rows)
        if hole is not None:
            return float(np.sqrt(hole[0]) * np.sqrt(hole[1]))  # lambdas can be as large as 1e280
        lowest = min(rows, key=lambda row: row.lam)
        down = self._reach(lowest)[0]
        return max(lowest.lam * (down / lowest.lam) ** _BOLD, _LOWEST * self.start)

    def ahead(self, lam, rows):
        """A tube serves one lambda: the next one is not known."""
        return lam

    def ends(self, rows):
        """Return why the path ends after these lambdas, or None; never while there is a hole."""
        if self.n_lambdas is not None and len(rows) >= self.n_lambdas:
            return "n_lambdas"
        low, high = self._reach(rows[-1])
        hole = self._hole(rows)
        if high <= low * (1 + 1e-9):
            return "no guarantee"
        if hole is not None:
            return None
        rows = sorted(rows, key=lambda row: -row.lam)
        return self._settled(rows, 1.0 - 1e-9)

    def _reach(self, row):
        if row.lam not in self._reaches:
            self._reaches[row.lam] = row.reach(self.guarantee, 1e-2 * row.lam, 1e2 * row.lam)
        return self._reaches[row.lam]

    def _hole(self, rows):
        """Return the ends of the first interval that no metric serves, or None."""
        rows = sorted(rows, key=lambda row: -row.lam)
        for above, below in pairwise(rows):
            high, low = self._reach(above)[0], self._reach(below)[1]
            if low < high * (1 - 1e-12) and not self._together(above, below, low, high):
                return low, high
        return None

    def _together(self, above, below, low, high):
        """Does the mixture of two neighbours serve what neither of them does?"""
        key = above.lam, below.lam
        if key not in self._joined:
            both = joint(above, below)
            self._joined[key] = both is not None and both.serves(self.guarantee, low, high)
        return self._joined[key]


def _as_ratio(ratio):
    ratio = as_positive(ratio, "ratio")
    if not 1e-3 <= ratio <= 0.9999:
        raise InputError(f"ratio={ratio!r}: ratio must be between 0.001 and 0.9999, such as 0.9 or 0.99")
    return ratio


def _as_lambdas(lambdas):
    lambdas = np.atleast_1d(as_numbers(lambdas, "lambdas"))
    if lambdas.ndim != 1 or not len(lambdas):
        raise InputError(f"lambdas={shortened(lambdas)}: lambdas must be a list of at least one number")
    if not (np.isfinite(lambdas).all() and (lambdas > 0).all() and (np.diff(lambdas) < 0).all()):
        raise InputError(f"lambdas={shortened(lambdas)}: lambdas must be positive, finite and falling")
    return lambdas
