"""Which workers there are, and how long nobody was there: without a cluster."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

import triscreen as ts
from triscreen.distributed import crew as crews
from triscreen.distributed.crew import Crew


class Client:
    """Knows of some workers."""

    status = "running"

    def __init__(self, *workers):
        self.workers = workers

    def nthreads(self):
        return dict.fromkeys(self.workers, 1)

    def scheduler_info(self, n_workers):
        return {"workers": {worker: {"last_seen": seen} for worker, seen in self.seen.items()}}

    def processing(self):
        return {"a": ("x", "y"), "b": ("z",)}


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass when they are told to."""
    now = [1000.0]
    # Its own: others, a cluster of other tests among them, go by the clock of this process meanwhile.
    monkeypatch.setattr(crews, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=time.sleep))
    return now


def test_nobody_for_too_long_counts_from_when_it_was_seen(clock):
    client = Client()
    crew = Crew(client, 30.0, 60.0)
    crew.look()
    assert not crew.is_there()
    clock[0] += 59
    assert not crew.is_there()
    clock[0] += 2
    with pytest.raises(ts.ClusterError, match="no workers for 60 s"):
        crew.is_there()


def test_a_new_round_does_not_pay_for_the_waiting_of_an_old_one(clock, caplog):
    """Workers came, did the work within a second and were never looked at; long after that there are none again."""
    client = Client()
    crew = Crew(client, 30.0, 60.0)
    crew.look()
    assert not crew.is_there()
    clock[0] += 300
    crew.start_again()
    crew.look()
    assert not crew.is_there()
    assert len(caplog.records) == 1  # it was said, and nobody has been seen since
    clock[0] += 61
    with pytest.raises(ts.ClusterError):
        crew.is_there()


def test_tasks_share_the_threads_of_a_worker():
    client = Client("a", "b")
    client.nthreads = lambda: {"a": 4, "b": 8}
    crew = Crew(client, 30.0, 60.0)
    assert crew.n_jobs(None, 1) == 1  # nobody is known yet
    crew.look()
    assert [crew.n_jobs(None, count) for count in (1, 2, 4, 20)] == [4, 4, 2, 1]  # whoever does it has as many
    assert [crew.n_jobs("b", count) for count in (1, 2, 4, 20)] == [8, 8, 4, 1]
    crew.settle(range(6))
    assert crew.n_jobs("b", 6) == 2


def test_who_has_not_been_heard_of_is_known_by_the_clock_of_the_scheduler():
    client = Client("a", "b")
    client.seen = {"a": 5000.0, "b": 4990.0}
    crew = Crew(client, 30.0, 60.0)
    assert crew.unheard(8.0) == {"b"}
    assert crew.unheard(12.0) == set()
    assert crew.doing("z") == ["b"]
    assert crew.doing("nothing") == []


def homes(crew, count):
    """Where the shards are."""
    crew.settle(range(count))
    return "".join(crew.home(place, place) for place in range(count))


def test_places_follow_the_workers_that_there_are(clock):
    """As few move as can be, work is shared, and who was given a place of another one's is told to drop what it had."""
    client, told = Client("a", "b", "c"), []
    crew = Crew(client, 30.0, 60.0)
    crew.run = lambda function, plan, own, workers: told.append((workers[0], sorted(own)))
    crew.plan = "plan"
    crew.look()
    assert homes(crew, 6) == "abcabc"
    assert told == [("a", [0, 3]), ("b", [1, 4]), ("c", [2, 5])]
    client.workers = ("a", "b")  # c died
    crew.look(force=True)
    assert homes(crew, 6) == "abaabb"
    client.workers = ("a", "b", "d")  # and another one came
    crew.look(force=True)
    told.clear()
    assert homes(crew, 6) == "abadbd"
    assert told == [("a", [0, 2]), ("b", [1, 4]), ("d", [3, 5])]
    crew.was_silent("b")  # others do its work for a while
    assert homes(crew, 6) == "aaaddd"
    clock[0] += 121
    crew.look()
    assert homes(crew, 6) == "aabddb"
    told.clear()
    crew.stray("a", 4)  # it did the work of d once, and may have the shard: it is told again
    clock[0] += 2
    homes(crew, 6)
    assert told == [("a", [0, 1])]
