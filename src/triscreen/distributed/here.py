"""The shards in this process: without a cluster, and the reference of every test."""

from __future__ import annotations

from triscreen._utils.threads import check_time, resolve_n_jobs


class Here:
    """Does the work of shards one after the other, each on all threads."""

    def __init__(self, n_jobs=None):
        self.n_jobs = resolve_n_jobs(n_jobs)

    def map(self, title, function, jobs, places=None, arrived=None, long=False):
        """Return ``function(*job)`` of every job; see `triscreen.distributed.pool.Cluster.map`."""
        out = []
        for number, job in enumerate(jobs):
            check_time()
            out.append(function(*job, n_jobs=self.n_jobs))
            if arrived is not None:
                arrived(number, out[-1])
        return out

    def computed(self, collection):
        """Return what Dask makes, wherever it likes to."""
        return collection.compute()

    @property
    def room(self):
        """How many jobs are done at once."""
        return 1

    def check(self, folder):
        """There is nothing to check: this process can read what it has written."""

    def check_memory(self, what, kept, working):
        """Nothing is known of a limit."""

    def serve(self, plan):
        """All shards are here anyway."""

    def close(self):
        """What is remembered goes with the problem."""

    def forget(self, plan):
        """Drop what is remembered of a plan."""
        from triscreen.distributed.shards import forget

        forget(plan)
