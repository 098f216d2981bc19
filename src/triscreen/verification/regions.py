"""What every metric in a ball makes of three points: the decision of a screening rule, or which of two is nearer.

<M, H> with H = uu' - vv', u = x_i - x_l, v = x_i - x_j lies within r |H| of <Q, H> for every M within r of Q, and with
q = u - v, s = u + v, |H|^2 = (|q|^2 |s|^2 + (q's)^2)/2. In ball arithmetic, like `triscreen.verification.gaps`.
"""

from __future__ import annotations

import numpy as np

from triscreen._utils.validation import as_numbers, shortened
from triscreen.errors import InputError
from triscreen.verification.balls import BITS, dot, high, load_flint, low


def margins_in(points, center, radius):
    """Return (low, high): margins of a triplet under every M within a radius of a centre, rounded outwards.

    Parameters
    ----------
    points : array, shape (3, d)
        x_i, x_j, x_l. The triplet is in zone R for sure if low > 1, in zone L if high < 1 - gamma, and x_j is nearer to
        x_i than x_l is for sure if low > 0.
    center : array, shape (d, d) or (d,)
        For the diagonal cone its vectors, whose norm is then meant.
    radius : float

    Returns
    -------
    tuple of two float

    Examples
    --------
    >>> from triscreen.verification import margins_in
    >>> low, high = margins_in([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], [[1.0, 0.0], [0.0, 1.0]], 0.1)
    >>> round(low, 3), round(high, 3)
    (2.588, 3.412)
    """
    flint = load_flint()
    points, center = as_numbers(points, "points"), as_numbers(center, "center")
    d = points.shape[-1]
    if points.shape != (3, d) or center.shape not in ((d,), (d, d)) or not (np.isfinite(points).all() and d):
        raise InputError(
            f"points has shape {points.shape}, center {center.shape}: they must be (3, d), and (d, d) or (d,)"
        )
    if not (np.isfinite(center).all() and radius >= 0):
        raise InputError(f"radius={shortened(radius)}: center and radius must be finite numbers, radius no less than 0")
    with flint.ctx.workprec(BITS):
        x, near, far = flint.arb_mat(points.tolist()).tolist()
        u, v = ([a - b for a, b in zip(x, other, strict=True)] for other in (far, near))
        if center.ndim == 1:
            h = [a * a - b * b for a, b in zip(u, v, strict=True)]
            margin = sum((a * flint.arb(m) for a, m in zip(h, center.tolist(), strict=True)), flint.arb(0))
            norm = sum((a * a for a in h), flint.arb(0)).sqrt()
        else:
            Q, q = flint.arb_mat(center.tolist()), [a - b for a, b in zip(u, v, strict=True)]
            u, v, q, s = (flint.arb_mat([row]) for row in (u, v, q, [a + b for a, b in zip(u, v, strict=True)]))
            margin = dot(u * Q, u) - dot(v * Q, v)
            norm = ((dot(q, q) * dot(s, s) + dot(q, s) ** 2) / 2).sqrt()  # |uu' - vv'|
        reach = flint.arb(float(radius)) * norm
        return low(margin - reach), high(margin + reach)
