"""The grid of lam / lambda_max that a cross-validation looks at."""

from __future__ import annotations

import numpy as np

from triscreen._utils.validation import as_count, as_numbers, as_positive, shortened
from triscreen.errors import InputError

# Lambdas that are farther apart have others in between, for the walk down only.
LEAP = 6.0
# With a prior nothing happens at larger ratios: lambda_max is where M is within 1 % of it.
LARGEST_WITH_PRIOR = 0.03


def grid(ratios, smallest_ratio, with_prior):
    """Return falling ratios: those given, or so many down to the smallest."""
    if np.ndim(ratios) == 0:
        smallest, largest = as_positive(smallest_ratio, "smallest_ratio"), 1.0
        if smallest >= 1:
            raise InputError(f"smallest_ratio={smallest!r}: it must be smaller than 1, where the grid begins")
        if with_prior and smallest < LARGEST_WITH_PRIOR:
            largest = LARGEST_WITH_PRIOR
        return np.geomspace(largest, smallest, as_count(ratios, "ratios"))
    found = as_numbers(ratios, "ratios")
    good = found.ndim == 1 and len(found) and np.isfinite(found).all()
    if not good or not (found > 0).all() or not (np.diff(found) < 0).all():
        raise InputError(f"ratios={shortened(ratios)}: it must be a number of values, or falling positive values")
    return found


def without_leaps(ratios, top=1.0):
    """Return (ratios with steps in between where they are far apart, also from top on; places of the given ones)."""
    lead = (
        np.geomspace(top, ratios[0], 2 + int(np.log(top / ratios[0]) / np.log(LEAP)))
        if ratios[0] < top / LEAP
        else ratios[:1]
    )
    steps = 1 + (-np.diff(np.log(ratios)) / np.log(LEAP)).astype(int)  # from each ratio to the next
    places = len(lead) - 1 + np.concatenate([[0], np.cumsum(steps)])
    filled = np.empty(places[-1] + 1)
    filled[: len(lead)], filled[places] = lead, ratios
    for t in np.flatnonzero(steps > 1):
        filled[places[t] : places[t + 1] + 1] = np.geomspace(ratios[t], ratios[t + 1], steps[t] + 1)
    return filled, places
