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


def problem_on(client, data, kind, k, gamma, cone, jobs, budget):
    """Return the problem of labelled points, or of comparisons, whose triplets live on the workers of a client."""
    from triscreen.distributed import problem
    from triscreen.problem.losses import loss_of

    given = {"comparisons": data.rows} if data.rows is not None else {"y": data.y, "triplets": kind, "k": k}
    return problem(client, data.X, loss=loss_of(gamma), cone=cone, n_jobs=jobs, **given)
