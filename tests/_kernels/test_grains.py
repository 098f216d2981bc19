"""Decisions by order, in whole grains: against one triplet after the other, with grains that are large."""

from __future__ import annotations

import numpy as np
import pytest

from triscreen._kernels import certain
from triscreen._kernels.listed import corner_list, off_zone_list, sphere_list, undecided_list
from triscreen._kernels.ordered import decide_ordered

LINEAR, ZERO = 1, 2


def decided(far, near, reach, grain):
    """Is a number of the negative pair two whole grains above one of the positive pair, each with its reach?"""
    return np.floor((near + reach[0]) / grain) + 2 <= np.floor((far - reach[1]) / grain) - 1


def dyadic(rng, count, most):
    """Numbers that divide by a grain without rounding."""
    return rng.integers(0, 64 * most, count) / 64


def prefix(keys, others, x, y, worst):
    """How many positives are decided: those up to x, in order, before the first whose other key is above y."""
    found = 0
    for key, other in sorted(
        zip(keys, others, strict=True), key=lambda both: (both[0], -both[1] if worst else both[1])
    ):
        if key > x or other > y:
            break
        found += 1
    return found


@pytest.mark.parametrize("seed", range(8))
def test_a_triplet_is_decided_where_both_balls_are_grains_away(seed):
    """Where the balls are apart, the order of the first one is what counts (of equal ones in any order)."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 6, (5, 2))
    ptr = np.concatenate([[0], np.cumsum(sizes.sum(axis=1))])
    split = ptr[:-1] + sizes[:, 0]
    n = int(ptr[-1])
    first, lengths = dyadic(rng, n, 6), dyadic(rng, n, 1)
    apart = np.where(rng.random(n) < 0.5, first, dyadic(rng, n, 6))
    is_positive = np.concatenate([np.arange(some + others) < some for some, others in sizes])
    zero = first + np.where(is_positive, -96.0, 96.0)  # a ball that decides everything: the other one is what counts
    linear = first - np.where(is_positive, -96.0, 96.0)
    for both in (True, False):
        compare(ptr, split, (first, apart), lengths, (0.25, 1.0), both, False)
        for dists in ((first, first + 0.5), (first, zero), (zero, first), (first, linear), (linear, first)):
            compare(ptr, split, dists, lengths, (0.25, 0.25), both, True)


def compare(ptr, split, dists, lengths, radii, both, exact):
    """Ask, and decide one triplet after the other."""
    n, grain, error, low = len(lengths), 0.125, 0.5, 0.75
    used, counts = np.zeros(n, dtype=bool), np.zeros(2, dtype=np.int64)
    decide_ordered(*dists, lengths, np.array(radii), error, low, both, grain, ptr, split, used, counts, 0, 5)
    wanted, told, least, most = np.zeros(n, dtype=bool), [0, 0], [0, 0], [0, 0]
    for i in range(5):
        positives = range(ptr[i], split[i])
        for q in range(split[i], ptr[i + 1]):
            for zone, sign, level in ((ZERO, 1, -1.0), (LINEAR, -1, low)):
                if zone == LINEAR and not both:
                    continue
                keys, limits = [], []
                for d, r in zip(dists, radii, strict=True):
                    keys.append([np.floor((sign * d[p] + r * lengths[p]) / grain) + 2 for p in positives])
                    limits.append(np.floor((sign * d[q] - r * lengths[q] - error + level) / grain) - 1)
                told[zone - 1] += sum(one <= limits[0] and two <= limits[1] for one, two in zip(*keys, strict=True))
                least[zone - 1] += prefix(*keys, *limits, True)
                most[zone - 1] += prefix(*keys, *limits, False)
            for p in positives:
                zero, linear = (
                    all(
                        decided(sign * d[q] - error + level, sign * d[p], (r * lengths[p], r * lengths[q]), grain)
                        for d, r in zip(dists, radii, strict=True)
                    )
                    for sign, level in ((1, -1.0), (-1, low))
                )
                if not (zero or (linear and both)):
                    wanted[p] = wanted[q] = True
    assert (used | ~wanted).all()  # whoever has an undecided triplet stays
    assert (np.array(least) <= counts).all()
    assert (counts <= np.array(most)).all()
    if exact:
        np.testing.assert_array_equal(used, wanted)
        assert counts.tolist() == told


def test_enough_is_decided_in_grains_to_test_it():
    rng, total = np.random.default_rng(0), np.zeros(2)
    for _ in range(20):
        first, lengths = dyadic(rng, 10, 6), dyadic(rng, 10, 1)
        used, counts = np.zeros(10, dtype=bool), np.zeros(2, dtype=np.int64)
        ptr, split = np.array([0, 10]), np.array([5])
        decide_ordered(first, first, lengths, np.full(2, 0.25), 0.5, 0.75, True, 0.125, ptr, split, used, counts, 0, 1)
        total += counts
        assert used[:5].any() == used[5:].any()
    assert (total > 50).all()


def test_balls_without_bound_decide_nothing_and_anchors_without_pairs_have_none():
    ptr, split = np.array([0, 0, 3, 5, 8]), np.array([0, 1, 5, 5])
    used, counts = np.zeros(8, dtype=bool), np.zeros(2, dtype=np.int64)
    dist = np.array([0.0, 99.0, 99.0, 0.0, 0.0, 7.0, 7.0, 7.0])
    decide_ordered(dist, dist, np.ones(8), np.full(2, np.inf), 0.0, 0.5, True, 0.125, ptr, split, used, counts, 0, 4)
    assert counts.tolist() == [0, 0]
    assert used.tolist() == [True, True, True, False, False, False, False, False]
    decide_ordered(dist, dist, np.ones(8), np.zeros(2), 0.0, 0.5, True, 0.125, ptr, split, used, counts, 1, 3)
    assert counts.tolist() == [0, 2]
    assert not used[:5].any()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("both", [True, False])
def test_a_listed_triplet_is_decided_by_both_ends_and_its_reach(seed, both):
    rng, n, m = np.random.default_rng(seed), 12, 300
    first, second, squares = dyadic(rng, n, 4), dyadic(rng, n, 4), dyadic(rng, n, 1)
    second = np.where(rng.random(n) < 0.7, first, second)
    positive, negative = rng.integers(0, n, (2, m)).astype(np.int32)
    radius, error, low = 0.5, 0.25, 0.5
    for zones in (np.empty(0, np.int8), rng.integers(0, 3, m).astype(np.int8)):
        keep, other = np.zeros(m, dtype=bool), np.ones(m, dtype=bool)
        for some in (keep, other):
            undecided_list(
                first, second, squares, positive, negative, radius, error, low, both, zones, some, 5, m - 5
            )  # fmt: skip
        one, two = first[negative] - first[positive], second[negative] - second[positive]
        above, below = np.minimum(one, two) - 1 - error, low - np.maximum(one, two) - error
        reach = radius**2 * (squares[negative] + squares[positive])
        gone = (above > 0) & (above**2 > reach)
        if both:
            gone |= (below > 0) & (below**2 > reach)
        if zones.size:
            gone |= zones > 0
        np.testing.assert_array_equal(keep[5:-5], ~gone[5:-5])
        assert np.flatnonzero(keep != other).tolist() == [*range(5), *range(m - 5, m)]  # nobody asked for these
        assert 0 < gone.sum() < m


def test_a_listed_sphere_leaves_what_is_decided_and_counts_both_errors():
    values, errors = np.array([0.0, 2.0, 2.25, 0.25]), np.array([0.25, 0.25, 0.5, 0.0])
    positive, negative = np.array([[0, 0, 0, 0, 1, 0], [1, 2, 3, 3, 0, 2]], dtype=np.int32)
    norms = np.array([1.0, 1.0, 0.5, 4.0, 1.0, 1.5])
    zones, counts = np.array([0, 0, 0, 0, 0, 1], dtype=np.int8), np.zeros(2, dtype=np.int64)
    sphere_list(values, errors, positive, negative, norms, 0.25, 0.05, zones, counts, 0, 6)
    # margins 2, 2.25, 0.25, 0.25, -2, less or plus 0.25 |H| and both errors
    assert zones.tolist() == [ZERO, ZERO, LINEAR, 0, LINEAR, LINEAR]
    assert counts.tolist() == [2, 2]
    zones[:] = 0
    sphere_list(values, errors, positive, negative, norms, 0.5, 0.05, zones, counts, 0, 2)
    assert zones[:2].tolist() == [0, 0]  # 2 - 0.5 - 0.5 is not above 1; 2.25 - 0.75 - 0.5 is exactly 1


def test_corners_are_triplets_whose_alphas_are_inside_at_both_ends():
    rng, n, m, gamma = np.random.default_rng(0), 10, 200, 0.8
    dist, other = dyadic(rng, n, 2), dyadic(rng, n, 2)
    positive, negative = rng.integers(0, n, (2, m)).astype(np.int32)
    for weights in (np.empty(0), rng.uniform(0.5, 2, m)):
        a, b = ((1 - (d[negative] - d[positive])) / gamma for d in (dist, other))
        inside = (a > 0) & (a < 1) & (b > 0) & (b < 1)
        w = weights if weights.size else np.ones(m)
        wanted = (w * (a - b) ** 2)[inside]
        found = corner_list(dist, other, positive, negative, weights, gamma, 0, m)
        assert found == pytest.approx(wanted.sum())
        assert len(wanted) > 5
        part = corner_list(dist, other, positive, negative, weights, gamma, 7, 90)
        assert part == pytest.approx((w * (a - b) ** 2 * inside)[7:90].sum())


def test_one_triplet_off_its_zone_is_enough():
    positive, negative = np.array([[0, 0, 0], [1, 2, 3]], dtype=np.int32)
    dist = np.array([0.0, 2.0, 0.25, 0.75])
    for zones in ((2, 1, 0), (0, 0, 0), (1, 1, 0), (2, 2, 0), (2, 1, 1), (0, 0, 2)):
        off = zones not in ((2, 1, 0), (0, 0, 0))
        assert off_zone_list(dist, positive, negative, np.array(zones, dtype=np.int8), 0.5) == off


def test_a_margin_in_every_ball_has_a_hair_off_each_term(monkeypatch):
    """f1, f2 and their product, each less a share of itself; here that is a twentieth."""
    hair = 0.05
    monkeypatch.setattr(certain, "_HAIR", hair)
    positive = getattr(certain._positive, "py_func", certain._positive)
    rng, seen = np.random.default_rng(0), []
    for _ in range(2000):
        f1, f2 = rng.uniform(-0.2, 3, 2)
        size, s1, s2 = rng.uniform(0.1, 2, 3)
        off1, off2 = rng.uniform(0, 0.3, 2)
        k = rng.uniform(-1, 8)
        m1, m2 = f1 - off1 * np.sqrt(size), f2 - off2 * np.sqrt(size)
        a, c = m1 * m1 * (1 - hair) - s1 * size, m2 * m2 * (1 - hair) - s2 * size
        told = min(m1, m2) > 0 and min(a, c) > 0
        told = told and (m1 * m2 + np.sqrt(a * c)) * (1 - hair) > k * size / 2
        assert positive(f1, f2, size, s1, s2, k, off1, off2) == told
        seen.append(told)
    assert 200 < sum(seen) < 1800


def test_a_margin_that_touches_zero_is_not_positive():
    positive = getattr(certain._positive, "py_func", certain._positive)
    for f1, f2, s1, s2 in ((0.0, 1.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), (1.0, 2.0, 1.0, 0.0), (2.0, 1.0, 0.0, 1.0)):
        assert not positive(f1, f2, 1.0, s1, s2, 0.0, 0.0, 0.0)
    assert positive(1.0, 2.0, 1.0, 0.25, 0.25, 0.0, 0.0, 0.0)


def test_whoever_is_as_near_as_squares_are_rounded_may_be_nearest():
    """1e-10 of the longest squared distance, times the radius, is added to each end."""
    X, radius = np.array([[0.0], [1e-6], [1.0]]), 1.0
    for size, wanted in ((100.0, 2), (250.0, 1)):  # the second point is at 1e-10, and at 2.5e-10
        inner, lengths, own = np.zeros((1, 3)), (X * X).ravel(), np.zeros(1)
        counts, out = np.empty(1, np.int64), np.empty(3, np.int64)
        certain.near_enough(
            inner, inner, inner, lengths, size * lengths, size * lengths, own, own, own, 1.0,
            np.ones(3, np.int64), radius, 0.0, 1, 3, counts, out,
        )  # fmt: skip
        assert (counts.tolist(), out[:wanted].tolist()) == ([wanted], list(range(wanted)))


def test_whoever_is_as_near_as_distances_are_rounded_may_be_nearest():
    """16 errors of the longest squared distance are added to each end."""
    X = np.array([[0.0], [1.0], [10.0]])
    for error, wanted in ((0.9 / 3200, 1), (1.1 / 3200, 2)):
        inner, lengths, own = np.zeros((1, 3)), (X * X).ravel(), np.zeros(1)
        counts, out = np.empty(1, np.int64), np.empty(3, np.int64)
        certain.near_enough(
            inner, inner, inner, lengths, lengths, lengths, own, own, own, 1.0,
            np.ones(3, np.int64), 0.0, error, 1, 3, counts, out,
        )  # fmt: skip
        assert counts.tolist() == [wanted]


def test_nearer_counts_the_doubt_of_the_norm_and_of_both_products(monkeypatch):
    """(|H| + doubt) r against <H, Q> less trace times doubt, with balls that are as large as the margins."""
    plain = {
        name: getattr(getattr(certain, name), "py_func", getattr(certain, name)) for name in ("_positive", "_nearer")
    }
    monkeypatch.setattr(certain, "_positive", plain["_positive"])
    rng, seen = np.random.default_rng(0), []
    for _ in range(1500):
        u, v = rng.normal(size=(2, 3))
        doubt, trace, r = *rng.uniform(0.05, 0.3, 2), rng.uniform(0.2, 1)
        length = np.linalg.norm(np.outer(u, u) - np.outer(v, v)) + doubt
        off1, off2 = rng.uniform(0, 0.1, 2)
        f1, f2 = (length * (r + off) * rng.uniform(0.9, 1.3) for off in (off1, off2))
        d1, d2 = rng.uniform(0, 3, 2)
        balls = r * r, r * r, 2 * r * r, off1, off2
        wanted = [plain["_positive"](f1, f2, length**2 * (1 + off), *balls) for off in (-1e-6, 1e-6)]
        if wanted[0] == wanted[1]:
            others = d1 + f1 + trace * doubt, d2 + f2 + trace * doubt
            assert plain["_nearer"](d1, d2, *others, u @ u, v @ v, u @ v, doubt, trace, *balls) == wanted[0]
            seen.append(wanted[0])
    assert 200 < sum(seen) < 1300


def test_a_margin_that_is_negative_at_one_end_is_not_positive_whatever_k_is():
    positive = getattr(certain._positive, "py_func", certain._positive)
    assert not positive(-1.0, 2.0, 1.0, 0.01, 0.01, -0.5, 0.0, 0.0)
    assert not positive(2.0, -1.0, 1.0, 0.01, 0.01, -0.5, 0.0, 0.0)
    assert not positive(0.5, 2.0, 1.0, 0.01, 0.01, -0.5, 1.5, 0.0)
    assert positive(1.0, 2.0, 1.0, 0.01, 0.01, -0.5, 0.0, 0.0)


def test_whoever_may_be_near_has_the_doubts_of_distances_and_radius(monkeypatch):
    """Ends of a distance: radius |delta|^2 + (trace + radius) times the doubt of |delta|^2, on both sides."""
    monkeypatch.setattr(certain, "_comes_first", lambda *_: False)
    for name in ("outcome", "_apart"):
        monkeypatch.setattr(certain, name, getattr(getattr(certain, name), "py_func", getattr(certain, name)))
    votes = getattr(certain.certain_votes, "py_func", certain.certain_votes)
    X, queries, radius, trace, error = np.array([[1.0], [2.0], [1.5]]), np.zeros((1, 1)), 0.125, 0.5, 0.05
    away = [radius * x * x + (trace + radius) * error * x * x for x in (1.0, 2.0)]
    for share, wanted in ((1 - 1e-6, ([0], [2])), (1 + 1e-6, ([1], [0]))):
        q = (1.0 + sum(away) * share) / 4  # of the second point: 4 q is its distance
        Y1, Y2 = np.array([[1.0], [2 * q], [1.5]]), np.array([[1.0], [2 * q + 0.5], [1.5]])
        out, counts, kept = np.empty(1, np.int8), np.empty(1, np.int64), np.empty(3, np.int64)
        votes(
            X, Y1, Y2, queries, queries, queries, np.array([0, 1, 1]), np.arange(3), np.zeros(1, np.int64),
            np.array([0, 3]), np.arange(3), 1, 2, np.array([1.0, 1.0, 2.0, 0.0, 0.0]), radius, trace, error, 3, out,
            counts, kept,
        )  # fmt: skip
        assert (out.tolist(), counts.tolist()) == wanted
