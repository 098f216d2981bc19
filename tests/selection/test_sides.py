"""How pieces of lambda are cut, sharpened and looked up: ends and balls are made up, so that each choice shows."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import triscreen as ts
from triscreen.selection import sides
from triscreen.selection.journal import CUT, FINAL, SETTLE, SHARPEN, Made, Step
from triscreen.selection.judge import Verdict
from triscreen.selection.sides import Piece, Side

KEYS = [8.0, 4.0, 2.0, 1.0]
OUTCOMES = np.array([[1, -1, 0, 0], [1, 1, 0, -1], [1, 1, 1, -1]], dtype=np.int8)


class Decisions:
    """A judge that remembers what it was asked."""

    def __init__(self, problem=None, says=(1, 1, 1, 0)):
        self.problem, self.asked, self.says = problem, [], np.array(says, dtype=np.int8)

    def decide(self, first, second, parent=None):
        self.asked.append((first, second, parent))
        return Verdict(self.says, None)


def end_of(own, ball, M):
    """An end whose own ball, and whose ball at another lambda, have these radii."""
    return SimpleNamespace(
        M=M, own=lambda N: (SimpleNamespace(radius=own),), ball=lambda lam, N: SimpleNamespace(radius=ball)
    )


def a_side(scale=1.0, tol=1e-4, judge=None):
    cone = SimpleNamespace(project=lambda M: SimpleNamespace(factor=("factor of", M)))
    units = SimpleNamespace(into=lambda lam, _: 10 * lam)
    judge = judge or Decisions()
    judge.problem = SimpleNamespace(cone=cone, units=units, loss=SimpleNamespace(smoothings=[0.5, 0.05]))
    rows = [SimpleNamespace(lam=scale * key) for key in KEYS]
    path = SimpleNamespace(
        lambdas=np.array([row.lam for row in rows]), _rows=rows, tol=tol, _end=lambda number, _: number
    )
    bounds = SimpleNamespace(path=path, judge=judge, outcomes=OUTCOMES, left=[("a",), ("b",), ("c",)])
    return Side(bounds, KEYS if scale != 1 else None, scale)


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_a_side_has_the_pieces_of_its_path(scale):
    side = a_side(scale)
    keys, lower, upper = side.arrays()
    assert keys.tolist() == KEYS
    assert lower.tolist() == [0.25, 0.25, 0.25]
    assert upper.tolist() == [0.75, 0.5, 0.25]
    assert [side.place(key) for key in (8.0, 5.0, 4.0, 3.0, 2.0, 1.5, 1.0)] == [0, 0, 1, 1, 2, 2, 2]
    assert side._inside(4.0) == 10 * scale * 4
    assert side._inside(3.0) == 10 * scale * 3


def test_a_path_of_one_lambda_is_one_piece():
    side = a_side()
    bounds = SimpleNamespace(path=side.path, judge=side.judge, outcomes=OUTCOMES[:1], left=[None])
    side.path.lambdas, side.path._rows = np.array([2.0]), side.path._rows[:1]
    one = Side(bounds)
    assert [(piece.high, piece.low) for piece in one.pieces] == [(2.0, 2.0)]


def test_the_error_at_a_lambda_is_that_of_its_pieces_or_of_its_own_ball():
    side = a_side()
    assert side.upper_at(3.0) == 0.5  # no end: its piece's
    assert side.upper_at(1.5) == 0.25
    assert side.upper_at(2.0) == 0.25  # nothing is open in the better one
    assert side.upper_at(1.0) == 0.25  # the end of all
    assert not side.judge.asked
    assert side.upper_at(4.0) == 0.25  # by the ball of the end
    assert side.judge.asked == [(1, 1, side.pieces[1].verdict)]
    assert side.points == {4.0: 0.25}
    side.upper_at(4.0)
    assert len(side.judge.asked) == 1
    side.learn(8.0, 0.9)
    assert side.upper_at(8.0) == 0.75  # never more than its piece's
    count = len(side.pieces)
    side.apply(Step(CUT, [0], Made(6.0, None, None, 0.05), [Verdict(OUTCOMES[0], None)] * 2))
    assert len(side.pieces) == count + 1
    assert [piece.low for piece in side.pieces[:-1]] == [piece.high for piece in side.pieces[1:]]
    side._ends[6.0] = "made"
    assert side.upper_at(6.0) == 0.25
    assert side.judge.asked[-1][:2] == ("made", "made")
    side.apply(Step(CUT, [count], Made(3.0, None, None, 0.05), [Verdict(OUTCOMES[0], None)] * 2))
    assert len(side.pieces) == count + 2
    assert [piece.low for piece in side.pieces[:-1]] == [piece.high for piece in side.pieces[1:]]


def cutting(monkeypatch, side, own=(0.9, 0.9), mixed=0.9, between=2.0):
    """Ends of the first piece with these radii of their own, an end in between with that one; what was solved."""
    first, second = end_of(own[0], None, np.diag([1.0, 2.0])), end_of(own[1], None, np.diag([5.0, -2.0]))
    side._ends.update({8.0: first, 4.0: second, 2.0: end_of(0.1, None, np.eye(2))})
    made = end_of(None, mixed, None)
    monkeypatch.setattr(sides, "Between", lambda problem, one, two: SimpleNamespace(
        N="N", ball=lambda lam: SimpleNamespace(radius=between), share=lambda lam: lam / 100))  # fmt: skip
    asked, solved = [], []
    monkeypatch.setattr(sides.End, "of", lambda *arguments: asked.append(arguments) or made)

    def solve(key, M, tol):
        solved.append((key, M, tol))
        return Made(key, M, None, 0.05, "row", tol), "solved"

    side._solve = solve
    return first, second, made, asked, solved


def test_a_piece_is_cut_by_a_mixture_where_that_is_good_enough(monkeypatch):
    side = a_side()
    before = side.pieces[0].verdict
    first, second, made, asked, solved = cutting(monkeypatch, side)
    step = side.step(0, False)
    key = np.sqrt(32.0)
    p = key / 10
    M = (1 - p) * first.M + p * second.M
    assert (step.kind, step.places, step.made.key) == (CUT, [0], pytest.approx(key))
    np.testing.assert_allclose(step.made.M, M)
    np.testing.assert_allclose(asked[0][1], M)
    assert asked[0][2:4] == (pytest.approx(10 * key), 0.05)
    assert side.judge.asked == [(first, made, before), (made, second, before)]
    assert not solved
    side.apply(step)
    assert [(piece.high, piece.low) for piece in side.pieces[:2]] == [(8.0, step.made.key), (step.made.key, 4.0)]
    assert [piece.verdict for piece in side.pieces[:2]] == step.verdicts
    assert (side.n_evaluated, side.n_solved) == (1, 0)
    assert side._end(step.made.key) is made
    assert step.made.key not in side.rows


def test_where_a_mixture_is_not_good_enough_it_is_solved(monkeypatch):
    side = a_side()
    first, second, _, _, solved = cutting(monkeypatch, side, mixed=1.1)
    assert side.step(0, False) is None
    assert not side.judge.asked
    step = side.step(0, True)
    assert (step.kind, solved[0][2]) == (CUT, pytest.approx(1e-7))
    assert [asked[:2] for asked in side.judge.asked] == [(first, "solved"), ("solved", second)]
    side.apply(step)
    assert (side.n_evaluated, side.n_solved) == (0, 1)
    assert side.rows[step.made.key] == "row"


@pytest.mark.parametrize(("own", "key", "places"), [((1.1, 0.9), 8.0, [0]), ((0.9, 1.1), 4.0, [0, 1])])
def test_an_end_that_is_too_wide_is_solved_again(monkeypatch, own, key, places):
    side = a_side()
    verdicts = [side.pieces[place].verdict for place in places]
    ends = cutting(monkeypatch, side, own)
    assert side.step(0, False) is None
    step = side.step(0, True)
    assert (step.kind, step.places) == (SHARPEN, places)
    assert [(asked[0], asked[2]) for asked in ends[4]] == [(key, pytest.approx(1e-7))]
    np.testing.assert_array_equal(ends[4][0][1], (ends[0] if key == 8.0 else ends[1]).M)
    wanted = {8.0: ends[0], 4.0: ends[1], 2.0: side._ends[2.0], key: "solved"}
    pieces = [(side.pieces[place].high, side.pieces[place].low) for place in places]
    assert [asked[:2] for asked in side.judge.asked] == [(wanted[high], wanted[low]) for high, low in pieces]
    assert [asked[2] for asked in side.judge.asked] == verdicts
    side.learn(key, 0.5)
    side.apply(step)
    assert key not in side.points
    assert [side.pieces[place].verdict for place in places] == step.verdicts
    assert side._tols[key] == step.made.tol


def test_an_end_that_is_as_sharp_as_can_be_makes_its_piece_final(monkeypatch):
    side = a_side(tol=1e-12)
    _, _, _, _, solved = cutting(monkeypatch, side, (1.1, 0.9))
    step = side.step(0, True)
    assert (step.kind, step.places, solved) == (FINAL, [0], [])
    side.apply(step)
    assert [piece.final for piece in side.pieces] == [True, False, False]


def test_the_lambda_that_is_chosen_gets_a_solution(monkeypatch):
    side = a_side()
    ends = cutting(monkeypatch, side)
    assert side.settling(4.0) is None
    step = side.settling(5.0)
    assert (step.kind, step.places, ends[4][0][0]) == (SETTLE, [0], 5.0)
    np.testing.assert_array_equal(ends[4][0][1], ends[0].M)
    assert ends[4][0][2] == pytest.approx(1e-7)
    side.settle(step)
    assert side.settling(5.0) is None
    side._keep(Made(6.0, None, None, 0.05))  # a mixture
    side._ends[6.0] = ends[1]
    assert side.settling(6.0).kind == SETTLE
    np.testing.assert_array_equal(ends[4][1][1], ends[1].M)


def test_a_solve_is_as_sharp_as_was_asked_for_and_no_sharper_than_floats_allow():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.2], [1.5, 0.3]])
    problem = ts.Problem(X, ts.given_triplets([[0, 1, 2], [0, 1, 3], [1, 3, 2]]), n_jobs=1)
    lam = 0.3 * problem.lambda_max()
    side = object.__new__(Side)
    side.problem, side.rows, side.scale = problem, {}, lam
    exact = ts.solve(problem, 0.5 * lam, tol=1e-13)
    for tol, kept in ((1e-6, 1e-6), (1e-20, 1e-12)):
        made, end = side._solve(0.5, problem.to_core(np.eye(2))[0], tol)
        assert made.tol == kept
        assert made.row.gap <= kept * made.row.primal * 1.01
        assert end.lam == side._inside(0.5)
        ball = end.ball(end.lam, None)
        core = problem.to_core(exact.M)[0]
        assert np.linalg.norm(ball.center - core) <= ball.radius + exact.radius
        assert ball.radius <= 10 * np.sqrt(kept)


def test_pieces_are_not_final_unless_said():
    assert Piece(2.0, 1.0, None).final is False
