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
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise InputError(f"workers={workers}: it needs Dask, pip install 'triscreen[dask]'") from None
    from triscreen._utils.threads import cpu_count

    options = {"threads_per_worker": max(1, cpu_count() // workers), "dashboard_address": "127.0.0.1:0"}
    with (
        # By Dask's default a worker that is not back within 15 s, on a busy machine, is given up for good.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "120s"}),
        LocalCluster(n_workers=workers, silence_logs=logging.CRITICAL, **options) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def problem_on(client, data, kind, k, gamma, cone, jobs, budget, start):
    """Return the problem of `make_problem`, its triplets on the workers of a client."""
    from triscreen.cli.made import points_of_neighbours
    from triscreen.distributed.problem import pool_of, prepare
    from triscreen.estimators.starts import make_start, scaled_start
    from triscreen.problem.losses import loss_of

    loss, N = loss_of(gamma), make_start(start, data.X, data.y, cone)
    if data.rows is None:
        Z = points_of_neighbours(data, start, cone)
        given = {"y": data.y, "triplets": kind, "k": k, "space": None if Z is data.X else Z}
    else:
        given = {"y": None, "comparisons": data.rows}
    T = prepare(pool_of(client, jobs), data.X, loss=loss, cone=cone, n_jobs=jobs, prior=N, **given)
    return T.problem(scaled_start(N, data.X, T, loss, jobs)[0])
