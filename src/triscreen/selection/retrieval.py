"""Scores of a search: of what is found near a query, how much is of its class, and how early it comes.

For one query with R relevant points (those of its class, without itself), r_1, r_2, ... in {0, 1} by rising distance:

    precision@k = (r_1 + ... + r_k) / k,    recall@k = (r_1 + ... + r_k) / R,
    reciprocal rank = 1 / (the first i with r_i = 1),
    nDCG@k = sum_i r_i / log2(i + 1) over i <= k, divided by what it is when all relevant points come first.

Neighbours are exact, and looked for by blocks; nothing is as large as queries times points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from triscreen._utils.threads import Threads
from triscreen._utils.validation import as_count, as_points, shortened
from triscreen.errors import InputError
from triscreen.triplets.neighbours import k_nearest

_CELLS = 1 << 22  # distances that are looked at at a time


def retrieval_scores(
    X: ArrayLike,
    y: ArrayLike,
    X_query: ArrayLike | None = None,
    y_query: ArrayLike | None = None,
    *,
    metric: Any = None,
    k: int | Sequence[int] = (1, 5, 10),
    n_jobs: int | None = None,
) -> dict[str, Any]:
    """Return how well a search for the nearest points finds those of the same class, before and after a metric.

    Parameters
    ----------
    X : array, shape (n, d)
        Points that are searched.
    y : array, shape (n,)
        Their classes: a point is relevant to queries of its class.
    X_query, y_query : arrays, shape (m, d) and (m,), optional
        Queries. By default each point of X is one, and looks among the others.
    metric : estimator, optional
        With a method ``transform`` to where Euclidean distance is the learned one, such as a fitted `TripletMetric`.
    k : int or list of int
        How many of the nearest are looked at.
    n_jobs : int, optional
        Threads at most.

    Returns
    -------
    dict
        ``n_queries``; ``n_without``, queries that no point is relevant to, which are left out; ``before`` (Euclidean
        distance), ``most`` (what the best order has) and with a metric ``after`` and ``headroom`` (the share of most -
        before that was gained; None where there was none), each a dict with precision@k, recall@k, ndcg@k and mrr, the
        mean reciprocal rank.

    References
    ----------
    K. Jarvelin and J. Kekalainen, "Cumulated gain-based evaluation of IR techniques", 2002; docs/selection.md.

    Examples
    --------
    >>> import triscreen as ts
    >>> X, y = [[0.0], [1.0], [1.5], [4.0]], [0, 0, 1, 1]
    >>> found = ts.retrieval_scores(X, y, k=1)
    >>> found["before"]["precision@1"], round(found["before"]["mrr"], 3)
    (0.5, 0.708)
    """
    sizes = sorted({as_count(one, "k") for one in ([k] if np.ndim(k) == 0 else list(k))})
    if not sizes:
        raise InputError("k is an empty list: name at least one number of neighbours")
    X, y = as_points(X, narrow=True), _labels(y, len(X), "y")
    if (X_query is None) != (y_query is None):
        raise InputError("X_query and y_query: give both of them, or none")
    if X_query is not None:
        X_query = np.atleast_2d(np.asarray(X_query))
        if X_query.ndim != 2 or X_query.shape[1] != X.shape[1] or not np.isfinite(X_query).all():
            raise InputError(f"X_query has shape {X_query.shape}: finite points of {X.shape[1]} features are needed")
        y_query = _labels(y_query, len(X_query), "y_query")
    elif len(X) < 2:
        raise InputError("X has one point only: without queries each looks among the others")
    codes = np.unique(y if y_query is None else np.concatenate([y, y_query]), return_inverse=True)[1]
    known, asked = codes[: len(y)], codes[len(y) :] if y_query is not None else codes
    relevant = np.bincount(known, minlength=codes.max() + 1)[asked] - (y_query is None)
    if not relevant.any():
        raise InputError("y: no query has a point of its class to find")
    threads = Threads(n_jobs)
    told = {"n_queries": int((relevant > 0).sum()), "n_without": int((relevant == 0).sum())}
    told["before"] = _scores(X, known, X_query, asked, relevant, sizes, threads)
    told["most"] = _most(relevant[relevant > 0], sizes)
    if metric is not None:
        if not hasattr(metric, "transform"):
            raise InputError(f"metric={shortened(metric)}: it must be a fitted estimator with a method transform")
        Z, Q = metric.transform(X), None if X_query is None else metric.transform(X_query)
        told["after"] = _scores(np.asarray(Z), known, Q, asked, relevant, sizes, threads)
        told["headroom"] = {
            name: (told["after"][name] - before) / (most - before) if (most := told["most"][name]) > before else None
            for name, before in told["before"].items()
        }
    return told


def _labels(y, n, name):
    y = np.asarray(y)
    if y.shape != (n,):
        raise InputError(f"{name} has shape {y.shape}: one class for each of the {n} points is needed")
    return y


def _discounts(n):
    return 1 / np.log2(np.arange(2, n + 2))


def _most(relevant, sizes):
    """Return the scores where all relevant points come first."""
    found = {}
    for k in sizes:
        found[f"precision@{k}"] = float(np.minimum(relevant, k).mean() / k)
        found[f"recall@{k}"] = float((np.minimum(relevant, k) / relevant).mean())
        found[f"ndcg@{k}"] = 1.0
    return {**found, "mrr": 1.0}


def _scores(Z, known, Q, asked, relevant, sizes, threads):
    """Return the mean scores of the queries that some point is relevant to."""
    Z = np.ascontiguousarray(Z)
    deep = min(sizes[-1], len(Z) - (Q is None))
    near = k_nearest(Z, deep, threads, None if Q is None else np.ascontiguousarray(Q))[0]
    some = np.flatnonzero(relevant > 0)
    right, R = known[near[some]] == asked[some, None], relevant[some]
    found = {}
    for k in sizes:
        here, gains = right[:, :k], _discounts(k)
        best = np.cumsum(gains)[np.minimum(R, k) - 1]
        found[f"precision@{k}"] = float(here.sum() / (k * len(some)))
        found[f"recall@{k}"] = float((here.sum(axis=1) / R).mean())
        found[f"ndcg@{k}"] = float((here @ gains[: here.shape[1]] / best).mean())
    ranks = right.argmax(axis=1) + 1.0
    late = np.flatnonzero(~right.any(axis=1))
    if len(late):
        ranks[late] = _ranks(Z, known, Z if Q is None else Q, asked, some[late], Q is None)
    return {**found, "mrr": float((1 / ranks).mean())}


def _ranks(Z, known, Q, asked, queries, among_themselves):
    """Return the place of the first relevant point of each query, by blocks of queries."""
    Z, found = np.asarray(Z, dtype=np.float64), np.empty(len(queries))
    squares = np.einsum("ij,ij->i", Z, Z)
    step = max(1, _CELLS // len(Z))
    for start in range(0, len(queries), step):
        rows = queries[start : start + step]
        distances = squares - 2 * np.asarray(Q[rows], dtype=np.float64) @ Z.T
        if among_themselves:
            distances[np.arange(len(rows)), rows] = np.inf
        first = np.where(known == asked[rows, None], distances, np.inf).min(axis=1)
        found[start : start + step] = 1 + (distances < first[:, None]).sum(axis=1)
    return found
