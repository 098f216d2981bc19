"""A tube of metrics: what it fixes stays in its zone for every M inside, and outside the proof is by all pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import triscreen as ts
from problems import make_case, random_metric
from triscreen.problem.curvature import Curvature
from triscreen.screening.working_set import Reference, Tube, WorkingSet

CASES = [
    pytest.param({}, id="given"),
    pytest.param({"weighted": True}, id="weighted"),
    pytest.param({"kind": "knn"}, id="knn"),
]


def a_tube(case, seed, radius, both=True):
    """A reference near the optimum, a tube from it to another metric, and its working set."""
    problem, rng = case.problem, np.random.default_rng(seed)
    lam = 0.03 * problem.lambda_max()
    M = problem.to_core(ts.solve(problem, lam, tol=1e-8).M)[0]
    reference = Reference.at(problem, M, lam, problem.loss.gamma)
    other = problem.cone.project(M + 0.1 * rng.normal() * random_metric(seed, len(M), problem.cone.name))
    dist = problem.distances(other.factor)
    tube = Tube(M, other.plus, radius * float(np.linalg.norm(M)))
    squares = np.square(problem.triplets.euclid(problem.threads))
    working = WorkingSet.around(problem, reference, tube, dist, 1e-12, squares, low=1 - problem.loss.gamma, both=both)
    return problem, lam, reference, tube, squares, working, rng


def inside(tube, rng, cone):
    """A random member of the tube, in the cone."""
    while True:
        step = rng.normal(size=tube.begin.shape)
        step = step + step.T if step.ndim == 2 else step
        share = rng.uniform()
        M = tube.begin + share * (tube.end - tube.begin) + tube.radius * rng.uniform() * step / np.linalg.norm(step)
        M = cone.project(M).plus
        if tube.holds(M):
            return M


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
@pytest.mark.parametrize("options", CASES)
@pytest.mark.parametrize("seed", range(4))
def test_inside_the_tube_the_working_set_has_the_value_and_gap_of_all_triplets(options, cone, seed):
    case = make_case(seed, n=40, d=4, m=600, cone=cone, **options)
    problem, lam, _, tube, _, working, rng = a_tube(case, seed, radius=0.02)
    assert working.engine.triplets.n_triplets < problem.triplets.n_triplets
    for _ in range(5):
        M = inside(tube, rng, problem.cone)
        factor = problem.cone.project(M).factor
        whole = problem.evaluate(M, problem.distances(factor), lam, problem.loss.gamma)
        part = working.engine.evaluate(M, working.engine.distances(factor), lam, problem.loss.gamma)
        for name in ("primal", "dual", "gap", "A"):
            size = np.abs(getattr(whole, "primal" if name != "A" else "A")).max()
            assert getattr(part, name) == pytest.approx(getattr(whole, name), abs=1e-10 * size), name


@pytest.mark.parametrize("options", CASES)
@pytest.mark.parametrize("d", [1, 4])
@pytest.mark.parametrize("radius", [0.0, 0.02, 0.1, 0.3])
def test_a_fixed_triplet_keeps_its_zone_at_both_ends_and_by_its_norm_between_and_around(options, d, radius):
    """By brute force over the listed triplets: fixed means decided by the exact norm too."""
    case = make_case(3, n=60, d=d, m=900, **options)
    problem, _, reference, tube, _, working, _ = a_tube(case, 3, radius=radius)
    dist = problem.distances(problem.cone.project(tube.end).factor)
    positive, negative = problem.triplets.pair_numbers(np.ones(problem.triplets.n_triplets, dtype=bool))
    ends = [d[negative] - d[positive] for d in (reference.dist, dist)]
    reach = tube.radius * problem.norms
    above = np.minimum(*ends) - reach > 1
    below = np.maximum(*ends) + reach < 1 - problem.loss.gamma
    kept = np.isin(positive, working.pairs) & np.isin(negative, working.pairs)
    assert (above | below | kept).all()
    assert not kept.all()


@pytest.mark.parametrize("options", CASES)
@pytest.mark.parametrize("cone", ["psd", "diagonal"])
def test_outside_the_tube_the_proof_counts_those_that_strayed(options, cone):
    case = make_case(5, n=40, d=4, m=600, cone=cone, **options)
    problem, lam, reference, tube, squares, working, _rng = a_tube(case, 5, radius=1e-4)
    for size in (0.5, 1e-3):
        M = problem.cone.project(reference.M + size * random_metric(5, len(reference.M), cone)).plus
        assert not tube.holds(M)
        factor = problem.cone.project(M).factor
        part = working.engine.evaluate(M, working.engine.distances(factor), lam, problem.loss.gamma)
        proof, passes = working.prove(problem, M, lam, problem.loss.gamma, part.A, part.weights, squares)
        whole = problem.evaluate(M, problem.distances(factor), lam, problem.loss.gamma)
        assert pytest.approx(whole.A, abs=1e-10 * np.abs(whole.A).max()) == proof.A
        evaluation, rounding = proof.evaluate(problem, lam)
        assert evaluation.gap == pytest.approx(whole.gap, rel=1e-9)
        assert 0 < rounding < 1e-9 * whole.primal
        assert 0.5 <= passes <= 1.0


def test_the_papers_set_fixes_nothing_linear():
    case = make_case(3, n=40, d=4, m=600, kind="knn")
    problem, *_, working, _ = a_tube(case, 3, radius=0.0, both=False)
    reference = a_tube(case, 3, radius=0.0)[2]
    positive, negative = problem.triplets.pair_numbers(np.ones(problem.triplets.n_triplets, dtype=bool))
    loses = reference.dist[negative] - reference.dist[positive] < 1
    assert np.isin(positive[loses], working.pairs).all()
    assert working.engine.linear_weight == pytest.approx(0, abs=1e-9)


def test_a_tube_holds_its_ends_and_what_is_near_and_nothing_else():
    tube = Tube(np.diag([1.0, 0.0]), np.diag([3.0, 0.0]), 0.5)
    for M, held in [
        (np.diag([1.0, 0.0]), True),
        (np.diag([2.0, 0.49]), True),
        (np.diag([2.0, 0.51]), False),
        (np.diag([0.51, 0.0]), True),
        (np.diag([0.49, 0.0]), False),
        (np.diag([3.4, 0.4]), False),
    ]:
        assert tube.holds(M) is held
    assert replace(tube, end=tube.begin).holds(np.diag([1.2, 0.2]))


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
@pytest.mark.parametrize("options", CASES)
def test_hessian_products_are_differences_of_gradients(options, cone):
    case = make_case(2, n=40, d=4, m=600, cone=cone, gamma=0.5, **options)
    problem, rng = case.problem, np.random.default_rng(0)
    M = random_metric(1, 4, cone) + (0.5 * np.eye(4) if cone == "psd" else 0.5)

    def A(M):
        return problem.evaluate(M, problem.distances(problem.cone.project(M).factor), 1.0, 0.5)

    V = rng.normal(size=M.shape)
    V = V + V.T if V.ndim == 2 else V
    curvature = Curvature(problem, A(M))
    step = 1e-7 * np.linalg.norm(M) / np.linalg.norm(V)
    difference = -(A(M + step * V).A - A(M - step * V).A) / (2 * step)
    assert curvature.times(V) == pytest.approx(difference, rel=1e-5, abs=1e-5 * np.abs(difference).max())
    assert 0 < curvature.share <= 1
