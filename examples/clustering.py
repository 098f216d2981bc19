"""Clustering with a metric that was learned from some labels: handwritten digits, two thirds of them without labels."""

from __future__ import annotations

from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import train_test_split

import triscreen as ts


def main():
    X, y = load_digits(return_X_y=True)
    labelled, rest, y_labelled, y_rest = train_test_split(X / 16, y, train_size=1 / 3, stratify=y, random_state=0)
    metric = ts.TripletMetric().fit(labelled, y_labelled)
    scores = {
        name: float(adjusted_rand_score(y_rest, KMeans(10, n_init=10, random_state=0).fit_predict(Z)))
        for name, Z in (("Euclid", rest), ("learned", metric.transform(rest)))
    }
    for name, score in scores.items():
        print(f"  {name:8s} adjusted Rand index {score:.2f}")
    return scores


if __name__ == "__main__":
    main()
