"""What fewer directions cost, by the certificate: a metric of rank r against the best of any rank.

M_r keeps the r directions of M with the largest eigenvalues (of a diagonal metric the r largest entries). Its objective
P(M_r) is computed over all triplets. The optimum is no lower than the dual value D of the solution, so that

    P(M_r) - P(M*) <= P(M_r) - D + rounding.

M_r is not the best metric of its rank, so a cost is what this truncation costs at most, not what rank r must cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from triscreen._utils.display import html_table
from triscreen._utils.threads import single_threaded_blas
from triscreen._utils.validation import as_count
from triscreen.errors import InputError
from triscreen.problem import Problem
from triscreen.problem.cones import components_of
from triscreen.solvers.contract import Solution


@dataclass(frozen=True, eq=False)
class Truncation:
    """What keeping the most important directions only costs, rank by rank: what `truncation` returns.

    Attributes
    ----------
    ranks : int array, shape (m,)
    primals : array, shape (m,)
        The objective of each truncated metric, over all triplets.
    costs : array, shape (m,)
        By how much that is above the optimum, at most: primal less the dual value of the solution.
    rel_costs : array, shape (m,)
        The costs, relative to the dual value.
    kept : array, shape (m,)
        Share of the trace of M that is kept.
    rank : int
        Of the solution.

    References
    ----------
    docs/estimators.md, "Fewer directions"; ours.

    Examples
    --------
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> problem = ts.Problem(X, ts.knn_triplets(X, y, k=3))
    >>> sol = ts.solve(problem, 0.01 * problem.lambda_max())
    >>> told = ts.truncation(problem, sol, ranks=[1])
    >>> told.ranks.tolist(), bool(0 < told.kept[0] <= 1)
    ([1], True)
    """

    ranks: np.ndarray
    primals: np.ndarray
    costs: np.ndarray
    rel_costs: np.ndarray
    kept: np.ndarray
    rank: int

    def to_frame(self) -> Any:
        """Return one row per rank as a pandas DataFrame."""
        from triscreen._utils.extras import wanted

        names = ("ranks", "primals", "costs", "rel_costs", "kept")
        return wanted("pandas", "tables", "notebook").DataFrame({name: getattr(self, name) for name in names})

    def _repr_html_(self):
        rows = [(str(r), f"{c:.2%}", f"{k:.1%}")
                for r, c, k in zip(self.ranks, self.rel_costs, self.kept, strict=True)]  # fmt: skip
        return html_table(f"rank {self.rank}, truncated", ("directions", "cost at most", "of the trace"), rows)


@single_threaded_blas()
def truncation(
    problem: Problem, solution: Solution, ranks: Sequence[int] | None = None, components: np.ndarray | None = None
) -> Truncation:
    """Return what it costs to keep the most important directions of a metric only, a pass each.

    Parameters
    ----------
    problem : Problem
        The one that was solved.
    solution : Solution
        Of this problem.
    ranks : sequence of int, optional
        By default 1, 2, 3, 5, 8, 13, ... and the rank of the solution.
    components : array, shape (r, d), optional
        L with M = L'L, the most important direction first, where it is at hand (`Path.components`).

    Returns
    -------
    Truncation

    References
    ----------
    docs/estimators.md, "Fewer directions"; ours.

    Examples
    --------
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> problem = ts.Problem(X, ts.knn_triplets(X, y, k=3))
    >>> sol = ts.solve(problem, 0.01 * problem.lambda_max(), tol=1e-8)
    >>> told = ts.truncation(problem, sol)
    >>> bool(told.rel_costs[-1] < 1e-6), bool(told.ranks[-1] == told.rank)
    (True, True)
    """
    if not isinstance(solution, Solution):
        raise InputError(f"solution is a {type(solution).__name__}: a Solution is needed, as of ts.solve or path[t]")
    L = components_of(solution.M) if components is None else components
    if L.shape[1] != problem.n_features:
        raise InputError(f"solution is about {L.shape[1]} features: the problem has {problem.n_features}")
    ranks = _some(len(L)) if ranks is None else [as_count(rank, "ranks") for rank in ranks]
    for rank in ranks:
        if rank > len(L):
            raise InputError(f"ranks has {rank}: the metric has {len(L)} directions")
    sizes = np.einsum("ij,ij->i", L, L)
    flat = solution.M.ndim == 1
    found = []
    for rank in ranks:
        M = np.square(L[:rank]).sum(axis=0) if flat else L[:rank].T @ L[:rank]
        found.append(problem.certificate(M, solution.lam).primal)
    primals, below = np.array(found), solution.dual
    costs = np.maximum(primals - below, 0.0) + solution.rounding
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(costs > 0, costs / abs(below), 0.0) if below else np.where(costs > 0, np.inf, 0.0)
    total = sizes.sum()
    kept = np.array([sizes[:rank].sum() / total if total else 1.0 for rank in ranks])
    return Truncation(np.array(ranks, dtype=int), primals, costs, relative, kept, len(L))


def _some(rank):
    """Return 1, 2, 3, 5, 8, ... and the rank itself."""
    found, a, b = [], 1, 2
    while a < rank:
        found.append(a)
        a, b = b, a + b
    return [*found, rank]
