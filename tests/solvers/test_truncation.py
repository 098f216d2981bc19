"""What fewer directions cost, by the certificate."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

import triscreen as ts

X, Y = load_wine(return_X_y=True)
X = scale(X)


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
@pytest.mark.parametrize("prior", [None, "identity"])
def test_costs_are_upper_bounds_of_what_is_lost(cone, prior):
    problem = ts.Problem(X, ts.knn_triplets(X, Y, k=3), cone=cone, prior=prior)
    lam = 0.05 * problem.lambda_max()
    rough, exact = (ts.solve(problem, lam, tol=tol) for tol in (1e-2, 1e-9))
    told = ts.truncation(problem, rough)
    assert told.ranks[0] == 1
    assert told.ranks[-1] == told.rank
    assert (np.diff(told.kept) >= 0).all()
    assert told.kept[-1] == pytest.approx(1)
    for rank, primal, cost, relative in zip(told.ranks, told.primals, told.costs, told.rel_costs, strict=True):
        if cone == "psd":
            values, vectors = np.linalg.eigh(rough.M)
            M = (vectors[:, -rank:] * values[-rank:]) @ vectors[:, -rank:].T
        else:
            M = np.where(np.sort(rough.M)[-rank] <= rough.M, rough.M, 0.0)
        assert primal == pytest.approx(problem.certificate(M, lam).primal, rel=1e-9)
        assert cost >= primal - exact.primal  # true of the optimum itself, which is not known where one asks
        assert cost <= primal - exact.primal + 1.01 * rough.gap + 1e-9 * abs(primal)
        assert relative == pytest.approx(cost / rough.dual)
    assert told.costs[-1] == pytest.approx(rough.gap, rel=1e-3)
    assert told.costs[0] > 10 * told.costs[-1]


def test_estimators_say_what_their_components_cost(tmp_path):
    for make in (ts.TripletMetric, ts.TripletMetricCV):
        more = {"lam_ratio": 0.05} if make is ts.TripletMetric else {"cv": 2, "candidates": (None,)}
        metric = make(n_components=2, tol=1e-3, **more).fit(X, Y)
        assert metric.truncation_["rank"] > 2
        assert 0 < metric.truncation_["kept"] < 1
        assert metric.truncation_["rel_cost"] > metric.rel_gap_
        ts.save(metric, tmp_path / "m")
        assert ts.load(tmp_path / "m").truncation_ == metric.truncation_
        assert make(tol=1e-2, **more).fit(X, Y).truncation_ is None


def test_what_does_not_fit_is_refused():
    problem = ts.Problem(X, ts.knn_triplets(X, Y, k=2))
    sol = ts.solve(problem, 0.1 * problem.lambda_max(), tol=1e-2)
    with pytest.raises(ts.InputError, match="ranks has 14: the metric has"):
        ts.truncation(problem, sol, [1, 14])
    with pytest.raises(ts.InputError, match="ranks=0"):
        ts.truncation(problem, sol, [0])
    with pytest.raises(ts.InputError, match="solution is a ndarray: a Solution is needed"):
        ts.truncation(problem, sol.M)
    other = ts.Problem(X[:, :5], ts.knn_triplets(X[:, :5], Y, k=2))
    with pytest.raises(ts.InputError, match="solution is about 13 features: the problem has 5"):
        ts.truncation(other, sol)
    pytest.importorskip("pandas")
    assert len(ts.truncation(problem, sol, [1, 2]).to_frame()) == 2
    assert "cost at most" in ts.truncation(problem, sol, [1])._repr_html_()
