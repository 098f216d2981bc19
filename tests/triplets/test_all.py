"""All triplets, never listed: the same numbers as with a list, at the cost of pairs."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import triscreen as ts
from oracles import alpha_of, brute_knn, loss_values, matrices
from triscreen.problem.curvature import Curvature
from triscreen.triplets import all as never_listed
from triscreen.triplets._all_distances import PairList, Quadratic, grain_of

LOSSES = [ts.SmoothedHinge(0.05), ts.SmoothedHinge(3.0), ts.Hinge()]


def data(seed, n=40, d=3, classes=3):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    y[: 2 * classes] = np.repeat(np.arange(classes), 2)
    return rng.normal(size=(n, d)) + 0.7 * rng.normal(size=(classes, d))[y], y


def twins(X, y, n_positives=None, weights=None, **arguments):
    """The problem, and the same one listed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.SmallClassWarning)
        T = ts.all_triplets(X, y, n_positives, weights)
    indices = T.indices()
    listed = ts.given_triplets(indices, None if weights is None else np.asarray(weights)[indices[:, 0]])
    return ts.Problem(X, T, **arguments), ts.Problem(X, listed, **arguments)


def metric(seed, d, cone, scale=1.0):
    F = np.random.default_rng(seed).normal(size=(d, d)) * np.sqrt(scale / d)
    return F @ F.T if cone == "psd" else np.square(F).sum(axis=0)


# -- which triplets ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [None, 1, 3])
def test_the_triplets_are_all_of_them(k):
    X, y = data(0, n=20)
    y[7] = 9  # a singleton: no anchor, but a negative
    with pytest.warns(ts.SmallClassWarning, match="class 9"):
        T = ts.all_triplets(X, y, k)
    near = {tuple(t[:2]) for t in brute_knn(X, y, k or len(X)).tolist()}
    n = range(len(X))
    wanted = {(i, j, m) for i in n for j in n for m in n if (i, j) in near and y[m] != y[i]}
    got = T.indices().tolist()
    assert len(got) == len(wanted) == T.n_triplets == ts.triplet_count(y, k)
    assert {tuple(t) for t in got} == wanted
    assert np.array_equal(T.indices(17, 60), got[17:60])


def test_counts_are_whole_numbers_of_any_size():
    """For ten million points in two classes, 64 bits are not enough."""
    y = np.zeros(10**7, dtype=np.int8)
    y[::2] = 1
    half = 5 * 10**6
    assert ts.triplet_count(y) == 2 * half * (half - 1) * half > 2**63
    assert isinstance(ts.all_triplets(*data(0)).n_triplets, int)


def test_a_weight_of_zero_makes_no_anchor():
    X, y = data(1, n=12)
    weights = np.ones(12)
    weights[3] = 0
    T = ts.all_triplets(X, y, weights=weights)
    assert 3 not in T.indices()[:, 0]
    assert 3 in T.indices()[:, 1:]


# -- one evaluation ------------------------------------------------------------------------------------------------


@given(
    st.integers(0, 10**6),
    st.sampled_from(["plain", "grid", "duplicates", "one outlier", "far apart", "all equal"]),
    st.floats(-12, 2),
    st.sampled_from([None, 1, 2]),
    st.booleans(),
)
@settings(max_examples=200)
def test_sums_and_weights_are_those_of_brute_force(seed, kind, log_smoothing, k, weighted):
    rng = np.random.default_rng(seed)
    X, y = data(seed, n=int(rng.integers(6, 30)), d=int(rng.integers(1, 4)), classes=int(rng.integers(2, 4)))
    if kind == "grid":
        X = np.round(X)
    elif kind == "duplicates":
        X = X[rng.integers(0, len(X), len(X))]
    elif kind == "one outlier":
        X[0] *= 1e4
    elif kind == "far apart":
        X = X + 100 * y[:, None]
    elif kind == "all equal":
        X = np.ones_like(X)
    weights = rng.choice([0.5, 1.0, 7.0], len(X)) if weighted else None
    problem, _ = twins(X, y, k, weights)
    M, s = metric(seed, X.shape[1], "psd", scale=10.0 ** rng.uniform(-2, 1)), 10.0**log_smoothing
    core = problem.to_core(M)[0]
    sums, T = problem.sweep(problem.distances(problem.cone.project(core).factor), s)
    indices = problem.triplets.indices()
    H = matrices(X, indices)
    margins = np.einsum("tij,ij->t", H, M)
    w = np.ones(len(indices)) if weights is None else weights[indices[:, 0]]
    # Distances are exact to some units of rounding, and alphas to that over s.
    error = 1e-14 * (1 + np.abs(M).sum() * np.abs(X - X.mean(axis=0)).max() ** 2) + 1e-300
    alpha = np.clip((1 - margins) / s, 0, 1)
    slack = w @ np.minimum(1.0, error / s * (np.abs(1 - margins) < s + error))
    assert sums.loss == pytest.approx(w @ loss_values(margins, s), rel=1e-12, abs=4 * error * w.sum())
    assert sums.alpha == pytest.approx(w @ alpha, rel=1e-12, abs=4 * slack)
    assert sums.spread == pytest.approx(w @ (alpha * (1 - alpha)), rel=1e-12, abs=8 * slack + 1e-13 * w.sum())
    A = np.einsum("t,tij->ij", w * alpha, H)
    size = np.linalg.norm(H, axis=(1, 2))
    got = problem.from_core(problem.assemble(T))
    assert np.linalg.norm(got - A) <= 1e-12 * (w * alpha) @ size + 4 * slack * size.max() + 1e-13 * w @ size


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("k", [None, 2])
def test_certificates_gradients_and_lambda_max_are_those_of_the_list(k, loss, cone):
    X, y = data(4, n=45, d=4)
    weights = np.random.default_rng(0).uniform(0, 2, 45)
    problem, listed = twins(X, y, k, weights, loss=loss, cone=cone)
    assert problem.lambda_max() == pytest.approx(listed.lambda_max(), rel=1e-12)
    for scale in (0.01, 0.3, 5.0):
        M, lam = metric(1, 4, cone, scale), 0.1 * listed.lambda_max()
        ours, theirs = problem.certificate(M, lam), listed.certificate(M, lam)
        for name in ("primal", "dual", "gap"):
            assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=1e-12), name
        assert problem.value(M, lam) == pytest.approx(listed.value(M, lam), rel=1e-12)
        if loss.gamma:
            ours, theirs = problem.gradient(M, lam), listed.gradient(M, lam)
            assert np.linalg.norm(ours - theirs) <= 1e-12 * np.linalg.norm(theirs)


def test_a_tied_corner_of_the_hinge_is_the_same():
    """Margins of exactly 1 on a grid: alpha is 0 there, with the list and without."""
    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    problem, listed = twins(X, [0, 0, 1, 1, 0, 1], loss=ts.Hinge())
    for M in ([[1.0]], [[0.25]], [[0.125]]):
        assert problem.certificate(M, 1.0).gap == pytest.approx(listed.certificate(M, 1.0).gap, rel=1e-12)


def test_distances_of_a_thousand_keep_their_digits():
    """Sums of squared distances would lose eight digits here."""
    X, y = data(2, n=60, d=2)
    M = np.eye(2) * 1e4
    problem, _ = twins(X, y, loss=ts.SmoothedHinge(0.01))
    indices = problem.triplets.indices()
    a = alpha_of(X, indices, 0.01, M)
    sums, _ = problem.sweep(problem.distances(np.eye(2) * 1e2), 0.01)
    assert sums.alpha == pytest.approx(a.sum(), rel=1e-11)
    exact = loss_values(np.einsum("tij,ij->t", matrices(X, indices), M), 0.01).sum()
    assert sums.loss == pytest.approx(exact, rel=1e-12)


def test_blocks_and_threads_change_nothing(monkeypatch):
    X, y = data(5, n=300, d=5)
    M, lam = metric(2, 5, "psd"), 100.0
    whole = ts.Problem(X, ts.all_triplets(X, y), n_jobs=1)
    threads = ts.Problem(X, ts.all_triplets(X, y), n_jobs=2)
    for _ in range(3):
        assert threads.certificate(M, lam) == whole.certificate(M, lam)
    monkeypatch.setattr(never_listed, "_BLOCK", 8 * 300 * 7)  # seven anchors at a time
    small = ts.Problem(X, ts.all_triplets(X, y))
    assert small.certificate(M, lam).gap == pytest.approx(whole.certificate(M, lam).gap, rel=1e-12)


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
@pytest.mark.parametrize("listing", [0.0, 1.0])
def test_products_with_the_hessian_are_those_of_the_list(monkeypatch, listing, cone):
    monkeypatch.setattr(never_listed, "_WORTH_LISTING", listing)
    X, y = data(6, n=40, d=3)
    weights = np.linspace(0, 2, 40)
    problem, listed = twins(X, y, None, weights, loss=ts.SmoothedHinge(0.3), cone=cone)
    core = metric(3, 3, cone)
    V = np.random.default_rng(0).normal(size=core.shape)
    V = V + V.T
    got = []
    for p in (problem, listed):
        now = p.evaluate(core, p.distances(p.cone.project(core).factor), 1.0, 0.3)
        curvature = Curvature(p, now)
        got.append(curvature.times(V))
    assert curvature._triplets.n_triplets > 100
    assert np.linalg.norm(got[0] - got[1]) <= 1e-11 * np.linalg.norm(got[1])


# -- distances as a recipe -----------------------------------------------------------------------------------------


def test_a_quadratic_adds_and_scales_like_distances():
    X = np.random.default_rng(0).normal(size=(9, 3))
    M, N = metric(0, 3, "psd"), metric(1, 3, "psd")
    pairs = PairList(np.arange(8, dtype=np.int32), np.arange(1, 9, dtype=np.int32))
    a, b = Quadratic(X, M), Quadratic(X, N, np.linalg.cholesky(N))
    delta = X[:8] - X[1:]
    of = {"a": np.einsum("pi,ij,pj->p", delta, M, delta), "b": np.einsum("pi,ij,pj->p", delta, N, delta)}
    np.testing.assert_allclose((a + 0.3 * (b - a))[pairs], of["a"] + 0.3 * (of["b"] - of["a"]), rtol=1e-12)
    np.testing.assert_allclose((b / 2)[pairs], of["b"] / 2, rtol=1e-12)
    everything = [(i, j) for i in range(9) for j in range(9)]
    assert a.largest >= max((X[i] - X[j]) @ M @ (X[i] - X[j]) for i, j in everything)
    assert b.largest >= max((X[i] - X[j]) @ N @ (X[i] - X[j]) for i, j in everything)


@given(st.floats(1e-30, 1e60), st.floats(1e-12, 1e3), st.integers(1, 10**7))
def test_grains_leave_room_for_sums(largest, smoothing, count):
    grain, one, width = grain_of(largest, smoothing, count)
    assert np.log2(grain) == round(np.log2(grain))
    assert count * width < 2**62
    assert largest / grain < 2**51
    assert one * grain == 1 or grain > 1
    assert width * grain >= smoothing


# -- memory --------------------------------------------------------------------------------------------------------


def test_an_evaluation_stays_within_the_budget():
    n, budget = 3000, 20e6  # a matrix of distances would take 72 MB
    X, y = data(7, n=n, d=4)
    problem = ts.Problem(X, ts.all_triplets(X, y), memory_budget=budget)
    lam = problem.lambda_max()
    tracemalloc.start()
    problem.certificate(np.eye(4), lam)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < budget
    free = ts.Problem(X, ts.all_triplets(X, y))
    assert problem.certificate(np.eye(4), lam).gap == pytest.approx(free.certificate(np.eye(4), lam).gap, rel=1e-12)


def test_a_budget_that_is_too_small_is_refused_in_one_sentence():
    X, y = data(7, n=3000, d=4)
    with pytest.raises(ts.InputError, match=r"memory_budget=1e\+05: 3000 points .* bytes; raise the budget"):
        ts.Problem(X, ts.all_triplets(X, y), memory_budget=1e5)


def test_a_small_budget_lists_nothing():
    X, y = data(8, n=200, d=3)
    problem = ts.Problem(X, ts.all_triplets(X, y), memory_budget=1.5e6, n_jobs=1)
    sol = ts.solve(problem, 1e-3 * problem.lambda_max(), screening=ts.Screening("mid", every=2))
    assert sol.converged
    assert {event["pairs"] for event in sol.screening} == {problem.triplets.n_pairs}


def test_an_estimate_before_the_work_starts():
    X, y = data(9, n=500, d=3)
    estimate = ts.Problem(X, ts.all_triplets(X, y)).estimate()
    assert estimate.n_triplets == ts.triplet_count(y)
    assert 0 < estimate.seconds < 60
    assert 1e4 < estimate.bytes < 1e9
    assert "triplets over" in str(estimate)
    assert ts.Problem(X, ts.knn_triplets(X, y, 3)).estimate().seconds > 0


# -- what needs a list, and wrong arguments --------------------------------------------------------------------------


def test_what_needs_a_list_refuses():
    X, y = data(0)
    problem = ts.Problem(X, ts.all_triplets(X, y))
    with pytest.raises(ts.InputError, match=r"solver='dual': .* never listed; use 'auto'"):
        ts.solve(problem, 1.0, solver="dual")
    for rule in ("linear", "semidefinite", print):
        for verb in (lambda s: ts.solve(problem, 1.0, screening=s), lambda s: ts.solve_path(problem, screening=s)):
            with pytest.raises(ts.InputError, match=r"rule=.* never listed; use rule='sphere'"):
                verb(ts.Screening("mid", rule=rule))
    with pytest.raises(ts.InputError, match="alpha is given: all triplets are never listed"):
        problem.certificate(np.eye(3), 1.0, alpha=np.ones(3))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n_positives": 0}, "n_positives=0: n_positives must be a whole number of at least 1"),
        ({"weights": np.ones(3)}, r"weights has shape \(3,\): one weight for each of the 40 points"),
        ({"weights": np.full(40, np.nan)}, r"weights\[0\] is nan: weights must be finite and not negative"),
        ({"weights": -np.ones(40)}, r"weights\[0\] is -1.0"),
        ({"weights": np.zeros(40)}, "weights are 0 for every point"),
        ({"y": np.zeros(40)}, "y has one class only"),
        ({"y": np.arange(40)}, "40 classes of one point each"),
    ],
)
def test_wrong_arguments(arguments, words):
    X, y = data(0)
    with pytest.raises(ts.InputError, match=words):
        ts.all_triplets(X, **{"y": y, **arguments})


def test_another_number_of_points_is_refused():
    X, y = data(0)
    with pytest.raises(ts.InputError, match="X has 39 points: these triplets were made from 40"):
        ts.Problem(X[1:], ts.all_triplets(X, y))


@pytest.mark.parametrize("y", [[], 3, None, iter("aab")])
def test_a_count_of_no_labels_is_refused(y):
    with pytest.raises(ts.InputError, match="y "):
        ts.triplet_count(y)


def test_a_gamma_beyond_what_sums_can_hold_is_refused():
    X, y = data(0)
    with pytest.raises(ts.InputError, match=r"gamma=1e\+08: all triplets are never listed"):
        ts.Problem(X, ts.all_triplets(X, y), loss=ts.SmoothedHinge(1e8))
    listed = ts.given_triplets(ts.all_triplets(X, y).indices())
    for gamma in (1e2, 1e4):
        ours, theirs = (
            ts.Problem(X, T, loss=ts.SmoothedHinge(gamma)).certificate(np.eye(3), 1.0)
            for T in (ts.all_triplets(X, y), listed)
        )
        assert ours.primal == pytest.approx(theirs.primal, rel=1e-12)


@pytest.mark.parametrize("k", [None, 2])
def test_the_scale_of_noise_is_that_of_the_triplets(k):
    X, y = data(3, n=20)
    weights = np.linspace(0, 3, 20)
    problem, _ = twins(X, y, k, weights)
    i, j, m = problem.triplets.indices().T
    terms = weights[i] * (np.square(X[i] - X[j]).sum(axis=1) + np.square(X[i] - X[m]).sum(axis=1))
    assert problem.triplets.magnitude(None, None) == pytest.approx(terms.sum(), rel=1e-9)


def test_small_sets_take_little_memory():
    X, y = data(0)
    assert ts.Problem(X, ts.all_triplets(X, y), n_jobs=2).estimate().bytes < 2e6


def test_a_path_stays_within_the_budget():
    """Listed pairs included."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 6, 700)
    X = rng.normal(size=(700, 6))
    X[:, 0] += 1.5 * y
    T = ts.all_triplets(X, y)
    for budget in (1.5e7, 4e7, 8e7):
        tracemalloc.start()
        ts.solve_path(ts.Problem(X, T, n_jobs=1, memory_budget=budget), ratio=0.5, n_lambdas=7)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < budget
