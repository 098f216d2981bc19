"""What workers are: can they do the work, to the same bits, and have they the memory for it?"""

from __future__ import annotations

import hashlib
import platform
import time
import warnings
from functools import cache
from importlib import import_module

from triscreen.distributed.asking import NoAnswer, on_loop, outcome
from triscreen.distributed.asking import ask as asked
from triscreen.errors import ClusterError, InputError


@cache
def described():
    """Return what the bits of this process depend on."""
    import llvmlite.binding as llvm
    import numba
    import numpy
    import scipy

    return {
        "triscreen": import_module("triscreen").__version__,
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
        "python": platform.python_version(),
        "processor": llvm.get_host_cpu_name(),
        "flags": " ".join(sorted(name for name, on in llvm.get_host_cpu_features().items() if on)),
    }


def versions_on(client, folder, workers, seconds):
    """Return for every worker what it runs: a dict, or the text of what went wrong, or an `OSError`.

    Each is asked by itself: one that has stopped holds up nobody for longer than so many seconds.
    """

    def ask(folder, version):
        # Sent as it is, not by name: a worker without triscreen can answer, too.
        import importlib
        import os

        try:
            found = {"triscreen": importlib.import_module("triscreen").__version__}
            if found["triscreen"] != version:
                return found
            found = importlib.import_module("triscreen.distributed.workers").described()
        except (ImportError, OSError) as err:  # of a library that it cannot load
            return f"cannot import what it needs ({err}): install triscreen[dask] there"
        try:
            os.listdir(folder)
        except OSError as err:
            return (
                f"cannot read the folder {folder!r} ({err.strerror}): pass a folder= that every worker can read, or "
                "set Dask's temporary-directory to one"
            )
        return found

    def answer(worker):
        return client.run(ask, str(folder), version, workers=[worker], on_error="return", asynchronous=True)

    version = import_module("triscreen").__version__
    coming = {worker: on_loop(client, answer(worker)) for worker in workers}
    try:
        end = time.monotonic() + seconds
        return {worker: _said(one, end - time.monotonic(), worker) for worker, one in coming.items()}
    finally:
        for one in coming.values():
            one.cancel()


def _said(coming, seconds, worker):
    try:
        return outcome(coming, max(0.0, seconds))[worker]
    except NoAnswer as err:
        return OSError(str(err))


def check_workers(found):
    """Refuse workers that cannot do the work; warn where bits may differ between them; return {name: kind} of them."""
    version = import_module("triscreen").__version__
    for worker, answer in found.items():
        if not isinstance(answer, dict):
            raise InputError(f"the worker {worker} {' '.join(str(answer).split())}")
        if answer["triscreen"] != version:
            raise InputError(
                f"the worker {worker} has triscreen {answer['triscreen']}: it must have {version}, as this process has"
            )
    kinds = {name_of(kind): kind for kind in found.values()}
    warn_of_differences(kinds.values(), stacklevel=5)
    return kinds


def name_of(kind):
    """Return a short name of what a worker is (see `described`)."""
    return hashlib.blake2b(repr(sorted(kind.items())).encode(), digest_size=8).hexdigest()


def warn_of_differences(kinds, stacklevel=2):
    """Warn where what workers are is not the same for all."""
    names = [name for name in described() if len({str(kind[name]) for kind in kinds}) > 1]
    if names:
        what = f"workers differ in {', '.join(names)}: results agree within rounding, not to the bit"
        warnings.warn(what, UserWarning, stacklevel=stacklevel)


def memory_limits(client, workers, seconds):
    """Return the memory limit of every worker, in bytes; 0: none."""
    try:
        info = asked(seconds, client.scheduler_info, n_workers=-1)["workers"]
    except NoAnswer as err:
        raise ClusterError(f"the scheduler does not answer ({err})") from None
    return {worker: int(info[worker]["memory_limit"] or 0) if worker in info else 0 for worker in workers}
