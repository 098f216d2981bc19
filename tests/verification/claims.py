"""Rigorous gaps beside those that certificates claim, on random and adversarial problems, with the same alphas.

python tests/verification/claims.py [problems [first]]      the long run; 1,000 problems by default
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "screening")]

from safety import lambda_of, make_all, make_problem  # noqa: E402

import triscreen as ts  # noqa: E402
from triscreen._utils.threads import single_threaded_blas  # noqa: E402
from triscreen.problem.units import LAMBDA  # noqa: E402
from triscreen.verification import Verifier  # noqa: E402


@single_threaded_blas()  # as the certificate has it: other bits of a factor are other alphas, where gamma is tiny
def alphas_of(problem, M, lam):
    """The alphas that the certificate of M takes, one by one; None where nobody can tell them."""
    if not problem.triplets.lists_triplets:
        return None
    core = problem.checked(M)[1]
    dist, lam = problem.distances(problem.cone.project(core).factor), problem.units.into(lam, LAMBDA)
    s = min(problem.loss.smoothings, key=lambda s: problem.evaluate(core, dist, lam, s).gap)
    positive, negative = problem.triplets.pair_numbers(np.ones(problem.triplets.n_triplets, dtype=bool))
    return np.clip((1 - (dist[negative] - dist[positive])) / s, 0, 1)


def of_own_alphas(problem, M, lam, gap):
    """Return how far, about, gaps may lie apart whose alphas come from two computations of the same margins.

    Alphas that differ by the rounding of a margin over gamma move A by as much of the sum of |H|, and the gap by no
    more than |M - [B]_+| times that.
    """
    X, d = np.asarray(problem._given, dtype=float), problem.n_features
    delta = (X[:, None] - X[None]).reshape(-1, d)
    dist = ((delta @ M) * delta).sum(axis=1).max() if M.ndim == 2 else (delta**2 @ M).max()
    alpha = 4 * d * np.finfo(float).eps * max(1.0, dist) / problem.loss.gamma
    moved = alpha * problem.triplets.total_weight * 2 * np.square(delta).sum(axis=1).max()
    return np.sqrt(2 * gap / lam) * moved


def compare(seed, counts):
    """Compare both at a solution, at M = 0 and, where triplets are listed, with random alphas."""
    problem = make_problem(seed)[0] if seed % 3 else make_all(seed)[0]
    if problem._lambda_max == 0:
        counts["no positive part"] += 1
        return
    counts["problems"] += 1
    rng = np.random.default_rng([seed, 2])
    lam = problem.units.out(lambda_of(problem, rng), LAMBDA)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.ConvergenceWarning)
        M = ts.solve(problem, lam, tol=float(rng.choice([1e-3, 1e-6, 1e-9, 1e-13])), max_iter=300).M
    cases = [(M, None), (np.zeros_like(M), None)]
    if problem.triplets.lists_triplets:
        cases.append((M, rng.choice([0.0, 1.0, 0.3, rng.uniform()], problem.triplets.n_triplets)))
    elif problem.loss.gamma < 1e-3:
        return  # margins that differ by rounding have alphas that do not
    verifier = Verifier(problem)
    for M, alpha in cases:
        claimed = problem.certificate(M, lam, alpha)
        proven = verifier(M, lam, alphas_of(problem, M, lam) if alpha is None else alpha)
        counts["verified"] += 1
        # Where nobody can tell the alphas, the proof takes its own.
        apart = 0.0 if problem.triplets.lists_triplets else of_own_alphas(problem, M, lam, claimed.gap)
        if proven.gap_low > claimed.gap + claimed.rounding + apart:
            counts[f"wrong: seed {seed}, claimed {claimed.gap!r}, proven {proven.gap_low!r}"] += 1
        # Nor is the proof much weaker than the claim, beyond the digits that a factor of M has.
        if proven.gap > 1.001 * claimed.gap + 1.1 * claimed.rounding + 1e-13 * claimed.scale:
            counts[f"loose: seed {seed}, claimed {claimed.gap!r}, proven {proven.gap!r}"] += 1
        own = verifier(
            M, lam, alpha
        )  # with alphas of its own: as good, unless these hang on the last digits of margins
        if (
            own.gap
            > (1.01 if problem.loss.gamma >= 1e-3 else 3) * claimed.gap + 1.1 * claimed.rounding + 1e-12 * claimed.scale
        ):
            counts[f"loose: seed {seed}, claimed {claimed.gap!r}, proven {own.gap!r} with own alphas"] += 1
        low, high = proven.primal
        if not low - 1e-12 * low - claimed.rounding <= claimed.primal <= high + 1e-12 * high + claimed.rounding:
            counts[f"wrong: seed {seed}, claimed primal {claimed.primal!r}, proven {proven.primal!r}"] += 1


def main(problems=1000, first=0):
    """Compare so many problems, tell what came of it, and return how many were wrong."""
    begin, counts, seed = time.perf_counter(), Counter(), first
    while counts["problems"] < problems:
        compare(seed, counts)
        seed += 1
    bad = {name: count for name, count in counts.items() if name.startswith(("wrong", "loose"))}
    print(f"{dict(counts - Counter(bad))}, wrong or loose: {bad}, {time.perf_counter() - begin:.0f} s", flush=True)
    return sum(bad.values())


if __name__ == "__main__":
    sys.exit(1 if main(*map(int, sys.argv[1:])) else 0)
