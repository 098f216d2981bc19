"""How every kernel is compiled: once, cached on disk, without the interpreter lock; division by zero gives infinity.

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
