"""A search in 20 newsgroups before and after a metric: python benchmarks/retrieval.py [--points 3000] [--queries 2000].

Words weighted by tf-idf, 100 directions by truncated SVD of the training part, rows of length 1; a metric with the
identity as its prior is learned from some of the training part, and messages of the test part, which are later ones,
look among those. One JSON object on stdout; needs 20newsgroups-tfidf.npz in the folder TRISCREEN_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize

import triscreen as ts


def load(folder):
    """Return (training part, its groups, test part, its groups)."""
    with np.load(Path(folder) / "20newsgroups-tfidf.npz") as found:
        train, test = (
            sparse.csr_matrix(tuple(found[begin + name] for name in ("data", "indices", "indptr")),
                              shape=tuple(found[begin + "shape"])) for begin in ("", "test_")
        )  # fmt: skip
        return train, found["y"], test, found["y_test"]


def main():
    """Learn, search, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=3000)
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--dimensions", type=int, default=100)
    parser.add_argument("--data", default=os.environ.get("TRISCREEN_DATA"))
    asked = parser.parse_args()
    if asked.data is None:
        parser.error("--data FOLDER, or TRISCREEN_DATA, must name the folder of 20newsgroups-tfidf.npz")
    train, y, test, y_test = load(asked.data)
    svd = TruncatedSVD(asked.dimensions, random_state=0).fit(train)
    rng = np.random.default_rng(0)
    known = rng.permutation(train.shape[0])[: asked.points]
    queries = rng.permutation(test.shape[0])[: asked.queries]
    X, Q = normalize(svd.transform(train[known])), normalize(svd.transform(test[queries]))
    begin = time.process_time()
    metric = ts.TripletMetric(prior="identity").fit(X, y[known])
    seconds = time.process_time() - begin
    scores = ts.retrieval_scores(X, y[known], Q, y_test[queries], metric=metric)
    told = {"points": len(X), "queries": len(Q), "dimensions": asked.dimensions, "cpu_seconds_of_fit": seconds,
            "lam_ratio": float(metric.lam_ratio_), "rel_gap": float(metric.rel_gap_)}  # fmt: skip
    print(json.dumps({**told, **scores}, indent=1))


if __name__ == "__main__":
    main()
