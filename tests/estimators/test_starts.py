"""Metrics to begin with: closed forms, their scale, and what counts as one."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.covariance import shrunk_covariance
from sklearn.datasets import load_wine
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import scale

import triscreen as ts
from triscreen.estimators.starts import make_start, moved, name_of, scale_of, within_class

X, Y = load_wine(return_X_y=True)
X = scale(X)


def losses_of(N, T, gamma):
    """Return the mean loss of s N, triplet by triplet, as a function of s."""
    i, j, k = T.indices().T
    Z = moved(X, N)
    margins = np.square(Z[i] - Z[k]).sum(axis=1) - np.square(Z[i] - Z[j]).sum(axis=1)

    def loss(s):
        m = s * margins
        a = np.clip((1 - m) / gamma, 0, 1) if gamma else (m < 1).astype(float)
        return float(np.mean(a * (1 - m) - gamma / 2 * a * a))

    return loss


def test_within_is_the_inverse_of_the_shrunk_covariance_within_classes():
    rest = np.concatenate([X[c == Y] - X[c == Y].mean(axis=0) for c in range(3)])
    S = shrunk_covariance(rest.T @ rest / len(X), shrinkage=0.1)
    assert within_class(X, Y) == pytest.approx(np.linalg.inv(S), rel=1e-8)
    assert within_class(X, Y, "diagonal") == pytest.approx(1 / (0.9 * np.diag(rest.T @ rest) / len(X) + 0.1 * np.trace(
        rest.T @ rest / len(X)) / 13), rel=1e-10)  # fmt: skip


def test_within_survives_classes_of_one_point_and_more_features_than_points():
    rng = np.random.default_rng(0)
    assert np.array_equal(within_class(np.eye(3), [0, 1, 2]), np.eye(3))
    N = within_class(rng.normal(size=(8, 20)), np.arange(8) % 2)
    values = np.linalg.eigvalsh(N)
    assert values[0] > 0
    assert values[-1] == pytest.approx(values[-2])  # outside the span of the points, all directions are alike


def test_directions_in_which_no_point_differs_have_no_weight():
    """Three columns of categories always have the sum 1: its direction had the largest weight, and was z0 of all."""
    rng = np.random.default_rng(0)
    kind, y = rng.integers(0, 3, 90), rng.integers(0, 2, 90)
    Z = np.column_stack([np.eye(3)[kind], np.ones(90), rng.normal(size=(90, 2)) + y[:, None], 2.0 * y])
    N = within_class(Z, y)
    for none in ([1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0, 0]):
        assert N @ none == pytest.approx(np.zeros(7), abs=1e-12 * N.max())
    assert np.linalg.matrix_rank(N) == 5  # the last feature tells the classes apart and has no variance within them
    assert N[6, 6] == pytest.approx(N.max())
    with_all = np.linalg.inv(shrunk_covariance(_within(Z, y), shrinkage=0.1))
    differences = Z[:45] - Z[45:]
    squares = [np.einsum("ij,jk,ik->i", differences, metric, differences) for metric in (N, with_all)]
    assert squares[0] == pytest.approx(squares[1], rel=1e-9)
    model = ts.TripletMetric(prior="within").fit(scale(Z), y)
    assert np.ptp(model.transform(scale(Z))[:, 0]) > 0.1


def _within(Z, y):
    rest = np.concatenate([Z[y == c] - Z[y == c].mean(axis=0) for c in np.unique(y)])
    return rest.T @ rest / len(Z)


@pytest.mark.parametrize("gamma", [0.05, 0.0, 1.0])
@pytest.mark.parametrize("kind", ["knn", "given", "all"])
def test_the_scale_is_the_smallest_whose_loss_is_nearly_least(gamma, kind):
    N = within_class(X, Y)
    T = ts.all_triplets(X, Y, 2) if kind == "all" else ts.knn_triplets(moved(X, N), Y, 3)
    T = ts.given_triplets(T.indices()) if kind == "given" else T
    loss = ts.Hinge() if gamma == 0 else ts.SmoothedHinge(gamma)
    s = scale_of(N, X, T, loss, 1)
    grid = s * np.geomspace(0.05, 50, 400)
    loss_of = losses_of(N, T, gamma)
    losses = np.array([loss_of(t) for t in grid])
    assert loss_of(s) <= losses.min() + 1.1e-3
    assert loss_of(0.99 * s) > losses.min() + 0.9e-3 or (losses[grid < 0.99 * s] > losses.min() + 9e-4).all()


def test_a_start_that_is_worse_than_nothing_is_not_used():
    """Positives far away, negatives near: in every metric along this axis the triplets are the wrong way round."""
    points = np.array([[0.0, 0.0], [3.0, 0.1], [0.5, 1.0], [3.2, 1.1]])
    T = ts.given_triplets([[0, 1, 2], [2, 3, 0]])
    N = np.diag([1.0, 0.0])
    assert scale_of(N, points, T, ts.SmoothedHinge(), 1) == 0
    with pytest.warns(ts.DegenerateProblemWarning, match="it is not used"):
        model = ts.TripletMetric(1, prior=N, lam=1.0).fit(points, [0, 0, 1, 1])
    assert model.prior_ is None
    assert model.prior_scale_ == 0


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
@pytest.mark.parametrize("prior", ["identity", "within"])
def test_with_a_large_lambda_the_metric_is_the_prior(prior, cone):
    model = ts.TripletMetric(prior=prior, cone=cone, lam_ratio=1.0).fit(X, Y)
    assert model.converged_
    size = np.linalg.norm(model.prior_)
    assert np.linalg.norm(model.solution_.M - model.prior_) <= 0.0101 * size
    assert model.prior_ == pytest.approx(model.prior_scale_ * make_start(prior, X, Y, cone))


def test_neighbours_are_chosen_by_the_prior_or_by_euclid():
    by_prior, by_euclid = (ts.TripletMetric(3, prior="within", neighbors=n).fit(X, Y) for n in ("prior", "euclid"))
    Z = moved(X, within_class(X, Y))
    for model, T in ((by_prior, ts.knn_triplets(Z, Y, 3)), (by_euclid, ts.knn_triplets(X, Y, 3))):
        problem = ts.Problem(X, T, prior=model.prior_)
        assert model.lam_ == 1e-3 * problem.lambda_max()
        assert problem.certificate(model.solution_.M, model.lam_).rel_gap <= 1.01e-4


def test_yesterdays_model_is_the_prior_of_today():
    yesterday = ts.TripletMetric().fit(X[::2], Y[::2])
    today = clone(ts.TripletMetric(prior=FrozenEstimator(yesterday))).fit(X, Y)
    assert today.prior_ == pytest.approx(today.prior_scale_ * yesterday.get_mahalanobis_matrix(), rel=1e-9)
    as_array = ts.TripletMetric(prior=yesterday.get_mahalanobis_matrix()).fit(X, Y)
    assert np.array_equal(as_array.components_, today.components_)


@pytest.mark.parametrize(
    ("prior", "said"),
    [
        ("euclid", "prior='euclid': it must be None, 'identity', 'within', an array or a metric"),
        (ts.TripletMetric().fit(X[::4], Y[::4]), r"clone would make it forget its metric; pass sklearn.frozen"),
        (3.0, "prior=3.0: it must be None"),
        (np.eye(4), r"prior has shape \(4, 4\): X has 13 features"),
        (-np.eye(13), "prior has the eigenvalue -1"),
    ],
)
def test_what_is_no_start_is_refused_in_a_sentence(prior, said):
    with pytest.raises(ts.InputError, match=said):
        ts.TripletMetric(prior=prior).fit(X, Y)


def test_neighbors_is_a_choice_of_two():
    with pytest.raises(ts.InputError, match="neighbors='metric'"):
        ts.TripletMetric(neighbors="metric").fit(X, Y)


@pytest.mark.parametrize(
    ("prior", "said"),
    [
        ([[1.0, 0.0], [0.0]], r"prior=\[\[1.0, 0.0\], \[0.0\]\]: it must be None, 'identity', 'within', an array or"),
        (1e200 * np.eye(13), r"prior has a largest magnitude of 1e\+200: it must lie between 1e-150 and 1e\+150"),
        (1e-200 * np.eye(13), "prior has a largest magnitude of 1e-200: it must lie between"),
    ],
)
def test_rows_of_different_lengths_and_numbers_beyond_all_are_no_start(prior, said):
    with pytest.raises(ts.InputError, match=said):
        ts.TripletMetric(prior=prior).fit(X, Y)


def test_an_array_may_have_any_scale_for_points_of_any_scale():
    """Its scale is chosen anyway."""
    a = ts.TripletMetric(prior=np.eye(13)).fit(X * 2.0**150, Y)
    b = ts.TripletMetric(prior="identity").fit(X, Y)
    assert a.prior_scale_ * 2.0**300 == pytest.approx(b.prior_scale_, rel=1e-9)


def test_a_table_calls_every_kind_of_array_an_array():
    frame = pytest.importorskip("pandas").DataFrame(np.eye(13))
    named = {"array": [frame, np.eye(13), np.eye(13).tolist()], "metric": [FrozenEstimator(ts.TripletMetric())]}
    assert all(name_of(start) == name for name, starts in named.items() for start in starts)


# Whether that pair still pulls at the prior, or nothing does, hangs on how a processor rounds.
@pytest.mark.filterwarnings("ignore:the prior is pulled nowhere:triscreen.errors.DegenerateProblemWarning")
@pytest.mark.parametrize("eps", [1e-8, 1e-16, 1e-30])
def test_one_pair_of_almost_equal_points_does_not_blow_up_the_scale(eps):
    """Only an enormous scale would give the first comparison a margin of 1, and nothing could be solved there."""
    points = np.array([[0.0], [eps], [2 * eps], [1.0], [1.1], [5.0]])
    model = ts.ComparisonMetric(preprocessor=points, prior="identity").fit([[0, 1, 2], [3, 4, 5], [4, 3, 5]])
    assert model.converged_
    assert model.prior_scale_ <= 1e12
