"""A prior: the metric N that the regulariser pulls to, (lam/2) |M - N|^2 in place of (lam/2) |M|^2.

Put B = N + A/lam wherever A/lam stands without one, computed as lam B = A + lam N (the *pull*: without a prior it is A,
to the bit). Then M(a) = [B]_+, the gradient is lam M - lam B, and every term of the gap is >= 0:

    D(a) = sum_t w_t (a_t - (g/2) a_t^2) - (lam/2) <[B]_+ - N, [B]_+ + N>
    gap  = sum_t w_t [l(m_t) - a_t (1 - m_t) + (g/2) a_t^2] + lam <-[B]_-, M> + (lam/2) |M - [B]_+|^2

**Where a path begins.** With alphas from the margins of N and e their slack, |M* - N| <= (|A| + sqrt(|A|^2 + 4 lam e))
/ (2 lam); so at lam = |A|/r + e/r^2 the optimum lies within r of N, and `lambda_max` takes r = |N|/100.

**Relative to what.** Where N satisfies every triplet the objective may be zero. A gap is then relative to no less than
1e-3 times the loss of M = 0 (`Prior.floor`).

**The span of the data.** M* equals N outside the span U of the differences if N has no cross block between U and its
complement (every multiple of the identity, every function of a scatter matrix of the points). Then the problem in U
with U'NU is exact, and M = U (core) U' + (N outside). Otherwise dimensions are not reduced.

**Rounding.** The core of N is off by at most ``error``, so the pull by lam times that, beside the error of A.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from triscreen.errors import InputError
from triscreen.problem.rounding import U, trace
from triscreen.problem.units import METRIC

# Of |N|: a cross block of this size is what rounding leaves of none.
_CROSS = 1e-12
# A path begins where the optimum is proven to lie this close to the prior, of |N|.
CLOSE = 0.01
# A gap is relative to no less than this share of the loss of M = 0.
_FLOOR = 1e-3
# The square of a metric must be a number.
_LARGEST = 1e150
# Squared distances under a prior, which are compared with 1: beyond these, lambda_max is no number to work with.
_SHORTEST, _LONGEST = 1e-30, 1e30


@dataclass(frozen=True, eq=False)
class Prior:
    """A prior as it is inside.

    Attributes
    ----------
    core : array
        N as a core element of the cone.
    factor : array
        F with F F' = core.
    outside : array or None
        N outside the span of the data, in the coordinates and units of the user; None: the span is all there is.
    matrix : array
        N as it was given.
    error : float
        Bound on |core - its exact value|, on |core - F F'|, and on what crosses between the span and the rest.
    floor : float
        What a gap is relative to at least.
    """

    core: np.ndarray = field(repr=False)
    factor: np.ndarray = field(repr=False)
    outside: np.ndarray | None = field(repr=False)
    matrix: np.ndarray = field(repr=False)
    error: float
    floor: float


def check_prior(prior, cone, X):
    """Return N as an array, or None for none (zero is none), or refuse what is no prior for points like these."""
    if prior is None:
        return None
    dim = X.shape[1]
    if isinstance(prior, str):
        if prior != "identity":
            raise InputError(f"prior={prior!r}: prior must be None, 'identity' or an array")
        N = np.ones(dim) if cone.name == "diagonal" else np.eye(dim)
    else:
        N = check_metric(prior, cone, dim)
    with np.errstate(over="ignore"):
        size = float((X.max(axis=0) - X.min(axis=0)).max())
    if N is not None and 0 < size < np.inf:
        _check_size(N, _SHORTEST / size / size, _LONGEST / size / size, f"for points that are {size:.3g} apart ")
    return N


def check_metric(N, cone, dim):
    """Return an array as an element of the cone, or None for zero, or refuse what is none; its scale may be any."""
    N = cone.check(N, dim, "prior")
    if not N.any():
        return None
    _check_size(N, 1 / _LARGEST, _LARGEST)
    cone.check_positive(N, "prior")
    return N


def _check_size(N, low, high, why=""):
    largest = float(np.abs(N).max())
    if not low <= largest <= high:
        raise InputError(
            f"prior has a largest magnitude of {largest:.3g}: {why}it must lie between {low:.3g} and {high:.3g}"
        )


def is_apart(N, basis):
    """Has N no cross block between the span of these columns and the rest?"""
    image = N @ basis
    return np.linalg.norm(image - basis @ (basis.T @ image)) <= _CROSS * np.linalg.norm(N)


def make_prior(N, cone, basis, units, zero_loss):
    """Return the `Prior` of a matrix of the user's, for a problem whose M = 0 has this loss."""
    inside = units.into(N, METRIC)
    core, outside, crossing = inside, None, 0.0
    if basis is not None:
        core = basis.T @ inside @ basis
        core = 0.5 * (core + core.T)
        rest = inside - basis @ core @ basis.T
        across = basis.T @ rest
        crossing = 2 * float(np.linalg.norm(across))
        rest = rest - basis @ across
        outside = units.out(0.5 * (rest + rest.T) - 0.5 * ((rest @ basis) @ basis.T + basis @ (rest @ basis).T), METRIC)
    size, projection = float(np.linalg.norm(inside)), cone.project(core)
    # What is accepted as positive semi-definite may have eigenvalues below zero by more than rounding leaves here.
    negative = float(np.linalg.norm(projection.negative[0]))
    error = crossing + negative + (16 * (len(N) + 4) * size + 32 * len(core) * trace(core)) * U
    return Prior(core, projection.factor, outside, N, error, _FLOOR * zero_loss)
