"""Every set of triplets has what `TripletSet` asks of it: the test finds new sets and new methods by itself."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import numpy as np
import pytest

import triscreen as ts
from triscreen._utils.threads import Threads
from triscreen.triplets import TripletSet
from triscreen.triplets.listed import ListedTriplets
from triscreen.triplets.never_listed import NeverListed
from triscreen.triplets.pairs import ListedPairs

ROOT = Path(ts.__file__).parent
# Restricting is of pairs that are listed; those that stay of a list have their points' owner to check them.
OWN_WAY = {"AllTriplets": {"restrict"}, "ShardedTriplets": {"restrict"}, "ListedTriplets": {"check_points"}}


def subclasses(cls):
    return {sub for child in cls.__subclasses__() for sub in {child, *subclasses(child)}}


def left_open(cls):
    """Methods whose only statement is that a subclass gives them."""
    methods = inspect.getmembers(cls, inspect.isfunction)
    return {name for name, method in methods if "NotImplementedError" in method.__code__.co_names}


SETS = sorted(
    (cls for cls in subclasses(TripletSet) - {ListedPairs} if cls.__module__.startswith("triscreen.")), key=str
)


def test_the_sets_are_found():
    assert ListedTriplets in SETS
    assert {"sweep", "undecided_in", "quadratic", "hessian_weights"} <= left_open(TripletSet)
    assert left_open(NeverListed) == {"reduce"}


@pytest.mark.parametrize("cls", SETS, ids=lambda cls: cls.__name__)
def test_a_set_leaves_nothing_open(cls):
    assert left_open(cls) == OWN_WAY.get(cls.__name__, set())


@pytest.mark.parametrize("cls", SETS, ids=lambda cls: cls.__name__)
def test_a_method_takes_what_the_protocol_says(cls):
    asked = dict.fromkeys(left_open(TripletSet), TripletSet)
    if issubclass(cls, NeverListed):
        refused = vars(NeverListed)
        asked = {name: base for name, base in asked.items() if name not in refused} | {"reduce": NeverListed}
    for name in asked.keys() - left_open(cls):
        wanted, given = (list(inspect.signature(getattr(one, name)).parameters) for one in (asked[name], cls))
        assert given[: len(wanted)] == wanted, f"{cls.__name__}.{name}"


# -- the set owns its points: whoever is above asks it -----------------------------------------------------------------

OWN = {"points", "first", "second", "point_ids"}
# The user's view of the points, and the one place that gives a set its own: from the rows of X that it speaks of.
ALLOWED = {("problem/problem.py", "points"), ("problem/problem.py", "point_ids")}
# What refuses sets that are never listed: triplets one by one, and problems without a point.
LISTED = {
    *(("path/leave_one_out.py", name) for name in ("points", "point_ids")),
    *(("path/steps.py", name) for name in ("points", "first", "second")),
    ("solvers/one_by_one.py", "points"),
}


def reads(tree):
    """Attributes of something else than the object itself, and of ``self.triplets``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in OWN and getattr(node.value, "id", "") not in ("self", "it"):
            yield node.attr


@pytest.mark.parametrize("stage", ["problem", "screening", "solvers", "path"])
def test_nobody_else_reads_points_or_pairs(stage):
    """This is the seam at which a set whose points lie on other machines enters."""
    found = {
        (str(file.relative_to(ROOT)), name)
        for file in sorted((ROOT / stage).glob("*.py"))
        for name in reads(ast.parse(file.read_text()))
    }
    assert found <= ALLOWED | LISTED
    assert stage != "problem" or found == ALLOWED  # the reader of this test sees what it looks for


@pytest.mark.parametrize("kind", ["knn", "given", "all"])
def test_a_set_over_points_is_another_one(kind):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 3)), np.arange(12) % 3
    T = {
        "knn": lambda: ts.knn_triplets(X, y, 2),
        "given": lambda: ts.given_triplets([[0, 3, 7], [7, 4, 3]]),
        "all": lambda: ts.all_triplets(X, y),
    }[kind]()
    rows = X if T.point_ids is None else X[T.point_ids]
    here, there = T.over(rows), T.over(2 * rows)
    assert T.points is None
    assert there.largest_square == 4 * here.largest_square == pytest.approx(4 * np.square(rows).sum(axis=1).max())
    assert here.over(2 * rows).largest_square == there.largest_square
    assert here.dim == 3
    assert here.same_as(there)
    assert here.nbytes == T.nbytes
    assert here.fingerprint(lambda points: points) != there.fingerprint(lambda points: points)
    assert there.fingerprint(lambda points: points / 2) == here.fingerprint(lambda points: points)


def test_a_smaller_set_has_its_own_points():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 4)), np.arange(30) % 3
    T = ts.knn_triplets(X, y, 3).over(X)
    zones = np.where(np.arange(T.n_triplets) % 40 == 0, 0, 2).astype(np.int8)
    left = T.let_go(zones, np.zeros(T.n_pairs), 1.0)
    smaller, pairs, numbers = left.triplets, left.pairs, left.numbers()
    assert smaller.n_points < 30
    assert np.array_equal(smaller.points, X[smaller.point_ids])
    assert np.array_equal(smaller.indices(), T.indices()[numbers])
    # Where a pair stands among those of its point decides how its sum is ordered, hence the last digit.
    eps = np.finfo(float).eps
    assert np.allclose(smaller.euclid(Threads(1)), T.euclid(Threads(1))[pairs], rtol=4 * X.shape[1] * eps, atol=0.0)
    assert np.array_equal(smaller.reach(), T.reach()[pairs])
    zones = np.where(np.arange(smaller.n_triplets) == 1, 0, 2).astype(np.int8)
    again = smaller.let_go(zones, np.zeros(smaller.n_pairs), 1.0).triplets
    assert np.array_equal(again.points, X[again.point_ids])
    assert np.array_equal(again.corners()([0]), X[again.indices()[:1]])


def test_sets_that_differ_in_a_triplet_are_not_the_same():
    rows = [[0, 1, 2], [1, 0, 2]]
    assert ts.given_triplets(rows).same_as(ts.given_triplets(rows))
    assert not ts.given_triplets(rows).same_as(ts.given_triplets([[0, 1, 2], [1, 2, 0]]))
    assert not ts.given_triplets(rows).same_as(ts.given_triplets(rows, [1.0, 2.0]))
