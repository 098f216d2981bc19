"""Small Dask clusters of processes for tests, and ways to harm their workers."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import time
from contextlib import contextmanager

import numpy as np

# What workers need: a server of processes imports it once, and workers are made of that in no time.
PRELOAD = ["distributed.nanny", "triscreen.distributed.pool", "warm"]


@contextmanager
def cluster_of(n_workers, **options):
    """Give (client, cluster) of so many worker processes, each with a nanny that starts it again."""
    import dask
    from distributed import Client, LocalCluster
    from distributed.utils import get_mp_context

    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)  # where the server looks for these
    settings = {
        "distributed.worker.multiprocessing-method": "forkserver",
        "distributed.comm.timeouts.connect": "10s",
        # A nanny whose worker is not back by then is closed for good: 15 s are few on a busy machine.
        "distributed.deploy.lost-worker-timeout": "120s",
        "distributed.nanny.pre-spawn-environ": {"OMP_NUM_THREADS": "1", "MALLOC_TRIM_THRESHOLD_": "65536"},
    }
    options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL, **options}
    with dask.config.set(settings):
        get_mp_context()  # Dask says once what it wants to be imported there; we say it after that
    multiprocessing.set_forkserver_preload(PRELOAD)
    with (
        dask.config.set(settings),
        LocalCluster(n_workers=n_workers, **options) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client, cluster


def pids(client):
    """Return {worker: process number}."""
    return client.run(os.getpid, on_error="ignore")


def numbers_of(client):
    """Return the process numbers that can be had now, in the middle of harm."""
    try:
        return sorted(pids(client).values())
    except Exception:  # of Dask, which is busy with the last one
        return []


def scale_to(client, cluster, count):
    """See to it that there are so many workers, all of them with a nanny."""
    if len(client.nthreads()) != count or len(cluster.workers) != count:
        cluster.scale(0)
        wait_for_workers(client, 0)
        cluster.scale(count)
        wait_for_workers(client, count)


def harm(pid, how):
    """Send a signal, if the process is there."""
    try:
        os.kill(pid, how)
    except ProcessLookupError:
        return False
    return True


def wait_for_workers(client, count, seconds=120.0):
    """Return when there are so many workers."""
    end = time.monotonic() + seconds
    while len(client.nthreads()) != count:
        assert time.monotonic() < end, f"{len(client.nthreads())} workers, not {count}"
        time.sleep(0.05)


def eventually(ask, good, seconds=60.0):
    """Return the first answer that is good."""
    end = time.monotonic() + seconds
    while not good(answer := ask()):
        assert time.monotonic() < end, answer
        time.sleep(0.05)
    return answer


# -- what workers are asked to do --------------------------------------------------------------------------------------


def asleep(seconds, number, n_jobs=1):
    """Return the number after a while; a worker that is to sleep backwards dies of it."""
    if seconds < 0:
        os._exit(1)
    time.sleep(seconds)
    return number


def noted(folder, seconds, number, n_jobs=1):
    """Return the number after a while, and leave a file: of the first time that it was asked for, the second..."""
    times = len(list(folder.glob(f"{number}-*")))
    (folder / f"{number}-{times}").touch()
    time.sleep(seconds)
    return number


def noted_unless(folder, number, worker, wrong, n_jobs=1):
    """The same at once; but one number raises on one worker."""
    from distributed import get_worker

    if number == wrong and get_worker().address == worker:
        raise OSError("the disk is gone")
    return noted(folder, 0.0, number)


def break_down(text):
    """Raise whenever a shard is to be made, from now on; None: no more."""
    from triscreen.distributed import plan, shards

    def load(*_):
        raise OSError(text)

    shards.load = plan.load if text is None else load
    shards._states.clear()


def shards_of(plan):
    """Return the shards of a plan that this process remembers."""
    from triscreen.distributed import shards

    return sorted({shard for known, shard, _ in shards._states if known == plan})


def known():
    """Return the files of all that this process remembers of problems and of cross-validations."""
    from triscreen.distributed import plan, shards
    from triscreen.estimators import tasks

    plans = {key[0] for key in shards._states} | set(plan._shared)
    return {one.file for one in plans} | {str(key[0]) for key in tasks._read_before}


def same_bits(path, other):
    """Are two paths the same to the last bit, work apart?"""
    assert len(path) == len(other)
    for name in ("lambdas", "primals", "gaps", "passes", "n_iter"):
        assert np.array_equal(getattr(path, name), getattr(other, name)), name
    for t in range(len(path)):
        assert np.array_equal(path.M(t), other.M(t))


STOP, CONTINUE, KILL = signal.SIGSTOP, signal.SIGCONT, signal.SIGKILL
