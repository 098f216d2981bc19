"""Which workers there are, and which of them is to do what: places.

A place is the number of a shard; its home is the worker that has made it, or will. Homes stay where they are while all
goes well. They follow the workers that there are (Dask never gives a new worker what a survivor has taken over), and
workers are told to drop what has its home elsewhere now, so that no memory fills up with shards of others.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter

from triscreen._utils.threads import check_time
from triscreen.distributed.shards import forget, keep_only
from triscreen.errors import ClusterError

_log = logging.getLogger(__name__)
_LOOK = 1.0  # seconds between two looks at the workers


class Crew:
    """The workers of a client.

    Parameters
    ----------
    client : dask.distributed.Client
    patience : float
        Seconds after which a worker is late.
    waiting : float
        Seconds to wait for workers where there are none.

    Attributes
    ----------
    threads : dict
        Worker to its number of threads.
    plan : Plan or None
        Whose shards the places are, once there is one.
    """

    def __init__(self, client, patience, waiting):
        self.client, self.patience, self.waiting = client, patience, waiting
        self.threads, self.plan = {}, None
        self._homes = {}  # place -> worker
        self._settled = ()  # the workers that homes were chosen among
        self._told = {}  # worker -> the places that it knows to be its own
        self._strays = {}  # worker that may have made a shard whose home is elsewhere -> until when it is told so
        self._silent = {}  # worker that kept us waiting -> since when
        self._looked = self._reminded = 0.0
        self._alone = None  # since when there have been no workers

    def look(self, force=False):
        """See which workers there are, now and then."""
        now = time.monotonic()
        if not force and now - self._looked < _LOOK:
            return
        self._looked = now
        if self.client.status in ("connecting", "newly-created"):
            self.threads = {}
            return
        if self.client.status != "running":
            raise ClusterError(f"the client is {self.client.status}: it has no connection to the scheduler any more")
        found = dict(self.client.nthreads())
        if self.threads and found.keys() != self.threads.keys():
            gone, new = self.threads.keys() - found.keys(), found.keys() - self.threads.keys()
            _log.info("workers: %d gone, %d new, %d in all", len(gone), len(new), len(found))
        self.threads = found
        # Who was silent gets another chance after a while.
        late = 4 * self.patience
        self._silent = {one: since for one, since in self._silent.items() if one in found and now - since < late}

    def is_there(self):
        """Is there any worker? A message where there is none, and `ClusterError` where that lasts too long."""
        now = time.monotonic()
        if self.threads:
            self._alone = None
            return True
        if self._alone is None:
            self._alone = now
            _log.warning("the cluster has no workers: waiting up to %.0f s for some", self.waiting)
        if now - self._alone > self.waiting:
            raise ClusterError(
                f"the cluster has had no workers for {self.waiting:.0f} s; start some, and the same call with a "
                "checkpoint goes on where it was"
            )
        return False

    def wait(self):
        """Return when there is a worker."""
        self.look(force=True)
        while not self.is_there():
            check_time()
            time.sleep(0.2)
            self.look()

    @property
    def able(self):
        """Workers that are not silent, in a fixed order; all of them where all are."""
        return sorted(self.threads.keys() - self._silent.keys()) or sorted(self.threads)

    # -- places -------------------------------------------------------------------------------------------------------

    def settle(self, places):
        """See to it that places have homes, of all places no more at one worker than need be."""
        self._remind()
        able = tuple(self.able)
        new = {place for place in places if isinstance(place, int)} - self._homes.keys()
        if not able or (able == self._settled and not new):
            return
        every = sorted(self._homes.keys() | new)
        most, counts, homeless = -(-len(every) // len(able)), Counter(), []
        for place in every:
            worker = self._homes.get(place)
            if worker in able and counts[worker] < most:
                counts[worker] += 1
            else:
                homeless.append(place)
        for place in homeless:
            self._homes[place] = worker = min(able, key=lambda one: (counts[one], one))
            counts[worker] += 1
        self._settled = able
        self._tell()

    def home(self, place, number):
        """Return the worker of a place; of a job without one, any; None where there are no workers."""
        if place in self._homes and self._homes[place] in self.threads:
            return self._homes[place]
        return self.elsewhere((), number)

    def elsewhere(self, excluded, number):
        """Return some other worker, or None where there is none."""
        others = [worker for worker in self.able if worker not in excluded]
        return others[number % len(others)] if others else None

    def n_jobs(self, worker, count):
        """Return how many threads a task may have, where a round has so many: the worker's, shared by its tasks."""
        mine = sum(home == worker for home in self._homes.values()) or -(-count // max(1, len(self.threads)))
        return max(1, self.threads.get(worker, 1) // max(1, min(mine, count)))

    def _tell(self):
        """Let workers drop the shards that have their home elsewhere."""
        if self.plan is None:
            return
        for worker in self._settled:
            own = frozenset(place for place, home in self._homes.items() if home == worker)
            if self._told.get(worker) != own:
                self._told[worker] = own
                self.run(keep_only, self.plan, own, workers=[worker])

    def stray(self, worker, place):
        """Note a worker that has, or may yet have, a shard whose home is elsewhere: it will be told to drop it."""
        if isinstance(place, int):
            self._strays[worker] = time.monotonic() + 8 * self.patience

    def _remind(self):
        """Tell strays, now and then."""
        now = time.monotonic()
        if self._strays and now - self._reminded > _LOOK:
            self._reminded = now
            for worker in self._strays:
                self._told.pop(worker, None)
            self._strays = {one: until for one, until in self._strays.items() if now < until and one in self.threads}
            self._tell()

    def forget(self, plan):
        """Let workers drop all of a plan."""
        self.run(forget, plan)

    def run(self, function, *arguments, **more):
        """Let workers do something, if they can be reached; nobody waits for that."""
        with contextlib.suppress(Exception):
            if self.client.status == "running":
                doing = self.client.run(function, *arguments, asynchronous=True, **more)
                asyncio.run_coroutine_threadsafe(doing, self.client.loop.asyncio_loop)

    # -- silence ------------------------------------------------------------------------------------------------------

    def was_silent(self, worker):
        """Remember a worker that kept us waiting: others do its work meanwhile."""
        if worker is not None and worker not in self._silent:
            _log.info("worker %s is late: others do its work, too", worker)
            self._silent[worker] = time.monotonic()

    def spoke(self, worker):
        """A worker has answered."""
        self._silent.pop(worker, None)
