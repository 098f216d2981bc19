"""Who says nothing, or is gone: workers, the scheduler, the client, a message. No hang, and one sentence."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from kinds import labelled
from small import LAMBDAS, made, nightly, walked

import triscreen as ts

pytest.importorskip("distributed")
from clusters import CONTINUE, KILL, STOP, asleep, eventually, harm, known, pids, same_bits, scale_to, shards_of

from triscreen.distributed import pool as pools
from triscreen.distributed.crew import Crew
from triscreen.distributed.pool import Cluster

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


def test_a_worker_that_has_stopped_before_the_start(client, reference, monkeypatch):
    """It never answers what it can do: Dask would ask it for minutes."""
    was_silent, silent = Crew.was_silent, set()
    monkeypatch.setattr(Crew, "was_silent", lambda self, worker: silent.add(worker) or was_silent(self, worker))
    worker, number = max(pids(client).items())
    harm(number, STOP)
    try:
        same_bits(walked(made(client)), reference)
        assert worker in silent  # it is forgiven after a while, and on a busy machine that may be over
    finally:
        harm(number, CONTINUE)


def test_a_client_that_is_closed_under_way(client):
    from distributed import Client

    other = Client(client.scheduler.address, set_as_default=False)

    def close(state):
        if state.n_lambdas == 2:
            other.close()

    with pytest.raises(ts.ClusterError, match="the client is closed: it has no connection to the scheduler any more"):
        walked(made(other), callback=close)


def test_clients_that_do_not_wait_are_refused():
    class Client:
        asynchronous = True

        def submit(self):
            """Never called."""

        nthreads = scheduler_info = submit

    with pytest.raises(ts.InputError, match="client must be one that waits"):
        made(Client())


def test_an_answer_that_takes_longer_than_patience(client, monkeypatch):
    """What comes slowly comes in the end: it is given twice the time, and then again."""
    gathered, times = pools._gathered, []

    async def slow(client, futures):
        times.append(len(futures))
        await asyncio.sleep(0.7)
        return await gathered(client, futures)

    monkeypatch.setattr(pools, "_gathered", slow)
    assert Cluster(client, patience=0.25).map("slow", asleep, [(0.0, i) for i in range(3)], places=range(3)) == [
        0,
        1,
        2,
    ]
    assert len(times) < 40  # the time doubles; a busy machine may lose some answers besides


def test_an_answer_that_dask_gives_up_is_no_silence_of_a_worker(client, monkeypatch):
    gathered, times = pools._gathered, []

    async def losing(client, futures):
        times.append(len(futures))
        if len(times) == 1:
            raise TimeoutError("of a connection")
        return await gathered(client, futures)

    monkeypatch.setattr(pools, "_gathered", losing)
    pool, silent = Cluster(client, patience=60.0), []
    monkeypatch.setattr(pool.crew, "was_silent", silent.append)
    assert pool.map("lost", asleep, [(0.0, i) for i in range(3)], places=range(3)) == [0, 1, 2]
    assert len(times) > 1
    assert not silent


def test_a_task_that_the_scheduler_has_never_heard_of(cluster, monkeypatch):
    """Its message was lost; and there is no other worker whom a second copy could go to."""
    client, own = cluster
    scale_to(client, own, 1)
    send, lost = client._send_to_scheduler, []

    def losing(message):
        if message["op"] == "update-graph" and not lost:
            lost.append(message)
        else:
            send(message)

    monkeypatch.setattr(client, "_send_to_scheduler", losing)
    assert Cluster(client, patience=0.5).map("unheard", asleep, [(0.0, 7)], places=[0]) == [7]
    assert lost


def test_what_the_workers_of_a_client_hold_that_is_not_the_default(client):
    dask_array = pytest.importorskip("dask.array")
    import dask.dataframe as dask_table

    X, y = labelled(n=70)
    named = {"k": 3, "n_shards": 3}
    lam = 0.01 * ts.distributed.problem(None, X, y, **named).lambda_max()
    wanted = ts.solve(ts.distributed.problem(None, X, y, **named), lam).M
    points, labels = (client.persist(dask_array.from_array(one, chunks=(20, *one.shape[1:]))) for one in (X, y))
    assert np.array_equal(ts.solve(ts.distributed.problem(client, points, labels, **named), lam).M, wanted)
    frame = pd.DataFrame(X).rename(columns=str).assign(label=y)
    table = client.persist(dask_table.from_pandas(frame, npartitions=3))
    assert np.array_equal(ts.solve(ts.distributed.problem(client, table, "label", **named), lam).M, wanted)
    broken = dask_array.map_blocks(lambda block: block / [], points, dtype=float)
    with pytest.raises(ts.ClusterError, match="block 0 of X cannot be had of dask: ") as told:
        ts.distributed.problem(client, broken, y, **named)
    assert "\n" not in str(told.value)


def test_workers_keep_nothing_of_an_estimator_that_came_by_address(client):
    """Its client goes at once; what it has left behind would stay until somebody else comes."""
    X, y = labelled(n=60)
    before, address = client.run(known), client.scheduler.address
    ts.TripletMetric(3, triplets="all", scheduler=address).fit(X, y)
    ts.TripletMetricCV(3, cv=2, ratios=3, candidates=(None,), scheduler=address).fit(X, y)
    # They are told before the client goes; a busy machine may take longer than it waits for them.
    eventually(
        lambda: client.run(known),
        lambda after: all(after[worker] <= before.get(worker, set()) for worker in after),
    )


def test_tasks_have_names_for_the_dashboard(client, monkeypatch):
    from dask.utils import key_split

    submit, names = client.submit, set()

    def noted(*arguments, key, **named):
        names.add(key_split(key))
        return submit(*arguments, key=key, **named)

    monkeypatch.setattr(client, "submit", noted)
    walked(made(client))
    assert {
        "triscreen_look",
        "triscreen_neighbours",
        "triscreen_load",
        "triscreen_evaluate",
        "triscreen_screen",
    } <= names
    assert all(name.startswith("triscreen_") for name in names), names


@nightly
def test_one_problem_on_two_threads(client, reference):
    problem, paths = made(client), {}

    def work(name):
        paths[name] = walked(problem)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same_bits(paths[0], reference)
    same_bits(paths[1], reference)


SCRIPT = """
import sys
from distributed import Client
from small import made, walked

def told(state):
    print(state.n_lambdas, flush=True)

if __name__ == "__main__":
    problem = made(Client(sys.argv[1]), folder=sys.argv[3])
    walked(problem, callback=told, checkpoint=sys.argv[2])
    sys.stdin.read()
"""


@nightly
@pytest.mark.parametrize("when", [4, 8])
def test_a_process_that_is_killed_and_a_second_start_with_another_number_of_workers(cluster, reference, tmp_path, when):
    """In the middle of a path, and after it: tasks go with their client, and the second start goes on."""
    client, own = cluster
    scale_to(client, own, 3)
    (tmp_path / "run.py").write_text(SCRIPT)
    words = [sys.executable, tmp_path / "run.py", client.scheduler.address, tmp_path / "c", tmp_path / "files"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stdout:
                if line.strip() == str(when):
                    break
        finally:
            process.send_signal(KILL)
    eventually(lambda: client.processing(), lambda found: not any(found.values()))
    scale_to(client, own, 2)
    done = []
    same_bits(
        walked(made(client), checkpoint=tmp_path / "c", callback=lambda state: done.append(state.n_lambdas)), reference
    )
    assert done == list(range(when + 1, LAMBDAS + 1))


@nightly
@pytest.mark.parametrize(
    ("how", "words"),
    [(KILL, "there is no connection to the scheduler, and that for 3 s"), (STOP, "the scheduler does not answer")],
)
def test_a_scheduler_that_dies_or_stops(tmp_path, how, words):
    from distributed import Client

    file = tmp_path / "scheduler.json"
    here = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", file]
    start = [sys.executable, "-m", "distributed.cli.dask_scheduler", *here]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(list(map(str, start)), **quiet) as scheduler:
        try:
            address = (
                eventually(lambda: file.exists() and file.read_text(), bool, 60.0)
                and json.loads(file.read_text())["address"]
            )
            start = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard"]
            with subprocess.Popen([*start, "--no-nanny", "--death-timeout", "20"], **quiet) as worker:
                try:
                    with Client(address, set_as_default=False) as client:
                        client.wait_for_workers(1, timeout=60)
                        problem = made(client, waiting=60.0)
                        problem.triplets.pool.crew.waiting = 3.0

                        def end(state):
                            if state.n_lambdas == 2:
                                harm(scheduler.pid, how)

                        with pytest.raises(ts.ClusterError, match=words):
                            walked(problem, callback=end)
                        harm(scheduler.pid, CONTINUE)
                        scheduler.kill()
                finally:
                    worker.kill()
        finally:
            scheduler.kill()


@nightly
def test_workers_of_several_threads(reference):
    from clusters import cluster_of

    with cluster_of(2, threads_per_worker=2) as (client, _):
        problem = made(client)
        same_bits(walked(problem), reference)
        assert problem.triplets.pool.crew.n_jobs(min(client.nthreads()), 1) == 2

        def kept():
            """Who has worked for another one, on a busy machine, is told to drop that shard in a later round."""
            ts.solve(problem, reference.lambdas[0])
            return sum(map(len, client.run(shards_of, problem.triplets.plan).values()))

        assert eventually(kept, lambda kept: kept == 5) == 5
