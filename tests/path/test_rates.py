"""What was safe beforehand, and what was proven afterwards: two numbers, never mixed."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

import triscreen as ts

SPHERES = ts.Screening(("rrpb", "pgb"), every=5, ranges=False, active_set=False)
NEVER = {"bounds": "mid", "every": 10**6, "at_start": False}
RANGES = ts.Screening(**NEVER, ranges=True, active_set=False)
TUBE = ts.Screening(**NEVER, ranges=False, active_set=True)
BOTH = ts.Screening("mid", every=5, at_start=False, ranges=True, active_set=True)


@pytest.fixture(scope="module")
def problem():
    X, y = load_wine(return_X_y=True)
    return ts.Problem(scale(X), ts.knn_triplets(scale(X), y, k=4))


def walked(problem, screening):
    return ts.solve_path(problem, ratio=0.9, n_lambdas=25, tol=1e-6, screening=screening)


@pytest.mark.parametrize("screening", [SPHERES, RANGES])
def test_spheres_and_ranges_are_safe_beforehand(problem, screening):
    path = walked(problem, screening)
    assert path.screening_rates.max() > 0.2
    np.testing.assert_allclose(path.safe_rates, path.screening_rates, atol=1e-12)
    np.testing.assert_allclose(path.proven_rates, 0.0, atol=1e-12)


def test_a_tube_is_proven_afterwards(problem):
    path = walked(problem, TUBE)
    assert path.screening_rates.max() > 0.2
    assert not path.safe_rates.any()
    np.testing.assert_array_equal(path.proven_rates, path.screening_rates)


def test_of_both_what_ranges_decide_is_safe_and_spheres_in_a_tube_are_not(problem):
    path = walked(problem, BOTH)
    beforehand = np.zeros(len(path))
    for t, sol in enumerate(path):
        beforehand[t] = sum(event["L"] + event["R"] for event in sol.screening if event["rule"] == "range")
    np.testing.assert_allclose(path.safe_rates, np.minimum(beforehand / path.n_triplets, path.screening_rates))
    assert path.safe_rates.max() > 0.01
    assert path.proven_rates.max() > 0.01
    exact = ts.solve(problem, path.lambdas[-1], tol=1e-11, start=path[-1])
    decided = np.mean((exact.margins() > 1) | (exact.margins() < 1 - problem.loss.gamma))
    assert path.safe_rates[-1] <= decided + 1e-12


def test_without_screening_nothing_is_either_and_frames_hold_both(problem):
    path = walked(problem, None)
    assert not path.safe_rates.any()
    assert not path.proven_rates.any()
    pytest.importorskip("pandas")
    frame = walked(problem, BOTH).to_frame()
    np.testing.assert_allclose(frame.safe_rates + frame.proven_rates, frame.screening_rates)


def test_sets_that_list_nothing(problem):
    X, y = load_wine(return_X_y=True)
    whole = ts.Problem(scale(X)[::2], ts.all_triplets(scale(X)[::2], y[::2]))
    for screening in (ts.Screening("dgb", every=2, ranges=False, active_set=False), RANGES, TUBE):
        path = ts.solve_path(whole, ratio=0.7, n_lambdas=6, tol=1e-4, screening=screening)
        assert (path.safe_rates >= 0).all()
        assert (path.proven_rates >= -1e-15).all()
        assert not (path.proven_rates if screening is not TUBE else path.safe_rates).any()


def test_saved_paths_keep_them_apart_and_old_ones_have_them(problem, tmp_path):
    path = walked(problem, BOTH)
    ts.save(path, tmp_path / "path")
    np.testing.assert_array_equal(ts.load(tmp_path / "path").safe_rates, path.safe_rates)
    for sol in path:
        for event in sol.screening:
            event.pop("safe")  # as files of before are
    assert (path.safe_rates <= path.screening_rates).all()
