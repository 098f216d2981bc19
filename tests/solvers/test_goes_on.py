"""A solve that starts from the solution certified last takes its evaluation from there: the same bits for less work."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import triscreen as ts
from problems import make_case

WAYS = [None, "auto", ts.Screening(("rrpb", "pgb"), every=10, ranges=False, active_set=False)]


def walked(problem, screening, forget, between=None):
    first = ts.solve(problem, 0.05 * problem.lambda_max(), screening=screening)
    assert problem._certified is not None
    if between is not None:
        problem.certificate(between, 1.0)
    if forget:
        problem._certified = None
    return first, ts.solve(problem, 0.045 * problem.lambda_max(), screening=screening, start=first)


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
@pytest.mark.parametrize("loss", ["smoothed", "hinge"])
@pytest.mark.parametrize("screening", WAYS, ids=["none", "auto", "paper"])
def test_the_same_bits_and_a_pass_less(screening, loss, cone):
    case = make_case(4, n=40, d=4, m=400, cone=cone, gamma=0.05 if loss == "smoothed" else 0.0)
    (_, knows), (_, looks) = (walked(case.problem, screening, forget) for forget in (False, True))
    np.testing.assert_array_equal(knows.M, looks.M)
    assert (knows.primal, knows.gap, knows.n_iter) == (looks.primal, looks.gap, looks.n_iter)
    np.testing.assert_array_equal(knows.history["gap"], looks.history["gap"])
    if loss == "smoothed":
        assert looks.passes - knows.passes == pytest.approx(1.0)
    else:
        assert knows.passes < looks.passes


def test_what_was_certified_for_another_metric_is_not_used():
    case = make_case(4, n=40, d=4, m=400)
    (_, other), (_, looks) = (walked(case.problem, None, forget, np.eye(4)) for forget in (False, True))
    np.testing.assert_array_equal(other.M, looks.M)
    assert other.passes == looks.passes


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
def test_a_metric_that_was_changed_in_place_is_evaluated_anew(cone):
    problem = make_case(4, n=40, d=4, m=400, cone=cone).problem
    sol = ts.solve(problem, 0.05 * problem.lambda_max())
    problem.certificate(sol.M, sol.lam)
    sol.M[:] *= 2
    assert problem.certified_at(problem.checked(sol.M)[1]) is None


def test_it_is_kept_where_it_is_small_and_neither_for_long_nor_in_a_pickle(monkeypatch):
    problem = make_case(4, n=40, d=4, m=400).problem
    M = np.eye(4)
    problem.certificate(M, 1.0)
    assert pickle.loads(pickle.dumps(problem))._certified is None
    core = problem.checked(M)[1]
    assert problem.certified_at(2 * core) is None  # and forgotten
    problem.certificate(M, 1.0)
    assert problem.certified_at(core)[0] is not None
    assert problem._certified is None
    monkeypatch.setattr("triscreen.problem.problem._KEEP", 16 * problem.triplets.n_pairs - 1)
    problem.certificate(M, 1.0)
    assert problem._certified is None
    monkeypatch.undo()
    problem.memory_budget = 1e12
    problem.certificate(M, 1.0)
    assert problem._certified is None
