"""How every kernel is compiled: once, cached on disk, without the interpreter lock; division by zero gives infinity."""

from __future__ import annotations

from functools import partial

from numba import njit

# Sums may be reordered and fused, or they would not vectorise; the error bound of a sum holds for any order.
SUMS = {"reassoc", "contract"}

# The zones of a triplet: undecided; L, margin below 1 - gamma (linear loss); R, margin above 1 (zero loss).
UNDECIDED, LINEAR, ZERO = 0, 1, 2

compiled = partial(njit, cache=True, nogil=True, error_model="numpy")
