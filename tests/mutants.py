"""Mutation testing of the safety core: is every small change that makes it wrong found by a test?

    python tests/mutants.py [--workers N] [words]     modules whose name has one of the words; all of them without
    python tests/mutants.py --tell                    what is known, from build/mutants/*.json

Everything runs uncompiled, so that a mutant is nothing but another code object for a function that is there already:
modules are loaded and tests collected once, and each mutant is a fork of that process which runs the tests that call
the changed function, quick ones first, until one fails or takes too long. Results are kept in build/mutants, one file a
module; a run that was stopped goes on, and survivors meet the tests that are new or changed. Survivors that matter are
defects of the tests; the others are listed with reasons in docs/reliability.md: one that is not ends the run with 1.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import random
import re
import sys
import time
from collections import Counter
from pathlib import Path

os.environ["NUMBA_DISABLE_JIT"] = "1"
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
TESTS = Path(__file__).parent
SOURCE, KEPT, LISTED = (
    TESTS.parent / "src/triscreen",
    TESTS.parent / "build/mutants",
    TESTS.parent / "docs/reliability.md",
)
sys.path[:0] = [str(TESTS.parent / "src"), str(TESTS)]

from mutating import mutants  # noqa: E402
from uncompiled import SLOW, Core, Suite, in_parallel, save  # noqa: E402

# The core, and of the kernels those that decide.
CORE = {
    "screening/spheres": None, "screening/rules": None, "screening/ranges": None, "screening/fixing": None,
    "screening/working_set": None, "screening/by_triplet": None, "screening/by_pair": None, "problem/rounding": None,
    "path/balls": None, "path/joint": None, "_utils/archive": None, "_utils/checkpoint": None, "_kernels/weights": None,
    "_kernels/norms": None, "_kernels/listed": ("sphere_list", "undecided_list", "corner_list", "off_zone_list"),
    "_kernels/blocks": ("sphere_blocks", "_stays", "undecided_blocks", "corner_blocks"),
    "_kernels/ordered": ("decide_ordered",), "_kernels/rules": None, "verification/regions": None,
    "selection/judge": None, "selection/bounds": None, "selection/sides": None, "selection/stretches": None,
    "selection/votes": None, "path/chain": None, "_kernels/certain": None,
}  # fmt: skip
# The safety suite: of these files the tests that take no longer than SLOW uncompiled.
SUITE = (
    "screening/test_safe_radii.py", "screening/test_theorems.py", "screening/test_rules.py", "screening/test_ranges.py",
    "screening/test_fixing.py", "_kernels/test_rule_bounds.py", "path/test_ball_terms.py", "_kernels/test_certain.py",
    "_kernels/test_certain_votes.py", "selection/test_stretches.py", "screening/test_working_set.py",
    "screening/test_proofs.py", "screening/test_cone_distance.py", "screening/test_pairs.py",
    "problem/test_rounding.py", "path/test_balls.py", "path/test_joint.py", "path/test_joint_rounding.py",
    "path/test_checkpoints.py", "_utils/test_archive.py", "_utils/test_checkpoint.py", "selection/test_bounds.py",
    "verification/test_regions.py", "screening/test_safety.py", "screening/test_on_off.py",
    "_kernels/test_blocks.py", "selection/test_scores.py",
    "selection/test_sides.py", "selection/test_descent.py", "selection/test_judge.py", "screening/test_screener.py",
    "estimators/test_classifier.py", "_kernels/test_rule_terms.py", "path/test_ball_rounding.py",
    "screening/test_rule_inputs.py", "_kernels/test_grains.py", "_utils/test_odd_files.py",
    "selection/test_votes.py", "screening/test_stays.py",
)  # fmt: skip
_TOGETHER = 8.0  # seconds of the processor: the tests of one mutant


class Book:
    """What is known of the mutants of one module, in a file."""

    def __init__(self, module, source, tests, changed):
        self.file = KEPT / f"{module.strip('_').replace('/', '-')}.json"
        self.tests, self.changed, self.hash = tests, changed, hashlib.sha256(source.encode()).hexdigest()[:16]
        known = json.loads(self.file.read_text()) if self.file.exists() else {}
        self.known = known.get("mutants", {}) if known.get("source") == self.hash else {}

    def to_meet(self, mutant, names):
        """Return those of some tests that a mutant has not met yet; None: nothing is left to try."""
        told = self.known.get(mutant.name)
        if told is None:
            return names
        if told["end"] != "survived" or told["tests"] == self.tests:
            return None
        new = self.changed(told["tests"])
        left = [name for name in names if name in new]
        if not left:
            told["tests"] = self.tests
        return left or None

    def end(self, mutant):
        """Return how it ended, or None."""
        return self.known.get(mutant.name, {}).get("end")

    def add(self, mutant, end, by, took):
        """Keep the end of a mutant."""
        self.known[mutant.name] = {"end": end, "by": by, "line": mutant.line, "seconds": took, "tests": self.tests}

    def save(self):
        """Write it, whole or not at all."""
        save(self.file, {"source": self.hash, "mutants": self.known})


def _hash(*names):
    """Return a hash of files of the suite."""
    return hashlib.sha256(b"".join((TESTS / name).read_bytes() for name in names)).hexdigest()[:16]


def run(suite, words, workers, seed=0, sample=None, minutes=240.0):
    """Measure the tests, then try every mutant."""
    until = time.time() + 60 * minutes
    core = Core({module: SOURCE / f"{module}.py" for module in CORE})
    chosen = _measured(suite, core, workers, until - 30 * minutes)  # no more than half of the time
    total = sum(took for took, _ in chosen.values())
    print(f"the safety suite: {len(chosen)} of {len(suite.items)} tests, {total:.1f} s uncompiled", flush=True)
    Tasks(suite, core, chosen).run(words, workers, seed, sample, until)


def _measured(suite, core, workers, until):
    """Return {test: (seconds, what it runs)} of those that are quick; what was measured before is kept in a file.

    Those are measured again that have changed, or of whose modules one has; of slow ones nobody knows these.
    """
    file, hashes = KEPT / "suite.json", {name: _hash(name) for name in SUITE}
    sources = {module: hashlib.sha256(text.encode()).hexdigest()[:16] for module, text in core.source.items()}
    known = json.loads(file.read_text()) if file.exists() else {}
    known = {
        key: told for key, told in known.items()
        if told["file"] == hashes.get(_file_of(key)) and told["core"].items() <= sources.items()
    }  # fmt: skip
    new = [name for name in suite.items if name not in known]
    print(f"{len(suite.items)} tests, {len(new)} of them new", flush=True)
    last = [time.time()]

    def done(name, answer, _):
        took, lines = answer or (None, {})
        core = {module: sources[module] for module in sources if lines.get(module) or took is None}
        known[name] = {"file": hashes[_file_of(name)], "core": core, "seconds": took, "lines": lines}
        if time.time() - last[0] > 20:
            save(file, known)
            last[0] = time.time()

    def tasks():
        for name in new:
            if time.time() < until:
                yield name, lambda name=name: suite.measure(name, core)

    core.watched()
    in_parallel(tasks(), workers, done)
    save(file, known)
    found = {name: (known[name]["seconds"], known[name]["lines"]) for name in suite.items if name in known}
    return {name: told for name, told in found.items() if told[0] is not None and told[0] <= SLOW}


def _file_of(test):
    return test.partition("::")[0].removeprefix("tests/")


def _suites(chosen):
    """Return (a name of this suite, function that gives the tests that are not in an earlier one of some name)."""
    file = KEPT / "suites.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    hashes = {name: _hash(name) for name in SUITE}
    now = sorted(f"{hashes[_file_of(name)]} {name}" for name in chosen)
    key = hashlib.sha256("\n".join(now).encode()).hexdigest()[:16]
    save(file, {**known, key: now})

    @functools.cache
    def changed(earlier):
        return {told.partition(" ")[2] for told in set(now) - set(known.get(earlier, ()))}

    return key, changed


class Tasks:
    """Mutants to try, in a random order."""

    def __init__(self, suite, core, chosen):
        self.suite, self.core = suite, core
        self.tests, changed = _suites(chosen)
        self.seconds = {name: took for name, (took, _) in chosen.items()}
        self.runs, self.killers = {}, {}
        for name, (_, lines) in chosen.items():
            for module in lines:
                for line in lines[module]:
                    self.runs.setdefault((module, line), []).append(name)
        self.books = {module: Book(module, source, self.tests, changed) for module, source in core.source.items()}
        for module, book in self.books.items():
            for name, told in book.known.items():
                self._remember(module, name.partition(":")[0], told["by"])

    def run(self, words, workers, seed, sample, until):
        """Try those of modules with such names, the first ones (sample) of their order by seed, until then."""
        every = [
            (mutant, make) for module, only in CORE.items() if not words or any(word in module for word in words)
            for mutant, make in mutants(module, self.core.source[module])
            if only is None or mutant.function.split(".")[0] in only
        ]  # fmt: skip
        random.Random(seed).shuffle(every)
        chosen = every[:sample]
        print(f"{len(every):,} mutants, {len(chosen):,} of them to be tried", flush=True)
        last = [time.time()]

        def done(mutant, answer, status):
            end, by, took = answer or ("killed", f"time or memory ({status})", None)
            self.books[mutant.file].add(mutant, end, by, took)
            self._remember(mutant.file, mutant.function, by)
            if time.time() - last[0] > 20:
                self._save()
                last[0] = time.time()

        in_parallel(self._left(chosen, until), workers, done)
        self._save()
        if not words:
            self._tell_sample(chosen, seed, sample)

    def _remember(self, module, function, by):
        if by in self.seconds:
            self.killers.setdefault((module, function), Counter())[by] += 1

    def _tell_sample(self, chosen, seed, sample):
        ends = Counter(self.books[mutant.file].end(mutant) for mutant, _ in chosen)
        known = ends["killed"] + ends["survived"]
        print(f"of this sample (seed {seed}, {sample}): {dict(ends)}, {ends['killed'] / max(1, known):.1%} killed")

    def _save(self):
        for book in self.books.values():
            book.save()

    def _left(self, chosen, until):
        for mutant, make in chosen:
            if time.time() > until:
                print("out of time: the same command goes on", flush=True)
                return
            names = self.books[mutant.file].to_meet(mutant, self._in_order(mutant))
            if names is not None:
                yield mutant, lambda mutant=mutant, make=make, names=names: self.attempt(mutant, make, names)

    def attempt(self, mutant, make, names):
        """Return (how a mutant ended, the test that failed, seconds); names: tests that it has not met, in order."""
        begin = time.process_time()
        try:
            if not self.core.put(mutant, make()):
                return "no program", None, 0.0
        except SyntaxError:
            return "no program", None, 0.0
        met, left = [], _TOGETHER
        for name in names:
            if self.seconds[name] < left:
                met.append(name)
                left -= self.seconds[name]
        found = self.suite.fails(met, lambda name: 3.0 + 10 * self.seconds[name])
        took = round(time.process_time() - begin, 2)
        return ("killed", found, took) if found else ("survived", f"{len(met)} tests", took)

    def _in_order(self, mutant):
        """Give tests that run the changed statement: those that found others, then one of each kind, quick first."""
        names = sorted(self.runs.get((mutant.file, self.core.statement(mutant)), []), key=self.seconds.get)
        killed = self.killers.get((mutant.file, mutant.function), Counter())
        kinds, turn = Counter(), {}
        for name in names:
            kind = name.partition("[")[0]
            turn[name] = kinds[kind]
            kinds[kind] += 1
        return sorted(names, key=lambda name: (-killed[name], turn[name], self.seconds[name]))


def listed():
    """Return {(module, mutant): reason} of docs/reliability.md."""
    rows = re.findall(r"^\| `(\S+?)` \| `(.*?)` \| (.*?) \|$", LISTED.read_text() if LISTED.exists() else "", re.M)
    return {(module, name.replace("\\|", "|")): reason for module, name, reason in rows}


def tell():
    """Say what is known; return how many survivors have no reason."""
    ends, reasons, unexplained = Counter(), listed(), []
    for module in CORE:
        file = KEPT / f"{module.strip('_').replace('/', '-')}.json"
        known = json.loads(file.read_text())["mutants"] if file.exists() else {}
        own = Counter(told["end"] for told in known.values())
        ends.update(own)
        print(f"{module:25} {own['killed']:5} killed {own['survived']:5} left")
        unexplained += [
            (module, name) for name, told in known.items()
            if told["end"] == "survived" and (module, name) not in reasons
        ]  # fmt: skip
    for module, name in unexplained:
        print(f"| `{module}` | `{name}` |")
    share = ends["killed"] / max(1, ends["killed"] + ends["survived"])
    print(
        f"{ends['killed']:,} killed ({share:.1%}), {ends['survived']:,} left; {len(unexplained):,} of them unexplained"
    )
    return len(unexplained)


def main():
    """Try the mutants; return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=0, help="of the order in which they are tried")
    parser.add_argument("--sample", type=int, help="so many of them only; all without")
    parser.add_argument("--minutes", type=float, default=230.0, help="no new one after so long")
    parser.add_argument("--tell", action="store_true")
    given = parser.parse_args()
    if not given.tell:
        import pytest

        suite = Suite()
        suite.work = lambda suite: run(suite, given.words, given.workers, given.seed, given.sample, given.minutes)
        files = [str(TESTS / name) for name in SUITE]
        options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-s", "-W", "ignore::DeprecationWarning"]
        pytest.main([*options, *files], plugins=[suite])
    return 1 if tell() else 0


if __name__ == "__main__":
    sys.exit(main())
