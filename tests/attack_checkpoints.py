"""Attack checkpoints: kill their runs, damage their files, mix in files of others, edit them, fill the disk.

Whatever was done, the same call must end with exactly the bits of a run that nobody disturbed, or be refused by one
sentence (`InputError`) with the folder left byte for byte as it was. ``python tests/attack_checkpoints.py`` does it at
length (`make nightly`); the tests call it for a few seconds.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

import triscreen as ts
from attacks import (
    attack_files,
    damage,
    edit,
    fill_a_real_disk,
    fill_the_disk,
    forge,
    judge,
    kill,
    kill_between,
    limit_the_files,
    require,
)
from problems import make_case
from triscreen.path.api import AUTO
from triscreen.solvers.newton import Newton


class PathRun:
    """`solve_path`; stop: after so many lambdas, as if it had been killed there."""

    def __init__(self, problem, **arguments):
        self.problem, self.arguments = problem, arguments

    def __call__(self, folder, stop=None):
        """Run it, and return the bits of the result."""
        callback = None if stop is None else lambda state: state.n_lambdas == stop
        return bits_of(ts.solve_path(self.problem, **self.arguments, checkpoint=folder, callback=callback))


class CvRun:
    """`TripletMetricCV`; paths that come before the one that is refused may have gone on."""

    may_go_on = True

    def __init__(self, X, y, **arguments):
        self.X, self.y, self.arguments = X, y, arguments

    def __call__(self, folder, stop=None):
        """Run it, and return the bits of the result."""
        seen = []

        def callback(state):
            seen.append(state)
            if len(seen) == stop:
                raise Stopped

        model = ts.TripletMetricCV(**self.arguments, checkpoint=folder, callback=callback)
        try:
            model.fit(self.X, self.y)
        except Stopped:
            return None
        return [model.cv_scores_.tobytes(), model.components_.tobytes(), *bits_of(model.path_)]


class Stopped(Exception):
    """A run that somebody stopped."""


def bits_of(path):
    """Everything but seconds."""
    names = ("lambdas", "gaps", "primals", "duals", "losses", "passes", "n_iter", "screening_rates", "scanned")
    return [getattr(path, name).tobytes() for name in names] + [path.M(t).tobytes() for t in range(len(path))]


def targets():
    """Runs of every kind, by name."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(30, 3)) + np.arange(30)[:, None] % 3, np.arange(30) % 3
    every = {"n_lambdas": 9, "ratio": 0.8, "tol": 1e-5, "screening": AUTO}  # with tubes, small as it is
    return {
        "given": PathRun(make_case(7, n=20, m=90).problem, **every),
        "knn, hinge": PathRun(make_case(5, kind="knn", gamma=0.0).problem, **every),
        "all": PathRun(ts.Problem(X, ts.all_triplets(X, y), cone="diagonal", n_jobs=1), **every),
        "guarantee": PathRun(make_case(7, n=20, m=90).problem, guarantee=0.05, tol=1e-4, n_lambdas=12, screening=AUTO),
        "cv": CvRun(X, y, cv=2, ratios=3, n_neighbors=2, n_jobs=1, screening=AUTO),
        "cv, one start": CvRun(X, y, cv=2, ratios=2, n_neighbors=2, n_jobs=1, screening=AUTO, candidates=(None,)),
    }


def strangers(folder):
    """Folders of other runs: another gamma, other points, neighbours, tolerance, lambdas, cone, solver."""
    every = {"n_lambdas": 9, "ratio": 0.8, "tol": 1e-5, "screening": AUTO}  # with tubes, small as it is
    case = make_case(7, n=20, m=90)
    runs = {
        "gamma": PathRun(make_case(7, n=20, m=90, gamma=0.5).problem, **every),
        "points": PathRun(make_case(8, n=20, m=90).problem, **every),
        "scale": PathRun(make_case(7, n=20, m=90, scale=2.0).problem, **every),
        "weights": PathRun(make_case(7, n=20, m=90, weighted=True).problem, **every),
        "knn": PathRun(make_case(7, n=20, kind="knn").problem, **every),
        "cone": PathRun(make_case(7, n=20, m=90, cone="diagonal").problem, **every),
        "features": PathRun(make_case(7, n=20, d=4, m=90).problem, **every),
        "tol": PathRun(case.problem, **{**every, "tol": 2e-5}),
        "ratio": PathRun(case.problem, **{**every, "ratio": 0.81}),
        "start": PathRun(case.problem, **every, lambda_max=2 * case.problem.lambda_max()),
        "solver": PathRun(case.problem, **every, solver=Newton(first=2)),
        "guarantee": PathRun(case.problem, guarantee=0.1, tol=1e-5, n_lambdas=9, screening=AUTO),
    }
    for name, run in runs.items():
        run(folder / name)
    return [file for file in folder.rglob("*.tsc") if file.is_file()]


class CommandRun:
    """``triscreen path`` or ``fit`` as a process."""

    may_go_on = True

    def __init__(self, folder, *words):
        self.output, self.words = folder / f"{words[0]}.out", words
        self.data = folder / "points.csv"
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(60, 3)) + np.arange(60)[:, None] % 2, np.arange(60) % 2
        self.data.write_text("\n".join(",".join(map(str, [*row, label])) for row, label in zip(X, y, strict=True)))

    def command(self, folder):
        """The words of the command."""
        words = [self.words[0], str(self.data), "-o", str(self.output), *self.words[1:], "--checkpoint", str(folder)]
        return [sys.executable, "-m", "triscreen", *words, "--quiet"]

    def __call__(self, folder):
        """Run it, and return the bits of the result."""
        done = subprocess.run(self.command(folder), capture_output=True, text=True)
        if done.returncode == 2:
            lines = done.stderr.splitlines()
            assert len(lines) == 1, done.stderr
            raise ts.InputError(lines[0])
        assert done.returncode == 0, done.stderr
        found = ts.load(self.output)
        return bits_of(found) if self.words[0] == "path" else [found[1].components_.tobytes()]

    def killed(self, folder, seconds):
        """Run it for so long only."""
        process = subprocess.Popen(self.command(folder), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        time.sleep(seconds)
        process.kill()
        return process.wait() == -signal.SIGKILL


def attack_commands(folder, chance, kills, damages):
    """Kill and damage runs of the command line."""
    outcomes = Counter()
    for words in (("path", "--ratio", "0.95", "--n-lambdas", "60", "-k", "4"), ("fit", "--cv", "3", "-k", "3")):
        run, kept = CommandRun(folder, *words), folder / f"{words[0]}.kept"
        whole = run(kept)
        for _ in range(kills):
            copy = folder / f"{words[0]}.killed"
            outcomes["killed"] += run.killed(copy, chance.uniform(1.0, 4.0))
            outcomes[judge(run, copy, whole)] += 1
            shutil.rmtree(copy, ignore_errors=True)
        for number in range(damages):
            copy = folder / f"{words[0]}.damaged"
            shutil.copytree(kept, copy)
            if number % 2:
                damage(copy, chance)
            else:
                edit(chance.choice([*copy.rglob("*.tsc")]), chance)
            outcomes["damaged or edited"] += 1
            outcomes[judge(run, copy, whole)] += 1
            shutil.rmtree(copy)
    return outcomes


def attack(folder, *, names, kills, between, rounds, forged, commands, seed=0):
    """Do all of it to the runs of these names; yield (attack, Counter of outcomes)."""
    chance, folder = random.Random(seed), Path(folder)
    foreign = strangers(folder / "strangers")
    for name in names:
        run = targets()[name]
        place = folder / name
        place.mkdir()
        whole = run(place / "whole")
        require(run(place / "whole") == whole, "not the same bits")
        yield f"kills of {name}", kill(run, place / "killed", whole, chance, kills)
        if between:
            yield f"kills between two calls, {name}", kill_between(run, place / "between", whole, between)
            yield f"no room, {name}", fill_the_disk(run, place / "full", whole, between)
        for attacked, outcomes in attack_files(place, chance, rounds, run, whole, foreign).items():
            yield f"{attacked}, {name}", outcomes
    run = targets()["given"]
    whole = run(folder / "given" / "whole")
    yield "ended by SIGTERM", kill(run, folder / "ended", whole, chance, kills, (signal.SIGTERM, signal.SIGINT))
    yield "limits on files", limit_the_files(run, folder / "limited", whole)
    yield "forged seals", forge(folder / "given", chance, run, forged)
    if commands:
        yield "a real full disk", fill_a_real_disk(run, whole) or Counter({"skipped": 1})
        yield "command line", attack_commands(folder, chance, *commands)


LONG = {
    "names": ["given", "knn, hinge", "all", "guarantee", "cv"],
    "kills": 15,
    "between": 1,
    "rounds": (130, 60, 60),
    "forged": 150,
    "commands": (6, 16),
}
QUICK = {
    "names": ["given", "cv, one start"],
    "kills": 2,
    "between": 90,
    "rounds": (8, 4, 6),
    "forged": 6,
    "commands": None,
}


def main(*words):
    """Attack at length, or ``--quick``; a number is the seed."""
    seed = next((int(word) for word in words if word.isdigit()), 0)
    warnings.simplefilter("ignore", ts.ConvergenceWarning)
    warnings.simplefilter("ignore", DeprecationWarning)  # forks are meant
    begin, total = time.time(), Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name, outcomes in attack(folder, **(QUICK if "--quick" in words else LONG), seed=seed):
            print(f"{name:45} {json.dumps(dict(outcomes))}", flush=True)
            total.update(outcomes)
    print(f"{'all':45} {json.dumps(dict(total))}, {time.time() - begin:.0f} s: nothing lost, nothing believed")


if __name__ == "__main__":
    main(*sys.argv[1:])
