"""The dearer rules, number by number: every term of a bound is there, and errors count on the safe side.

The unit of rounding is made large for some of it, so that what stands for rounding shows.
"""

from __future__ import annotations

import numpy as np
import pytest

from triscreen._kernels import rules

LINEAR, ZERO = 1, 2


def plain(kernel):
    """The function itself, which sees names as they are now."""
    return getattr(kernel, "py_func", kernel)


@pytest.mark.parametrize("unit", [2.0**-53, 1e-3])
@pytest.mark.parametrize("seed", range(6))
def test_the_least_margin_over_a_half_space(seed, unit, monkeypatch):
    """The closed form, with each error times what it is an error of; and no multiplier of a grid is better."""
    monkeypatch.setattr(rules, "_U", unit)
    rng, positive = np.random.default_rng(seed), 0
    for _ in range(60):
        P, H = rng.normal(size=(2, 9))
        P *= 10 ** rng.uniform(-1, 1)
        Q, radius = rng.normal(size=9), rng.uniform(0.1, 4)
        hq, ph, pq, norm, p_norm = H @ Q, P @ H, P @ Q, np.linalg.norm(H), np.linalg.norm(P)
        e_hq, e_ph, e_pq = rng.uniform(0.01, 0.3, 3)

        def bound(mu, own=(hq, ph, pq, norm, p_norm, e_hq, e_ph, e_pq, radius)):
            hq, ph, pq, norm, p_norm, e_hq, e_ph, e_pq, radius = own
            size = norm**2 - 2 * mu * ph + mu**2 * p_norm**2
            doubt = 16 * unit * (norm**2 + 2 * mu * abs(ph) + mu**2 * p_norm**2) + 2 * mu * e_ph
            reach = radius * np.sqrt(max(size, 0.0) + doubt)
            rest = 8 * unit * (abs(hq) + mu * abs(pq) + reach)
            return hq - mu * pq - reach - e_hq - mu * e_pq - rest, hq - mu * pq - radius * np.sqrt(max(size, 0.0))

        found = plain(rules._least_linear)(hq, e_hq, ph, e_ph, norm, radius, pq, e_pq, p_norm)
        t = abs(pq) / (radius * p_norm)
        if 0.9 < t < 1:
            continue
        best = 0.0  # a half-space that cuts nothing, or leaves nothing: the sphere alone
        if t < 1:
            grid = np.concatenate([[0.0], np.geomspace(1e-3, 1e2, 200) * norm / p_norm])
            mu = grid[np.argmax([bound(m)[1] for m in grid])]
            near = np.linspace(0.9 * mu, 1.1 * mu, 200)
            best = near[np.argmax([bound(m)[1] for m in near])]
        positive += best > 0
        assert found == pytest.approx(bound(best)[0], rel=2e-3, abs=1e-3 * norm * radius)
    assert 5 < positive < 60


def test_a_sphere_without_radius_or_a_half_space_that_cuts_nothing_is_the_sphere_alone():
    for radius, pq in ((0.0, 1.0), (0.5, 10.0), (0.5, 0.5 * 2.0), (0.5, -10.0)):
        found = rules._least_linear(3.0, 0.0, 1.0, 0.0, 2.0, radius, pq, 0.0, 2.0)
        assert found == pytest.approx(3.0 - 2.0 * radius, rel=1e-12)


@pytest.mark.parametrize("pq", [-0.3, 0.4])
def test_the_linear_rule_tries_both_sides(pq):
    rng = np.random.default_rng(3)
    n, gamma, radius = 300, 0.3, 0.35
    hq, norms, ph = rng.uniform(-1, 3, n), rng.uniform(0.2, 3, n), rng.uniform(-2, 2, n)
    ph = np.clip(ph, -norms, norms)
    e_hq, e_ph = 10 ** rng.uniform(-6, -2, (2, n))
    zones = np.zeros(n, dtype=np.int8)
    before = zones.copy()
    rules.linear_rule(hq, e_hq, ph, e_ph, norms, radius, pq, 1e-3, 1.0, gamma, zones)
    for t in range(n):
        rest = e_ph[t], norms[t], radius, pq, 1e-3, 1.0
        least = rules._least_linear(hq[t], e_hq[t], ph[t], *rest)
        most = -rules._least_linear(-hq[t], e_hq[t], -ph[t], *rest)
        above, below = least > 1 and (hq[t] > 1 or pq < 0), most < 1 - gamma and (hq[t] <= 1 or pq < 0)
        assert zones[t] == (ZERO if above else LINEAR if below else 0), t
    assert {*zones.tolist()} == {0, 1, 2}
    assert not before.any()


def test_the_linear_rule_decides_only_what_has_no_zone_yet():
    """In R already, by the first side or beforehand: the other side is not asked any more."""
    for pq in (-0.3, 0.4):
        zones = np.array([ZERO, 0], dtype=np.int8)
        hq, ph, errors, norms = np.zeros(2), np.zeros(2), np.zeros(2), np.ones(2)
        rules.linear_rule(hq, errors, ph, errors, norms, 0.1, pq, 0.0, 1.0, 0.3, zones)
        assert zones.tolist() == [ZERO, LINEAR]


@pytest.mark.parametrize("unit", [2.0**-53, 1e-3])
def test_the_sign_of_the_secular_equation_is_told_where_rounding_does_not_hide_it(unit, monkeypatch):
    monkeypatch.setattr(rules, "_U", unit)
    rng, seen = np.random.default_rng(4), set()
    for _ in range(400):
        d = int(rng.integers(1, 5))
        q, u, v = rng.uniform(0, 2, d), rng.normal(size=d), rng.normal(size=d)
        y, z = rng.choice([-1, 1]) * 10 ** rng.uniform(-2, 1), -(10 ** rng.uniform(-2, 1))
        g = 1 / (q - z)
        uu, vv, uv = (u * u) @ g, (v * v) @ g, (u * v) @ g
        w = u - v
        f = (1 + y * uu) * (1 - y * vv) + y * y * uv * uv
        doubt = 16 * (d + 4) * unit * (1 + abs(y) * np.abs(w * (u + v)) @ g + y * y * uu * ((w * w) @ g))
        if abs(abs(f) - doubt) < 1e-9 * doubt:
            continue
        wanted = 0 if abs(f) <= doubt else int(np.sign(f))
        assert plain(rules._secular_sign)(z, y, q, u, w, u + v) == wanted
        seen.add(wanted)
    assert seen >= {-1, 1}
    assert unit < 1e-9 or 0 in seen


def dual(y, gain, H, Q, sign):
    """D(y): a lower bound of the squared distance from Q to the X >= 0 with <X, H> = level."""
    z = np.linalg.eigvalsh(Q + sign * y[:, None, None] * H)
    return 2 * y * gain - y * y * np.square(H).sum() + np.square(np.minimum(z, 0)).sum(axis=1)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("e_h", [0.0, 0.02])
def test_beyond_the_sphere_is_where_the_dual_says_so(sign, e_h):
    """Just inside the best dual value it is told, just outside never; errors of H only make it more careful."""
    rng, told = np.random.default_rng(5), 0
    for trial in range(40):
        d = int(rng.integers(2, 5))
        q, u, v = rng.uniform(0, 1, d), rng.normal(size=d), rng.normal(size=d)
        if trial % 4 == 0:
            v *= 0.05
        H, Q = np.outer(u, u) - np.outer(v, v), np.diag(q)
        hq, norm = float(np.vdot(H, Q)), float(np.linalg.norm(H))
        level = hq + sign * rng.uniform(0.1, 3)
        gain = sign * (level - hq)
        y = np.geomspace(1e-3, 1e3, 4001) * gain / norm**2
        values = dual(y, gain, H, Q, sign)
        best, floor = values.max(), 1e-12
        if values.argmax() > 3900:
            continue  # no such X in the cone: any radius will do

        def asked(radius, own=(level, hq, norm, q, u, v, floor)):
            level, hq, norm, q, u, v, floor = own
            vectors = (q, u, v, u - v, u + v, u @ u, v @ v, u @ v)
            return rules._beyond_sphere(sign, level, hq, norm, radius, *vectors, floor, e_h, 60)

        assert not asked(1.0005 * np.sqrt(best))
        if e_h == 0.0:  # far from the sphere eigenvalues are known to four digits only
            assert best > 4 * (gain / norm) ** 2 or asked(0.995 * np.sqrt(best))
        else:  # z is smaller by y e_h: at the worst the sphere alone
            low = np.sqrt(np.square(gain / norm))
            assert asked(0.999 * low)
            told += not asked(0.9999 * np.sqrt(best))
    assert told > 3 or e_h == 0.0


def test_the_semidefinite_rule_counts_the_errors_of_margins():
    """Limits are those of <H, Q> less (or plus) its error."""
    corners = np.array([[[0.0, 0.0], [0.0, 0.0], [2.0, 0.0]]] * 6)  # H = 4 e1 e1', <H, Q> = 4 q1
    q, gamma = np.array([0.5, 1.0]), 0.3
    for hq, wanted in ((2.0, ZERO), (0.2, LINEAR)):
        zones = np.zeros(6, dtype=np.int8)
        limit = 1.0 if wanted == ZERO else 1 - gamma
        away = abs(hq - limit)
        errors = np.array([0.0, 0.5, 0.9, 1.0, 1.1, 3.0]) * away
        radius = 0.05 * away
        reach = 4 * radius
        rules.semidefinite_rule(
            corners, q, np.full(6, hq), errors, np.full(6, 4.0), radius, gamma, 1e-14, 0.0, 60, zones
        )
        np.testing.assert_array_equal(zones == wanted, away - errors > reach)
        np.testing.assert_array_equal(zones == 0, away - errors <= reach)


def least(sign, q, h, radius):
    """min sign h'x over |x - q| <= r, x >= 0: where the projected step has the length r, or never does."""
    low, high = 0.0, 1e9
    for _ in range(300):
        tau = 0.5 * (low + high)
        x = np.maximum(q - tau * sign * h, 0)
        low, high = (tau, high) if np.linalg.norm(x - q) < radius else (low, tau)
    return float(sign * h @ np.maximum(q - low * sign * h, 0))


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("unit", [2.0**-53, 1e-6])
def test_the_least_margin_over_the_orthant(sign, unit, monkeypatch):
    monkeypatch.setattr(rules, "_U", unit)
    kernel, rng = plain(rules._least_orthant), np.random.default_rng(6)
    for trial in range(60):
        d = int(rng.integers(1, 6))
        q, h, radius = rng.uniform(0.1, 2, d), rng.normal(size=d), 10 ** rng.uniform(-2, 0.5)
        if trial % 5 == 0:
            q[0] = 0.0
        wanted, found = least(sign, q, h, radius), kernel(sign, q, h, radius)
        size = np.linalg.norm(h) * (np.linalg.norm(q) + radius)
        assert found <= wanted + 1e-13 * size
        assert found >= wanted - (1e-9 + 40 * (d + 4) * unit) * size
        if unit > 1e-9:  # what stands for rounding is there: 8 (d + 4) u (sum |h x| + r^2/tau)
            assert found < wanted - 8 * (d + 4) * unit * abs(wanted) * 0.99
    h = np.array([1.0, -2.0])
    assert kernel(sign, np.array([3.0, 1.0]), h, 0.0) == pytest.approx(sign * 1.0, rel=1e-11)
    assert kernel(sign, np.array([3.0, 1.0]), h, 0.0) < sign * 1.0
    assert kernel(sign, np.array([3.0, 1.0]), 0 * h, 2.0) == 0.0


def test_the_orthant_rule_is_that_of_its_least_and_largest_margins():
    rng, gamma, radius = np.random.default_rng(7), 0.3, 0.15
    corners, q = rng.normal(size=(200, 3, 3)), rng.uniform(0, 1, 3)
    u, v = corners[:, 0] - corners[:, 2], corners[:, 0] - corners[:, 1]
    h = u * u - v * v
    hq, errors = h @ q, 10 ** rng.uniform(-4, -1, 200)
    zones = np.zeros(200, dtype=np.int8)
    rules.orthant_rule(corners, q, hq, errors, radius, gamma, zones)
    for t in range(200):
        low, high = least(1.0, q, h[t], radius) - errors[t], -least(-1.0, q, h[t], radius) + errors[t]
        if min(abs(low - 1), abs(high - 1 + gamma)) > 1e-6:
            assert zones[t] == (ZERO if hq[t] > 1 and low > 1 else LINEAR if hq[t] <= 1 and high < 1 - gamma else 0)
    assert {*zones.tolist()} == {0, 1, 2}
