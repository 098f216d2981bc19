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

import contextlib
import logging
import queue
import time
import uuid
from collections import Counter, deque
from concurrent.futures import wait
from dataclasses import dataclass, field

from triscreen._utils.threads import check_time
from triscreen.distributed.asking import NoAnswer, begun, on_loop, outcome
from triscreen.distributed.attempting import attempt, version_here
from triscreen.distributed.crew import Crew
from triscreen.distributed.shards import MAKING
from triscreen.distributed.workers import (
    check_workers,
    memory_limits,
    name_of,
    versions_on,
    warn_of_differences,
)
from triscreen.errors import ClusterError, InputError, OutOfTime

_log = logging.getLogger(__name__)
_TICK = 0.05  # seconds between two looks at the clock
_TOGETHER = 0.2  # answers are fetched together, unless some of them take so much longer
_PARTING = 3.0  # seconds that workers have to hear that all is over
_KILLS = 4  # so many times a task may have ended its workers
_LONGER = 4.0  # what is late: later than so many times what such work has taken
_NOBODY = ("NoValidWorkerError", "NoWorkerError")  # of what has waited for workers too long, if Dask is told a time


@dataclass(eq=False)
class _Task:
    """Some jobs of a round that one worker does one after the other: what was sent, and what came of it."""

    numbers: list
    copies: dict = field(default_factory=dict, repr=False)  # future -> (worker, when it was sent)

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
        self._served = []  # plans
        self.kinds = {}  # name -> what workers are of which bits depend
        self._usual = {}  # title -> seconds that such a task took, at most, of late

    @property
    def room(self):
        """How many jobs are done at once."""
        return max(1, sum(self.crew.threads.values()))

    def check(self, folder):
        """Refuse workers that cannot do the work or read the folder: before any of it, in one sentence.

        Who does not answer is asked again for a while, if it is still there; then it is one of those who are silent.
        All of them together may take longer: they load what they need only now.
        """
        begin, found = time.monotonic(), {}
        longest = max(self.patience, self.crew.waiting)
        while True:
            self.crew.wait()
            found = {worker: answer for worker, answer in found.items() if worker in self.crew.threads}
            unknown = [worker for worker in self.crew.threads if worker not in found]
            answers = versions_on(self.client, folder, unknown, self.patience) if unknown else {}
            found |= {worker: answer for worker, answer in answers.items() if not isinstance(answer, OSError)}
            missing = [worker for worker in self.crew.threads if worker not in found]
            if (found and not missing) or time.monotonic() - begin > (self.patience if found else longest):
                break
            check_time()
            time.sleep(_TICK)
        if not found:
            raise ClusterError(f"none of the {len(missing)} workers has answered for {longest:.0f} s")
        for worker in missing:
            self.crew.was_silent(worker)
        self.kinds.update(check_workers(found))

    def is_of(self, kind):
        """Remember what a worker is that nobody knew, one that came late: its bits may be others."""
        if name_of(kind) not in self.kinds:
            self.kinds[name_of(kind)] = kind
            warn_of_differences(self.kinds.values())

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
        for worker, limit in sorted(
            memory_limits(self.client, list(threads), max(self.patience, self.crew.waiting)).items()
        ):
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
        self._served.append(plan)

    def forget(self, plan):
        """Let workers drop what they remember of a plan."""
        self.crew.forget(plan)

    def close(self, *under_way):
        """Let workers drop what they remember of all plans, and wait for that a little: the client may go now."""
        end, coming = time.monotonic() + _PARTING, [*map(self.crew.forget, self._served), *under_way]
        self._served.clear()
        for one in coming:
            with contextlib.suppress(NoAnswer, OutOfTime):
                if one is not None:
                    outcome(one, end - time.monotonic())

    def computed(self, collection):
        """Return what Dask holds, or makes: on the workers of this client, who may have it already.

        Dask itself would wait for ever where there are none.
        """
        future = self.client.compute(collection)
        coming = begun(future.result)
        self.crew.start_again()
        try:
            while not wait([coming], timeout=_TICK).done:
                check_time()
                self.crew.look()
                self.crew.is_there()
            return coming.result()
        finally:
            future.release()

    def map(self, title, function, jobs, places=None, arrived=None, long=False):
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
        long : bool
            May jobs take any time, each another? Then no more are sent than workers have threads, and the late ones are
            those whose worker has not been heard of for a while.
        """
        jobs = list(jobs)
        places = [None] * len(jobs) if places is None else list(places)
        self.crew.start_again()
        self.crew.look()
        if not self.crew.is_there():
            self.crew.wait()
        self.crew.settle(places)
        turn = _Round(self, title, function, jobs, places, long)
        try:
            return turn.run(arrived)
        finally:
            turn.release()

    def late(self, title):
        """Return the seconds after which a task is late: it may have to make its shards first."""
        usual, making = self._usual.get(title), self._usual.get(MAKING, 0.0)
        return max(self.patience, making + _LONGER * (self.patience if usual is None else usual))

    def took(self, title, seconds):
        """Remember how long a task took."""
        self._usual[title] = max(seconds, 0.9 * self._usual.get(title, 0.0))


class _Round:
    """One round: sends, waits, sends again."""

    def __init__(self, cluster, title, function, jobs, places, long):
        self.cluster, self.client, self.crew = cluster, cluster.client, cluster.crew
        self.title, self.function, self.jobs, self.places, self.long = title, function, jobs, places, long
        self.left = set(range(len(jobs)))
        self.unsent = deque(range(len(jobs)))
        self.tasks = []
        self.raised = {}  # number -> {worker: what}
        self.kills = Counter()  # number -> how often the worker of its task has died
        self.news = queue.SimpleQueue()
        self.answers = [None] * len(jobs)
        self.ready, self._since = {}, None  # what has ended and is not here yet, and since when
        self._listened = self._checked = time.monotonic()
        self._alone, self._fetching = False, cluster.patience

    def run(self, arrived):
        """Return the answers, in the order of the jobs."""
        while self.left:
            self._send_more()
            check_time()
            for task, answer in self._collect():
                self._take(task, answer, arrived)
            if self.left:
                self._watch()  # after that: what is here is not late, though this process may have been
        return self.answers

    def release(self):
        """Let go of whatever is still under way."""
        for task in self.tasks:
            for future in task.copies:
                with contextlib.suppress(Exception):
                    future.release()
            task.copies.clear()

    def _send_more(self):
        """Send what there is room for; nothing while nobody is there, so that it goes to all who come."""
        if not self.unsent or not self.crew.threads:
            return
        self.tasks = [task for task in self.tasks if task.copies]
        if not self.long:
            numbers, self.unsent = sorted(self.unsent), deque()
            for worker, group in self._grouped(numbers):
                self._send(self._task(group), worker)
            return
        room = self.cluster.room - len(self.tasks)
        while self.unsent and room > 0:
            number, room = self.unsent.popleft(), room - 1
            # Of long work Dask knows best who has room.
            self._send(self._task([number]), self._home(number) if number in self.raised else None)

    def _task(self, numbers):
        self.tasks.append(_Task(numbers))
        return self.tasks[-1]

    def _grouped(self, numbers):
        """Return (worker, jobs) of tasks: as many for a worker as it has threads, since each costs Dask some time."""
        groups, tasks = {}, []
        for number in numbers:
            groups.setdefault(self._home(number), []).append(number)
        for worker, own in groups.items():
            count = max(1, min(self.crew.threads.get(worker, 1), len(own)))
            tasks += [(worker, own[i::count]) for i in range(count)]
        return tasks

    def _home(self, number):
        """Return who is to do a job: its home, or another one where it has raised there."""
        home, ill = self.crew.home(self.places[number], number), self.raised.get(number, ())
        return home if home not in ill else self.crew.elsewhere(ill, number) or home

    def _send(self, task, worker):
        """Submit a copy of a task to a worker; None: to any."""
        import dask

        n_jobs = self.crew.n_jobs(worker, len(self.jobs))
        try:
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GB"}):
                future = self.client.submit(
                    attempt,
                    self.function,
                    [self.jobs[number] for number in task.numbers],
                    n_jobs,
                    version_here(),
                    tuple(self.cluster.kinds),
                    key=f"triscreen_{self.title}-{uuid.uuid4().hex}",  # words of eight letters Dask may take for a hash
                    workers=None if worker is None else [worker],
                    allow_other_workers=worker is not None,
                    retries=1,
                    pure=False,
                )
        except Exception as err:
            self.crew.look(force=True)  # raises where the client is closed
            raise ClusterError(f"{self.title}: Dask takes no task ({' '.join(str(err).split())})") from err
        task.copies[future] = worker, time.monotonic()
        self._stray(worker, task)
        future.add_done_callback(lambda done: self.news.put((task, done)))

    def _stray(self, worker, task):
        """Note where a worker has shards, or will, whose home is elsewhere."""
        for number in task.numbers:
            if worker != self.crew.home(self.places[number], number):
                self.crew.stray(worker, self.places[number])

    def _collect(self):
        """Yield (task, answer) of what is done, all in one call where nothing is late; send again what failed."""
        for task, future in self._heard():
            if future not in task.copies:
                continue
            if future.status == "finished":
                self.ready[future] = task
                self._since = self._since or time.monotonic()
            else:
                self._failed(task, future)
        self.ready = {future: task for future, task in self.ready.items() if future in task.copies}
        whole = sum(len(task.numbers) for task in set(self.ready.values())) == len(self.left)
        if not self.ready or not (whole or self.long or time.monotonic() - self._since > _TOGETHER):
            return
        ready, self.ready, self._since = self.ready, {}, None
        for future, answer in self._fetch(ready).items():
            task = ready[future]
            if future not in task.copies:
                continue  # the answer of another copy was there before
            if isinstance(answer, _Lost):
                self._failed(task, future)
            else:
                yield task, (future, answer)

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
        coming = on_loop(self.client, _gathered(self.client, wanted))
        try:
            found = outcome(coming, self._fetching)
        except NoAnswer as err:  # a worker that went while it was asked, or one that has stopped
            _log.debug("answers were lost: %s", err)
            if not coming.done():
                for future, task in futures.items():
                    self.crew.was_silent(task.copies[future][0])
                self._fetching *= 2  # or there is so much to fetch
            return dict.fromkeys(wanted, _Lost())
        finally:
            coming.cancel()
        # Dask has None in the place of what went with its worker, or with a restart.
        return {future: found.get(i) or _Lost() for i, future in enumerate(wanted)}

    def _take(self, task, answer, arrived):
        future, (worker, kind, found) = answer
        self.crew.spoke(worker)
        if kind is not None:
            self.cluster.is_of(kind)
        self._stray(worker, task)
        self.cluster.took(self.title, time.monotonic() - task.copies.pop(future)[1])
        bad = {}
        for number, (good, value) in zip(task.numbers, found, strict=True):
            if good and number in self.left:
                self.answers[number] = value
                self.left.discard(number)
                if arrived is not None:
                    arrived(number, value)
            elif not good and number in self.left:
                bad[number] = value
        task.numbers = [number for number in task.numbers if number in self.left]
        if bad:
            self._raised(task, worker, bad)
        elif not task.numbers:  # another copy has nothing to add
            self._drop(task)

    def _drop(self, task):
        for other in task.copies:
            other.release()
        task.copies.clear()

    def _raised(self, task, worker, bad):
        """Send jobs elsewhere that have raised; what raises on two workers (or twice on the only one) raises here."""
        for number, error in bad.items():
            raised = self.raised.setdefault(number, {})
            again = worker in raised
            raised[worker] = error
            if len(raised) > 1 or (again and self.crew.elsewhere(raised, number) is None):
                where = f"shard {self.places[number]}" if isinstance(self.places[number], int) else "a task"
                text = " ".join(str(error).split()) or type(error).__name__
                kind = InputError if isinstance(error, InputError) else ClusterError
                on = "two workers" if len(raised) > 1 else "its worker, twice"
                raise kind(f"{self.title}: {where} fails on {on}: {text}") from error
        self._drop(task)
        self.unsent.extendleft(bad)

    def _failed(self, task, future):
        """Submit again what Dask has given up, under another key, to those who have its places now."""
        worker, _ = task.copies.pop(future)
        error = None
        if future.status == "error":
            with contextlib.suppress(Exception):
                error = future.exception(timeout=5)
        name = type(error).__name__
        if error is not None and name != "KilledWorker" and name not in _NOBODY:  # it could not even begin
            self._raised(task, worker, dict.fromkeys(task.numbers, error))
            return
        if name == "KilledWorker":
            self.kills.update(task.numbers)
            kills = max(self.kills[number] for number in task.numbers)
            if kills >= _KILLS:
                raise ClusterError(
                    f"{self.title}: the workers of a shard have died {kills} times over, most likely for want of "
                    "memory; give them more, or take more shards (n_shards)"
                )
        self.crew.look(force=True)
        self.crew.settle(())
        if not task.copies:
            self.unsent.extendleft(reversed(task.numbers))
            task.numbers = []

    def _watch(self):
        """Look at clock and workers: second copies for late tasks, an end where nobody is left."""
        self.crew.look()
        now = time.monotonic()
        if not self.crew.is_there():
            self._alone = True
            return
        if self._alone:  # what waited for workers is not late
            self._alone = False
            for task in self.tasks:
                task.copies = {future: (worker, now) for future, (worker, _) in task.copies.items()}
        late, silent = self.cluster.late(self.title), set()
        if self.long:
            if now - self._listened < self.cluster.patience / 2:
                return
            self._listened, silent = now, self.crew.unheard(self.cluster.patience)
        for task in [task for task in self.tasks if task.copies]:
            had = {worker for worker, _ in task.copies.values()}
            if self.long:
                at_work = {one for future in task.copies for one in self.crew.doing(future.key)}
                if not at_work or at_work - silent:
                    continue
                had |= at_work
            elif now - task.waiting_since <= late or not task.copies.keys().isdisjoint(self.ready):
                continue
            for worker in had:
                self.crew.was_silent(worker)
                for number in task.numbers:
                    self.crew.stray(worker, self.places[number])
            ill = {worker for number in task.numbers for worker in self.raised.get(number, ())}
            other = self.crew.elsewhere(had | ill, task.numbers[0])
            if other is not None:
                self._send(task, other)
        self._find_unknown(now)

    def _find_unknown(self, now):
        """Send again what the scheduler has never heard of, or has forgotten."""
        if now - self._checked < self.cluster.patience:
            return
        self._checked = time.monotonic()
        old = {future.key: (task, future) for task in self.tasks for future, (_, since) in task.copies.items()
               if now - since > self.cluster.patience}  # fmt: skip
        for key in self.crew.unknown(old) if old else ():
            task, future = old[key]
            if future in task.copies and future not in self.ready:
                _log.debug("the scheduler does not know %s", key)
                self._failed(task, future)


class _Lost:
    """An answer that could not be had."""


async def _gathered(client, futures):
    """Return {number: answer} of those that can be had."""
    return await client.gather(dict(enumerate(futures)), errors="skip", asynchronous=True)
