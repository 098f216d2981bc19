"""The plane that a report shows, and the intervals that it gives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, ortho_group

from triscreen.report.intervals import counted, wilson
from triscreen.report.planes import flat, plane_of

RNG = np.random.default_rng(0)
CODES = np.arange(300) % 3
# Classes apart in two of six directions, noise five times as large in the others.
POINTS = RNG.normal(size=(300, 6)) * [1, 1, 5, 5, 5, 5]
POINTS[:, 0] += 4 * (CODES == 1)
POINTS[:, 1] += 4 * (CODES == 2)


def test_the_plane_separates_classes_where_the_widest_one_does_not():
    turn = ortho_group.rvs(6, random_state=1)
    axes = plane_of(POINTS @ turn, CODES)
    np.testing.assert_allclose(axes @ axes.T, np.eye(2), atol=1e-12)
    assert np.linalg.norm((axes @ turn.T)[:, :2]) > 1.3  # of sqrt(2): means are off by a tenth of their distance
    widest = plane_of(POINTS @ turn)
    assert np.linalg.norm((widest @ turn.T)[:, :2]) < 0.5


def test_in_no_other_plane_are_means_farther_apart():
    means = np.array([POINTS[c == CODES].mean(axis=0) for c in range(3)])
    best = np.linalg.norm(means @ plane_of(POINTS, CODES).T)
    planes = [ortho_group.rvs(6, random_state=seed)[:2] for seed in range(200)]
    assert max(np.linalg.norm(means @ axes.T) for axes in planes) < best


def test_two_classes_fill_a_plane_too():
    seen = flat(POINTS, plane_of(POINTS, CODES == 1))
    assert np.linalg.svd(seen)[1][1] > 0.3 * np.linalg.svd(seen)[1][0]


def test_edges_hold():
    for Z, codes in ((POINTS[:, :1], CODES), (POINTS[:, :0], CODES), (np.zeros((300, 3)), CODES), (POINTS, 0 * CODES)):
        seen = flat(Z, plane_of(Z, codes))
        assert seen.shape == (300, 2)
        assert np.isfinite(seen).all()


@pytest.mark.parametrize(("wrong", "n"), [(0, 30), (2, 100), (50, 100), (7, 7)])
def test_intervals_are_those_of_scipy(wrong, n):
    wanted = binomtest(wrong, n).proportion_ci(method="wilson")
    np.testing.assert_allclose(wilson(wrong, n), (wanted.low, wanted.high), atol=1e-12)


def test_counts_in_words():
    assert counted(0.02, 100) == "2 of 100, 2.0% (95 %: 0.6 to 7.0 %)"
