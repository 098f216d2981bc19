from __future__ import annotations

import itertools
import os
import subprocess
import sys
import textwrap
import threading

import pytest

from nightly import cases
from triscreen._utils import threads as _threads
from triscreen._utils.threads import Threads, chunk_bounds, count_chunks, resolve_n_jobs, single_threaded_blas


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


def test_n_jobs(monkeypatch):
    for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
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


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "NUMBA_NUM_THREADS"])
@pytest.mark.parametrize(
    ("value", "threads"), [("1", 1), ("2,1", 2), ("", None), ("0", None), ("many", None), ("-3", None), ("9999", None)]
)
def test_a_limit_from_outside_is_kept_unless_the_user_says_a_number(monkeypatch, name, value, threads):
    """joblib sets these in its workers: a search over c workers must not start c threads in each."""
    monkeypatch.setattr(_threads, "cpu_count", lambda: 8)
    for other in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, value)
    assert resolve_n_jobs(None) == (threads or 8)
    assert (resolve_n_jobs(3), resolve_n_jobs(-1)) == (3, 8)


def run_forking(script, seconds=120):
    """Run a script with a function in_child(work), which forks, runs work there and wants True of it, or kills it."""
    head = """
        import os, signal, threading, time, warnings
        import numpy as np
        warnings.simplefilter("ignore")  # Python 3.12 warns of forks beside threads: that is what this is about
        import triscreen as ts
        from triscreen._utils import threads as _threads

        def in_child(work, seconds=60):
            child = os.fork()
            if child == 0:
                try:
                    os._exit(0 if work() is True else 3)
                except BaseException:
                    os._exit(4)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                done, status = os.waitpid(child, os.WNOHANG)
                if done:
                    assert status == 0, status
                    return
                time.sleep(0.002)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise SystemExit("a child hung")

        def problem():
            rng = np.random.default_rng(0)
            X, y = rng.normal(size=(200, 8)), rng.integers(0, 3, 200)
            return ts.Problem(X, ts.knn_triplets(X, y, 4), n_jobs=2)

        def solve():
            p = problem()
            return ts.solve(p, 1e-2 * p.lambda_max(), tol=1e-4).M

        def blas():
            return [library.num_threads for library in _threads._blas.lib_controllers]

        M = solve()  # everything is compiled and loaded
    """
    code = textwrap.dedent(head) + textwrap.dedent(script).replace("CHILDREN", str(cases(8, 25)))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=seconds)
    assert done.returncode == 0, done.stdout + done.stderr


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


@needs_fork
def test_a_child_forked_while_another_thread_holds_something_finishes():
    """Our lock; a cached property (functools' holds a lock for all problems before Python 3.12); the limit of BLAS."""
    run_forking("""
        def lock_held():
            held, leave = threading.Event(), threading.Event()

            def hold():
                with _threads._lock:
                    held.set()
                    leave.wait(60)

            other = threading.Thread(target=hold)
            other.start()
            held.wait(60)
            in_child(lambda: np.array_equal(solve(), M), seconds=20)
            leave.set()
            other.join()
            assert np.array_equal(solve(), M)

        def lambda_max_computed():
            held, leave = threading.Event(), threading.Event()
            one, two = problem(), problem()

            def wait(*_):
                held.set()
                leave.wait(60)
                return 0.0

            one.triplets.magnitude = wait
            other = threading.Thread(target=one.lambda_max)
            other.start()
            held.wait(60)
            in_child(lambda: two.lambda_max() > 0, seconds=20)
            leave.set()
            other.join()

        def blas_limited():
            before = blas()
            inside, leave = threading.Event(), threading.Event()

            def hold():
                with _threads.single_threaded_blas():
                    inside.set()
                    leave.wait(60)

            other = threading.Thread(target=hold)
            other.start()
            inside.wait(60)
            assert blas() == [1] * len(before)
            in_child(lambda: blas() == before)  # whoever limited it is not there

            def leaves():
                if blas() != [1] * len(before):
                    return False
                limit.__exit__(None, None, None)
                return blas() == before

            limit = _threads.single_threaded_blas()
            limit.__enter__()
            in_child(leaves)
            limit.__exit__(None, None, None)
            leave.set()
            other.join()
            assert blas() == before

        lock_held()
        lambda_max_computed()
        blas_limited()
    """)


@needs_fork
def test_children_forked_at_any_time_while_others_solve_finish_with_the_same_bits():
    run_forking("""
        stop = threading.Event()

        def busy():
            while not stop.is_set():
                solve()

        others = [threading.Thread(target=busy) for _ in range(2)]
        for other in others:
            other.start()
        try:
            for number in range(CHILDREN):
                time.sleep(0.001 * (number % 7))
                in_child(lambda: np.array_equal(solve(), M))
        finally:
            stop.set()
            for other in others:
                other.join()
    """)
