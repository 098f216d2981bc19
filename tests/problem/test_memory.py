"""A memory budget holds: whatever is done with a problem, by every kind of set, within the smallest budget accepted."""

from __future__ import annotations

import re
import tracemalloc
import warnings

import numpy as np
import pytest

import triscreen as ts

# Python's own objects, histories and the like; arrays have to keep to the budget.
SLACK = 200_000
SHAPES = [(80, 30, 3), (200, 3, 4)]
KINDS = ["knn", "lmnn", "all", "given"]
VERBS = {
    "lambda_max": lambda p: p.lambda_max(),
    "certificate": lambda p: p.certificate(np.eye(p.n_features), 1.0),
    "estimate": lambda p: p.estimate(),
    "solve": lambda p: ts.solve(p, 3e-2 * p.lambda_max(), tol=1e-3, max_iter=12),
    "bb": lambda p: ts.solve(p, 3e-2 * p.lambda_max(), tol=1e-3, max_iter=6, solver="bb", screening=None),
    "screening": lambda p: ts.solve(
        p, 0.3 * p.lambda_max(), tol=1e-5, max_iter=8, screening=ts.Screening(("pgb", "cdgb", "mid"), every=2)
    ),
    "path": lambda p: ts.solve_path(p, n_lambdas=3, tol=1e-2, max_iter=12),
    "ranges": lambda p: ts.solve_path(p, n_lambdas=3, tol=1e-2, max_iter=12, screening=ts.Screening("mid", every=2)),
}
ONE_BY_ONE = {
    "dual": lambda p: ts.solve(p, 3e-2 * p.lambda_max(), tol=1e-2, max_iter=2, solver="dual"),
    "semidefinite": lambda p: ts.solve(
        p, 0.3 * p.lambda_max(), tol=1e-4, max_iter=4, screening=ts.Screening("mid", rule="semidefinite", every=2)
    ),
}


def make(kind, n, d, k):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, d)) + rng.normal(size=(3, d))[y]
    if kind == "knn":
        return X, ts.knn_triplets(X, y, k)
    if kind == "given":
        return X, ts.given_triplets(ts.knn_triplets(X, y, k).indices()[::2])
    return X, ts.all_triplets(X, y, k if kind == "lmnn" else None)


def peaks(steps):
    """Yield (name, the most bytes that were alive at a time so far and in this step) for (name, work) in turn."""
    tracemalloc.start()
    try:
        for name, work in steps:
            tracemalloc.reset_peak()
            work()
            yield name, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def smallest(X, T, **how):
    """The smallest budget that is accepted."""
    with pytest.raises(ts.InputError, match=r"memory_budget=1:") as caught:
        ts.Problem(X, T, memory_budget=1.0, n_jobs=2, **how)
    least = float(re.search(r"take about (\S+) bytes", str(caught.value)).group(1))
    with pytest.raises(ts.InputError, match=r"memory_budget="):
        ts.Problem(X, T, memory_budget=0.99 * least, n_jobs=2, **how)
    return 1.01 * least


@pytest.fixture(scope="module", autouse=True)
def everything_imported():
    """Modules and compiled kernels are nobody's data."""
    for kind in KINDS:
        for cone in ("psd", "diagonal"):
            problem = ts.Problem(*make(kind, 30, 2, 2), cone=cone, n_jobs=2)
            for verb in (VERBS | ONE_BY_ONE if problem.triplets.lists_triplets else VERBS).values():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ts.ConvergenceWarning)
                    verb(problem)


@pytest.mark.thinned(2)
@pytest.mark.filterwarnings("ignore::triscreen.ConvergenceWarning")
@pytest.mark.parametrize("cone", ["psd", "diagonal"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_budget_holds(shape, kind, cone):
    X, T = make(kind, *shape)
    budget = smallest(X, T, cone=cone) * (1.5 if cone == "diagonal" else 1.0)
    kept = []

    def construct():
        kept.append(ts.Problem(X, T, memory_budget=budget, cone=cone, n_jobs=2))

    steps = [("Problem", construct), *((name, lambda v=verb: v(kept[0])) for name, verb in VERBS.items())]
    for name, taken in peaks(steps):
        assert taken + T.nbytes <= budget + SLACK, f"{name} takes {taken + T.nbytes:,} bytes of {budget:,.0f}"
    assert kept[0].estimate().bytes <= budget


@pytest.mark.filterwarnings("ignore::triscreen.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["knn", "given"])
def test_a_budget_holds_where_each_triplet_has_numbers(kind):
    X, T = make(kind, 90, 10, 12)
    small, large = (ts.Problem(X, T, memory_budget=smallest(X, T) + more, n_jobs=2) for more in (0, 64 * T.n_triplets))
    for verb in ONE_BY_ONE.values():
        with pytest.raises(ts.InputError, match=r"memory_budget=.*one by one"):
            verb(small)
    steps = [(name, lambda v=verb: v(large)) for name, verb in ONE_BY_ONE.items()]
    for name, taken in peaks(steps):
        assert taken + T.nbytes + 24 * X.size <= large.memory_budget + SLACK, name


def test_the_bytes_of_all_triplets_are_those_the_docs_say():
    _, T = make("all", 500, 3, 1)
    assert T.nbytes == 64 * 500
    assert make("lmnn", 500, 3, 7)[1].nbytes == (56 + 8 * 7) * 500


def test_lmnn_in_many_dimensions_has_no_array_of_points_times_neighbours_times_dimensions():
    X, T = make("lmnn", 300, 60, 20)
    ((_, taken),) = peaks([("magnitude", lambda: T.over(X[T.point_ids]).magnitude(None, None))])
    assert taken < 8 * 300 * 60 * 20 / 2


@pytest.mark.filterwarnings("ignore::triscreen.ConvergenceWarning")
@pytest.mark.parametrize("cone", ["psd", "diagonal"])
def test_a_path_with_a_prior_has_room_for_its_metrics_or_is_refused(cone):
    X, T = make("knn", 80, 30, 3)
    N = np.full(30, 0.01) if cone == "diagonal" else 0.01 * np.eye(30)
    few = smallest(X, T, cone=cone, prior=N)
    kept = ts.Problem(X, T, cone=cone, prior=N).estimate().bytes_per_lambda
    assert kept == 8 * N.size
    assert ts.Problem(X, T, cone=cone).estimate().bytes_per_lambda == 0
    tight = ts.Problem(X, T, cone=cone, prior=N, memory_budget=few, n_jobs=2)
    with pytest.raises(ts.InputError, match=r"memory_budget=\S+: 176 metrics of full rank"):
        ts.solve_path(tight)
    wide = ts.Problem(X, T, cone=cone, prior=N, memory_budget=few + 178 * kept, n_jobs=2)
    ts.solve_path(wide, tol=1e-3)  # what it loads and compiles on the way is nobody's data
    paths = []
    ((_, taken),) = peaks([("path", lambda: paths.append(ts.solve_path(wide, tol=1e-3)))])
    assert len(paths[0]) > 40
    assert taken + T.nbytes <= wide.memory_budget + SLACK
