"""Solutions, triplet by triplet."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.preprocessing import scale

import triscreen as ts

X, Y = load_wine(return_X_y=True)
X = scale(X)


def problems():
    wide = np.hstack([X, X[:, :1] * np.arange(1, 9), np.ones((len(X), 3))])  # rotated to its span
    some = ts.knn_triplets(X, Y, 3).indices()[::5]
    return {
        "knn": (X, ts.Problem(X, ts.knn_triplets(X, Y, 3))),
        "given": (X, ts.Problem(X, ts.given_triplets(some, np.linspace(0.5, 2, len(some))))),
        "some points": (X[:, :4], ts.Problem(X[:, :4], ts.given_triplets(some[(some % 5 > 0).all(axis=1)]))),
        "wide": (wide, ts.Problem(wide, ts.knn_triplets(X, Y, 3))),
        "diagonal": (X, ts.Problem(X, ts.knn_triplets(X, Y, 3), cone="diagonal")),
        "hinge": (X, ts.Problem(X, ts.knn_triplets(X, Y, 3), loss=ts.Hinge())),
        "tiny": (1e-30 * X, ts.Problem(1e-30 * X, ts.knn_triplets(X, Y, 3))),
        "prior": (X, ts.Problem(X, ts.knn_triplets(X, Y, 3), prior=0.1 * np.eye(13))),
    }


def by_hand(points, problem, M):
    i, j, k = problem.triplets.indices().T
    M = np.diag(M) if M.ndim == 1 else M
    far, near = points[i] - points[k], points[i] - points[j]
    return np.einsum("ta,ab,tb->t", far, M, far) - np.einsum("ta,ab,tb->t", near, M, near)


@pytest.mark.parametrize("name", problems())
def test_margins_alphas_and_zones_are_those_of_the_optimum(name):
    points, problem = problems()[name]
    lam = 0.01 * problem.lambda_max()
    sol, exact = ts.solve(problem, lam, tol=1e-5), ts.solve(problem, lam, tol=1e-9)
    found = sol.margins()
    np.testing.assert_allclose(found, by_hand(points, problem, sol.M), rtol=1e-8, atol=1e-8 * np.abs(found).max())
    # The alphas are a dual point that proves the gap.
    alpha = sol.alpha()
    assert ((alpha >= 0) & (alpha <= 1)).all()
    assert problem.certificate(sol.M, lam, alpha).gap <= 1.01 * sol.gap + 1e-12 * sol.primal
    # Zones hold at the optimum, which is known far better; and they say something.
    zones, margins, gamma = sol.zones(), exact.margins(), problem.loss.gamma
    assert (margins[zones == 1] < 1 - gamma).all()
    assert (margins[zones == 2] > 1).all()
    assert np.mean(zones == 2) > 0.2
    assert (np.isin(exact.zones(), (1, 2)) >= np.isin(zones, (1, 2))).all()


def test_a_zone_is_no_more_than_the_radius_allows():
    """A gap a hundred thousand times larger decides less, and a solution that is none decides nothing."""
    _, problem = problems()["knn"]
    lam = 0.01 * problem.lambda_max()
    decided = [np.mean(ts.solve(problem, lam, tol=tol).zones() > 0) for tol in (1e-8, 1e-4, 1e-1)]
    assert decided[0] > decided[1] > decided[2]
    with pytest.warns(ts.ConvergenceWarning):
        assert not ts.solve(problem, lam, max_iter=1, tol=1e-9).zones().any()


def test_paths_know_their_problem_too():
    points, problem = problems()["knn"]
    path = ts.solve_path(problem, n_lambdas=8, tol=1e-6)
    np.testing.assert_allclose(path[7].margins(), by_hand(points, problem, path.M(7)), atol=1e-9)
    lam = np.sqrt(path.lambdas[6] * path.lambdas[7])
    exact = ts.solve(problem, lam, tol=1e-9).margins()
    zones = path.at(lam).zones()
    assert (exact[zones == 2] > 1).all()
    assert (exact[zones == 1] < 0.95).all()


def test_what_is_saved_or_fitted_does_not_hold_the_points(tmp_path):
    _, problem = problems()["knn"]
    sol = ts.solve(problem, 0.01 * problem.lambda_max())
    ts.save(sol, tmp_path / "sol")
    plain = ts.TripletMetric(3).fit(X, Y).solution_
    for other in (ts.load(tmp_path / "sol"), pickle.loads(pickle.dumps(sol)), plain):
        with pytest.raises(ts.InputError, match="problem=None: a solution from a file, or an estimator's"):
            other.margins()
        assert len(other.margins(problem)) == problem.triplets.n_triplets
    assert len(pickle.dumps(sol)) < 60_000


def test_triplets_that_are_never_listed_have_no_numbers():
    P, y = load_iris(return_X_y=True)
    problem = ts.Problem(P, ts.all_triplets(P, y))
    sol = ts.solve(problem, 0.1 * problem.lambda_max(), tol=1e-2)
    for method in (sol.margins, sol.alpha, sol.zones):
        with pytest.raises(ts.InputError, match="never listed"):
            method()
