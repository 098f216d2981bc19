"""Ctrl-C at every point of a verb: `Interrupted`, with the best so far."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import triscreen as ts
from interrupting import Interrupter, spread
from problems import comparisons, make_case


@pytest.fixture
def interrupter(monkeypatch):
    return Interrupter(monkeypatch)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("gamma", [0.05, 0.0])
@pytest.mark.parametrize("screening", [None, ts.Screening(("rrpb", "mid"), every=2)])
@pytest.mark.parametrize("ratio", [0.05, 1e-4])  # the second one walks down first
def test_solve_at_every_call(interrupter, gamma, screening, ratio):
    case = make_case(1, gamma=gamma)
    lam = ratio * case.problem.lambda_max()

    def verb():
        return ts.solve(case.problem, lam, screening=screening, tol=1e-4)

    for at in spread(interrupter.count(verb), 60):
        found = interrupter.result(verb, at)
        assert isinstance(found, ts.Solution)
        assert (found.stopped_by, found.lam) == ("interrupt", lam) or found.converged
        assert found.gap == case.problem.certificate(found.M, lam).gap


def test_solve_interrupted_on_its_way_down_keeps_what_it_has(interrupter):
    case = make_case(1)
    lam = 1e-5 * case.problem.lambda_max()

    def verb():
        return ts.solve(case.problem, lam)

    total = interrupter.count(verb)
    found = [interrupter.result(verb, at).primal for at in spread(total, 12)]
    assert found[-1] < found[0]
    assert (np.diff(found) <= 1e-2 * np.abs(found[:-1])).all()


def test_a_second_interrupt_does_not_wait_for_the_certificate(interrupter):
    case = make_case(1)
    lam = 0.01 * case.problem.lambda_max()
    assert interrupter.result(lambda: ts.solve(case.problem, lam), 10, again=True) is None


@pytest.mark.parametrize("how", [{}, {"screening": None}, {"guarantee": 0.05}])
def test_solve_path_at_every_call(interrupter, how, tmp_path):
    case = make_case(2)
    case.problem.lambda_max()

    def verb():
        return ts.solve_path(case.problem, n_lambdas=6, tol=1e-4, **how)

    for at in spread(interrupter.count(verb), 60):
        found = interrupter.result(verb, at)
        assert isinstance(found, ts.Path)
        assert found.stopped_by == "interrupt"
        assert found.converged.all()


def points():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    return rng.normal(size=(40, 3)) + y[:, None] * np.array([1.0, 0.5, 0.0]), y


X, ROWS = comparisons(0, n=12, m=60)


@pytest.mark.parametrize(
    ("model", "data", "kind"),
    [
        (ts.TripletMetric(2, rounds=2), points(), ts.Solution),
        (ts.TripletMetric(2, triplets="lmnn", rounds=2), points(), ts.Solution),
        (ts.TripletMetricCV(2, ratios=3, cv=2), points(), ts.Path),
        (ts.ComparisonMetric(preprocessor=X), (ROWS,), ts.Solution),
    ],
    ids=["TripletMetric", "lmnn", "TripletMetricCV", "ComparisonMetric"],
)
def test_estimators_at_every_call(interrupter, model, data, kind):
    def verb():
        return model.fit(*data)

    found = [interrupter.result(verb, at) for at in spread(interrupter.count(verb), 50)]
    there = [result is not None for result in found]
    assert all(isinstance(result, kind) for result in found if result is not None)
    assert there == sorted(there)  # once there is something it is given
    assert any(there)
    assert not hasattr(model, "_so_far")


@pytest.mark.parametrize(
    "verb",
    [
        lambda: ts.solve(make_case(0).problem, 1.0),
        lambda: ts.solve_path(make_case(0).problem, n_lambdas=2),
        lambda: ts.TripletMetric(2).fit(*points()),
    ],
)
def test_before_there_is_anything_the_result_is_none(verb, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    for module in ("triscreen.solvers.api", "triscreen.path.api"):
        monkeypatch.setattr(sys.modules[module], "check_arguments", interrupt)
    with pytest.raises(ts.Interrupted) as caught:
        verb()
    assert caught.value.result is None
