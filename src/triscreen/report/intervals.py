"""How much a share that was counted on a few says of all.

References
----------
E. B. Wilson. Probable inference, the law of succession, and statistical inference. JASA 22, 1927.
"""

from __future__ import annotations

from math import sqrt

_Z = 1.959963984540054  # the 97.5 % point of the normal distribution


def wilson(wrong, n):
    """Return the ends of Wilson's 95 % interval of a share, of which wrong of n were seen."""
    share, square = wrong / n, _Z**2 / n
    middle = (share + square / 2) / (1 + square)
    half = _Z / (1 + square) * sqrt(share * (1 - share) / n + square / (4 * n))
    return (0.0 if wrong == 0 else max(0.0, middle - half)), (1.0 if wrong == n else min(1.0, middle + half))


def counted(error, n):
    """Return a share of n as text: "2 of 100, 2.0 % (95 %: 0.6 to 7.0 %)"."""
    wrong = round(error * n)
    low, high = wilson(wrong, n)
    return f"{wrong:,} of {n:,}, {error:.1%} (95 %: {100 * low:.1f} to {100 * high:.1f} %)"
