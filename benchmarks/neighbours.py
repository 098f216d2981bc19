"""The search for neighbours next to others: seconds, and nanoseconds x core a distance.

    python benchmarks/neighbours.py [--quick] [--big] [--old CHECKOUT] [--rounds 3] [--limit 120]

k = 10 nearest of the own class and of other classes: points of benchmarks/cells/scaling.py (5 Gaussian classes) with n
= 8,000 ... 256,000 and d = 10, 20, 80, and mnist's first 20,000 x 784. Methods take turns, each in a process of its
own, on all cores; the best of the rounds counts. "cpu" is the time of all threads: on a busy machine it says more than
seconds. A method that would take longer than the limit, by n^2 from its last size, is left out. sklearn:
NearestNeighbors (brute), class by class; faiss: IndexFlatL2, class by class, float32 only, so that its neighbours are
not exact; product: nothing but the float32 products of all points with all, in blocks. --old: another checkout of
triscreen. --big: covtype (581,012 x 54, k = 5), 1,000,000 x 32 and 1,000,000 x 5, once, triscreen alone.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # run as a script

from benchmarks.cells.scaling import peak_megabytes  # noqa: E402
from benchmarks.datasets import Missing, raw, scaled, synthetic  # noqa: E402

SIZES, DIMENSIONS = (8_000, 16_000, 32_000, 64_000, 128_000, 256_000), (10, 20, 80)
BIG = (("covtype", None, 54, 5), ("synthetic", 1_000_000, 32, 10), ("synthetic", 1_000_000, 5, 10))


def points(name, n, d):
    if name == "synthetic":
        return synthetic(n, d)
    X, y = raw(name)
    X = np.asarray(X[:n], dtype=np.float64)
    return scaled(X) if name == "covtype" else X, np.unique(y[:n], return_inverse=True)[1]


# -- methods: (X, codes, k) -> the neighbours of the own class of the first points, to compare ------------------------


def triscreen(X, codes, k):
    from triscreen._utils.threads import Threads
    from triscreen.triplets.knn import nearest

    return nearest(X, codes, k, Threads())[0]


def by_class(codes, find):
    """find(points, asking, k) -> numbers among the points; of the own class the first one is the point itself."""
    first = None
    for c in range(codes.max() + 1):
        own, others = np.flatnonzero(codes == c), np.flatnonzero(codes != c)
        near = own[find(own, own, 1)]
        others[find(others, own, 0)]
        if first is None:
            first = np.full((len(codes), near.shape[1]), -1)
        first[own] = near
    return first[:, 1:]


def sklearn(X, codes, k):
    from sklearn.neighbors import NearestNeighbors

    def find(among, asking, more):
        search = NearestNeighbors(n_neighbors=k + more, algorithm="brute", n_jobs=-1).fit(X[among])
        return search.kneighbors(X[asking], return_distance=False)

    return by_class(codes, find)


def faiss(X, codes, k):
    import faiss

    X = X.astype(np.float32)

    def find(among, asking, more):
        index = faiss.IndexFlatL2(X.shape[1])
        index.add(X[among])
        return index.search(X[asking], k + more)[1]

    return by_class(codes, find)


def product(X, codes, k):
    X = X.astype(np.float32)
    block, step = np.empty((2048, 4096), np.float32), len(X)
    for start in range(0, step, 2048):
        for other in range(0, step, 4096):
            rows, columns = X[start : start + 2048], X[other : other + 4096]
            np.matmul(rows, columns.T, out=block[: len(rows), : len(columns)])


METHODS = {"triscreen": triscreen, "old": triscreen, "sklearn": sklearn, "faiss": faiss, "product": product}


def work(method):
    """Answer requests, a line of JSON each, with seconds, time of all threads and peak memory."""
    made = None
    for line in sys.stdin:
        name, n, d, k = request = json.loads(line)
        if request != made:
            X, y = points(name, n, d)
            made = request
            METHODS[method](
                *((X[:400], y[:400]) if method != "triscreen" else (X[:3000], y[:3000])), 2
            )  # loads kernels
        peak_megabytes(anew=True)
        begin, cpu = time.perf_counter(), time.process_time()
        METHODS[method](X, y, k)
        answer = time.perf_counter() - begin, time.process_time() - cpu, peak_megabytes(), len(X)
        print(json.dumps(answer), flush=True)


class Worker:
    """A process for one method."""

    def __init__(self, method, source):
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(ROOT)])}
        command = [sys.executable, __file__, "--worker", method]
        self.method = method
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, request):
        """Return its answer."""
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.method} ended")
        return json.loads(answer)

    def close(self):
        """Let it end."""
        self.process.stdin.close()
        self.process.wait()


def compare(workers, request, rounds, spared=()):
    """Let methods take turns; return {method: best (seconds, cpu, megabytes, n)}."""
    best = {}
    for _ in range(rounds):
        for worker in workers:
            if worker.method not in spared:
                answer = worker.ask(request)
                best[worker.method] = min(best.get(worker.method, answer), answer)
    return best


def show(request, best, before):
    """Print a line a method: seconds, nanoseconds x core a distance, what others take, growth."""
    name, _, d, k = request
    own = best["triscreen"]
    for method, (seconds, cpu, megabytes, n) in best.items():
        growth = ""
        if method in before and before[method][3] != n:
            growth = f"{np.log(cpu / before[method][1]) / np.log(n / before[method][3]):.2f}"
        print(
            f"{name:10s} {n:9,d} x {d:<4d} k={k:<3d} {method:10s} {seconds:8.2f} s {cpu:8.2f} cpu "
            f"{cpu / n**2 * 1e9:7.3f} ns {seconds / own[0]:6.2f} x {cpu / own[1]:6.2f} x cpu {growth:>5s} "
            f"{megabytes:7.0f} MB",
            flush=True,
        )


def run(workers, requests, rounds, limit):
    before = {}
    for request in requests:
        n = request[1]
        late = [m for m, (s, _, _, size) in before.items() if m != "triscreen" and n and s * (n / size) ** 2 > limit]
        try:
            points(request[0], 10, request[2])
        except Missing as missing:
            print(f"{missing}: skipped")
            continue
        best = compare(workers, request, rounds, late)
        show(request, best, before)
        before = {**before, **best}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--worker", choices=METHODS, help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="two small sizes of 20 dimensions")
    parser.add_argument("--big", action="store_true", help="a million points")
    parser.add_argument("--old", type=Path, help="checkout to compare with")
    parser.add_argument("--only", nargs="+", choices=METHODS, help="methods")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--dimensions", nargs="+", type=int, default=DIMENSIONS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=120.0)
    args = parser.parse_args()
    if args.worker:
        work(args.worker)
        return
    methods = args.only or [m for m in METHODS if m != "old" or args.old]
    if "faiss" in methods:
        try:
            import faiss  # noqa: F401
        except ImportError:
            print("faiss is not installed: left out")
            methods.remove("faiss")
    if args.big:
        methods, series, rounds = ["triscreen"], [[request] for request in BIG], 1
    else:
        sizes, dimensions = ((4_000, 8_000), (20,)) if args.quick else (args.sizes, args.dimensions)
        series = [[("synthetic", n, d, 10) for n in sizes] for d in dimensions]
        series += [] if args.quick else [[("mnist", 20_000, 784, 10)]]
        rounds = args.rounds
    for requests in series:
        workers = [Worker(m, (args.old if m == "old" else ROOT) / "src") for m in methods]
        run(workers, requests, rounds, args.limit)
        for worker in workers:
            worker.close()


if __name__ == "__main__":
    main()
