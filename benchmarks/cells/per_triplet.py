"""The paper's baseline on the same triplets and lambdas: O(d^2) a triplet, with one of its bounds or none."""

from __future__ import annotations

from benchmarks.cells.common import grade, graded, rounded, setting
from benchmarks.solvers.per_triplet import PerTriplet


def measure(context, data, case, seed, ratio=0.9, length=None, k="paper"):
    """Return seconds, iterations and shares left for each lambda; a path that took too long says how far it came."""
    made = setting(context, data, seed, k)
    lambdas = made.lambdas(data, ratio, length)
    baseline = PerTriplet(made.X, made.problem.triplets.indices(), made.problem.loss.gamma)
    wanted, rows, metrics = graded(len(lambdas)), [], []
    for t, (state, steps, share, *seconds) in enumerate(baseline.path(lambdas, case=case, until=context.until)):
        rows.append((*seconds, steps, share, state.gap <= 1e-6 * abs(state.primal)))
        if t in wanted:
            metrics.append((state.M, lambdas[t], state.gap))
    seconds, screening, steps, shares, converged = zip(*rows, strict=True)
    return {
        **made.facts,
        "cut": len(rows) < len(lambdas),
        "lambdas": lambdas[: len(rows)].tolist(),
        "seconds": rounded(seconds, 6),
        "screening": rounded(screening, 6),
        "n_iter": [int(step) for step in steps],
        "left": rounded(shares),
        "converged": int(sum(converged)),
        **grade(made, metrics),
    }
