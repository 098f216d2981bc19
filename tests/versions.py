"""What the samples of older file formats in tests/data were made from: numbers that every machine has exactly.

Points are small whole numbers, eight of them, so that their mean is exact; lambdas and weights are dyadic. The files
of tests/data/v1 were written by ``python tests/versions.py`` with the last triscreen of format 1, once and for all.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.pipeline import make_pipeline

import triscreen as ts

SAMPLES = Path(__file__).parent / "data" / "v1"
X = np.array([[0, 0], [2, 1], [1, 3], [3, 2], [5, 0], [6, 4], [4, 5], [7, 1]], dtype=float)
Y = np.array([0, 0, 0, 0, 1, 1, 1, 1])
ROWS = [[0, 1, 4], [1, 0, 5], [2, 3, 6], [3, 2, 4], [4, 7, 3], [5, 6, 2], [6, 5, 3], [7, 4, 1], [3, 1, 7]]
WEIGHTS = [1, 0.5, 2, 1, 0.25, 1, 1.5, 1, 3]
ARGUMENTS = {"lambdas": [256.0, 192.0, 128.0, 96.0, 64.0, 48.0, 32.0], "tol": 2.0**-20}
DONE = 3  # lambdas that the checkpoints hold


def problems():
    """The problem of each checkpoint, by the name of its folder."""
    return {
        "given": ts.Problem(X, ts.given_triplets(ROWS, WEIGHTS), loss=ts.SmoothedHinge(0.0625), n_jobs=1),
        "knn": ts.Problem(X, ts.knn_triplets(X, Y, 2), cone="diagonal", n_jobs=1),
        "all": ts.Problem(X, ts.all_triplets(X, Y), loss=ts.Hinge(), n_jobs=1),
    }


def models():
    """Unfitted estimators and their data, by the name of the file."""
    points = {"preprocessor": X, "lam": 16.0, "n_jobs": 1}
    folds = [(np.arange(0, 8, 2), np.arange(1, 8, 2)), (np.arange(1, 8, 2), np.arange(0, 8, 2))]
    cv = ts.TripletMetricCV(n_neighbors=1, ratios=[0.5, 0.25], cv=folds, score_neighbors=1, n_jobs=1)
    return {
        "comparisons.model": (ts.ComparisonMetric(**points), (ROWS, None)),
        "pipeline.model": (make_pipeline(ts.Scaling("libsvm"), cv), (X, Y)),
    }


if __name__ == "__main__":
    SAMPLES.mkdir(parents=True)
    for name, problem in problems().items():
        ts.solve_path(problem, **ARGUMENTS, checkpoint=SAMPLES / name, callback=lambda state: state.n_lambdas == DONE)
        (SAMPLES / name / ".triscreen-lock").unlink()
    ts.save(ts.solve_path(problems()["given"], **ARGUMENTS), SAMPLES / "given.path")
    warnings.simplefilter("ignore", UserWarning)
    for name, (model, data) in models().items():
        ts.save(model.fit(*data), SAMPLES / name)
    sys.stdout.write(f"made with format {ts.files.VERSION}\n")
