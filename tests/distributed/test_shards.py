"""The same problem in shards, in this process: the answers of the plain engine, whatever the kind of problem."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from itertools import product

import numpy as np
import pytest
from kinds import KINDS, both, labelled
from sklearn.datasets import load_iris

import triscreen as ts
from nightly import cases
from problems import SWITCHES, check_path, is_certified
from triscreen.distributed import plan, shards
from triscreen.distributed.here import Here
from triscreen.problem.rounding import trace
from triscreen.screening.fixing import fix_reduction

LOSSES, CONES = {"smoothed": ts.SmoothedHinge(0.05), "hinge": ts.Hinge()}, ("psd", "diagonal")


def radius(sol):
    return np.sqrt(2 * (sol.gap + sol.rounding) / sol.lam)


def check_solution(plain, problem, lam):
    """The plain engine's solution within the certified radii, and its certificate of this one, to 1e-12."""
    sol, other = ts.solve(problem, lam), ts.solve(plain, lam)
    assert sol.converged
    is_certified(problem, sol)
    assert np.linalg.norm(sol.M - other.M) <= radius(sol) + radius(other)
    proof = plain.certificate(sol.M, lam)
    assert sol.primal == pytest.approx(proof.primal, rel=1e-12)
    assert sol.gap == pytest.approx(proof.gap, rel=1e-12, abs=1e-12 * proof.primal)


# By day every kind, with one cone and loss or another; in the night every kind with every cone and every loss.
EVERY = list(product(KINDS, CONES, LOSSES))
FEW = [EVERY[4 * i + (i + i // 4) % 4] for i in range(len(KINDS))]


@pytest.mark.parametrize(("kind", "cone", "loss"), cases(FEW, EVERY))
def test_solutions_are_those_of_the_plain_engine(kind, cone, loss):
    plain, problem = both(kind, loss=LOSSES[loss], cone=cone)
    assert problem.triplets.n_triplets == plain.triplets.n_triplets
    assert problem.lambda_max() == pytest.approx(plain.lambda_max(), rel=1e-12)
    check_solution(plain, problem, 0.02 * plain.lambda_max())


@pytest.mark.parametrize(("kind", "cone", "loss"), cases(FEW, EVERY))
def test_priors(kind, cone, loss):
    plain, problem = both(kind, loss=LOSSES[loss], cone=cone, prior="identity", seed=1)
    assert problem.lambda_max() == pytest.approx(plain.lambda_max(), rel=1e-9)
    check_solution(plain, problem, 0.05 * plain.lambda_max())


@pytest.mark.parametrize(("kind", "cone"), [("knn", "psd"), ("all", "diagonal")])
def test_paths_with_a_prior(kind, cone):
    _, problem = both(kind, cone=cone, prior="identity")
    check_path(problem, ts.solve_path(problem, ratio=0.5, n_lambdas=5), 1e-6)


def test_what_is_tried_by_day_has_every_kind_cone_and_loss():
    assert [{case[i] for case in FEW} for i in range(3)] == [set(KINDS), set(CONES), set(LOSSES)]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("screening", [s for s in SWITCHES if "linear" not in s.id])
@pytest.mark.parametrize("kind", ["knn", "lmnn", "given weighted"])
def test_paths_with_every_way_of_screening(kind, screening):
    plain, problem = both(kind)
    path = ts.solve_path(problem, ratio=0.7, n_lambdas=9, screening=screening)
    check_path(problem, path, 1e-6)
    assert np.allclose(path.primals, ts.solve_path(plain, ratio=0.7, n_lambdas=9).primals, rtol=2e-6)


def test_screening_screens_and_a_guarantee_holds():
    _, problem = both("knn", n=90)
    path = ts.solve_path(problem, ratio=0.8, n_lambdas=12)
    assert path.screening_rates[-1] > 0.5
    assert path.passes.sum() < 0.8 * ts.solve_path(problem, ratio=0.8, n_lambdas=12, screening=None).passes.sum()
    path = ts.solve_path(problem, guarantee=0.05, n_lambdas=6)
    lam = np.sqrt(path.lambdas[1] * path.lambdas[2])
    assert path.at(lam).rel_gap <= 0.05


@pytest.mark.parametrize("solver", ["bb", "newton"])
def test_solvers(solver):
    plain, problem = both("knn")
    lam = 0.003 * plain.lambda_max()
    sol = ts.solve(problem, lam, solver=solver, tol=1e-9)
    assert sol.primal == pytest.approx(ts.solve(plain, lam, tol=1e-9).primal, rel=2e-9)


def test_what_looks_at_triplets_one_by_one_is_refused():
    _, problem = both("knn")
    with pytest.raises(ts.InputError, match="triplets in shards are not listed"):
        ts.solve(problem, 1.0, solver="dual")
    with pytest.raises(ts.InputError, match="triplets in shards are not listed"):
        ts.solve(problem, 1.0, screening=ts.Screening("mid", rule="linear"))
    with pytest.raises(ts.InputError, match="triplets in shards are not listed"):
        problem.certificate(np.eye(4), 1.0, alpha=np.zeros(problem.triplets.n_triplets))
    with pytest.raises(ts.InputError, match="not in this process"):
        _ = problem.points


# -- what is decided in a ball is decided ------------------------------------------------------------------------------


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_left_has_the_same_objective_all_over_the_ball(kind, cone):
    """The smaller problem and the whole one agree for every metric of the ball, as they do only if all is decided."""
    _, problem = both(kind, cone=cone, n=60)
    lam = 0.02 * problem.lambda_max()
    M = problem.checked(ts.solve(problem, lam, tol=1e-3).M)[1]
    dist, size = problem.triplets.distances_of(M), float(np.linalg.norm(M))
    rng, left = np.random.default_rng(3), []
    for radius in (0.01 * size, 0.1 * size):
        error = problem.rounding.margin(dist, trace(M))
        found = problem.triplets.reduce((dist, dist), (radius, radius), error, problem.rounding.norm_offset,
                                        1 - 0.05, True, 0.05, problem.threads)  # fmt: skip
        less = fix_reduction(problem, found)
        left.append(less.triplets.n_pairs)
        assert sum(found.counts) <= problem.triplets.n_triplets
        for _ in range(4):
            step = rng.normal(size=M.shape)
            step = step if M.ndim == 1 else step + step.T
            there = M + radius * step / np.linalg.norm(step)
            at = problem.triplets.distances_of(there)
            whole, part = problem.evaluate(there, at, lam, 0.05), less.evaluate(there, at, lam, 0.05)
            assert part.primal == pytest.approx(whole.primal, rel=1e-11)
            assert np.allclose(part.A, whole.A, rtol=1e-9, atol=1e-9 * np.abs(whole.A).max())
    assert left[0] < problem.triplets.n_pairs
    assert left[0] <= left[1]


# -- the same bits -----------------------------------------------------------------------------------------------------


def test_what_was_forgotten_is_made_again_to_the_same_bits(monkeypatch):
    """A worker that does not have a shard, or what is left of it, makes it from the plan and the steps."""
    path = ts.solve_path(both("knn")[1], ratio=0.7, n_lambdas=8)
    _, problem = both("knn")
    rounds, forgotten = 0, 0
    ask = type(problem.triplets.pool).map

    def forgetful(self, *arguments, **named):
        nonlocal rounds, forgotten
        rounds += 1
        if rounds % 3 == 0:
            forgotten += shards.forget(problem.triplets.plan)
        return ask(self, *arguments, **named)

    monkeypatch.setattr(type(problem.triplets.pool), "map", forgetful)
    other = ts.solve_path(problem, ratio=0.7, n_lambdas=8)
    assert forgotten > 20
    assert np.array_equal(path.gaps, other.gaps)
    assert all(np.array_equal(path.M(t), other.M(t)) for t in range(8))


@pytest.mark.parametrize("names", [(), ("a",)])
def test_what_is_dropped_at_the_moment_of_asking_is_no_loss(names, monkeypatch):
    """A worker is told to drop shards while it works: what it has found in its cache it goes on with."""
    _, problem = both("knn", n_shards=1)
    plan, get = problem.triplets.plan, shards._get
    shards._put(plan, 0, names, shards._get(plan, 0, ()))

    def dropping(*key):
        found = get(*key)
        shards.forget(plan)
        return found

    monkeypatch.setattr(shards, "_get", dropping)
    known_by = problem.triplets._facts[0].known_by
    numbers = shards.perform(plan, 0, known_by, names, None, "numbers", ())
    assert numbers == problem.triplets._facts[0].numbers


def test_shards_of_all_triplets_share_their_points_and_leave_none(monkeypatch):
    """Two tasks of a worker begin at once; and when the problem is over, nobody keeps its points."""
    _, problem = both("all", n_shards=2)
    triplets, made, known_by = problem.triplets, [], [one.known_by for one in problem.triplets._facts]
    shards.forget(triplets.plan)
    read = plan.Plan.points
    monkeypatch.setattr(plan.Plan, "points", lambda *a: made.append(1) or time.sleep(0.1) or read(*a))
    work = [
        threading.Thread(target=shards.perform, args=(triplets.plan, i, known_by[i], (), None, "numbers", ()))
        for i in range(2)
    ]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert made == [1]
    points = weakref.ref(shards._get(triplets.plan, 0, ()).triplets.points)
    assert points() is not None
    del problem, triplets
    gc.collect()
    assert points() is None


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_threads_and_layouts_do_not_change_bits(n_jobs):
    X, y = labelled(n=60)
    first = ts.distributed.problem(None, X, y, k=3, n_shards=4, n_jobs=n_jobs)
    other = ts.distributed.problem(None, np.asfortranarray(X), y, k=3, n_shards=4)
    lam = 0.01 * first.lambda_max()
    assert np.array_equal(ts.solve(first, lam).M, ts.solve(other, lam).M)


def test_checkpoints_go_on_to_the_same_bits(tmp_path):
    whole = ts.solve_path(both("knn")[1], ratio=0.7, n_lambdas=9)
    ts.solve_path(both("knn")[1], ratio=0.7, checkpoint=tmp_path / "c", callback=lambda state: state.n_lambdas == 4)
    other = ts.solve_path(both("knn")[1], ratio=0.7, n_lambdas=9, checkpoint=tmp_path / "c")
    assert np.array_equal(whole.gaps, other.gaps)
    with pytest.raises(ts.InputError, match="checkpoint"):
        ts.solve_path(both("knn", seed=1)[1], ratio=0.7, checkpoint=tmp_path / "c")


def test_the_number_of_shards_follows_from_the_data():
    X, y = labelled(n=60)
    assert ts.distributed.problem(None, X, y, k=3).n_shards == 1
    assert ts.distributed.problem(None, X, y, k=3, n_shards=1000).n_shards == 60
    from triscreen.distributed.problem import _count_shards

    assert [_count_shards("knn", n, 5, {}) for n in (10**4, 10**6, 10**7, 10**9)] == [1, 8, 128, 256]


def test_max_seconds_ends_a_solve(monkeypatch):
    _, problem = both("knn")
    lam, perform = 1e-6 * problem.lambda_max(), shards.perform
    monkeypatch.setattr("triscreen.distributed.triplets.perform", lambda *a, **n: time.sleep(0.01) or perform(*a, **n))
    with pytest.warns(ts.ConvergenceWarning):
        sol = ts.solve(problem, lam, tol=1e-12, max_seconds=0.2)
    assert sol.stopped_by == "max_seconds"


def bytes_of(*things):
    """Memory of all arrays that can be reached from some things, each counted once."""
    seen, arrays, left = set(), {}, list(things)
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            while isinstance(one.base, np.ndarray):
                one = one.base
            arrays[id(one)] = one.nbytes
        elif isinstance(one, list | tuple | dict):
            left += one.values() if isinstance(one, dict) else one
        else:
            left += getattr(one, "__dict__", {}).values()
    return sum(arrays.values())


@pytest.mark.parametrize("kind", ["knn", "given"])
def test_what_a_worker_keeps_is_no_more_than_was_told(kind, monkeypatch):
    """Points of many features: what is left of a shard has its own copy of nearly all of them."""
    told, most = [], []
    monkeypatch.setattr(Here, "check_memory", lambda _, what, kept, working: told.append(sum(kept)))
    _, problem = both(kind, n=500, d=30, n_shards=2)

    def look(state):
        kept = [one for key, one in shards._states.items() if key[0] == problem.triplets.plan]
        most.append(bytes_of(*kept))

    ts.solve_path(problem, ratio=0.85, n_lambdas=12, solver="newton", tol=1e-3, callback=look)
    assert 0.3 * told[-1] < max(most) <= told[-1]


def test_few_points_need_little_memory_for_all_their_triplets(monkeypatch):
    told = []
    monkeypatch.setattr(Here, "check_memory", lambda _, what, kept, working: told.append(sum(kept) + working))
    both("all", n=48)
    assert told[-1] < 2e8


def test_what_is_left_is_kept_as_long_as_there_is_room():
    """The last two whatever they take, others as long as all take no more than twice the shard itself."""

    def kept(*shares):
        shards._put(plan, 0, (), whole)
        for i, share in enumerate(shares):
            state = shards.State(whole.triplets, whole.cone)
            state.__class__ = type("Part", (shards.State,), {"size": share * whole.size})
            shards._put(plan, 0, (f"{i}",), state)
        found = [key[2] for key in shards._states if key[0] == plan and key[2]]
        shards.keep_only(plan, (1,))
        return found

    _, problem = both("knn", n_shards=1)
    plan = problem.triplets.plan
    whole = shards._states[plan, 0, ""]
    assert kept(0.9, 0.9, 0.9) == ["1", "2"]
    assert kept(1.5, 1.5) == ["0", "1"]
    assert kept(0.9, 0.5, 0.5, 0.5) == ["1", "2", "3"]
    assert kept(0.1, 0.1, 0.1, 0.1, 0.1) == ["1", "2", "3", "4"]


def test_small_classes_and_points_without_triplets():
    X, y = labelled(n=40)
    y = y.copy()
    y[:2], y[2] = 7, 8  # a class of two points, and one of one
    with pytest.warns(ts.SmallClassWarning, match="one point only, no anchor"):
        plain = ts.Problem(X, ts.knn_triplets(X, y, 3))
    with pytest.warns(ts.SmallClassWarning, match="one point only, no anchor"):
        problem = ts.distributed.problem(None, X, y, k=3, n_shards=5)
    assert problem.triplets.n_triplets == plain.triplets.n_triplets
    assert problem.triplets.n_pairs == plain.triplets.n_pairs
    M = np.diag([1.0, 2.0, 0.5, 0.1, 0.0])
    assert problem.value(M, 1.0) == pytest.approx(plain.value(M, 1.0), rel=1e-13)
    assert np.allclose(problem.gradient(M, 1.0), plain.gradient(M, 1.0), rtol=1e-11)


def test_what_a_shard_remembers_of_a_metric_is_that_metric():
    _, problem = both("knn", n_shards=1)
    state = shards._states[problem.triplets.plan, 0, ""]
    metrics = [(0.1 * np.eye(4), True), (np.diag([1.0, 0, 0, 2]), True), (0.1 * np.eye(4), False)]
    fresh = [shards.State(state.triplets, state.cone).evaluate(problem.threads, m, 0.05) for m in metrics]
    for i in (0, 0, 1, 1, 2, 2, 0):
        sums, A = state.evaluate(problem.threads, metrics[i], 0.05)
        assert sums == fresh[i][0]
        assert np.array_equal(A, fresh[i][1])
    assert fresh[0][0] != fresh[2][0]  # a factor, and a matrix


def test_what_becomes_of_a_metric_here_changes_nothing_that_was_asked_with_it():
    """Shards in this process get the arrays themselves; what is made again gets them from the steps."""
    _, problem = both("knn", n_shards=1)
    T, threads, F = problem.triplets, problem.threads, 0.1 * np.eye(4)
    first = T.sweep(T.distances_under(problem.cone, F, threads), 0.05, threads)[0]
    F *= 3
    assert T.sweep(T.distances_under(problem.cone, F, threads), 0.05, threads)[0] != first
    M = ts.solve(problem, 0.02 * problem.lambda_max()).M
    dist, there = T.distances_of(M), T.distances_of(M.copy())
    less = T.reduce((dist, dist), (0.01, 0.01), 0.0, 0.0, 0.95, True, 0.05, threads).triplets
    assert 0 < less.n_pairs < T.n_pairs
    before = less.sweep(there, 0.05, threads)[0]
    M *= 0.1
    shards.forget(T.plan)
    assert less.sweep(there, 0.05, threads)[0] == before


@pytest.mark.parametrize("kind", ["knn", "all"])
def test_margins_are_as_exact_as_their_bound_says(kind):
    """Distances by a factor, and by a matrix that is none of a metric, against those of many digits."""
    from fractions import Fraction

    X, y = labelled(n=24, d=3)
    X = X + np.array([1e3, 0.0, 0.0]) * (np.arange(24) % 2)[:, None]  # far points make rounding visible
    T = ts.knn_triplets(X, y, 3) if kind == "knn" else ts.all_triplets(X, y)
    problem = ts.distributed.problem(None, X, y, kind, 3, n_shards=1)
    rows, F = T.indices()[::7], np.random.default_rng(0).normal(size=(3, 2))
    M = F @ F.T - 0.3 * np.eye(3)
    exact = [[Fraction(float(value)) for value in row] for row in X]
    inner = shards._states[problem.triplets.plan, 0, ""].triplets
    place = np.searchsorted(inner.point_ids, np.arange(24)) if kind == "knn" else np.argsort(inner.point_ids)
    for metric, recipe in (
        ((F, True), problem.triplets.distances_under(problem.cone, F, problem.threads)),
        ((M, False), problem.triplets.distances_of(M)),
    ):
        matrix = F @ F.T if metric[1] else M
        wide = [[Fraction(float(value)) for value in row] for row in (F if metric[1] else matrix)]
        bound = problem.rounding.margin(recipe, None)
        dist = shards.distances(inner, problem.cone, metric, problem.threads)
        for i, j, k in rows:
            found = computed(inner, dist, place[i], place[k]) - computed(inner, dist, place[i], place[j])
            wanted = length(exact, wide, i, k, metric[1]) - length(exact, wide, i, j, metric[1])
            assert abs(Fraction(found) - wanted) <= bound
        assert bound < 1e-6 * float(np.abs(X).max()) ** 2


def computed(triplets, dist, a, b):
    """The distance of a pair, as a shard has it."""
    if triplets.lists_pairs:
        found = np.flatnonzero((triplets.first == a) & (triplets.second == b))
        return float(dist[found[0]])
    return float(dist.squares[a] + dist.squares[b] - 2 * (dist.left[a] @ dist.right[b]))


def length(points, matrix, a, b, is_factor):
    """The same in fractions."""
    delta = [u - v for u, v in zip(points[a], points[b], strict=True)]
    there = [sum(delta[r] * matrix[r][c] for r in range(len(delta))) for c in range(len(matrix[0]))]
    return sum(v * v for v in there) if is_factor else sum(u * v for u, v in zip(delta, there, strict=True))


def test_a_path_from_a_file_is_certified_in_shards(tmp_path):
    """Sharded points have no hash to compare: what is evaluated there is proven by itself."""
    X, y = load_iris(return_X_y=True)
    path = ts.solve_path(ts.Problem(X, ts.knn_triplets(X, y, k=5)), ratio=0.5, n_lambdas=4)
    ts.save(path, tmp_path / "iris.path")
    problem = ts.distributed.problem(None, X, y, k=5, n_shards=2, folder=tmp_path / "shards")
    proofs = ts.load(tmp_path / "iris.path").certify(problem)
    np.testing.assert_allclose([proof.primal for proof in proofs], [row.primal for row in path], rtol=1e-12)
