"""Rounds of tasks, whatever becomes of each copy: every answer once, of its own round; without a cluster."""

from __future__ import annotations

import pickle
import random
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from fakes import Client, Future, double

import triscreen as ts
from triscreen.distributed import asking, attempting, shards, workers
from triscreen.distributed import pool as pools
from triscreen.distributed.pool import Cluster
from triscreen.distributed.source import open_source
from triscreen.errors import OutOfTime

distributed = pytest.importorskip("distributed")


class KilledWorker(Exception):
    """As Dask calls it."""


@pytest.fixture
def fake(monkeypatch):
    """Make clients whose tasks run here."""
    made = []

    def make(*arguments):
        made.append(Client(*arguments))
        here = made[-1]
        monkeypatch.setattr(distributed, "get_worker", lambda: SimpleNamespace(address=here.at_work))
        return here

    yield make
    for client in made:
        client.over()


def asked(pool, count=5, **more):
    """Ask for some numbers; return (answers, numbers of which an answer arrived)."""
    arrived = []
    answers = pool.map("t", double, [(i,) for i in range(count)], range(count), lambda i, _: arrived.append(i), **more)
    return answers, sorted(arrived)


EVERY = [0, 2, 4, 6, 8], [0, 1, 2, 3, 4]


def test_all_is_released_after_a_round(fake, monkeypatch):
    client = fake()
    assert asked(Cluster(client)) == EVERY
    assert len(client.sent) == 2
    assert all(future.released for future in client.sent if future.status != "finished")

    def over():
        if len(pool.client.sent) == 2:
            raise OutOfTime("the time is over")

    monkeypatch.setattr(pools, "check_time", over)
    pool = Cluster(fake("ab", lambda future: None), patience=30.0)
    with pytest.raises(OutOfTime):
        asked(pool)
    assert all(future.released for future in pool.client.sent)


@pytest.mark.parametrize("status", ["cancelled", "lost", "error"])
def test_what_dask_gives_up_is_sent_again_under_another_key(fake, status):
    def happens(future):
        error = KilledWorker("a died") if status == "error" else None
        future.ends(*((status, error) if future.number < 2 else ()))

    client = fake("ab", happens)
    assert asked(Cluster(client)) == EVERY
    assert len({future.key for future in client.sent}) == len(client.sent) == 4


def test_an_answer_counts_once_though_both_copies_answer(fake):
    """The first worker is late and answers when the second copy does, or in the middle of the next round."""
    late = []

    def happens(future):
        if future.worker == "a" and not late:
            late.append(future)
        else:
            future.ends()
            if len(client.sent) == 3:
                late[0].ends()

    client = fake("ab", happens)
    pool = Cluster(client, patience=0.2)
    assert asked(pool) == EVERY
    copies = len(client.sent) - 2  # one; more where this process was not let work for so long
    assert copies >= 1
    assert sum(future.released for future in client.sent) == copies  # the copies that nobody waits for
    late[0].ends()
    assert asked(pool) == EVERY
    assert pool.crew.able


@pytest.mark.parametrize("seed", range(3))
def test_every_answer_once_whatever_becomes_of_the_copies(fake, seed):
    """Copies are given up, killed, raise on a worker, answer out of order or lose their answers, many times over."""
    chance, waiting, lock = random.Random(seed), [], threading.Lock()
    ill = "abc"[seed]

    def happens(future):
        what = chance.random()
        if what < 0.25:
            future.ends()
        elif what < 0.4:
            future.ends("cancelled")
        elif what < 0.55:
            future.ends("lost")
        else:  # a little later, not in the order in which they were sent
            with lock:
                waiting.append(future)

    def ends():
        while not over.wait(0.003):
            with lock:
                chance.shuffle(waiting)
                some, waiting[:] = waiting[:2], waiting[2:]
            for future in some:
                future.ends()

    def answer(self, future):
        if chance.random() < 0.1:
            return None  # it went with its worker
        worker, kind, found = Client.answer(self, future)
        if worker == ill and chance.random() < 0.3:
            found = [(False, OSError("a disk")) for _ in found]
        return worker, kind, found

    client, over = fake("abc", happens), threading.Event()
    client.answer = lambda future: answer(client, future)
    thread = threading.Thread(target=ends)
    thread.start()
    try:
        pool = Cluster(client, patience=20.0)
        for _ in range(20):
            assert asked(pool, 12) == ([2 * i for i in range(12)], list(range(12)))
    finally:
        over.set()
        thread.join()
    assert len(client.sent) > 70  # 60 would do


def answer(client, future):
    """Of an ill worker a."""
    worker, kind, found = Client.answer(client, future)
    return worker, kind, [(False, OSError("the disk is gone"))] * len(found) if worker == "a" else found


def test_one_ill_worker_is_no_end_though_the_others_are_silent_for_the_moment(fake):
    """On a busy machine all others may be late just then: they are asked all the same."""
    client = fake("abc")
    client.answer = lambda future: answer(client, future)
    pool = Cluster(client)
    pool.crew.look()
    for worker in "bc":
        pool.crew.was_silent(worker)
    assert asked(pool) == EVERY
    client.workers[:] = "a"
    pool.crew.look(force=True)
    with pytest.raises(ts.ClusterError, match="t: shard 0 fails on its worker, twice: the disk is gone"):
        asked(pool)


def test_a_second_copy_goes_to_nobody_who_has_raised(fake):
    """It would raise again, and the first copy, of one that is slow, be dropped for that, over and over."""

    def happens(future):
        threading.Timer(0.0 if future.worker == "a" else 1.0, future.ends).start()

    client = fake("ab", happens)
    client.answer = lambda future: answer(client, future)
    assert asked(Cluster(client, patience=0.1), 1) == ([0], [0])
    assert [future.worker for future in client.sent] == ["a", "b"]


@pytest.mark.parametrize("long", [True, False])
def test_workers_that_dask_has_paused_are_not_waited_for_for_ever(fake, long, caplog):
    """Dask starts nothing where memory is nearly full; what is at work there may still end."""
    client, counts = fake("ab", lambda future: None), {"executing": 1}
    about = {"status": "paused", "last_seen": 0.0, "metrics": {"task_counts": counts}}
    client.scheduler_info = lambda n_workers: {"workers": dict.fromkeys("ab", about)}
    begin, end = time.monotonic(), threading.Timer(1.5, counts.clear)
    end.start()
    with pytest.raises(ts.ClusterError, match=r"Dask has paused all workers, .* more workers or memory, and"):
        asked(Cluster(client, patience=0.1, waiting=0.3), long=long)
    assert time.monotonic() - begin > 1.5
    assert "because their memory is nearly full: waiting up to 0 s" in caplog.text
    assert all(future.released for future in client.sent)


def test_who_has_to_make_a_shard_again_is_not_late_for_that(fake):
    """Otherwise a death made others late, who took over: their shards went to others again, who were late, too."""
    pool = Cluster(fake(), patience=30.0)
    assert pool.late("t") == 120.0
    pool.took(shards.MAKING, 100.0)
    pool.took("t", 2.0)
    assert pool.late("t") == 108.0
    pool.took("t", 1.0)
    assert pool.late("t") == pytest.approx(107.2)


def test_workers_that_die_under_a_task_over_and_over(fake):
    client = fake("ab", lambda future: future.ends("error", KilledWorker()))
    with pytest.raises(ts.ClusterError, match="t: the workers of a shard have died 4 times over, most likely for want"):
        asked(Cluster(client))
    assert len(client.sent) == 8


def test_nobody_is_there_for_a_while(fake, monkeypatch, caplog):
    """What was under way is given up by Dask; whoever comes gets all of it, and nothing is late for having waited."""
    client = fake("ab")
    pool = Cluster(client, patience=0.5)
    is_there = pool.crew.is_there

    def happens(future):
        if future.number == 1:
            client.workers.clear()
            for one in client.sent:
                one.ends("cancelled")
        elif future.number > 1:
            future.ends()

    def noticed():
        there = is_there()
        if not there:
            client.workers[:] = "cd"
        return there

    client.happens = happens
    monkeypatch.setattr(pool.crew, "is_there", noticed)
    assert asked(pool) == EVERY
    assert [future.worker for future in client.sent[2:]] == ["c", "d"]
    assert "the cluster has no workers: waiting up to 300 s" in caplog.text


def test_what_was_done_while_this_process_was_busy_is_not_late(fake, monkeypatch):
    """It does not look for longer than that, and b has answered meanwhile: only the task of a gets a second copy."""
    client = fake(
        "ab", lambda future: threading.Timer(0.15, future.ends).start() if future.number == 0 else future.ends()
    )
    pool, pauses = Cluster(client, patience=0.01), iter([0.1])
    pool.took("t", 0.005)
    monkeypatch.setattr(pools, "check_time", lambda: time.sleep(next(pauses, 0.0)))
    assert asked(pool) == EVERY
    assert all(future.worker == "b" for future in client.sent[2:])


def test_what_the_scheduler_has_never_heard_of_is_sent_again(fake):
    def happens(future):
        if future.number:
            future.ends()

    async def statuses(keys):
        return dict.fromkeys(keys)

    client = fake("a", happens)
    client.scheduler.get_task_status = statuses
    assert asked(Cluster(client, patience=0.1)) == EVERY
    assert len(client.sent) >= 2


@pytest.mark.parametrize("silent", [True, False])
def test_long_work_is_sent_elsewhere_only_if_its_worker_is_not_heard_of(fake, silent):
    """Otherwise it may take its time, here the time of many looks."""
    looks = []

    def happens(future):
        if future.number or not silent:
            threading.Timer(0.0 if silent else 0.3, future.ends).start()

    def info(n_workers):
        looks.append(1)
        return {"workers": {"a": {"last_seen": 0.0 if silent else 9.0}, "b": {"last_seen": 9.0}}}

    client = fake("ab", happens)
    client.scheduler_info = info
    assert asked(Cluster(client, patience=0.05), 1, long=True) == ([0], [0])
    assert looks
    assert [future.worker for future in client.sent] == ["a", "b"][: 1 + silent]


class Unreadable(Exception):
    """Nobody can make it again of what was sent."""

    def __init__(self, what, where):
        super().__init__(f"{what} in {where}")


def test_an_error_that_nobody_can_read_is_told_by_its_words(fake):
    """Dask would fail to read the whole answer, and the task would be done again for ever."""

    def fails(number, n_jobs=1):
        raise Unreadable("a hole", "the bucket")

    good, error = attempting._attempted(fails, (1,), 1)
    assert not good
    assert str(pickle.loads(pickle.dumps(error))) == "Unreadable: a hole in the bucket"
    kept = attempting._attempted(np.linalg.cholesky, (-np.eye(2),), 1)[1]  # n_jobs is none of its arguments
    assert isinstance(kept, TypeError)
    with pytest.raises(ts.ClusterError, match="t: shard 0 fails on two workers: Unreadable: a hole in the bucket"):
        Cluster(fake()).map("t", fails, [(0,)], [0])


def test_a_worker_that_comes_late_and_is_another_kind_is_warned_of_once(fake, monkeypatch):
    client = fake("ab")
    pool = Cluster(client)
    pool.kinds = workers.check_workers(dict.fromkeys("ab", workers.described()))
    assert asked(pool) == EVERY  # and no warning
    client.workers.append("c")
    pool.crew.look(force=True)
    monkeypatch.setattr(
        attempting,
        "described",
        lambda: {**workers.described(), **({"numpy": "1.0"} if client.at_work == "c" else {})},
    )
    with pytest.warns(UserWarning, match="workers differ in numpy: results agree within rounding") as told:
        assert asked(pool) == EVERY
    assert asked(pool) == EVERY
    assert len(told) == 1


def test_workers_that_differ_and_have_too_little_memory_are_told_before_the_work(fake, caplog):
    kind = workers.described()
    with pytest.warns(UserWarning, match="workers differ in scipy, flags: results agree within rounding"):
        assert len(workers.check_workers({"a": kind, "b": {**kind, "flags": "none", "scipy": "1"}, "c": kind})) == 2
    client = fake("ab")
    client.memory = 10_000_000
    pool = Cluster(client)
    with caplog.at_level("INFO", "triscreen"):
        pool.check_memory("shards", [2e6] * 5, 1.5e6)  # three of them at one worker, one at a time at work
    assert "shards: about 0.0075 GB on a, of 0.01 GB" in caplog.text
    with pytest.raises(ts.InputError, match=r"memory_limit=0.01 GB of the worker a: shards take about 0.009 GB there"):
        pool.check_memory("shards", [2e6] * 5, 3e6)


def test_a_client_that_is_closed_while_answers_are_fetched(fake):
    client = fake("ab")

    def happens(future):
        future.ends()
        if future.number == 1:
            client.status = "closed"
            client.over()

    client.happens = happens
    with pytest.raises(ts.ClusterError, match="the client is closed: it has no connection"):
        asked(Cluster(client, patience=1.0))


def test_a_loop_that_is_over_gives_no_answer():
    client = Client()
    client.over()
    with pytest.raises(asking.NoAnswer, match="closed"):
        asking.outcome(asking.on_loop(client, client.run(None)), 1.0)


def test_what_dask_holds_is_not_waited_for_where_nobody_is_there(fake, tmp_path, caplog):
    """Dask itself would wait for ever, and say nothing."""
    dask_array = pytest.importorskip("dask.array")
    client, never = fake(""), threading.Event()
    held = Future(client, 0, None, "x", None)
    held.result = never.wait
    client.compute = lambda collection: held
    begin = time.monotonic()
    with pytest.raises(ts.ClusterError, match="the cluster has had no workers for 0 s; start some"):
        open_source(dask_array.zeros((4, 2)), np.arange(4) % 2, tmp_path, pool=Cluster(client, waiting=0.2))
    never.set()
    assert time.monotonic() - begin < 60.0
    assert held.released
    assert "the cluster has no workers: waiting up to 0 s" in caplog.text
