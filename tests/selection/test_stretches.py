"""What is known of all metrics of a stretch of lambdas: made-up balls with large errors, against the formulas."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from triscreen.problem.rounding import U
from triscreen.selection.stretches import Interval, Run, Seen

PLAIN = SimpleNamespace(prior=None, basis=None)


def made_up(seed, dim=2, count=6, bend=0.2, off=0.3):
    """Centres along a bent line, with radii, ks and doubts of any size."""
    rng = np.random.default_rng(seed)
    first, last = 4 * np.eye(dim), 4 * np.eye(dim) + np.diag(rng.uniform(1, 3, dim))
    steps = np.sort(rng.uniform(-0.1, 1.1, count))[:, None, None]
    noise = bend * rng.normal(size=(count, dim, dim))
    centers = first + steps * (last - first) + noise + noise.transpose(0, 2, 1)
    squares, doubts = rng.uniform(0.01, 0.5, count), off * rng.uniform(0.1, 1, count)
    return centers, doubts, squares, rng.uniform(-0.1, 3, count - 1)


def line_distance(Q, first, last):
    """The distance of a matrix to the segment between two others, by a fine grid that is then narrowed."""
    low, high = 0.0, 1.0
    for _ in range(6):
        shares = np.linspace(low, high, 21)
        far = [np.linalg.norm(Q - (1 - t) * first - t * last) for t in shares]
        best = int(np.argmin(far))
        low, high = shares[max(0, best - 1)], shares[min(20, best + 1)]
    return min(far)


@pytest.mark.parametrize("seed", range(6))
def test_the_tube_is_the_widest_ball_and_bend_of_its_stretch(seed):
    centers, doubts, squares, ks = made_up(seed)
    seen = Seen(PLAIN, centers, doubts, squares, ks)
    run, radii = Run(None, seen), np.sqrt(np.maximum(np.maximum(squares[:-1], squares[1:]), ks / 2))
    for first, last in ((0, 5), (1, 4), (2, 3)):
        bends = [line_distance(Q, centers[first], centers[last]) for Q in centers] + doubts
        wanted = max(radii[i] + max(bends[i], bends[i + 1]) for i in range(first, last))
        assert run.tube(first, last) == pytest.approx(wanted, rel=1e-6)
        assert run.tube(first, last) >= wanted * (1 - 1e-9)
    tube = run.tube(0, 5)
    whole = run.interval(0, 5)
    assert whole.radius == pytest.approx(tube, rel=1e-9)
    assert whole.radius > tube


def test_ends_at_one_place_have_a_tube_too():
    centers = np.repeat(np.eye(2)[None], 3, axis=0)
    centers[1, 0, 0] = 1.5
    seen = Seen(PLAIN, centers, [0.0, 0.25, 0.0], [0.04, 0.04, 0.04], [0.0, 0.0])
    tube = Run(None, seen).tube(0, 2)
    assert tube == pytest.approx(0.2 + 0.5 + 0.25)
    assert tube >= 0.95 * (1 + 0.9e-12)  # more than the sum, whose terms are rounded


@pytest.mark.parametrize("scale", [1.0, 3.0, -1.0])
@pytest.mark.parametrize("large", ["first", "second", "between"])
def test_an_interval_is_two_balls_on_one_scale(scale, large):
    """Q2/c with c = <Q1, Q2>/|Q1|^2; radii, k and doubts go with it; where c would be no scale it is 1."""
    rng = np.random.default_rng(3)
    one = np.array([[2.0, 0.5], [0.5, 1.0]])
    centers = np.array([one, scale * one + 0.1 * np.diag(rng.normal(size=2))])
    s1, s2, k = {"first": (0.5, 0.1, 0.2), "second": (0.1, 8.0, 0.2), "between": (0.1, 0.2, 30.0)}[large]
    seen = Seen(PLAIN, centers, [0.3, 0.6], [s1, s2], [k])
    c = float(np.vdot(*centers)) / np.linalg.norm(one) ** 2 if scale > 0 else 1.0
    found = Interval.between("points", seen, 0)
    assert found.points == "points"
    np.testing.assert_allclose(found.centers[0], one)
    np.testing.assert_allclose(found.centers[1], centers[1] / c)
    wanted = np.array([s1, s2 / c**2, k / c, 0.3, 0.6 / c])
    assert found.balls == pytest.approx(wanted, rel=1e-9)
    assert (np.array(found.balls) > wanted * (1 - 1e-14)).all()
    assert found.radius == pytest.approx(np.sqrt(max(s1, s2 / c**2, k / c / 2)) + max(0.3, 0.6 / c), rel=1e-9)
    sizes = [np.linalg.norm(Q) for Q in centers]
    traces = [max(np.trace(Q), size) for Q, size in zip(centers, sizes, strict=True)]
    assert found.trace == pytest.approx(max(traces[0], traces[1] / c), rel=1e-9)
    assert found.error == found.relative * found.trace


def test_a_negative_k_is_made_no_smaller():
    centers = np.array([np.eye(2), np.eye(2)])
    seen = Seen(PLAIN, centers, [0.0, 0.0], [1.0, 1.0], [-0.5])
    assert -0.5 < seen.ks[0] < Interval.between(None, seen, 0).balls[2] < -0.5 + 1e-9


def test_centres_come_out_of_their_span_and_carry_the_errors_of_the_prior():
    """Core elements are rotated out, what the prior has outside is added, its error goes to the doubts."""
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 2)))[0]
    outside = np.eye(3) - basis @ basis.T
    units = SimpleNamespace(into=lambda value, _: 2.0 * value)
    prior = SimpleNamespace(outside=outside, error=0.5)
    centers = np.array([[[2.0, 1.0], [1.0, -3.0]], [[1.0, 0.0], [0.0, 1.0]]])
    seen = Seen(SimpleNamespace(prior=prior, basis=basis, units=units), centers, [0.1, 0.2], [1.0, 1.0], [1.0])
    wanted = [basis @ Q @ basis.T + 2 * outside for Q in centers]
    np.testing.assert_allclose(seen.centers, wanted, atol=1e-14)
    assert seen.dim == 3
    assert seen.offs == pytest.approx([0.6, 0.7], rel=1e-9)
    assert (seen.offs > [0.6, 0.7]).all()
    assert seen.sizes == pytest.approx([np.linalg.norm(Q) for Q in wanted])
    assert seen.traces == pytest.approx([max(np.linalg.norm(Q), np.trace(Q)) for Q in wanted])
    assert (seen.squares > 1).all()


def test_diagonal_centres_are_matrices():
    seen = Seen(PLAIN, np.array([[1.0, -2.0], [3.0, 0.5]]), [0.0, 0.0], [1.0, 1.0], [1.0])
    np.testing.assert_array_equal(seen.centers[0], np.diag([1.0, -2.0]))
    assert seen.sizes[0] == pytest.approx(np.sqrt(5))
    assert seen.traces == pytest.approx([np.sqrt(5), 3.5])


def test_what_an_interval_is_off_by_is_no_less_than_it_is():
    """Rounding of the radii, of the sizes of centres, and of distances, with nothing else in the way."""
    centers = np.array([3 * np.eye(2), 4 * np.eye(2)])
    seen = Seen(PLAIN, centers, [0.0, 0.0], [0.0, 0.0], [0.0])
    sizes = np.array([3.0, 4.0]) * np.sqrt(2)
    assert seen.offs == pytest.approx(128 * 2 * U * sizes, rel=1e-6, abs=0)
    found, c = Interval.between(None, seen, 0), 4 / 3
    more = 128 * 2 * U * sizes[1] / c
    assert found.balls[3:] == pytest.approx((seen.offs[0] + more, seen.offs[1] / c + more), rel=1e-6, abs=0)
    assert found.radius == pytest.approx(seen.offs[0] + more, rel=1e-6, abs=0)
    assert found.relative >= (64 * 2 + 128) * U
    assert found.trace > 6.0
    assert Run(None, seen).tube(0, 1) == pytest.approx(
        seen.offs[1] + 16 * U * (sizes[0] + sizes[1] + sizes[1]), rel=1e-6, abs=0
    )
    wide = Interval.between(None, Seen(PLAIN, centers, [0.0, 0.0], [1.0, 1.0], [0.0]), 0)
    assert min(wide.balls[:2]) > 1.0 / c**2
    assert wide.balls[0] > 1.0
    assert wide.radius > 1.0 + wide.balls[3]
    above = Seen(PLAIN, centers, [0.0, 0.0], [1.0, 1.0], [5.0])
    assert 5.0 < above.ks[0] < 5.0 + 1e-9
    assert 5.0 / c < Interval.between(None, above, 0).balls[2] < 5.0 / c + 1e-9


@pytest.mark.parametrize("size", [0.1, 10.0])
def test_centres_that_point_elsewhere_have_no_scale(size):
    """<Q1, Q2> of no more than a thousandth of |Q1| |Q2|."""
    for share, scaled in ((0.9e-3, False), (1.1e-3, True), (-0.5, False)):
        one, two = np.diag([size, 0.0]), np.diag([share, np.sqrt(1 - share * share)])
        found = Interval.between(None, Seen(PLAIN, np.array([one, two]), [0, 0], [1, 1], [1]), 0)
        assert found.scale == pytest.approx(share / size if scaled else 1.0)
    nothing = np.zeros((2, 2))
    assert Interval.between(None, Seen(PLAIN, np.array([nothing, one]), [0, 0], [1, 1], [1]), 0).scale == 1.0


def test_neighbours_have_the_ball_between_them_and_others_the_tube():
    centers, doubts, squares, ks = made_up(1)
    run = Run("points", Seen(PLAIN, centers, doubts, squares, ks))
    near, far = run.interval(2, 3), run.interval(2, 4)
    own = Interval.between("points", run._seen, 2)
    assert near.balls == own.balls
    np.testing.assert_array_equal(near.ends, centers[2:4])
    tube = run.tube(2, 4)
    c = far.scale
    np.testing.assert_array_equal(far.ends, centers[[2, 4]])
    assert far.balls[:3] == pytest.approx((tube**2, tube**2 / c**2, 2 * tube**2 / c))
    assert max(far.balls[3:]) < 1e-10


def test_large_radii_are_rounded_too():
    centers = 1e-3 * np.array([np.eye(2), np.eye(2)])
    found = Interval.between(None, Seen(PLAIN, centers, [0.0, 0.0], [1e30, 1.0], [0.0]), 0)
    assert found.balls[3:] == pytest.approx([128 * 2 * U * 1e15] * 2, rel=1e-6)


def test_every_reach_is_at_least_its_radii():
    squares = np.array([1.0, 2.0, 1.0, 1.0])
    seen = Seen(PLAIN, np.zeros((4, 2, 2)), np.zeros(4), squares, np.array([1.0, 1.0, 6.0]))
    assert (np.square(Run(None, seen)._reaches) > [2.0, 2.0, 3.0]).all()


def test_the_trace_is_that_of_the_larger_centre():
    for ends in ((0, 1), (1, 0)):
        centers = np.array([np.diag([1.0, 0.0]), np.diag([1.0, 3.0])])[list(ends)]
        found = Interval.between(None, Seen(PLAIN, centers, [0.0, 0.0], [1.0, 1.0], [0.0]), 0)
        assert found.trace == pytest.approx(max(np.trace(Q) for Q in found.centers))
