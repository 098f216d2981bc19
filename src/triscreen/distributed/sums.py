"""Sums of what shards give: in the order of the shards, with the rounding errors carried along."""

from __future__ import annotations

import numpy as np

_BLOCK = 1 << 13  # numbers at a time


def added(parts):
    """Return the sum of arrays, in their order, compensated: off by a unit of rounding or two, whatever their number.

    Examples
    --------
    >>> import numpy as np
    >>> float(added([np.array(1.0), np.array(1e100), np.array(1.0), np.array(-1e100)]))
    2.0
    """
    flat = [np.ascontiguousarray(part, dtype=np.float64).ravel() for part in parts]
    total = np.empty(flat[0].size)
    for start in range(0, total.size, _BLOCK):  # what a core has at hand: large matrices of many shards take a while
        total[start : start + _BLOCK] = _added([part[start : start + _BLOCK] for part in flat])
    return total.reshape(np.shape(parts[0]))


def _added(parts):
    total, error = parts[0].copy(), np.zeros(len(parts[0]))
    for part in parts[1:]:
        after = total + part
        share = after - total
        error += (total - (after - share)) + (part - share)  # what is lost, exactly (Knuth)
        total = after
    return total + error


def echo(array, n_jobs=1):
    """Return an array as it is: what a round trip costs (a task)."""
    return array
