"""The grid of ratios that cross-validation walks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from triscreen.estimators.ratios import LEAP, without_leaps


def by_the_rule(ratios):
    """Where lambdas are more than LEAP apart there are others in between, one pair after the other."""
    filled, places = list(np.geomspace(1.0, ratios[0], 2 + int(np.log(1 / ratios[0]) / np.log(LEAP)))), []
    filled = filled if ratios[0] < 1 / LEAP else [ratios[0]]
    places.append(len(filled) - 1)
    for above, below in itertools.pairwise(ratios):
        filled += list(np.geomspace(above, below, 2 + int(np.log(above / below) / np.log(LEAP)))[1:])
        places.append(len(filled) - 1)
    return filled, places


@pytest.mark.parametrize(
    "ratios", [[1.0], [1e-3], [1.0, 0.5], [0.9, 1e-4, 9e-5], np.geomspace(1, 1e-5, 8), [0.1, 1e-8]]
)
def test_leaps_are_filled(ratios):
    filled, places = without_leaps(np.array(ratios))
    expected = by_the_rule(np.array(ratios))
    assert filled == pytest.approx(expected[0], rel=1e-12)
    assert list(places) == expected[1]


def test_a_million_ratios_are_not_looked_at_one_by_one(monkeypatch):
    """A fit with a limit of seconds spent minutes on its grid."""
    ratios, calls = np.geomspace(1.0, 1e-5, 10**6), []
    real = np.geomspace
    monkeypatch.setattr(np, "geomspace", lambda *a, **k: calls.append(1) or real(*a, **k))
    filled, places = without_leaps(ratios)
    assert np.array_equal(filled, ratios)
    assert np.array_equal(places, np.arange(10**6))
    assert len(calls) <= 1
