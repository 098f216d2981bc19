"""What keeps its zone in a tube, with errors that are large, and what is said of it."""

from __future__ import annotations

import numpy as np
import pytest

from problems import make_case, random_metric
from triscreen._kernels import blocks
from triscreen._utils.threads import Threads
from triscreen.screening.rules import LINEAR, ZERO
from triscreen.screening.working_set import Reference, Tube, WorkingSet
from triscreen.triplets.blocks import BlockTriplets


def test_margins_between_bounds_stay_on_their_side_by_more_than_error_and_reach():
    stays = getattr(blocks._stays, "py_func", blocks._stays)
    rng, seen = np.random.default_rng(0), []
    for _ in range(3000):
        low_1, low_2 = rng.uniform(-2, 4, 2)
        high_1, high_2 = low_1 + rng.uniform(0, 0.5), low_2 + rng.uniform(0, 0.5)
        error, low, reach = rng.uniform(0, 0.5), 0.75, rng.uniform(0, 1.5)
        both = bool(rng.random() < 0.5)
        above, below = min(low_1, low_2) - 1 - error, low - max(high_1, high_2) - error
        wanted = above > reach or (both and below > reach)
        assert stays(low_1, high_1, low_2, high_2, reach**2, error, low, both) == wanted
        seen.append((wanted, above > reach))
    assert len(set(seen)) == 3


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_a_tube_of_blocks_takes_errors_off_on_both_sides(seed, apart):
    rng = np.random.default_rng(seed)
    T = BlockTriplets(rng.integers(0, 9, 30).astype(np.int32), np.array([3, 4, 5]), np.array([6, 5, 7]))
    first, squares = 5 * rng.random(30), rng.random(30)
    second, radius, error, low = first + 0.3 * rng.random(30), 0.1, 0.4, 0.8
    if apart:  # what one end says of a triplet, the other one does not
        first[T.pair_numbers(np.ones(T.n_triplets, dtype=bool))[1]] += 4
        second, radius, error = 6 * rng.random(30), 0.01, 0.0
        first, second = (first, second) if seed % 2 else (second, first)
        T._chunks = [0, 1, 2, 3]  # each anchor by itself
    used = T.undecided_in((first, second), squares, radius, error, low, True, None, Threads(1))
    positive, negative = T.pair_numbers(np.ones(T.n_triplets, dtype=bool))
    one, two = first[negative] - first[positive], second[negative] - second[positive]
    away = np.maximum(np.minimum(one, two) - 1 - error, low - np.maximum(one, two) - error)
    gone = away > radius * np.sqrt(squares[negative] + squares[positive])
    wanted = np.zeros(30, dtype=bool)
    wanted[positive[~gone]] = wanted[negative[~gone]] = True
    np.testing.assert_array_equal(used, wanted)
    assert 0 < gone.sum() < len(gone)


def test_a_working_set_says_how_many_were_decided_beforehand():
    problem = make_case(2, n=30, d=3, m=200).problem
    gamma = problem.loss.gamma
    reference = Reference.at(problem, random_metric(5, 3, "psd"), 1.0, gamma)
    squares = np.square(problem.triplets.euclid(problem.threads))
    tube = Tube(reference.M, reference.M, 0.0)
    margins = np.subtract(*(reference.dist[pairs] for pairs in problem.triplets.pair_numbers(np.ones(200, bool))[::-1]))
    zones = np.where(margins > 1, ZERO, np.where(margins < 1 - gamma, LINEAR, 0)).astype(np.int8)
    for some, wanted in ((None, (0, 0)), (zones, ((zones == LINEAR).sum(), (zones == ZERO).sum()))):
        made = WorkingSet.around(problem, reference, tube, reference.dist, 0.0, squares, 1 - gamma, zones=some)
        assert made.by_ranges == tuple(wanted)
        assert made.engine.triplets.n_triplets < 200


def test_an_error_larger_than_a_distance_is_taken_off_all_the_same():
    """Margin 0.2, off by 0.9: in no zone, whether it is looked at alone or with all of its pair."""
    T = BlockTriplets(np.array([1, 2], dtype=np.int32), np.array([1]), np.array([1]))
    for values, errors, wanted in (
        ([0.0, 0.2], [0.9, 0.0], 0), ([0.0, 0.2], [0.0, 0.9], 0), ([0.0, 0.2], [0.3, 0.3], LINEAR),
        ([0.0, 1.5], [0.6, 0.0], 0), ([0.0, 1.5], [0.0, 0.6], 0), ([0.0, 1.5], [0.2, 0.2], ZERO),
    ):  # fmt: skip
        zones, whole = np.zeros(1, dtype=np.int8), np.empty(2, dtype=np.int8)
        T = T.over(np.eye(3))
        T.decide(np.array(values), np.array(errors), np.ones(1), 0.0, zones, 0.05, Threads(1), whole)
        assert zones.tolist() == [wanted]
