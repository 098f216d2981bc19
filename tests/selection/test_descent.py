"""Which stretches of a path are looked at, and what of them is kept: with verdicts that are made up."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

import triscreen as ts
from triscreen.errors import InputError
from triscreen.selection import bounds as module
from triscreen.selection.judge import Judge, Verdict


class MadeUp:
    """A judge that decides the n-th prediction on stretches of at most ``widths[n]`` intervals, and keeps account."""

    def __init__(self, widths, at_once=100):
        self.widths, self.at_once, self.runs, self.looks, self.begun = np.array(widths), at_once, [], [], []

    def run(self, ends):
        self.runs.append(ends)
        return SimpleNamespace(interval=lambda first, last: (ends[first], ends[last]))

    def begin(self, intervals):
        self.begun.append(intervals)
        return [Verdict(np.zeros(len(self.widths), dtype=np.int8), ("begun", one)) for one in intervals]

    def look(self, interval, parent, begun=False):
        first, last = interval
        self.looks.append((interval, parent.left, begun))
        outcomes = np.where(last - first <= self.widths, 1 + 0 * self.widths, 0).astype(np.int8)
        return Verdict(outcomes, ("of", interval))


class SomePath:
    """Ends are their own numbers."""

    def __init__(self, lambdas):
        self.lambdas = np.array(lambdas)

    def __len__(self):
        return len(self.lambdas)

    def _quick_end(self, number, problem):
        return number


PROBLEM = SimpleNamespace(n_features=2, points=np.zeros((3, 2)))


@pytest.mark.parametrize("widths", [(1,), (0,), (100,), (1, 5), (3,)])
def test_parts_are_looked_at_until_all_is_decided_or_they_are_single(widths):
    judge = MadeUp(widths)
    found = module._over_intervals(SomePath(0.9 ** np.arange(40)), PROBLEM, judge, len(widths))
    assert found.outcomes.shape == (39, len(widths))
    np.testing.assert_array_equal(found.outcomes, np.repeat([[int(width > 0) for width in widths]], 39, axis=0))
    looked = [interval for interval, *_ in judge.looks]
    if min(widths) < 2:
        assert {(t, t + 1) for t in range(39)} <= set(looked)
    if min(widths) == 100:  # decided as a whole: nobody looks at parts
        assert len(looked) == len([one for some in judge.begun for one in some])
    assert len(set(looked)) == len(looked)
    for (first, last), left, begun in judge.looks:
        kind, (high, low) = left
        assert high <= first < last <= low
        assert begun == (kind == "begun") == ((first, last) == (high, low))
    assert len(found.left) == 39
    for t in range(39):
        deepest = min((one for one in looked if one[0] <= t < one[1]), key=lambda one: one[1] - one[0])
        assert found.left[t] == ("of", deepest)
    parts = Counter(left for _, left, begun in judge.looks if not begun)
    assert max(parts.values(), default=0) <= 4  # four look-ups for each at the most
    assert all(count == min(4, low - high) or low - high in (5, 6, 9) for (_, (high, low)), count in parts.items())


def test_ends_are_those_of_the_path_and_each_is_made_for_its_run_only(monkeypatch):
    monkeypatch.setattr(
        module, "_ROOM", 13 * 5
    )  # matrices of five ends: 2 * 2 + 3 * 3 numbers are 13; points are 2 wide
    judge = MadeUp((1,))
    problem = SimpleNamespace(n_features=2, points=np.zeros((4, 3)))
    found = module._over_intervals(SomePath(0.99 ** np.arange(20)), problem, judge, 1)
    assert (found.outcomes == 1).all()
    assert [(ends[0], ends[-1]) for ends in judge.runs] == [(0, 4), (4, 8), (8, 12), (12, 16), (16, 19)]
    assert all(len(ends) <= 5 for ends in judge.runs)


def test_a_path_of_one_lambda_has_one_interval():
    judge = MadeUp((1, -1))
    found = module._over_intervals(SomePath([2.0]), PROBLEM, judge, 2)
    assert found.lambdas.tolist() == [2.0, 2.0]
    assert found.outcomes.tolist() == [[1, 0]]
    assert judge.runs == [[0, 0]]


def test_stretches_span_a_factor_of_two_and_follow_each_other():
    lambdas = 2.0 ** (-np.arange(41) / 8)
    found = module._stretches(lambdas, 0, 1000, 100)
    assert found == [(0, 8), (8, 16), (16, 24), (24, 32), (32, 40)]
    assert module._stretches(lambdas, 32, 1000, 100) == [(32, 40)]
    assert module._stretches(lambdas, 39, 1000, 100) == [(39, 40)]
    assert module._stretches(lambdas, 16, 17, 100) == [(16, 24), (24, 32)]
    assert module._stretches(lambdas, 0, 1000, 2) == [(0, 8), (8, 16)]
    assert module._stretches(2.0 ** (-np.arange(200) / 8), 0, 1000, 100) == [(8 * t, 8 * t + 8) for t in range(8)]
    assert module._stretches(np.array([8.0, 1.0, 0.1]), 0, 1000, 100) == [(0, 1), (1, 2)]  # never less than one


@pytest.mark.parametrize(("most", "wanted"), [(2, [(0, 1)]), (4, [(0, 3)]), (9, [(0, 8)]), (17, [(0, 8), (8, 16)])])
def test_stretches_have_no_more_ends_than_there_is_room_for(most, wanted):
    assert module._stretches(2.0 ** (-np.arange(41) / 8), 0, most, 100) == wanted
    assert wanted[-1][1] - wanted[0][0] + 1 <= most


def test_bounds_at_a_lambda_are_the_best_of_the_intervals_that_hold_it():
    outcomes = np.array([[1, -1, 0, 0], [1, -1, -1, 0], [1, 0, 0, 1]], dtype=np.int8)
    found = ts.Bounds(np.array([8.0, 4.0, 2.0, 1.0]), outcomes)
    assert found.at(5.0) == (0.25, 0.75)
    assert found.at(3.0) == (0.5, 0.75)
    assert found.at(4.0) == (0.5, 0.75)
    assert found.at(2.0) == (0.5, 0.5)
    assert found.at(8.0) == found.at(8.0 * (1 + 1e-13)) == (0.25, 0.75)
    assert found.at(1.0) == found.at(1.0 - 1e-13) == (0.0, 0.5)
    assert found.open_at(5.0).tolist() == [2, 3]
    assert found.open_at(2.0).tolist() == []  # each is decided in one of the two
    assert found.open_at(4.0).tolist() == [3]
    assert found.intervals == [(8.0, 4.0, 0.25, 0.75), (4.0, 2.0, 0.5, 0.75), (2.0, 1.0, 0.0, 0.5)]
    for lam in (8.0 * (1 + 1e-11), 9.0, 1 - 1e-11, 0.5):
        with pytest.raises(InputError, match="the bounds go from 8 to 1"):
            found.at(lam)


def test_a_verdict_counts_what_is_wrong_and_what_is_not_right():
    verdict = Verdict(np.array([1, -1, 0, 0, 0, 1, 1, 1], dtype=np.int8), None)
    assert (verdict.lower, verdict.upper, verdict.is_open) == (1 / 8, 4 / 8, True)
    assert not Verdict(np.array([1, -1], dtype=np.int8), None).is_open


class Halves:
    """Predictions that are decided by their own number, whatever the interval."""

    count, at_once = 4, 7

    def __init__(self):
        self.asked = []

    def all_of(self, intervals):
        return [np.arange(4) for _ in intervals]

    def decide(self, interval, left, own):
        self.asked.append((interval, left.tolist(), own))
        out = np.where(left % 2 == interval, 1, 0).astype(np.int8)
        return out, left[out == 0]


def test_a_judge_looks_at_what_is_open_only_and_keeps_what_was_decided():
    subject = Halves()
    judge = Judge(None, None, subject)
    first = judge.look(0)
    assert subject.asked == [(0, [0, 1, 2, 3], True)]
    assert first.outcomes.tolist() == [1, 0, 1, 0]
    again = judge.look(1, first)
    assert subject.asked[1] == (1, [1, 3], False)
    assert again.outcomes.tolist() == [1, 1, 1, 1]
    assert first.outcomes.tolist() == [1, 0, 1, 0]
    (begun,) = judge.begin([0])
    assert begun.outcomes.tolist() == [0] * 4
    judge.look(0, begun, True)
    assert subject.asked[2] == (0, [0, 1, 2, 3], True)
    assert judge.look(1, Verdict(first.outcomes, None)).outcomes.tolist() == [0, 1, 0, 1]
    assert subject.asked[3][1:] == ([0, 1, 2, 3], True)
    assert judge.at_once == 7


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"k": 9}, "k=9: X has 4 points"),
        ({"y_val": [0, 1, 1]}, "y_val has shape (3,)"),
        ({"y_val": [0, 7]}, "y_val has the label 7"),
        ({"y_val": [[1], [1, 2]]}, "y_val is not a plain list"),
        ({"X_val": [[1.0]] * 2}, "X_val has 1 features"),
        ({"X": [[1.0]] * 4}, "X has 1 features"),
        ({"path": 3}, "path is a int"),
    ],
)
def test_bad_held_out_points_are_refused(change, words):
    problem = ts.Problem(np.eye(3)[:, :2], ts.given_triplets([[0, 1, 2]]), n_jobs=1)
    path = ts.solve_path(problem, [problem.lambda_max()])
    given = {"path": path, "X": np.ones((4, 2)), "y": [0, 1, 0, 1], "X_val": np.ones((2, 2)), "y_val": [1, 0], "k": 4}
    module.validation_bounds(**given)  # as many neighbours as there are points
    with pytest.raises(InputError) as refusal:
        module.validation_bounds(**{**given, **change})
    assert str(refusal.value).startswith(words)
    rows = [[0, 1, 3]]
    module.comparison_bounds(path, given["X"], rows)
    with pytest.raises(InputError, match="X has 4 points, numbered from 0"):
        module.comparison_bounds(path, given["X"], [[0, 1, 4]])
    with pytest.raises(InputError, match="X has 3 features"):
        module.comparison_bounds(path, np.ones((4, 3)), rows)


def test_a_label_that_no_point_has_is_wrong_everywhere():
    """With labels between and above those of the points: whatever the vote, it is not that one."""
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.2], [1.5, 0.3]])
    problem = ts.Problem(X, ts.given_triplets([[0, 1, 2], [0, 1, 3]]), n_jobs=1)
    path = ts.solve_path(problem, [problem.lambda_max()])
    found = module.votes_over(path, problem, X, [2, 2, 2, 2], X, np.array([2, 1, 3, 2]), 1)
    assert found.outcomes.tolist() == [[1, -1, -1, 1]]


def test_a_path_without_lambdas_has_no_bounds():
    with pytest.raises(InputError, match="path has no lambda yet"):
        module._over_intervals(SomePath([]), PROBLEM, MadeUp((1,)), 1)
