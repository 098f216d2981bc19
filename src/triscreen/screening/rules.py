"""Rules: from a sphere to the triplets it decides, cheap ones first.

* sphere        <H, Q> -/+ r |H|, O(1) a triplet
* linear        sphere and half-space <P, X> >= 0 (Theorem P4), O(1)
* semidefinite  sphere and cone: the SDLS dual, O(d) a step where the centre is positive semi-definite, an
                eigendecomposition a step where it is not; diagonal metrics: the exact minimum over sphere and orthant

A dearer rule sees only what the cheaper ones left. Zones: UNDECIDED, LINEAR (in L: margin below 1 - gamma
for every metric in the region), ZERO (in R: margin above 1).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from triscreen._kernels.common import LINEAR, UNDECIDED, ZERO
from triscreen._kernels.rules import linear_rule, orthant_rule, semidefinite_rule
from triscreen._utils.threads import chunk_bounds
from triscreen.problem.rounding import U
from triscreen.screening.spheres import Sphere, split

RULES = ("sphere", "linear", "semidefinite")
_STEPS = 40
_CHUNK = 1 << 14


@dataclass(frozen=True)
class Region:
    """A sphere prepared for an engine's triplets.

    Attributes
    ----------
    sphere : Sphere
    radius : float
        Safe in floating point.
    values, errors : arrays
        <delta delta', Q> of every pair, and bounds of its error (the radius times the norms' absolute error included).
    norm_factor : float
        Norms |H| times this bound the exact ones, but for the part in ``errors``.

    References
    ----------
    docs/screening.md, "Safe in floating point"; ours.

    Examples
    --------
    What an own rule is shown:

    >>> import triscreen as ts
    >>> seen = []
    >>> def look(engine, region, norms, zones):
    ...     seen.append(len(region.values) == engine.triplets.n_pairs and region.radius >= region.sphere.radius)
    >>> problem = ts.Problem([[0.0], [1.0], [3.0]], ts.given_triplets([[0, 1, 2]]))
    >>> sol = ts.solve(problem, 1.0, screening=ts.Screening("dgb", rule=look))
    >>> bool(seen) and all(seen)
    True
    """

    sphere: Sphere
    radius: float
    values: np.ndarray = field(repr=False)
    errors: np.ndarray = field(repr=False)
    norm_factor: float = 1.0


def prepare(engine, sphere, radius, rounding):
    """Return (Region, passes spent): the pair values of the centre, term by term."""
    terms = split(engine.cone, sphere.center) if sphere.terms is None else sphere.terms
    values = np.zeros(engine.triplets.n_pairs)
    errors = np.full(engine.triplets.n_pairs, 0.5 * radius * rounding.norm_offset)
    passes = 0.0
    for term in terms:
        dist = term.dist
        if dist is None:
            dist = engine.distances(term.factor)
            passes += 0.5 * engine.share
        rounding.add_distances(dist, term.trace, term.coefficient, values, errors)
    return Region(sphere, radius, values, errors, rounding.norm_factor), passes


def sphere_rule(engine, region, norms, zones, whole=None):
    """Decide by <H, Q> -/+ r |H|; returns how many went to (L, R); whole: see `TripletSet.decide`."""
    radius, gamma = region.radius * region.norm_factor, engine.loss.gamma
    return engine.triplets.decide(region.values, region.errors, norms, radius, zones, gamma, engine.threads, whole)


def linear(engine, region, norms, zones, rounding):
    """Sphere + half-space, for what is left; returns passes spent."""
    factor = region.sphere.normal
    if factor is None:
        return 0.0
    P = factor * factor if factor.ndim == 1 else factor @ factor.T
    p_norm, p_trace = float(np.linalg.norm(P)), float(np.vdot(factor, factor))
    scale = float(np.linalg.norm(region.sphere.center)) + region.radius
    values = engine.distances(factor)
    errors = rounding.distances(values, p_trace)
    pq = float(np.vdot(P, region.sphere.center))
    e_pq = 64 * len(P) * U * p_trace * scale

    def kernel(left, positive, negative, out):
        linear_rule(
            region.values[negative] - region.values[positive],
            region.errors[negative] + region.errors[positive],
            values[negative] - values[positive],
            errors[negative] + errors[positive],
            norms[left] * region.norm_factor,
            region.radius,
            pq,
            e_pq,
            p_norm,
            engine.loss.gamma,
            out,
        )

    _in_chunks(engine, zones, kernel, _CHUNK)
    return 0.5 * engine.share


def semidefinite(engine, region, norms, zones):
    """Sphere + cone, for what is left."""
    center, gamma = region.sphere.center, engine.loss.gamma

    def values_of(positive, negative):
        hq = region.values[negative] - region.values[positive]
        return hq, region.errors[negative] + region.errors[positive]

    # Chunks of a tenth of a second or so, whatever a triplet costs: some steps over its features, or eigenvalues.
    chunk = max(1, _CHUNK // (4 + len(center)))
    if center.ndim == 1:
        corners = engine.triplets.corners()

        def kernel(left, positive, negative, out):
            hq, e_hq = values_of(positive, negative)
            orthant_rule(corners(left), center, hq, e_hq, region.radius, gamma, out)

    else:
        q, V = np.linalg.eigh(center)
        largest = float(np.abs(q).max()) if len(q) else 0.0
        psd = len(q) > 0 and q[0] >= -64 * len(q) * U * largest
        floor = max(256 * len(q) * U * largest, 1e-250)
        e_h = 64 * (len(q) + engine.point_error) * U * engine.triplets.largest_square
        if psd:
            q = np.maximum(q, 0.0)
            corners = engine.triplets.corners(V)

            def kernel(left, positive, negative, out):
                hq, e_hq = values_of(positive, negative)
                n = norms[left] * region.norm_factor
                semidefinite_rule(corners(left), q, hq, e_hq, n, region.radius, gamma, floor, e_h, _STEPS, out)

        else:
            chunk = max(1, _CHUNK // (256 + len(center) ** 3 // 8))
            corners = engine.triplets.corners()

            def kernel(left, positive, negative, out):
                hq, e_hq = values_of(positive, negative)
                n = norms[left] * region.norm_factor
                by_eigendecompositions(corners(left), center, hq, e_hq, n, region.radius, gamma, out)

    _in_chunks(engine, zones, kernel, chunk)


def _in_chunks(engine, zones, kernel, chunk):
    """Run a kernel over the triplets without a zone, chunk by chunk, on the engine's threads."""
    keep = zones == UNDECIDED
    left = np.flatnonzero(keep)
    if not len(left):
        return
    positive, negative = engine.triplets.pair_numbers(keep)
    out = np.zeros(len(left), dtype=np.int8)
    chunks = -(-len(left) // chunk)
    bounds = chunk_bounds(len(left), chunks)

    def task(c):
        part = slice(bounds[c], bounds[c + 1])
        kernel(left[part], positive[part], negative[part], out[part])

    engine.threads.run("rule", task, chunks)
    zones[left] = out


def by_eigendecompositions(corners, Q, hq, e_hq, norms, radius, gamma, out):
    """The semidefinite rule for a centre that is not in the cone: one eigendecomposition a step, for completeness."""
    values, vectors = np.linalg.eigh(Q)
    plus = (vectors * np.maximum(values, 0.0)) @ vectors.T
    doubt = 64 * len(Q) * U
    for t, (x, positive, negative) in enumerate(corners):
        u, v = x - negative, x - positive
        feasible = u @ plus @ u - v @ plus @ v  # [Q]_+ always lies in the region
        if feasible > 1.0:
            sign, level, h = -1.0, 1.0, hq[t] - e_hq[t]
        elif feasible < 1.0 - gamma:
            sign, level, h = 1.0, 1.0 - gamma, hq[t] + e_hq[t]
        else:
            continue
        H = np.outer(u, u) - np.outer(v, v)
        size = max(norms[t] ** 2, 1e-300)
        low, high, y = 0.0, np.inf, max(sign * (level - h), 1e-3 * np.sqrt(size) * radius) / size
        for _ in range(_STEPS):
            z, W = np.linalg.eigh(Q + sign * y * H)
            lost = doubt * (np.abs(z).max() + 1e-300)
            cut = np.minimum(z + lost, 0.0)
            value = 2 * y * sign * (level - h) - y * y * size + float(cut @ cut)
            magnitude = abs(2 * y * (level - h)) + y * y * size + float(cut @ cut)
            if value - 16 * U * magnitude > radius**2:
                out[t] = ZERO if sign < 0 else LINEAR
                break
            minus = float(np.einsum("ic,ij,jc,c->", W, H, W, np.minimum(z, 0.0)))
            if sign * (level - (h + sign * y * size - minus)) > 0:
                low = y
            else:
                high = y
            y = 2 * y if high == np.inf else 0.5 * (low + high)
            if high - low < 1e-6 * high:
                break
