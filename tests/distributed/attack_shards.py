"""Shards under attack: what leaves them by any sphere does not change the value at the optimum.

A sharded set tells nobody which triplets it let go; but a triplet that left the wrong way, by more than |H| times the
certified radius of the reference optimum, shows there: the smaller problem has another value than the plain one.

    python tests/distributed/attack_shards.py [seeds [first]]
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "screening")]

from safety import BOUNDS, lambda_of, make_points, make_prior  # noqa: E402

import triscreen as ts  # noqa: E402
from triscreen.problem.units import LAMBDA, METRIC  # noqa: E402
from triscreen.screening import by_pair  # noqa: E402
from triscreen.triplets.labelled import labelled_triplets  # noqa: E402

KINDS = ("knn", "lmnn", "all", "given")


def make_both(seed):
    """Return (the plain problem over listed triplets, the same in shards, description)."""
    rng, kind, X, y, loss, cone = make_points(seed)
    name, k = KINDS[seed // 10 % len(KINDS)], int(rng.integers(1, 4))
    prior = make_prior(seed, X, cone)
    more = {"loss": loss, "cone": cone, "n_jobs": 1, "prior": prior}
    shards = int(rng.integers(1, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.SmallClassWarning)
        rows = labelled_triplets(X, y, "knn" if name == "given" else name, k, None).indices()
        if name == "given":
            weights = rng.uniform(0.1, 5, len(rows))
            sharded = ts.distributed.problem(None, X, n_shards=shards, comparisons=rows, weights=weights, **more)
        else:
            weights, sharded = None, ts.distributed.problem(None, X, y, name, k, n_shards=shards, **more)
    listed = ts.Problem(X, ts.given_triplets(rows, weights), **more)
    return listed, sharded, f"shards of {name}, {kind}, {cone}, gamma={loss.gamma:g}"


def sweep_shards(seeds):
    """Run the sweep; returns the counts."""
    counts, before = Counter(), by_pair._PAYS
    by_pair._PAYS = 1.0  # let go whatever may go
    try:
        for seed in seeds:
            _attack(seed, counts)
    finally:
        by_pair._PAYS = before
    return counts


def _attack(seed, counts):
    twin, problem, kind = make_both(seed)
    if twin._lambda_max == 0:
        counts["no positive part"] += 1
        return
    counts["problems"] += 1
    rng = np.random.default_rng([seed, 5])
    told = twin.units.out(lambda_of(twin, rng), LAMBDA)
    hinge = twin.loss.gamma == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.ConvergenceWarning)
        best = ts.solve(twin, told, tol=1e-7 if hinge else 1e-13, screening=None, max_iter=1500)
        early = ts.solve(problem, told, screening=None, tol=1e-15, max_iter=int(rng.integers(1, 8)))
        other = told * float(rng.choice([1.1, 0.9, 1.5]))
        previous = ts.solve(problem, other, screening=None, tol=1e-4, max_iter=500)
    lam, lam0 = (problem.units.into(value, LAMBDA) for value in (told, other))
    optimum = problem.checked(best.M)[1]
    weights = 1.0 if twin.triplets.weights is None else twin.triplets.weights
    reach = float(np.sum(weights * twin.norms)) * twin.units.into(best.radius, METRIC)
    there = problem.distances(problem.cone.project(optimum).factor)
    smoothing = 10 ** rng.uniform(-4, 0) if hinge else problem.loss.gamma
    whole = problem.evaluate(optimum, there, lam, smoothing)
    references = {"early": (early.M, None), "previous": (previous.M, lam0), "optimum": (best.M, None)}
    for name, (M, at) in references.items():
        core = problem.checked(M)[1]
        e = problem.evaluate(core, problem.distances(problem.cone.project(core).factor), lam, smoothing)
        for bound in BOUNDS:
            if bound == "rrpb" and at is None:
                continue
            screener = by_pair.PairScreener(problem, ts.Screening((bound,)), lam, 1e-6)
            screener._apply(screener._sphere(bound, e, at), e, 0)
            found = screener._reduction
            if found is None:
                continue
            counts["decisions"] += int(sum(found.counts))
            screener._shrink_if_it_pays(e)
            less = screener.engine
            part = less.evaluate(optimum, less.distances(problem.cone.project(optimum).factor), lam, smoothing)
            doubt = reach + 1e-9 * (abs(whole.primal) + twin.triplets.total_weight)
            if not abs(part.primal - whole.primal) <= doubt:
                counts["wrong"] += 1
                counts[f"wrong: {kind}, {name}, {bound}, seed {seed}: {part.primal!r} for {whole.primal!r}"] += 1


if __name__ == "__main__":
    total, first = (int(given) for given in (*sys.argv[1:], *("200", "0")[len(sys.argv) - 1 :]))
    found = sweep_shards(range(first, first + total))
    print(dict(found))
    sys.exit(1 if found["wrong"] else 0)
