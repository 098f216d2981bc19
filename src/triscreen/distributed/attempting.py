"""What a worker does with a task of the pool: its jobs one after the other, whatever they raise."""

from __future__ import annotations

import pickle
from importlib import import_module

from triscreen.distributed.workers import described, name_of
from triscreen.errors import InputError


def version_here():
    """Return the version of this process."""
    return import_module("triscreen").__version__


def attempt(function, jobs, n_jobs, version, known):
    """Do some jobs on a worker; return (the worker, what it is, [whether it went well, the answer or what was raised]).

    What it is: None where the driver knows the name of that.
    """
    from distributed import get_worker

    worker = get_worker().address
    if version_here() != version:  # one that came later
        told = InputError(f"the worker {worker} has triscreen {version_here()}: it must have {version}")
        return worker, None, [(False, told)] * len(jobs)
    kind = described()
    return worker, None if name_of(kind) in known else kind, [_attempted(function, job, n_jobs) for job in jobs]


def _attempted(function, arguments, n_jobs):
    try:
        return True, function(*arguments, n_jobs=n_jobs)
    except Exception as err:
        return False, _that_travels(err)


def _that_travels(err):
    """Return an error as it is, or, where nobody could read it at the other end, what it says."""
    try:
        pickle.loads(pickle.dumps(err))
        return err
    except Exception:
        return RuntimeError(f"{type(err).__name__}: {err}")
