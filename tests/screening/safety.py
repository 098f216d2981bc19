"""The safety sweep: every triplet screened by any sphere, rule, range or tube, from any reference, at any scale.

Each decision is compared with a reference optimum.

A decision is wrong if the reference optimum has the triplet on the other side by more than |H| times its certified
radius (plus the bound on the rounding of the check itself); closer ones cannot be judged and are counted apart.

A sphere holds for every H, not only for those of its problem: each one is also tried on *probes*, triplets made to be
hard for it. Half of them lie where the sphere rule just decides, half where the margin at the optimum is next to its
limit. A decision is *hard* if either is within 1 % of |H| r.

    python tests/screening/safety.py [seeds [first]]      the long run; 2,900 seeds by default, 5,000 problems
"""

from __future__ import annotations

import contextlib
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from general_ranges import general_form, general_ranges
from probes import probe
from tubes import tubes_at

import triscreen as ts
from problems import random_metric
from triscreen.problem.rounding import gap_error
from triscreen.problem.units import LAMBDA, METRIC
from triscreen.screening.by_triplet import Screener
from triscreen.screening.ranges import rrpb_ranges

BOUNDS = ("gb", "pgb", "dgb", "cdgb", "rrpb", "mid")
KINDS = (
    "plain",
    "tiny",
    "huge",
    "offset",
    "duplicates",
    "rank one",
    "near ties",
    "d > n",
    "mixed scales",
    "close pairs",
)
SCALES = (1.0, 1e45, 1e-45, 1e-60, 1e60, 1e30, 1e-30, 1e-12)
SLOW = 0.1  # how often an eigendecomposition for each step of each triplet is worth its time
REFUSED = (1e-150, 1e-100, 1e-71, 1e71, 1e100, 1e150)


def make_points(seed):
    """Random points, adversarial in one way or another; returns (rng, kind, X, y, loss, cone)."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    n, d = int(rng.integers(8, 26)), int(rng.integers(1, 6))
    if kind == "d > n":
        n, d = 8, 12
    y = rng.integers(0, 3, n)
    y[:4] = [0, 0, 1, 1]
    X = rng.normal(size=(n, d)) + rng.uniform(0.3, 2) * rng.normal(size=(3, d))[y]
    if kind == "tiny":
        X *= 1e-8
    elif kind == "huge":
        X *= 1e8
    elif kind == "offset":
        X += 1e6
    elif kind == "duplicates":
        X = X[rng.integers(0, n, n)]
    elif kind == "rank one":
        X = np.outer(rng.normal(size=n) + y, rng.normal(size=d))
    elif kind == "near ties":
        X = np.round(X * 2) / 2
    elif kind == "close pairs":
        X[n // 2 :] = X[: n - n // 2] + 10 ** rng.uniform(-10, -3) * rng.normal(size=(n - n // 2, d))
    elif kind == "mixed scales":
        X *= 10.0 ** rng.uniform(-4, 4, d)
    X *= SCALES[seed // len(KINDS) % len(SCALES)]
    gamma = float(rng.choice([0.0, 1e-6, 1e-3, 0.05, 0.3, 1.0, 2.0], p=[0.1, 0.1, 0.1, 0.35, 0.2, 0.1, 0.05]))
    cone = "diagonal" if rng.uniform() < 0.35 else "psd"
    return rng, kind, X, y, ts.Hinge() if gamma == 0 else ts.SmoothedHinge(gamma), cone


def make_prior(seed, X, cone):
    """None for half of the problems; else a prior, adversarial in one way or another."""
    rng = np.random.default_rng([seed, 1])
    if rng.uniform() < 0.5:
        return None
    dim, size = X.shape[1], 10 ** rng.uniform(-3, 1) / max(float(np.square(X - X.mean(0)).sum(1).mean()), 1e-300)
    kind = rng.integers(0, 4)
    if kind == 0:
        return size * (np.ones(dim) if cone == "diagonal" else np.eye(dim))
    if kind == 1 and cone == "psd":  # the inverse of the scatter of the points, which keeps their span
        values, vectors = np.linalg.eigh((X - X.mean(0)).T @ (X - X.mean(0)))
        weights = 1 / (np.maximum(values, 0.0) + 0.1 * values.max())
        return size * values.max() * (vectors * weights) @ vectors.T
    return random_metric(int(rng.integers(100)), dim, cone, size)


def lambda_of(problem, rng):
    """A lambda around which something happens; with a prior `lambda_max` is 100 times what moves it."""
    return problem._lambda_max * 10 ** (rng.uniform(-2.5, 0.3) - (0 if problem.prior is None else 2))


def make_problem(seed):
    """A random problem over nearest neighbours or given triplets; returns (problem, X, description)."""
    rng, kind, X, y, loss, cone = make_points(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.SmallClassWarning)
        T = ts.knn_triplets(X, y, int(rng.integers(1, 6)), n_jobs=1)
    if rng.uniform() < 0.4:
        T = ts.given_triplets(T.indices(), rng.uniform(0.1, 5, T.n_triplets))
    prior = make_prior(seed, X, cone)
    label = f"{kind}, {cone}, gamma={loss.gamma:g}{', prior' if prior is not None else ''}"
    return ts.Problem(X, T, loss=loss, cone=cone, n_jobs=1, prior=prior), X, label


def with_near_ties(problem, X, best, rng):
    """Add comparisons of tiny weight whose margins at the optimum lie within 1e-12 to 1e-4 of 1 and of 1 - gamma."""
    indices = problem.triplets.indices()
    weights = np.ones(len(indices)) if problem.triplets.weights is None else problem.triplets.weights
    M = np.diag(best.M) if best.M.ndim == 1 else best.M
    rows, points = [], [X]
    for _ in range(24):
        i, j, _ = indices[rng.integers(len(indices))]
        v, direction = X[i] - X[j], rng.normal(size=X.shape[1])
        level = 1.0 if rng.uniform() < 0.5 else 1.0 - problem.loss.gamma
        wanted = v @ M @ v + level + rng.choice([-1, 1]) * 10 ** rng.uniform(-12, -4)
        stretch = direction @ M @ direction
        if wanted > 0 and stretch > 1e-6 * np.trace(M) * (direction @ direction):
            rows.append((i, j, len(X) + len(points) - 1))
            points.append((X[i] + np.sqrt(wanted / stretch) * direction)[None])
    if not rows:
        return problem
    T = ts.given_triplets(np.vstack([indices, rows]), np.concatenate([weights, np.full(len(rows), 1e-13)]))
    prior = None if problem.prior is None else problem.prior.matrix
    return ts.Problem(np.vstack(points), T, loss=problem.loss, cone=problem.cone.name, n_jobs=1, prior=prior)


def check(problem, zones, exact, counts, label, known=0):
    """Compare zones with the margins at the reference optimum; those with a zone in ``known`` were counted before."""
    margins, doubt = exact
    gamma = problem.loss.gamma
    for zone, wrong_by in ((2, 1 - margins), (1, margins - (1 - gamma))):
        chosen = zones == zone
        counts["decisions"] += int((chosen & (known == 0)).sum())
        wrong = chosen & (wrong_by > doubt)
        counts["undecidable"] += int((chosen & (np.abs(wrong_by) <= doubt)).sum())
        if wrong.any():
            counts["wrong"] += int(wrong.sum())
            counts[f"wrong: {label}"] += int(wrong.sum())


def margins_at(problem, M):
    """Margins at a core M, and a bound of their rounding."""
    dist = problem.distances(problem.cone.project(M).factor)
    trace = float(M.sum() if M.ndim == 1 else np.trace(M))
    everything = np.ones(problem.triplets.n_triplets, dtype=bool)
    positive, negative = problem.triplets.pair_numbers(everything)
    errors = problem.rounding.distances(dist, trace)
    return dist[negative] - dist[positive], errors[negative] + errors[positive], dist


def exact_margins(problem, best):
    """Margins at a reference optimum, and how far they may be from those at M*."""
    margins, errors, _ = margins_at(problem, problem.to_core(best.M)[0])
    radius = problem.units.into(best.radius, METRIC)
    return margins, problem.norms * radius * (1 + 1e-9) + errors + 1e-15


def make_all(seed):
    """The same points with all triplets; returns (problem, its listed twin, description)."""
    rng, kind, X, y, loss, cone = make_points(seed)
    weights = rng.choice([0.0, 1e-3, 1.0, 3.5], len(X)) if rng.uniform() < 0.3 else None
    if weights is not None:
        weights[:2] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.SmallClassWarning)
        T = ts.all_triplets(X, y, int(rng.integers(1, 4)) if rng.uniform() < 0.3 else None, weights, n_jobs=1)
    listed = ts.given_triplets(T.indices(), None if weights is None else weights[T.indices()[:, 0]])
    prior = make_prior(seed, X, cone)
    problems = (ts.Problem(X, triplets, loss=loss, cone=cone, n_jobs=1, prior=prior) for triplets in (T, listed))
    return *problems, f"all, {kind}, {cone}, gamma={loss.gamma:g}{', prior' if prior is not None else ''}"


def zones_of(problem, found, dist):
    """Zone of every triplet that a reduction lets go (0: it stays): by the distances it was fixed at."""
    triplets = problem.triplets
    inside = set(map(tuple, found.triplets.indices().tolist()))
    pairs = dist.M if dist.M.ndim == 2 else np.diag(dist.M)
    local, X = triplets.local_indices(), problem.points
    u, v = X[local[:, 0]] - X[local[:, 2]], X[local[:, 0]] - X[local[:, 1]]
    margins = np.einsum("ti,ij,tj->t", u, pairs, u) - np.einsum("ti,ij,tj->t", v, pairs, v)
    zones = np.where(margins > 1 - 0.5 * problem.loss.gamma, 2, 1)
    zones[[tuple(row) in inside for row in triplets.indices().tolist()]] = 0
    return zones


def sweep_all(seeds):
    """Run the sweep over sets that are never listed: every pair that leaves, against the listed twin's optimum."""
    from triscreen.screening import by_pair
    from triscreen.triplets import all as never_listed
    from triscreen.triplets._all_distances import Quadratic

    counts = Counter()
    before = by_pair._PAYS, never_listed._WORTH_LISTING
    by_pair._PAYS = never_listed._WORTH_LISTING = 1.0  # let go whatever may go
    try:
        for seed in seeds:
            problem, twin, kind = make_all(seed)
            top = twin._lambda_max
            if top == 0:
                counts["no positive part"] += 1
                continue
            counts["problems"] += 1
            rng = np.random.default_rng(seed)
            lam = lambda_of(twin, rng)
            hinge, out = problem.loss.gamma == 0, problem.units.out
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ts.ConvergenceWarning)
                tight = {"tol": 1e-7 if hinge else 1e-13, "screening": None, "max_iter": 1500}
                best = ts.solve(twin, out(lam, LAMBDA), **tight)
                few = int(rng.integers(1, 8))
                early = ts.solve(problem, out(lam, LAMBDA), screening=None, tol=1e-15, max_iter=few)
                lam0 = lam * float(rng.choice([1.1, 0.9, 1.5]))
                previous = ts.solve(problem, out(lam0, LAMBDA), screening=None, tol=1e-4, max_iter=500)
            exact = exact_margins(twin, best)
            references = {
                "early": (problem.to_core(early.M)[0], None),
                "previous": (problem.to_core(previous.M)[0], lam0),
                "optimum": (problem.to_core(best.M)[0], None),
            }
            for name, (M, other) in references.items():
                dist = problem.distances(problem.cone.project(M).factor)
                e = problem.evaluate(M, dist, lam, 10 ** rng.uniform(-4, 0) if hinge else problem.loss.gamma)
                for bound in BOUNDS:
                    screener = by_pair.PairScreener(problem, ts.Screening((bound,)), lam, 1e-6)
                    if bound == "rrpb" and other is None:
                        continue
                    sphere = screener._sphere(bound, e, other)
                    screener._apply(sphere, e, 0)
                    found = screener._reduction
                    if found is not None and found.triplets is not None and found.triplets.lists_pairs:
                        zones = zones_of(problem, found, Quadratic(problem.points, sphere.center))
                        check(problem, zones, exact, counts, f"{kind}, {name}, {bound}, seed {seed}")
                        counts["zones"] += sum(found.counts)
                        # and again: the second time on what is left
                        less = screener._shrink_if_it_pays(e)
                        if less.gap < -1e-9 * abs(less.primal):
                            counts["wrong"] += 1
    finally:
        by_pair._PAYS, never_listed._WORTH_LISTING = before
    return counts


def sweep(seeds):
    """Run the sweep; returns the counts."""
    counts = Counter()
    for seed in seeds:
        problem, X, kind = make_problem(seed)
        top = problem._lambda_max
        if top == 0:
            counts["no positive part"] += 1
            continue
        counts["problems"] += 1
        rng, seldom = np.random.default_rng(seed), np.random.default_rng([seed, 3])
        lam = lambda_of(problem, rng)
        if "close" in kind and rng.uniform() < 0.7:
            size = float(np.quantile(problem.norms, rng.uniform()))
            lam = max(size**2 * problem.triplets.total_weight * 10 ** rng.uniform(-2, 2), 1e-12 * top)
        hinge = problem.loss.gamma == 0
        told = problem.units.out(lam, LAMBDA)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ts.ConvergenceWarning)
            tight = {"tol": 1e-7 if hinge else 1e-13, "screening": None, "max_iter": 1500}
            best = ts.solve(problem, told, **tight)
            if "near ties" in kind and best.M.any():
                problem = with_near_ties(problem, X, best, rng)
                best = ts.solve(problem, told, start=best, **tight)
                lam = problem.units.into(told, LAMBDA)
            early = ts.solve(problem, told, screening=None, tol=1e-15, max_iter=int(rng.integers(1, 8)))
            lam0 = lam * float(rng.choice([1.1, 0.9, 1.5]))
            previous = ts.solve(problem, problem.units.out(lam0, LAMBDA), screening=None, tol=1e-4, max_iter=500)
        core = problem.to_core(best.M)[0]
        exact = exact_margins(problem, best)
        size = float(np.linalg.norm(core)) or 1.0
        dim = problem.points.shape[1]
        references = {
            "zero": (np.zeros_like(core), None),
            "random": (random_metric(seed, dim, problem.cone.name, size * 10 ** rng.uniform(-1, 1) / dim), None),
            "early": (problem.to_core(early.M)[0], None),
            "previous": (problem.to_core(previous.M)[0], lam0),
            "optimum": (core, None),
        }
        if problem.prior is not None:
            references["prior"] = (problem.prior.core, None)
            counts["priors"] += 1
        for name, (M, other) in references.items():
            dist = problem.distances(problem.cone.project(M).factor)
            smoothing = 10 ** rng.uniform(-4, 0) if hinge else problem.loss.gamma
            e = problem.evaluate(M, dist, lam, smoothing)
            for bound in BOUNDS:
                if bound == "rrpb" and other is None:
                    continue
                # The dearest rule runs after the cheaper ones, on what these leave: their decisions are among its own.
                rule = "linear" if bound == "gb" and seldom.uniform() > SLOW else "semidefinite"
                screener = Screener(problem, ts.Screening((bound,), rule=rule), lam, 1e-6)
                screener.start(e, other)
                check(problem, screener.zones, exact, counts, f"{kind}, {name}, {bound}, {rule}, seed {seed}")
                away = problem.units.into(best.radius, METRIC)
                probe(problem, e, lam, other, bound, (core, away), rng, counts, f"{kind}, {name}, {bound}, seed {seed}")
            # and twice: the second time on the reduced problem
            bounds = ("mid", "pgb", "gb") if seldom.uniform() < SLOW else ("mid", "pgb")
            screener = Screener(problem, ts.Screening(bounds, rule="semidefinite"), lam, 1e-6)
            less, known = screener.start(e, other), screener.zones.copy()  # these are those of the spheres above
            screener.step(less, 1)
            check(problem, screener.zones, exact, counts, f"{kind}, {name}, twice, seed {seed}", known)
            if other is not None:
                ranges_at(problem, e, lam0, lam, exact, counts, f"{kind}, {name}, seed {seed}")
        tubes_at(problem, lam, rng, counts, f"{kind}, seed {seed}")
    return counts


def refused(counts):
    """Scales that float64 has no lambda for are refused, all of them."""
    for scale in REFUSED:
        _, _, X, y, loss, cone = make_points(0)
        for make in (ts.knn_triplets, ts.all_triplets):
            with contextlib.suppress(ts.InputError):
                ts.Problem(X * scale, make(X * scale, y, 2), loss=loss, cone=cone)
                counts["wrong"] += 1


def ranges_at(problem, e, lam0, lam, exact, counts, label):
    """Ranges from the previous lambda, tested at this one."""
    e = problem.at_lambda(e, lam0)
    gamma, norms = problem.loss.gamma, problem.norms * problem.rounding.norm_factor + problem.rounding.norm_offset
    margins, errors, _dist = margins_at(problem, e.M)
    gap = e.slack + problem.cone.gap(e.M, e.dual_point, lam0) + gap_error(problem.rounding, e, lam0)
    eps = np.sqrt(2 * gap / lam0) + problem.rounding.element(e.M)
    N, of_prior, prior_errors, given = 0.0, 0.0, 0.0, None
    if problem.prior is not None:
        N, eps = problem.prior.core, eps + problem.prior.error
        of_prior, prior_errors, _ = given = margins_at(problem, N)
        given = given[:2]
    away, doubt = margins - of_prior, errors + prior_errors
    found = {"rrpb": rrpb_ranges(away, doubt, norms, float(np.linalg.norm(e.M - N)), lam0, eps, gamma, given)}
    plus, plus_errors, _ = margins_at(problem, e.dual_point.plus)
    minus, minus_errors, _ = margins_at(problem, e.dual_point.plus - e.pull)
    dA, more = problem.rounding.pull(e.pull, e.sums.alpha, 6 * lam0), 1e-6
    half, half_errors = lam0 * of_prior / 2, lam0 * prior_errors / 2
    middle = (margins + of_prior) / 2, (errors + prior_errors) / 2
    forms = {
        "gb": ((plus - minus) / 2 - half, (plus_errors + minus_errors) / 2 + half_errors, *middle),
        "dgb": (np.zeros_like(plus), np.zeros_like(plus), margins, errors),
        "mid": (plus / 2 - half, plus_errors / 2 + half_errors, *middle),
    }
    for name, (slope, slope_error, constant, constant_error) in forms.items():
        _, _, square = general_form(name, problem.cone, e, lam0, problem.prior)
        # Safe side: (r + dA/lam)^2 <= (1 + t) r^2 + (1 + 1/t) (dA/lam)^2, and the gap's error at the worst of three
        # lambdas.
        worst = max(gap_error(problem.rounding, problem.at_lambda(e, v), v) for v in (0.2 * lam0, lam0, 5 * lam0))
        a, b, c = (x * (1 + more) for x in square)
        square = (a, b + 2 * worst, c + (1 + 1 / more) * dA**2)
        found[name] = general_ranges(constant, slope, (constant_error, slope_error), norms, square, lam0, gamma)
    for name, intervals in found.items():
        zones = np.zeros(len(margins), dtype=np.int8)
        for zone, (low, high) in intervals.items():
            zones[(low < lam) & (lam < high)] = zone
        check(problem, zones, exact, counts, f"range {name}, {label}")


if __name__ == "__main__":
    total, first = (int(given) for given in (*sys.argv[1:], *("2900", "0")[len(sys.argv) - 1 :]))
    begin, counts = time.perf_counter(), Counter()
    refused(counts)
    for start in range(first, first + total, 50):
        seeds = range(start, min(start + 50, first + total))
        counts += sweep(seeds)
        counts += sweep_all(seeds)
        print(f"{seeds.stop:6d}  {time.perf_counter() - begin:7.0f} s  {dict(counts)}", flush=True)
    sys.exit(1 if counts["wrong"] else 0)
