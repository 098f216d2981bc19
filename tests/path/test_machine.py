"""State machines: a path that is solved, interrupted, extended, saved and asked in any order, and a screener.

The model of a path is one that nobody disturbed; whatever was done, what is there are its first lambdas, to the bit.
The model of a screener is the optimum.
"""

from __future__ import annotations

import functools
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from safety import exact_margins

import triscreen as ts
from problems import make_case
from triscreen.path.api import AUTO
from triscreen.problem.units import LAMBDA
from triscreen.screening.by_triplet import Screener

MOST = 8
ARGUMENTS = {"ratio": 0.8, "tol": 1e-6, "screening": AUTO}


@functools.cache
def model():
    problem = make_case(7, n=20, m=90).problem
    return problem, ts.solve_path(problem, n_lambdas=MOST, **ARGUMENTS)


def bits_of(path, first=None):
    """All numbers of the first lambdas but seconds."""
    names = ("lambdas", "gaps", "primals", "duals", "losses", "passes", "n_iter", "screening_rates", "scanned")
    rows = range(len(path))[:first]
    return [getattr(path, name)[:first].tobytes() for name in names] + [path.M(t).tobytes() for t in rows]


class PathMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.problem, self.whole = model()
        self.kept, self.path = 0, None  # lambdas in the checkpoint; the path in hand

    def teardown(self):
        shutil.rmtree(self.folder)

    def _solve(self, **more):
        return ts.solve_path(self.problem, **ARGUMENTS, checkpoint=self.folder / "run", **more)

    @rule(n=st.integers(1, MOST))
    def solve_or_extend(self, n):
        self.path = self._solve(n_lambdas=n)
        self.kept = max(n, self.kept)
        assert len(self.path) == self.kept

    @precondition(lambda self: self.kept < MOST)
    @rule(n=st.integers(1, 3), how=st.sampled_from(["stop", "interrupt", "fail"]))
    def end_early(self, n, how):
        wanted = min(self.kept + n, MOST)

        def callback(state):
            if state.n_lambdas < wanted:
                return False
            if how == "stop":
                return True
            raise KeyboardInterrupt if how == "interrupt" else RuntimeError("by hand")

        try:
            self.path = self._solve(n_lambdas=MOST, callback=callback)
        except ts.Interrupted as end:
            self.path = end.result
        except RuntimeError:
            self.path = None
        self.kept = wanted
        assert self.path is None or len(self.path) == wanted

    @rule(name=st.sampled_from([".triscreen-0a1b.tmp", ".triscreen-lock"]))
    def leave_something_behind(self, name):
        (self.folder / "run").mkdir(exist_ok=True)
        (self.folder / "run" / name).write_bytes(b"half")

    @precondition(lambda self: self.kept)
    @rule()
    def another_run_is_refused(self):
        with pytest.raises(ts.InputError, match="belongs to another run"):
            ts.solve_path(self.problem, **{**ARGUMENTS, "tol": 2e-6}, checkpoint=self.folder / "run")

    @precondition(lambda self: self.path is not None)
    @rule()
    def save_and_load(self):
        ts.save(self.path, self.folder / "a.path")
        self.path = ts.load(self.folder / "a.path")

    @precondition(lambda self: self.path is not None)
    @rule(share=st.floats(0, 1))
    def at(self, share):
        lams = self.path.lambdas
        lam = float(np.clip(lams[0] ** (1 - share) * lams[-1] ** share, lams[-1], lams[0]))
        found = self.path.at(lam)
        assert found.gap <= 1.3 * min(row.gap_at(lam) for row in self.path._rows) + found.rounding
        truth = self.problem.certificate(found.M, lam)
        assert truth.gap <= found.gap * (1 + 1e-9) + found.rounding + truth.rounding

    @precondition(lambda self: self.path is not None)
    @rule()
    def certify(self):
        for claimed, found in zip(self.path.gaps, self.path.certify(self.problem), strict=True):
            assert found.gap <= claimed + 1e-11 * found.primal

    @precondition(lambda self: self.path is not None)
    @rule(every=st.integers(3, MOST))
    def verify(self, every):
        assert all(proof.rel_gap <= 1e-6 for proof in self.path.verify(self.problem, every))

    @invariant()
    def it_is_the_beginning_of_the_model(self):
        if self.path is not None:
            assert bits_of(self.path) == bits_of(self.whole, len(self.path))


class ScreenerMachine(RuleBasedStateMachine):
    """Screen with any metrics in any order: zones are never wrong, never taken back, and the optimum stays."""

    def __init__(self):
        super().__init__()
        self.problem, self.lam, self.best, exact = optimum()
        self.margins, self.doubt = exact
        self.screener, self.zones = None, np.zeros(self.problem.triplets.n_triplets, dtype=np.int8)

    def _evaluate(self, share, noise):
        rng, size = np.random.default_rng(int(1e6 * noise)), np.linalg.norm(self.best)
        F = rng.normal(size=self.best.shape)
        M = share * self.best + noise * size * F @ F.T / len(F)
        engine = self.problem if self.screener is None else self.screener.engine
        return engine.evaluate(M, engine.distances(engine.cone.project(M).factor), self.lam, self.problem.loss.gamma)

    SHARES, NOISES = st.sampled_from([0.0, 0.5, 0.99, 1.0, 1.001, 2.0]), st.sampled_from([0.0, 1e-9, 1e-4, 0.1, 1.0])

    @precondition(lambda self: self.screener is None)
    @rule(share=SHARES, noise=NOISES, other=st.sampled_from([None, 0.9, 1.3]),
          bounds=st.sampled_from([("mid",), ("rrpb", "pgb"), ("gb", "dgb"), ("cdgb",)]),
          kind=st.sampled_from(["sphere", "linear", "semidefinite"]))  # fmt: skip
    def start(self, share, noise, other, bounds, kind):
        evaluation = self._evaluate(share, noise)
        self.screener = Screener(self.problem, ts.Screening(bounds, rule=kind), self.lam, 1e-6)
        self.screener.start(evaluation, None if other is None else other * self.lam)

    @precondition(lambda self: self.screener is not None)
    @rule(share=SHARES, noise=NOISES)
    def step(self, share, noise):
        self.screener.step(self._evaluate(share, noise), 1)

    @invariant()
    def zones_are_right_and_stay(self):
        if self.screener is None:
            return
        zones, gamma = self.screener.zones, self.problem.loss.gamma
        assert (zones[self.zones > 0] == self.zones[self.zones > 0]).all()
        assert not ((zones == 2) & (1 - self.margins > self.doubt)).any()
        assert not ((zones == 1) & (self.margins - (1 - gamma) > self.doubt)).any()
        assert self.screener.undecided == np.count_nonzero(zones == 0)
        self.zones = zones.copy()

    @invariant()
    def the_optimum_stays(self):
        if self.screener is not None:
            full, less = (engine.evaluate(self.best, engine.distances(engine.cone.project(self.best).factor), self.lam,
                                          self.problem.loss.gamma)
                          for engine in (self.problem, self.screener.engine))  # fmt: skip
            assert less.primal == pytest.approx(full.primal, rel=1e-9)
            assert less.gap <= full.gap + 1e-9 * full.primal


@functools.cache
def optimum():
    problem = make_case(3, n=24, m=120).problem
    told = 0.1 * problem.lambda_max()
    best = ts.solve(problem, told, tol=1e-12, screening=None)
    return problem, problem.units.into(told, LAMBDA), problem.to_core(best.M)[0], exact_margins(problem, best)


TestPath = PathMachine.TestCase
TestPath.settings = settings(max_examples=8, stateful_step_count=8)
TestScreener = ScreenerMachine.TestCase
TestScreener.settings = settings(max_examples=25, stateful_step_count=5)
