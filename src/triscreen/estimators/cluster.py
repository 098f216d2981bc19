"""Fits whose triplets live on the workers of a Dask cluster."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext

from triscreen._utils.validation import shortened
from triscreen.distributed.problem import pool_of, prepare
from triscreen.distributed.source import Temporary
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


class Shards:
    """Makes the triplets of an estimator on a cluster.

    Parameters
    ----------
    client : dask.distributed.Client or None
    estimator : TripletMetric
    X, y, weights : arrays
    """

    def __init__(self, client, estimator, X, y, weights):
        self.pool = pool_of(client, estimator.n_jobs)
        self.home = Temporary()
        self.estimator, self.X, self.y, self.weights = estimator, X, y, weights

    @classmethod
    @contextmanager
    def of(cls, estimator, X, y, weights):
        """Give those of an estimator's scheduler; None where it has none."""
        if estimator.scheduler is None:
            yield None
            return
        with client_of(estimator.scheduler) as client:
            made = cls(client, estimator, X, y, weights)
            try:
                yield made
            finally:
                made.pool.close()

    def triplets(self, Z, N):
        """Return triplets whose neighbours are nearest in Z, for problems with multiples of the prior N, or none."""
        how, space = self.estimator, None if Z is self.X else Z
        return prepare(
            self.pool, self.X, self.y, how.triplets, how.n_neighbors, None, self.home.name, weights=self.weights,
            loss=how._loss(), cone=how.cone, n_jobs=how.n_jobs, prior=N, space=space,
        )  # fmt: skip


def check_alone(estimator, neighbors):
    """Refuse what a fit on a cluster cannot do."""
    if estimator.memory_budget is not None:
        raise InputError(
            f"memory_budget={shortened(estimator.memory_budget)}: with scheduler={estimator.scheduler!r} it must be "
            "None; workers have limits of their own"
        )
    if neighbors is not None:
        raise InputError(f"neighbors is given: with scheduler={estimator.scheduler!r} the workers search for them")
