"""Rigorous gaps: right where the optimum is known exactly, never below the truth, and they need no trust in floats."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from fractions import Fraction

import flint
import numpy as np
import pytest
from claims import compare

import oracles
import triscreen as ts
from problems import make_case
from triscreen.verification import Verifier, gaps
from triscreen.verification.balls import high, low
from triscreen.verification.balls import root as root_of


def test_claims_hold_on_random_and_adversarial_problems():
    counts = Counter()
    for seed in range(45):
        compare(seed, counts)
    assert not [name for name in counts if name.startswith(("wrong", "loose"))], counts
    assert counts["verified"] > 80


def test_ends_of_balls_are_outside():
    flint.ctx.prec = 53
    with flint.ctx.workprec(128):
        for number in (Fraction(1, 3), Fraction(-1, 3), Fraction(10**40, 7), Fraction(2), Fraction(0)):
            ball = flint.arb(number.numerator) / number.denominator
            assert Fraction(low(ball)) < number < Fraction(high(ball))
            assert high(ball) - low(ball) <= 4 * np.spacing(abs(float(number))) + 1e-300


def test_roots_of_balls_that_reach_below_zero_hold_the_root():
    with flint.ctx.workprec(128):
        third = flint.arb(1) / 3
        for ball, exact in ((third * third - third * third, 0.0), (flint.arb(1e-10, 1e-9), 1e-5), (flint.arb(4), 2.0)):
            assert low(root_of(ball)) <= exact <= high(root_of(ball))
        assert high(root_of(flint.arb(1e-10, 1e-9))) < 4e-5


def exact_value(h, lam, gamma, m):
    """P(m) of d = 1 and one triplet with H = h, exactly."""
    b = 1 - h * m
    a = min(max(b / gamma, Fraction(0)), Fraction(1)) if gamma else Fraction(b > 0)
    return a * b - gamma / 2 * a * a + lam / 2 * m * m


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
@pytest.mark.parametrize("gamma", [0.0, 0.25])
def test_the_bound_holds_where_the_optimum_is_rational(cone, gamma):
    """One triplet in one dimension: m* = min(h/lam, (1 - g)/h .. 1/h), in fractions."""
    X, g = np.array([[0.0], [1.0], [3.0]]), Fraction(gamma)
    h = Fraction(8)
    loss = ts.SmoothedHinge(gamma) if gamma else ts.Hinge()
    problem = ts.Problem(X, ts.given_triplets([[0, 1, 2]]), loss=loss, cone=cone)
    for lam in (0.5, 8.0, 60.0, 64.0, 70.0, 85.25, 1000.0):
        exact = Fraction(lam)
        best = min(h / exact, 1 / h) if gamma == 0 else h / exact
        if gamma and 1 - h * best > 0 and (1 - h * best) / g < 1:
            best = h / (exact * g + h * h)  # the corner: lam m = h (1 - h m)/g
        elif gamma and 1 - h * best <= 0:
            best = h / (exact * g + h * h)
        for root in (0.0, 0.25, 0.5, 1.0):  # M = root^2 exactly, and F = root
            m = Fraction(root) ** 2
            proof = ts.verify(problem, np.full((1, 1) if cone == "psd" else 1, root * root), lam)
            truth = exact_value(h, exact, g, m)
            assert Fraction(proof.primal[0]) <= truth <= Fraction(proof.primal[1])
            assert proof.moved < 1e-300
            assert Fraction(proof.gap) >= truth - exact_value(h, exact, g, best) >= 0
            assert abs(best - Fraction(float(proof.ball.center.ravel()[0]))) <= Fraction(proof.ball.radius)
            assert abs(best - m) <= Fraction(proof.radius)
        # The optimum itself, rounded: proven to many digits. (Of the hinge no margin tells the alpha at the corner.)
        alpha = None if gamma else [float(exact * best / h)]
        proof = ts.verify(problem, np.full((1, 1) if cone == "psd" else 1, float(best)), lam, alpha)
        assert proof.rel_gap < 1e-13
        assert abs(best - Fraction(float(proof.ball.center.ravel()[0]))) <= Fraction(proof.ball.radius)


CASES = [
    {"gamma": 0.05},
    {"gamma": 0.5, "cone": "diagonal", "weighted": True},
    {"gamma": 0.0, "weighted": True},
    {"gamma": 0.05, "prior": 1},
    {"gamma": 0.3, "cone": "diagonal", "prior": 2},
]


def truth_of(case, M, lam):
    """P(M) - P*, by far more accurate solves and brute force."""
    N = 0.0 if case.prior is None else case.prior
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.ConvergenceWarning)
        best = ts.solve(case.problem, lam, tol=1e-12 if case.gamma else 1e-9, max_iter=3000)
    value = oracles.primal(case.X, case.indices, case.w, case.gamma, M, lam, N)
    return value - best.dual, best


@pytest.mark.parametrize("arguments", CASES, ids=str)
def test_no_metric_is_farther_from_the_optimum_than_proven(arguments):
    case = make_case(3, **arguments)
    lam = 0.02 * case.problem.lambda_max()
    rng = np.random.default_rng(0)
    for size in (0.0, 1e-3, 0.1, 10.0):
        F = rng.normal(size=(3, 3))
        M = size * (np.square(F[0]) if case.cone == "diagonal" else F @ F.T)
        excess, best = truth_of(case, M, lam)
        proof = ts.verify(case.problem, M, lam)
        assert proof.gap >= excess * (1 - 1e-9)
        assert proof.gap <= 1.1 * case.problem.certificate(M, lam).gap + 1e-12
        assert np.linalg.norm(best.M - M) <= proof.radius + best.radius
        assert np.linalg.norm(best.M - proof.ball.center) <= proof.ball.radius + best.radius
        claimed = case.problem.certificate(M, lam).rel_gap
        assert proof.rel_gap == pytest.approx(claimed, rel=1e-6)


@pytest.mark.parametrize("arguments", CASES, ids=str)
def test_neither_multiplier_nor_alphas_need_trust(arguments, monkeypatch):
    """Whatever K and alphas floating point gives, the bound holds; only its size depends on them."""
    case = make_case(4, **arguments)
    lam = 0.02 * case.problem.lambda_max()
    excess, best = truth_of(case, np.zeros_like(ts.solve(case.problem, lam, max_iter=1, tol=1.0).M), lam)
    rng, honest = np.random.default_rng(1), Verifier._root
    M = 1.01 * best.M
    excess, _ = truth_of(case, M, lam)
    sizes = []
    for spoil in (0.0, 1e-6, 0.3):

        def root(self, N, spoil=spoil):
            F = honest(self, N)
            if N.shape == np.shape(M) and (N == M).all():
                return F  # that of the metric itself
            return F * (1 + spoil * rng.normal()) + spoil * np.diag(rng.normal(size=len(F)))[:, : F.shape[1]]

        monkeypatch.setattr(Verifier, "_root", root)
        for alpha in (None, rng.uniform(size=case.problem.triplets.n_triplets), np.ones(len(case.w))):
            proof = ts.verify(case.problem, M, lam, alpha)
            assert proof.gap >= excess * (1 - 1e-9) > 0
            sizes.append(proof.gap)
    assert sizes[0] == min(sizes)
    assert sizes[0] < 0.5 * max(sizes)


def test_chunks_and_decided_triplets_change_nothing(monkeypatch):
    """Triplets that floats decide count as they do one by one, and pairs that several chunks share too."""
    case = make_case(5, weighted=True, m=80)
    lam = 0.05 * case.problem.lambda_max()
    M = ts.solve(case.problem, lam, tol=1e-4).M
    whole = ts.verify(case.problem, M, lam)
    monkeypatch.setattr(gaps, "_CHUNK", 7)
    parts = ts.verify(case.problem, M, lam)
    monkeypatch.setattr(np, "nextafter", lambda x, _: np.nan * x)  # nothing is decided
    slow = ts.verify(case.problem, M, lam)
    for other in (parts, slow):
        assert other.gap == pytest.approx(whole.gap, rel=1e-12)
        assert other.primal == pytest.approx(whole.primal, rel=1e-14)


@pytest.mark.parametrize("n_positives", [None, 2])
def test_sets_that_are_never_listed(n_positives):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(14, 3)), np.arange(14) % 2
    T = ts.all_triplets(X, y, n_positives, weights=rng.uniform(0.5, 2, 14))
    listed = ts.given_triplets(T.indices(), T.weights_of())
    one, two = (ts.Problem(X, triplets) for triplets in (T, listed))
    lam = 0.1 * one.lambda_max()
    sol = ts.solve(one, lam)
    proofs = [ts.verify(problem, sol.M, lam) for problem in (one, two)]
    assert proofs[0].gap == pytest.approx(proofs[1].gap, rel=1e-9)
    assert proofs[0].gap == pytest.approx(sol.gap, rel=1e-6)


def test_what_cannot_be_verified_is_refused(monkeypatch):
    case = make_case(0)
    problem, X = case.problem, case.X
    M = np.eye(3)
    for wrong, words in ((np.eye(2), r"M has shape \(2, 2\)"), (np.diag([1.0, 1.0, -1.0]), "M lies 1.* from the"),
                         (np.full((3, 3), np.nan), "finite")):  # fmt: skip
        with pytest.raises(ts.InputError, match=words):
            ts.verify(problem, wrong, 1.0)
    with pytest.raises(ts.InputError, match="lam=-1"):
        ts.verify(problem, M, -1)
    with pytest.raises(ts.InputError, match="every alpha must lie"):
        ts.verify(problem, M, 1.0, np.full(60, 1.5))
    monkeypatch.setattr(gaps, "MOST", 59)
    with pytest.raises(ts.InputError, match="problem has 60 triplets: verify looks at them one by one, at most 59"):
        ts.verify(problem, M, 1.0)
    monkeypatch.undo()
    X[3, 1] += 1e-15
    with pytest.raises(ts.InputError, match="X was changed after the problem was made of it"):
        ts.verify(problem, M, 1.0)
    monkeypatch.setitem(sys.modules, "flint", None)
    with pytest.raises(ts.InputError, match=r"pip install 'triscreen\[verify\]'"):
        ts.verify(make_case(0).problem, M, 1.0)


def test_a_diagonal_metric_may_be_a_matrix():
    problem = make_case(0, cone="diagonal").problem
    m = np.array([0.1, 0.2, 0.3])
    assert ts.verify(problem, np.diag(m), 1.0).gap == ts.verify(problem, m, 1.0).gap
