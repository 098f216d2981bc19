"""What is done the short way is what the long way gives: eigenvalues, sums over few pairs, gaps that are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import triscreen as ts
from problems import random_metric
from triscreen.problem.cones import eigh
from triscreen.problem.rounding import gap_error
from triscreen.screening.working_set import Reference


@pytest.mark.parametrize("dim", [*range(1, 9), 25, 26, 27, 63, 64, 65, 80])
def test_eigenvalues_and_vectors_are_those_of_the_matrix(dim):
    rng = np.random.default_rng(dim)
    B = rng.normal(size=(dim, dim))
    low_rank = B[:, : dim // 2] @ B[:, : dim // 2].T
    for S in (B + B.T, np.zeros((dim, dim)), np.eye(dim), low_rank, 1e-300 * (B + B.T), 1e150 * (B + B.T), -low_rank):
        S = 0.5 * (S + S.T)
        values, vectors = eigh(S)
        size = np.abs(S).max()
        assert vectors.flags.c_contiguous
        assert vectors.dtype == np.float64
        assert (np.diff(values) >= 0).all()
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(dim), atol=1e-13 * dim)
        np.testing.assert_allclose((vectors * values) @ vectors.T, S, rtol=0, atol=1e-13 * dim * size)
        np.testing.assert_allclose(values, np.linalg.eigvalsh(S), rtol=0, atol=1e-13 * dim * size)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numpy_answers_for_matrices_that_are_not_finite(bad):
    S = np.eye(4)
    S[1, 2] = S[2, 1] = bad
    for one, other in zip(eigh(S), np.linalg.eigh(S), strict=True):
        np.testing.assert_array_equal(one, other)


def test_single_precision_stays_single():
    assert eigh(np.eye(3, dtype=np.float32))[1].dtype == np.float32


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_few_pairs_are_summed_within_the_bound_for_all(cone, shift):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 4)) + y[:, None] + shift * (y == 1)[:, None]
    problem = ts.Problem(X, ts.knn_triplets(X, y, 4), cone=cone)
    T, X = problem.triplets, problem.triplets.points.astype(np.longdouble)
    for count in (1, 7, 60, 61, T.n_pairs):
        weights = np.zeros(T.n_pairs)
        weights[rng.permutation(T.n_pairs)[:count]] = rng.normal(size=count)
        D = X[T.first] - X[T.second]
        exact = D.T @ (weights[:, None] * D) if cone == "psd" else weights @ D**2
        few = problem.cone.assemble_few(T, weights, count, problem.threads)
        bound = problem.rounding.sum_of_h(np.abs(weights).sum())
        assert np.linalg.norm((few - exact).astype(float)) <= bound
        assert np.linalg.norm((problem.assemble(weights) - exact).astype(float)) <= bound
        np.testing.assert_array_equal(few, few.T)


@pytest.mark.parametrize("prior", [None, "identity"])
def test_the_gap_that_an_evaluation_knows_is_taken_for_its_own_lambda_only(prior):
    rng = np.random.default_rng(1)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 3)) + y[:, None]
    problem = ts.Problem(X, ts.knn_triplets(X, y, 3), prior=prior)
    M, lam = random_metric(2, 3, "psd"), 0.1 * problem.lambda_max()
    dist = problem.distances(problem.cone.project(M).factor)
    now = problem.evaluate(M, dist, lam, problem.loss.gamma)
    unknown = replace(now, at=np.nan)
    for other in (lam, 2 * lam, 0.5 * lam):
        assert gap_error(problem.rounding, now, other) == gap_error(problem.rounding, unknown, other)
    going = now.going_on(3.0)
    assert going.step == 3.0
    assert now.step == np.inf
    assert (going.gap, going.at) == (now.gap, lam)


def test_a_reference_that_is_asked_again_says_the_same_and_for_another_lambda_its_own():
    rng = np.random.default_rng(1)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 3)) + y[:, None]
    problem = ts.Problem(X, ts.knn_triplets(X, y, 3))
    M, lam = random_metric(2, 3, "psd"), 0.1 * problem.lambda_max()
    reference = Reference.at(problem, M, lam, problem.loss.gamma)
    fresh = Reference.at(problem, M, lam, problem.loss.gamma)
    for other in (lam, lam, 0.9 * lam, lam):
        (now, error), (again, other_error) = reference.evaluate(problem, other), fresh.evaluate(problem, other)
        fresh = replace(fresh)  # remembers nothing
        assert (now.gap, now.primal, error) == (again.gap, again.primal, other_error)
    assert reference.evaluate(problem, lam)[0] is reference.evaluate(problem, lam)[0]
