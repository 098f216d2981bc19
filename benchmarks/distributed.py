"""Shards on a cluster of processes on this machine: what a round costs, what workers gain, what that says of many.

    python benchmarks/distributed.py [round] [speed] [model] [large] [all] [--points N] [--neighbours K] [--shards S]
                                     [--workers W] [--tol T] [--folder F]

round: seconds of a round of tasks that do nothing, and bytes of an iteration, for several dimensions and numbers of
shards; speed: seconds of a pass and of a lambda with 1 and 2 workers of one thread each, by the wall and of processors,
the driver's share, and what would follow for a machine that has nothing else to do (as if nobody ever worked beside the
driver: derived, not measured); model: a cost model fitted to both, for clusters that are not here; large: --points
points in 32 dimensions with --neighbours neighbours, from files to a solution at 0.01 lambda_max, neighbours included;
all: every triplet of mnist's 60,000 points (32 principal axes; from the folder TRISCREEN_DATA), one certified
evaluation.
"""

from __future__ import annotations

import argparse
import logging
import os
import pickle
import resource
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import triscreen as ts
from triscreen.distributed.pool import Cluster
from triscreen.distributed.sums import added, echo

# Dask's module of this name is meant when somebody imports it, not this file.
sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != Path(__file__).resolve().parent]
DIMENSIONS, SHARDS = (32, 200, 768), (2, 8, 32)


@contextmanager
def cluster_of(workers, memory="auto"):
    """Give a client of so many worker processes, one thread each."""
    import dask
    from distributed import Client, LocalCluster

    options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": logging.ERROR}
    with (
        dask.config.set({"distributed.worker.memory.spill": False, "distributed.worker.memory.target": False}),
        LocalCluster(n_workers=workers, memory_limit=memory, **options) as cluster,
        Client(cluster) as client,
    ):
        yield client


def points_of(n, dim=32, inside=8, classes=10, seed=0):
    """Noisy classes that vary in few directions, in many dimensions."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    Z = rng.normal(size=(n, inside)) + 1.5 * rng.normal(size=(classes, inside))[y]
    X = (Z @ rng.normal(size=(inside, dim))).astype(np.float32)
    for start in range(0, n, 1 << 16):
        X[start : start + (1 << 16)] += 0.3 * rng.normal(size=X[start : start + (1 << 16)].shape)
    return X, y


def seconds_of(function, repeats=5):
    """Return the median and the least seconds of several calls, the first one apart."""
    function()
    spent = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        spent.append(time.perf_counter() - begin)
    return float(np.median(spent)), min(spent)


def rounds(client):
    """Print what a round of tasks costs that return what they are sent; return {(dim, shards): seconds}."""
    pool, found = Cluster(client), {}
    print("\n| d | shards | ms a round | of it sums | MB to workers | MB back |\n|--:|--:|--:|--:|--:|--:|")
    for dim in DIMENSIONS:
        M = np.zeros((dim, dim))
        for shards in SHARDS:
            jobs = [(M,)] * shards
            median, _ = seconds_of(lambda jobs=jobs: pool.map("echo", echo, jobs, places=range(len(jobs))))
            sums, _ = seconds_of(lambda M=M, shards=shards: added([M] * shards))
            sent = shards * len(pickle.dumps(M)) / 1e6
            found[dim, shards] = median + sums
            print(f"| {dim} | {shards} | {1e3 * (median + sums):.1f} | {1e3 * sums:.1f} | {sent:.3g} | {sent:.3g} |")
    return found


def spent_on(client, function, repeats=1):
    """Return wall seconds (the least), and processor seconds a call of: each worker, the driver, its main thread.

    The scheduler is in the driver's process here, so that the driver's seconds are those of both.
    """
    function()
    before, own, main = client.run(time.process_time), time.process_time(), time.thread_time()
    walls = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        walls.append(time.perf_counter() - begin)
    main, own, after = time.thread_time() - main, time.process_time() - own, client.run(time.process_time)
    workers = [(after[one] - before[one]) / repeats for one in sorted(after)]
    return Spent(min(walls), workers, own / repeats, main / repeats)


@dataclass
class Spent:
    """Seconds of a call: by the wall, and of processors."""

    wall: float
    workers: list
    driver: float
    main: float

    def row(self):
        """Return it as part of a table, in ms."""
        own = " + ".join(f"{1e3 * one:.0f}" for one in self.workers)
        share = self.driver / (self.driver + max(self.workers))
        return f"{1e3 * self.wall:.0f} | {own} | {1e3 * self.driver:.0f} | {1e3 * self.main:.0f} | {100 * share:.0f} %"

    def alone(self):
        """Return seconds on a machine that has nothing else to do, if nobody ever works beside the driver."""
        return max(self.workers) + self.driver


def work_of(client, problem):
    """Return what is `Spent` on a pass and on a lambda, and the solution there."""
    metrics = ((1 + 0.01 * i) * 0.01 * np.eye(problem.n_features) for i in range(100))  # what was asked last is known
    a_pass = spent_on(client, lambda: problem.value(next(metrics), 1.0), 5)
    lam, found = 0.01 * problem.lambda_max(), []
    a_lambda = spent_on(client, lambda: found.append(ts.solve(problem, lam, tol=1e-4)))
    return a_pass, a_lambda, found[-1]


def speed(n, k, shards, folder):
    """Print what workers gain; return seconds of a pass with one worker, and the pairs."""
    X, y = points_of(n)
    rows, loads = [], [os.getloadavg()[0]]
    for workers in (1, 2):
        with cluster_of(workers) as client:
            problem = ts.distributed.problem(client, X, y, k=k, n_shards=shards, folder=folder)
            rows.append((workers, problem.n_shards, *work_of(client, problem)))
            pairs = problem.triplets.n_pairs
        loads.append(os.getloadavg()[0])
    print(f"\n{pairs:,} pairs; load of the machine, ours included: {', '.join(f'{load:.1f}' for load in loads)}")
    print("\n| what | workers | shards | ms | workers' processor ms | driver's | of it its main thread | share |")
    print("|:--|--:|--:|--:|--:|--:|--:|--:|")
    for workers, count, a_pass, a_lambda, _ in rows:
        print(f"| a pass | {workers} | {count} | {a_pass.row()} |")
        print(f"| a lambda | {workers} | {count} | {a_lambda.row()} |")
    same = np.array_equal(rows[0][-1].M, rows[1][-1].M)
    for name, place in (("a pass", 2), ("a lambda", 3)):
        one, two = rows[0][place], rows[1][place]
        print(
            f"{name}, two workers: {one.wall / two.wall:.2f} times as fast by the wall; derived from processor "
            f"seconds, for a machine with nothing else to do, {one.alone() / two.alone():.2f} times"
        )
    print(f"a shard: {1e3 * rows[0][2].workers[0] / rows[0][1]:.0f} ms of a processor a pass; the same bits: {same}")
    return rows[0][2].alone(), pairs


def model(costs, a_pass, pairs, k=5, dim=32):
    """Print what a pass would take on clusters that are not here, and what limits it."""
    # A round costs so much for itself, and so much for every shard: two numbers, by least squares.
    known = np.array([(1.0, shards, costs[dim, shards]) for shards in SHARDS])
    (base, each), *_ = np.linalg.lstsq(known[:, :2], known[:, 2], rcond=None)
    base, each, a_pair = max(base, 0.0), max(each, 0.0), a_pass / pairs
    print(
        f"\nmodel, d = {dim}: {1e3 * base:.1f} ms a round, {1e3 * each:.2f} ms a shard, {1e9 * a_pair:.1f} ns a pair\n"
    )
    print(
        "| n | pairs | "
        + " | ".join(f"{w} workers" for w in (4, 16, 64))
        + " | limited by |\n|--:|--:|--:|--:|--:|:--|"
    )
    for n in (10**6, 10**7, 10**8):
        count = 2 * k * n
        row, by = [], ""
        for workers in (4, 16, 64):
            shards = min(256, max(1, 2 ** round(np.log2(max(1, count / 2**20)))))
            work, rest = a_pair * count / min(workers, shards), base + each * shards
            row.append(f"{1e3 * (work + rest):.0f} ms")
            by = "the round, and the driver's sums" if rest > work else "the pairs"
        print(f"| {n:.0e} | {count:.0e} | {' | '.join(row)} | {by} (64 workers) |")


def large(n, k, workers, tol, folder):
    """From files to a certified solution."""
    X, y = points_of(n)
    begin = time.perf_counter()
    with cluster_of(workers, memory="6GB") as client:
        problem = ts.distributed.problem(client, X, y, k=k, folder=folder, patience=600.0)
        made = time.perf_counter() - begin
        print(f"{problem}: {made:.0f} s to make, neighbours included", flush=True)
        lam = 0.01 * problem.lambda_max()
        sol = ts.solve(problem, lam, tol=tol)
        memory = sum(client.run(_peak).values()) + _peak()
        spent = ", ".join(f"{seconds:.0f}" for seconds in client.run(time.process_time).values())
        print(
            f"lam {lam:.4g}: relative gap {sol.rel_gap:.2g} (rounding {sol.rounding / sol.scale:.1g}) after "
            f"{sol.n_iter} iterations, {sol.passes:.0f} passes, {sol.seconds:.0f} s; "
            f"{time.perf_counter() - begin:.0f} s in all, {memory / 1e9:.1f} GB at most in {workers} workers and the "
            f"driver; processor seconds: workers {spent}, driver {time.process_time():.0f}"
        )


def every_triplet(workers, folder):
    """All triplets of mnist's 60,000 points: one certified evaluation."""
    data = Path(os.environ.get("TRISCREEN_DATA", "")) / "mnist.npz"
    if not data.exists():
        print("mnist.npz not found: skipped")
        return
    with np.load(data) as arrays:
        X, y = arrays["X"][:60_000].astype(np.float64), arrays["y"][:60_000]
    X = X - X.mean(axis=0)
    axes = np.linalg.eigh(X.T @ X)[1][:, ::-1][:, :32]
    X = X @ axes / np.sqrt(np.square(X).sum(axis=1).mean())
    with cluster_of(workers, memory="6GB") as client:
        begin = time.perf_counter()
        problem = ts.distributed.problem(client, X, y, "all", folder=folder, patience=600.0)
        print(f"{problem}: {time.perf_counter() - begin:.0f} s to make", flush=True)
        begin = time.perf_counter()
        M = np.eye(32)
        proof = problem.certificate(M, 1e12)
        print(f"one evaluation: primal {proof.primal:.6g}, gap {proof.gap:.4g} (rounding {proof.rounding:.2g}), "
              f"{time.perf_counter() - begin:.0f} s")  # fmt: skip


def _peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["round", "speed", "model"])
    parser.add_argument("--points", type=float, default=200_000)
    parser.add_argument("--neighbours", type=int, default=5)
    parser.add_argument("--shards", type=int, default=None)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--folder", default=None)
    given = parser.parse_args()
    n, k = int(given.points), given.neighbours
    costs = None
    if {"round", "model"} & set(given.parts):
        with cluster_of(given.workers) as client:
            costs = rounds(client)
    if {"speed", "model"} & set(given.parts):
        a_pass, pairs = speed(n, k, given.shards, given.folder)
    if "model" in given.parts:
        model(costs, a_pass, pairs, k)
    if "large" in given.parts:
        large(n, k, given.workers, given.tol, given.folder)
    if "all" in given.parts:
        every_triplet(given.workers, given.folder)


if __name__ == "__main__":
    main()
