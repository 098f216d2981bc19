"""Balls, gaps, decided comparisons and decided predictions of random paths, beside far more accurate optima.

A decision is wrong if the optimum at some lambda of its interval is on the other side by more than |H| times its own
certified radius; *hard* if what the rule sees of it in the ball at one end of its interval is within 1 % of |H| times
the radius of the limit.
"""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np

import triscreen as ts
from held_out import some_data, some_problem, votes
from triscreen.path.joint import joint
from triscreen.problem.units import METRIC

RANDOM, HARD = 1500, 1500


def attack(seed, counts):
    """Attack one path."""
    rng, X, y, X_val, y_val = some_data(seed)
    scale = 10.0 ** rng.choice([-30, -8, 0, 0, 0, 8, 30])
    X, X_val = scale * X, scale * X_val
    problem = _problem(rng, X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if problem.lambda_max() == 0:
            counts["no positive part"] += 1
            return
        counts["problems"] += 1
        ratio, tol = float(rng.choice([0.5, 0.8, 0.95])), float(rng.choice([1e-3, 1e-5, 1e-7]))
        path = ts.solve_path(problem, ratio=ratio, n_lambdas=8, tol=tol)
        if len(path) < 2:
            return
        place, k = int(rng.integers(len(path) - 1)), int(rng.integers(1, 6))
        end = _end_of(problem, path, place)
        points, rows = _made(rng, X, end)
        compared, voted = ts.comparison_bounds(path, points, rows), ts.validation_bounds(path, X, y, X_val, y_val, k)
        seen = set()  # intervals: what is decided for all of one is counted once, however many lambdas judge it
        for t in (place, place, int(rng.integers(len(path) - 1))):
            first = t not in seen
            seen.add(t)
            share = rng.choice([0.0, 1e-9, 0.5, 1.0, rng.random()])
            lam = float(
                np.clip(path.lambdas[t] ** (1 - share) * path.lambdas[t + 1] ** share, *path.lambdas[[t + 1, t]])
            )
            exact = ts.solve(problem, lam, tol=1e-11, start=path.at(lam).M, max_iter=3000)
            ball, away = path.ball(lam), float(np.sqrt(2 * (exact.gap + exact.rounding) / lam))
            counts["balls"] += 1
            if np.linalg.norm(exact.M - ball.center) > (ball.radius + away) * (1 + 1e-12):
                _count(counts, "wrong", 1, f"ball at lam={lam!r}, seed {seed}")
            both = joint(*path._rows[t : t + 2])
            mixed = problem.certificate(path._metric(both.factor_at(lam)), lam)
            counts["gaps of mixtures"] += 1
            if mixed.primal - exact.primal > both.gap_at(lam) + mixed.rounding + 1e-12 * abs(mixed.primal):
                _count(counts, "wrong", 1, f"gap of a mixture at lam={lam!r}, seed {seed}")
            near = end if t == place else None
            made = Counter()
            _comparisons(exact, away, near, points, rows, compared.outcomes[t], made, f"comparison, seed {seed}")
            found, clear = votes(exact.M, X, y, X_val, k)
            outcome, right = voted.outcomes[t], found == y_val
            wrong = clear & (((outcome > 0) & ~right) | ((outcome < 0) & right))
            made["predictions"] = int(np.count_nonzero(outcome))
            made["open predictions"] = int(np.count_nonzero(outcome == 0))
            _count(made, "wrong", int(wrong.sum()), f"prediction, seed {seed}")
            counts.update(made if first else {key: number for key, number in made.items() if key.startswith("wrong")})
            counts["judged"] += made["decisions"]


def _problem(rng, X, y):
    """Any kind of set; those of nearest neighbours have priors, losses and cones of every kind."""
    kind = rng.integers(4)
    if kind < 2:
        return some_problem(rng, X, y)
    if kind == 2:
        return ts.Problem(X, ts.all_triplets(X, y, n_jobs=1), n_jobs=1)
    rows = ts.knn_triplets(X, y, 3, n_jobs=1).indices()
    return ts.Problem(X, ts.given_triplets(rows, rng.uniform(0.1, 3, len(rows))), n_jobs=1)


def _end_of(problem, path, place):
    """Return (centre, radius) of the ball at the larger lambda of an interval, by that end alone."""
    between = path._interval(place, problem)
    radius = problem.units.out(float(np.sqrt(between.squares[0])), METRIC)
    return problem.from_core(between.balls[0].center), radius


def _made(rng, X, end):
    """Points and comparisons of them: some of those that are there, and many that some ball just decides, or not."""
    rows = rng.integers(0, len(X), (RANDOM, 3))
    rows = rows[(rows[:, 0] != rows[:, 1]) & (rows[:, 0] != rows[:, 2]) & (rows[:, 1] != rows[:, 2])]
    center, radius = end
    x = X[rng.integers(0, len(X), HARD)]
    u, v = (x - X[rng.integers(0, len(X), HARD)] for _ in range(2))
    kind = rng.uniform(size=(HARD, 1)) < 0.3
    u = np.where(kind, v + 10 ** rng.uniform(-6, 0, (HARD, 1)) * u, u)
    low, high = np.full(HARD, 1e-4), np.full(HARD, 1e4)
    wanted = 1 + 10 ** rng.uniform(-7, -2.1, HARD)
    for _ in range(60):  # a length of u at which the margin is so many times |H| r
        middle = np.sqrt(low * high)
        margins, norms, _ = _parts(center, middle[:, None] * u, v)
        above = margins > wanted * norms * radius
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    u = high[:, None] * u
    numbers = len(X) + np.arange(HARD)
    made = np.stack([numbers, numbers + HARD, numbers + 2 * HARD], axis=1)
    swap = rng.uniform(size=HARD) < 0.5
    made[swap] = made[swap][:, [0, 2, 1]]
    return np.concatenate([X, x, x - v, x - u]), np.concatenate([rows, made])


def _parts(M, u, v):
    """Margins of u u' - v v', its norm, and what rounding of the check itself may be; in extended precision."""
    u, v, M = (array.astype(np.longdouble) for array in (u, v, M))
    q, s = u - v, u + v
    if M.ndim == 1:
        far, near, norms = (u * u) @ M, (v * v) @ M, np.sqrt(np.square(q * s).sum(axis=1))
    else:
        far, near = (np.einsum("ti,ti->t", z @ M, z) for z in (u, v))
        norms = np.sqrt(0.5 * (np.square(q).sum(1) * np.square(s).sum(1) + np.square((q * s).sum(1))))
    return (far - near).astype(float), norms.astype(float), 1e-15 * (np.abs(far) + np.abs(near)).astype(float)


def _margins(M, X, rows):
    """The same for comparisons of points."""
    x = X.astype(np.longdouble)
    return _parts(M, x[rows[:, 0]] - x[rows[:, 2]], x[rows[:, 0]] - x[rows[:, 1]])


def _comparisons(exact, away, end, points, rows, outcomes, counts, label):
    margins, norms, doubt = _margins(exact.M, points, rows)
    doubt = doubt + norms * away * (1 + 1e-9)
    decided = outcomes != 0
    counts["decisions"] += int(decided.sum())
    judged = decided & (np.abs(margins) > doubt)
    counts["undecidable"] += int((decided & ~judged).sum())
    if end is not None:
        seen = np.abs(_margins(end[0], points, rows)[0])
        counts["hard"] += int((judged & (np.abs(seen - norms * end[1]) <= 0.01 * norms * end[1])).sum())
    _count(counts, "wrong", int((np.sign(outcomes) * margins < -doubt).sum()), label)


def _count(counts, kind, number, label):
    if number:
        counts[kind] += number
        counts[f"{kind}: {label}"] += number
