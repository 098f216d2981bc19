"""The default lambda looks at the data where that matters; comparisons choose it by folds."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import triscreen as ts
from problems import comparisons
from triscreen.estimators import choosing
from triscreen.estimators.choosing import PLAIN, RATIOS, held_out_comparisons, held_out_points
from triscreen.selection import comparison_error, vote_scores


def wide_classes(seed=0, n=240, d=80):
    """Classes that differ along few of many features: small lambdas learn noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    X = rng.normal(size=(n, d))
    X[:, :6] += 2.2 * np.random.default_rng(99).normal(size=(4, 6))[y]
    return X, y


def wide_comparisons(seed=0, n=200, m=1500, d=70, wrong=0.1):
    """Comparisons by three of many features, some of them answered wrongly."""
    rng = np.random.default_rng(seed)
    X, rows = rng.normal(size=(n, d)), rng.integers(0, n, (m, 3))
    rows = rows[[len(set(row)) == 3 for row in rows.tolist()]]
    near, far = (((X[rows[:, 0], :3] - X[rows[:, c], :3]) ** 2).sum(axis=1) for c in (1, 2))
    turned = (near > far) ^ (rng.random(len(rows)) < wrong)
    return X, np.where(turned[:, None], rows[:, [0, 2, 1]], rows)


def test_with_few_features_the_default_is_a_number():
    X, y = wide_classes(d=20)
    model, plain = ts.TripletMetric().fit(X, y), ts.TripletMetric(lam_ratio=PLAIN).fit(X, y)
    np.testing.assert_array_equal(model.components_, plain.components_)
    assert (model.lam_ratio_, model.ratios_, model.held_out_scores_) == (PLAIN, None, None)
    assert ts.TripletMetric(lam=0.1).fit(X, y).lam_ratio_ is None


def test_with_many_features_held_out_points_choose():
    X, y = wide_classes()
    model = ts.TripletMetric().fit(X, y)
    train, test = held_out_points(y)
    assert model.converged_
    assert model.lam_ == pytest.approx(model.lam_ratio_ * ts.Problem(X, ts.knn_triplets(X, y, 5)).lambda_max())
    # The walk began at the top, and ended two steps after the score had stopped rising: never at the bottom.
    scores, n = model.held_out_scores_, len(model.ratios_)
    np.testing.assert_array_equal(model.ratios_, RATIOS[:n])
    assert 3 <= n < len(RATIOS)
    assert scores[-2:].max() <= scores[:-2].max() + 5e-3
    assert all(scores[t - 1 : t + 1].max() > scores[: t - 1].max() + 5e-3 for t in range(2, n - 1))
    assert scores[list(model.ratios_).index(model.lam_ratio_)] >= scores.max() - 5e-3
    # The scores are those of held-out points, by metrics that have not seen them.
    part = ts.Problem(X[train], ts.knn_triplets(X[train], y[train], 5))
    L = ts.solve(part, model.ratios_[0] * part.lambda_max())
    Z = X @ np.linalg.cholesky(L.M + 1e-12 * np.eye(X.shape[1]))
    assert scores[0] == pytest.approx(vote_scores(Z[train], y[train], Z[test], y[test], 3)[0], abs=0.02)
    # It pays on new points, too.
    X_new, y_new = wide_classes(seed=1)

    def score(metric):
        return vote_scores(metric.transform(X), y, metric.transform(X_new), y_new, 3)[0]

    assert score(model) >= score(ts.TripletMetric(lam_ratio=PLAIN).fit(X, y)) - 0.002


@pytest.mark.filterwarnings("ignore::triscreen.ConvergenceWarning")
def test_the_choice_keeps_to_options():
    X, y = wide_classes(n=120)
    weights = np.where(y == 0, 2.0, 1.0)
    near = np.argsort(((X[:, None] - X[None]) ** 2).sum(axis=2), axis=1)
    for options, more in (({"prior": "within"}, {}), ({"rounds": 2}, {"sample_weight": weights}),
                          ({"triplets": "lmnn"}, {}), ({}, {"neighbors": near})):  # fmt: skip
        model = ts.TripletMetric(tol=1e-2, **options).fit(X, y, **more)
        assert model.ratios_ is not None
        assert model.ratios_[0] == (0.03 if "prior" in options else 0.3)
        assert model.lam_ratio_ in model.ratios_
    short = ts.TripletMetric(max_seconds=1e-3).fit(X, y)
    assert short.components_.shape[1] == X.shape[1]
    states = []
    ts.TripletMetric(callback=lambda state: states.append(state) or True).fit(X, y)
    assert len({state.lam for state in states}) == 2  # of the first walk and of the fit: both ended at once
    with pytest.raises(ts.InputError, match="lam_ratio='best': it must be a positive number, or 'auto'"):
        ts.TripletMetric(lam_ratio="best").fit(X, y)


def test_who_is_held_out():
    y = np.repeat([0, 1, 2, 3], [100, 50, 7, 3])
    train, test = held_out_points(y)
    assert sorted([*train, *test]) == list(range(160))
    assert np.bincount(y[test], minlength=4).tolist() == [20, 10, 1, 0]
    assert held_out_points(y[:60]) is None  # 12 points say nothing
    rows = comparisons(0)[1]
    train, test = held_out_comparisons(rows)
    assert sorted([*train, *test]) == list(range(len(rows)))
    assert not set(rows[train, 0]) & set(rows[test, 0])
    assert held_out_comparisons(rows[:30]) is None


@pytest.mark.parametrize(
    ("scores", "looked", "ratio"),
    [
        # Of usps, 20newsgroups and cifar10: the second is hardly better than the first, the third is.
        ((0.9387, 0.9390, 0.9468, 0.9484, 0.9488, 0.9473), 5, 0.03),
        ((0.7358, 0.7387, 0.7499, 0.7493, 0.7399, 0.7286), 5, 0.03),
        ((0.2370, 0.2382, 0.2480, 0.2441, 0.2377, 0.2257), 5, 0.03),
        ((0.6212, 0.6065, 0.6070, 0.7000), 3, 0.3),
        ((0.9980, 1.0), 1, 0.3),  # nothing can rise by half a point
        ((0.9000, 0.9960, 1.0), 2, 0.1),
    ],
)
def test_a_walk_ends_after_two_scores_that_do_not_rise_or_where_none_can(scores, looked, ratio):
    X, y = wide_classes(n=60, d=8)
    seen, arguments = [], {"tol": 0.1, "max_seconds": None}

    def judge(_, L):
        seen.append(L)
        return scores[len(seen) - 1]

    problem = ts.Problem(X, ts.knn_triplets(X, y, 2))
    found = choosing.ratio_by_folds([lambda: problem], judge, arguments, lambda state: None)
    assert (len(seen), found.ratio) == (looked, ratio)
    np.testing.assert_array_equal(found.scores, [scores[:looked]])


def test_a_ratio_that_takes_more_than_half_of_all_passes_before_it_is_given_up(monkeypatch):
    """Each ratio takes more than the one before; where the score rises all the way, this is what ends the walk."""
    X, rows = wide_comparisons()
    monkeypatch.setattr(choosing, "_RISE_ALONE", -1.0)  # always worth a step more
    monkeypatch.setattr(choosing, "_WORK", 0.0)  # however small the problem
    states = []
    model = ts.ComparisonMetric(X, tol=1e-2, callback=lambda state: states.append((state.lam, state.passes))).fit(rows)
    looked = list(dict.fromkeys(lam for lam, _ in states))
    passes = [max(spent for lam, spent in states if lam == one) for one in looked]
    n = len(model.ratios_)
    assert 2 <= n < len(RATIOS)
    for t in range(1, n):
        assert passes[t] <= max(sum(passes[:t]) / 2, 20)
    most = max(sum(passes[:n]) / 2, 20)
    assert most < passes[n] < most + 5  # this one was not waited for
    assert model.lam_ratio_ in model.ratios_


def test_comparisons_look_too():
    X, rows = wide_comparisons()
    model = ts.ComparisonMetric(X).fit(rows)
    assert model.cv_scores_.shape == (1, len(model.ratios_))
    assert len(model.ratios_) < len(RATIOS)
    assert model.lam_ratio_ > PLAIN
    plain = ts.ComparisonMetric(X, lam_ratio=PLAIN, tol=1e-2).fit(rows)
    assert plain.ratios_ is None
    X_new, fresh = wide_comparisons(seed=1, wrong=0.0)
    assert model.score(X_new[fresh]) > plain.score(X_new[fresh])


def test_folds_by_item_choose_lambda():
    X, rows = wide_comparisons(d=12)
    splits = []

    class Watched(ts.ComparisonKFold):
        def split(self, X, y=None, groups=None):
            splits.append(X)
            return super().split(X, y, groups)

    model = ts.ComparisonMetric(X, lam="cv", cv=3).fit(rows)
    same = ts.ComparisonMetric(X, lam="cv", cv=Watched(3, by="item", random_state=0)).fit(rows)
    np.testing.assert_array_equal(same.components_, model.components_)
    np.testing.assert_array_equal(splits[0], rows)
    assert model.cv_scores_.shape == (3, len(model.ratios_))
    filled = model.cv_scores_.copy()
    for t in range(1, filled.shape[1]):  # a walk that has ended stays where it was
        filled[:, t] = np.where(np.isnan(filled[:, t]), filled[:, t - 1], filled[:, t])
    means = filled.mean(axis=0)
    assert means[list(model.ratios_).index(model.lam_ratio_)] >= means.max() - 1e-3
    # Each score is of items that its metric has never seen.
    train, test = next(ts.ComparisonKFold(3, by="item", random_state=0).split(rows))
    part = ts.Problem(X, ts.given_triplets(rows[train]))
    M = ts.solve(part, model.ratios_[0] * part.lambda_max()).M
    values, vectors = np.linalg.eigh(M)
    Z = X @ vectors * np.sqrt(np.maximum(values, 0))
    assert model.cv_scores_[0, 0] == pytest.approx(1 - comparison_error(Z, rows[test]), abs=0.03)
    # As points, where items that look alike are one.
    by_point = ts.ComparisonMetric(lam="cv", cv=ts.ComparisonKFold(3, by="anchor")).fit(X[rows])
    assert by_point.lam_ratio_ in RATIOS


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lam": "auto"}, "lam='auto': lam must be a positive number, 'cv', or None for lam_ratio"),
        ({"lam": "cv", "cv": 1}, "cv=1: cv must be a number of folds, at least 2, or a splitter"),
        ({"lam": "cv", "cv": "item"}, "cv='item': cv must be"),
        ({"lam": "cv", "cv": 25}, "take fewer folds, or by='anchor'"),
    ],
)
def test_wrong_choices(options, words):
    X, rows = comparisons(0)
    with pytest.raises(ts.InputError, match=words):
        ts.ComparisonMetric(X, **options).fit(rows)


def test_what_was_chosen_is_saved(tmp_path):
    X, rows = wide_comparisons(d=12, m=600)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ts.save(model := ts.ComparisonMetric(X, lam="cv", cv=2).fit(rows), tmp_path / "m")
    again = ts.load(tmp_path / "m")
    assert (again.lam, again.cv, again.lam_ratio_) == ("cv", 2, model.lam_ratio_)
    np.testing.assert_array_equal(again.cv_scores_, model.cv_scores_)


@pytest.mark.parametrize("d", [12, 80])  # by folds; by comparisons held out
def test_errors_of_held_out_comparisons_before_and_after(d, tmp_path):
    X, rows = wide_comparisons(d=d, m=600)
    model = ts.ComparisonMetric(X, **({"lam": "cv", "cv": 2} if d == 12 else {})).fit(rows)
    if d == 12:
        tests = [test for _, test in ts.ComparisonKFold(2, by="item", random_state=0).split(rows)]
    else:
        tests = [held_out_comparisons(rows)[1]]
    n = sum(map(len, tests))
    before, after = model.error_before_, model.error_after_
    assert model.n_held_out_ == n
    assert before[0] == pytest.approx(comparison_error(X, rows[np.concatenate(tests)]))
    chosen = list(model.ratios_).index(model.lam_ratio_)
    scores = [row[: chosen + 1][~np.isnan(row[: chosen + 1])][-1] for row in model.cv_scores_]
    assert after[0] == pytest.approx(1 - np.average(scores, weights=list(map(len, tests))))
    assert after[0] < before[0]
    for error, low, high in (before, after):
        assert low < error < high
    ts.save(model, tmp_path / "m")
    again = ts.load(tmp_path / "m")
    assert (again.error_before_, again.error_after_, again.n_held_out_) == (before, after, n)
    none = ts.ComparisonMetric(X, lam_ratio=0.1).fit(rows)
    assert (none.error_before_, none.error_after_, none.n_held_out_) == (None, None, 0)
