"""An adapter on frozen embeddings of text: search among newsgroup articles, before and after.

The embeddings are the first 100 singular directions of tf-idf vectors (TRISCREEN_DATA must name the folder with
20newsgroups-tfidf.npz); any other embedding goes the same way.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.decomposition import TruncatedSVD
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

import triscreen as ts


def load(n_train=2000, n_test=1000):
    """Return embeddings and topics of some articles, or None if the file is not there."""
    file = Path(os.environ.get("TRISCREEN_DATA", "")) / "20newsgroups-tfidf.npz"
    if not file.is_file():
        return None
    with np.load(file) as data:
        X = csr_matrix((data["data"], data["indices"], data["indptr"]), shape=data["shape"])
        y = data["y"]
    rows = np.random.default_rng(0).permutation(X.shape[0])[: n_train + n_test]
    Z = normalize(TruncatedSVD(100, random_state=0).fit_transform(X[rows]))
    return Z[:n_train], y[rows][:n_train], Z[n_train:], y[rows][n_train:]


def precision(known, topics, queries, wanted):
    """Share of the five nearest articles that have the topic of the query."""
    found = NearestNeighbors(n_neighbors=5).fit(known).kneighbors(queries, return_distance=False)
    return float((topics[found] == wanted[:, None]).mean())


def main():
    data = load()
    if data is None:
        print("20newsgroups-tfidf.npz not found: set TRISCREEN_DATA to the folder that holds it")
        return None
    known, topics, queries, wanted = data
    adapter = ts.TripletMetric(lam_ratio=1e-2).fit(known, topics)
    scores = {
        "frozen": precision(known, topics, queries, wanted),
        "adapted": precision(adapter.transform(known), topics, adapter.transform(queries), wanted),
    }
    print(f"adapter {adapter.components_.shape}, certified to a relative gap of {adapter.rel_gap_:.1e}")
    for name, score in scores.items():
        print(f"  {name:8s} {score:.1%} of the five nearest articles are on the topic")
    return scores


if __name__ == "__main__":
    main()
