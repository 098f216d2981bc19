"""3-nearest-neighbour accuracy of ours, Euclid and NCA on one set of a published comparison, on its own folds.

The comparison's protocol: min-max scaling fitted on the training rows, the metric learnt from them, accuracy of the
test rows in the learned space. One thread, defaults; NCA's 50 iterations are scikit-learn's default. A fold is measured
with all methods or not at all; the published figures of the set are kept with ours.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

import triscreen as ts
from benchmarks import datasets

NEIGHBORS = 3
NCA_STEPS = 50
DIGITS = 6


def learners():
    """Return the methods by name, in the order of the page."""
    from sklearn.neighbors import NeighborhoodComponentsAnalysis
    from sklearn.preprocessing import FunctionTransformer

    return {
        "euclid": FunctionTransformer(),
        "nca": NeighborhoodComponentsAnalysis(max_iter=NCA_STEPS, random_state=0),
        "triscreen": ts.TripletMetric(n_jobs=1),
        "triscreen-within": ts.TripletMetric(prior="within", n_jobs=1),
        "triscreen-cv": ts.TripletMetricCV(n_jobs=1),
    }


def measure(context, table, folds=None):
    """Return accuracies and seconds of every fold (of the first ones: ``folds``), and the starts chosen."""
    X, y, fold = datasets.table(table, context.folder)
    published = datasets.published(table, context.folder)
    wanted = np.unique(fold)[:folds].tolist()
    found, starts = {name: [] for name in learners()}, []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _load_kernels(X, y)
        context.start()
        for k in wanted:
            if time.perf_counter() > context.until:
                break
            starts.append(_one_fold(X, y, fold == k, found))
    return {
        "cut": len(starts) < len(wanted), "n": len(X), "d": X.shape[1], "classes": len(np.unique(y)),
        "folds": len(wanted), "starts": starts, "published": published,
        "accuracy": {name: [one[0] for one in rows] for name, rows in found.items()},
        "seconds": {name: [one[1] for one in rows] for name, rows in found.items()},
    }  # fmt: skip


def _one_fold(X, y, test, found):
    """Append (accuracy, seconds) of every method; return the start that the cross-validation chose."""
    from sklearn.preprocessing import MinMaxScaler

    scaler = MinMaxScaler().fit(X[~test])
    parts = scaler.transform(X[~test]), y[~test], scaler.transform(X[test]), y[test]
    for name, model in learners().items():
        found[name].append(_accuracy(model, *parts))
    return start_of(model)


def _accuracy(model, X, y, X_test, y_test):
    """Return (accuracy of the neighbours in the learned space, seconds of the fit, the processor's)."""
    from sklearn.neighbors import KNeighborsClassifier

    begin = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - begin
    near = KNeighborsClassifier(NEIGHBORS).fit(model.transform(X), y)
    return round(near.score(model.transform(X_test), y_test), DIGITS), round(seconds, DIGITS)


def start_of(model):
    """Return what a cross-validation chose: a start, with "alone" where nothing was learnt from there."""
    alone = np.isinf(model.lam_) and model.chosen_ != "euclid"
    return f"{model.chosen_} alone" if alone else model.chosen_


def _load_kernels(X, y):
    """Fit everything once on a few points, and what is quick on these ones, so that no fold pays for compiling."""
    few = datasets.synthetic(120, 3, classes=3)
    for name, model in learners().items():
        model.fit(*few)
        if name in ("triscreen", "triscreen-within"):
            model.fit(datasets.scaled(X), y)
