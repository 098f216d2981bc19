"""The one place that decides about threads.

Work is cut into chunks that depend on the problem only, never on the number of threads, and partial results are
added in the order of the chunks: the same input gives the same bits on one thread or on sixteen. So it is free to
decide, call by call, whether helpers are worth waking. It measures: on an idle machine they are; on a busy one a
helper that the operating system has put to sleep in the middle of a chunk holds everyone up, and the calling
thread is better off alone.

BLAS runs on one thread while the engine works, because the engine's own threads call it.

All long work comes through here, so this is also where it ends early: between two chunks (and within long ones, by
`breathe`) Ctrl-C gets through, and a `deadline` is looked at.
"""

from __future__ import annotations

import contextlib
import contextvars
import itertools
import numbers
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from triscreen.errors import InputError, OutOfTime

# The slower way of running is tried again after so many calls that trying costs about this share of the time.
_PROBE_SHARE = 0.03
_PROBE_EVERY = 32
# Helpers have to save this much, or they are left asleep.
_WORTH_IT = 0.85

# Elementary operations that one chunk may have: about half a second.
LONGEST = 1_000_000_000
WORK = 400_000  # elementary operations of a chunk: about 0.2 ms

_limit = contextvars.ContextVar("limit", default=None)  # when the time of this thread's work is over
_here = threading.local()  # .run: what the chunk at work on this thread belongs to

_lock = threading.Lock()
_forking = threading.local()  # does this thread, about to fork, hold the lock?
_pool = None
_blas = None
_blas_users = {}  # thread -> how many limits it is inside of
_blas_before = None  # numbers of threads to go back to; None: there is no limit
# Whoever sets one of these limits the threads of this process: users, and joblib in its workers.
_LIMITS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")


def cpu_count():
    """Cores this process may use (affinity and container limits included)."""
    from joblib import cpu_count as joblib_cpu_count

    return max(1, joblib_cpu_count())


def _most_threads():
    """Cores this process may use, or fewer where OMP_NUM_THREADS or NUMBA_NUM_THREADS say so."""
    wanted = (os.environ.get(name, "").split(",")[0].strip() for name in _LIMITS)
    return min([cpu_count(), *(int(text) for text in wanted if text.isdecimal() and int(text) > 0)])


def resolve_n_jobs(n_jobs):
    """Return a number of threads.

    None: every core that helps, at most OMP_NUM_THREADS or NUMBA_NUM_THREADS where these are set (joblib sets them in
    its workers); a positive number: at most so many; -1: all cores, -2: all but one, ...
    """
    if n_jobs is None:
        return _most_threads()
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, numbers.Integral) or n_jobs == 0:
        raise InputError(
            f"n_jobs={n_jobs!r}: n_jobs must be None, a positive whole number, or negative (-1: all cores)"
        )
    return int(n_jobs) if n_jobs > 0 else max(1, cpu_count() + 1 + n_jobs)


def _helpers():
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(max_workers=max(2, cpu_count()), thread_name_prefix="triscreen")
        return _pool


@contextlib.contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Keep BLAS on one thread inside; nested and concurrent use is fine, the last one out restores."""
    me = threading.get_ident()
    entered = False
    try:
        with _lock:
            _limit_blas()
            _blas_users[me] = _blas_users.get(me, 0) + 1
            entered = True
        yield
    finally:
        if entered:
            with _lock:
                _blas_users[me] -= 1
                if not _blas_users[me]:
                    del _blas_users[me]
                if not _blas_users:
                    _restore_blas()


def _limit_blas():
    global _blas, _blas_before
    if _blas_before is not None:
        return
    if _blas is None:
        import scipy.linalg.cython_blas  # noqa: F401  (the kernels' BLAS: what is not loaded yet cannot be limited)
        from threadpoolctl import ThreadpoolController

        _blas = ThreadpoolController().select(user_api="blas")
    _blas_before = [library.num_threads for library in _blas.lib_controllers]
    _set_blas_threads([1] * len(_blas_before))


def _restore_blas():
    global _blas_before
    if _blas_before is not None:
        _set_blas_threads(_blas_before)
        _blas_before = None


def _set_blas_threads(numbers):
    for library, number in zip(_blas.lib_controllers, numbers, strict=True):
        library.set_num_threads(number)
    # From threadpoolctl 3.8 on, the thread that has set OpenBLAS owns it until it leaves a limit: let go at once, so
    # that another thread can set it back.
    with _blas.limit(limits=None):
        pass


@contextlib.contextmanager
def deadline(seconds, extend=False):
    """Let work inside end by `OutOfTime` after so many seconds (None: no limit); extend: whatever there was before."""
    own = None if seconds is None else time.perf_counter() + seconds
    outer = None if extend else _limit.get()
    limits = [limit for limit in (own, outer) if limit is not None]
    token = _limit.set(min(limits) if limits else None)
    try:
        yield
    finally:
        _limit.reset(token)


def check_time():
    """Raise where the time of this thread's work is over: for whoever waits instead of working."""
    limit = _limit.get()
    if limit is not None and time.perf_counter() > limit:
        raise OutOfTime("the time is over")


def breathe():
    """Within a chunk that may take long: raise where its work is not wanted any more."""
    run = getattr(_here, "run", None)
    if run is not None:
        run.check()


class _Run:
    """The chunks of one call; over when one of them has failed, or when the time is."""

    def __init__(self):
        self.failed, self.limit = False, _limit.get()

    def check(self):
        if self.failed:
            raise _Abandoned
        if self.limit is not None and time.perf_counter() > self.limit:
            raise OutOfTime("the time is over")

    def work(self, task, chunks):
        outer, _here.run = getattr(_here, "run", None), self
        try:
            for chunk in chunks:
                self.check()
                task(chunk)
        except BaseException:
            self.failed = True
            raise
        finally:
            _here.run = outer


class _Abandoned(Exception):
    """Another chunk has failed already."""


def _before_fork():
    """Let other threads finish what they do to BLAS: threadpoolctl has a lock of its own. Not for ever, though."""
    _forking.holds = _lock.acquire(timeout=0.5)


def _after_fork_in_parent():
    if _forking.holds:
        _lock.release()


def _after_fork_in_child():
    """Begin anew: of the parent's threads a child has only the one that forked.

    A lock that another thread held would never be let go, helpers are not there any more, and who limited BLAS in the
    parent will not lift it here.
    """
    global _lock, _pool
    _lock, _pool = threading.Lock(), None
    me = threading.get_ident()
    for other in [thread for thread in _blas_users if thread != me]:
        del _blas_users[other]
    if not _blas_users:
        _restore_blas()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)


class Threads:
    """Runs chunks of work on the calling thread and, while that pays, on helpers.

    Parameters
    ----------
    n_jobs : int or None
        At most so many threads, the caller included (see `resolve_n_jobs`).
    """

    def __init__(self, n_jobs=None):
        self.n_jobs = resolve_n_jobs(n_jobs)
        self._seconds = {}  # kind of work -> [alone, together, calls until the slower one is tried again]

    def run(self, kind, task, n_chunks):
        """Call ``task(chunk)`` for every chunk in range(n_chunks), in any order, and wait for all."""
        if n_chunks == 1 and _limit.get() is None:  # as small work is, and there is a lot of it
            task(0)
            return
        if self.n_jobs == 1 or n_chunks == 1:
            _Run().work(task, range(n_chunks))
            return
        if kind not in self._seconds:  # the first call meets cold caches and sleeping helpers: no measure of either way
            self._seconds[kind] = [None, None, 0]
            _run_together(task, n_chunks, min(self.n_jobs, n_chunks))
            return
        together = self._choose(kind)
        begin = time.perf_counter()
        if together:
            _run_together(task, n_chunks, min(self.n_jobs, n_chunks))
        else:
            _Run().work(task, range(n_chunks))
        self._learn(kind, together, time.perf_counter() - begin)

    def _choose(self, kind):
        alone, together, wait = self._seconds[kind]
        if together is None:
            return True
        if alone is None:
            return False
        return (together < _WORTH_IT * alone) != (wait == 0)

    def _learn(self, kind, together, seconds):
        entry = self._seconds[kind]
        old = entry[together]
        entry[together] = seconds if old is None else 0.5 * (old + seconds)
        if None in entry[:2]:
            return
        if entry[2] > 0:
            entry[2] -= 1
        else:
            slower, faster = max(entry[:2]), max(min(entry[:2]), 1e-9)
            entry[2] = max(_PROBE_EVERY, int((slower / faster - 1) / _PROBE_SHARE))

    def __getstate__(self):
        return {"n_jobs": self.n_jobs, "_seconds": {}}


def _run_together(task, n_chunks, n_threads):
    counter, run = itertools.count(), _Run()

    def chunks():
        while (chunk := next(counter)) < n_chunks:
            yield chunk

    def work():
        with contextlib.suppress(_Abandoned):
            run.work(task, chunks())

    pool, futures = _helpers(), []
    try:
        futures += (pool.submit(work) for _ in range(n_threads - 1))
        work()
    except BaseException:
        run.failed = True
        raise
    finally:
        # Helpers that have not begun are not needed any more; the others are in their last chunk.
        running = [f for f in futures if not f.cancel()]
        for future in running:
            future.exception()
    for future in running:
        future.result()


def chunk_bounds(n, n_chunks):
    """Return the n_chunks + 1 bounds that cut range(n) into nearly equal parts."""
    return [n * c // n_chunks for c in range(n_chunks + 1)]


def count_chunks(n, work, most=None):
    """How many chunks to cut n items of ``work`` elementary operations each into: about 0.2 ms a chunk.

    At most 64, unless a chunk would take longer than half a second; or ``most``, whatever it takes.
    """
    if most is None:
        most = max(64, n * work / LONGEST)
    return int(max(1, min(most, n, n * work / WORK)))
