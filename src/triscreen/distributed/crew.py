"""Which workers there are, and which of them is to do what: places.

A place is the number of a shard; its home is the worker that has made it, or will. Homes stay where they are while all
goes well. They follow the workers that there are (Dask never gives a new worker what a survivor has taken over), and
workers are told to drop what has its home elsewhere now, so that no memory fills up with shards of others.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import Counter

from triscreen._utils.threads import check_time
from triscreen.distributed.asking import NoAnswer, ask, begun, on_loop, outcome
from triscreen.distributed.shards import forget, keep_only
from triscreen.errors import ClusterError

_log = logging.getLogger(__name__)
_LOOK = 1.0  # seconds between two looks at the workers
_NOBODY = "the cluster has no workers"
_PAUSED = "Dask has paused all workers, because their memory is nearly full"


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
        self._lock = threading.RLock()  # one problem may be solved on two threads
        self._asking = None  # a question to the scheduler that is not answered yet
        self._why = _NOBODY
        self._homes = {}  # place -> worker
        self._settled = ()  # the workers that homes were chosen among
        self._told = {}  # worker -> the places that it knows to be its own
        self._strays = {}  # worker that may have made a shard whose home is elsewhere -> until when it is told so
        self._silent = {}  # worker that kept us waiting -> since when
        self._looked = self._reminded = 0.0
        self._heard = time.monotonic()  # when a worker has answered last, or somebody began to ask
        self._alone = None  # since when there have been no workers
        self._doing = {}  # worker -> keys of its tasks

    def look(self, force=False):
        """See which workers there are, now and then; none where the scheduler cannot be asked."""
        now = time.monotonic()
        if not force and now - self._looked < _LOOK:
            return
        self._looked = now
        status = self.client.status
        if status in ("connecting", "newly-created"):
            self._nobody("there is no connection to the scheduler")
            return
        if status != "running":
            raise ClusterError(f"the client is {status}: it has no connection to the scheduler any more")
        if self._asking is None or self._asking.done():
            self._asking = begun(self.client.nthreads)
        try:
            found = dict(outcome(self._asking, self.patience))
        except NoAnswer as err:
            self._nobody(f"the scheduler does not answer ({err!s:.80})")
            return
        if found and now - self._heard > self.patience and self._are_paused():
            self._nobody(_PAUSED)
            return
        self._why = _NOBODY
        with self._lock:
            if self.threads and found.keys() != self.threads.keys():
                gone, new = self.threads.keys() - found.keys(), found.keys() - self.threads.keys()
                _log.info("workers: %d gone, %d new, %d in all", len(gone), len(new), len(found))
            self.threads = found
            # Who was silent gets another chance after a while.
            late = 4 * self.patience
            self._silent = {one: since for one, since in self._silent.items() if one in found and now - since < late}

    def _nobody(self, why):
        self.threads, self._why = {}, why

    def _are_paused(self):
        """Are all workers paused, with nothing at work that could end? What waits for them would wait for ever."""
        about = self._about()
        return bool(about) and all(
            one.get("status") == "paused" and not one.get("metrics", {}).get("task_counts", {}).get("executing")
            for one in about.values()
        )

    def _about(self):
        """Return what the scheduler knows of its workers; nothing where it does not answer."""
        try:
            return ask(self.patience, self.client.scheduler_info, n_workers=-1)["workers"]
        except NoAnswer:  # `look` tells what is wrong with the scheduler
            return {}

    def start_again(self):
        """A round begins: whatever was before, somebody has done that work; waiting counts from now on."""
        self._heard = time.monotonic()
        self._alone = None if self._alone is None else self._heard

    def is_there(self):
        """Is there any worker? A message where there is none, and `ClusterError` where that lasts too long."""
        now = time.monotonic()
        if self.threads:
            self._alone = None
            return True
        if self._alone is None:
            self._alone = now
            _log.warning("%s: waiting up to %.0f s", self._why, self.waiting)
        if now - self._alone > self.waiting:
            what = f"{self._why}, and that for {self.waiting:.0f} s; the"
            if self._why == _NOBODY:
                what = f"the cluster has had no workers for {self.waiting:.0f} s; start some, and the"
            elif self._why == _PAUSED:
                what = f"{self._why}, for {self.waiting:.0f} s; take more workers or memory, and the"
            raise ClusterError(f"{what} same call with a checkpoint goes on where it was")
        return False

    def wait(self):
        """Return when there is a worker."""
        self.start_again()
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
        with self._lock:
            self._remind()
            self._settle(places)

    def _settle(self, places):
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
        """Return some other worker, one that is not silent if there is any; or None where there is none."""
        for some in (self.able, sorted(self.threads)):
            others = [worker for worker in some if worker not in excluded]
            if others:
                return others[number % len(others)]
        return None

    def n_jobs(self, worker, count):
        """Return how many threads a task may have, where a round has so many: the worker's, shared by its tasks.

        worker None: any.
        """
        if worker is None:
            worker = min(self.threads, key=self.threads.get, default=None)
        mine = sum(home == worker for home in tuple(self._homes.values())) or -(-count // max(1, len(self.threads)))
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
            with self._lock:
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
        return self.run(forget, plan)

    def run(self, function, *arguments, **more):
        """Let workers do something, if they can be reached; nobody waits for that, but may for what is returned."""
        with contextlib.suppress(Exception):
            if self.client.status == "running":
                return on_loop(self.client, self.client.run(function, *arguments, asynchronous=True, **more))
        return None

    # -- silence ------------------------------------------------------------------------------------------------------

    def unheard(self, seconds):
        """Return the workers that the scheduler has not heard of for so long, and see who does what (`doing`)."""
        seen, self._doing = {worker: about["last_seen"] for worker, about in self._about().items()}, {}
        try:
            self._doing = ask(self.patience, self.client.processing) if seen else {}
        except NoAnswer:
            return set()
        # The scheduler's clock need not be ours: by that of whom it has heard of last.
        return {worker for worker, when in seen.items() if when < max(seen.values()) - seconds}

    def unknown(self, keys):
        """Return those of some tasks that the scheduler does not know: nobody will ever do them."""

        async def status():
            return await self.client.scheduler.get_task_status(keys=list(keys))

        try:
            found = outcome(on_loop(self.client, status()), self.patience)
        except NoAnswer:
            return set()
        return {key for key in keys if found.get(key, "") is None}

    def doing(self, key):
        """Return the workers that had this task to do when `unheard` was asked."""
        return [worker for worker, keys in self._doing.items() if key in keys]

    def was_silent(self, worker):
        """Remember a worker that kept us waiting: others do its work meanwhile."""
        with self._lock:
            if worker is not None and worker not in self._silent:
                _log.info("worker %s is late: others do its work, too", worker)
                self._silent[worker] = time.monotonic()

    def spoke(self, worker):
        """A worker has answered."""
        self._heard = time.monotonic()
        with self._lock:
            self._silent.pop(worker, None)
