from __future__ import annotations

import itertools
import threading
import time

import pytest
from threadpoolctl import threadpool_info

from triscreen import _threads
from triscreen._threads import Threads, chunk_bounds, count_chunks, resolve_n_jobs, single_threaded_blas


def blas_threads():
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


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


def test_the_faster_way_is_kept_and_the_slower_one_tried_again_seldom(monkeypatch):
    """Working together is made slow, as on a busy machine: it must soon be rare."""
    used = []

    def slow_together(task, n_chunks, n_threads):
        used.append(1)
        time.sleep(0.003)

    monkeypatch.setattr(_threads, "_run_together", slow_together)
    threads = Threads(2)
    for _ in range(400):
        threads.run("work", lambda chunk: None, 4)
    assert 1 <= len(used) <= 15


def test_together_comes_back_when_it_pays_again(monkeypatch):
    used, delay = [], [0.003]

    def together(task, n_chunks, n_threads):
        used.append(1)
        time.sleep(delay[0])

    monkeypatch.setattr(_threads, "_run_together", together)
    threads = Threads(2)
    task = lambda chunk: time.sleep(0.0005)  # noqa: E731
    for _ in range(30):
        threads.run("work", task, 2)
    busy = len(used)
    delay[0] = 0.0
    for _ in range(400):
        threads.run("work", task, 2)
    assert busy <= 5
    assert len(used) - busy > 200


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
