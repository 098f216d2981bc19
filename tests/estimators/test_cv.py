"""The cross-validation: folds, grids, scores, limits, checkpoints."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.preprocessing import StandardScaler

import triscreen as ts


@pytest.fixture
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


class Killed(Exception):
    pass


def test_lambda_is_chosen_over_whole_paths(wine):
    X, y = wine
    options = {"candidates": [None], "scoring": "accuracy", "ratios": np.geomspace(1, 1e-5, 7), "cv": 3}
    model = ts.TripletMetricCV(**options).fit(X, y)
    assert model.cv_scores_.shape == (3, 7)
    assert model.chosen_ == "none"
    assert model.best_index_ == np.argmax(model.cv_scores_.mean(axis=0))
    assert model.lam_ == model.path_.lambdas[model.best_index_]
    assert model.lam_ratio_ == model.ratios_[model.best_index_]
    np.testing.assert_allclose(
        model.path_.lambdas,
        model.ratios_[: model.best_index_ + 1] * ts.Problem(X, ts.knn_triplets(X, y, 5)).lambda_max(),
    )
    np.testing.assert_allclose(
        model.get_mahalanobis_matrix(), model.path_.M(model.best_index_), atol=1e-8 * np.abs(model.path_.M(-1)).max()
    )
    # A score by hand: the first fold, the third lambda.
    from sklearn.model_selection import StratifiedKFold
    from sklearn.neighbors import KNeighborsClassifier

    from triscreen.estimators.ratios import without_leaps

    train, test = next(StratifiedKFold(3).split(X, y))
    problem = ts.Problem(X[train], ts.knn_triplets(X[train], y[train], 5))
    ratios, places = without_leaps(model.ratios_)
    path = ts.solve_path(problem, lambdas=ratios * problem.lambda_max(), tol=2e-2)
    L = path.components(places[2]).T
    assert model.cv_scores_[0, 2] == KNeighborsClassifier(3).fit(X[train] @ L, y[train]).score(X[test] @ L, y[test])


def test_one_standard_error_chooses_a_larger_lambda():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    how = {"ratios": 7, "cv": 4, "candidates": [None]}
    best, simple = (ts.TripletMetricCV(**how, one_standard_error=one).fit(X, y) for one in (False, True))
    assert simple.lam_ > best.lam_
    np.testing.assert_array_equal(simple.cv_scores_, best.cv_scores_)


@pytest.mark.parametrize("scoring", ["triplet", "balanced_accuracy", "neg_log_loss"])
def test_other_scores(wine, scoring):
    model = ts.TripletMetricCV(
        ratios=[1, 0.1, 0.01], cv=3, scoring=scoring, rounds=2, triplets="lmnn", n_neighbors=3
    ).fit(*wine)
    assert np.isfinite(model.cv_scores_).all()
    assert np.isfinite(model.candidates_["alone"]).all()
    assert model.path_ is None or model.path_.converged.all()


def test_wrong_grids(wine):
    for arguments in (
        {"ratios": [0.1, 1.0]},
        {"ratios": []},
        {"ratios": 0},
        {"smallest_ratio": 2},
        {"score_neighbors": 0},
    ):
        with pytest.raises(ts.InputError, match=next(iter(arguments))):
            ts.TripletMetricCV(**arguments).fit(*wine)


def test_leaps_between_lambdas_are_walked(wine):
    from triscreen.estimators.ratios import without_leaps

    ratios, places = without_leaps(np.array([1.0, 0.5, 1e-3]))
    np.testing.assert_allclose(ratios[places], [1.0, 0.5, 1e-3])
    assert (ratios[:-1] / ratios[1:] <= 6.0).all()
    X, y = wine
    model = ts.TripletMetricCV(candidates=[None], ratios=[0.5, 1e-4], cv=2).fit(X, y)
    problem = ts.Problem(X, ts.knn_triplets(X, y, 5))
    np.testing.assert_allclose(model.path_.lambdas, np.array([0.5, 1e-4]) * problem.lambda_max())
    assert model.path_.converged.all()
    assert problem.certificate(model.solution_.M, model.lam_).rel_gap <= 1.01e-3


def test_a_fold_is_named_and_its_warnings_are_not_repeated(wine):
    X, y = wine
    one_class = [(np.flatnonzero(y == 0), np.flatnonzero(y == 1))]
    with pytest.raises(ts.InputError, match=r"fold 0 of cv \(59 points to learn from\): y has one class only"):
        ts.TripletMetricCV(cv=one_class).fit(X, y)
    small = y.copy()
    small[:3] = 7
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        ts.TripletMetricCV(ratios=2, cv=3).fit(X, small)
    assert [w.category for w in seen].count(ts.SmallClassWarning) == 1
    with pytest.raises(ts.InputError, match="scoring="):
        ts.TripletMetricCV(scoring=["accuracy", "f1"]).fit(X, y)


def test_groups_are_kept_together(wine):
    from sklearn.model_selection import GroupKFold

    X, y = wine
    groups = np.arange(len(X)) % 6
    model = ts.TripletMetricCV(ratios=3, cv=GroupKFold(3)).fit(X, y, groups=groups)
    folds = list(GroupKFold(3).split(X, y, groups))
    np.testing.assert_array_equal(model.cv_scores_, ts.TripletMetricCV(ratios=3, cv=folds).fit(X, y).cv_scores_)


def test_a_grid_ends_where_the_loss_is_gone_but_given_ratios_are_all_walked(wine):
    X, y = wine
    model = ts.TripletMetricCV(candidates=[None], ratios=6, smallest_ratio=1e-7, cv=2).fit(X, y)
    assert len(model.path_) < 6
    problem = ts.Problem(X, ts.knn_triplets(X, y, 5))
    assert (model.path_.losses[:-1] >= 0.02 * problem.value(np.zeros((13, 13)), 1.0)).all()
    assert np.isnan(model.cv_scores_[:, -1]).all()
    assert np.isfinite(model.cv_scores_[:, 0]).all()
    given = ts.TripletMetricCV(candidates=[None], ratios=model.ratios_, cv=2).fit(X, y)
    assert np.isfinite(given.cv_scores_).all()


def test_max_seconds_is_for_the_whole_fit(wine):
    X, y = wine
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ts.TripletMetricCV(max_seconds=1e-9).fit(X, y)
    if model.path_ is None:  # a start was better than the first lambdas, and there was no time for more
        assert model.lam_ == np.inf
    else:
        assert len(model.path_) == 1
        assert model.path_.stopped_by in ("max_seconds", "grid")


def test_a_choice_among_what_time_allowed_is_said_to_be_one(wine):
    """One or two of eight ratios had been seen, and nothing said so."""
    X, y = wine
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ts.TripletMetricCV(max_seconds=1e-9, cv=2).fit(X, y)
    said = [str(each.message) for each in caught if issubclass(each.category, ts.ConvergenceWarning)]
    assert any(re.match(r"max_seconds=1e-09: time was over in \d+ of 6 paths .* of 7 ratios", text) for text in said)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ts.TripletMetricCV(max_seconds=1000, cv=2, ratios=2).fit(X, y)


def test_a_fold_has_no_say_in_its_own_neighbours(wine):
    from unittest import mock

    from sklearn.model_selection import StratifiedKFold

    from triscreen.estimators import cv

    X, y = wine
    folds = list(StratifiedKFold(3).split(X[::2], y[::2]))

    def lambdas(labels):
        """Of the paths that are walked; the last candidate and its second ratio are always chosen."""
        seen, real = [], cv.solve_path
        with (
            mock.patch.object(cv, "solve_path", lambda *a, **k: seen.append(k["lambdas"]) or real(*a, **k)),
            mock.patch.object(cv, "choose_candidate", lambda starts, *_: (starts[-1], 1)),
        ):
            ts.TripletMetricCV(cv=folds, rounds=2, ratios=[0.1, 0.01, 0.001], candidates=[None]).fit(X[::2], labels)
        return seen

    first = len(folds)  # paths of the first round; then each fold has the one before, and its second
    right = lambdas(y[::2])
    for seed in range(4):
        mixed = y[::2].copy()
        mixed[folds[0][1]] = np.random.default_rng(seed).permutation(mixed[folds[0][1]])
        found = lambdas(mixed)
        for k in (0, first, first + 1):
            np.testing.assert_array_equal(found[k], right[k])


@pytest.mark.parametrize("after", [1, 6, 13, 30])
def test_a_cross_validation_goes_on_where_it_was_killed(wine, tmp_path, after):
    X, y = wine
    seen = []

    def kill(state):
        seen.append(state)
        if len(seen) == after:
            raise Killed

    whole = ts.TripletMetricCV(cv=3, rounds=2).fit(X, y)
    model = ts.TripletMetricCV(cv=3, rounds=2, checkpoint=tmp_path / "kept", callback=kill)
    with pytest.raises(Killed):
        model.fit(X, y)
    model.set_params(callback=seen.append).fit(X, y)
    np.testing.assert_array_equal(model.cv_scores_, whole.cv_scores_)
    np.testing.assert_array_equal(model.path_.gaps, whole.path_.gaps)
    np.testing.assert_array_equal(model.components_, whole.components_)
    done = len(seen)
    model.fit(X, y)  # all of it is in the checkpoint
    assert len(seen) == done
    ts.save(model, tmp_path / "model")
    assert ts.load(tmp_path / "model").checkpoint is None
