"""The balls between each two of many neighbouring ends, all at once.

The formulas are those of `triscreen.path.balls` (`End.ball`, `End.cross`, `Between`), over stacks of matrices: a path
has thousands of neighbours, and one after the other they take longer than their arithmetic.
"""

from __future__ import annotations

import numpy as np

from triscreen.path.balls import SUM, products


class Chain:
    """Ends with falling lambdas, and what balls need between neighbours.

    Parameters
    ----------
    problem : Problem
    ends : list of End
        Their distances, if they have any, are not used.

    Attributes
    ----------
    centers : array, shape (m, ...)
        Of each end's own ball; ``doubts`` bounds their errors.
    squares : array, shape (m,)
        Of the radii of these.
    ks : array, shape (m - 1,)
        k between each end and the next one.
    """

    def __init__(self, problem, ends):
        N = None if problem.prior is None else problem.prior.core
        lam, slack, value, dual, dM, dH, doubt, of_N = np.array(
            [(e.lam, e.slack, e.value, e.dual_term, e.dM, e.dH, e.doubt, e.prior_error) for e in ends]
        ).T
        M, H = (np.array([getattr(end, name) for end in ends]).reshape(len(ends), -1) for name in ("M", "H"))
        C = H / lam[:, None] if N is None else N.ravel() + H / lam[:, None]
        dC = dH / lam + of_N
        D = M - C
        sizes, pulls, far = (np.sqrt(_inner(Z, Z)) for Z in (M, H, D))
        away = far * (1 + SUM) + dM + dC
        self.squares = slack / lam + 0.25 * away**2
        self.centers, self.doubts = 0.5 * (M + C).reshape(len(ends), *ends[0].M.shape), 0.5 * (dM + dC)
        rounding = products(ends[0].M)

        def cross(i, j):
            """T of the margins of the ends i and the alphas of the ends j, or a little more."""
            errors = doubt[i] + sizes[i] * dH[j] + (pulls[j] + dH[j]) * dM[i]
            errors += SUM * (value[i] + np.abs(dual[j])) + rounding * sizes[i] * pulls[j]
            return np.maximum(0.0, value[i] - dual[j] + _inner(M[i], H[j])) + errors

        one, two, e = slice(None, -1), slice(1, None), dM + dC
        both = cross(one, two) / lam[two] + cross(two, one) / lam[one]
        inner = _inner(D[one], D[two]) + far[one] * e[two] + far[two] * e[one] + e[one] * e[two]
        inner += rounding * far[one] * far[two]
        self.ks = both * (1 + SUM) + 0.5 * inner


def _inner(one, two):
    return np.einsum("ij,ij->i", one, two)
