from __future__ import annotations

import itertools
import threading

import pytest

from triscreen import _threads
from triscreen._threads import Threads, chunk_bounds, count_chunks, resolve_n_jobs, single_threaded_blas


def blas_threads():
    """Threads of the BLAS libraries that the engine found, numpy's among them; others (faiss has one) came later."""
    with single_threaded_blas():
        pass
    return {library.num_threads for library in _threads._blas.lib_controllers}


def test_every_chunk_runs_once_whoever_runs_it():
    threads = Threads(4)
    for _ in range(200):
        done = []
        threads.run("work", done.append, 17)
        assert sorted(done) == list(range(17))


def test_helpers_really_help():
    """Four chunks that wait for each other can only finish on two threads or more."""
    meeting = threading.Barrier(2, timeout=20)
    Threads(2).run("meet", lambda chunk: meeting.wait(), 2)


def test_an_error_in_a_chunk_reaches_the_caller():
    def task(chunk):
        if chunk == 11:
            raise RuntimeError("chunk 11")

    for jobs in (1, 3):
        with pytest.raises(RuntimeError, match="chunk 11"):
            Threads(jobs).run("fail", task, 20)


class Clock:
    """Stands in for the clock: each way of running takes as long as the test says."""

    def __init__(self, monkeypatch, alone, together):
        self.now, self.alone, self.together, self.used = 0.0, alone, together, 0
        monkeypatch.setattr(_threads.time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(_threads, "_run_together", self.run_together)

    def run_together(self, task, n_chunks, n_threads):
        self.used += 1
        self.now += self.together

    def task(self, chunk):
        self.now += self.alone / 4


def test_the_faster_way_is_kept_and_the_slower_one_tried_again_seldom(monkeypatch):
    """Working together is slow, as on a busy machine: it must soon be rare."""
    clock = Clock(monkeypatch, alone=1.0, together=6.0)
    threads = Threads(2)
    for _ in range(1000):
        threads.run("work", clock.task, 4)
    assert clock.used <= 10
    assert clock.now <= 1.1 * 1000


def test_together_comes_back_when_it_pays_again(monkeypatch):
    clock = Clock(monkeypatch, alone=1.0, together=6.0)
    threads = Threads(2)
    for _ in range(300):
        threads.run("work", clock.task, 4)
    busy, clock.together = clock.used, 0.5
    for _ in range(1000):
        threads.run("work", clock.task, 4)
    assert busy <= 10
    assert clock.used - busy > 500


def test_one_job_never_wakes_a_helper(monkeypatch):
    clock = Clock(monkeypatch, alone=1.0, together=0.1)
    threads = Threads(1)
    for _ in range(50):
        threads.run("work", clock.task, 4)
    assert clock.used == 0


def test_n_jobs():
    cores = _threads.cpu_count()
    assert resolve_n_jobs(None) == cores
    assert resolve_n_jobs(3) == 3
    assert resolve_n_jobs(-1) == cores
    assert resolve_n_jobs(-1000) == 1


def test_blas_is_restored_by_the_last_one_out():
    import numpy as np

    np.ones((2, 2)) @ np.ones((2, 2))
    before = blas_threads()
    inside = threading.Event()
    leave = threading.Event()

    def other():
        with single_threaded_blas():
            inside.set()
            leave.wait(20)

    with single_threaded_blas():
        worker = threading.Thread(target=other)
        worker.start()
        inside.wait(20)
        assert blas_threads() == {1}
    assert blas_threads() == {1}  # the other one is still at work
    leave.set()
    worker.join()
    assert blas_threads() == before


def test_chunks_cover_everything_and_do_not_depend_on_threads():
    for n in (1, 7, 1000, 123_457):
        chunks = count_chunks(n, 50)
        bounds = chunk_bounds(n, chunks)
        assert (bounds[0], bounds[-1]) == (0, n)
        assert all(a < b for a, b in itertools.pairwise(bounds))
