"""What two neighbours add for rounding itself: term by term, with nothing else in the way."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from triscreen.path.joint import _SUM, Joint, _End, joint
from triscreen.problem.rounding import U


def near(value, rel=1e-6):
    """Numbers that are tiny are compared like all others."""
    return pytest.approx(value, rel=rel, abs=0)


def a_row(lam=2.0, factor=np.zeros((3, 2)), **numbers):  # noqa: B008
    names = ("size", "square", "away", "error", "prior_error", "rounding", "gap", "dual", "primal", "floor", "loss")
    return SimpleNamespace(lam=lam, factor=factor, **{**dict.fromkeys(names, 0.0), **numbers})


def test_a_row_without_errors_is_what_it_says():
    found = _End(a_row(gap=0.5))
    assert (found.dM, found.dH, found.doubt, found.gap, found.prior) == (0.0, 0.0, 0.0, 0.5, 0.0)


@pytest.mark.parametrize("factor", [np.eye(3)[:, :2], np.array([1.0, 1.0, 0.0])], ids=["matrix", "diagonal"])
def test_a_metric_is_off_by_its_trace_and_the_prior(factor):
    assert _End(a_row(factor=1e3 * factor)).dM == near(64 * 3 * U * 2e6)
    assert _End(a_row(factor=factor, prior_error=0.25)).dM == near(0.25)


def test_the_prior_is_no_longer_than_the_metric_and_what_lies_between():
    assert _End(a_row(factor=np.eye(3), size=4.0, floor=1.0)).prior == near(np.sqrt(3) + 2, rel=1e-12)
    assert _End(a_row(factor=np.eye(3), size=4.0, floor=1.0)).prior > np.sqrt(3) + 2
    assert _End(a_row(factor=np.eye(3), size=4.0)).prior == 0.0


@pytest.mark.parametrize(
    ("numbers", "wanted"),
    [
        ({"error": 0.5}, 0.5),
        ({"prior_error": 0.25}, 0.5),
        ({"error": 0.5, "prior_error": 0.25}, 1.0),
        ({"square": 1e12}, 64 * 3 * U * 1e6),
        ({"size": 1e12, "floor": 1.0}, 64 * 3 * U * 2e6),
        ({"size": 1e12, "floor": 1.0, "square": 1e12}, 64 * 3 * U * 3e6),
    ],
    ids=str,
)
def test_a_pull_is_off_by_its_own_error_that_of_the_prior_and_its_size(numbers, wanted):
    assert _End(a_row(**numbers)).dH == near(wanted)


TERMS = [
    ({"size": 9.0}, 2 * 9.0),
    ({"dual": 7.0}, 7.0),
    ({"dual": -7.0}, 7.0),
    ({"square": 9.0}, 4.5),
    ({"size": 9.0, "square": 4.0, "floor": 1.0}, 18.0 + 2.0 + 3.0 * 2.0),
    ({"size": 9.0, "square": 4.0, "dual": -7.0, "floor": 1.0}, 18.0 + 2.0 + 3.0 * 2.0 + 7.0),
]


@pytest.mark.parametrize(("numbers", "terms"), TERMS, ids=str)
def test_sums_are_off_by_all_that_is_added_up(numbers, terms):
    found, pull = _End(a_row(**numbers)), np.sqrt(numbers.get("square", 0.0))
    assert found.gap == near(64 * U * terms + found.dH**2 / 2)
    assert found.doubt == near(10 * _SUM * terms + (pull + found.dH) * found.dH / 2)
    assert _End(a_row(**numbers, rounding=0.5)).gap == near(0.5)
    assert _End(a_row(**numbers, rounding=0.5)).doubt == near(0.5)


def test_errors_of_metric_and_pull_count_with_their_own_squares():
    found = _End(a_row(size=4.0, prior_error=0.25, error=0.5, square=9.0, away=16.0))
    dM, dH = 0.25, 1.0
    assert (found.dM, found.dH) == (dM, near(dH))
    assert found.doubt == near(2 * (2 + dM) * dM + (3 + dH) * dH / 2)
    assert found.gap == near((4 + dH / 2) * dH)
    assert (found.pull_of_M, found.dual) == (8.0, near(9 / 4))


def two_rows(first=(), second=(), square=0.0):
    above = a_row(3.0, changes=(), **dict(first))
    return above, a_row(1.5, changes=((3.0, square),), **dict(second))


def test_what_is_saved_is_a_little_less_than_what_lies_between():
    one = 1e3 * np.eye(3)[:, :1]
    found = Joint(*two_rows({"factor": one}))
    left = 1e6 * (1 - _SUM) - 64 * 3 * U * 1e6
    assert 1e6 * (1 - 1e-15) < found.apart < 1e6 * (1 + 1e-15)
    lost = 0.5 * _End(found.above).doubt
    assert -(found.k - lost) == near(0.5 * 1.5 * left**2 * (1 - 10 * _SUM), rel=1e-15)
    found = Joint(*two_rows(square=1e12))
    assert -found.k == near(0.5 / 3 * (1e6 * (1 - _SUM)) ** 2 * (1 - 10 * _SUM), rel=1e-15)
    for errors in ({"prior_error": 2.0}, {"error": 2.0}):  # longer than what lies between: nothing is saved
        found = Joint(*two_rows(errors, errors))
        assert found.k == near(0.5 * (_End(found.above).doubt + _End(found.below).doubt))


def test_what_is_lost_grows_with_half_the_pull_and_falls_with_the_dual():
    share = 1 - 1.5 / 3
    assert Joint(*two_rows(second={"size": 8.0})).k == near(share * 0.5 * 1.5 * 8, rel=1e-9)
    assert Joint(*two_rows({"size": 8.0})).k == near(-share * 0.5 * 3 * 8, rel=1e-9)
    assert Joint(*two_rows({"dual": 8.0})).k == near(share * 8, rel=1e-9)
    assert Joint(*two_rows(second={"dual": 8.0})).k == near(-share * 8, rel=1e-9)


@pytest.mark.parametrize("sizes", [(9.0, 4.0), (4.0, 9.0)])
def test_pulls_that_are_off_cost_as_much_as_the_longer_prior(sizes):
    one, two = ({"size": size, "floor": 1.0, "error": 0.5} for size in sizes)
    found = Joint(*two_rows(one, two))
    lost = 0.5 * (1.5 * sizes[1] - 3 * sizes[0]) + _End(found.above).doubt + _End(found.below).doubt + 3 * (0.5 + 0.5)
    assert found.k == near(0.5 * lost, rel=1e-9)


def test_rows_are_taken_together_where_one_knows_how_far_the_other_is():
    above, below = two_rows()
    assert isinstance(joint(above, below), Joint)
    assert joint(below, above) is None
    assert joint(above, above) is None
    same = a_row(3.0, changes=((3.0, 0.0),))
    assert joint(same, same) is None
    below.changes = ()
    assert joint(above, below) is None
    above.changes = ((1.5, 0.0),)
    assert isinstance(joint(above, below), Joint)


@pytest.mark.parametrize("gaps", [(1.0, 0.0), (0.0, 1.0)])
@pytest.mark.parametrize("k", [-0.5, 0.0, 3.0])
def test_the_gap_of_a_mixture_is_more_than_its_parts(gaps, k):
    both = object.__new__(Joint)
    both.above, both.below, both.r, both.gaps, both.k = a_row(4.0), a_row(2.0), 0.5, gaps, k
    parts = 0.5 * gaps[0], 0.25 * gaps[1], 0.25 * k  # half of the way
    found = both.gap_at(3.0) * 3 / 4
    assert found - sum(parts) == near(8 * _SUM * sum(map(abs, parts)), rel=1e-2)


def test_shares_end_at_the_ends():
    both = object.__new__(Joint)
    both.above, both.below = a_row(4.0), a_row(2.0)
    assert both.shares(4.1) == (0.0, 0.0)
    assert both.shares(4.0) == (0.0, 0.0)
    assert both.shares(3.0) == (0.5, near(1 / 3))
    assert both.shares(2.0) == (1.0, 1.0)
    assert both.shares(1.9) == (1.0, 1.0)


@pytest.mark.parametrize("numbers", [{"gap": 0.5}, {"rounding": 0.5}])
def test_a_mixture_is_measured_by_the_least_that_an_optimum_may_be(numbers):
    """A bound of 1 at both ends: of values of 1.5, less gap and rounding."""
    both = object.__new__(Joint)
    both.above, both.below, both.r = a_row(4.0, primal=1.5, **numbers), a_row(2.0, primal=1.5, **numbers), 0.5
    both.gaps, both.k = (0.1, 0.1), 0.0
    assert both.serves(0.1001, 2.0, 4.0)
    assert not both.serves(0.0999, 2.0, 4.0)


@pytest.mark.parametrize(("D", "gaps", "k", "at", "size"), [
    ((1e3, 0.0), (1e3, 0.0), 0.0, 0.0, 2e3), ((0.0, 1e3), (0.0, 1e3), 0.0, 1.0, 2e3),
    ((0.0, 0.0), (0.0, 0.0), 1e3, 0.0, 1e3), ((0.0, 0.0), (0.0, 0.0), 1e3, 1.0, 1e3),
    ((0.0, 0.0), (0.0, 0.0), -1e3, 0.0, 1e3), ((-1e3, 1e3), (0.0, 1e3), 0.0, 1.0, 3e3),
    ((1e3, -1e3), (1e3, 0.0), 0.0, 0.0, 3e3),
])  # fmt: skip
def test_what_is_small_enough_by_less_than_rounding_is_not_believed(D, gaps, k, at, size):
    """At one end, where bound and gap are the same but for a multiple of the rounding of all that is added up."""
    both = object.__new__(Joint)
    both.r, both.k = 1.0, k
    for room, holds in ((2.0, True), (0.6, False)):
        less = room * 16 * _SUM * size
        both.gaps = tuple(gap - less if t == at else gap for t, gap in enumerate(gaps))
        assert both._stays_below(*D, at, at) == holds
