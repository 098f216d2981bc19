"""Fits whose triplets live on the workers of a Dask cluster."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext

from triscreen._utils.validation import shortened
from triscreen.distributed.problem import problem
from triscreen.errors import InputError

_CONNECT = "20s"


@contextmanager
def client_of(scheduler):
    """Give the client of a scheduler: "current", the one that this process has; otherwise one of that address."""
    if not isinstance(scheduler, str):
        raise InputError(f"scheduler={shortened(scheduler)}: scheduler must be None, 'current' or an address")
    try:
        from distributed import Client
    except ImportError:
        raise InputError(f"scheduler={scheduler!r}: it needs Dask, pip install 'triscreen[dask]'") from None
    with _current(Client) if scheduler == "current" else _connected(Client, scheduler) as client:
        yield client


def _current(Client):
    try:
        return nullcontext(Client.current())
    except ValueError:
        raise InputError(
            "scheduler='current': this process has no dask.distributed.Client; make one first, or give an address"
        ) from None


def _connected(Client, address):
    try:
        return Client(address, timeout=_CONNECT, set_as_default=False)
    except (OSError, ValueError) as err:
        why = " ".join(str(err).split())
        raise InputError(f"scheduler={address!r}: no scheduler answers there ({why:.80})") from None


def problem_on(client, X, y, estimator, weights):
    """Return the problem of an estimator in shards, without what needs all points here."""
    return problem(
        client,
        X,
        y,
        estimator.triplets,
        estimator.n_neighbors,
        weights=weights,
        loss=estimator._loss(),
        cone=estimator.cone,
        n_jobs=estimator.n_jobs,
    )


def check_alone(estimator, neighbors):
    """Refuse what a fit on a cluster cannot do."""
    for name, right in (("rounds", 1), ("prior", None), ("memory_budget", None)):
        value = getattr(estimator, name)
        if not (value is None if right is None else value == right):
            raise InputError(f"{name}={shortened(value)}: with scheduler={estimator.scheduler!r} it must be {right}")
    if neighbors is not None:
        raise InputError(f"neighbors is given: with scheduler={estimator.scheduler!r} the workers search for them")
