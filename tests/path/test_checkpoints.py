"""Paths that stop and go on."""

from __future__ import annotations

import inspect
import os
import random
import shutil
import subprocess
import sys
import warnings

import numpy as np
import pytest

import triscreen as ts
from attack_checkpoints import PathRun
from attacks import kill
from nightly import cases
from problems import SWITCHES, make_case
from triscreen._utils.checkpoint import look, recording
from triscreen.path import identity
from triscreen.path.api import AUTO
from triscreen.solvers.bb import BarzilaiBorwein
from triscreen.solvers.dual import DualAscent
from triscreen.solvers.newton import Newton


def same(a, b):
    """Bit by bit, seconds excepted."""
    assert (a.lambdas == b.lambdas).all()
    for name in ("gaps", "primals", "duals", "losses", "passes", "n_iter", "screening_rates", "scanned"):
        assert (getattr(a, name) == getattr(b, name)).all(), name
    for t in range(len(a)):
        assert (a.M(t) == b.M(t)).all()
        assert a._rows[t].changes == b._rows[t].changes


@pytest.mark.thinned(3)
@pytest.mark.parametrize("screening", SWITCHES)
@pytest.mark.parametrize(("gamma", "stops"), [(0.05, (1, 3, 12)), (0.0, (2, 7))], ids=["smooth", "hinge"])
def test_a_path_that_stopped_anywhere_goes_on_to_the_same_bits(tmp_path, screening, gamma, stops):
    case = make_case(7, n=40, d=4, m=500, gamma=gamma)
    arguments = {"ratio": 0.95, "n_lambdas": 14, "screening": screening, "tol": 1e-4}
    whole = ts.solve_path(case.problem, **arguments)
    for stop in cases(stops, (1, 2, 3, 7, 12)):
        folder = tmp_path / str(stop)
        part = ts.solve_path(case.problem, **arguments, checkpoint=folder, callback=lambda s, n=stop: s.n_lambdas == n)
        assert len(part) == stop
        fresh = make_case(7, n=40, d=4, m=500, gamma=gamma)
        same(ts.solve_path(fresh.problem, **arguments, checkpoint=folder), whole)
    same(ts.solve_path(fresh.problem, **arguments, checkpoint=folder), whole)  # nothing left to do


def test_a_guaranteed_path_goes_on_too(tmp_path):
    case = make_case(7, n=40, d=4, m=500)
    whole = ts.solve_path(case.problem, guarantee=0.01)
    ts.solve_path(case.problem, guarantee=0.01, checkpoint=tmp_path / "a", callback=lambda s: s.n_lambdas == 5)
    same(ts.solve_path(case.problem, guarantee=0.01, checkpoint=tmp_path / "a"), whole)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks beside threads: they are meant
def test_killed_at_random_moments_it_goes_on_to_the_same_bits(tmp_path):
    """A process that is killed (SIGKILL) again and again until the path is done."""
    arguments = {"ratio": 0.97, "n_lambdas": 120, "tol": 1e-5, "screening": AUTO}
    run = PathRun(make_case(7, n=60, d=5, m=3000).problem, **arguments)
    outcomes = kill(run, tmp_path / "checkpoint", run(None), random.Random(1), cases(4, 12), longest=0.4)
    assert outcomes["killed"] >= 4
    assert outcomes["same bits"] >= 1


def test_a_checkpoint_of_another_problem_or_call_or_a_damaged_one_is_refused(tmp_path):
    case = make_case(7)
    folder = tmp_path / "a"
    ts.solve_path(case.problem, ratio=0.8, n_lambdas=4, checkpoint=folder)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    other = make_case(8)
    for problem, arguments in [
        (other.problem, {}),
        (case.problem, {"tol": 1e-5}),
        (case.problem, {"solver": "bb"}),
        (case.problem, {"screening": None}),
        (make_case(7, gamma=0.1).problem, {}),
        (make_case(7, cone="diagonal").problem, {}),
        (make_case(7, weighted=True).problem, {}),
        (case.problem, {"lambda_max": 3.0}),
        (case.problem, {"ratio": 0.7}),
    ]:
        with pytest.raises(ts.InputError, match="belongs to another run"):
            ts.solve_path(problem, **{"ratio": 0.8, "n_lambdas": 4, **arguments}, checkpoint=folder)
    assert before == {file.name: file.read_bytes() for file in folder.iterdir()}
    damaged = folder / "000002.tsc"
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 0xFF
    damaged.write_bytes(content)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    with pytest.raises(ts.InputError, match=r"000002\.tsc"):
        ts.solve_path(case.problem, ratio=0.8, n_lambdas=4, checkpoint=folder)
    assert before == {file.name: file.read_bytes() for file in folder.iterdir()}


def test_a_long_checkpoint_stays_small(tmp_path):
    """Each entry holds a factor; only the last one the state to go on from."""
    case = make_case(7, n=40, d=12, m=500)
    path = ts.solve_path(case.problem, ratio=0.9, n_lambdas=20, checkpoint=tmp_path / "a")
    sizes = [file.stat().st_size for file in sorted((tmp_path / "a").glob("0*.tsc"))]
    factors = [8 * 12 * len(path.components(t)) for t in range(20)]
    assert all(size < factor + 5000 for size, factor in zip(sizes[:-1], factors[:-1], strict=True))


def test_a_first_lambda_cut_short_by_the_clock_is_not_kept(tmp_path):
    case = make_case(7, n=60, d=5, m=3000)
    lambdas = case.problem.lambda_max() * np.array([1e-3, 5e-4])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.ConvergenceWarning)
        cut = ts.solve_path(case.problem, lambdas, tol=1e-9, max_seconds=1e-9, checkpoint=tmp_path / "a")
    assert (len(cut), cut.stopped_by) == (1, "max_seconds")
    same(
        ts.solve_path(case.problem, lambdas, tol=1e-9, checkpoint=tmp_path / "a"),
        ts.solve_path(case.problem, lambdas, tol=1e-9),
    )


def test_more_lambdas_can_be_added_to_a_checkpoint(tmp_path):
    case = make_case(7)
    ts.solve_path(case.problem, ratio=0.8, n_lambdas=4, checkpoint=tmp_path / "a")
    more = ts.solve_path(case.problem, ratio=0.8, n_lambdas=7, checkpoint=tmp_path / "a")
    same(more, ts.solve_path(case.problem, ratio=0.8, n_lambdas=7))


def runs():
    """Runs that differ in one thing each, by its name: (problem, arguments)."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), np.arange(20) % 3
    rows, weights = [[i, (i + 3) % 20, (i + 1) % 20] for i in range(20)], np.linspace(1, 2, 20)
    moved = X.copy()
    moved[7, 1] = np.nextafter(moved[7, 1], 9)
    weighted = np.where(np.arange(20) == 4, np.nextafter(weights, 9), weights)
    given, lambdas = ts.given_triplets(rows), [8.0, 4.0, 2.0]
    problems = {
        "given": ts.Problem(X, given),
        "moved": ts.Problem(moved, given),
        "one row": ts.Problem(X, ts.given_triplets([*rows[:-1], [19, 1, 0]])),
        "another order": ts.Problem(X, ts.given_triplets(rows[::-1])),
        "twice": ts.Problem(X, ts.given_triplets([*rows, rows[0]])),
        "weighted": ts.Problem(X, ts.given_triplets(rows, weights)),
        "weighted by ones": ts.Problem(X, ts.given_triplets(rows, np.ones(20))),
        "another weight": ts.Problem(X, ts.given_triplets(rows, weighted)),
        "gamma": ts.Problem(X, given, loss=ts.SmoothedHinge(np.nextafter(0.05, 1))),
        "hinge": ts.Problem(X, given, loss=ts.Hinge()),
        "diagonal": ts.Problem(X, given, cone="diagonal"),
        "features": ts.Problem(np.c_[X, np.zeros(20)], given),
        "knn": ts.Problem(X, ts.knn_triplets(X, y, 2)),
        "more neighbours": ts.Problem(X, ts.knn_triplets(X, y, 3)),
        "all of them": ts.Problem(X, ts.knn_triplets(X, y, None)),
        "all": ts.Problem(X, ts.all_triplets(X, y)),
        "lmnn": ts.Problem(X, ts.all_triplets(X, y, n_positives=2)),
        "all weighted": ts.Problem(X, ts.all_triplets(X, y, weights=weights)),
        "budget": ts.Problem(X, ts.all_triplets(X, y), memory_budget=1e6, n_jobs=1),
    }
    found = {name: (problem, {"lambdas": lambdas}) for name, problem in problems.items()}
    for name, arguments in {
        "lambdas": {"lambdas": [8.0, 4.0, np.nextafter(2.0, 3)]},
        "ratio": {"n_lambdas": 3},
        "another ratio": {"n_lambdas": 3, "ratio": 0.8},
        "start": {"n_lambdas": 3, "lambda_max": 5.0},
        "guarantee": {"n_lambdas": 3, "guarantee": 0.1},
        "tol": {"lambdas": lambdas, "tol": 2e-6},
        "max_iter": {"lambdas": lambdas, "max_iter": 500},
        "solver": {"lambdas": lambdas, "solver": "newton"},
        "its number": {"lambdas": lambdas, "solver": Newton(first=4)},
        "its solver's number": {"lambdas": lambdas, "solver": Newton(gradient=BarzilaiBorwein(memory=9))},
        "own solver": {"lambdas": lambdas, "solver": Own(1)},
        "own solver's number": {"lambdas": lambdas, "solver": Own(2)},
        "no screening": {"lambdas": lambdas, "screening": None},
        "screening": {"lambdas": lambdas, "screening": ts.Screening("mid")},
        "every": {"lambdas": lambdas, "screening": ts.Screening("mid", every=11)},
        "active set": {"lambdas": lambdas, "screening": ts.Screening("mid", active_set="loss")},
    }.items():
        found[name] = problems["given"], arguments
    return found


class Own:
    """A solver of somebody, which has no words for itself."""

    def __init__(self, number):
        self.number, self.inner = number, BarzilaiBorwein()

    def run(self, *arguments):
        return self.inner.run(*arguments)


def test_runs_that_differ_in_anything_have_different_identities(tmp_path):
    """And each folder is refused to every other run, without a change."""
    cases = runs()
    for name, (problem, arguments) in cases.items():
        ts.solve_path(problem, **arguments, checkpoint=tmp_path / name)
    prints = {look(tmp_path / name).run for name in cases}
    assert len(prints) == len(cases) == 35
    for name, (problem, arguments) in cases.items():
        with pytest.raises(ts.InputError, match="belongs to another run"):
            ts.solve_path(problem, **arguments, checkpoint=tmp_path / ("given" if name != "given" else "knn"))


def test_an_identity_knows_no_names_of_attributes():
    """Another class whose attributes are called otherwise is the same set of triplets."""
    for problem, _ in runs().values():
        kind, arrays = problem.triplets.identity()
        assert isinstance(kind, str)
        assert all(isinstance(array, np.ndarray) for array in arrays)
        sources = [inspect.getsource(module) for module in (identity, sys.modules[type(problem.triplets).__module__])]
        assert not any("vars(self)" in source or "vars(triplets)" in source for source in sources)
    for thing in (Newton(), BarzilaiBorwein(), DualAscent(), ts.Screening(), ts.SmoothedHinge(), ts.Hinge()):
        assert identity.described(thing) == repr(thing)  # what format 1 had


def test_foreign_entries_are_refused_and_left(tmp_path):
    """The attack that was believed: entries of a run with another gamma, under an identity that is right."""
    cases = {name: make_case(7, n=40, d=4, m=500, gamma=gamma).problem for name, gamma in (("a", 0.05), ("g", 0.5))}
    for name, problem in cases.items():
        ts.solve_path(problem, n_lambdas=8, checkpoint=tmp_path / name)
    for number, pattern in enumerate(("0*.tsc", "000007.tsc", "000003.tsc", "state-*.tsc", "*[0-9].tsc")):
        folder = tmp_path / f"mixed {number}"
        shutil.copytree(tmp_path / "a", folder)
        for file in (tmp_path / "g").glob(pattern):
            shutil.copy(file, folder)
        before = {file.name: file.read_bytes() for file in folder.iterdir()}
        with pytest.raises(ts.InputError, match=r"^checkpoint=.*'(0|state-)0*[0-7]\.tsc' belongs to another run"):
            ts.solve_path(cases["a"], n_lambdas=12, checkpoint=folder)
        assert before == {file.name: file.read_bytes() for file in folder.iterdir()}
    shutil.copy(tmp_path / "a" / "000007.tsc", tmp_path / "a" / "000008.tsc")
    with pytest.raises(ts.InputError, match="is the entry number 7"):
        ts.solve_path(cases["a"], n_lambdas=12, checkpoint=tmp_path / "a")


def test_what_paths_wrote_is_recorded(tmp_path):
    case = make_case(7)
    folder = tmp_path / "a"
    ts.solve_path(case.problem, ratio=0.8, n_lambdas=4, checkpoint=folder)
    (folder / "mine.txt").touch()
    with recording() as written:
        ts.solve_path(case.problem, ratio=0.8, n_lambdas=7, checkpoint=folder)
    assert not written.remove()
    assert [file.name for file in folder.iterdir()] == ["mine.txt"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_an_attack_ends_in_the_same_bits_or_in_a_sentence():
    """A few seconds of what `make nightly` does at length; see the script."""
    script = os.path.join(os.path.dirname(os.path.dirname(__file__)), "attack_checkpoints.py")
    run = subprocess.run([sys.executable, script, "--quick"], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.endswith("nothing lost, nothing believed\n")
