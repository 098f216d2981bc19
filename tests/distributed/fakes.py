"""A client of Dask's that is none: it does what a test tells it to with every task, in this process."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace


class Future:
    """One task that was sent: what became of it is decided by the test, now or later."""

    def __init__(self, client, number, worker, key, work):
        self.client, self.number, self.worker, self.key, self.work = client, number, worker, key, work
        self.status, self.released, self._told, self._error = "pending", False, [], None

    def add_done_callback(self, told):
        self._told.append(told)
        if self.status != "pending":
            told(self)

    def ends(self, status="finished", error=None):
        """It is over."""
        self.status, self._error = status, error
        for told in self._told:
            told(self)

    def exception(self, timeout=None):
        return self._error

    def release(self):
        self.released = True


class Client:
    """Workers "a", "b", ... of one thread each; ``happens(future)`` is called for every task that is sent."""

    asynchronous, status, memory = False, "running", 0

    def __init__(self, workers="ab", happens=Future.ends):
        self.workers, self.happens, self.sent = list(workers), happens, []
        loop = asyncio.new_event_loop()
        self.loop = SimpleNamespace(asyncio_loop=loop)
        self._thread = threading.Thread(target=loop.run_forever, daemon=True)
        self._thread.start()
        self.scheduler = SimpleNamespace(get_task_status=self._statuses)

    def over(self):
        """Stop its loop, as closing a client does."""
        if self._thread.is_alive():
            self.loop.asyncio_loop.call_soon_threadsafe(self.loop.asyncio_loop.stop)
            self._thread.join()
            self.loop.asyncio_loop.close()

    def submit(self, function, *arguments, key, workers, **_):
        worker = workers[0] if workers else self.workers[0]
        future = Future(self, len(self.sent), worker, key, (function, arguments))
        self.sent.append(future)
        self.happens(future)
        return future

    async def gather(self, futures, errors, asynchronous):
        return {i: self.answer(future) for i, future in futures.items()}

    def answer(self, future):
        """What a worker sends back."""
        function, arguments = future.work
        self.at_work = future.worker
        return function(*arguments)

    async def _statuses(self, keys):
        return {future.key: "processing" for future in self.sent if future.key in keys}

    def nthreads(self):
        return dict.fromkeys(self.workers, 1)

    def scheduler_info(self, n_workers):
        return {"workers": {worker: {"last_seen": 0.0, "memory_limit": self.memory} for worker in self.workers}}

    def processing(self):
        return {worker: [one.key for one in self.sent if one.worker == worker] for worker in self.workers}

    async def run(self, function, *arguments, **_):
        return {}


def double(number, n_jobs=1):
    """What jobs do."""
    return 2 * number
