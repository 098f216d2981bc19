"""On a cluster of processes: the bits of `client=None`, whoever works and whatever dies; what users are told."""

from __future__ import annotations

import _thread
import json
import os
import threading
import time

import numpy as np
import pytest
from kinds import KINDS, arguments, labelled

import triscreen as ts
from commands import invoke, refusal

pytest.importorskip("distributed")
from clusters import (
    CONTINUE,
    KILL,
    STOP,
    asleep,
    break_down,
    cluster_of,
    eventually,
    harm,
    pids,
    same_bits,
    scale_to,
    shards_of,
    wait_for_workers,
)

from triscreen.distributed import shards
from triscreen.distributed.pool import Cluster
from triscreen.distributed.workers import memory_limits

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
LAMBDAS = 8
# With the others half a minute more than the tests have.
nightly = pytest.mark.skipif(not os.environ.get("TRISCREEN_NIGHTLY"), reason="for make nightly")


@pytest.fixture(scope="module")
def cluster():
    with cluster_of(3) as (client, cluster):
        yield client, cluster


@pytest.fixture
def client(cluster):
    """Three workers, none of them stopped."""
    scale_to(*cluster, 3)
    return cluster[0]


def made(client, n_shards=5, **more):
    X, y = labelled(n=150)
    return ts.distributed.problem(client, X, y, k=4, n_shards=n_shards, **{"patience": 1.5, "waiting": 20.0, **more})


def walked(problem, **more):
    return ts.solve_path(problem, ratio=0.75, n_lambdas=LAMBDAS, **more)


@pytest.fixture(scope="module")
def reference():
    return walked(made(None))


def test_the_same_bits_for_any_number_of_workers(cluster, reference):
    client, own = cluster
    for count in (3, 2, 1):
        scale_to(client, own, count)
        same_bits(walked(made(client)), reference)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.endswith("weighted") or kind == "lmnn"])
@nightly
def test_the_same_bits_for_every_kind(client, kind):
    X, y = labelled(n=60)
    _, given, named = arguments(kind, X, y)
    answers = []
    for who in (None, client):
        problem = ts.distributed.problem(who, X, *given, n_shards=3, loss=ts.Hinge(), cone="diagonal", **named)
        answers.append(ts.solve(problem, 0.02 * problem.lambda_max()))
    assert np.array_equal(answers[0].M, answers[1].M)
    assert answers[0].gap == answers[1].gap


@nightly
def test_more_workers_than_shards(client):
    same_bits(walked(made(client, n_shards=2)), walked(made(None, n_shards=2)))


@nightly
def test_workers_that_are_killed_stopped_restarted_and_retired(client, reference):
    problem, stopped = made(client), []

    def killer(state):
        numbers = sorted(pids(client).values()) if state.n_lambdas < 4 else []
        if state.n_lambdas in (1, 2):
            harm(numbers[0], KILL)
        elif state.n_lambdas == 3:
            harm(numbers[-1], STOP)
            stopped.append(numbers[-1])
        elif state.n_lambdas == 5:
            harm(stopped[0], CONTINUE)
        elif state.n_lambdas == 6:
            client.restart(timeout=30)
        elif state.n_lambdas == 7:
            client.retire_workers([min(client.nthreads())])

    try:
        same_bits(walked(problem, callback=killer), reference)
    finally:
        for number in stopped:
            harm(number, CONTINUE)
    wait_for_workers(client, 2)

    def kept():
        ts.solve(problem, reference.lambdas[0])
        return client.run(shards_of, problem.triplets.plan)

    kept = eventually(kept, lambda kept: sum(map(len, kept.values())) == 5, 30.0)
    assert sorted(map(len, kept.values())) == [2, 3], "work is shared, and nobody keeps the shards of others"


def test_workers_that_die_at_any_moment(client, reference):
    problem, over = made(client), threading.Event()
    killed = []

    def killer():
        while not over.wait(0.4) and len(killed) < 4:
            numbers = sorted(pids(client).values())
            if numbers and harm(numbers[len(killed) % len(numbers)], KILL):
                killed.append(numbers[0])

    thread = threading.Thread(target=killer)
    thread.start()
    try:
        for _ in range(3):
            same_bits(walked(problem), reference)
            if len(killed) > 2:
                break
    finally:
        over.set()
        thread.join()
    assert killed


@nightly
def test_no_workers_for_a_while(cluster, reference):
    client, own = cluster
    problem = made(client)

    def none_for_a_while(state):
        if state.n_lambdas == 3:
            own.scale(0)
            wait_for_workers(client, 0)
            threading.Timer(1.5, own.scale, [2]).start()

    same_bits(walked(problem, callback=none_for_a_while), reference)


@nightly
def test_no_workers_any_more_and_a_second_start_with_others(cluster, reference, tmp_path):
    client, own = cluster
    scale_to(client, own, 2)
    problem = made(client, waiting=1.0)

    def gone(state):
        if state.n_lambdas == 4:
            own.scale(0)
            wait_for_workers(client, 0)

    with pytest.raises(ts.ClusterError, match="no workers for 1 s; start some, and the same call with a checkpoint"):
        walked(problem, callback=gone, checkpoint=tmp_path / "c")
    with pytest.raises(ts.ClusterError, match="no workers"):
        made(client, waiting=1.0)
    scale_to(client, own, 3)
    same_bits(walked(made(client), checkpoint=tmp_path / "c"), reference)


@nightly
def test_two_fits_at_once(client, reference):
    paths = {}

    def work(name):
        paths[name] = walked(made(client))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same_bits(paths[0], reference)
    same_bits(paths[1], reference)


@nightly
def test_workers_forget_a_problem_that_is_over(client):
    problem = made(client)
    plan = problem.triplets.plan
    assert sum(map(len, client.run(shards_of, plan).values())) >= 5
    del problem
    eventually(lambda: client.run(shards_of, plan), lambda kept: not any(kept.values()))


@nightly
def test_ctrl_c_gives_the_path_so_far(client, reference):
    problem = made(client)

    def interrupt(state):
        if state.n_lambdas == 3:
            threading.Timer(0.02, _thread.interrupt_main).start()

    with pytest.raises(ts.Interrupted) as caught:
        walked(problem, callback=interrupt)
    assert 3 <= len(caught.value.result) < LAMBDAS
    same_bits(walked(problem), reference)


# -- what goes wrong for good ------------------------------------------------------------------------------------------


@nightly
def test_one_ill_worker_is_no_end(client, reference):
    problem = made(client)
    client.run(break_down, "the disk is gone", workers=[min(client.nthreads())])
    try:
        same_bits(walked(problem), reference)
    finally:
        client.run(break_down, None)


@nightly
def test_a_shard_that_raises_on_two_workers_is_told_in_a_sentence(client, tmp_path):
    problem = made(client, folder=tmp_path)
    plan = problem.triplets.plan
    (tmp_path / plan.read()["tables"]["same"]).unlink()
    client.run(shards.forget, plan)
    with pytest.raises(
        ts.InputError, match=r"evaluate: shard \d fails on two workers: .*same-.*cannot be read"
    ) as told:
        ts.solve(problem, 1.0)
    assert "\n" not in str(told.value)


def test_workers_that_cannot_do_the_work_are_told_before_it(client, tmp_path):
    with pytest.raises(ts.InputError, match=r"the worker tcp.* cannot read the folder .*pass a folder= that every"):
        Cluster(client).check(tmp_path / "nowhere")

    def change(version, here):
        import sys

        kept = sys.modules.setdefault("kept", sys.modules["triscreen"])
        kept.__version__ = version
        sys.modules["triscreen"] = kept if here else None

    worker, version = [min(client.nthreads())], ts.__version__
    for told, words in ((("0.0.1", True), r"has triscreen 0.0.1: it must have"), ((version, False), "cannot import")):
        client.run(change, *told, workers=worker)
        try:
            with pytest.raises(ts.InputError, match=words):
                made(client)
        finally:
            client.run(change, version, True, workers=worker)


@nightly
def test_workers_that_differ_are_warned_of(client, monkeypatch):
    from triscreen.distributed import pool

    ask = pool.versions_on

    def differ(*arguments):
        found = ask(*arguments)
        found[min(found)]["flags"] = ["none"]
        return found

    monkeypatch.setattr(pool, "versions_on", differ)
    with pytest.warns(UserWarning, match="workers differ in flags: results agree within rounding"):
        made(client)


@nightly
def test_too_little_memory_is_told_before_the_work(client, monkeypatch):
    limits = memory_limits(client, list(client.nthreads()))
    assert all(limit > 1e6 for limit in limits.values())
    monkeypatch.setattr("triscreen.distributed.pool.memory_limits", lambda *_: dict.fromkeys(limits, 50_000))
    with pytest.raises(ts.InputError, match=r"memory_limit=5e-05 GB of the worker tcp.*: shards take about"):
        made(client)


@nightly
def test_workers_killed_under_a_task_are_forgiven_and_a_killer_is_not():
    """Without forgiveness of Dask's own every death under a task is a KilledWorker here."""
    import dask

    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), cluster_of(2) as (client, _):
        pool = Cluster(client, patience=20.0)
        killed = []

        def killer():
            time.sleep(0.5)
            killed.append(harm(min(pids(client).values()), KILL))

        thread = threading.Thread(target=killer)
        thread.start()
        assert pool.map("sleep", asleep, [(1.0, i) for i in range(4)], places=range(4)) == [0, 1, 2, 3]
        thread.join()
        assert killed == [True]
        with pytest.raises(ts.ClusterError, match="workers of a shard have died 4 times over, most likely for want"):
            pool.map("die", asleep, [(-1.0, 0)], places=[0])


# -- people ------------------------------------------------------------------------------------------------------------


def test_an_estimator_on_a_cluster(client):
    X, y = labelled(n=90)
    weights = np.where(np.arange(90) % 4, 1.0, 0.0)
    address = client.scheduler.address
    metric = ts.TripletMetric(4, scheduler=address, tol=1e-6).fit(X, y, sample_weight=weights)
    plain = ts.TripletMetric(4, tol=1e-6).fit(X, y, sample_weight=weights)
    assert metric.n_triplets_ == plain.n_triplets_
    assert metric.rel_gap_ <= 1e-6
    assert np.allclose(metric.get_mahalanobis_matrix(), plain.get_mahalanobis_matrix(), rtol=0, atol=1e-3)
    with client.as_current():
        other = ts.TripletMetric(4, scheduler="current", tol=1e-6).fit(X, y, sample_weight=weights)
    assert np.array_equal(other.components_, metric.components_)


def test_what_an_estimator_on_a_cluster_refuses(client, tmp_path):
    X, y = labelled(n=60)
    address = client.scheduler.address
    for change, words in (
        ({"rounds": 2}, "rounds=2: with scheduler='tcp"),
        ({"prior": "identity"}, "prior='identity': with scheduler='tcp"),
        ({"scheduler": 5}, "scheduler=5: scheduler must be None, 'current' or an address"),
        ({"scheduler": "nonsense://x"}, "scheduler='nonsense://x': no scheduler answers there"),
    ):
        with pytest.raises(ts.InputError, match=words):
            ts.TripletMetric(3, **{"scheduler": address, **change}).fit(X, y)
    with pytest.raises(ts.InputError, match="neighbors is given: with scheduler="):
        ts.TripletMetric(3, scheduler=address).fit(X, y, neighbors=np.zeros((60, 3), dtype=int))
    with pytest.raises(ts.InputError, match=r"this process has no dask.distributed.Client"):
        ts.TripletMetric(3, scheduler="current").fit(X, y)
    metric = ts.TripletMetric(3, scheduler=address).fit(X, y)
    ts.save(metric, tmp_path / "m")
    assert ts.load(tmp_path / "m").scheduler is None  # it belongs to the run


def test_commands_on_a_cluster(client, tmp_path):
    X, y = labelled(n=90)
    (tmp_path / "parts").mkdir()
    for i, rows in enumerate((slice(0, 40), slice(40, 90))):
        np.save(tmp_path / "parts" / f"X-{i}.npy", X[rows])
        np.save(tmp_path / "parts" / f"y-{i}.npy", y[rows])
    address = client.scheduler.address
    words = ["path", tmp_path / "parts", "-k", "4", "--n-lambdas", "4", "--test-share", "0", "--json", "-o"]
    here = json.loads(invoke(*words, tmp_path / "a").out)
    there = json.loads(invoke(*words, tmp_path / "b", "--scheduler", address).out)
    assert there["n_points"] == 90
    assert np.allclose(here["losses"], there["losses"], rtol=1e-5)
    told = refusal(*words, tmp_path / "c", "--scheduler", address, "--workers", "2")
    assert "workers='2': it has no effect with --scheduler, leave it out" in told
