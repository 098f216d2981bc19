"""Ball arithmetic: numbers as intervals that hold the exact ones, by Arb (python-flint)."""

from __future__ import annotations

import math

import numpy as np

from triscreen.errors import MissingPackage

BITS = 128  # of the middles of balls; any number is safe


def load_flint():
    """Import python-flint, or say how to get it."""
    try:
        import flint
    except ImportError:
        sentence = "python-flint is not installed: verify needs it (pip install 'triscreen[verify]')"
        raise MissingPackage(sentence) from None
    return flint


def dot(P, Q):
    """<P, Q>."""
    pairs = zip(P.entries(), Q.entries(), strict=True)
    return sum((p * q for p, q in pairs), type(P[0, 0])(0))


def root(x):
    """The square root of a number that is no less than 0, even where its ball reaches below."""
    return x.sqrt() if x >= 0 else type(x)(0).union(x.upper().sqrt())


def floats(matrix):
    """Return the middles of a matrix of balls, as floats."""
    return np.array([[float(x.mid()) for x in row] for row in matrix.tolist()])


def low(x):
    """A float that no number of the ball is below."""
    return math.nextafter(float(x.lower()), -math.inf)


def high(x):
    """A float that no number of the ball is above."""
    return math.nextafter(float(x.upper()), math.inf)
