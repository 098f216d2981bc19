"""The dearer screening rules, triplet by triplet; each is a lower bound by weak duality, so any multiplier is safe.

Zones: 1 is L (margin below 1 - gamma on the whole region), 2 is R (margin above 1), 0 undecided.

References
----------
T. Yoshida, I. Takeuchi, M. Karasuyama. Safe Triplet Screening for Distance Metric Learning. KDD 2018. arXiv:1802.03923:
Theorem 3.1 (linear), section 3.1.2 (semidefinite), appendix B (diagonal; with two corrections, see docs/maths.md).
"""

from __future__ import annotations

import math

import numpy as np

from triscreen._kernels.common import LINEAR, UNDECIDED, ZERO, compiled

_U = 2.0**-53


@compiled()
def _least_linear(hq, e_hq, ph, e_ph, norm, radius, pq, e_pq, p_norm):
    """Lower bound of <H, X> over the sphere and <P, X> >= 0: max over mu >= 0 of <H - mu P, Q> - r |H - mu P|.

    The maximum is Theorem 3.1's closed form: mu = (c - s t / sqrt(1 - t^2)) / |P| with c = <P, H>/|P|,
    s^2 = |H|^2 - c^2 and t = <P, Q>/(r |P|); mu <= 0 or |t| >= 1: the sphere alone.
    """
    mu = 0.0
    if radius > 0.0:
        c = ph / p_norm
        t = pq / (radius * p_norm)
        if abs(t) < 1.0:
            s = math.sqrt(max(norm * norm - c * c, 0.0))
            mu = max(0.0, (c - s * t / math.sqrt(1.0 - t * t)) / p_norm)
    size = norm * norm - 2.0 * mu * ph + mu * mu * p_norm * p_norm
    doubt = 16 * _U * (norm * norm + 2.0 * mu * abs(ph) + mu * mu * p_norm * p_norm) + 2.0 * mu * e_ph
    reach = radius * math.sqrt(max(size, 0.0) + doubt)
    return hq - mu * pq - reach - e_hq - mu * e_pq - 8 * _U * (abs(hq) + mu * abs(pq) + reach)


@compiled()
def linear_rule(hq, e_hq, ph, e_ph, norms, radius, pq, e_pq, p_norm, gamma, zones):
    """Sphere + half-space; hq = <H, Q> and ph = <P, H> with their errors, one entry per triplet.

    Both sides are tried: where the centre lies outside the half-space, its own margin does not tell which one.
    """
    for t in range(hq.size):
        if hq[t] > 1.0 or pq < 0.0:
            least = _least_linear(hq[t], e_hq[t], ph[t], e_ph[t], norms[t], radius, pq, e_pq, p_norm)
            if least > 1.0:
                zones[t] = ZERO
        if zones[t] == UNDECIDED and (hq[t] <= 1.0 or pq < 0.0):  # the largest margin is minus the least one of -H
            largest = -_least_linear(-hq[t], e_hq[t], -ph[t], e_ph[t], norms[t], radius, pq, e_pq, p_norm)
            if largest < 1.0 - gamma:
                zones[t] = LINEAR


@compiled()
def _secular_sign(z, y, q, u, w, s):
    """Sign of f(z) = (1 + y s_uu)(1 - y s_vv) + y^2 s_uv^2, 0 where rounding hides it.  w = u - v, s = u + v.

    The root of f below zero is the negative eigenvalue of Q + y H. With s_ab = sum_c a_c b_c/(q_c - z) it is computed
    as 1 + y s_ws - y^2 (s_uu s_ww - s_uw^2), because the plain form is nothing but rounding where u is close to v.
    """
    ws = 0.0
    size = 0.0
    uu = 0.0
    ww = 0.0
    uw = 0.0
    for c in range(q.size):
        g = 1.0 / (q[c] - z)
        ws += w[c] * s[c] * g
        size += abs(w[c] * s[c]) * g
        uu += u[c] * u[c] * g
        ww += w[c] * w[c] * g
        uw += u[c] * w[c] * g
    f = 1.0 + y * ws - y * y * (uu * ww - uw * uw)
    doubt = 16 * (q.size + 4) * _U * (1.0 + abs(y) * size + y * y * uu * ww)
    if f > doubt:
        return 1
    return -1 if f < -doubt else 0


@compiled()
def _negative_eigenvalue(y, q, u, w, s, uu, vv, floor):
    """Return -z for the negative eigenvalue z of Q + y H, from below; 0 if it is above -floor or lost in rounding."""
    low = -y * vv if y > 0.0 else y * uu  # Weyl: no eigenvalue lies below
    if low >= -floor or _secular_sign(-floor, y, q, u, w, s) > 0:
        return 0.0
    # Up from below until f is surely negative: near a pole at zero its sign may drown.
    high = low
    for _ in range(52):
        high *= 0.5
        if high > -floor:
            return 0.0
        if _secular_sign(high, y, q, u, w, s) < 0:
            break
        low = high
    else:
        return 0.0
    while low < 1.0001 * high:  # both negative: until they are within 1e-4 of each other
        middle = -math.sqrt(low * high)
        if _secular_sign(middle, y, q, u, w, s) < 0:
            high = middle
        else:
            low = middle
    return -high


@compiled()
def _slope(z, y, q, u, v):
    """d z / d y = q'Hq for the unit eigenvector of the eigenvalue z of Q + y H."""
    uu = 0.0
    vv = 0.0
    uv = 0.0
    tuu = 0.0
    tvv = 0.0
    tuv = 0.0
    for c in range(q.size):
        g = 1.0 / (q[c] - z)
        uu += u[c] * u[c] * g
        vv += v[c] * v[c] * g
        uv += u[c] * v[c] * g
        tuu += u[c] * u[c] * g * g
        tvv += v[c] * v[c] * g * g
        tuv += u[c] * v[c] * g * g
    # (a, b) = (u'x, v'x) spans the null space of [[1 + y uu, -y uv], [y uv, 1 - y vv]]
    if abs(1.0 + y * uu) + abs(y * uv) > abs(1.0 - y * vv) + abs(y * uv):
        a, b = y * uv, 1.0 + y * uu
    else:
        a, b = 1.0 - y * vv, -y * uv
    size = y * y * (a * a * tuu - 2.0 * a * b * tuv + b * b * tvv)
    return (a * a - b * b) / size if size > 0.0 else 0.0


@compiled()
def _beyond_sphere(sign, level, hq, norm, radius, q, u, v, w, s, uu, vv, uv, floor, e_h, max_steps):
    """Is no X in the cone with <X, H> = level within radius of Q?  Maximise the SDLS dual over y, sign y > 0.

    D(y) = 2 y (level - <Q, H>) - y^2 |H|^2 + z(y)^2 is a lower bound of the squared distance for every y.
    """
    gain = sign * (level - hq)  # > 0
    size = norm * norm
    target = radius * radius * (1.0 + 16 * _U)
    y = gain / size
    # z >= -y |v|^2 (y > 0) or -|y| |u|^2, so D(y) <= 2 |y| gain - y^2 (rest): if even that stays below, no y will do.
    rest = (uu * uu if sign > 0.0 else vv * vv) - 2.0 * uv * uv
    if not y < 1e150 or (rest > 0.0 and gain * gain <= target * rest):
        return False
    step_low = y
    step_high = np.inf
    for _ in range(max_steps):
        z = _negative_eigenvalue(sign * y, q, u, w, s, uu, vv, floor)
        safe_z = max(0.0, z - floor - y * e_h)
        value = 2.0 * y * gain - y * y * size + safe_z * safe_z
        if value - 16 * _U * (2.0 * y * gain + y * y * size) > target:
            return True
        # D is concave: its derivative tells on which side of the maximum y lies.
        derivative = 2.0 * gain - 2.0 * y * size
        if z > 0.0:
            derivative += 2.0 * (-z) * sign * _slope(-z, sign * y, q, u, v)
        if derivative > 0.0:
            step_low = y
        else:
            step_high = y
        if step_high == np.inf:
            y = 2.0 * y
        else:
            y = 0.5 * (step_low + step_high)
            if step_high - step_low < 1e-6 * step_high:
                return False
        # The tangent bounds what is left to gain.
        if step_high < np.inf and value + abs(derivative) * (step_high - step_low) <= target:
            return False
    return False


@compiled()
def semidefinite_rule(corners, q, hq, e_hq, norms, radius, gamma, floor, e_h, max_steps, zones):
    """Sphere + PSD cone for a PSD centre with eigenvalues q >= 0, O(d) a step.

    ``corners``: the points x_i, x_j, x_l of each triplet in its eigenbasis.
    """
    dim = q.size
    u = np.empty(dim)
    v = np.empty(dim)
    w = np.empty(dim)
    s = np.empty(dim)
    for t in range(hq.size):
        above = hq[t] - e_hq[t] > 1.0
        below = hq[t] + e_hq[t] < 1.0 - gamma
        if not (above or below):
            continue
        uu = 0.0
        vv = 0.0
        uv = 0.0
        for c in range(dim):
            u[c] = corners[t, 0, c] - corners[t, 2, c]
            v[c] = corners[t, 0, c] - corners[t, 1, c]
            w[c] = corners[t, 1, c] - corners[t, 2, c]
            s[c] = u[c] + v[c]
            uu += u[c] * u[c]
            vv += v[c] * v[c]
            uv += u[c] * v[c]
        if above:
            h = hq[t] - e_hq[t]
            if _beyond_sphere(-1.0, 1.0, h, norms[t], radius, q, u, v, w, s, uu, vv, uv, floor, e_h, max_steps):
                zones[t] = ZERO
        else:
            h = hq[t] + e_hq[t]
            if _beyond_sphere(1.0, 1.0 - gamma, h, norms[t], radius, q, u, v, w, s, uu, vv, uv, floor, e_h, max_steps):
                zones[t] = LINEAR


@compiled()
def _least_orthant(sign, q, h, radius):
    """Lower bound of sign * h'x over |x - q| <= r, x >= 0: the best Lagrangian value over the multiplier 1/(2 tau).

    x(tau) = max(q - tau h, 0) minimises the Lagrangian; |x(tau) - q| grows with tau until it is the radius.
    """
    norm = 0.0
    for c in range(q.size):
        norm += h[c] * h[c]
    if norm == 0.0 or radius == 0.0:
        value = 0.0
        for c in range(q.size):
            value += sign * h[c] * q[c]
        return value - 1e-12 * abs(value) if norm > 0.0 else 0.0
    tau = radius / math.sqrt(norm)
    low = 0.0
    high = np.inf
    best = -np.inf
    for _ in range(120):
        linear = 0.0
        size = 0.0
        away = 0.0
        for c in range(q.size):
            x = max(q[c] - tau * sign * h[c], 0.0)
            linear += sign * h[c] * x
            size += abs(h[c] * x)
            away += (x - q[c]) ** 2
        value = linear + (away - radius * radius) / (2.0 * tau)
        value -= 8 * (q.size + 4) * _U * (size + (away + radius * radius) / (2.0 * tau))
        best = max(best, value)
        if away < radius * radius:
            low = tau
        else:
            high = tau
        if high == np.inf:
            tau *= 2.0
        else:
            tau = 0.5 * (low + high)
            if high - low <= 1e-14 * high:
                break
    return best


@compiled()
def orthant_rule(corners, q, hq, e_hq, radius, gamma, zones):
    """Sphere + orthant, for diagonal metrics: the exact least and largest margins over the region.

    ``corners``: the points x_i, x_j, x_l of each triplet.
    """
    dim = q.size
    h = np.empty(dim)
    for t in range(hq.size):
        for c in range(dim):
            # u^2 - v^2 = (u - v)(u + v) without cancellation
            x, positive, negative = corners[t, 0, c], corners[t, 1, c], corners[t, 2, c]
            h[c] = (positive - negative) * ((x - negative) + (x - positive))
        if hq[t] > 1.0:
            if _least_orthant(1.0, q, h, radius) - e_hq[t] > 1.0:
                zones[t] = ZERO
        elif -_least_orthant(-1.0, q, h, radius) + e_hq[t] < 1.0 - gamma:
            zones[t] = LINEAR
