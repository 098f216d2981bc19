"""The search for neighbours next to scikit-learn's and faiss's, in turns, each in its own process, on all cores."""

from __future__ import annotations

import importlib.util
import time

from benchmarks import datasets, neighbours

METHODS = ("triscreen", "sklearn", "faiss")


def measure(context, n, d, k, data="synthetic", rounds=5, methods=METHODS, most=10.0):
    """Return the seconds of every round, and of all threads; no more rounds begin after ``most`` seconds."""
    if data != "synthetic":
        datasets.raw(data, context.folder, context.fetch)  # or say that it is missing
    there = [method for method in methods if method == "triscreen" or importlib.util.find_spec(method)]
    found = {method: {"seconds": [], "processor": []} for method in there}
    workers = [neighbours.Worker(method, neighbours.ROOT / "src") for method in there]
    try:
        until = time.perf_counter() + most
        for _ in range(rounds):
            for worker in workers:
                seconds, processor, _, count = worker.ask((data, n, d, k))
                found[worker.method]["seconds"].append(seconds)
                found[worker.method]["processor"].append(processor)
            if time.perf_counter() > until:
                break
    finally:
        for worker in workers:
            worker.close()
    return {"cut": False, "n": count, "d": d, "k": k, "methods": found}
