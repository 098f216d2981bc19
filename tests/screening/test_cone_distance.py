"""Sphere and PSD cone for any centre: decided exactly where the level is farther away than the radius."""

from __future__ import annotations

import numpy as np
import pytest

from triscreen.screening import rules

STEPS = np.geomspace(1e-4, 1e6, 4001)


def far(Q, H, level, sign, h):
    """How far from Q the metrics with <X, H> = level are: the square root of the largest SDLS dual value."""
    shifted = Q + sign * STEPS[:, None, None] * H
    cut = np.minimum(np.linalg.eigvalsh(shifted), 0.0)
    values = 2 * STEPS * sign * (level - h) - STEPS**2 * float(np.vdot(H, H)) + (cut * cut).sum(axis=1)
    return float(np.sqrt(max(values.max(), 0.0)))


@pytest.mark.parametrize("gamma", [0.05, 0.5])
@pytest.mark.parametrize("e", [0.0, 0.2])
@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_a_centre_outside_of_the_cone_is_decided_by_the_distance_to_the_level(gamma, e, scale):
    rng, seen = np.random.default_rng(int(10 * scale)), []
    for _ in range(60):
        Q = scale * (np.diag(rng.uniform(0.2, 2, 2)) + 0.3 * rng.normal(size=(2, 2)))
        Q = (Q + Q.T) / 2 - np.diag([0.0, scale * rng.choice([0.0, 0.6])])
        x, near, other = rng.normal(size=(3, 2))
        u, v = x - other, x - near
        H = np.outer(u, u) - np.outer(v, v)
        values, vectors = np.linalg.eigh(Q)
        plus = float(np.vdot(H, (vectors * np.maximum(values, 0)) @ vectors.T))
        h, norm = float(np.vdot(H, Q)), float(np.linalg.norm(H))
        if plus > 1:
            level, sign, worst, zone = 1.0, -1.0, h - e, rules.ZERO
        elif plus < 1 - gamma:
            level, sign, worst, zone = 1 - gamma, 1.0, h + e, rules.LINEAR
        else:
            continue
        most = far(Q, H, level, sign, worst)
        if not 0.02 < most < 50:  # nearly on the level, or beyond what the grid of multipliers resolves
            continue
        for radius, wanted in ((0.97 * most, zone), (1.03 * most, rules.UNDECIDED)):
            out = np.zeros(1, np.int8)
            corners = np.array([[x, near, other]])
            rules.by_eigendecompositions(corners, Q, [h], [e], [norm], radius, gamma, out)
            assert out[0] == wanted, (Q, x, near, other)
        seen.append(zone)
    assert min(seen.count(rules.ZERO), seen.count(rules.LINEAR)) >= 2, (len(seen), seen.count(2))
