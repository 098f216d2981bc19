"""For which lambda a triplet stays decided, from one reference solution.

`rrpb_ranges` turns the sphere rule of RRPB around, in closed form, both zones and both directions (Theorem RRPB range,
with its mirror images). The report's map of ranges is made of it; a path, which moves by stretches of lambda, needs no
intervals: RRPB's centre and radius are linear in 1/lambda, so it looks at both ends (`triscreen.path.walk`).

It takes margins with bounds of their errors and norms that are bounds already, and gives intervals on the safe side.
Open intervals; low >= high means none.
"""

from __future__ import annotations

import numpy as np

from triscreen.screening.rules import LINEAR, ZERO

# Intervals are shortened by this share of lambda, more than the rounding of the formulas below.
_SHORTER = 1e-9


def rrpb_ranges(margins, errors, norms, size, lam0, eps, gamma, prior=None):
    """Return {zone: (low, high)} for RRPB from M0 with |M0 - M0*| <= eps.

    Parameters
    ----------
    margins, errors : arrays
        <H, M0> and bounds of their errors (with a prior N: <H, M0 - N>).
    norms : array
        Upper bounds of |H|.
    size : float
        |M0| (with a prior: |M0 - N|).
    lam0, eps, gamma : float
    prior : pair of arrays, optional
        <H, N> and bounds of their errors.
    """
    of_prior, more = (0.0, 0.0) if prior is None else prior
    mN, eN = size * norms, 2 * eps * norms
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # lam (2 margin - ...) on both sides: the margin of RRPB's centre is <H, N> + (lam0 + lam)/(2 lam) <H, M0 - N>.
        h, rest = margins - errors, 2 * (1.0 - (of_prior - more))
        factor = h + mN - rest
        low = np.where(factor > 0, lam0 * (mN - h + eN) / factor, np.inf)
        factor = mN - h + rest + eN
        high = np.where(factor > 0, lam0 * (h + mN) / factor, np.inf)
        high = np.where((factor == 0) & (h + mN <= 0), 0.0, high)
        zero = _around(low, high, lam0)
        h, rest = margins + errors, 2 * (1.0 - gamma - (of_prior + more))
        factor = rest - h + mN
        low = np.where(factor > 0, lam0 * (h + mN + eN) / factor, np.inf)
        factor = rest - h - mN - eN
        # Above lam0: lam * factor > lam0 (h - mN), where the right side is <= 0.
        high = np.where(factor >= 0, np.inf, lam0 * (mN - h) / -factor)
        high = np.where((factor >= 0) & (h - mN > 0), 0.0, high)
        linear = _around(low, high, lam0)
    return {ZERO: zero, LINEAR: linear}


def _around(low, high, lam0):
    """Both directions hold at lam0, or there is no interval; shortened by a hair."""
    low, high = low * (1 + _SHORTER), high * (1 - _SHORTER)
    none = ~((low < lam0) & (high > lam0))
    return np.where(none, np.inf, low), np.where(none, 0.0, high)
