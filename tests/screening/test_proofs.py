"""What a proof over all pairs says of its own rounding: errors are made large, so that one that is missing shows."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from problems import make_case, random_metric
from triscreen._kernels.weights import strayed_weights
from triscreen.screening import working_set
from triscreen.screening.fixing import fix_by_difference, fix_by_sum, fix_reduction
from triscreen.screening.working_set import Reference, Tube, WorkingSet


def a_working_set(options, radius):
    problem = make_case(2, n=40, d=4, m=600, **options).problem
    lam, gamma = 0.03 * problem.lambda_max(), problem.loss.gamma
    M = problem.cone.project(random_metric(5, 4, problem.cone.name)).plus
    reference = Reference.at(problem, M, lam, gamma)
    squares = np.square(problem.triplets.euclid(problem.threads))
    tube = Tube(M, M, radius * float(np.linalg.norm(M)))
    working = WorkingSet.around(problem, reference, tube, reference.dist, 1e-12, squares, low=1 - gamma)
    return problem, lam, gamma, reference, squares, working


@pytest.mark.parametrize("options", [{}, {"kind": "knn"}, {"weighted": True}, {"cone": "diagonal"}])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("step", [0.0, 0.4])
def test_a_proof_has_the_errors_of_the_constant_of_the_rest_and_of_what_strayed(options, known, step):
    """error = that of the fixed matrix + bound(alphas of the rest) + what is too small to count + bound(strayed)."""
    problem, lam, gamma, reference, squares, working = a_working_set(options, 0.02)
    engine = working.engine
    engine.rounding.linear_error, engine.rounding._matrix = 3.0, 0.01
    problem.rounding._matrix = 0.1
    M = problem.cone.project(reference.M + step * random_metric(9, 4, problem.cone.name)).plus
    dist = problem.distances(problem.cone.project(M).factor)
    sums, weights = engine.sweep(dist[working.pairs], gamma)
    A = engine.linear_matrix + engine.assemble(weights) if known else None
    found, passes = working.prove(problem, M, lam, gamma, A, weights if known else None, squares)
    of_all, every = problem.sweep(dist, gamma)
    np.testing.assert_allclose(found.A, problem.assemble(every), atol=1e-9 * np.abs(found.A).max())
    mine = working.fixed.copy()
    mine[working.pairs] += weights
    strayed = np.empty(len(mine))
    count, size, lost = strayed_weights(every, mine, squares, 1e-12, strayed)
    assert bool(count) == bool(step)
    wanted = 3.0 + 0.01 * sums.alpha + lost + 0.1 * size * bool(count)
    assert found.error == pytest.approx(wanted, rel=1e-9)
    work = 0.5 + (0 if known else 0.5 * engine.share) + 0.5 * count / problem.triplets.n_pairs
    assert passes == pytest.approx(work)
    assert found.sums.alpha == of_all.alpha


def test_what_strayed_is_counted_pair_by_pair():
    """Differences above the noise are given back and summed; those below are counted as lost, by their |delta|^2."""
    own, other = np.array([1.0, 2.0, 0.0, 5.0]), np.array([1.0 + 1e-14, 1.0, 0.0, 5.5])
    squares, out = np.array([16.0, 81.0, 7.0, 4.0]), np.empty(4)
    count, size, lost = strayed_weights(own, other, squares, 1e-12, out)
    assert count == 2
    np.testing.assert_array_equal(out, [0.0, 1.0, 0.0, -0.5])
    assert size == pytest.approx(1.5)
    assert lost == pytest.approx(abs(own[0] - other[0]) * 4, rel=1e-6, abs=0)


def test_a_reference_says_what_is_wrong_with_its_matrix():
    problem = make_case(2, n=30, d=3, m=300).problem
    problem.rounding._matrix = 0.1
    M = random_metric(5, 3, "psd")
    made = Reference.at(problem, M, 1.0, problem.loss.gamma)
    assert made.error == pytest.approx(0.1 * made.sums.alpha)
    given = Reference.at(problem, M, 1.0, problem.loss.gamma, made.A, 0.7)
    assert given.error == 0.7
    assert given.A is made.A
    lam = 0.1 * problem.lambda_max()
    evaluation, small = replace(made, error=0.0).evaluate(problem, lam)
    _, large = replace(made, error=2.0).evaluate(problem, lam)
    away = np.linalg.norm(made.M - evaluation.dual_point.plus / lam)
    assert large - small == pytest.approx(2 * away + 2 * 2 / (2 * lam), rel=0.5)
    assert large - small >= 2 * away + 2 * 2 / (2 * lam) - 1e-9


def test_tubes_hold_by_distance_to_the_segment_with_doubt_of_both_ends():
    rng = np.random.default_rng(0)
    for _ in range(200):
        begin, end, M = rng.normal(size=(3, 3, 3)) * [[[1.0]], [[3.0]], [[2.0]]]
        shares = np.linspace(0, 1, 3001)[:, None, None]
        far = np.linalg.norm(M - begin - shares * (end - begin), axis=(1, 2)).min()
        assert Tube(begin, end, far * (1 + 1e-5)).holds(M)
        assert not Tube(begin, end, far * (1 - 1e-3)).holds(M)
    at = np.eye(2)
    assert not Tube(at, at, 0.0).holds(at)  # not beyond doubt
    assert Tube(at, at, 1e-12).holds(at)
    large = 1e12 * np.eye(2)
    assert not Tube(at, at, 1.0).holds(at + 1.0 - 1e-14)
    assert not Tube(large, large, 0.1).holds(large)  # norms of 1e12 are known to 0.1 at most
    assert not Tube(at, large, 0.05).holds(at)


@pytest.mark.parametrize("before", [None, 2.0])
def test_a_fixed_matrix_carries_the_errors_of_all_that_it_is_made_of(before):
    """By difference: of A and of what is subtracted; by sum: of what was there, of what comes, and of the addition."""
    fixed = None if before is None else before * np.eye(2)
    less = SimpleNamespace(
        assemble=lambda weights: weights * np.eye(2), with_fixed=lambda matrix, weight, error: (matrix, weight, error),
        rounding=SimpleNamespace(sum_of_h=lambda weight: 0.3 * weight),
    )  # fmt: skip
    asked = []
    engine = SimpleNamespace(
        assemble=lambda weights: weights * np.eye(2), linear_matrix=fixed, linear_weight=11.0,
        rounding=SimpleNamespace(linear_error=5.0, sum_of_h=lambda weight: 0.1 * weight),
        restrict=lambda *parts: asked.append(parts) or less,
    )  # fmt: skip
    A = np.diag([9.0, 8.0])
    matrix, weight, error = fix_by_difference(less, (SimpleNamespace(alpha=4.0), 3.0), A, 0.7, 6.0)
    np.testing.assert_array_equal(matrix, A - 3 * np.eye(2))
    assert (weight, error) == (6.0, 0.7 + 0.3 * 4.0)
    U, wanted = 2.0**-53, 7.0 * np.eye(2) + (0 if fixed is None else fixed)
    matrix, weight, error = fix_by_sum(engine, less, SimpleNamespace(linear=13.0, weigh=lambda: 7.0))
    np.testing.assert_array_equal(matrix, wanted)
    assert weight == 11.0 + 13.0
    assert error == pytest.approx(5.0 + 1.3, rel=1e-12)
    assert fix_by_sum(engine, less, SimpleNamespace(linear=0.0, weigh=lambda: 7.0)) is less
    found = SimpleNamespace(weights=7.0, summed=17.0, triplets="t", pairs="p", linear_weight=19.0)
    matrix, weight, error = fix_reduction(engine, found)
    np.testing.assert_array_equal(matrix, wanted)
    assert (weight, asked) == (11.0 + 19.0, [("t", "p")])
    assert error == pytest.approx(5.0 + 1.7, rel=1e-12)
    exact = SimpleNamespace(**{**vars(engine), "rounding": SimpleNamespace(linear_error=0.0, sum_of_h=lambda _: 0.0)})
    for made in (fix_reduction(exact, found), fix_by_sum(exact, less, SimpleNamespace(linear=13.0, weigh=lambda: 7.0))):
        assert made[2] == pytest.approx(U * np.linalg.norm(wanted), rel=1e-9, abs=0)  # the addition


def test_noise_is_relative_to_the_weight_itself():
    own, other = np.array([1e6 + 5e-7, 1e6 + 5e-6]), np.array([1e6, 1e6])
    out = np.empty(2)
    count, size, lost = strayed_weights(own, other, np.ones(2), 1e-12, out)
    assert (count, out[0]) == (1, 0.0)
    assert size == pytest.approx(5e-6, rel=1e-3, abs=0)
    assert lost == pytest.approx(5e-7, rel=1e-3, abs=0)


def test_a_reference_is_evaluated_at_the_lambda_that_is_asked_for():
    problem = make_case(2, n=30, d=3, m=300).problem
    made = Reference.at(problem, random_metric(5, 3, "psd"), 1.0, problem.loss.gamma)
    lam = 0.1 * problem.lambda_max()
    gaps = [made.evaluate(problem, at)[0].gap for at in (lam, lam, 3 * lam, lam)]
    assert gaps[0] == gaps[1] == gaps[3] != gaps[2]
    for at, gap in ((lam, gaps[0]), (3 * lam, gaps[2])):
        fresh = problem.evaluate(made.M, made.dist, at, problem.loss.gamma)
        assert gap == pytest.approx(fresh.gap, rel=1e-9)
    assert made.evaluate(problem, lam)[0] is made.evaluate(problem, lam)[0]


def test_where_too_much_would_stay_there_is_no_working_set(monkeypatch):
    found = SimpleNamespace(triplets=None, counts=(3, 4), pairs="pairs")
    asked = []
    triplets = SimpleNamespace(lists_triplets=False, reduce=lambda *arguments: asked.append(arguments) or found)
    problem = SimpleNamespace(triplets=triplets, rounding=SimpleNamespace(norm_offset=0.5), threads="threads")
    monkeypatch.setattr(working_set, "fix_reduction", lambda *arguments: arguments)
    tube, reference = Tube(None, None, 2.0), SimpleNamespace(dist="here", sums=SimpleNamespace(smoothing=0.25))
    assert WorkingSet.around(problem, reference, tube, "there", 0.125, None, 0.75) is None
    assert asked == [(("here", "there"), (2.0, 2.0), 0.125, 0.5, 0.75, True, 0.25, "threads")]
    found.triplets = "some"
    made = WorkingSet.around(problem, reference, tube, "there", 0.125, None, 0.75)
    assert (made.engine, made.pairs, made.fixed, made.by_ranges, made.is_safe) == (
        (problem, found),
        "pairs",
        None,
        (0, 0),
        False,
    )
    safe = WorkingSet.around(problem, reference, Tube(None, None, np.inf), "there", 0.125, None, 0.75)
    assert (safe.by_ranges, safe.is_safe) == ((3, 4), True)


def test_tubes_doubt_the_norm_of_what_is_asked_about_too():
    large, none = 1e12 * np.eye(2), np.zeros((2, 2))
    assert not Tube(large, none, 0.05).holds(large)
    assert not Tube(none, large, 0.05).holds(none)
    assert Tube(large, none, 0.5).holds(large)


def test_what_is_too_small_to_be_put_right_is_an_error(monkeypatch):
    """Weights that differ by noise are left, and counted; others change the matrix, with the bound of that."""
    monkeypatch.setattr(working_set, "_NOISE", 0.1)
    triplets = SimpleNamespace(n_pairs=4)
    cone = SimpleNamespace(assemble_few=lambda some, strayed, count, threads: strayed.sum() * np.eye(2))
    rounding = SimpleNamespace(sum_of_h=lambda weight: 0.5 * weight)
    problem = SimpleNamespace(triplets=triplets, cone=cone, rounding=rounding, threads=None)
    made = Reference(1.0, None, None, np.array([1.0, 2.0, 0.0, 1.0]), np.eye(2), None, 0.0)
    found, work = made.put_right(problem, np.array([1.125, 1.0, 0.0, 1.0]), 3.0, np.array([16.0, 1.0, 1.0, 1.0]))
    assert found.error == pytest.approx(3.0 + 0.125 * 4 + 0.5 * 1.0)
    np.testing.assert_allclose(found.A, 2 * np.eye(2))
    assert work == 0.5 / 4
    found, work = made.put_right(problem, np.array([1.125, 2.0, 0.0, 1.0]), 3.0, np.array([16.0, 1.0, 1.0, 1.0]))
    assert (found.error, work) == (3.5, 0.0)
    assert found.A is made.A


def test_noise_is_relative_to_the_size_of_a_weight_whatever_its_sign():
    own, other = np.array([-1e6 - 5e-7, -1e6 - 5e-6, -0.5]), np.array([-1e6, -1e6, -0.5 + 1e-12])
    out = np.empty(3)
    count, size, lost = strayed_weights(own, other, np.ones(3), 1e-12, out)
    assert (count, out[0], out[2]) == (1, 0.0, 0.0)
    assert size == pytest.approx(5e-6, rel=1e-3, abs=0)
    assert lost == pytest.approx(5e-7, rel=1e-3, abs=0)
