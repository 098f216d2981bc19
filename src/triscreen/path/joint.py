"""What two neighbours of a path are worth together, at every lambda between them; no triplet is looked at again.

For lam = (1 - th) lam1 + th lam2 and p = th lam2/lam, take the metric (1 - p) M1 + p M2 and, as a dual point, the same
mixture (with th) of the alphas and of G. The loss is convex in M and the dual sum concave in the alphas, so with the
losses L, the dual values D, H = A + G, S = |M - N|^2, Q = |H|^2 and d = D + Q/(2 lam), which is linear in alphas and G,

    primal <= (1 - p) L1 + p L2 + (lam/2) ((1 - p) S1 + p S2 - p (1 - p) |M1 - M2|^2)
    dual   >= (1 - th) d1 + th d2 - ((1 - th) Q1 + th Q2 - th (1 - th) |H1 - H2|^2)/(2 lam).

Times lam/lam1 both are quadratic in th, and so is their difference. With r = lam2/lam1 it is

    (lam/lam1) gap <= (1 - th) gap1 + th r gap2 + th (1 - th) k,
    k = (1 - r) ((lam2 S2 - lam1 S1)/2 - (d2 - d1)) - (lam2 |M1 - M2|^2 + |H1 - H2|^2/lam1)/2.

So whether it is small enough everywhere between two lambdas is a question about a parabola. Ours; for gaps what
`triscreen.path.balls` is for balls.

**Rounding.** dH bounds how far an H is from A + G with the exact A and some G that is positive semidefinite, dM how far
a metric is from that of its factor; every term is enlarged by what these and the sums can do to it.
"""

from __future__ import annotations

import math

import numpy as np

from triscreen.problem.rounding import U, trace

_SUM = 1e-13  # rounding of sums, relative to their terms


class Joint:
    """Two rows of a path, the one with the larger lambda first, that know how far their H are apart.

    Attributes
    ----------
    k : float
        As above, or more.
    gaps : tuple of float
        Of the rows at their own lambdas, or more.
    """

    def __init__(self, above, below):
        self.above, self.below, self.r = above, below, below.lam / above.lam
        one, two = _End(above), _End(below)
        self.gaps = one.gap, two.gap
        self.apart = float(np.linalg.norm(one.M - two.M))
        moved = max(0.0, self.apart * (1 - _SUM) - one.dM - two.dM) ** 2
        pulled = max(0.0, math.sqrt(change(above, below)) * (1 - _SUM) - one.dH - two.dH) ** 2
        saved = 0.5 * (below.lam * moved + pulled / above.lam)
        lost = 0.5 * (two.pull_of_M - one.pull_of_M) - (two.dual - one.dual) + one.doubt + two.doubt
        lost += max(one.prior, two.prior) * (one.dH + two.dH)
        self.k = (1 - self.r) * lost - saved * (1 - 10 * _SUM)

    def shares(self, lam):
        """Return (th, p) at a lambda between the two."""
        th = min(1.0, max(0.0, (self.above.lam - lam) / (self.above.lam - self.below.lam)))
        return th, min(1.0, th * self.below.lam / lam)

    def gap_at(self, lam):
        """Return a bound of the gap of the mixture at a lambda between, with all that rounding may hide of it."""
        th, _ = self.shares(lam)
        parts = (1 - th) * self.gaps[0], th * self.r * self.gaps[1], th * (1 - th) * self.k
        return (sum(parts) + 8 * _SUM * sum(map(abs, parts))) * (self.above.lam / lam)

    def primal_at(self, lam):
        """Return a bound of the objective of the mixture there."""
        _, p = self.shares(lam)
        above, below = self.above, self.below
        size = (1 - p) * above.size + p * below.size - p * (1 - p) * self.apart**2
        return (1 - p) * above.loss + p * below.loss + 0.5 * lam * size

    def factor_at(self, lam):
        """Return F with the mixture M = F F' (of a diagonal: its root)."""
        _, p = self.shares(lam)
        one, two = self.above.factor, self.below.factor
        if one.ndim == 1:
            return np.sqrt((1 - p) * np.square(one) + p * np.square(two))
        return np.hstack([math.sqrt(1 - p) * one, math.sqrt(p) * two])

    def serves(self, eps, low, high):
        """Is the relative gap of the mixture at most eps for every lambda from low to high, both between the rows?

        The optimum is concave in lambda: it is no less than the line between lower bounds at the ends.
        """
        start, end = self.shares(high)[0], self.shares(low)[0]
        least = [row.primal - row.gap - row.rounding for row in (self.above, self.below)]
        floor = self.above.floor
        return any(self._stays_below(eps * D1, eps * D2, start, end) for D1, D2 in (least, (floor, floor)))

    def _stays_below(self, D1, D2, start, end):
        """Is (1 - th) D1 + th D2 more than the gap for all th between? By c + b th + a th^2, times lam/lam1."""
        (one, two), r, k = self.gaps, self.r, self.k
        c, b, a = D1 - one, (D2 - D1) - (1 - r) * D1 + one - r * two - k, k - (1 - r) * (D2 - D1)
        places = [start, end]
        if a > 0 and start < -b / (2 * a) < end:
            places.append(-b / (2 * a))
        hair = 16 * _SUM * (abs(D1) + abs(D2) + one + two + abs(k))
        return all(c + th * (b + th * a) > hair for th in places)


class _End:
    """A row, with what is needed of it, and bounds of errors."""

    def __init__(self, row):
        self.M = np.square(row.factor) if row.factor.ndim == 1 else row.factor @ row.factor.T
        away, pull = math.sqrt(row.size), math.sqrt(row.square)
        self.prior = (float(np.linalg.norm(self.M)) + away) * (1 + _SUM) if row.floor > 0 else 0.0  # |N|, or more
        self.dM = 64 * len(self.M) * U * max(0.0, trace(self.M)) + row.prior_error
        self.dH = row.error + row.lam * row.prior_error + 64 * len(self.M) * U * (pull + row.lam * self.prior)
        self.pull_of_M = row.lam * row.size
        self.dual = row.dual + row.square / (2 * row.lam)
        # Of half of the one and of the other, whatever rounding and dM, dH do to them.
        self.doubt = row.lam * (away + self.dM) * self.dM + (pull + self.dH) * self.dH / row.lam
        terms = self.pull_of_M + abs(row.dual) + row.square / row.lam + self.prior * pull
        self.doubt += 10 * _SUM * terms + row.rounding
        # The last term: th and 1 - r are rounded, too.
        self.gap = row.gap + row.rounding + (math.sqrt(row.away) + self.dH / row.lam) * self.dH + 64 * U * terms


def change(above, below):
    """Return |H1 - H2|^2 of two rows, where one of them knows it; None otherwise."""
    for row, other in ((above, below), (below, above)):
        for lam, square in row.changes:
            if lam == other.lam:
                return square
    return None


def joint(above, below):
    """Return the `Joint` of two rows, None where they do not know enough of each other."""
    return None if above.lam <= below.lam or change(above, below) is None else Joint(above, below)
