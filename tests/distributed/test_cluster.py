"""On a cluster of processes: the bits of `client=None`, whoever works and whatever dies; what users are told."""

from __future__ import annotations

import _thread
import json
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest
from kinds import KINDS, arguments, labelled, noisy
from small import LAMBDAS, made, nightly, walked

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
    noted,
    noted_unless,
    numbers_of,
    pids,
    same_bits,
    scale_to,
    shards_of,
    wait_for_workers,
)

from triscreen.distributed import shards
from triscreen.distributed.pool import Cluster
from triscreen.distributed.workers import memory_limits
from triscreen.estimators import tasks

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


def test_the_same_bits_for_any_number_of_workers(cluster, reference):
    client, own = cluster
    for count in (3, 2, 1):
        scale_to(client, own, count)
        same_bits(walked(made(client)), reference)


@pytest.mark.parametrize(
    "more", [{"loss": ts.Hinge(), "cone": "diagonal"}, {"prior": "identity"}], ids=["hinge", "prior"]
)
@pytest.mark.parametrize("kind", KINDS)
@nightly
def test_the_same_bits_for_every_kind(client, kind, more):
    X, y = labelled(n=60)
    _, given, named = arguments(kind, X, y)
    answers = []
    for who in (None, client):
        problem = ts.distributed.problem(who, X, *given, n_shards=3, **more, **named)
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

    kept = eventually(kept, lambda kept: sum(map(len, kept.values())) == 5)
    assert sorted(map(len, kept.values())) == [2, 3], "work is shared, and nobody keeps the shards of others"


def test_workers_that_die_at_any_moment(client, reference):
    problem, over = made(client), threading.Event()
    killed = []

    def killer():
        while not over.wait(0.4) and len(killed) < 4:
            numbers = numbers_of(client)
            if numbers and harm(numbers[len(killed) % len(numbers)], KILL):
                killed.append(numbers[0])

    thread = threading.Thread(target=killer)
    thread.start()
    try:
        for _ in range(60):
            same_bits(walked(problem), reference)
            if len(killed) > 2:
                break
    finally:
        over.set()
        thread.join()
    assert killed


def test_jobs_of_a_worker_go_in_one_task_and_only_what_raised_is_done_again(client, monkeypatch, tmp_path):
    submit, sent = client.submit, []

    def counted(attempt, function, jobs, *more, **named):
        sent.append(len(jobs))
        return submit(attempt, function, jobs, *more, **named)

    monkeypatch.setattr(client, "submit", counted)
    pool = Cluster(client)
    assert pool.map("calm", noted, [(tmp_path, 0.0, i) for i in range(6)], places=range(6)) == list(range(6))
    assert sent == [2, 2, 2]
    ill = pool.crew.home(4, 4)
    assert pool.map("ill", noted_unless, [(tmp_path, i, ill, 14) for i in range(10, 16)], places=range(6)) == [
        *range(10, 16)
    ]
    assert sent == [2, 2, 2, 2, 2, 2, 1]
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(f"{i}-0" for i in (*range(6), *range(10, 16)))


def test_answers_that_are_lost_before_they_are_here(client, monkeypatch):
    """A task has ended and its answer went with its worker: Dask says None, or nothing, and it is done again."""
    from triscreen.distributed import pool

    gathered, times = pool._gathered, []

    async def losing(client, futures):
        found = await gathered(client, futures)
        times.append(len(found))
        return [{**found, 0: None}, dict(list(found.items())[1:]), found][min(len(times), 3) - 1]

    monkeypatch.setattr(pool, "_gathered", losing)
    assert Cluster(client).map("lost", asleep, [(0.0, i) for i in range(6)], places=range(6)) == list(range(6))
    assert len(times) >= 3


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
                made(client, patience=120.0)  # who does not answer in time is not refused
        finally:
            client.run(change, version, True, workers=worker)


def test_a_worker_that_dies_while_it_is_asked_is_no_fault_of_the_user(client, monkeypatch, tmp_path):
    from triscreen.distributed import pool

    ask, asked = pool.versions_on, []

    def dying(client, folder, workers, seconds):
        asked.append(sorted(workers))
        found = {worker: kinds[worker] for worker in workers}
        return {**found, min(workers): OSError("connection reset by peer")} if len(asked) < lost else found

    def told(**named):
        made = Cluster(client, **named)
        monkeypatch.setattr(made.crew, "wait", lambda: None)
        made.crew.threads = client.nthreads()
        return made

    kinds = ask(client, tmp_path, list(client.nthreads()), 120.0)
    monkeypatch.setattr(pool, "versions_on", dying)
    lost = 3
    told(patience=120.0).check(tmp_path)
    assert [len(workers) for workers in asked] == [3, 1, 1]  # who has answered is not asked again
    lost, silent = 1000, told(patience=0.3)
    silent.check(tmp_path)
    assert len(silent.crew.able) == 2
    monkeypatch.setattr(pool, "versions_on", lambda _, __, workers, ___: dict.fromkeys(workers, OSError("no")))
    with pytest.raises(ts.ClusterError, match="none of the 3 workers has answered for 0 s"):
        told(patience=0.3, waiting=0.3).check(tmp_path)


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
    limits = memory_limits(client, list(client.nthreads()), 30.0)
    assert all(limit > 1e6 for limit in limits.values())
    monkeypatch.setattr("triscreen.distributed.pool.memory_limits", lambda *_: dict.fromkeys(limits, 50_000))
    with pytest.raises(ts.InputError, match=r"memory_limit=5e-05 GB of the worker tcp.*: shards take about"):
        made(client)
    monkeypatch.setattr("triscreen.distributed.pool.memory_limits", lambda *_: dict.fromkeys(limits, 20_000))
    with pytest.raises(ts.InputError, match=r"memory_limit=2e-05 GB of the worker tcp.*: folds take about"):
        ts.TripletMetricCV(3, scheduler=client.scheduler.address).fit(*noisy())


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


def test_a_prior_and_rounds_on_a_cluster(client):
    X, y = noisy()
    metric = ts.TripletMetric(3, prior="within", rounds=2, scheduler=client.scheduler.address, tol=1e-6).fit(X, y)
    plain = ts.TripletMetric(3, prior="within", rounds=2, tol=1e-6).fit(X, y)
    assert metric.n_rounds_ == plain.n_rounds_ == 2
    assert np.allclose(metric.get_mahalanobis_matrix(), plain.get_mahalanobis_matrix(), rtol=0, atol=1e-4)


def test_a_cross_validation_on_a_cluster_whose_workers_die(client, monkeypatch):
    X, y = noisy()
    options = {"n_neighbors": 3, "cv": 4, "ratios": 4, "rounds": 2, "candidates": (None, "identity")}
    here, killed, timers = ts.TripletMetricCV(**options).fit(X, y), [], []
    take = tasks.FoldCrew.ask

    def ask(self, *arguments):
        timers.append(threading.Timer(0.1, lambda: killed.extend(harm(one, KILL) for one in numbers_of(client)[-1:])))
        timers[-1].start()
        return take(self, *arguments)

    monkeypatch.setattr(tasks.FoldCrew, "ask", ask)
    there = ts.TripletMetricCV(**options, scheduler=client.scheduler.address).fit(X, y)
    for timer in timers:
        timer.join()
    assert killed
    assert there.chosen_ == here.chosen_
    assert any("round 2" in name for name in here.candidates_["name"])
    assert np.array_equal(there.components_, here.components_)
    for column in ("alone", "scores"):
        assert np.array_equal(there.candidates_[column], here.candidates_[column], equal_nan=True)
    with pytest.raises(ts.InputError, match="scheduler=5: scheduler must be None, 'current' or an address"):
        ts.TripletMetricCV(**options, scheduler=5).fit(X, y)


@nightly
def test_a_long_task_of_a_silent_worker_goes_elsewhere_and_others_are_left_alone(client, tmp_path):
    """Long work is not late for being long; who is not heard of is."""
    pool = Cluster(client, patience=1.0)
    assert pool.map("calm", noted, [(tmp_path, 4.0, i) for i in range(5)], long=True) == list(range(5))
    assert sorted(file.name for file in tmp_path.iterdir()) == [f"{i}-0" for i in range(5)]  # none was done twice
    stopped = []

    def stop():
        stopped.append(max(pids(client).values()))
        harm(stopped[0], STOP)

    timer = threading.Timer(1.0, stop)
    timer.start()
    try:
        begin = time.monotonic()
        assert pool.map("stopped", noted, [(tmp_path, 4.0, 10 + i) for i in range(3)], long=True) == [10, 11, 12]
        assert stopped
        assert time.monotonic() - begin < 60.0
    finally:
        timer.join()
        for number in stopped:
            harm(number, CONTINUE)


def test_what_an_estimator_on_a_cluster_refuses(client, tmp_path):
    X, y = labelled(n=60)
    address = client.scheduler.address
    for change, words in (
        ({"memory_budget": 1e9}, "memory_budget=.*: with scheduler='tcp.*workers have limits of their own"),
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
    prior = ("--prior", "within", "--scheduler", address)
    here = json.loads(invoke(*words, tmp_path / "c", *prior[:2]).out)
    there = json.loads(invoke(*words, tmp_path / "d", *prior).out)
    assert np.allclose(here["losses"], there["losses"], rtol=1e-5)
    told = refusal(*words, tmp_path / "e", "--scheduler", address, "--workers", "2")
    assert "workers='2': it has no effect with --scheduler, leave it out" in told


@nightly
@pytest.mark.parametrize("parts", ["csv", "parquet"])
def test_a_command_on_processes_of_its_own(tmp_path, parts):
    X, y = labelled(n=90)
    table = pd.DataFrame(X).rename(columns=lambda i: f"x{i}").assign(label=y)
    if parts == "csv":
        table.to_csv(tmp_path / "data", index=False)
    else:
        (tmp_path / "data").mkdir()
        table[:40].to_parquet(tmp_path / "data" / "a.parquet")
        table[40:].to_parquet(tmp_path / "data" / "b.parquet")
    words = ["path", tmp_path / "data", "--label", "label", "-k", "4", "--n-lambdas", "4", "--json", "-o"]
    here = json.loads(invoke(*words, tmp_path / "a").out)
    command = [sys.executable, "-m", "triscreen", *words, tmp_path / "b", "--workers", "2"]
    there = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300, check=True)
    assert np.allclose(here["losses"], json.loads(there.stdout)["losses"], rtol=1e-5)
