"""The dearer rules, term by term: with one multiplier only, and a unit of rounding that is large."""

from __future__ import annotations

import numpy as np
import pytest

from triscreen._kernels import rules
from triscreen.screening import rules as screening

LINEAR, ZERO = 1, 2
UNIT = 1e-3


def plain(kernel):
    """The function itself, which sees names as they are now."""
    return getattr(kernel, "py_func", kernel)


@pytest.fixture
def coarse(monkeypatch):
    """Rounding that shows."""
    monkeypatch.setattr(rules, "_U", UNIT)
    monkeypatch.setattr(screening, "U", UNIT)
    for name in ("_secular_sign", "_negative_eigenvalue", "_slope"):
        monkeypatch.setattr(rules, name, plain(getattr(rules, name)))


def test_the_bound_over_a_half_space_has_each_of_its_terms(coarse):
    """By the multiplier of the theorem, mu = (c - s t / sqrt(1 - t^2)) / |P|, where that is positive."""
    rng, seen = np.random.default_rng(0), 0
    for _ in range(200):
        P, H, Q = rng.normal(size=(3, 9))
        radius, hq, pq, ph = rng.uniform(0.5, 4), H @ Q, P @ Q, P @ H
        norm, p_norm = np.linalg.norm(H), np.linalg.norm(P)
        e_hq, e_ph, e_pq = rng.uniform(0.01, 0.3, 3)
        t, c = pq / (radius * p_norm), ph / p_norm
        mu = (c - np.sqrt(norm**2 - c * c) * t / np.sqrt(1 - t * t)) / p_norm if abs(t) < 1 else 0.0
        mu = max(0.0, mu)
        seen += mu > 0
        terms = norm**2, -2 * mu * ph, mu**2 * p_norm**2
        doubt = 16 * UNIT * sum(map(abs, terms)) + 2 * mu * e_ph
        reach = radius * np.sqrt(max(sum(terms), 0.0) + doubt)
        wanted = hq - mu * pq - reach - e_hq - mu * e_pq - 8 * UNIT * (abs(hq) + mu * abs(pq) + reach)
        found = plain(rules._least_linear)(hq, e_hq, ph, e_ph, norm, radius, pq, e_pq, p_norm)
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    assert 30 < seen < 190


def test_norms_that_are_smaller_than_their_parts_are_no_error():
    """|<P, H>| > |P| |H|, by rounding only."""
    found = rules._least_linear(3.0, 0.0, 2.0 * (1 + 1e-15), 0.0, 2.0, 0.5, 0.3, 0.0, 1.0)
    assert found == pytest.approx(3.0 - 2 * 0.3, rel=1e-6)  # mu = 2 leaves nothing of H


def eigenpair(q, u, v, y):
    values, vectors = np.linalg.eigh(np.diag(q) + y * (np.outer(u, u) - np.outer(v, v)))
    return values[0], vectors[:, 0]


def test_the_slope_of_the_negative_eigenvalue():
    """x'Hx of its unit vector, also where u and v have nothing to do with each other."""
    rng, seen = np.random.default_rng(1), 0
    for trial in range(300):
        d = int(rng.integers(2, 5))
        q, u, v = rng.uniform(0, 1, d), rng.normal(size=d), rng.normal(size=d)
        if trial % 3 == 0:
            u[0], v[1:] = 0.0, 0.0
        u, v = u * 10 ** rng.uniform(-0.7, 0.7), v * 10 ** rng.uniform(-0.7, 0.7)
        y = rng.choice([-1, 1]) * 10 ** rng.uniform(-1, 1)
        z, x = eigenpair(q, u, v, y)
        if z < -1e-3:
            wanted = (u @ x) ** 2 - (v @ x) ** 2
            assert rules._slope(z, y, q, u, v) == pytest.approx(wanted, rel=1e-6)
            seen += 1
    assert seen > 100


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize(("floor", "e_h"), [(0.02, 0.05), (0.02, 0.0), (1e-9, 0.05)])
def test_one_multiplier_is_told_by_its_dual_value_less_all_errors(sign, floor, e_h, coarse, monkeypatch):
    """y = gain/|H|^2: D(y) - 16 u (2 y gain + y^2 |H|^2) > (1 + 16 u) r^2, with an eigenvalue less floor and y e_h."""

    def exact(y, q, u, w, s, uu, vv, floor):
        z = -eigenpair(q, u, u - w, y)[0]
        return z if z > floor else 0.0

    monkeypatch.setattr(rules, "_negative_eigenvalue", exact)
    rng, deep = np.random.default_rng(2), 0
    for _ in range(80):
        d = int(rng.integers(2, 5))
        q, u, v = rng.uniform(0, 0.3, d), rng.normal(size=d), rng.normal(size=d)
        H = np.outer(u, u) - np.outer(v, v)
        hq, norm = float(np.diag(H) @ q), float(np.linalg.norm(H))
        gain = rng.uniform(0.3, 3)
        y = gain / norm**2
        z = -eigenpair(q, u, v, sign * y)[0]
        z = 0.0 if z <= floor else max(0.0, z - floor - y * e_h)
        deep += z > 0.02
        wanted = 2 * y * gain - y * y * norm**2 + z * z - 16 * UNIT * (2 * y * gain + y * y * norm**2)
        vectors = (q, u, v, u - v, u + v, u @ u, v @ v, u @ v)

        def asked(radius, own=(hq + sign * gain, hq, norm, vectors)):
            level, hq, norm, vectors = own
            return plain(rules._beyond_sphere)(sign, level, hq, norm, radius, *vectors, floor, e_h, 1)

        radius = np.sqrt(wanted / (1 + 16 * UNIT))
        assert not asked(radius * (1 + 1e-9))
        rest = ((u @ u) ** 2 if sign > 0 else (v @ v) ** 2) - 2 * (u @ v) ** 2
        if rest <= 0 or gain**2 > radius**2 * (1 + 16 * UNIT) * rest:
            assert asked(radius * (1 - 1e-9))
    assert deep > 10


def test_a_margin_that_does_not_move_is_not_looked_for():
    """H = 0: no multiplier says anything."""
    none = np.zeros(2)
    for norm in np.array([0.0, 1e-200]):
        with np.errstate(divide="ignore", over="ignore"):
            vectors = (np.ones(2), *[none] * 4, 0.0, 0.0, 0.0)
            assert not rules._beyond_sphere(1.0, 2.0, 1.0, norm, 0.1, *vectors, 1e-9, 0.0, 40)


def test_the_dual_is_climbed_to_its_maximum_and_no_further():
    """Where the best multiplier is far from the first: told if it is beyond the sphere, and soon given up if not."""
    q, u, v = np.array([0.01, 0.02]), np.array([1.0, 0.2]), np.array([0.3, 1.5])
    H, Q = np.outer(u, u) - np.outer(v, v), np.diag(q)
    vectors = (q, u, v, u - v, u + v, u @ u, v @ v, u @ v)
    hq, norm = float(np.vdot(H, Q)), float(np.linalg.norm(H))
    for sign in (-1.0, 1.0):
        gain = 1.0
        y = np.geomspace(1e-3, 1e3, 200001)
        z = np.linalg.eigvalsh(Q + sign * y[:, None, None] * H)
        values = 2 * y * gain - y * y * norm**2 + np.square(np.minimum(z, 0)).sum(axis=1)
        best, first = values.max(), gain**2 / norm**2
        assert best > 1.1 * first
        for share, told in ((0.999, True), (1.001, False)):
            level = hq + sign * gain
            assert rules._beyond_sphere(sign, level, hq, norm, share * np.sqrt(best), *vectors, 1e-12, 0.0, 40) is told


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_the_bound_over_the_orthant_has_each_of_its_terms(sign, monkeypatch):
    """The least margin, less 8 (d + 4) u (sum |h x| + r^2/tau) at the best tau."""
    unit = 1e-6
    monkeypatch.setattr(rules, "_U", unit)
    rng, cut = np.random.default_rng(3), 0
    for _ in range(60):
        d = int(rng.integers(1, 6))
        q, h, radius = rng.uniform(0.1, 2, d), rng.normal(size=d), 10 ** rng.uniform(-0.5, 0.3)
        low, high = 0.0, 1e6
        for _ in range(200):
            tau = 0.5 * (low + high)
            x = np.maximum(q - tau * sign * h, 0)
            low, high = (tau, high) if np.linalg.norm(x - q) < radius else (low, tau)
        if high > 1e5:
            continue  # the sphere is never reached: it all hangs on the orthant
        cut += (x == 0).any()
        rest = 8 * (d + 4) * unit * (np.abs(h * x).sum() + radius**2 / tau)
        found = plain(rules._least_orthant)(sign, q, h, radius)
        assert found == pytest.approx(sign * (h @ x) - rest, abs=1e-3 * rest)
    assert cut > 3


def test_a_sphere_without_radius_is_its_centre_and_a_margin_that_does_not_move_is_zero():
    q, h = np.array([3.0, 1.0]), np.array([1.0, -2.0])
    for sign in (-1.0, 1.0):
        found = rules._least_orthant(sign, q, h, 0.0)
        assert sign - 2e-12 <= found < sign
        assert rules._least_orthant(sign, q, 0 * h, 0.0) == 0.0


@pytest.mark.parametrize("zone", [LINEAR, ZERO])
def test_one_multiplier_of_the_rule_by_eigendecompositions(zone, coarse, monkeypatch):
    """D(y) - 16 u (the sum of its terms) > r^2, with eigenvalues that are up to 64 d u |z| smaller."""
    monkeypatch.setattr(screening, "_STEPS", 1)
    unit = 1e-4
    monkeypatch.setattr(screening, "U", unit)
    rng, gamma, told, cuts = np.random.default_rng(4), 0.3, set(), 0
    for _ in range(120):
        F = rng.normal(size=(3, 3))
        Q = 0.3 * (F + F.T)
        points = rng.normal(size=(3, 3))
        u, v = points[0] - points[2], points[0] - points[1]
        H = np.outer(u, u) - np.outer(v, v)
        values, vectors = np.linalg.eigh(Q)
        plus = (vectors * np.maximum(values, 0)) @ vectors.T
        feasible, hq, e_hq = np.vdot(H, plus), np.vdot(H, Q), 0.05
        if (zone == ZERO) != (feasible > 1) or 1 - gamma <= feasible <= 1:
            continue
        sign, level = (-1.0, 1.0) if zone == ZERO else (1.0, 1 - gamma)
        h = hq - e_hq if zone == ZERO else hq + e_hq
        size = np.vdot(H, H)
        radius = 0.1
        for _ in range(2):  # the radius says where the first multiplier is: once more with the one that is found
            y = max(sign * (level - h), 1e-3 * np.sqrt(size) * radius) / size
            z = np.linalg.eigvalsh(Q + sign * y * H)
            cut = np.minimum(z + 64 * 3 * unit * np.abs(z).max(), 0)
            value = 2 * y * sign * (level - h) - y * y * size + cut @ cut
            magnitude = abs(2 * y * (level - h)) + y * y * size + cut @ cut
            radius = np.sqrt(max(0.0, value - 16 * unit * magnitude))
        cuts += cut @ cut > 0.1 * value
        if radius < 1e-2:
            continue
        by_radius = sign * (level - h) < 2e-3 * np.sqrt(size) * radius  # the first multiplier: it moves with the radius
        near = 5e-3 if by_radius else 1e-7
        for factor in (1 - near, 1 + near):
            out = np.zeros(1, dtype=np.int8)
            screening.by_eigendecompositions(
                points[None],
                Q,
                np.array([hq]),
                np.array([e_hq]),
                np.array([np.sqrt(size)]),
                factor * radius,
                gamma,
                out,
            )
            assert out[0] == (zone if factor < 1 else 0)
            told.add(int(out[0]))
    assert told == {0, zone}
    assert cuts > 3


def test_where_the_projection_lies_between_the_limits_nothing_is_tried():
    points = np.array([[[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]]] * 4)  # <H, X> = X_11
    for first, wanted in ((1.0, 0), (0.9, 0), (0.8, 0), (0.7, 0), (1.2, ZERO), (0.5, LINEAR)):
        out = np.zeros(4, dtype=np.int8)
        hq = np.array([first, first, first, first])
        screening.by_eigendecompositions(points, np.diag([first, -0.5]), hq, np.zeros(4), np.ones(4), 0.51, 0.3, out)
        assert out.tolist() == [wanted] * 4


def test_a_triplet_whose_two_pairs_are_one_has_no_norm_and_stays_open_where_rounding_may_reach():
    points, out = np.array([[[0.0, 0.0], [1.0, 0.0], [1.0, 0.0]]]), np.zeros(1, dtype=np.int8)
    with np.errstate(all="raise"):
        screening.by_eigendecompositions(
            points, np.diag([1.0, -0.5]), np.zeros(1), np.ones(1), np.zeros(1), 0.5, 0.3, out
        )
    assert out[0] == 0


@pytest.mark.parametrize("wanted", [LINEAR, ZERO, 0])
def test_the_semidefinite_rule_hands_on_the_triplet_as_it_is(wanted, monkeypatch):
    """u, v, their difference, sum and products; the limit, and the margin with its error on the safe side."""
    seen = []
    monkeypatch.setattr(rules, "_beyond_sphere", lambda *arguments: seen.append(arguments) or True)
    rng, gamma = np.random.default_rng(5), 0.3
    corners, q = rng.normal(size=(3, 3, 4)), rng.uniform(0, 1, 4)
    hq = np.full(3, {LINEAR: 0.2, ZERO: 1.5, 0: 0.8}[wanted])
    errors, norms, zones = np.array([0.1, 0.0, 0.25]), rng.uniform(1, 2, 3), np.zeros(3, dtype=np.int8)
    plain(rules.semidefinite_rule)(corners, q, hq, errors, norms, 0.5, gamma, 1e-3, 1e-4, 40, zones)
    assert zones.tolist() == [wanted] * 3
    assert len(seen) == (3 if wanted else 0)
    for t, (sign, level, h, norm, radius, own, u, v, w, s, uu, vv, uv, *rest) in enumerate(seen):
        assert (sign, level) == ((-1.0, 1.0) if wanted == ZERO else (1.0, 1.0 - gamma))
        assert h == hq[t] - errors[t] if wanted == ZERO else h == hq[t] + errors[t]
        assert (norm, radius, own is q, rest) == (norms[t], 0.5, True, [1e-3, 1e-4, 40])
        x, near, far = corners[t]
        if t == len(seen) - 1:  # the arrays are used again
            for found, exact in zip((u, v, w, s), (x - far, x - near, near - far, 2 * x - near - far), strict=True):
                np.testing.assert_allclose(found, exact)
        exact = [(x - far) @ (x - far), (x - near) @ (x - near), (x - far) @ (x - near)]
        assert (uu, vv, uv) == pytest.approx(exact)


@pytest.mark.parametrize("hq", [1.0 + 1e-3, 0.7 - 1e-3])
def test_margins_whose_error_reaches_the_limit_are_not_tried(hq, monkeypatch):
    monkeypatch.setattr(rules, "_beyond_sphere", lambda *_: True)
    zones = np.zeros(2, dtype=np.int8)
    error = np.array([2e-3, 0.0])
    plain(rules.semidefinite_rule)(
        np.ones((2, 3, 2)), np.ones(2), np.full(2, hq), error, np.ones(2), 0.5, 0.3, 1e-3, 1e-4, 40, zones
    )
    assert zones.tolist() == [0, ZERO if hq > 1 else LINEAR]


def test_an_eigenvalue_is_taken_from_below_whatever_rounding_hides(coarse):
    """Its size is never more than the exact one, and most often found."""
    rng, seen = np.random.default_rng(6), 0
    find = plain(rules._negative_eigenvalue)
    for _ in range(300):
        d = int(rng.integers(2, 5))
        q, u, v = rng.uniform(0, 0.3, d), rng.normal(size=d), rng.normal(size=d)
        y = rng.choice([-1, 1]) * 10 ** rng.uniform(-1, 0.5)
        z = -eigenpair(q, u, v, y)[0]
        found = find(y, q, u, u - v, u + v, u @ u, v @ v, 1e-6)
        assert found <= max(0.0, z) * (1 + 1e-9)
        seen += found > 0.5 * z > 0
    assert seen > 100


def test_the_orthant_rule_takes_the_error_of_a_margin_off_on_both_sides():
    corners = np.array([[[0.0], [0.0], [1.0]]] * 4)  # <H, x> = x
    errors, radius = np.array([0.0, 0.94, 0.96, 2.0]), 0.05
    for q, gamma, wanted in ((2.0, 0.3, ZERO), (0.5, -0.5, LINEAR)):  # 1 from 1, and 1 from 1 - gamma
        zones = np.zeros(4, dtype=np.int8)
        rules.orthant_rule(corners, np.array([q]), np.full(4, q), errors, radius, gamma, zones)
        assert zones.tolist() == [wanted, wanted, 0, 0]
