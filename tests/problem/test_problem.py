from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import triscreen as ts
from oracles import alpha_of, dual, matrices, plus, primal
from problems import make_case, random_metric

CONES = ["psd", "diagonal"]
GAMMAS = [0.05, 1.0, 2.5]


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("gamma", [*GAMMAS, 0.0])
@pytest.mark.parametrize(("kind", "weighted"), [("given", False), ("given", True), ("knn", False)])
def test_the_certificate_is_that_of_brute_force(cone, gamma, kind, weighted):
    case = make_case(1, gamma=gamma, cone=cone, weighted=weighted, kind=kind)
    M, lam = random_metric(3, 3, cone, 0.1), 0.7
    got = case.problem.certificate(M, lam)
    assert got.primal == pytest.approx(primal(case.X, case.indices, case.w, gamma, M, lam), rel=1e-13)
    if gamma == 0:
        grid = [4.0**-e for e in range(21)]
        want = max(dual(case.X, case.indices, case.w, 0, alpha_of(case.X, case.indices, s, M), lam, cone) for s in grid)
    else:
        want = dual(case.X, case.indices, case.w, gamma, alpha_of(case.X, case.indices, gamma, M), lam, cone)
    assert got.dual == pytest.approx(want, rel=1e-12)
    assert got.gap == pytest.approx(got.primal - got.dual, rel=1e-11)
    assert got.rel_gap == got.gap / got.primal


@given(
    st.integers(0, 10**6),
    st.sampled_from(CONES),
    st.sampled_from([0.0, 0.05, 1.0]),
    st.sampled_from(["given", "knn"]),
    st.booleans(),
    st.floats(-6, 3),
)
def test_weak_duality_for_any_metric_and_any_alpha(seed, cone, gamma, kind, weighted, log_lam):
    case = make_case(seed, gamma=gamma, cone=cone, weighted=weighted, kind=kind)
    rng = np.random.default_rng(seed)
    M = random_metric(seed, 3, cone, 10 ** rng.uniform(-3, 1))
    alpha, lam = rng.uniform(0, 1, len(case.indices)).round(1), 10**log_lam
    got = case.problem.certificate(M, lam, alpha)
    P = primal(case.X, case.indices, case.w, gamma, M, lam)
    D = dual(case.X, case.indices, case.w, gamma, alpha, lam, cone)
    assert D - 1e-12 * (abs(P) + abs(D)) <= P
    assert got.gap >= 0
    assert got.primal == pytest.approx(P, rel=1e-12)
    assert got.dual == pytest.approx(D, rel=1e-10, abs=1e-12 * P)
    assert got.gap == pytest.approx(P - D, rel=1e-9, abs=1e-12 * (abs(P) + abs(D)))


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("gamma", GAMMAS)
def test_gradient_against_finite_differences(cone, gamma):
    case = make_case(4, gamma=gamma, cone=cone, weighted=True)
    M, lam = random_metric(5, 3, cone, 0.2) + (0.1 * np.eye(3) if cone == "psd" else 0.1), 0.3
    G = case.problem.gradient(M, lam)
    rng = np.random.default_rng(0)
    for _ in range(6):
        D = rng.normal(size=M.shape)
        D = D + D.T if cone == "psd" else D
        h = 1e-6
        slope = (case.problem.value(M + h * D, lam) - case.problem.value(M - h * D, lam)) / (2 * h)
        assert slope == pytest.approx(np.vdot(G, D), rel=1e-5)


@pytest.mark.parametrize("cone", CONES)
def test_norms_of_h(cone):
    case = make_case(2, cone=cone)
    H = matrices(case.X, case.indices)
    want = np.linalg.norm(H, axis=(1, 2)) if cone == "psd" else np.linalg.norm(np.einsum("tii->ti", H), axis=1)
    assert case.problem.norms == pytest.approx(want, rel=1e-12)


def test_norms_do_not_cancel_when_j_is_near_l():
    """|u|^4 + |v|^4 - 2(u'v)^2 gives nothing but noise here."""
    delta = 1e-9
    X = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, delta]])
    for cone, want in [("psd", np.sqrt(2) * delta), ("diagonal", delta**2)]:
        problem = ts.Problem(X, ts.given_triplets([[0, 1, 2]]), cone=cone)
        assert problem.norms[0] == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("kind", ["given", "knn"])
def test_lambda_max_is_the_closed_form(cone, kind):
    case = make_case(7, cone=cone, weighted=kind == "given", kind=kind)
    H = matrices(case.X, case.indices)
    S = plus(np.einsum("t,tij->ij", case.w, H), cone)
    assert case.problem.lambda_max() == pytest.approx(np.einsum("tij,ij->t", H, S).max(), rel=1e-12)


@pytest.mark.parametrize("cone", CONES)
def test_from_lambda_max_on_the_optimum_is_explicit(cone):
    case = make_case(8, cone=cone, gamma=0.05)
    lam = case.problem.lambda_max() / (1 - 0.05)
    S = plus(np.einsum("t,tij->ij", case.w, matrices(case.X, case.indices)), cone) / lam
    M = np.diag(S) if cone == "diagonal" else S
    assert case.problem.certificate(M, lam).rel_gap < 1e-15
    assert case.problem.certificate(M, lam / 1.2).rel_gap > 1e-6


# -- invariances --------------------------------------------------------------------------------------------------


def certificates_agree(a, b, rel=1e-10):
    assert a.primal == pytest.approx(b.primal, rel=rel)
    assert a.dual == pytest.approx(b.dual, rel=rel)
    assert a.gap == pytest.approx(b.gap, rel=rel, abs=1e-12 * a.primal)


def rebuilt(case, X, T=None):
    loss = case.problem.loss
    return ts.Problem(X, case.problem.triplets if T is None else T, loss=loss, cone=case.cone)


@pytest.mark.parametrize("cone", CONES)
def test_translation_changes_nothing(cone):
    case = make_case(9, cone=cone)
    M = random_metric(9, 3, cone, 0.3)
    moved = rebuilt(case, case.X + np.array([3.0, -5.0, 100.0]))
    certificates_agree(case.problem.certificate(M, 0.4), moved.certificate(M, 0.4))


def test_rotation_changes_nothing():
    case = make_case(10)
    M = random_metric(9, 3, "psd", 0.3)
    R, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))
    certificates_agree(case.problem.certificate(M, 0.4), rebuilt(case, case.X @ R).certificate(R.T @ M @ R, 0.4))


@pytest.mark.parametrize("cone", CONES)
def test_the_order_of_points_changes_nothing(cone):
    case = make_case(11, cone=cone)
    M = random_metric(9, 3, cone, 0.3)
    order = np.random.default_rng(0).permutation(len(case.X))
    place = np.argsort(order)
    other = rebuilt(case, case.X[order], ts.given_triplets(place[case.indices]))
    certificates_agree(case.problem.certificate(M, 0.4), other.certificate(M, 0.4))


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("s", [1e-6, 0.01, 1e6])
def test_scaling_the_data_scales_lambda_by_the_fourth_power(cone, s):
    case = make_case(12, cone=cone)
    M = random_metric(9, 3, cone, 0.3)
    scaled = rebuilt(case, s * case.X)
    certificates_agree(case.problem.certificate(M, 0.4), scaled.certificate(M / s**2, 0.4 * s**4))
    assert scaled.lambda_max() == pytest.approx(s**4 * case.problem.lambda_max(), rel=1e-12)


def test_a_large_offset_costs_no_digits():
    """Differences are exact on this grid, so the certificates agree to rounding even at 1e6."""
    rng = np.random.default_rng(3)
    X, y = rng.integers(-8, 8, (40, 3)) / 8, rng.integers(0, 2, 40)
    T = ts.knn_triplets(X, y, 4)
    M = random_metric(3, 3, "psd", 0.5)
    near, far = ts.Problem(X, T), ts.Problem(X + 2.0**20, T)
    certificates_agree(near.certificate(M, 0.4), far.certificate(M, 0.4), rel=1e-12)


# -- the cone -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cone", "M", "words"),
    [
        ("psd", np.diag([1.0, 1.0, -1e-6]), "M has the eigenvalue -1e-06: it must be positive semi-definite"),
        ("psd", np.diag([1.0, 1.0, -1e-11]), "eigenvalue -1e-11"),
        ("psd", np.eye(3) + 0j, "M has dtype complex128"),
        ("psd", np.diag([1.0, 1.0, np.nan]), "NaN or infinity"),
        ("psd", np.eye(2), r"M has shape \(2, 2\): X has 3 features"),
        ("psd", np.triu(np.ones((3, 3))), "it must be symmetric"),
        ("psd", [["a"] * 3] * 3, "real numbers"),
        ("diagonal", [1.0, 1.0, -1e-6], "diagonal entry -1e-06"),
        ("diagonal", np.ones((3, 3)), "off its diagonal"),
        ("diagonal", [1.0, 1.0], r"shape \(2,\)"),
    ],
)
def test_what_is_not_in_the_cone_is_refused(cone, M, words):
    with pytest.raises(ts.InputError, match=words):
        make_case(0, cone=cone).problem.certificate(M, 1.0)


def test_rounding_is_not_refused():
    rng = np.random.default_rng(0)
    for _ in range(50):
        F = rng.normal(size=(3, 1))
        V, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        make_case(0).problem.certificate(V @ (F @ F.T) @ V.T, 1.0)


def test_a_diagonal_matrix_and_its_diagonal_are_the_same():
    problem = make_case(0, cone="diagonal").problem
    m = np.array([1.0, 0.0, 2.0])
    assert problem.certificate(m, 1.0) == problem.certificate(np.diag(m), 1.0)


# -- the span -----------------------------------------------------------------------------------------------------


def test_more_features_than_points_are_reduced_exactly():
    case = make_case(13, n=10, d=30)
    problem = case.problem
    assert problem.points.shape == (10, 9)
    rng = np.random.default_rng(0)
    F = rng.normal(size=(30, 2)) / 5
    M = F @ F.T  # reaches outside the span: its norm counts, its distances do not
    got = problem.certificate(M, 0.5)
    assert got.primal == pytest.approx(primal(case.X, case.indices, case.w, 0.05, M, 0.5), rel=1e-12)
    assert problem.value(M, 0.5) == pytest.approx(got.primal, rel=1e-14)
    a = alpha_of(case.X, case.indices, 0.05, M)
    assert got.dual == pytest.approx(dual(case.X, case.indices, case.w, 0.05, a, 0.5, "psd"), rel=1e-12)
    assert got.gap == pytest.approx(got.primal - got.dual, rel=1e-11)


@pytest.mark.parametrize("spread", [1.0, 1e-7])
def test_dependent_features_are_found_and_faint_ones_kept(spread):
    """Half of the features repeat others; one of the rest is 1e-7 times smaller, which is not rounding."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4)) * np.array([1, 1, 1, spread])
    problem = ts.Problem(np.hstack([X, X @ rng.normal(size=(4, 4))]), ts.knn_triplets(X, np.arange(50) % 2, 2))
    assert problem.points.shape == (50, 4)


def test_the_diagonal_cone_is_never_rotated():
    assert make_case(13, n=10, d=30, cone="diagonal").problem.points.shape == (10, 30)


def test_a_full_rank_problem_is_left_alone():
    assert make_case(0).problem.basis is None


def test_features_of_very_different_size_are_not_drowned_by_a_rotation():
    """A timestamp in microseconds beside features of size 1: the smaller ones still decide."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    X = np.column_stack([rng.uniform(0, 3e13, 300), rng.normal(size=(300, 4))])
    X[:, 1] += 3 * y
    T = ts.knn_triplets(X, y, 3)
    full, diagonal = ts.Problem(X, T), ts.Problem(X, T, cone="diagonal")
    assert full.points.shape == (300, 5)
    m = np.array([0.0, 1.0, 0.0, 0.0, 0.0])
    assert full.value(np.diag(m), 1e-3) == pytest.approx(diagonal.value(m, 1e-3), rel=1e-9)


def test_certifying_in_many_dimensions_needs_no_work_of_their_cube(monkeypatch):
    """With a basis, positivity is checked on the core; only an M that leaves the span needs the whole matrix."""
    case = make_case(13, n=10, d=60)
    sizes = []
    real = np.linalg.cholesky
    monkeypatch.setattr(np.linalg, "cholesky", lambda M: sizes.append(len(M)) or real(M))
    inside = case.problem.from_core(np.eye(9))
    case.problem.certificate(inside, 1.0)
    case.problem.certificate(inside + np.eye(60), 1.0)
    assert sizes == [9, 60]
    with pytest.raises(ts.InputError, match="eigenvalue"):
        case.problem.certificate(inside - 0.1 * np.eye(60), 1.0)


# -- large enough for several chunks ----------------------------------------------------------------------------------


def large_case(kind, cone, gamma):
    rng = np.random.default_rng(5)
    y = np.arange(450) % 3
    X = rng.normal(size=(450, 6)) + 2 * rng.normal(size=(3, 6))[y]
    if kind == "knn":
        T = ts.knn_triplets(X, y, 10)
        w = np.ones(T.n_triplets)
    else:
        few = ts.knn_triplets(X[:60], y[:60], None).indices()
        rows = few[rng.integers(0, len(few), 40_000)]
        w = rng.uniform(0.5, 2.0, len(rows))
        T = ts.given_triplets(rows, w)
    loss = ts.Hinge() if gamma == 0 else ts.SmoothedHinge(gamma)
    return ts.Problem(X, T, loss=loss, cone=cone, n_jobs=2), X, T.indices(), w


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("gamma", [0.0, 0.5])
@pytest.mark.parametrize("kind", ["knn", "given"])
def test_many_chunks_agree_with_brute_force(kind, cone, gamma, monkeypatch):
    monkeypatch.setattr("triscreen.problem.engine._NORM_CHUNK", 10_000)
    monkeypatch.setattr("triscreen._utils.threads.WORK", 10_000)  # a problem of a few milliseconds has many chunks
    problem, X, indices, w = large_case(kind, cone, gamma)
    M, lam = random_metric(3, 6, cone, 0.05), 20.0
    alpha = np.random.default_rng(0).uniform(0, 1, len(w))
    got = problem.certificate(M, lam, alpha)
    assert got.primal == pytest.approx(primal(X, indices, w, gamma, M, lam), rel=1e-13)
    assert got.dual == pytest.approx(dual(X, indices, w, gamma, alpha, lam, cone), rel=1e-12)
    own = problem.certificate(M, lam)
    s = gamma or 4.0**-20
    best = dual(X, indices, w, gamma, alpha_of(X, indices, s, M), lam, cone)
    assert own.dual >= best - 1e-10 * abs(best)
    assert own.gap == pytest.approx(own.primal - own.dual, rel=1e-10)
    H = matrices(X, indices)
    S = plus(np.einsum("t,tij->ij", w, H), cone)
    assert problem.lambda_max() == pytest.approx(np.einsum("tij,ij->t", H, S).max(), rel=1e-12)
    if cone == "diagonal":
        H = np.einsum("tii->ti", H)
    np.testing.assert_allclose(problem.norms, np.sqrt(np.square(H).reshape(len(H), -1).sum(axis=1)), rtol=1e-12)


def test_sums_over_millions_of_triplets_keep_their_digits():
    """Equal addends round in one direction when added naively: 1e-11 after four million."""
    rows = np.tile([[0, 1, 2]], (4_000_000, 1))
    problem = ts.Problem([[0.0], [1.0], [2.0]], ts.given_triplets(rows), loss=ts.SmoothedHinge(0.05))
    got = problem.certificate([[0.0]], 1e30)
    assert got.primal == pytest.approx(4_000_000 * 0.975, rel=1e-13)
    assert got.dual == pytest.approx(got.primal, rel=1e-13)


def test_the_hinge_certificate_finds_alphas_of_any_width():
    """One triplet at a distance b = 1e-10 from its kink: only a smoothing as small as that explains alpha = 1/9."""
    problem = ts.Problem([[0.0], [1.0], [2.0]], ts.given_triplets([[0, 1, 2]]), loss=ts.Hinge())
    M = [[(1 - 4.0**-17 / 9) / 3]]
    assert problem.certificate(M, 1.0).rel_gap < 1e-9


def test_lambda_max_is_not_made_of_rounding():
    """The sum of H is negative semi-definite and singular: its zero eigenvalues come out at 1e-16."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        base = rng.normal(size=(20, 7))
        near = base + 1e-3 * rng.normal(size=base.shape)
        far = base + rng.normal(size=base.shape)
        X = np.vstack([base, near, far])
        X = np.column_stack([X, X[:, 0]])
        i = np.arange(20)
        problem = ts.Problem(X, ts.given_triplets(np.column_stack([i, i + 40, i + 20])))
        with pytest.warns(ts.DegenerateProblemWarning):
            assert problem.lambda_max() == 0.0


# -- threads --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cone", CONES)
def test_any_number_of_threads_gives_the_same_bits(cone):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 20)), rng.integers(0, 3, 3000)
    T = ts.knn_triplets(X, y, 10)
    M = random_metric(1, 20, cone, 0.02)
    certificates = {ts.Problem(X, T, cone=cone, n_jobs=jobs).certificate(M, 5.0) for jobs in (1, 2, 5) for _ in "ab"}
    assert len(certificates) == 1
