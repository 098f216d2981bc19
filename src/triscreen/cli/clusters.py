"""``--scheduler`` and ``--workers``: commands on a Dask cluster."""

from __future__ import annotations

import logging
from contextlib import contextmanager

from triscreen.errors import InputError


@contextmanager
def client_on(scheduler, workers):
    """Give a client of the cluster at an address, or of so many processes here; None where neither is asked for."""
    if scheduler is None and workers is None:
        yield None
        return
    from triscreen.estimators.cluster import client_of

    if scheduler is not None:
        with client_of(scheduler) as client:
            yield client
        return
    with _processes(workers) as client:
        yield client


@contextmanager
def _processes(workers):
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise InputError(f"workers={workers}: it needs Dask, pip install 'triscreen[dask]'") from None
    from triscreen._utils.threads import cpu_count

    options = {"threads_per_worker": max(1, cpu_count() // workers), "dashboard_address": "127.0.0.1:0"}
    with (
        LocalCluster(n_workers=workers, silence_logs=logging.CRITICAL, **options) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client
