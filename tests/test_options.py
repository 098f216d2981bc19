"""No option is silently ignored or taken for another: nonsense for any parameter is refused, by its name."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import triscreen as ts
from problems import comparisons

RNG = np.random.default_rng(0)
Y = np.arange(24) % 2
X = RNG.normal(size=(24, 3)) + Y[:, None]
ROWS = [[0, 2, 1], [1, 3, 0], [4, 6, 5]]
PROBLEM = ts.Problem(X, ts.knn_triplets(X, Y, 2))
POINTS, COMPARISONS = comparisons(0, n=12, m=60)


class Nonsense:
    """Nothing that any option could mean: no number, no text, no list, no function."""

    def __repr__(self):
        return "nonsense"


# Everything public that takes options: (how to call it, the arguments that it needs anyway).
VERBS = {
    "solve": (ts.solve, {"problem": PROBLEM, "lam": 1.0}),
    "solve_path": (ts.solve_path, {"problem": PROBLEM, "n_lambdas": 2}),
    "Problem": (ts.Problem, {"X": X, "triplets": PROBLEM.triplets}),
    "knn_triplets": (ts.knn_triplets, {"X": X, "y": Y, "k": 2}),
    "all_triplets": (ts.all_triplets, {"X": X, "y": Y}),
    "given_triplets": (ts.given_triplets, {"indices": ROWS}),
    "triplet_count": (ts.triplet_count, {"y": Y}),
    "Screening": (ts.Screening, {}),
    "SmoothedHinge": (ts.SmoothedHinge, {}),
    "ComparisonKFold": (ts.ComparisonKFold, {}),
}
ESTIMATORS = {
    "TripletMetric": (ts.TripletMetric, (X, Y)),
    "TripletMetricCV": (ts.TripletMetricCV, (X, Y)),
    "ComparisonMetric": (ts.ComparisonMetric, (POINTS[COMPARISONS],)),
    "Scaling": (ts.Scaling, (X,)),
}
# Said to be ignored ("nothing is random here").
IGNORED = {"TripletMetric.random_state", "TripletMetricCV.random_state", "ComparisonMetric.random_state"}
BAD = [Nonsense(), "nonsense", -1.5, [[None]]]
# What one of the bad values means to a parameter where it is not bad.
FINE = {
    ("solve_path.checkpoint", 1), ("given_triplets.weights", 2), ("all_triplets.weights", 2), ("triplet_count.y", 1),
    ("TripletMetricCV.checkpoint", 1), ("TripletMetricCV.scoring", 1), ("ComparisonKFold.random_state", 1),
}  # fmt: skip


def cases():
    for name, (verb, needed) in VERBS.items():
        for parameter in inspect.signature(verb).parameters:
            yield name, parameter, lambda value, v=verb, n=needed, p=parameter: v(**{**n, p: value})
    for name, (kind, data) in ESTIMATORS.items():
        for parameter in inspect.signature(kind).parameters:
            if f"{name}.{parameter}" not in IGNORED:
                yield name, parameter, lambda value, k=kind, d=data, p=parameter: k(**{p: value}).fit(*d)


@pytest.mark.parametrize("number", range(len(BAD)), ids=["object", "text", "negative", "list"])
@pytest.mark.parametrize(
    ("name", "parameter", "call"), [pytest.param(*case, id=f"{case[0]}.{case[1]}") for case in cases()]
)
def test_nonsense_is_refused_by_name(name, parameter, call, number, tmp_path, monkeypatch):
    if (f"{name}.{parameter}", number) in FINE:
        pytest.skip("that means something here")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ts.InputError, match=rf"\b{parameter}\b"):
        call(BAD[number])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
@pytest.mark.parametrize("alpha", [Nonsense(), "nonsense", [[None]], [2.0]])
def test_nonsense_for_a_certificate(cone, alpha):
    problem = ts.Problem(X, PROBLEM.triplets, cone=cone)
    M = np.zeros((3, 3)) if cone == "psd" else np.zeros(3)
    for arguments, name in (({"alpha": alpha}, "alpha"), ({"M": alpha}, "M"), ({"lam": alpha}, "lam")):
        with pytest.raises(ts.InputError, match=rf"\b{name}\b"):
            problem.certificate(**{"M": M, "lam": 1.0, **arguments})
