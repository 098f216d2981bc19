"""Sums of what shards give: in the order of the shards, with the rounding errors carried along."""

from __future__ import annotations

import numpy as np


def added(parts):
    """Return the sum of arrays, in their order, compensated: off by a unit of rounding or two, whatever their number.

    Examples
    --------
    >>> import numpy as np
    >>> float(added([np.array(1.0), np.array(1e100), np.array(1.0), np.array(-1e100)]))
    2.0
    """
    total = np.array(parts[0], dtype=np.float64)
    error = np.zeros_like(total)
    for part in parts[1:]:
        after = total + part
        # What is lost of the smaller one (Neumaier).
        error += np.where(np.abs(total) >= np.abs(part), (total - after) + part, (part - after) + total)
        total = after
    return total + error


def echo(array, n_jobs=1):
    """Return an array as it is: what a round trip costs (a task)."""
    return array
