"""What every set of triplets can do: it knows its pairs, and the way from pair distances to pair weights.

One evaluation of a problem is three steps, and only the middle one sees triplets, in O(1) each:

    distances_under(F)  ->  d_p = |F'(x_a - x_b)|^2 for every pair p = (a, b)
    sweep(d, s)         ->  loss and dual sums over the triplets, and a weight c_p for every pair
    matrix(c)           ->  sum_p c_p (x_a - x_b)(x_a - x_b)'       (or its diagonal)

A set is made from indices or labels, and `over` gives it its points: from then on whoever wants to know something of
points and pairs asks the set, so that these may be anywhere.

Solvers treat d and c as opaque, mixing d linearly at most, so a set that never lists its pairs can hand out
something else.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass

import numpy as np

from triscreen._utils.archive import fingerprint
from triscreen._utils.lazy import cached_property

# Bytes, measured where most is alive: an evaluation takes 16 a pair (distance and weight); a path keeps two references,
# the working set, the best and the last evaluation. Screening keeps a norm and a zone of each triplet.
_PAIR, _TRIPLET = 180, 32
ONE_BY_ONE = 64  # more for a triplet, where a solver or a rule has numbers for each of them


@dataclass(frozen=True)
class Sums:
    """Sums over triplets for alpha = clip((1 - margin) / smoothing, 0, 1).

    Attributes
    ----------
    smoothing : float
    loss : float
        Of the smoothed hinge with gamma = smoothing.
    alpha : float
        Sum of w alpha.
    spread : float
        Sum of w alpha (1 - alpha): what the kink of the hinge is worth.
    """

    smoothing: float
    loss: float
    alpha: float
    spread: float


@dataclass(frozen=True, eq=False)
class Departure:
    """What is left of a set when its decided triplets go; at least the undecided ones.

    Attributes
    ----------
    triplets, pairs : TripletSet, array
        What is left, and the numbers of its pairs before.
    weigh : callable
        Returns for every pair of the set before: the weight of the triplets that go in zone L with this as their
        negative pair, minus the same as their positive one. Seldom asked for.
    linear : float
        The weight of the triplets that go in zone L.
    strays : bool
        Does one go whose alpha at the distances given is not that of its zone?
    numbers : callable
        Returns the numbers, before, of the triplets that are left.
    kept : callable
        ``kept(zones, norms)`` returns those of the triplets that are left.
    """

    triplets: TripletSet
    pairs: np.ndarray
    weigh: object
    linear: float
    strays: bool
    numbers: object
    kept: object


@dataclass(frozen=True, eq=False)
class Reduction:
    """What a set leaves of itself when its decided triplets go.

    Attributes
    ----------
    counts : tuple of int
        Triplets that are proven to be linear, and to have zero loss.
    triplets : TripletSet or None
        All undecided ones, and those that share their pairs; None: too little would go.
    pairs :
        Its pairs in the set it comes from.
    weights :
        Pair weights of the triplets that are gone, each with the alpha of its zone.
    linear_weight : float
        Weight of those that are linear.
    summed : float
        Sum of the weights times alpha that ``weights`` are made of: their rounding follows it.
    """

    counts: tuple
    triplets: object = None
    pairs: object = None
    weights: object = None
    linear_weight: float = 0.0
    summed: float = 0.0


class TripletSet:
    """A set of triplets, as `knn_triplets`, `all_triplets` and `given_triplets` make it; made by these.

    What is asked of a new kind of set, which a subclass gives, and who asks for it:

    * everyone: ``identity``, ``identity_1``, ``check_points``, ``local_indices``, ``sweep``, ``largest_margin``,
      ``most_triplets_at_a_pair``;
    * the engine, of pairs and points: ``n_pairs``, ``distances_under``, ``changes``, ``inner``, ``matrix``,
      ``diagonal``, ``magnitude``, ``typical_square``, ``most_pairs_at_a_point`` (over listed pairs all of these are in
      `triscreen.triplets.pairs`; a set without, whose ``lists_pairs`` is False, has its own kind of distances and pair
      weights, and gives ``distances_of`` too);
    * Newton: ``hessian_weights``, and ``quadratic`` with ``restrict``, or ``quadratic_part`` as a whole;
    * where triplets have numbers (``lists_triplets``): ``sweep_alpha``, ``cross_slack``, ``corner_change``, ``ascend``
      for alphas one by one; ``pair_numbers``, ``decide``, ``let_go`` for screening; ``undecided_in`` for the working
      set;
    * where they have none (`NeverListed`): ``reduce`` and ``quantum``.

    One whose points are elsewhere answers ``dim``, ``largest_square`` and ``fingerprint`` itself. In every method
    ``dist`` are the distances of the pairs, as ``distances_under`` makes them, and ``threads`` the `Threads` that share
    the work.

    Attributes
    ----------
    n_points, n_triplets, n_pairs : int
        How many there are.
    point_ids : array or None
        The rows of X that the triplets speak of, n_points of them; None: all. Pairs count within these.
    points : array, shape (n_points, dim), or None
        These rows, as the problem has them inside; None: nobody has said yet (`over`).
    total_weight : float
        Sum of the triplets' weights.

    References
    ----------
    Yoshida, Takeuchi, Karasuyama, KDD 2018, arXiv:1802.03923, section 2; pairs in place of triplets are ours
    (docs/engine.md).

    Examples
    --------
    >>> import triscreen as ts
    >>> triplets = ts.knn_triplets([[0.0], [1.0], [3.0], [4.5]], [0, 0, 1, 1], k=1)
    >>> triplets.n_triplets, triplets.n_pairs
    (4, 8)
    >>> triplets.indices().tolist()  # rows (i, j, l): i should be closer to j than to l
    [[0, 1, 2], [1, 0, 2], [2, 3, 1], [3, 2, 1]]
    """

    n_points: int
    n_triplets: int
    n_pairs: int
    total_weight: float
    lists_triplets = True  # triplets have numbers: rules and solvers may look at them one by one
    advice = "raise the budget, or take fewer neighbours, points or features"  # where memory is short
    lists_pairs = True  # pairs are listed: distances and weights are arrays
    weights = None  # 1 each
    point_ids: np.ndarray | None = None  # all
    points: np.ndarray | None = None

    def over(self, points):
        """Return this set with its points: one for each of ``point_ids``."""
        made = copy(self)
        made.points = points
        for known in (
            "largest_square",
            "_lengths",
            "_halves",
            "_matrix_bounds",
            "_end_bounds",
            "_once",
        ):  # of other points
            vars(made).pop(known, None)
        return made

    def _share_points(self, other, rows):
        """Let another set, which counts anew some of the points here, have these rows of them; returns it."""
        other.point_ids = rows if self.point_ids is None else self.point_ids[rows]
        other.points = None if self.points is None else self.points[rows]
        return other

    @property
    def dim(self):
        """Dimensions of the points."""
        return self.points.shape[1]

    @cached_property
    def largest_square(self):
        """The largest |x|^2."""
        return float(np.einsum("ij,ij->i", self.points, self.points).max(initial=0.0))

    def reach(self):
        """Return |x_a| + |x_b| of every pair; None where pairs are not listed."""
        return None

    def extent(self, threads):
        """Return the largest extent of a pair, which the rounding of `matrix` follows: |x_a - x_b| (|x_a| + |x_b|)."""
        return 4 * self.largest_square

    @property
    def nbytes(self):
        """Bytes that the set itself holds, without its points and what it keeps of pairs for screening."""
        own = (value for name, value in vars(self).items() if name not in ("points", "_lengths"))
        return sum(value.nbytes for value in own if isinstance(value, np.ndarray))

    def identity(self):
        """Return (kind, arrays): what makes this set this one, whatever its attributes are called.

        Checkpoints depend on it: a set that is the same gives the same kind and arrays, in the same order and of the
        same types, in every later version.
        """
        raise NotImplementedError

    def identity_1(self):
        """Return the arrays that checkpoints of format 1 knew the set by, in their order."""
        raise NotImplementedError

    def fingerprint(self, scaled, version=2):
        """Return (kind, hash) of the set and its points; ``scaled(points)``: these in the scale of the user.

        Of version 1 (of checkpoints) the kind is None.
        """
        kind, arrays = (None, self.identity_1()) if version == 1 else self.identity()
        return kind, fingerprint(scaled(self.points), *arrays)

    def same_as(self, other):
        """Are these the same triplets?"""
        mine, others = self.identity(), other.identity()
        return mine[0] == others[0] and all(map(np.array_equal, mine[1], others[1]))

    def check_points(self, n_points):
        """Refuse points that this set was not made for."""
        raise NotImplementedError

    def indices(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return the triplets start <= t < stop as rows (i, j, l) of X, in the order in which alpha counts them.

        Parameters
        ----------
        start, stop : int
            The first, and the one after the last; by default all. (`all_triplets` counts through too many to list.)
        """
        local = self.local_indices(start, stop)
        return local if self.point_ids is None else self.point_ids[local]

    def weights_of(self, start=0, stop=None):
        """Return the weights of the triplets start <= t < stop; None: 1 each."""
        return None if self.weights is None else self.weights[start:stop]

    def local_indices(self, start=0, stop=None):
        """Like `indices`, counting only the points that the set speaks of."""
        raise NotImplementedError

    def distances_under(self, cone, factor, threads):
        """Return the distances of every pair under F F'."""
        raise NotImplementedError

    def changes(self, cone, V, threads):
        """Return what a step V does to the distance of every pair: (x_a - x_b)'V (x_a - x_b)."""
        raise NotImplementedError

    def inner(self, pair_weights, change, cone):
        """Return the sum over pairs of weight times change of distance."""
        raise NotImplementedError

    def matrix(self, pair_weights, threads):
        """Return the sum over pairs of c_p (x_a - x_b)(x_a - x_b)'."""
        raise NotImplementedError

    def diagonal(self, pair_weights, threads):
        """Return the diagonal of `matrix`."""
        raise NotImplementedError

    def magnitude(self, pair_weights, threads):
        """Return the sum over pairs of |c_p| |delta_p|^2, or more."""
        raise NotImplementedError

    def typical_square(self, threads):
        """Return about the mean of |delta|^4 over pairs."""
        raise NotImplementedError

    def most_pairs_at_a_point(self):
        """Return an upper bound of the number of pairs that one point belongs to."""
        raise NotImplementedError

    def quadratic_part(self, dist, smoothing, threads):
        """Return (a set with all quadratic triplets, its pairs, the number of these triplets)."""
        raise NotImplementedError

    def sweep(self, dist, smoothing, threads):
        """Return (Sums, pair weights) for alpha = clip((1 - margin) / smoothing, 0, 1)."""
        raise NotImplementedError

    def sweep_alpha(self, dist, alpha, gamma, threads):
        """Return ((loss, dual sum, slack), pair weights) for alphas given one by one; see `triscreen.problem`."""
        raise NotImplementedError

    def ascend(self, dist, alpha, previous, gamma, curvature, momentum, threads):
        """Take a step of dual ascent from alphas given one by one.

        Parameters
        ----------
        dist : array (n_pairs,)
            Distances at M(alpha).
        alpha, previous : arrays (n_triplets,)
            Where the step begins, and the goal of the step before.
        gamma : float
            Of the loss.
        curvature : float
            The step is 1 / (gamma + curvature).
        momentum : float
        threads : Threads

        Returns
        -------
        sums : list of five float
            Those of `triscreen._kernels.listed`.
        pair_weights : array (n_pairs,)
            Of ``following``.
        goal, following : arrays (n_triplets,)
            The goal of a plain step, and where the momentum, from ``previous`` through this goal, leads to; both
            clipped to [0, 1].
        """
        raise NotImplementedError

    def largest_margin(self, dist):
        """Return the largest margin over the triplets."""
        raise NotImplementedError

    def pair_numbers(self, keep):
        """Return (positive, negative) pair numbers of the triplets that the mask keeps."""
        raise NotImplementedError

    def decide(self, values, errors, norms, radius, zones, gamma, threads, whole=None):
        """Apply the sphere rule to every triplet without a zone.

        A triplet goes to R if its margin stays above 1 on the whole sphere, to L if it stays below 1 - gamma.

        Parameters
        ----------
        values, errors : arrays (n_pairs,)
            <delta delta', Q> of the pairs at the centre Q, and how wrong they are at most.
        norms : array (n_triplets,)
            Upper bounds of |H_t|.
        radius : float
        zones : int8 array (n_triplets,)
            Written in place.
        gamma : float
            Of the loss.
        threads : Threads
        whole : int8 array (n_pairs,), optional
            Written: the zone of all triplets of a positive pair where these were decided together.

        Returns
        -------
        array of two int
            How many went to L, and to R.
        """
        raise NotImplementedError

    def undecided_in(self, ends, squares, radius, error, low, both, zones, threads):
        """Select the triplets that are not proven to keep their zone for every M of a tube.

        Proven is a margin above 1 on the whole tube or, if ``both``, below ``low``; and a triplet with zones[t] > 0.

        Parameters
        ----------
        ends : pair of arrays (n_pairs,)
            Distances at the two ends of the tube.
        squares : array (n_pairs,)
            |delta|^4 of the pairs.
        radius : float
            Of the tube.
        error : float
            Bound of the error of a margin.
        low : float
        both : bool
        zones : int8 array (n_triplets,) or None
            None: there are none.
        threads : Threads

        Returns
        -------
        bool array
            For `restrict`: a mask of triplets, or of pairs in sets that restrict themselves to pairs.
        """
        raise NotImplementedError

    def quadratic(self, dist, smoothing):
        """Select the triplets in the quadratic part of the loss; returns (selection for `restrict`, their number)."""
        raise NotImplementedError

    def hessian_weights(self, dist, change, smoothing, threads):
        """Return the pair weights of the loss's Hessian at dist times a step that changes the distances so."""
        raise NotImplementedError

    def restrict(self, selection):
        """Return (a set with at least the selected triplets, its pairs), over the pairs and points that these need."""
        raise NotImplementedError

    def let_go(self, zones, dist, smoothing, whole=None, threads=None):
        """Let decided triplets go, and the pairs and points that only they need.

        Parameters
        ----------
        zones : int8 array (n_triplets,)
        dist : array (n_pairs,)
            Do those that go have the alphas of their zones there, with this smoothing?
        smoothing : float
        whole : int8 array (n_pairs,), optional
            What `decide` wrote, if nobody has taken a zone back since.
        threads : Threads, optional

        Returns
        -------
        Departure
        """
        raise NotImplementedError

    def corner_change(self, dist, other, gamma, threads):
        """Return the sum of w (a - b)^2 over the triplets with 0 < a < 1 and 0 < b < 1.

        a and b are (1 - margin) / gamma at the margins of ``dist`` and ``other``.
        """
        raise NotImplementedError

    def cross_slack(self, dist, smoothing, other, gamma, threads):
        """Return the slack at one metric of the alphas of another: the sum of w [l(m) - a (1 - m) + (g/2) a^2].

        Parameters
        ----------
        dist : array (n_pairs,)
            Its margins give a = clip((1 - margin) / smoothing, 0, 1).
        smoothing : float
        other : array (n_pairs,)
            Its margins are m.
        gamma : float
            g, of the loss l.
        threads : Threads

        Returns
        -------
        float
        """
        raise NotImplementedError

    def most_triplets_at_a_pair(self):
        """Return an upper bound of the number of triplets that one pair belongs to."""
        raise NotImplementedError

    def norms(self, cone, start, stop, out):
        """Write |H_t|_F (diagonal cone: |h_t|_2) of the triplets start <= t < stop."""
        cone.norms(self.points, self.local_indices(start, stop), out)

    def corners(self, V=None):
        """Return a function: from numbers of triplets to their points, (m, 3, dim) with rows x_i, x_j, x_l (or V'x)."""
        Y, indices = self.points if V is None else self.points @ V, self.local_indices()
        return lambda numbers: Y[indices[numbers]]

    def quantum(self, largest, gamma):
        """Bound on what else, beside rounding of distances, may be wrong with a margin."""
        return 0.0

    def within(self, budget, dim, n_jobs):
        """Return this set, made to fit a memory budget for points of dim dimensions where it can choose."""
        return self

    def sample(self, n_anchors):
        """Return a smaller set that shows what an evaluation takes; this one where that is quick enough."""
        return self

    def bytes_needed(self, dim, n_jobs=1, rows=1):
        """Return the bytes that a solve or a path takes at most, beside the points."""
        return self.nbytes + _PAIR * self.n_pairs + _TRIPLET * self.n_triplets

    def __len__(self):
        return self.n_triplets

    def __repr__(self):
        return f"<{type(self).__name__}: {self.n_triplets:,} triplets over {self.n_pairs:,} pairs>"


def add_up(parts):
    """Add the chunks' totals and errors, column by column, exactly rounded."""
    if len(parts) == 1:
        return (parts[0, 0] + parts[0, 1]).tolist()
    return [math.fsum(column) for column in parts.reshape(-1, parts.shape[-1]).T]
