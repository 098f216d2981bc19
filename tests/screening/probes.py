"""Triplets made to be hard for one sphere: any H will do, and these lie at its limits."""

from __future__ import annotations

from dataclasses import replace

import numba
import numpy as np

import triscreen as ts
from triscreen.problem.engine import Engine
from triscreen.screening import rules
from triscreen.screening.by_triplet import Screener

# Probes a sphere (the night has more; fewer uncompiled); where each takes eigendecompositions.
MANY, FEW = 60 if numba.config.DISABLE_JIT else 300, 12


def probe(problem, e, lam, other, bound, optimum, rng, counts, label):
    """Let all rules decide the probes of one sphere; count decisions, hard and wrong ones.

    optimum: (M, |M - M*| at most), inside.
    """
    screener = Screener(problem, ts.Screening((bound,)), lam, 1e-6)
    sphere = screener._sphere(bound, e, other)
    radius = screener._radius(sphere, e)
    if not np.isfinite(radius) or radius > 1e100:
        return
    sphere = replace(sphere, terms=None)  # those know the pairs of the problem
    u, v = _vectors(problem, sphere, radius, optimum[0], rng)
    if not len(u):
        return
    engine = _engine(problem, u, v, rng)
    norms = engine.norms
    region, _ = rules.prepare(engine, sphere, radius, engine.rounding)
    gamma, truth = problem.loss.gamma, _margins(engine, optimum[0])
    doubt = norms * optimum[1] * (1 + 1e-9) + 1e-12 * (1 + np.abs(truth))
    center, width = _margins(engine, sphere.center), norms * radius
    zones = np.zeros(len(u), dtype=np.int8)
    rules.sphere_rule(engine, region, norms, zones)
    rules.linear(engine, region, norms, zones, engine.rounding)  # each rule decides what the ones before have left
    slow = sphere.center.ndim == 2 and np.linalg.eigvalsh(sphere.center)[0] < 0
    if not slow or len(u) <= FEW:
        rules.semidefinite(engine, region, norms, zones)
    for zone, sign, limit in ((2, 1, 1.0), (1, -1, 1.0 - gamma)):
        chosen = zones == zone
        hard = np.minimum(np.abs(truth - limit), np.abs(center - sign * width - limit)) <= 0.01 * width
        wrong = chosen & (sign * (limit - truth) > doubt)
        counts["probes"] += int(chosen.sum())
        counts["hard"] += int((chosen & hard).sum())
        counts["hard by the optimum"] += int((chosen & (np.abs(truth - limit) <= 0.01 * width)).sum())
        if wrong.any():
            counts["wrong"] += int(wrong.sum())
            counts[f"wrong: probe, {label}"] += int(wrong.sum())


def _vectors(problem, sphere, radius, M, rng):
    """Return (u, v), scaled so that H = u u' - v v' lies at a limit of the sphere, or of the optimum."""
    dim = problem.points.shape[1]
    slow = sphere.center.ndim == 2 and np.linalg.eigvalsh(sphere.center)[0] < 0
    many = FEW if slow and rng.uniform() < 0.5 else MANY
    u, v = rng.normal(size=(2, many, dim))
    kind = rng.integers(0, 4, many)
    v[kind == 1] *= 10 ** rng.uniform(-6, 0, (np.count_nonzero(kind == 1), 1))
    u[kind == 2] = v[kind == 2] + 10 ** rng.uniform(-8, 0, (np.count_nonzero(kind == 2), 1)) * u[kind == 2]
    # Towards the optimum, where it is next to the sphere's surface: H along Q - M* or against it.
    away = sphere.center - M
    values, vectors = np.linalg.eigh(away) if away.ndim == 2 else (away, np.eye(dim))
    along = kind == 3
    u[along] = np.sqrt(max(values.max(), 0.0)) * vectors[:, values.argmax()]
    v[along] = np.sqrt(max(-values.min(), 0.0)) * vectors[:, values.argmin()]
    swap = along & (rng.uniform(size=many) < 0.5)
    u[swap], v[swap] = v[swap], u[swap].copy()
    norms = np.sqrt(np.maximum(_products(u, v, None, sphere.center.ndim == 1), 0.0))
    q, best = _products(u, v, sphere.center, False), _products(u, v, M, False)
    below, width, at_sphere = 1.0 - problem.loss.gamma, radius * norms, rng.uniform(size=many) < 0.5
    # Where the sphere is wide next to its centre's margin it decides nothing above a limit, but something below.
    above = (rng.uniform(size=many) < 0.5) & ~(at_sphere & (np.abs(q) <= width) & (below > 0))
    sign, limit = np.where(above, 1.0, -1.0), np.where(above, 1.0, below)
    # -H in place of H, where no length of it has a margin at the limit.
    lead = np.where(at_sphere, q - sign * width, best)
    turn = lead * limit < 0
    u[turn], v[turn] = v[turn], u[turn].copy()
    q, best = np.where(turn, -q, q), np.where(turn, -best, best)
    slack = 10 ** rng.uniform(-9, -2.01, many)
    of_sphere = q - sign * width * (1 + slack)  # just decided
    of_optimum = best - sign * slack * width * rng.choice([-1, 1], many)  # next to its limit at the optimum
    value = np.where(at_sphere, of_sphere, of_optimum)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = limit / value
    good = np.isfinite(scale) & (scale > 1e-30) & (scale < 1e30) & (norms > 0)
    root = np.sqrt(scale[good])[:, None]
    u, v = root * u[good], root * v[good]
    if not len(u) or rng.uniform() < 0.25:
        return u, v
    # What rounding may do to a triplet grows with the longest of all: mostly those that are far longer are left out.
    longest = np.maximum(np.abs(u).max(axis=1), np.abs(v).max(axis=1))
    some = longest <= 10 * np.median(longest)
    return u[some], v[some]


def _products(u, v, M, diagonal):
    """Return <H, M>, or |H|^2 where M is None."""
    if M is None:
        w, s = u - v, u + v
        if diagonal:
            return np.square(w * s).sum(axis=1)
        return 0.5 * (np.square(w).sum(1) * np.square(s).sum(1) + np.square((w * s).sum(1)))
    if M.ndim == 1:
        return (np.square(u) - np.square(v)) @ M
    return np.einsum("ti,ij,tj->t", u, M, u) - np.einsum("ti,ij,tj->t", v, M, v)


def _engine(problem, u, v, rng):
    """Return an engine over these triplets, three points each, somewhere."""
    count = len(u)
    x = rng.normal(size=u.shape) * np.abs(u).max(axis=1, keepdims=True) * rng.choice([0.0, 1.0])
    points = np.concatenate([x, x - v, x - u])
    numbers = np.arange(count)
    triplets = ts.given_triplets(np.stack([numbers, numbers + count, numbers + 2 * count], axis=1))
    return Engine(triplets.over(points), problem.loss, problem.cone, problem.threads)


def _margins(engine, M):
    """Margins of the engine's triplets, in extended precision."""
    i, j, k = engine.triplets.local_indices().T
    X, M = engine.triplets.points.astype(np.longdouble), M.astype(np.longdouble)
    return _products(X[i] - X[k], X[i] - X[j], M, False).astype(float)
