"""The paper's ranges for GB, DGB and MID, kept as theory: no path of ours uses them.

Any sphere of the form Q = A + B/lam, r^2 = a + b/lam + c/lam^2 gives intervals of lambda by the roots of a quadratic;
the reference must be evaluated over all triplets. Errors and open intervals as in `triscreen.screening.ranges`.
"""

from __future__ import annotations

import numpy as np

from triscreen.screening.rules import LINEAR, ZERO


def general_form(name, cone, evaluation, lam0=None, prior=None):
    """Return (B, A, (a, b, c)) of GB, DGB or MID: Q = A + B/lam, r^2 = a + b/lam + c/lam^2.

    The evaluation must be of all triplets, at lam0 where there is a prior N (its multiplier is kept: K = A + G0 with
    G0 = -[lam0 N + A]_- is what [A]_+ is without); b holds the hinge's slack.
    """
    M, A, point = evaluation.M, evaluation.A, evaluation.dual_point
    N, K = (np.zeros_like(M), point.plus) if prior is None else (prior.core, point.plus - lam0 * prior.core)
    rest = evaluation.slack + cone.cut_off_inner(point, M)
    away = M - N
    MM, PP, MP = float(np.vdot(away, away)), float(np.vdot(K, K)), float(np.vdot(away, K))
    if name == "gb":
        AA, MA = float(np.vdot(A, A)), float(np.vdot(away, A))
        return A / 2, (M + N) / 2, (MM / 4, evaluation.slack - MA / 2, AA / 4)
    if name == "dgb":
        return np.zeros_like(M), M, (MM, 2 * rest - 2 * MP, PP)
    return K / 2, (M + N) / 2, (MM / 4, rest - MP / 2, PP / 4)


def general_ranges(constant, slope, errors, norms, square, lam0, gamma):
    """Return {zone: (low, high)} for a sphere of the general form.

    Parameters
    ----------
    constant, slope : arrays
        <H, A> and <H, B> of Q = A + B/lam.
    errors : pair of arrays
        Bounds of their errors.
    norms : array
        Upper bounds of |H|.
    square : (a, b, c)
        r^2 = a + b/lam + c/lam^2, already on the safe side.
    """
    a, b, c = square
    if b * b > 4 * a * c:
        # sqrt of a quadratic in x = 1/lam is convex only without real roots: raise it until it has none.
        a = b * b / (4 * c) if c > 0 else a
    zero = _interval(constant - errors[0] - 1, slope - errors[1], norms, (a, b, c), lam0)
    linear = _interval(1 - gamma - constant - errors[0], -slope - errors[1], norms, (a, b, c), lam0)
    return {ZERO: zero, LINEAR: linear}


def _interval(f0, f1, norms, square, lam0):
    """Where f0 + f1 x > N sqrt(a + b x + c x^2), x = 1/lam, around x0: a concave difference, so its ends prove it."""
    a, b, c = square
    x0 = 1.0 / lam0

    def holds(x):
        f = f0 + f1 * x
        return f > norms * np.sqrt(np.maximum(a + b * x + c * x * x, 0.0)) + 1e-12 * (np.abs(f0) + np.abs(f1) * x)

    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        N2 = norms * norms
        q2, q1, q0 = f1 * f1 - N2 * c, 2 * f0 * f1 - N2 * b, f0 * f0 - N2 * a
        root = np.sqrt(np.maximum(q1 * q1 - 4 * q2 * q0, 0.0))
        half = -0.5 * (q1 + np.where(q1 >= 0, root, -root))
        candidates = np.stack([half / q2, q0 / half, -f0 / f1])
        below = np.where((candidates > 0) & (candidates < x0), candidates, 0.0).max(axis=0)
        above = np.where((candidates > x0) & np.isfinite(candidates), candidates, np.inf).min(axis=0)
        # Towards x0 by a hair, then each end has to prove itself.
        below = below + 1e-6 * (x0 - below)
        above = np.where(np.isfinite(above), above - 1e-6 * (above - x0), 1e6 * x0)
        at = holds(x0)
        below = np.where(at & holds(below), below, x0)
        above = np.where(at & holds(above), above, x0)
        none = ~at
        return np.where(none, np.inf, 1.0 / above), np.where(none, 0.0, 1.0 / below)
