"""Fits with neighbours that somebody else has found, and fits whose folds share one search."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, ShuffleSplit, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, kneighbors_graph
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

import triscreen as ts
from triscreen.estimators import cv as module
from triscreen.triplets.neighbours import nearest

X, Y = load_wine(return_X_y=True)
X = scale(X)
EVERY = kneighbors_graph(X, len(X) - 1, mode="distance")
FAST = {"ratios": 4, "smallest_ratio": 1e-3, "cv": 3, "n_neighbors": 4}


@pytest.mark.parametrize("triplets", ["knn", "lmnn"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_fit_with_all_neighbours_is_the_fit_with_its_own(triplets, weighted):
    weights = np.where(Y == 0, 2.0, 0.5) if weighted else None
    model = ts.TripletMetric(4, triplets=triplets)
    own = model.fit(X, Y, sample_weight=weights).components_
    assert np.array_equal(model.fit(X, Y, sample_weight=weights, neighbors=EVERY).components_, own)
    model = ts.TripletMetricCV(triplets=triplets, candidates=[None, "identity"], **FAST)
    own = model.fit(X, Y, sample_weight=weights).cv_scores_
    again = model.fit(X, Y, sample_weight=weights, neighbors=EVERY).cv_scores_
    assert np.array_equal(again, own, equal_nan=True)


def test_later_rounds_choose_neighbours_themselves():
    table = np.argsort(X[:, :2] @ X[:, :2].T)  # bad ones
    once = ts.TripletMetric(3).fit(X, Y, neighbors=table)
    assert not np.array_equal(once.components_, ts.TripletMetric(3).fit(X, Y).components_)
    twice = ts.TripletMetric(3, rounds=2).fit(X, Y, neighbors=table)
    T = ts.knn_triplets(X @ once.components_.T, Y, 3)
    assert twice.solution_.converged
    problem = ts.Problem(X, T)
    assert twice.lam_ == pytest.approx(1e-3 * problem.lambda_max())


def test_a_fold_takes_what_is_left_of_the_neighbours_among_its_points():
    """The folds of the cross-validation are fits with the same rows of a smaller graph."""
    graph = kneighbors_graph(X, 60, mode="distance")
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, Y))
    with warnings.catch_warnings():
        for category in (ts.NoAnchorWarning, ts.ConvergenceWarning):
            warnings.simplefilter("ignore", category)
        options = {**FAST, "candidates": [None], "scoring": "accuracy", "cv": folds, "ratios": [1e-2, 1e-3]}
        model = ts.TripletMetricCV(**options).fit(X, Y, neighbors=graph)
        for (train, test), scores in zip(folds, model.cv_scores_, strict=True):
            T = ts.knn_triplets(X[train], Y[train], 4, neighbors=graph[train][:, train])
            problem = ts.Problem(X[train], T)
            problem.floor = 0.5 * T.total_weight * problem.loss(0.0)  # as rough as folds are
            lambdas = problem.lambda_max() * module.without_leaps(model.ratios_)[0]
            path = ts.solve_path(problem, lambdas=lambdas, tol=2e-2)
            L = path.components(len(path) - 1)
            near = KNeighborsClassifier(3).fit(X[train] @ L.T, Y[train])
            assert near.score(X[test] @ L.T, Y[test]) == pytest.approx(scores[-1])


def test_points_without_neighbours_are_counted_once():
    few = np.where(np.arange(178)[:, None] < 5, -1, np.argsort(np.square(X[:, None] - X).sum(axis=2), axis=1))
    for model in (ts.TripletMetric(4), ts.TripletMetricCV(**FAST, candidates=[None])):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, Y, neighbors=few)
        assert [str(w.message) for w in caught if w.category is ts.NoAnchorWarning] == [
            "neighbors: 5 of 178 points have no positive or no negative there, and are no anchors"
        ]


def test_neighbours_are_routed_through_pipelines():
    with sklearn.config_context(enable_metadata_routing=True):
        metric = ts.TripletMetric(4).set_fit_request(neighbors=True)
        routed = make_pipeline(StandardScaler(), metric, KNeighborsClassifier(3)).fit(X, Y, neighbors=EVERY)
        chosen = make_pipeline(ts.TripletMetricCV(**FAST).set_fit_request(neighbors=True)).fit(X, Y, neighbors=EVERY)
    assert np.array_equal(routed[1].components_, ts.TripletMetric(4).fit(scale(X), Y).components_)
    assert chosen[0].best_score_ > 0.9


@pytest.mark.parametrize("neighbors", [EVERY, np.argsort(EVERY.toarray(), axis=1), (EVERY.multiply(0), EVERY)])
def test_a_search_that_cuts_rows_only_is_refused(neighbors):
    """scikit-learn has no way to cut a graph to a fold: the numbers would be those of other points."""
    with sklearn.config_context(enable_metadata_routing=True):
        metric = ts.TripletMetric(4).set_fit_request(neighbors=True)
        search = GridSearchCV(make_pipeline(metric, KNeighborsClassifier(3)), {"tripletmetric__n_neighbors": [3]}, cv=3,
                              error_score="raise")  # fmt: skip
        with pytest.raises(ts.InputError, match="cut rows only, TripletMetricCV takes the part of each fold itself"):
            search.fit(X, Y, neighbors=neighbors)


@pytest.mark.parametrize("triplets", ["knn", "lmnn"])
@pytest.mark.parametrize(
    "cv", [2, 5, StratifiedKFold(4, shuffle=True, random_state=1), ShuffleSplit(2, random_state=0, train_size=0.3)]
)
def test_folds_that_share_a_search_have_the_triplets_of_their_own(cv, triplets, monkeypatch):
    seen = []
    make = module.LabelledMetric._make_triplets

    def watched(self, Z, y, weights, neighbors=None):
        T = make(self, Z, y, weights, neighbors)
        own = make(self, Z, y, weights)
        seen.append((type(neighbors).__name__, T.same_as(own)))
        return T

    monkeypatch.setattr(module.LabelledMetric, "_make_triplets", watched)
    y = np.where(np.arange(len(Y)) < 4, 9, Y)  # a class that is smaller than n_neighbors
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"candidates": [None], "ratios": 2, "smallest_ratio": 0.3, "cv": cv, "rounds": 2}
        monkeypatch.setattr(module, "choose_candidate", lambda starts, *_: (starts[-1], 1))
        ts.TripletMetricCV(6, triplets=triplets, **options).fit(X.round(0), y)
    assert all(same for _, same in seen)
    assert {name for name, _ in seen} == {"Found", "NoneType"}  # of the first round, and of the next one


def test_a_cross_validation_searches_once(monkeypatch):
    asked = []

    def watched(X, *arguments, **named):
        asked.append(len(X))
        return nearest(X, *arguments, **named)

    monkeypatch.setattr("triscreen.triplets.shared.nearest", watched)
    monkeypatch.setattr("triscreen.triplets.knn.nearest", watched)
    ts.TripletMetricCV(candidates=[None, "identity"], ratios=2, smallest_ratio=0.3).fit(X, Y)
    assert asked == [178]
