"""A set of triplets that lives in shards: distances are a recipe in M, sums and matrices come back.

Everything that needs pairs is asked of all shards at once, by one round of tasks, and added in the order of the shards
(`triscreen.distributed.sums`): the same bits whoever has done the work, and wherever. An evaluation is one round,
because sums and the matrix A come together; what stands for the weights of the pairs is that matrix itself.

What screening leaves is the same set after one more *step* (`triscreen.distributed.shards`): the decision is made where
the pairs are, and only spheres travel.
"""

from __future__ import annotations

import hashlib
import math
import pickle
from copy import copy

import numpy as np

from triscreen._utils.lazy import cached_property
from triscreen.distributed.shards import MISSING, Balls, Quadratic, perform
from triscreen.distributed.sums import added
from triscreen.errors import InputError
from triscreen.triplets._all_distances import grain_of
from triscreen.triplets.base import Reduction, Sums, TripletSet
from triscreen.triplets.never_listed import NeverListed


class Recipe:
    """What stands for the distances of all pairs under M: M itself, by a factor where one is known.

    Adds, subtracts and scales like the array that it stands for, because distances are linear in M.

    Parameters
    ----------
    M : array or None
        A core element, in the cone or not; None: see the factor.
    factor : array, optional
        F with M = F F'.
    cone
    square : float
        The largest |x|^2.
    """

    __array_ufunc__ = None  # numpy leaves arithmetic to this class
    # Of a margin, in units of rounding times |x|^2 |M|: a distance is at most 4 |x|^2 |M|, and either way to it, by the
    # factor or by M, loses no more than 4 times that.
    doubt = 32

    def __init__(self, M, factor, cone, square):
        self._M, self.factor, self._cone, self._square = M, factor, cone, square

    @property
    def M(self):
        """The element."""
        return self._cone.element(self.factor) if self._M is None else self._M

    @property
    def size(self):
        """|M| as the bound of rounding counts it: |F|^2 where a factor is known."""
        return float(np.linalg.norm(self.M)) if self.factor is None else float(np.vdot(self.factor, self.factor))

    @property
    def largest(self):
        """An upper bound of every distance's magnitude."""
        return 4 * self._square * self.size * (1 + 1e-9)

    def packed(self):
        """Return it as tasks take it: the same memory layout wherever it comes from, and so the same bits."""
        array = self.M if self.factor is None else self.factor
        return np.ascontiguousarray(array, dtype=np.float64), self.factor is not None

    def _of(self, M):
        return Recipe(M, None, self._cone, self._square)

    def __getitem__(self, pairs):
        return self

    def __add__(self, other):
        return self._of(self.M + other.M)

    def __sub__(self, other):
        return self._of(self.M - other.M)

    def __mul__(self, scale):
        return self._of(self.M * scale)

    __rmul__ = __mul__

    def __truediv__(self, scale):
        return self._of(self.M / scale)


class ShardedTriplets(NeverListed, TripletSet):
    """Triplets in shards; made by `triscreen.distributed.problem`.

    Parameters
    ----------
    pool
        Who works (`triscreen.distributed.pool`).
    plan : Plan
    facts : list of Facts
        One for each shard.
    cone
    dim : int
        Of the points inside.
    n_points : int
    """

    lists_pairs = False
    unlisted = "triplets in shards are not listed"
    advice = "take more workers, or fewer neighbours, points or features"

    def __init__(self, pool, plan, facts, cone, dim, n_points):
        self.pool, self.plan, self.cone, self._facts, self._dim = pool, plan, cone, facts, dim
        self.n_points, self._known_by = n_points, plan.read()["identity"]
        self._names, self._steps = (), ()
        self._count([one.numbers for one in facts])

    def _count(self, numbers):
        self._numbers = numbers
        self._pairs = sum(one.n_pairs for one in numbers)
        self.n_triplets = sum(one.n_triplets for one in numbers)
        self.total_weight = math.fsum(one.total_weight for one in numbers)

    @property
    def n_shards(self):
        """Into how many shards the triplets are cut."""
        return len(self._facts)

    @property
    def n_pairs(self):
        """Number of pairs; where shards share one, each counts it."""
        return self._pairs

    @property
    def dim(self):
        """Dimensions of the points."""
        return self._dim

    @cached_property
    def largest_square(self):
        """The largest |x|^2."""
        return max(one.largest_square for one in self._facts)

    def extent(self, threads):
        """Return the largest extent of a pair; see `TripletSet.extent`."""
        return max(one.extent for one in self._facts)

    def identity(self):
        """Return (kind, arrays); see `TripletSet.identity`."""
        return "sharded", (np.frombuffer(self._known_by.encode(), dtype=np.uint8),)

    def identity_1(self):
        """Refuse: format 1 of checkpoints knew no such sets."""
        raise InputError("checkpoint: format 1 knows no triplets in shards; use another folder")

    def fingerprint(self, scaled, version=2):
        """Return (kind, hash) of the set and its points: that of the plan, which has both."""
        return (None if version == 1 else "sharded"), self._known_by

    def check_points(self, n_points):
        """Refuse: the set has its points."""
        raise InputError("X: triplets in shards have their points; make the problem with ts.distributed.problem")

    def local_indices(self, start=0, stop=None):
        """Refuse: triplets have no numbers."""
        raise InputError(f"indices are numbers of triplets, and {self.unlisted}")

    # -- rounds of tasks ----------------------------------------------------------------------------------------------

    def _round(self, title, operation, *arguments):
        """Return what the shards answer, in their order; those of which nothing is left are not asked."""
        shards = [i for i, one in enumerate(self._numbers) if one.n_pairs]
        told = None

        def job(i):
            return self.plan, i, self._facts[i].known_by, self._names, told, operation, arguments

        answers = self.pool.map(title, perform, [job(i) for i in shards], places=shards)
        missing = [j for j, answer in enumerate(answers) if isinstance(answer, str) and answer == MISSING]
        if missing:  # these have come to another process: tell it how to get there
            told = self._steps
            again = [shards[j] for j in missing]
            for j, answer in zip(missing, self.pool.map(title, perform, map(job, again), places=again), strict=True):
                answers[j] = answer
        return answers

    def _matrix(self, parts):
        return added(parts) if parts else np.zeros(self.cone.shape(self.dim))

    # -- one evaluation -----------------------------------------------------------------------------------------------

    def distances_under(self, cone, factor, threads):
        """Return the distances of all pairs under F F', as a `Recipe`."""
        return Recipe(None, factor, self.cone, self.largest_square)

    def distances_of(self, M):
        """Return the distances of all pairs under M, in the cone or not, as a `Recipe`."""
        return Recipe(M, None, self.cone, self.largest_square)

    def changes(self, cone, V, threads):
        """Return what a step V does to the distances of all pairs, as a `Recipe`."""
        return self.distances_of(V)

    def sweep(self, dist, smoothing, threads):
        """Return (Sums, the matrix A, which stands for the pair weights): one round."""
        answers = self._round("evaluate", "evaluate", dist.packed(), smoothing)
        sums = [math.fsum(column) for column in zip(*(sums for sums, _ in answers), strict=True)] or [0.0] * 3
        return Sums(smoothing, *sums), self._matrix([matrix for _, matrix in answers])

    def hessian_weights(self, dist, change, smoothing, threads):
        """Return the Hessian times a step, which stands for its pair weights: one round."""
        step = np.ascontiguousarray(change.M, dtype=np.float64)
        return self._matrix(self._round("hessian", "hessian", dist.packed(), step, smoothing))

    def matrix(self, pair_weights, threads):
        """Return the matrix that stands for the weights."""
        return pair_weights

    def diagonal(self, pair_weights, threads):
        """Return the vector that stands for the weights."""
        return pair_weights

    def inner(self, pair_weights, change, cone):
        """Return the sum over pairs of weight times change of distance: an inner product of matrices."""
        return float(np.vdot(pair_weights, change.M))

    def largest_margin(self, dist):
        """Return the largest margin over the triplets."""
        return max(self._round("margins", "largest_margin", dist.packed()))

    def magnitude(self, pair_weights, threads):
        """Return sum over pairs of |c_p| |delta_p|^2, or more: for weights of alphas up to 1."""
        return math.fsum(one.magnitude for one in self._facts)

    def typical_square(self, threads):
        """Return about the mean of |delta|^4 over pairs."""
        return math.fsum(one.typical_square * one.n_pairs for one in self._numbers) / max(1, self.n_pairs)

    # -- what may go --------------------------------------------------------------------------------------------------

    def reduce(self, ends, radii, error, offset, low, both, smoothing, threads, most=1.0):
        """Let go what is decided in two balls at once; see `NeverListed.reduce`."""
        second = None if ends[1] is ends[0] else ends[1].packed()
        radii = tuple(float(radius) for radius in radii)
        step = Balls((ends[0].packed(), second), radii, float(error), float(offset), low, both, smoothing)
        less, answers = self._narrowed("screen", step)
        counts = tuple(sum(column) for column in zip(*(counts for _, counts, *_ in answers), strict=True)) or (0, 0)
        if less.n_pairs > most * self.n_pairs:
            return Reduction(counts)
        matrix = self._matrix([matrix for _, _, matrix, _, _ in answers])
        linear, summed = (math.fsum(answer[place] for answer in answers) for place in (3, 4))
        return Reduction(counts, less, slice(None), matrix, linear, summed)

    def quadratic_part(self, dist, smoothing, threads):
        """Return (a set with all quadratic triplets, its pairs, the number of these triplets)."""
        less, answers = self._narrowed("curvature", Quadratic(dist.packed(), smoothing))
        return less, slice(None), sum(counts[0] for _, counts, *_ in answers)

    def _narrowed(self, title, step):
        """Return (this set after one more step, what the shards answer)."""
        before, said = self._names[-1] if self._names else "", pickle.dumps(step, protocol=4)
        name = hashlib.blake2b(before.encode() + said, digest_size=16).hexdigest()
        less, step = copy(self), pickle.loads(said)  # of what its name says, whatever becomes of the arrays here
        less._names, less._steps = (*self._names, name), (*self._steps, step)
        answers = self._round(title, "narrow", less._names, step)
        left = iter(answers)
        less._count([next(left)[0] if one.n_pairs else one for one in self._numbers])
        return less, answers

    def quantum(self, largest, gamma):
        """Bound on what rounding to whole grains does to a margin, where shards do that."""
        count = max(one.grains for one in self._facts)
        return 2 * grain_of(largest, max(1.0, gamma), count)[0] if count else 0.0

    def most_triplets_at_a_pair(self):
        """Return an upper bound of the number of triplets that one pair belongs to."""
        return max(one.triplets_at_a_pair for one in self._facts)

    def most_pairs_at_a_point(self):
        """Return an upper bound of the number of pairs that one point belongs to, in a shard; and room for shards."""
        return max(one.pairs_at_a_point for one in self._facts) + 4  # their sum is compensated

    def bytes_needed(self, dim, n_jobs=1, rows=1):
        """Return the bytes that this process takes: none for pairs, and what shards send of matrices."""
        return 16 * self.n_shards * dim * dim

    def __repr__(self):
        return f"<ShardedTriplets: {self.n_triplets:,} triplets over {self.n_pairs:,} pairs in {self.n_shards} shards>"
