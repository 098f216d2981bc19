"""From one lambda to the next: what the walk predicts, fixes and proves on its way."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import triscreen as ts
from problems import SWITCHES, check_path, make_case
from triscreen.path.walk import Walk
from triscreen.screening.ranges import rrpb_ranges

CONES = ["psd", "diagonal"]


def test_a_tube_that_is_far_too_narrow_still_ends_at_the_optimum(monkeypatch):
    """Fixed triplets stray at every lambda: the proof by all pairs finds them."""
    monkeypatch.setattr("triscreen.path.walk._NARROW", 1e-6)
    monkeypatch.setattr("triscreen.path.walk._WIDE", 1e-6)
    case = make_case(7, n=40, d=4, m=500)
    path = ts.solve_path(case.problem, ratio=0.6, n_lambdas=10, tol=1e-8)
    check_path(case.problem, path, 1e-8)


def test_a_wrong_prediction_costs_work_and_not_the_answer(monkeypatch):
    real = Walk._predict

    def wrong(self, lam):
        start = real(self, lam)
        return self.problem.cone.project(start.plus + 0.3 * np.eye(len(start.plus)))

    monkeypatch.setattr(Walk, "_predict", wrong)
    case = make_case(7, n=40, d=4, m=500)
    check_path(case.problem, ts.solve_path(case.problem, ratio=0.7, n_lambdas=8), 1e-6)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("screening", SWITCHES)
@pytest.mark.parametrize("gamma", [0.05, 0.0])
@pytest.mark.parametrize(("seed", "size"), [(0, (40, 4, 500)), (1, (40, 4, 500)), (2, (10, 2, 1500))])
def test_a_lambda_that_ends_early_is_reported_as_it_is_and_spoils_no_other(screening, gamma, seed, size):
    """Found by an attack: the best point of one working set was taken for one of the next."""
    n, d, m = size
    case = make_case(seed, n=n, d=d, m=m, gamma=gamma)
    for max_iter, ratio, tol in itertools.product((3, 5), (0.9, 0.6), (1e-6, 1e-9)):
        lambdas = case.problem.lambda_max() * ratio ** np.arange(8)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ts.ConvergenceWarning)
            path = ts.solve_path(case.problem, lambdas, tol=tol, max_iter=max_iter, screening=screening)
        for t, certificate in enumerate(path.certify()):
            assert path.primals[t] == pytest.approx(certificate.primal, rel=1e-8)
            # The last digit of a margin moves the alpha of a hinge by that digit over its smoothing (down to 1e-12).
            digits = 1e-9 + 1e-18 / path[t].smoothing
            assert certificate.gap <= path.gaps[t] * (1 + 1e-6) + digits * certificate.primal


@pytest.mark.parametrize("screening", SWITCHES[1:])
def test_far_above_lambda_max_there_is_nothing_left_to_solve(screening):
    case = make_case(3, n=40, d=4, m=500)
    path = ts.solve_path(case.problem, case.problem.lambda_max() * np.array([9.0, 4.0, 2.0]), screening=screening)
    check_path(case.problem, path, 1e-6)
    always = ts.Screening("mid", every=1)
    check_path(case.problem, ts.solve_path(case.problem, path.lambdas, screening=always), 1e-6)


def test_a_walk_may_go_up_again_with_ranges():
    """Where a guarantee closes a hole; ranges are for falling lambdas."""
    for seed in range(6):
        case = make_case(seed, n=40, d=4, m=500)
        for active_set in (True, False):
            walk = Walk(case.problem, ts.solvers.BarzilaiBorwein(), ts.Screening(active_set=active_set), 1e-7, 10_000)
            start = case.problem.lambda_max()
            for share in (0.5, 0.01, 0.3, 0.02, 0.9):
                row = walk.step(share * start, share * start)
                certificate = case.problem.certificate(row.factor @ row.factor.T, share * start)
                assert certificate.gap <= row.gap + 1e-10 * certificate.primal
                assert row.primal == pytest.approx(certificate.primal, rel=1e-9)


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("seed", [0, 1, 2, 5])
def test_zones_of_ranges_hold_down_to_their_end(cone, seed):
    case = make_case(seed, n=40, d=3, kind="knn", cone=cone)
    problem, gamma = case.problem, case.gamma
    screening = ts.Screening("rrpb", ranges=True, active_set=False)
    walk = Walk(problem, ts.solvers.BarzilaiBorwein(), screening, 1e-6, 10_000)
    positive, negative = problem.triplets.pair_numbers(np.ones(problem.triplets.n_triplets, dtype=bool))
    decided = 0
    for lam in problem.lambda_max() * 0.6 ** np.arange(1, 7):
        walk.step(lam, lam)
        walk.step(0.97 * lam, 0.97 * lam)  # makes the last one a reference
        reference = walk.references[-1]
        for share in (0.97, 0.8, 0.6):
            walk.until = share * reference.lam
            zones = walk._range_zones(reference, gamma)
            ends = rrpb_ranges(
                reference.dist[negative] - reference.dist[positive],
                walk._doubts(reference)[1] * problem.norms,
                problem.norms,
                float(np.linalg.norm(reference.M)),
                reference.lam,
                walk._doubts(reference)[0],
                gamma,
            )
            for zone, (low, high) in ends.items():  # the closed form, a little weaker: it scales the doubt, too
                inside = (low * (1 + 1e-6) < walk.until) & (reference.lam < high)
                assert (zones[inside] == zone).all()
            for at in np.linspace(share, 1, 4):
                best = ts.solve(problem, at * reference.lam, tol=1e-11, screening=None)
                dist = problem.distances(problem.cone.project(problem.to_core(best.M)[0]).factor)
                margins, room = dist[negative] - dist[positive], problem.norms * best.radius
                assert (margins[zones == 2] > 1 - room[zones == 2]).all()
                assert (margins[zones == 1] < 1 - gamma + room[zones == 1]).all()
            decided += np.count_nonzero(zones)
    assert decided > 500


def test_the_hinge_after_a_large_step():
    """Found by an attack: it began with the fine smoothing of the lambda before."""
    case = make_case(36, n=25, d=3, m=100, gamma=0)
    lambdas = case.problem.lambda_max() * np.array([1.0, 0.5, 2e-4])
    path = ts.solve_path(case.problem, lambdas, tol=1e-5)
    check_path(case.problem, path, 1e-5)


def test_tiny_gammas_and_the_hinge_keep_their_primal_along_the_way():
    """Alphas jump with the last digit of a margin here: A must be that of the reference's own alphas."""
    for gamma in (1e-6, 0.0):
        case = make_case(2, n=40, d=4, m=500, gamma=gamma)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ts.ConvergenceWarning)
            path = ts.solve_path(case.problem, ratio=0.9, n_lambdas=40, tol=1e-6)
        for t, certificate in enumerate(path.certify()):
            assert path.primals[t] == pytest.approx(certificate.primal, rel=1e-11)
