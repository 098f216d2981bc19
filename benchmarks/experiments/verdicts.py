"""What several subsamples allow one to say of a claim: it holds, it does not hold, or that is undecided.

A claim is put as numbers against a bar, one number a subsample: how many times faster, which share is decided. Methods
are compared within a subsample (they took turns on it), and what differs from subsample to subsample is averaged. The
interval is Student's for the mean, at 95 %:

    mean +- t(count - 1) * standard deviation / sqrt(count)

The claim holds if all of the interval is on its side of the bar, does not hold if none of it is, and is undecided
otherwise, and always with fewer than three subsamples. A claim of several parts (one a data set, say) holds if each
part does, and does not hold if one part does not. Subsamples are 90 % of the same points: the interval says how far the
numbers wander on these data, not what others would give; and it is one interval a part, with nothing taken off for
there being many.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

HOLDS, MISSED, OPEN = "holds", "does not hold", "undecided"
LEVEL, FEWEST = 0.95, 3


@dataclass(frozen=True)
class Spread:
    """The mean of some numbers, and half the interval around it; infinite where there is no telling."""

    mean: float
    half: float
    count: int

    @property
    def low(self):
        """The lower end of the interval."""
        return self.mean - self.half

    @property
    def high(self):
        """The upper end."""
        return self.mean + self.half


def spread(values):
    """Return the `Spread` of numbers, one a subsample."""
    values = np.asarray([value for value in values if value is not None and np.isfinite(value)], dtype=float)
    count = len(values)
    if count < 2:
        return Spread(float(values.mean()) if count else float("nan"), float("inf"), count)
    factor = student.ppf(0.5 + LEVEL / 2, count - 1) / np.sqrt(count)
    return Spread(float(values.mean()), float(factor * values.std(ddof=1)), count)


def above(values, bar=0.0):
    """Is the mean at least the bar?"""
    found = spread(values)
    if found.count < FEWEST:
        return OPEN
    return HOLDS if found.low >= bar else MISSED if found.high < bar else OPEN


def below(values, bar=0.0):
    """Is it at most the bar?"""
    return above([None if value is None else -value for value in values], -bar)


def all_of(*parts):
    """Return what parts come to that a claim makes all of."""
    if not parts or OPEN in parts:
        return MISSED if MISSED in parts else OPEN
    return MISSED if MISSED in parts else HOLDS


def any_of(*parts):
    """Return what parts come to of which a claim needs one."""
    return HOLDS if HOLDS in parts else OPEN if OPEN in parts or not parts else MISSED


def show(values, form="{:.2f}", unit=""):
    """Return the mean with half its interval, or the mean alone where there are too few numbers for one.

    Without a form: as many digits as half the interval has two of, or three of the mean.
    """
    found = spread(values)
    if found.count == 0:
        return ""
    if form is None:
        size = found.half if found.count >= FEWEST and found.half > 0 else 0.1 * abs(found.mean)
        form = f"{{:.{max(0, 1 - int(np.floor(np.log10(size))) if size > 0 else 0)}f}}"
    text = form.format(found.mean)
    return f"{text} ± {form.format(found.half)}{unit}" if found.count >= FEWEST else text + unit


def shares(values, digits=1):
    """Return shares in per cent, the same way."""
    return show([100 * value for value in values], f"{{:.{digits}f}}", " %")


def subsamples(count):
    """Return a remark on how many there were."""
    return "one subsample" if count == 1 else f"{count} subsamples"
