"""What every metric in a ball makes of three points: the decision of a screening rule, or which of two is nearer.

<M, H> with H = uu' - vv', u = x_i - x_l, v = x_i - x_j lies within r |H| of <Q, H> for every M within r of Q, and with
q = u - v, s = u + v, |H|^2 = (|q|^2 |s|^2 + (q's)^2)/2. In ball arithmetic, like `triscreen.verification.gaps`.

Between two lambdas of a path (`triscreen.path.balls`, iii) the balls are those around (1 - p) Q1 + p Q2 with
r(p)^2 = (1 - p)^2 s1 + p^2 s2 + p (1 - p) k, 0 <= p <= 1, and centres that may be off by o more. With h = |H| and
m_i = <Q_i, H> - o h, all their metrics have <M, H> > 0 if m1 > 0, m2 > 0 and ((1 - p) m1 + p m2)^2 > h^2 r(p)^2,
that is A (1 - p)^2 + B p^2 + C p (1 - p) > 0 with A = m1^2 - h^2 s1, B = m2^2 - h^2 s2, C = 2 m1 m2 - h^2 k; on the
whole of [0, 1] that is A > 0, B > 0 and C > -2 sqrt(A B).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from triscreen._utils.validation import as_numbers, shortened
from triscreen.errors import InputError
from triscreen.verification.balls import BITS, dot, high, load_flint, low, root


def margins_in(points: ArrayLike, center: ArrayLike, radius: float) -> tuple[float, float]:
    """Return (low, high): margins of a triplet under every M within a radius of a centre, rounded outwards.

    Parameters
    ----------
    points : array, shape (3, d)
        x_i, x_j, x_l. The triplet is in zone R for sure if low > 1, in zone L if high < 1 - gamma, and x_j is nearer to
        x_i than x_l is for sure if low > 0.
    center : array, shape (d, d) or (d,)
        For the diagonal cone its vectors, whose norm is then meant.
    radius : float
        In the Frobenius norm.

    Returns
    -------
    tuple of two float

    References
    ----------
    docs/reliability.md; ours. Arb, by python-flint.

    Examples
    --------
    >>> from triscreen.verification import margins_in
    >>> low, high = margins_in([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], [[1.0, 0.0], [0.0, 1.0]], 0.1)
    >>> round(low, 3), round(high, 3)
    (2.588, 3.412)
    """
    flint = load_flint()
    points, center = as_numbers(points, "points"), as_numbers(center, "center")
    _check(points, center, radius)
    with flint.ctx.workprec(BITS):
        margin, norm = _margin(flint, points, center)
        reach = flint.arb(float(radius)) * norm
        return low(margin - reach), high(margin + reach)


def nearer_between(
    points: ArrayLike, centers: Sequence[ArrayLike], squares: Sequence[float], k: float, off: float = 0.0
) -> int:
    """Return whether x_j is nearer to x_i than x_l for every lambda between two ends: 1 yes, -1 no, 0 not proven.

    Parameters
    ----------
    points : array, shape (3, d)
        x_i, x_j, x_l.
    centers : two arrays, each (d, d) or (d,)
        Q1 and Q2.
    squares : two float
        s1 and s2, the squares of the radii at the ends.
    k : float
        Of r^2 <= (1 - p)^2 s1 + p^2 s2 + p (1 - p) k, docs/selection.md.
    off : float, optional
        How far the centres may be from the exact ones.

    Returns
    -------
    int

    References
    ----------
    docs/selection.md; ours. Arb, by python-flint.

    Examples
    --------
    >>> from triscreen.verification import nearer_between
    >>> Q1, Q2 = [[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 1.0]]
    >>> points = [[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]
    >>> nearer_between(points, (Q1, Q2), (0.01, 0.01), 0.0), nearer_between(points, (Q1, Q2), (0.01, 1.0), 0.0)
    (1, 0)
    """
    flint, points = load_flint(), as_numbers(points, "points")
    centers = [as_numbers(center, "centers") for center in centers]
    for center in centers:
        _check(points, center, off)
    if len(centers) != 2 or len(squares) != 2 or not (np.isfinite([*squares, k]).all() and min(squares) >= 0):
        raise InputError(
            f"squares={shortened(squares)}, k={shortened(k)}: two ends have two squares of radii and one k"
        )
    if centers[0].shape != centers[1].shape:
        raise InputError(
            f"centers have shapes {centers[0].shape} and {centers[1].shape}: both must be (d, d), or both (d,)"
        )
    with flint.ctx.workprec(BITS):
        (one, h), (two, _) = (_margin(flint, points, center) for center in centers)
        s1, s2, k = (flint.arb(float(number)) for number in (*squares, k))
        for sign in (1, -1):
            m1, m2 = (sign * margin - flint.arb(float(off)) * h for margin in (one, two))
            A, B, C = m1 * m1 - h * h * s1, m2 * m2 - h * h * s2, 2 * m1 * m2 - h * h * k
            if m1 > 0 and m2 > 0 and A > 0 and B > 0 and C + 2 * (A * B).sqrt() > 0:
                return sign
    return 0


def _check(points, center, radius):
    d = points.shape[-1]
    if points.shape != (3, d) or center.shape not in ((d,), (d, d)) or not (np.isfinite(points).all() and d):
        raise InputError(
            f"points has shape {points.shape}, center {center.shape}: they must be (3, d), and (d, d) or (d,)"
        )
    if not (np.isfinite(center).all() and radius >= 0):
        raise InputError(f"radius={shortened(radius)}: center and radius must be finite numbers, radius no less than 0")


def _margin(flint, points, center):
    """Return (<Q, H>, |H|)."""
    x, near, far = flint.arb_mat(points.tolist()).tolist()
    u, v = ([a - b for a, b in zip(x, other, strict=True)] for other in (far, near))
    if center.ndim == 1:
        h = [a * a - b * b for a, b in zip(u, v, strict=True)]
        margin = sum((a * flint.arb(m) for a, m in zip(h, center.tolist(), strict=True)), flint.arb(0))
        return margin, root(sum((a * a for a in h), flint.arb(0)))
    Q, q = flint.arb_mat(center.tolist()), [a - b for a, b in zip(u, v, strict=True)]
    u, v, q, s = (flint.arb_mat([row]) for row in (u, v, q, [a + b for a, b in zip(u, v, strict=True)]))
    across = dot(q, s)
    norm = root((dot(q, q) * dot(s, s) + across * across) / 2)  # |uu' - vv'|
    return dot(u * Q, u) - dot(v * Q, v), norm
