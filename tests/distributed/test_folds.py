"""Starts in folds as tasks: the bits of a cross-validation in one process, whatever its options."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest
from kinds import noisy
from sklearn.frozen import FrozenEstimator

import triscreen as ts
from triscreen.distributed.here import Here
from triscreen.estimators import cluster, cv, tasks


class Counting(Here):
    """Counts the jobs."""

    done = 0

    def map(self, title, function, jobs, places=None, arrived=None, long=False):
        self.done += len(jobs)
        # What comes last arrives first: nothing may depend on it.
        order = range(len(jobs))[::-1]
        out = super().map(title, function, [jobs[i] for i in order], None, lambda i, tried: arrived(order[i], tried))
        return out[::-1]


@pytest.fixture
def pool(monkeypatch, tmp_path):
    """Tasks run in this process."""
    made = Counting(1)

    @contextmanager
    def crew_of(metric, X, y, weights, folds):
        if metric.scheduler is None:
            yield None
        else:
            (tmp_path / "files").mkdir(exist_ok=True)
            yield tasks.FoldCrew(
                made, tasks.Data.written(tmp_path / "files", X, y, weights, metric._given, folds), None
            )

    monkeypatch.setattr(cv, "crew_of", crew_of)
    return made


def same(metric, other):
    """Are two fits the same to the last bit, seconds apart?"""
    for name in (
        "chosen_",
        "n_rounds_",
        "best_index_",
        "lam_ratio_",
        "best_score_",
        "improvement_",
        "lam_",
        "rel_gap_",
    ):
        assert getattr(metric, name) == getattr(other, name), name
    for name in ("components_", "cv_scores_", "ratios_"):
        assert np.array_equal(getattr(metric, name), getattr(other, name), equal_nan=True), name
    for column in ("name", "alone", "ratios", "scores", "dropped"):
        assert np.array_equal(
            metric.candidates_[column], other.candidates_[column], equal_nan=column not in ("name", "dropped")
        ), column


X, Y = noisy()
METRIC = ts.TripletMetric(3, cone="diagonal").fit(X * [1, 0, 0, 1], Y)  # of half of what tells them apart
CASES = {
    "drops": {"cv": 5, "candidates": (None, "identity", "within", np.diag([1.0, 0, 0, 0]))},
    "rounds": {"cv": 4, "rounds": 3, "candidates": ("identity", FrozenEstimator(METRIC))},
    "diagonal": {"cv": 2, "cone": "diagonal", "gamma": 0.0},
    "triplet": {"cv": 2, "triplets": "lmnn", "scoring": "triplet", "n_components": 2, "one_standard_error": True},
    "certify": {"cv": 2, "ratios": 3, "smallest_ratio": 0.3, "candidates": (None,), "rounds": 2, "certify": 0.9},
    "ratios": {"cv": 2, "ratios": [0.5, 0.1, 0.02], "scoring": "accuracy", "triplets": "all", "candidates": [None]},
}


@pytest.mark.parametrize("case", CASES)
def test_tasks_give_the_bits_of_one_process(case, pool):
    options = {"n_neighbors": 3, "ratios": 5, **CASES[case]}
    weights = np.where(np.arange(len(X)) % 4, 1.0, 0.5) if case == "drops" else None
    labels = np.array(list("abc"), dtype=object)[Y] if case == "diagonal" else Y
    here = ts.TripletMetricCV(**options).fit(X, labels, sample_weight=weights)
    there = ts.TripletMetricCV(**options, scheduler="nobody").fit(X, labels, sample_weight=weights)
    same(there, here)
    assert pool.done >= 4
    assert case != "drops" or (here.candidates_["dropped"] > 0).any()
    assert case != "rounds" or any("round 2" in name for name in here.candidates_["name"])


def test_a_classifier_chooses_the_same_votes(pool):
    options = {"n_neighbors": 3, "ratios": 3, "cv": 3, "candidates": (None, "within"), "vote_neighbors": (1, 5)}
    here = ts.TripletClassifier(**options).fit(X, Y)
    there = ts.TripletClassifier(**options, scheduler="nobody").fit(X, Y)
    same(there, here)
    assert (there.vote_neighbors_, there.vote_weights_) == (here.vote_neighbors_, here.vote_weights_)
    assert np.array_equal(there.votes_["brier"], here.votes_["brier"])
    assert np.array_equal(there.predict_proba(X), here.predict_proba(X))


def test_neighbours_that_were_given_go_along(pool):
    near = np.argsort(((X[:, None] - X[None]) ** 2)[:, :, :2].sum(axis=2), axis=1)[:, 1:25]
    fits = [
        ts.TripletMetricCV(3, cv=2, ratios=3, candidates=(None, "within"), scheduler=who).fit(X, Y, neighbors=near)
        for who in (None, "nobody")
    ]
    same(*fits)
    plain = ts.TripletMetricCV(3, cv=2, ratios=3, candidates=(None, "within")).fit(X, Y)
    assert not np.array_equal(plain.candidates_["scores"], fits[0].candidates_["scores"], equal_nan=True)


def test_what_has_come_back_is_kept(pool, tmp_path):
    def fit(**more):
        options = {"cv": 3, "ratios": 3, "candidates": (None, "identity"), "checkpoint": tmp_path / "c", **more}
        return ts.TripletMetricCV(3, scheduler="nobody", **options).fit(X, Y)

    first = fit()
    assert pool.done == 9  # two starts and Euclid in three folds
    same(fit(), first)
    assert pool.done == 9
    fit(score_neighbors=5, checkpoint=tmp_path / "other")
    assert pool.done == 18
    file = min((tmp_path / "c").glob("tried-*.json"))
    file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(ts.InputError, match=r"checkpoint: .*tried-.*\.json' is damaged"):
        fit()
    file.unlink()
    same(fit(), first)
    assert pool.done == 19


def test_a_fold_that_is_refused_is_told_as_in_one_process(pool):
    folds = [(np.arange(60), np.arange(60, 90)), (np.flatnonzero(Y == 0), np.flatnonzero(Y))]
    told = []
    for who in (None, "nobody"):
        with pytest.raises(ts.InputError) as caught:
            ts.TripletMetricCV(3, cv=folds, scheduler=who).fit(X, Y)
        told.append(str(caught.value))
    assert told[0] == told[1]
    assert told[0].startswith("fold 1 of cv (30 points to learn from)")


def test_seconds_are_shared_by_tasks(pool):
    with pytest.warns(ts.ConvergenceWarning):
        metric = ts.TripletMetricCV(3, cv=2, max_seconds=0.05, tol=1e-12, scheduler="nobody").fit(X, Y)
    assert metric.components_.shape[1] == 4


@pytest.mark.parametrize(
    "options",
    [
        {"prior": "within", "rounds": 3},
        {"prior": "identity", "cone": "diagonal"},
        {"rounds": 4},
        {"prior": np.diag([1.0, 2.0, 3.0, 4.0]), "triplets": "lmnn", "rounds": 2},
        {"prior": "within", "triplets": "all"},
        {"prior": "within", "neighbors": "euclid"},
    ],
)
def test_priors_and_rounds_in_shards_are_those_of_one_process(options, monkeypatch):
    monkeypatch.setattr(cluster, "client_of", lambda scheduler: nullcontext(None))
    plain = ts.TripletMetric(3, tol=1e-8, **options).fit(X, Y)
    metric = ts.TripletMetric(3, tol=1e-8, **options, scheduler="nobody").fit(X, Y)
    assert metric.n_rounds_ == plain.n_rounds_
    assert metric.n_triplets_ == plain.n_triplets_
    assert metric.rel_gap_ <= 1e-8
    assert np.isclose(metric.prior_scale_, plain.prior_scale_, rtol=1e-9)
    assert (metric.prior_ is None) == (plain.prior_ is None)
    M, other = metric.get_mahalanobis_matrix(), plain.get_mahalanobis_matrix()
    assert np.allclose(M, other, rtol=0, atol=1e-4 * np.abs(other).max())


def test_a_prior_that_is_worse_than_nothing_is_not_used_in_shards_either(monkeypatch):
    monkeypatch.setattr(cluster, "client_of", lambda scheduler: nullcontext(None))
    far = np.array([[0.0, 0], [10, 0], [0, 1], [10, 1]] * 5) + 0.01 * np.arange(40).reshape(20, 2)
    with pytest.warns(ts.DegenerateProblemWarning, match="positives farther away than negatives: it is not used"):
        metric = ts.TripletMetric(1, prior=np.diag([1.0, 1e-9]), neighbors="euclid", triplets="all", scheduler="x").fit(
            far, np.array([0, 0, 1, 1] * 5)
        )
    assert metric.prior_ is None


def test_tasks_of_a_worker_read_once_and_keep_nothing(tmp_path, monkeypatch):
    data = tasks.Data.written(tmp_path, X, Y, None, None, [(np.arange(60), np.arange(60, 90))])
    read, made = tasks.Data.array, []
    monkeypatch.setattr(tasks.Data, "array", lambda *a: made.append(a[1]) or time.sleep(0.05) or read(*a))
    threads = [threading.Thread(target=tasks._read, args=(data, "knn", 3, n_jobs)) for n_jobs in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made.count("X") == 1
    points = weakref.ref(tasks._read(data, "knn", 3, 1)[0])
    tasks.forget(data)
    gc.collect()
    assert points() is None
