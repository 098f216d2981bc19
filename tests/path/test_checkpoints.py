"""Paths that stop and go on."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

import triscreen as ts
from problems import SWITCHES, make_case


def same(a, b):
    """Bit by bit, seconds excepted."""
    assert (a.lambdas == b.lambdas).all()
    for name in ("gaps", "primals", "duals", "losses", "passes", "n_iter", "screening_rates", "scanned"):
        assert (getattr(a, name) == getattr(b, name)).all(), name
    for t in range(len(a)):
        assert (a.M(t) == b.M(t)).all()


@pytest.mark.parametrize("screening", SWITCHES)
@pytest.mark.parametrize("gamma", [0.05, 0.0])
def test_a_path_that_stopped_anywhere_goes_on_to_the_same_bits(tmp_path, screening, gamma):
    case = make_case(7, n=40, d=4, m=500, gamma=gamma)
    arguments = {"ratio": 0.95, "n_lambdas": 14, "screening": screening, "tol": 1e-4}
    whole = ts.solve_path(case.problem, **arguments)
    for stop in (1, 2, 3, 7, 12):
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


SCRIPT = """
import sys
sys.path[:0] = sys.argv[2:]
import triscreen as ts
from problems import SWITCHES, make_case
case = make_case(7, n=60, d=5, m=3000)
print("ready", flush=True)
ts.solve_path(case.problem, ratio=0.97, n_lambdas=120, tol=1e-5, checkpoint=sys.argv[1])
"""


def test_killed_at_random_moments_it_goes_on_to_the_same_bits(tmp_path):
    """A process that is killed (SIGKILL) again and again until the path is done."""
    case = make_case(7, n=60, d=5, m=3000)
    whole = ts.solve_path(case.problem, ratio=0.97, n_lambdas=120, tol=1e-5)
    chance = random.Random(1)
    folder = tmp_path / "checkpoint"
    where = os.path.dirname(os.path.dirname(__file__))
    kills = 0
    for _ in range(12):
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(folder), where], stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.4))
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
        process.stdout.close()
        if folder.exists() and len(list(folder.glob("0*.tsc"))) == 120:
            break
    assert kills >= 2
    same(ts.solve_path(case.problem, ratio=0.97, n_lambdas=120, tol=1e-5, checkpoint=folder), whole)


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
