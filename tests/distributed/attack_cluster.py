"""Harm the workers of a cluster, at any moment, while paths are computed: no hang, no wrong bit.

    python tests/distributed/attack_cluster.py 100 [seed]

Workers are killed, stopped for a while, retired and restarted, up to all of them at once, so many times in all. Every
path must end with the bits of the shards in one process. The last line tells what was done and what it cost.
"""

from __future__ import annotations

import faulthandler
import logging
import random
import sys
import threading
import time

from clusters import CONTINUE, KILL, STOP, cluster_of, harm, pids, same_bits, scale_to
from kinds import labelled

import triscreen as ts

_HANG = 180.0  # seconds that a path may take at most
_COMES_UP = 40.0  # and workers to come up, on a busy machine


class Attacker(threading.Thread):
    """Does harm at random moments until it is told to stop."""

    def __init__(self, client, cluster, count, seed):
        super().__init__(daemon=True)
        self.client, self.cluster, self.count = client, cluster, count
        self.random, self.done, self.over = random.Random(seed), [], threading.Event()

    def run(self):
        """Wait, harm, and so on."""
        ways = [self.kill] * 6 + [self.stop] * 3 + [self.retire, self.restart, self.kill_all]
        while len(self.done) < self.count and not self.over.wait(self.random.uniform(0.1, 1.5)):
            way = self.random.choice(ways)
            try:
                if way():
                    self.done.append(way.__name__)
            except Exception as err:  # the cluster is busy with the last one
                logging.debug("%s: %r", way.__name__, err)

    def _numbers(self):
        return sorted(pids(self.client).values())

    def kill(self):
        """One worker, at once."""
        numbers = self._numbers()
        return bool(numbers) and harm(self.random.choice(numbers), KILL)

    def kill_all(self):
        """All workers, at once."""
        return sum([harm(number, KILL) for number in self._numbers()]) > 0

    def stop(self):
        """One worker, for a while."""
        numbers = self._numbers()
        if not numbers:
            return False
        number = self.random.choice(numbers)
        stopped = harm(number, STOP)
        self.over.wait(self.random.uniform(0.1, 5.0))
        harm(number, CONTINUE)
        return stopped

    def retire(self):
        """One worker, politely; another one comes."""
        workers = sorted(self.client.nthreads())
        if len(workers) < 2:
            return False
        self.client.retire_workers([self.random.choice(workers)])
        self.cluster.scale(2)
        self.cluster.scale(3)
        return True

    def restart(self):
        """All of them, by Dask."""
        self.client.restart(timeout=30, wait_for_workers=False)
        return True


class Keeper(threading.Thread):
    """Starts workers where there have been none for a while: nannies that are hit at the wrong moment give up.

    A local cluster closes a nanny whose worker is not back in time (``lost-worker-timeout``), and starts no other.
    Those that are started here have time to come up before anybody thinks of starting others in their place.
    """

    def __init__(self, client, cluster):
        super().__init__(daemon=True)
        self.client, self.cluster, self.over, self.times = client, cluster, threading.Event(), 0

    def run(self):
        """Look, and start some."""
        since, started = None, 0.0
        while not self.over.wait(1.0):
            try:
                if self.client.nthreads():
                    since = None
                    continue
            except Exception as err:  # in the middle of a restart
                logging.debug("keeper: %r", err)
                continue
            now = time.monotonic()
            since = since or now
            if now - since > 10.0 and now - started > _COMES_UP:
                self.cluster.scale(0)
                time.sleep(1.0)  # otherwise those that are gone keep their names, and nobody is started for these
                self.cluster.scale(3)
                self.times, started = self.times + 1, now


def main(count=100, seed=0):
    """Run paths under attack; return how many harms were done."""
    X, y = labelled(n=300)

    def made(client):
        return ts.distributed.problem(client, X, y, k=5, n_shards=6, patience=1.5, waiting=60.0)

    def walked(problem):
        return ts.solve_path(problem, ratio=0.85, n_lambdas=15)

    reference, done, paths = walked(made(None)), [], 0
    begin = time.monotonic()
    while len(done) < count:
        with cluster_of(3) as (client, cluster):
            scale_to(client, cluster, 3)
            problem = made(client)
            first = time.monotonic()
            same_bits(walked(problem), reference)
            calm = time.monotonic() - first
            attacker = Attacker(client, cluster, min(20, count - len(done)), seed + len(done))
            keeper = Keeper(client, cluster)
            attacker.start()
            keeper.start()
            while attacker.is_alive():
                faulthandler.dump_traceback_later(_HANG, exit=True)
                same_bits(walked(problem), reference)
                faulthandler.cancel_dump_traceback_later()
                paths += 1
            attacker.over.set()
            attacker.join()
            keeper.over.set()
            keeper.join()
            done += attacker.done
            print(f"{len(done)} of {count}: {paths} paths, {time.monotonic() - begin:.0f} s; a calm path {calm:.1f} s; "
                  f"new workers after 10 s without any {keeper.times} times", flush=True)  # fmt: skip
    print(f"{paths} paths under {len(done)} attacks ({', '.join(f'{done.count(w)} {w}' for w in sorted(set(done)))}): "
          f"the same bits, {time.monotonic() - begin:.0f} s")  # fmt: skip
    return len(done)


if __name__ == "__main__":
    logging.getLogger("distributed").setLevel(logging.CRITICAL + 1)
    main(*map(int, sys.argv[1:]))
