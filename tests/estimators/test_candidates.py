"""Where to begin is chosen on the folds, and never worse there than Euclid."""

from __future__ import annotations

import contextlib
import logging
from unittest import mock

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale

import triscreen as ts
from triscreen.estimators.candidates import FIRST, Candidate, choose_candidate, drop_hopeless, end_hopeless
from triscreen.estimators.starts import moved, within_class
from triscreen.selection import choose_start, vote_scores

X, Y = load_wine(return_X_y=True)
X = scale(X)


@pytest.fixture(scope="module")
def fitted():
    return ts.TripletMetricCV(cv=3).fit(X, Y)


def test_the_table_has_a_row_for_every_start_and_euclid_first(fitted):
    table = fitted.candidates_
    assert table["name"] == ["euclid", "none", "identity", "within"]
    assert table["alone"].shape == (4, 3)
    assert table["scores"].shape == (4, 3, 7)
    assert np.array_equal(table["alone"][0], table["alone"][1])  # no start, and the identity, are Euclid
    assert np.array_equal(table["alone"][0], table["alone"][2])
    assert fitted.chosen_ in table["name"]
    assert fitted.best_score_ >= table["alone"][0].mean()


def test_alone_is_the_start_itself_made_for_each_fold(fitted):
    from sklearn.model_selection import StratifiedKFold

    for k, (train, test) in enumerate(StratifiedKFold(3).split(X, Y)):
        N = within_class(X[train], Y[train])
        score = vote_scores(moved(X[train], N), Y[train], moved(X[test], N), Y[test], 3)[0]
        assert fitted.candidates_["alone"][3, k] == pytest.approx(score)


def test_votes_by_hand():
    rng = np.random.default_rng(0)
    Z, y, Z_test, y_test = (
        rng.normal(size=(40, 3)),
        rng.integers(0, 3, 40),
        rng.normal(size=(9, 3)),
        rng.integers(0, 4, 9),
    )
    total = right = 0
    for z, label in zip(Z_test, y_test, strict=True):
        near = np.argsort(np.square(Z - z).sum(axis=1))
        for k in range(1, 8):
            right += np.count_nonzero(y[near[:k]] == label)
            total += k
    score, accuracy = vote_scores(Z, y, Z_test, y_test, 3)
    assert score == pytest.approx(0.8 * right / total + 0.2 * accuracy)
    assert accuracy == KNeighborsClassifier(3).fit(Z, y).score(Z_test, y_test)
    assert vote_scores(Z[:4], y[:4], Z_test, y_test, 3)[0] <= 1  # fewer points than votes


def test_the_improvement_is_paired_over_the_folds(fitted):
    mean, error = fitted.improvement_
    assert -1 < mean < 1
    assert error >= 0


def test_where_metric_learning_does_not_help_the_fit_says_so(caplog):
    rng = np.random.default_rng(1)
    with caplog.at_level(logging.INFO, "triscreen"):
        model = ts.TripletMetricCV(cv=3, ratios=3).fit(rng.normal(size=(90, 4)), np.arange(90) % 2)
    mean, error = model.improvement_
    assert ("metric learning does not help here" in caplog.text) == (not mean > error)


def test_a_start_alone_is_a_metric_without_a_gap():
    """Classes that the start separates, and labels that nothing else explains: there is nothing to learn."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    points = np.stack([y + 0.01 * rng.normal(size=60), 100 * rng.normal(size=60)], axis=1)
    N = np.diag([1.0, 0.0])
    model = ts.TripletMetricCV(candidates=[N], cv=3, ratios=2).fit(points, y)
    assert model.chosen_ == "array"
    assert model.best_index_ == -1
    assert (model.lam_, model.dual_gap_, model.rel_gap_) == (np.inf, 0.0, 0.0)
    assert model.converged_
    assert model.path_ is None
    assert model.get_mahalanobis_matrix() == pytest.approx(N)
    assert model.improvement_[0] > 0.3


def test_the_simplest_of_equals_is_chosen():
    best, behind, bad = np.array([0.9, 0.8, 0.7]), np.array([0.89, 0.81, 0.7]), np.array([0.5, 0.8, 0.4])
    assert choose_start([bad, behind, best]) == 1
    assert choose_start([bad, best, behind]) == 1
    assert choose_start([best - 0.01, best]) == 1  # always behind by the same: no noise to hide in
    assert choose_start([np.full(3, np.nan), best]) == 1
    assert choose_start([best[:1], best[:1] + 0.1]) == 1


def made(name, prior, alone, scores):
    pair = [np.repeat(np.asarray(a, dtype=float)[..., None], 2, axis=-1) for a in (alone, scores)]
    return Candidate(name, prior, np.geomspace(1, 0.1, len(scores[0])), *pair)


def test_hopeless_starts_are_dropped_once_they_were_behind_in_every_fold():
    good = made("a", None, [0.5] * 5, [[0.8, 0.9]] * 5)
    bad = made("b", "within", [0.5] * 5, [[0.7, 0.8]] * 5)
    once = made("c", "identity", [0.5] * 5, [[0.9, 0.95], *[[0.1, 0.1]] * 4])
    drop_hopeless([good, bad, once], FIRST - 1)
    assert not any(c.dropped for c in (good, bad, once))
    drop_hopeless([good, bad, once], FIRST)
    assert (good.dropped, bad.dropped, once.dropped) == (0, FIRST, 0)


def test_starts_are_dropped_that_are_behind_by_more_than_two_paired_standard_errors():
    noise = 0.1 * np.sin(np.arange(8.0))  # of the folds, the same for all: what is paired does not see it
    good = made("a", None, [0.5] * 8, (0.8 + noise)[:, None])
    behind = 0.02 + np.array([-0.021, *np.full(7, 0.0)])  # ahead in the first fold
    bad = made("b", "within", [0.5] * 8, (0.8 + noise - behind)[:, None])
    near = made("c", "identity", [0.5] * 8, (0.8 + noise - 0.05 * np.cos(np.arange(8.0)) - 0.01)[:, None])
    gap = np.array([behind[:done].mean() / (behind[:done].std(ddof=1) / np.sqrt(done)) for done in range(2, 9)])
    first = 2 + int(np.argmax((gap > 2) & (np.arange(2, 9) >= FIRST)))
    assert FIRST < first <= 8
    for done in range(1, 9):
        drop_hopeless([good, bad, near], done)
        assert (good.dropped, bad.dropped, near.dropped) == (0, first if done >= first else 0, 0)


def test_paths_of_later_folds_end_before_ratios_that_are_far_behind():
    noise = 0.1 * np.sin(np.arange(6.0))[:, None]
    rising = made("a", None, [0.5] * 6, noise + np.array([0.5, 0.6, 0.7]))
    falling = made("b", "within", [0.5] * 6, noise + np.array([0.7, 0.4, 0.6, 0.5]))
    moving = 0.3 * np.cos(5 * np.arange(6.0))[:, None] * np.array([0, 0, 1])
    unsure = made("c", "identity", [0.5] * 6, noise + np.array([0.5, 0.6, 0.4]) + moving)
    dropped = made("d", np.eye(2), [0.5] * 6, noise + np.array([0.7, 0.4]))
    dropped.dropped = 1
    everyone = [rising, falling, unsure, dropped]
    end_hopeless(everyone, FIRST - 1)
    assert [c.until for c in everyone] == [None] * 4
    end_hopeless(everyone, FIRST)
    assert [c.until for c in everyone] == [3, 1, 3, None]
    falling.scores[FIRST:, 1:] = np.nan  # not walked
    assert np.isnan(falling.filled()[:, 1:]).all()
    assert not np.isnan(falling.filled()[:, 0]).any()
    end_hopeless([falling], FIRST + 1)
    assert falling.until == 1
    assert choose_candidate([falling], np.zeros((6, 2)), False)[1] == 0


@pytest.mark.parametrize("ratios", [7, np.geomspace(1, 1e-4, 7)])
def test_ratios_that_are_given_are_all_looked_at(ratios, monkeypatch):
    def end(candidates, done):
        for candidate in candidates:
            candidate.until = 2

    monkeypatch.setattr("triscreen.estimators.trying.end_hopeless", end)
    model = ts.TripletMetricCV(cv=5, ratios=ratios, candidates=(None,)).fit(X, Y)
    walked = np.isfinite(model.cv_scores_).sum(axis=1)
    if np.ndim(ratios):
        assert walked.tolist() == [7] * 5
    else:
        assert walked[1:].tolist() == [2] * 4
        assert model.best_index_ <= 1


def test_what_later_folds_leave_out_changes_no_score_that_is_there(monkeypatch):
    few = ts.TripletMetricCV(cv=6).fit(X, Y)
    monkeypatch.setattr("triscreen.estimators.trying.end_hopeless", lambda candidates, done: None)
    monkeypatch.setattr("triscreen.estimators.trying.drop_hopeless", lambda candidates, done, leader=None: None)
    every = ts.TripletMetricCV(cv=6).fit(X, Y)
    seen, scores = few.candidates_["scores"], every.candidates_["scores"]
    there = np.isfinite(seen)
    assert np.array_equal(seen[there], scores[there])
    assert 0 < there.sum() < np.isfinite(scores).sum()
    assert np.array_equal(few.candidates_["alone"], every.candidates_["alone"])


def test_a_path_that_ended_early_counts_with_its_last_metric():
    early = made("a", "within", [0.5] * 3, [[0.8, np.nan, np.nan], [0.8, 0.9, 0.95], [0.8, 0.9, 0.95]])
    candidate, column = choose_candidate([early], np.full((3, 2), 0.1), False)
    assert candidate is early
    assert column == 2
    assert early.filled()[0, 2, 0] == 0.8


def test_euclid_is_chosen_where_nothing_is_better():
    worse = made("a", None, [0.9] * 3, [[0.5, 0.6]] * 3)
    assert choose_candidate([worse], np.full((3, 2), 0.9), False) == (None, None)


@pytest.mark.parametrize("candidates", ["within", [], None, np.eye(13), ["euclid"], [None, 7]])
def test_what_are_no_candidates_is_refused_in_a_sentence(candidates):
    with pytest.raises(ts.InputError, match="candidates="):
        ts.TripletMetricCV(candidates=candidates).fit(X, Y)


def test_two_starts_of_a_kind_have_names_of_their_own():
    model = ts.TripletMetricCV(candidates=[np.eye(13), 2 * np.eye(13)], cv=2, ratios=2).fit(X, Y)
    assert model.candidates_["name"] == ["euclid", "array 1", "array 2"]


def test_scores_fall_and_the_path_of_a_fold_ends():
    model = ts.TripletMetricCV(candidates=["within"], cv=3, ratios=7).fit(X, Y)
    for row in model.candidates_["scores"][1]:
        seen = row[~np.isnan(row)]
        assert len(seen) < 3 or not any(
            max(seen[t - 1], seen[t]) < seen[: t + 1].max() for t in range(2, len(seen) - 1)
        )


def test_a_round_is_a_candidate_behind_the_simpler_ones():
    parent = made("within", "within", [0.5] * 3, [[0.8, 0.9]] * 3)
    again = parent.again(1)
    assert (again.name, again.start, again.before) == ("within, round 2", "within", (1,))
    assert (again.again(0).name, again.again(0).before) == ("within, round 3", (1, 0))
    again.scores[:], again.alone[:] = parent.scores, parent.alone
    euclid = np.full((3, 2), 0.1)
    assert choose_candidate([again, parent], euclid, False)[0] is parent  # neighbours repeat: the same scores
    again.scores += 0.01
    assert choose_candidate([parent, again], euclid, False) == (again, 1)
    again.scores -= 0.02
    drop_hopeless([again], FIRST, parent)
    assert (again.dropped, parent.dropped) == (FIRST, 0)


def test_rounds_choose_neighbours_by_the_metric_that_was_chosen():
    """By hand: the path to the chosen ratio, neighbours by its last metric, and the path over these."""
    options = {"candidates": ["identity"], "cv": 3, "ratios": [0.01, 0.001], "tol": 1e-10}
    once = ts.TripletMetricCV(**options).fit(X, Y)
    with mock.patch("triscreen.estimators.cv.choose_candidate", lambda starts, *_: (starts[-1], 1)):
        twice = ts.TripletMetricCV(**options, rounds=2).fit(X, Y)
    assert (twice.chosen_, twice.n_rounds_, once.n_rounds_) == ("identity, round 2", 2, 1)
    assert twice.candidates_["name"] == ["euclid", "identity", "identity, round 2"]
    assert np.array_equal(twice.candidates_["alone"][1], twice.candidates_["alone"][2])
    first = ts.TripletMetric(prior="identity", lam_ratio=0.001, tol=1e-10).fit(X, Y)
    T = ts.knn_triplets(first.transform(X), Y, 5)
    assert not T.same_as(ts.knn_triplets(X, Y, 5))
    problem = ts.Problem(X, T, prior=twice.prior_)
    proof = problem.certificate(twice.get_mahalanobis_matrix(), twice.lam_)
    assert proof.rel_gap <= 1e-5
    assert twice.lam_ == pytest.approx(0.001 * problem.lambda_max())


def test_further_rounds_end_with_one_that_is_not_chosen():
    model = ts.TripletMetricCV(candidates=["identity"], cv=3, ratios=3, rounds=5).fit(X, Y)
    rounds = [name for name in model.candidates_["name"] if "round" in name]
    assert len(rounds) <= max(1, model.n_rounds_) < 5
    assert model.n_rounds_ == 1 or model.chosen_ == f"identity, round {model.n_rounds_}"


@pytest.mark.parametrize("rounds", [1, 2])
def test_a_resumed_choice_is_the_same(tmp_path, rounds):
    options = {"cv": 3, "ratios": 4, "rounds": rounds, "candidates": (None, "within")}
    whole = ts.TripletMetricCV(**options).fit(X, Y)
    seen = []

    class Killed(Exception):
        pass

    def kill(state):
        seen.append(state.lam)
        if len(seen) in (3, 11, 17):
            raise Killed

    model = ts.TripletMetricCV(**options, checkpoint=tmp_path / "kept", callback=kill)
    for _ in range(4):
        with contextlib.suppress(Killed):
            model.fit(X, Y)
    assert model.chosen_ == whole.chosen_
    for name in ("alone", "scores"):
        assert np.array_equal(model.candidates_[name], whole.candidates_[name], equal_nan=True)
    assert np.array_equal(model.components_, whole.components_)


def test_euclid_has_all_its_directions_and_is_no_choice_where_fewer_are_wanted():
    Z = np.hstack([np.random.default_rng(0).normal(size=(len(X), 3)), X])
    few = ts.TripletMetricCV(cv=3, ratios=2, n_components=2, candidates=("identity",)).fit(Z, Y)
    assert few.chosen_ == "identity"
    whole = ts.TripletMetricCV(cv=3, ratios=2, candidates=("identity",)).fit(Z, Y)
    assert np.array_equal(few.candidates_["alone"][0], whole.candidates_["alone"][0])


def test_a_fold_without_points_is_refused_in_a_sentence():
    with pytest.raises(ts.InputError, match="fold 0 has 178 points to learn from and 0 to score"):
        ts.TripletMetricCV(cv=[(np.arange(178), np.array([], dtype=int))]).fit(X, Y)


@pytest.mark.filterwarnings("ignore:max_seconds=None. time was over:triscreen.ConvergenceWarning")
def test_a_fold_that_time_did_not_allow_does_not_rule_out_every_path(monkeypatch):
    walk = ts.TripletMetricCV._walk

    def late(self, candidate, N, k, *more, **named):
        if k == 2:
            raise ts.OutOfTime("the time is over")
        return walk(self, candidate, N, k, *more, **named)

    Z = X * np.random.default_rng(0).uniform(0.01, 5, 13)
    assert ts.TripletMetricCV(cv=3, ratios=3, candidates=(None,)).fit(Z, Y).best_index_ >= 0
    monkeypatch.setattr(ts.TripletMetricCV, "_walk", late)
    assert ts.TripletMetricCV(cv=3, ratios=3, candidates=(None,)).fit(Z, Y).best_index_ >= 0


def test_a_start_whose_path_was_dropped_is_still_tried_alone(monkeypatch):
    def drop(candidates, done, leader=None):
        candidates[1].dropped = candidates[1].dropped or (done if done == FIRST else 0)

    monkeypatch.setattr("triscreen.estimators.trying.drop_hopeless", drop)
    model = ts.TripletMetricCV(cv=6, ratios=[0.03], candidates=("within", np.eye(13))).fit(X, Y)
    assert model.candidates_["dropped"].tolist() == [0, 0, FIRST]
    assert np.isnan(model.candidates_["scores"][2, FIRST:]).all()
    assert not np.isnan(model.candidates_["alone"]).any()
