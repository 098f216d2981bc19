"""Nearest-neighbour classification with a learned metric: handwritten digits, half of them held out."""

from __future__ import annotations

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import triscreen as ts


def main():
    X, y = load_digits(return_X_y=True)
    known, new, y_known, y_new = train_test_split(X / 16, y, test_size=0.5, stratify=y, random_state=0)
    plain = KNeighborsClassifier(3).fit(known, y_known)
    model = make_pipeline(ts.TripletMetric(), KNeighborsClassifier(3)).fit(known, y_known)
    few = make_pipeline(ts.TripletMetric(n_components=10), KNeighborsClassifier(3)).fit(known, y_known)
    errors = {
        "Euclid": 1 - plain.score(new, y_new),
        "learned": 1 - model.score(new, y_new),
        "learned, 10 dimensions": 1 - few.score(new, y_new),
    }
    metric = model[0]
    print(f"{metric.n_triplets_:,} triplets, certified to a relative gap of {metric.rel_gap_:.1e}")
    for name, error in errors.items():
        print(f"  {name:24s} {error:6.2%} errors")
    return errors


if __name__ == "__main__":
    main()
