"""Rounds of tasks on a Dask cluster that end with every answer, whatever happens to workers meanwhile.

A task is a function of its arguments, so it may be run again anywhere. Each has a *place*, a worker that is likely to
have made its shard already; Dask takes another one where that worker is gone. What is left to do here:

* a worker that says nothing (stopped, swapping, behind a dead network) may hold its tasks for minutes before Dask gives
  it up: after ``patience`` a second copy goes elsewhere, and the first answer counts;
* `KilledWorker`, cancelled and lost tasks are submitted again under another key, which has no past;
* a task that raises on two workers raises here, in one sentence; one worker may be ill;
* places follow the workers that there are: Dask never gives a new worker what a survivor has taken over.

Only this process waits: `Ctrl-C` and deadlines get through at any time, and tasks that nobody waits for are released.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import time
import uuid
from dataclasses import dataclass, field
from importlib import import_module

from triscreen._utils.threads import check_time
from triscreen.distributed.crew import Crew
from triscreen.distributed.workers import check_workers, memory_limits, versions_on
from triscreen.errors import ClusterError, InputError

_log = logging.getLogger(__name__)
_TICK = 0.05  # seconds between two looks at the clock
_TOGETHER = 0.2  # answers are fetched together, unless some of them take so much longer
_KILLS = 4  # so many times a task may have ended its workers
_LONGER = 4.0  # what is late: later than so many times what such work has taken


@dataclass
class _Job:
    """One task of a round: what was sent, and what came of it."""

    number: int
    place: object
    arguments: tuple = field(repr=False)
    copies: dict = field(default_factory=dict, repr=False)  # future -> (worker, when it was sent)
    raised: dict = field(default_factory=dict)  # worker -> what
    kills: int = 0

    @property
    def waiting_since(self):
        """When its last copy was sent."""
        return max(since for _, since in self.copies.values())


class Cluster:
    """Runs rounds of tasks on the workers of a client.

    Parameters
    ----------
    client : dask.distributed.Client
    patience : float
        Seconds before a second copy of a task goes elsewhere.
    waiting : float
        Seconds to wait for workers where there are none.
    """

    def __init__(self, client, patience=30.0, waiting=300.0):
        self.client, self.patience = client, patience
        self.crew = Crew(client, patience, waiting)
        self._usual = {}  # title -> seconds that such a task took, at most, of late

    def check(self, folder):
        """Refuse workers that cannot do the work or read the folder: before any of it, in one sentence."""
        self.crew.wait()
        check_workers(versions_on(self.client, folder, list(self.crew.threads)))

    def check_memory(self, what, kept, working):
        """Refuse workers that have too little memory, in one sentence.

        Parameters
        ----------
        what : str
        kept : list of float
            Bytes of each shard.
        working : float
            Bytes more that one of them takes while it works.
        """
        self.crew.wait()
        threads = self.crew.threads
        share = -(-len(kept) // len(threads))
        most = sum(sorted(kept)[-share:]) if kept else 0.0
        for worker, limit in sorted(memory_limits(self.client, list(threads)).items()):
            needed = most + working * max(1, min(threads[worker], share))
            _log.info("%s: about %.3g GB on %s, of %.3g GB", what, needed / 1e9, worker, limit / 1e9)
            if limit and needed > 0.8 * limit:
                raise InputError(
                    f"memory_limit={limit / 1e9:.3g} GB of the worker {worker}: {what} take about {needed / 1e9:.3g} "
                    "GB there; take more workers or memory, more shards, or fewer neighbours or features"
                )

    def serve(self, plan):
        """Take the places of rounds for the shards of a plan, from now on."""
        self.crew.plan = plan

    def forget(self, plan):
        """Let workers drop what they remember of a plan."""
        self.crew.forget(plan)

    def map(self, title, function, jobs, places=None, arrived=None):
        """Return ``function(*job, n_jobs=...)`` of every job, each computed by some worker.

        Parameters
        ----------
        title : str
            What the dashboard calls it.
        function : callable
            Of a module that workers have, and pure.
        jobs : iterable of tuples
        places : iterable of int, optional
            Of each job: jobs of one place go to the same worker, from round to round.
        arrived : callable, optional
            ``arrived(number, answer)`` is told of each answer when it is there.
        """
        jobs = list(jobs)
        places = [None] * len(jobs) if places is None else list(places)
        self.crew.look()
        self.crew.settle(places)
        numbered = enumerate(zip(places, jobs, strict=True))
        turn = _Round(self, title, function, [_Job(number, place, job) for number, (place, job) in numbered])
        try:
            return turn.run(arrived)
        finally:
            turn.release()

    def late(self, title):
        """Return the seconds after which a task is late."""
        usual = self._usual.get(title)
        return max(self.patience, _LONGER * (self.patience if usual is None else usual))

    def took(self, title, seconds):
        """Remember how long a task took."""
        self._usual[title] = max(seconds, 0.9 * self._usual.get(title, 0.0))


class _Round:
    """One round: sends, waits, sends again."""

    def __init__(self, cluster, title, function, jobs):
        self.cluster, self.client, self.crew = cluster, cluster.client, cluster.crew
        self.title, self.function, self.jobs = title, function, jobs
        self.left = {job.number: job for job in jobs}
        self.news = queue.SimpleQueue()
        self.answers = [None] * len(jobs)
        self.ready, self._since = {}, None  # what has ended and is not here yet, and since when

    def run(self, arrived):
        """Return the answers, in the order of the jobs."""
        for job in self.jobs:
            self._send(job)
        while self.left:
            check_time()
            self._watch()
            for job, answer in self._collect():
                self._take(job, answer, arrived)
        return self.answers

    def release(self):
        """Let go of whatever is still under way."""
        for job in self.jobs:
            for future in job.copies:
                with contextlib.suppress(Exception):
                    future.release()
            job.copies.clear()

    def _send(self, job, worker=None):
        """Submit a copy of a task, to a worker or to the one of its place."""
        import dask

        worker = worker or self.crew.home(job.place, job.number)
        n_jobs = self.crew.n_jobs(worker, len(self.jobs))
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GB"}):
            future = self.client.submit(
                attempt,
                self.function,
                job.arguments,
                n_jobs,
                _version(),
                key=f"triscreen-{self.title}-{uuid.uuid4().hex}",
                workers=None if worker is None else [worker],
                allow_other_workers=worker is not None,
                retries=1,
                pure=False,
            )
        job.copies[future] = worker, time.monotonic()
        if worker != self.crew.home(job.place, job.number):
            self.crew.stray(worker, job.place)
        future.add_done_callback(lambda done: self.news.put((job, done)))

    def _collect(self):
        """Yield (job, answer) of what is done, all of it in one call where nothing is late; send again what failed."""
        for job, future in self._heard():
            if job.number not in self.left or future not in job.copies:
                continue
            if future.status == "finished":
                self.ready[future] = job
                self._since = self._since or time.monotonic()
            else:
                self._failed(job, future)
        whole = len({job.number for job in self.ready.values()}) == len(self.left)
        if not self.ready or not (whole or time.monotonic() - self._since > _TOGETHER):
            return
        ready, self.ready, self._since = self.ready, {}, None
        for future, answer in self._fetch(ready).items():
            job = ready[future]
            if future not in job.copies:
                continue  # the answer of another copy was there before
            if isinstance(answer, _Lost):
                self._failed(job, future)
            else:
                yield job, (future, answer)

    def _heard(self):
        """Return (job, future) of the tasks that have ended since the last time, after a moment at most."""
        heard = []
        with contextlib.suppress(queue.Empty):
            heard.append(self.news.get(timeout=_TICK))
            while True:
                heard.append(self.news.get_nowait())
        return heard

    def _fetch(self, futures):
        """Return the answers of finished futures, in one call; `_Lost` for those that cannot be had in time."""
        if not futures:
            return {}
        wanted = list(futures)
        loop = self.client.loop.asyncio_loop
        coming = asyncio.run_coroutine_threadsafe(_gathered(self.client, wanted), loop)
        begin = time.monotonic()
        while True:
            try:
                found = coming.result(timeout=_TICK)
                return {future: found.get(i, _Lost()) for i, future in enumerate(wanted)}
            except TimeoutError:
                if time.monotonic() - begin > self.cluster.patience:
                    coming.cancel()
                    for future, job in futures.items():
                        self.crew.was_silent(job.copies[future][0])
                    return dict.fromkeys(wanted, _Lost())
            except asyncio.CancelledError:
                return dict.fromkeys(wanted, _Lost())
            except Exception as err:  # of Dask itself: a worker that went while it was asked
                _log.debug("answers were lost: %r", err)
                return dict.fromkeys(wanted, _Lost())
            check_time()

    def _take(self, job, answer, arrived):
        future, (worker, good, value) = answer
        self.crew.spoke(worker)
        if worker != self.crew.home(job.place, job.number):
            self.crew.stray(worker, job.place)
        if not good:
            del job.copies[future]
            self._raised(job, worker, value)
            return
        self.cluster.took(self.title, time.monotonic() - job.copies[future][1])
        self.answers[job.number] = value
        del self.left[job.number]
        for other in job.copies:
            other.release()
        job.copies.clear()
        if arrived is not None:
            arrived(job.number, value)

    def _raised(self, job, worker, error):
        """A task that raises on two workers (or twice on the only one) raises here."""
        again = worker in job.raised
        job.raised[worker] = error
        others = [one for one in self.crew.able if one not in job.raised]
        if len(job.raised) > 1 or (again and not others):
            where = f"shard {job.place}" if isinstance(job.place, int) else "a task"
            text = " ".join(str(error).split()) or type(error).__name__
            kind = InputError if isinstance(error, InputError) else ClusterError
            on = "two workers" if len(job.raised) > 1 else "its worker, twice"
            raise kind(f"{self.title}: {where} fails on {on}: {text}") from error
        if not job.copies:
            self._send(job, others[0] if others else None)

    def _failed(self, job, future):
        """Submit again what Dask has given up, under another key."""
        worker, _ = job.copies.pop(future)
        error = None
        if future.status == "error":
            with contextlib.suppress(Exception):
                error = future.exception(timeout=5)
        if error is not None and type(error).__name__ != "KilledWorker":  # it could not even begin
            self._raised(job, worker, error)
            return
        if error is not None:
            job.kills += 1
            if job.kills >= _KILLS:
                raise ClusterError(
                    f"{self.title}: the workers of a shard have died {job.kills} times over, most likely for want of "
                    "memory; give them more, or take more shards (n_shards)"
                )
        self.crew.look(force=True)
        self.crew.settle(())
        if not job.copies:
            self._send(job)

    def _watch(self):
        """Look at clock and workers: second copies for late tasks, an end where nobody is left."""
        self.crew.look()
        if not self.crew.is_there():
            return
        now, late = time.monotonic(), self.cluster.late(self.title)
        for job in list(self.left.values()):
            if job.copies and now - job.waiting_since > late:
                had = {worker for worker, _ in job.copies.values()}
                for worker in had:
                    self.crew.was_silent(worker)
                    self.crew.stray(worker, job.place)
                other = self.crew.elsewhere(had, job.number)
                if other is not None:
                    self._send(job, other)


class _Lost:
    """An answer that could not be had."""


async def _gathered(client, futures):
    """Return {number: answer} of those that can be had."""
    return await client.gather(dict(enumerate(futures)), errors="skip", asynchronous=True)


def _version():
    return import_module("triscreen").__version__


def attempt(function, arguments, n_jobs, version):
    """Run a task on a worker; return (the worker, whether it went well, the answer or what was raised)."""
    from distributed import get_worker

    worker = get_worker().address
    if _version() != version:  # one that came later
        return worker, False, InputError(f"the worker {worker} has triscreen {_version()}: it must have {version}")
    try:
        return worker, True, function(*arguments, n_jobs=n_jobs)
    except Exception as err:
        return worker, False, err
