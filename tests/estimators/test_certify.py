"""TripletMetricCV(certify=eps): what is proven about the folds, compared with accurate solves of each of them."""

from __future__ import annotations

import numpy as np
import pytest

import triscreen as ts
from held_out import votes
from triscreen.estimators.base import scale_of_lambda
from triscreen.estimators.folds import make_folds
from triscreen.estimators.starts import make_start
from triscreen.selection.search import Search
from triscreen.selection.sides import Side

pytestmark = pytest.mark.filterwarnings("ignore")


def data(seed, n=60):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, 3)) * (1, 2, 1)
    X[:, 0] += 2.5 * y
    return X, y


def errors_at(model, X, y, ratio):
    """The error of each fold at one ratio, from the definition; None where it hangs on a tie."""
    found, prior = [], None if model.chosen_ == "none" else model.chosen_
    for train, test in make_folds(model.cv, X, y, None):
        N = make_start(prior, X[train], y[train], model.cone)
        T = model._make_triplets(X[train], y[train], None)
        problem = model._make_problem(X[train], T, N)[0]
        exact = ts.solve(problem, ratio * scale_of_lambda(problem), tol=1e-11, max_iter=3000)
        predicted, clear = votes(exact.M, X[train], y[train], X[test], model.score_neighbors)
        if not clear.all():
            return None
        found.append(np.mean(predicted != y[test]))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_no_ratio_is_better_by_more_than_the_gap(seed):
    X, y = data(seed)
    start = (None, "identity")[seed % 2]
    model = ts.TripletMetricCV(2, candidates=[start], cv=3, certify=0.06, neighbors="euclid", n_jobs=1,
                               cone=("psd", "diagonal")[seed % 3 == 2]).fit(X, y)  # fmt: skip
    assert model.selection_gap_ <= 0.06
    assert model.possible_ratios_ == []
    ratios, lower, upper = model.certified_ratios_, model.error_lower_, model.error_upper_
    assert len(ratios) == len(lower) + 1 == len(upper) + 1
    assert (lower <= upper + 1e-12).all()
    assert lower.min() >= 1 - model.best_score_ - model.selection_gap_ - 1e-12
    if model.chosen_ == "euclid":
        model.chosen_ = start or "none"
    rng = np.random.default_rng(seed)
    tried = [*np.exp(rng.uniform(*np.log(ratios[[-1, 0]]), 4)), *([model.lam_ratio_] if model.lam_ratio_ < 9 else [])]
    for ratio in tried:
        found = errors_at(model, X, y, ratio)
        if found is None:
            continue
        error = np.mean(found)
        place = min(max(np.searchsorted(-ratios, -ratio) - 1, 0), len(lower) - 1)
        if ratio == model.lam_ratio_:
            assert error <= 1 - model.best_score_ + 1e-12
        else:
            assert lower[place] - 1e-12 <= error <= upper[place] + 1e-12
        assert error >= 1 - model.best_score_ - model.selection_gap_ - 1e-12


def test_the_chosen_ratio_is_fitted():
    X, y = data(1, 90)
    model = ts.TripletMetricCV(2, candidates=[None], cv=3, certify=0.05, n_jobs=1).fit(X, y)
    assert model.lam_ratio_ < np.inf
    assert model.lam_ == pytest.approx(model.lam_ratio_ * model.path_.lambdas[0] / model.ratios_[0], rel=1e-9)
    assert model.path_.lambdas[-1] == model.lam_
    assert model.ratios_[model.best_index_] == pytest.approx(model.lam_ratio_, rel=5)
    assert not hasattr(ts.TripletMetricCV(2, cv=3, ratios=3).fit(X, y), "selection_gap_")


def test_rounds_and_a_point_whose_class_is_not_there():
    X, y = data(2)
    y = y.copy()
    y[7] = 9  # alone: wrong wherever it is held out
    model = ts.TripletMetricCV(2, candidates=[None], cv=3, certify=0.1, rounds=2, n_jobs=1).fit(X, y)
    assert model.selection_gap_ <= 0.1
    assert model.error_lower_.min() >= 0.3 / 60


@pytest.mark.parametrize(("limit", "why"), [("seconds", "max_seconds"), ("solves", "max_lambdas")])
def test_limits_are_told(limit, why, monkeypatch):
    X, y = data(3, 200)
    run = Search.run
    limits = (1e-9, None) if limit == "seconds" else (None, 1)
    monkeypatch.setattr(Search, "run", lambda self, *given: run(self, *limits))
    with pytest.warns(ts.ConvergenceWarning, match=rf"certify=1e-06: it ended by {why} with a gap of"):
        model = ts.TripletMetricCV(3, candidates=[None], cv=3, certify=1e-6, n_jobs=1).fit(X, y)
    assert model.possible_ratios_
    assert model.selection_gap_ > 1e-6
    assert model.components_.shape == (3, 3)


def test_interrupts_and_checkpoints(tmp_path, monkeypatch):
    X, y = data(4)
    arguments = {"candidates": [None], "cv": 3, "certify": 0.02, "smallest_ratio": 0.01, "n_jobs": 1}
    whole = ts.TripletMetricCV(2, **arguments).fit(X, y)
    cut, calls = Search._cut, []

    def interrupted(self, *given):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return cut(self, *given)

    monkeypatch.setattr(Search, "_cut", interrupted)
    with pytest.raises(ts.Interrupted) as caught:
        ts.TripletMetricCV(2, **arguments, checkpoint=tmp_path / "a").fit(X, y)
    assert caught.value.result.stopped_by == "interrupt"
    assert caught.value.result.gap >= whole.selection_gap_
    (search,) = (tmp_path / "a").glob("search-*")
    assert len(list(search.glob("0*.tsc"))) == 2
    steps, real = [], Side.step
    monkeypatch.setattr(Side, "step", lambda *given: steps.append(1) or real(*given))
    for wanted in ("the rest", "nothing"):
        steps.clear()
        again = ts.TripletMetricCV(2, **arguments, checkpoint=tmp_path / "a").fit(X, y)
        assert again.lam_ratio_ == whole.lam_ratio_
        assert again.possible_ratios_ == whole.possible_ratios_
        for name in ("components_", "certified_ratios_", "error_lower_", "error_upper_"):
            assert np.array_equal(getattr(again, name), getattr(whole, name))
        assert bool(steps) == (wanted == "the rest")
    # Other votes are another search, over the same paths.
    other = ts.TripletMetricCV(2, **{**arguments, "certify": 0.1, "score_neighbors": 1}, checkpoint=tmp_path / "a")
    other.fit(X, y)
    assert len(list((tmp_path / "a").glob("search-*"))) == 2
    (search / "000000.tsc").write_bytes(b"")
    with pytest.raises(ts.InputError, match=r"checkpoint=.*000000\.tsc"):
        ts.TripletMetricCV(2, **arguments, checkpoint=tmp_path / "a").fit(X, y)


def test_bad_input():
    X, y = data(0)
    for arguments, text in (
        ({"certify": 0}, "certify=0"),
        ({"certify": "a"}, "certify='a'"),
        ({"certify": 0.1, "scoring": "triplet"}, "scoring='triplet': certify proves the error of neighbours"),
        ({"certify": 0.1, "n_components": 2}, "n_components=2: certify proves the error of the whole metric"),
    ):
        with pytest.raises(ts.InputError, match=text):
            ts.TripletMetricCV(2, **arguments).fit(X, y)


def test_a_range_of_one_ratio_has_one_lambda_to_bound():
    X, y = data(0)
    for start in ("none", "identity"):
        given = {"candidates": [None if start == "none" else start], "ratios": [0.01]}
        model = ts.TripletMetricCV(2, cv=3, certify=0.5, neighbors="euclid", n_jobs=1, **given).fit(X, y)
        model.chosen_ = start
        assert model.certified_ratios_.tolist() == [0.01, 0.01]
        assert len(model.error_lower_) == len(model.error_upper_) == 1
        assert model.error_lower_[0] <= np.mean(errors_at(model, X, y, 0.01)) <= model.error_upper_[0] + 1e-12
        assert model.possible_ratios_ == []
