"""The nightly attack: screening, tubes, ranges, sets never listed or in shards, balls, predictions, proofs; by seeds.

    python tests/night.py HOURS [FOLDER [KIND ...]]   as long as it is given, on all cores; folder: build/night;
                                                      kinds: screening, never_listed, shards, selection, proofs,
                                                      by default all
    python tests/night.py again FILE                  what went wrong, once more

Every night goes on with seeds that no night before has tried. What was done is added up in FOLDER/counts.json. The
first decision that is wrong ends it, with a file that reproduces it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from itertools import count
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
TESTS = Path(__file__).parent
sys.path[:0] = [str(TESTS / name) for name in ("", "screening", "selection", "verification", "distributed")]

SAVED = 60.0  # seconds between two looks at the counts on the disk
_PROBES = 3000  # of every sphere


def screening(seed, counts):
    """Spheres, rules, ranges, tubes and probes over nearest neighbours and given triplets."""
    import probes
    from safety import sweep

    probes.MANY = _PROBES
    counts.update(sweep([seed]))


def never_listed(seed, counts):
    """Pairs that leave sets of all triplets."""
    from safety import sweep_all

    counts.update(sweep_all([seed]))


def shards(seed, counts):
    """What leaves problems in shards."""
    from attack_shards import sweep_shards

    counts.update(sweep_shards([seed]))


def selection(seed, counts):
    """Balls, comparisons and predictions between the lambdas of a path."""
    from attack_bounds import attack

    attack(seed, counts)


def proofs(seed, counts):
    """Claimed gaps beside rigorous ones."""
    from claims import compare

    compare(seed, counts)


KINDS = {kind.__name__: kind for kind in (screening, never_listed, shards, selection, proofs)}


def attempt(kind, seed):
    """Return (what one seed came to, seconds of the processor)."""
    begin, counts = time.process_time(), Counter()
    KINDS[kind](seed, counts)
    return counts, time.process_time() - begin


def is_wrong(counts):
    """Is any of it wrong?"""
    return any(name.startswith("wrong") and number for name, number in counts.items())


class Book:
    """What all nights have done, in a file."""

    def __init__(self, folder):
        self.file = Path(folder) / "counts.json"
        self.file.parent.mkdir(parents=True, exist_ok=True)
        known = json.loads(self.file.read_text()) if self.file.exists() else {"next": 0, "seconds": 0.0, "kinds": {}}
        self.next, self.seconds = known["next"], known["seconds"]
        self.kinds = {name: Counter(known["kinds"].get(name, {})) for name in KINDS}

    def add(self, kind, counts, seconds):
        """Add what one seed came to."""
        plain = {name: number for name, number in counts.items() if ":" not in name}
        self.kinds[kind].update(plain)
        self.kinds[kind]["processor seconds"] += seconds

    def save(self, seconds):
        """Write it, whole or not at all; seconds: since it was last written."""
        self.seconds += seconds
        told = {"next": self.next, "seconds": round(self.seconds, 1), "kinds": {}}
        for kind, counts in self.kinds.items():
            told["kinds"][kind] = {name: round(number, 1) for name, number in sorted(counts.items())}
        part = self.file.with_suffix(".tmp")
        part.write_text(json.dumps(told, indent=1) + "\n")
        os.replace(part, self.file)

    def __str__(self):
        lines = []
        for kind, counts in self.kinds.items():
            made = counts["decisions"] + counts["probes"] + counts["predictions"]
            rate = made / max(counts["processor seconds"], 1e-9)
            shown = {name: f"{number:,.0f}" for name, number in sorted(counts.items())}
            lines.append(f"{kind}: {shown}, {rate:,.0f} decisions a second")
        return "\n".join(lines)


def night(hours, folder="build/night", workers=None, kinds=()):
    """Attack for so many hours; return the file of what went wrong, or None."""
    for kind in kinds:
        if kind not in KINDS:
            raise SystemExit(f"kind {kind!r} is none of {', '.join(KINDS)}")
    book, begin = Book(folder), time.time()
    last, waiting = begin, {}
    seeds = count(book.next)
    with ProcessPoolExecutor(workers or os.cpu_count()) as pool:

        def more():
            while len(waiting) < 4 * (workers or os.cpu_count()) and time.time() - begin < 3600 * hours:
                seed = next(seeds)
                waiting.update({pool.submit(attempt, kind, seed): (kind, seed) for kind in kinds or KINDS})

        more()
        while waiting:
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                kind, seed = waiting.pop(future)
                counts, seconds = _result(future)
                book.add(kind, counts, seconds)
                book.next = max(book.next, seed + 1)
                if is_wrong(counts):
                    pool.shutdown(wait=False, cancel_futures=True)
                    book.save(time.time() - last)
                    return _keep(folder, kind, seed, counts)
            more()
            if time.time() - last > SAVED or not waiting:
                book.save(time.time() - last)
                last = time.time()
                print(f"{time.time() - begin:7.0f} s, seeds up to {book.next}\n{book}", flush=True)
    return None


def _result(future):
    """Return what an attempt came to; one that fails with an error is wrong, too."""
    try:
        return future.result()
    except Exception as err:
        return Counter({"wrong": 1, f"wrong: {type(err).__name__}: {err}": 1}), 0.0


def _keep(folder, kind, seed, counts):
    file = Path(folder) / f"wrong-{kind}-{seed}.json"
    wrong = {name: number for name, number in counts.items() if name.startswith("wrong")}
    file.write_text(json.dumps({"kind": kind, "seed": seed, "wrong": wrong}, indent=1) + "\n")
    return file


def again(file):
    """Attempt once more what went wrong; return what it came to."""
    told = json.loads(Path(file).read_text())
    return attempt(told["kind"], told["seed"])[0]


def main(*words):
    """Attack, or reproduce; return the exit code."""
    if words and words[0] == "again":
        counts = again(words[1])
        print(dict(counts))
        return 1 if is_wrong(counts) else 0
    hours = float(words[0]) if words else 1.0
    file = night(hours, *words[1:2], kinds=words[2:])
    if file is not None:
        print(f"WRONG: {file.read_text()}python tests/night.py again {file}")
    return 0 if file is None else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
