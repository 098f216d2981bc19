"""Every set of triplets has what `TripletSet` asks of it: the test finds new sets and new methods by itself."""

from __future__ import annotations

import inspect

import pytest

from triscreen.triplets import TripletSet
from triscreen.triplets.base import NeverListed
from triscreen.triplets.listed import ListedTriplets

# Restricting is of pairs that are listed; those that stay of a list have their points' owner to check them.
OWN_WAY = {"AllTriplets": {"restrict"}, "ListedTriplets": {"check_points"}}


def subclasses(cls):
    return {sub for child in cls.__subclasses__() for sub in {child, *subclasses(child)}}


def left_open(cls):
    """Methods whose only statement is that a subclass gives them."""
    methods = inspect.getmembers(cls, inspect.isfunction)
    return {name for name, method in methods if "NotImplementedError" in method.__code__.co_names}


SETS = sorted((cls for cls in subclasses(TripletSet) if cls.__module__.startswith("triscreen.")), key=str)


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
