"""What the estimators learn, prove, refuse and save."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import triscreen as ts
from problems import comparisons


@pytest.fixture
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


# -- labels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("triplets", ["knn", "lmnn", "all"])
@pytest.mark.parametrize("cone", ["psd", "diagonal"])
def test_a_fit_is_the_certified_optimum_of_its_problem(wine, cone, triplets):
    X, y = wine
    model = ts.TripletMetric(n_neighbors=4, triplets=triplets, cone=cone, tol=1e-7).fit(X, y)
    T = {
        "knn": lambda: ts.knn_triplets(X, y, 4),
        "lmnn": lambda: ts.all_triplets(X, y, 4),
        "all": lambda: ts.all_triplets(X, y),
    }[triplets]()
    problem = ts.Problem(X, T, cone=cone)
    assert model.lam_ == pytest.approx(1e-3 * problem.lambda_max())
    certificate = problem.certificate(model.solution_.M, model.lam_)
    assert certificate.gap == pytest.approx(model.dual_gap_, rel=1e-6, abs=1e-12 * certificate.primal)
    assert model.converged_
    assert model.rel_gap_ <= 1e-7
    assert model.n_triplets_ == T.n_triplets
    M = np.diag(model.solution_.M) if cone == "diagonal" else model.solution_.M
    np.testing.assert_allclose(model.get_mahalanobis_matrix(), M, atol=1e-9 * np.abs(M).max())


def test_names_of_metric_learn(wine):
    X, y = wine
    model = ts.TripletMetric().fit(X, y)
    pairs = np.stack([X[:5], X[5:10]], axis=1)
    Z = model.transform(X)
    distances = np.linalg.norm(Z[:5] - Z[5:10], axis=1)
    np.testing.assert_allclose(model.pair_distance(pairs), distances)
    np.testing.assert_allclose(model.pair_score(pairs), -distances)
    with pytest.warns(FutureWarning, match="deprecated"):
        np.testing.assert_allclose(model.score_pairs(pairs), distances)
    metric = model.get_metric()
    assert metric(X[0], X[5]) == pytest.approx(distances[0])
    assert metric(X[0], X[5], squared=True) == pytest.approx(distances[0] ** 2)
    with pytest.raises(ts.InputError, match=r"pairs has shape \(178, 13\)"):
        model.pair_distance(X)
    with pytest.raises(ts.InputError, match="pairs has 3 features: this metric was learned from 13"):
        model.pair_distance(pairs[:, :, :3])


def test_components_are_truncated_but_the_proof_is_not(wine):
    X, y = wine
    whole, part = ts.TripletMetric().fit(X, y), ts.TripletMetric(n_components=2).fit(X, y)
    np.testing.assert_array_equal(part.components_, whole.components_[:2])
    assert part.rel_gap_ == whole.rel_gap_
    assert part.transform(X).shape == (178, 2)
    lengths = np.square(whole.components_).sum(axis=1)
    assert (np.diff(lengths) <= 0).all()


def test_rounds_choose_neighbours_again_and_end_early(wine):
    X, y = wine
    one, two = ts.TripletMetric().fit(X, y), ts.TripletMetric(rounds=2).fit(X, y)
    Z = one.transform(X)
    problem = ts.Problem(X, ts.knn_triplets(Z, y, 5))
    assert two.lam_ == pytest.approx(1e-3 * problem.lambda_max())
    assert problem.certificate(two.solution_.M, two.lam_).rel_gap <= 1e-4
    line = np.random.default_rng(0).normal(size=(30, 1)) + np.repeat([[0.0], [3.0]], 15, axis=0)
    many = ts.TripletMetric(n_neighbors=2, rounds=50).fit(line, np.repeat([0, 1], 15))
    assert many.n_rounds_ == 1  # one feature: neighbours cannot change
    assert ts.TripletMetric(triplets="all", rounds=5).fit(X, y).n_rounds_ == 1
    assert ts.TripletMetric(triplets="lmnn", rounds=2).fit(X, y, sample_weight=np.ones(178)).n_rounds_ == 2


def test_weights_are_those_of_anchors(wine):
    X, y = wine
    weights = np.random.default_rng(0).choice([0.0, 1.0, 4.0], len(X))
    for triplets in ("knn", "lmnn"):
        model = ts.TripletMetric(triplets=triplets, tol=1e-8).fit(X, y, sample_weight=weights)
        T = ts.knn_triplets(X, y, 5) if triplets == "knn" else ts.all_triplets(X, y, 5)
        indices = T.indices()
        keep = weights[indices[:, 0]] > 0
        problem = ts.Problem(X, ts.given_triplets(indices[keep], weights[indices[keep, 0]]))
        assert problem.certificate(model.solution_.M, model.lam_).rel_gap <= 1.01e-8


@pytest.mark.parametrize(
    ("weights", "match"),
    [
        (np.ones(3), r"sample_weight has shape \(3,\)"),
        (np.ones((178, 1)), r"sample_weight has shape \(178, 1\)"),
        (np.arange(178) - 1.0, r"sample_weight\[0\] is -1.0"),
        (np.zeros(178), "sample_weight is zero"),
        (0, "sample_weight is zero"),
        (np.full(178, np.nan), "sample_weight contains NaN"),
        (["heavy"] * 178, "could not convert"),
    ],
)
def test_weights_that_are_none_are_refused(wine, weights, match):
    for model in (ts.TripletMetric(), ts.TripletMetricCV()):
        with pytest.raises(ValueError, match=match):
            model.fit(*wine, sample_weight=weights)


def test_one_weight_for_all_points(wine):
    all_the_same = ts.TripletMetric(lam_ratio=0.1).fit(*wine, sample_weight=np.full(178, 2.0))
    np.testing.assert_array_equal(
        ts.TripletMetric(lam_ratio=0.1).fit(*wine, sample_weight=2).components_, all_the_same.components_
    )


def test_what_is_passed_through(wine):
    X, y = wine
    seen = []
    model = ts.TripletMetric(lam=50.0, gamma=0.0, solver="bb", screening=None, callback=seen.append, verbose=1).fit(
        X, y
    )
    assert model.lam_ == 50.0
    assert len(seen) == model.n_iter_
    with pytest.warns(ts.ConvergenceWarning, match="relative gap"):
        stopped = ts.TripletMetric(max_iter=1, tol=1e-10).fit(X, y)
    assert not stopped.converged_
    assert stopped.n_iter_ == 1


def test_singletons_and_small_classes_are_a_warning(wine):
    X, y = wine
    y = np.array(["a", "b", "c"], dtype=object)[y]
    y[0], y[1:3] = "alone", "two"
    with pytest.warns(ts.SmallClassWarning, match="'two'"):
        model = ts.TripletMetric().fit(X, y)
    assert model.converged_


def test_labels_without_order_in_space_give_a_metric_all_the_same():
    """S <= 0: M = 0 for every lambda; transform still returns something."""
    X = np.array([[0.0], [10.0], [1.0], [9.0]])
    with pytest.warns(ts.DegenerateProblemWarning):
        model = ts.TripletMetric(n_neighbors=1).fit(X, [0, 0, 1, 1])
    assert model.transform(X).shape == (4, 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n_neighbors": 0}, "n_neighbors=0"),
        ({"triplets": "some"}, "triplets='some': triplets must be one of 'knn', 'lmnn', 'all'"),
        ({"lam": -1}, "lam=-1: lam must be a positive number"),
        ({"lam_ratio": 0}, "lam_ratio=0"),
        ({"gamma": -1}, "gamma=-1"),
        ({"cone": "round"}, "cone='round'"),
        ({"rounds": 0}, "rounds=0"),
        ({"n_components": 14}, "n_components=14: X has 13 features"),
        ({"tol": 0}, "tol=0"),
        ({"solver": "dual", "triplets": "all"}, "solver='dual'.*never listed"),
    ],
)
def test_wrong_parameters(wine, arguments, words):
    with pytest.raises(ts.InputError, match=words):
        ts.TripletMetric(**arguments).fit(*wine)


def test_wrong_data(wine):
    X, y = wine
    with pytest.raises(ValueError, match="one class only"):
        ts.TripletMetric().fit(X, np.zeros(178))
    with pytest.raises(ValueError, match="NaN"):
        ts.TripletMetric().fit(np.where(X > 2, np.nan, X), y)
    with pytest.raises(ValueError, match="Unknown label type"):
        ts.TripletMetric().fit(X, X[:, 0])
    with pytest.raises(NotFittedError):
        ts.TripletMetric().transform(X)
    with pytest.raises(ValueError, match="12 features, but TripletMetric is expecting 13"):
        ts.TripletMetric().fit(X, y).transform(X[:, 1:])


# -- cross-validation ------------------------------------------------------------------------------------------------


def test_triplet_accuracy_by_hand():
    from triscreen.selection import choose, triplet_accuracy

    Z, y = np.array([[0.0], [1.0], [5.0]]), np.array([0, 0, 1])
    # Anchor 0.4 of class 0: positives at 0.4 and 0.6, negative at 4.6; 4 of class 1: positive at 1, negatives at 3, 4.
    assert triplet_accuracy(Z, y, np.array([[0.4], [4.0]]), np.array([0, 1]), 5) == 1.0
    assert triplet_accuracy(Z, y, np.array([[4.5]]), np.array([0]), 1) == 0.0
    assert choose(np.array([[0.5, 0.9, 0.9], [0.5, 0.9, 0.8]])) == 1
    assert choose(np.array([[0.5, np.nan], [0.5, 0.9]])) == 0


def test_a_small_lambda_is_walked_to(wine):
    X, y = wine
    seen = []
    assert ts.TripletMetric(lam_ratio=1e-6, callback=seen.append).fit(X, y).n_iter_ == len(seen)
    assert len({state.lam for state in seen}) > 3  # callbacks see the walk, and can end it
    stopped = ts.TripletMetric(lam_ratio=1e-6, callback=lambda state: True).fit(X, y)
    assert (stopped.n_iter_, stopped.converged_, stopped.solution_.stopped_by) == (1, False, "callback")
    model = ts.TripletMetric(lam_ratio=1e-6, tol=1e-5).fit(X, y)
    assert model.converged_
    problem = ts.Problem(X, ts.knn_triplets(X, y, 5))
    assert problem.certificate(model.solution_.M, model.lam_).rel_gap <= 1.01e-5


def test_what_an_attack_found(wine, tmp_path):
    from triscreen.selection import choose

    X, y = wine
    nan = np.nan
    assert choose(np.array([[nan] * 3, [0.5, nan, nan], [1.0, 1.0, 1.0]])) == 0
    assert choose(np.array([[nan, nan], [0.95, 0.99], [0.95, 0.95]]), True) == 0
    with pytest.raises(ts.InputError, match="it gives no folds"):
        ts.TripletMetricCV(cv=[]).fit(X, y)
    for ratios in ([np.inf, 0.1], ["a", "b"]):
        with pytest.raises(ts.InputError, match="ratios"):
            ts.TripletMetricCV(ratios=ratios).fit(X, y)
    with pytest.raises(ts.InputError, match="callback=3"):
        ts.TripletMetric(callback=3).fit(X, y)
    unfitted = ts.TripletMetric()
    with pytest.raises(ts.InputError):
        unfitted.fit(X, np.zeros(178))
    with pytest.raises(NotFittedError):
        unfitted.transform(X)
    line = np.linspace(0, 1, 60)[:, None]  # M = 0 in the first round: no neighbours by such a metric
    with pytest.warns(ts.DegenerateProblemWarning):
        assert ts.TripletMetric(n_neighbors=3, rounds=3).fit(line, np.arange(60) % 2).n_rounds_ == 1
    assert ts.TripletMetric(rounds=3, callback=lambda state: True).fit(X, y).n_rounds_ == 1
    with pytest.raises(ts.InputError, match="preprocessor is a ndarray"):
        ts.save(ts.ComparisonMetric(preprocessor=X.astype(object)), tmp_path / "model")


# -- files -----------------------------------------------------------------------------------------------------------


def test_estimators_are_saved_and_loaded_without_pickle(wine, tmp_path):
    X, y = wine
    rows = comparisons(0)
    models = [
        ts.TripletMetric(screening=ts.Screening(("pgb", "mid")), callback=lambda s: None).fit(X, y),
        ts.TripletMetricCV(ratios=3, cv=2).fit(X, y),
        ts.ComparisonMetric(preprocessor=rows[0]).fit(rows[1]),
        ts.TripletMetric(n_neighbors=7),
    ]
    for model in models:
        ts.save(model, tmp_path / "model")
        again = ts.load(tmp_path / "model")
        assert type(again) is type(model)
        assert str(again.get_params()["screening"]) == str(model.get_params()["screening"])
        assert again.get_params()["callback"] is None
        if hasattr(model, "components_"):
            np.testing.assert_array_equal(again.components_, model.components_)
            assert again.rel_gap_ == model.rel_gap_
            assert again.solution_.gap == model.solution_.gap
            points = X if model.n_features_in_ == 13 else rows[0]
            np.testing.assert_array_equal(again.transform(points), model.transform(points))
        if hasattr(model, "path_"):
            np.testing.assert_array_equal(again.path_.M(1), model.path_.M(1))
            np.testing.assert_array_equal(again.cv_scores_, model.cv_scores_)
    with pytest.raises(ts.InputError, match="obj is a dict"):
        ts.save({}, tmp_path / "model")


def test_code_is_not_saved_but_the_rest_is(wine, tmp_path):
    from sklearn.model_selection import StratifiedKFold

    X, y = wine
    model = ts.TripletMetricCV(ratios=3, cv=StratifiedKFold(2), scoring=lambda e, X, y: e.score(X, y)).fit(X, y)
    model.set_output(transform="pandas")
    with pytest.warns(UserWarning, match="cv, scoring: not saved"):
        ts.save(model, tmp_path / "model")
    again = ts.load(tmp_path / "model")
    assert (again.cv, again.scoring) == (None, None)
    assert list(again.transform(X).columns) == list(model.get_feature_names_out())
    np.testing.assert_array_equal(again.cv_scores_, model.cv_scores_)


def test_a_table_as_preprocessor_names_the_features(tmp_path):
    import pandas as pd

    X, rows = comparisons(0)
    table = pd.DataFrame(X, columns=list("abcd"))
    model = ts.ComparisonMetric(preprocessor=table).fit(rows)
    assert list(model.feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        model.transform(table.rename(columns={"a": "z"}))
    ts.save(model, tmp_path / "model")
    assert ts.load(tmp_path / "model").score(rows) == model.score(rows)
    with pytest.raises(ts.InputError, match=r"triplets has shape \(250, 3, 4\).*rows of the preprocessor"):
        ts.ComparisonMetric(preprocessor=X).fit(X[rows])


def test_an_onnx_model_transforms_the_same(wine):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    from triscreen.estimators.onnx import to_onnx

    X, y = wine
    model = ts.TripletMetric(n_components=3).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = runtime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    (out,) = session.run(None, {"X": X.astype(np.float32)})
    np.testing.assert_allclose(out, model.transform(X), rtol=1e-4, atol=1e-5)


# -- scaling, pipelines, checkpoints ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["none", "minmax", "standard", "libsvm"])
def test_scaling_is_that_of_scikit_learn(kind):
    from sklearn.preprocessing import MinMaxScaler

    X = np.random.default_rng(0).normal(3, 5, (40, 4))
    X[:, 2] = 0.1  # its mean is not 0.1
    peers = {"minmax": MinMaxScaler(), "standard": StandardScaler(), "libsvm": MinMaxScaler((-1, 1))}
    Z = ts.Scaling(kind).fit_transform(X)
    expected = X.copy() if kind == "none" else peers[kind].fit_transform(X)
    if kind != "none":
        expected[:, 2] = 0.0
    np.testing.assert_allclose(Z, expected, atol=1e-12)
    with pytest.raises(ts.InputError, match="kind='other': kind must be one of"):
        ts.Scaling("other").fit(X)
    with pytest.raises(ts.InputError, match="feature_names has 1 names: X has 4 features"):
        ts.Scaling(kind).fit(X, feature_names=["a"])


def test_a_pipeline_of_our_estimators_is_saved(wine, tmp_path):
    X, y = load_wine(return_X_y=True)
    names = [f"f{i}" for i in range(13)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # X has no names
        model = make_pipeline(ts.Scaling("libsvm"), ts.TripletMetric()).fit(X, y, scaling__feature_names=names)
    ts.save(model, tmp_path / "model")
    again = ts.load(tmp_path / "model")
    assert [name for name, _ in again.steps] == ["scaling", "tripletmetric"]
    assert again[0].feature_names_in_.tolist() == names
    assert again[1].solution_.gap == model[1].solution_.gap
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # X has no names
        np.testing.assert_array_equal(again.transform(X), model.transform(X))
    with pytest.raises(ts.InputError, match="the step 'rbfsampler' of the pipeline is a RBFSampler"):
        ts.save(make_pipeline(RBFSampler(), ts.TripletMetric()), tmp_path / "other")
    assert not (tmp_path / "other").exists()
