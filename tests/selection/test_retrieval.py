"""Scores of a search, against the definitions read off a full matrix of distances."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

import triscreen as ts
from commands import invoke, refusal
from triscreen.selection import retrieval

RNG = np.random.default_rng(0)


def by_hand(X, y, Q, asked, k):
    """Every score from its definition, query by query."""
    found = {name: [] for name in ("precision", "recall", "ndcg", "mrr")}
    for number, (q, label) in enumerate(zip(X if Q is None else Q, asked, strict=True)):
        others = np.delete(np.arange(len(X)), number) if Q is None else np.arange(len(X))
        order = others[np.argsort(((X[others] - q) ** 2).sum(axis=1), kind="stable")]
        right = (y[order] == label).astype(float)
        if not right.any():
            continue
        found["precision"].append(right[:k].sum() / k)
        found["recall"].append(right[:k].sum() / right.sum())
        found["ndcg"].append(ndcg_score([right], [-np.arange(len(right))], k=k))
        found["mrr"].append(1 / (np.flatnonzero(right)[0] + 1))
    return {name: np.mean(values) for name, values in found.items()}


@pytest.mark.parametrize("queries", [False, True])
@pytest.mark.parametrize("cells", [1 << 22, 100])
def test_scores_are_their_definitions(queries, cells, monkeypatch):
    monkeypatch.setattr(retrieval, "_CELLS", cells)  # many blocks, too
    X, y = RNG.normal(size=(120, 4)), RNG.integers(0, 40, 120)  # many find nothing early
    y[0] = 50  # and one is alone
    Q, asked = (RNG.normal(size=(30, 4)), np.arange(10, 70, 2)) if queries else (None, None)
    found = ts.retrieval_scores(X, y, Q, asked, k=[3, 7])
    for k in (3, 7):
        wanted = by_hand(X, y, Q, y if asked is None else asked, k)
        for name in ("precision", "recall", "ndcg"):
            assert found["before"][f"{name}@{k}"] == pytest.approx(wanted[name], abs=1e-12)
    assert found["before"]["mrr"] == pytest.approx(wanted["mrr"], abs=1e-12)
    assert found["n_queries"] + found["n_without"] == (30 if queries else 120)
    assert found["n_without"] > 0


def test_most_is_what_a_perfect_space_has_and_headroom_is_its_share():
    y = np.repeat([0, 1, 2], [3, 6, 9])
    X = RNG.normal(size=(18, 2))

    class Perfect:
        def transform(self, X):
            return y[:, None] * 10.0 + 0.01 * RNG.normal(size=(18, 1))

    found = ts.retrieval_scores(X, y, metric=Perfect(), k=(1, 5))
    assert found["after"] == pytest.approx(found["most"])
    assert set(found["headroom"].values()) == {1.0}
    assert found["most"]["precision@5"] == pytest.approx((3 * 2 / 5 + 6 + 9) / 18)


def test_nothing_is_as_large_as_queries_times_points(monkeypatch):
    monkeypatch.setattr(retrieval, "_CELLS", 1 << 16)
    X, y = RNG.normal(size=(3000, 3)).astype(np.float32), np.arange(3000) % 1500
    ts.retrieval_scores(X[:300], y[:300] % 7, k=2)  # what is compiled is loaded
    tracemalloc.start()
    try:
        ts.retrieval_scores(X, y, k=2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3000**2 * 8 / 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"k": 0}, "k=0: k must be a whole number"),
        ({"k": []}, "k is an empty list"),
        ({"y": [0, 1]}, r"y has shape \(2,\)"),
        ({"y": [0, 1, 2, 3]}, "no query has a point of its class"),
        ({"X_query": [[0.0, 1.0]], "y_query": [0]}, r"X_query has shape \(1, 2\)"),
        ({"X_query": [[0.0]]}, "give both of them, or none"),
        ({"metric": 3}, "metric=3: it must be a fitted estimator"),
    ],
)
def test_what_is_refused(arguments, said):
    with pytest.raises(ts.InputError, match=said):
        ts.retrieval_scores(**{"X": [[0.0], [1.0], [2.0], [3.0]], "y": [0, 0, 1, 1], **arguments})


def test_the_command_says_the_same(tmp_path):
    assert invoke("fit", "wine", "--lam-ratio", 0.1, "-o", tmp_path / "m", "-q").code == 0
    told = json.loads(invoke("evaluate", tmp_path / "m", "wine", "--retrieval", "--at", 4, "--json", "-q").out)
    scaling, metric = ts.load(tmp_path / "m")
    from triscreen.datasets import read_points

    wine = read_points("wine")
    Z = (wine.X - scaling.shift_) * scaling.factor_
    wanted = ts.retrieval_scores(Z, wine.y, metric=metric, k=4)
    for part in ("before", "after", "most"):
        assert told[part] == pytest.approx(wanted[part])
    done = invoke("evaluate", tmp_path / "m", "wine", "--retrieval")
    assert "178 queries among 178 points" in done.out
    assert "precision@10" in done.out
    assert "at='[3]': it has no effect" in refusal("evaluate", tmp_path / "m", "wine", "--at", 3)
