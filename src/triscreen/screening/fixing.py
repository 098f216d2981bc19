"""The one place that makes an engine with fixed triplets.

A triplet is *fixed* once it is proven to keep its zone. One of zero loss is simply gone. A linear one (alpha = 1)
leaves w_t H_t in the constant matrix of what is left, `Engine.linear_matrix`, and w_t in its constant weight,
`Engine.linear_weight`. That matrix is a computed one, and all bounds of the smaller problem (gap, A, radii) include how
far it may be from the exact one, `Rounding.linear_error`. The three belong together, so nobody else sets them.

There are two ways to the matrix:

* by difference: A over all triplets minus what the remaining ones contribute to it. No work on the pairs that leave,
  but those that leave must have the alphas of their zones in that A. Off by the error of A and of the part subtracted.
* by sum: of what is fixed, added to what was fixed before. Off by the errors of both, and by that of the addition.
"""

from __future__ import annotations

import numpy as np

from triscreen.problem.rounding import U


def fix_by_difference(less, swept, A, error, weight):
    """Return an engine with all fixed that is in A, but not in it.

    Parameters
    ----------
    less : Engine
        Over the triplets that remain.
    swept : tuple
        Its sums and pair weights, at the same distances and smoothing as A.
    A, error : array, float
        sum_t w_t alpha_t H_t over all triplets, and a bound on its error.
    weight : float
        Of the triplets that are fixed in the linear part.
    """
    sums, pair_weights = swept
    matrix = A - less.assemble(pair_weights)
    return less.with_fixed(matrix, weight, error + less.rounding.sum_of_h(sums.alpha))


def fix_by_sum(engine, less, left):
    """Return what remains of an engine, ``less``, with the triplets fixed that went in zone L (a `Departure`)."""
    if not left.linear:
        return less  # as fixed as before
    matrix, size = _added(engine, left.weigh())
    error = engine.rounding.linear_error + (engine.rounding.sum_of_h(left.linear) + size)
    return less.with_fixed(matrix, engine.linear_weight + left.linear, error)


def fix_reduction(engine, found):
    """Return the engine that a reduction leaves (`triscreen.triplets.ordered.Reduction`), its weights summed up."""
    matrix, size = _added(engine, found.weights)
    error = engine.rounding.linear_error + engine.rounding.sum_of_h(found.summed) + size
    less = engine.restrict(found.triplets, found.pairs)
    return less.with_fixed(matrix, engine.linear_weight + found.linear_weight, error)


def _added(engine, pair_weights):
    """Return (the constant matrix with these pairs added to it, the error of that addition)."""
    added = engine.assemble(pair_weights)
    matrix = added if engine.linear_matrix is None else engine.linear_matrix + added
    return matrix, U * float(np.linalg.norm(matrix))
