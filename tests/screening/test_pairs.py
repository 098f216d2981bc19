"""Screening without a list: what is decided, what leaves, and that the rest is the same problem."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import triscreen as ts
from problems import random_metric
from triscreen.screening import by_pair
from triscreen.screening.by_pair import PairScreener
from triscreen.screening.fixing import fix_reduction
from triscreen.triplets import all as never_listed
from triscreen.triplets._all_distances import Quadratic


@pytest.fixture(autouse=True)
def let_go_whatever_may_go(monkeypatch):
    monkeypatch.setattr(by_pair, "_PAYS", 1.0)
    monkeypatch.setattr(never_listed, "_WORTH_LISTING", 1.0)


def make(seed, n=30, d=3, k=None, loss=None, cone="psd", weighted=False):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(3, d))[y]
    T = ts.all_triplets(X, y, k, rng.uniform(0.2, 3, n) if weighted else None)
    return ts.Problem(X, T, loss=loss or ts.SmoothedHinge(0.05), cone=cone, n_jobs=1)


def by_hand(problem, ends, radii, error, low, both):
    """Zone of every triplet by the separable rule, one by one, and its two pairs."""
    X, local = problem.points, problem.triplets.local_indices()
    u, v = X[local[:, 0]] - X[local[:, 2]], X[local[:, 0]] - X[local[:, 1]]
    uu, vv = np.square(u).sum(axis=1), np.square(v).sum(axis=1)
    above, below = np.ones(len(local), dtype=bool), np.full(len(local), both)
    for M, r in zip(ends, radii, strict=True):
        M = np.diag(M) if M.ndim == 1 else M
        margin = np.einsum("ti,ij,tj->t", u, M, u) - np.einsum("ti,ij,tj->t", v, M, v)
        above &= margin - r * (uu + vv) - error > 1
        below &= margin + r * (uu + vv) + error < low
    return np.where(above, 2, np.where(below, 1, 0)), local


@pytest.mark.thinned(2)
@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("k", [None, 2])
@pytest.mark.parametrize("cone", ["psd", "diagonal"])
@pytest.mark.parametrize("seed", range(4))
def test_a_reduction_is_the_rule_triplet_by_triplet(seed, cone, k, both):
    problem = make(seed, k=k, cone=cone, weighted=seed % 2 == 1)
    T = problem.triplets
    ends = [random_metric(2 * seed + 1, 3, cone, 0.4) + (0.3 if cone == "diagonal" else 0.0)]
    ends.append(ends[0] * 1.1 + 0.02 * random_metric(seed + 7, 3, cone))
    radii = (0.02, 0.01) if seed < 3 else (0.0, 0.0)
    low = 1 - problem.loss.gamma
    zones, local = by_hand(problem, ends, radii, 1e-3, low, both)
    dists = [Quadratic(problem.points, M) for M in ends]
    offset = problem.rounding.norm_offset
    found = T.reduce(dists, radii, 1e-3, offset, low, both, problem.loss.gamma, problem.threads)
    assert zones.any()
    # Both balls at once: never more than the rule says, and hardly less.
    assert found.counts[1] <= np.sum(zones == 2)
    assert found.counts[0] <= np.sum(zones == 1)
    assert sum(found.counts) >= 0.98 * np.sum(zones > 0)
    # The triplets that stay: all that share two pairs with undecided ones; the rest goes with the alpha of its zone.
    inside = set(map(tuple, found.triplets.indices().tolist()))
    stays = np.array([tuple(row) in inside for row in T.indices().tolist()])
    assert stays[zones == 0].all()
    assert not (~stays & (zones == 0)).any()
    w = T.anchor_weights[local[:, 0]]
    gone = ~stays & (zones == 1)
    assert found.linear_weight == pytest.approx(w[gone].sum(), rel=1e-12)
    u = problem.points[local[:, 0]] - problem.points[local[:, 2]]
    v = problem.points[local[:, 0]] - problem.points[local[:, 1]]
    A = np.einsum("t,ti,tj->ij", w[gone], u[gone], u[gone]) - np.einsum("t,ti,tj->ij", w[gone], v[gone], v[gone])
    got = problem.assemble(found.weights)
    np.testing.assert_allclose(got, np.diag(A) if cone == "diagonal" else A, atol=1e-10 * (1 + np.abs(A).max()))
    # And again, from what is listed by now.
    less = fix_reduction(problem, found)
    if less.triplets.n_triplets:
        dists = [less.distances(less.cone.project(M).factor) for M in ends]
        radii = tuple(0.5 * r for r in radii)
        again = less.triplets.reduce(dists, radii, 1e-3, offset, low, both, problem.loss.gamma, less.threads)
        fewer = fix_reduction(less, again)
        smaller, _ = by_hand(problem, ends, radii, 1e-3, low, both)
        assert fewer.triplets.n_triplets >= np.sum(smaller == 0)
        M = ends[0]
        whole = problem.evaluate(M, Quadratic(problem.points, M), 3.0, problem.loss.gamma)
        part = fewer.evaluate(M, fewer.distances(fewer.cone.project(M).factor), 3.0, problem.loss.gamma)
        for name in ("primal", "dual", "gap"):
            assert getattr(part, name) == pytest.approx(getattr(whole, name), rel=1e-10), name


@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("bound", ["gb", "pgb", "dgb", "cdgb", "mid", ("rrpb", "mid")])
@pytest.mark.parametrize("loss", [ts.SmoothedHinge(0.05), ts.Hinge()], ids=str)
def test_screening_on_and_off_give_the_same(loss, bound, include):
    problem = make(3, n=45, loss=loss)
    lam = 3e-3 * problem.lambda_max()
    tol = 1e-6 if loss.gamma == 0 else 1e-9
    start = ts.solve(problem, lam / 0.9, tol=tol)
    off = ts.solve(problem, lam, tol=tol, screening=None, start=start)
    on = ts.solve(problem, lam, tol=tol, start=start, screening=ts.Screening(bound, every=2, include_solution=include))
    assert off.converged
    assert on.converged
    assert np.linalg.norm(on.M - off.M) <= on.radius + off.radius
    assert on.screening
    assert on.gap <= tol * abs(on.primal)
    assert problem.certificate(on.M, lam).rel_gap <= 1.01 * tol
    if bound != "gb":
        assert on.screening[-1]["undecided"] < 0.7 * problem.triplets.n_triplets
        assert on.history["undecided"][-1] == on.screening[-1]["undecided"]


def test_anchors_leave_where_pairs_are_too_many_to_list(monkeypatch):
    """Two far classes and a close pair of others: most anchors have nothing undecided."""
    monkeypatch.setattr(never_listed, "_WORTH_LISTING", 0.0)
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [30, 30, 6])
    X = rng.normal(size=(66, 2)) * 0.1 + np.array([[0, 0], [100, 0], [50, 0.2]])[y]
    X[60:] += rng.normal(size=(6, 2)) * 40
    problem = ts.Problem(X, ts.all_triplets(X, y), n_jobs=1)
    lam = 1e-4 * problem.lambda_max()
    best = ts.solve(problem, lam, tol=1e-8, screening=None)
    core = problem.to_core(best.M)[0]
    now = problem.evaluate(core, problem.distances(problem.cone.project(core).factor), lam, 0.05)
    screener = PairScreener(problem, ts.Screening("mid"), lam, 1e-6)
    less = screener.step(now, 1)
    assert screener.engine.triplets.n_triplets < problem.triplets.n_triplets
    assert len(screener.engine.triplets.anchors) < 60
    for name in ("primal", "dual", "gap"):
        assert getattr(less, name) == pytest.approx(getattr(now, name), rel=1e-9, abs=1e-12 * now.primal), name


SCREENINGS = {
    "none": None,
    "auto": "auto",
    "ranges": ts.Screening("mid", active_set=False, ranges=True, at_start=False),
    "loss": ts.Screening(("rrpb", "mid"), active_set="loss", ranges=False),
    "rrpb": ts.Screening(("rrpb", "mid"), active_set=False, ranges=False, every=2),
    "include": ts.Screening("mid", every=2, include_solution=True),
}


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", SCREENINGS)
@pytest.mark.parametrize("loss", [ts.SmoothedHinge(0.05), ts.Hinge()], ids=str)
def test_paths_are_certified_with_every_switch(loss, name):
    problem = make(5, n=36, d=4, loss=loss)
    tol = 1e-5 if loss.gamma == 0 else 1e-7
    path = ts.solve_path(problem, ratio=0.8, n_lambdas=22, tol=tol, screening=SCREENINGS[name])
    assert path.converged.all()
    for solution, certificate in zip(path, path.certify(), strict=True):
        assert certificate.rel_gap <= 1.1 * tol
        assert solution.primal == pytest.approx(certificate.primal, rel=1e-9)
    listed = ts.Problem(problem_points(5, 36, 4), ts.given_triplets(problem.triplets.indices()), loss=loss)
    reference = ts.solve_path(listed, lambdas=path.lambdas, tol=tol)
    for ours, theirs in zip(path, reference, strict=True):
        assert np.linalg.norm(ours.M - theirs.M) <= ours.radius + theirs.radius
    if name in ("auto", "ranges"):
        assert path.screening_rates.max() > 0.3


def problem_points(seed, n, d):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(3, d))[np.arange(n) % 3]


def test_a_path_goes_on_from_its_checkpoint_to_the_same_bits(tmp_path):
    problem = make(6, n=36, d=3)
    whole = ts.solve_path(problem, ratio=0.8, n_lambdas=15)
    for n in (4, 9, 15):
        arguments = {"checkpoint": tmp_path, "callback": lambda s, n=n: s.n_lambdas == n}
        path = ts.solve_path(problem, ratio=0.8, n_lambdas=15, **arguments)
    assert np.array_equal(path.gaps, whole.gaps)
    assert np.array_equal(path.M(-1), whole.M(-1))


def test_a_guarantee_holds_between_the_lambdas():
    problem = make(7, n=30)
    path = ts.solve_path(problem, guarantee=0.05, n_lambdas=8)
    for lam in np.geomspace(path.lambdas[0], path.lambdas[-1], 50)[1:-1]:
        assert path.at(lam).rel_gap <= 0.05
        assert problem.certificate(path.at(lam).M, lam).rel_gap <= 0.05 * (1 + 1e-9)


@pytest.mark.parametrize("solver", ["bb", "newton", "auto"])
@pytest.mark.parametrize("cone", ["psd", "diagonal"])
def test_solvers_reach_the_optimum_of_the_list(cone, solver):
    problem = make(8, n=30, cone=cone, weighted=True)
    X = problem_points(8, 30, 3)
    indices = problem.triplets.indices()
    place = np.empty(30, dtype=int)
    place[problem.triplets.point_ids] = np.arange(30)
    weights = problem.triplets.anchor_weights[place[indices[:, 0]]]
    listed = ts.Problem(X, ts.given_triplets(indices, weights), cone=cone)
    lam = 1e-3 * listed.lambda_max()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ts.ConvergenceWarning)
        ours, theirs = ts.solve(problem, lam, tol=1e-9, solver=solver), ts.solve(listed, lam, tol=1e-9)
    assert ours.gap == problem.certificate(ours.M, lam).gap
    assert np.linalg.norm(ours.M - theirs.M) <= ours.radius + theirs.radius


def test_where_triplets_have_no_numbers_there_are_no_zones():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    problem = ts.Problem(X, ts.all_triplets(X, y))
    screener = PairScreener(problem, ts.Screening("mid"), 1.0, 1e-6)
    assert (screener.zones, screener.numbers, screener.undecided) == (None, None, problem.triplets.n_triplets)
