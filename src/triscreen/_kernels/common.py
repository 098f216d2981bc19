"""What kernels share: how they are compiled, sums that keep their errors, and what one triplet is worth.

Every kernel is compiled once, cached on disk, and runs without the interpreter lock; division by zero gives infinity.
Where numba finds no place for its cache (no home, read-only installation, import from an archive) kernels are compiled
anew in each process, and one line says so. A cache that is damaged or cannot be written costs time, never an error.
"""

from __future__ import annotations

import logging

from numba import njit

# Sums may be reordered and fused, or they would not vectorise; the error bound of a sum holds for any order.
SUMS = {"reassoc", "contract"}

# The zones of a triplet: undecided; L, margin below 1 - gamma (linear loss); R, margin above 1 (zero loss).
UNDECIDED, LINEAR, ZERO = 0, 1, 2

_log = logging.getLogger("triscreen")
_said = False


def compiled(**options):
    """Return the decorator of a kernel; options: those of ``numba.njit``."""
    options = {"nogil": True, "error_model": "numpy", **options}

    def decorate(kernel):
        try:
            made = njit(cache=True, **options)(kernel)
        except (RuntimeError, OSError) as err:
            _say_once(err)
            return njit(**options)(kernel)
        if hasattr(made, "_cache"):
            made._cache = _Careful(made._cache)
        return made

    return decorate


def inner(**options):
    """Return the decorator of a function that only kernels call and that makes no arrays.

    It cannot be called from Python and does not count references to its arrays, which halves the time to compile.
    """
    return njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False, **options)


def _say_once(err):
    global _said
    if not _said:
        _said = True
        _log.warning(
            "kernels are compiled anew in each process, some 15 seconds: numba's cache does not work here (%s); set "
            "NUMBA_CACHE_DIR to a folder that can be written",
            " ".join(str(err).split()),
        )


class _Careful:
    """numba's cache of one kernel, where whatever goes wrong means that the kernel is compiled.

    It also refuses an entry of another signature: two processes that save at once may give two entries one file.
    """

    def __init__(self, cache):
        self._cache = cache

    def __getattr__(self, name):
        if name == "_cache":  # not there yet: while it is unpickled
            raise AttributeError(name)
        return getattr(self._cache, name)

    def load_overload(self, sig, target_context):
        try:
            found = self._cache.load_overload(sig, target_context)
        except Exception:
            self._forget()
            return None
        wanted = tuple(getattr(sig, "args", sig))
        return found if found is None or tuple(found.signature.args) == wanted else None

    def save_overload(self, sig, data):
        try:
            self._cache.save_overload(sig, data)
        except Exception as err:
            _say_once(err)

    def _forget(self):
        try:
            self._cache.flush()
        except Exception as err:
            _say_once(err)


@compiled()
def join(sums, part):
    """Add part to the totals sums[0], the errors of these additions to sums[1] (Neumaier); part becomes zero."""
    for k in range(part.size):
        total = sums[0, k] + part[k]
        if abs(sums[0, k]) >= abs(part[k]):
            sums[1, k] += (sums[0, k] - total) + part[k]
        else:
            sums[1, k] += (part[k] - total) + sums[0, k]
        sums[0, k] = total
        part[k] = 0.0


@compiled()
def sort_by_gap(keys, order, gap, most):
    """Sort the keys that are gap apart by insertion, and order with them; False: that took more than so many moves."""
    moves = 0
    for j in range(gap, keys.size):
        key, own = keys[j], order[j]
        k = j
        while k >= gap and keys[k - gap] > key:
            keys[k], order[k] = keys[k - gap], order[k - gap]
            k -= gap
        if k < j:
            keys[k], order[k] = key, own
            moves += j - k
            if moves > most:
                return False
    return True


@njit(inline="always")
def given_alpha(b, a, w, gamma, sums):
    """Add one triplet with its own alpha: loss, dual sum, and loss - alpha b + (g/2) alpha^2 >= 0 zone by zone."""
    if b >= gamma:
        loss = b - 0.5 * gamma
        slack = (1.0 - a) * (b - 0.5 * gamma * (1.0 + a))
    elif b > 0.0:
        loss = 0.5 * b * b / gamma
        slack = 0.5 * gamma * (a - b / gamma) ** 2
    else:
        loss = 0.0
        slack = 0.5 * gamma * a * a - a * b
    sums[0] += w * loss
    sums[1] += w * (a - 0.5 * gamma * a * a)
    sums[2] += w * slack


@njit(inline="always")
def alpha_at(margin, smoothing):
    """The alpha of one triplet: clip((1 - margin) / smoothing, 0, 1)."""
    a = (1.0 - margin) / smoothing
    a = 0.0 if a < 0.0 else a
    return 1.0 if a > 1.0 else a


@njit(inline="always")
def sphere_rule(t, low, high, error, reach, gamma, zones, counts):
    """Zone of one triplet whose margin at the centre is high - low, off by error, and moves by at most reach."""
    margin = high - low
    doubt = error + reach
    if margin - doubt > 1.0:
        zones[t] = ZERO
        counts[1] += 1
    elif margin + doubt < 1.0 - gamma:
        zones[t] = LINEAR
        counts[0] += 1


@njit(inline="always")
def off_zone(margin, zone, inverse):
    """Does a decided triplet have another alpha than its zone says (1 in L, 0 in R)?"""
    b = 1.0 - margin
    return (zone == LINEAR and b * inverse < 1.0) or (zone == ZERO and b > 0.0)
