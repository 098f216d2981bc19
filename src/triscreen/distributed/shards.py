"""What a worker does: sums over the triplets of one shard, and what is left of it when decided triplets go.

Nothing here is kept for good. A worker remembers the shards that it has made (`_states`), and what is left of them
after some *steps*, under a name that says both; whoever does not have it makes it again, from the plan and the steps,
to the same bits.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np

from triscreen._utils.threads import Threads, single_threaded_blas
from triscreen.distributed.plan import forget_points, load
from triscreen.errors import InputError
from triscreen.problem.cones import make_cone
from triscreen.triplets.never_listed import NeverListed

MAKING = "load"  # what the dashboard calls it where shards are made first
MISSING = "missing"  # what a worker answers that was not told the steps, and needs them
# What is left of a shard is kept for so many steps at a time, as long as all that takes no more than so many times the
# memory of the shard itself; the last two always, since solvers work on a part beside what it is a part of.
_DERIVED, _ROOM = 4, 2.0
_PAIR = 24  # bytes of a listed pair: two points and a distance, and some room for more
POINT = 4  # numbers of a point beside its coordinates: which pairs are its own, and who it is
_IDLE = 1800.0  # seconds after which a shard that nobody has asked for goes, when another one comes


@dataclass(frozen=True)
class Numbers:
    """How much there is in a shard, or in what is left of it; typical_square: the mean of |delta|^4 over pairs."""

    n_pairs: int
    n_triplets: int
    total_weight: float
    typical_square: float


@dataclass(frozen=True)
class Facts:
    """What the driver has to know of a shard: see the methods of `TripletSet` of these names.

    grains: over how many numbers sums are whole multiples of a grain (`OrderedTriplets.quantum`); 0: of none.
    """

    numbers: Numbers
    n_points: int
    largest_square: float
    extent: float
    pairs_at_a_point: int
    triplets_at_a_pair: int
    magnitude: float
    grains: int
    known_by: str


@dataclass(frozen=True, eq=False)
class Balls:
    """A step: what is decided in two balls at once goes; the arguments of `NeverListed.reduce`.

    Centres are metrics, as tasks take them: (array, is it a factor?).
    """

    centers: tuple = field(repr=False)
    radii: tuple
    error: float
    offset: float
    low: float
    both: bool
    smoothing: float

    def apply(self, triplets, cone, threads):
        """Return (what is left, counts, the matrix of what goes, its linear weight, its sum of weights)."""
        first = distances(triplets, cone, self.centers[0], threads)
        second = first if self.centers[1] is None else distances(triplets, cone, self.centers[1], threads)
        limits = (self.error, self.offset, self.low, self.both, self.smoothing, threads)
        if isinstance(triplets, NeverListed):
            found = triplets.reduce((first, second), self.radii, *limits)
            if found.triplets is None:
                nothing = np.zeros(cone.shape(triplets.dim))
                return triplets, found.counts, nothing, 0.0, 0.0
            matrix = cone.assemble(triplets, found.weights, threads)
            return found.triplets, found.counts, matrix, found.linear_weight, found.summed
        return self._of_listed(triplets, cone, (first, second), threads)

    def _of_listed(self, triplets, cone, ends, threads):
        squares = np.square(triplets.euclid(threads) * (1 + 1e-12) + self.offset)
        limits = (max(self.radii), self.error, self.low, self.both, None, threads)
        selection = triplets.undecided_in(ends, squares, *limits)
        less, pairs = triplets.restrict(selection)
        # What goes is all that there is, less what stays.
        sums, weights = triplets.sweep(ends[0], self.smoothing, threads)
        staying, part = less.sweep(ends[0][pairs], self.smoothing, threads)
        weights[pairs] -= part
        linear, gone = sums.alpha - staying.alpha, triplets.n_triplets - less.n_triplets
        n_linear = round(linear)
        if triplets.weights is not None:  # a list, of which triplets are chosen
            positive, negative = triplets.pair_numbers(~selection)
            n_linear = int(np.count_nonzero(ends[0][negative] - ends[0][positive] < 1.0))
        matrix = cone.assemble(triplets, weights, threads)
        return less, (n_linear, gone - n_linear), matrix, linear, sums.alpha + staying.alpha


@dataclass(frozen=True, eq=False)
class Quadratic:
    """A step: only the triplets in the quadratic part of the loss stay, and what shares their pairs."""

    center: tuple = field(repr=False)
    smoothing: float

    def apply(self, triplets, cone, threads):
        """Return (what is left, (how many are quadratic,), nothing for the rest)."""
        dist = distances(triplets, cone, self.center, threads)
        less, _, count = triplets.quadratic_part(dist, self.smoothing, threads)
        return less, (int(count),), None, 0.0, 0.0


def distances(triplets, cone, metric, threads):
    """Return the distances of the pairs under a metric, or changes under a step: (array, is it a factor?)."""
    array, is_factor = metric
    if is_factor:
        return triplets.distances_under(cone, array, threads)
    if triplets.lists_pairs:
        return triplets.changes(cone, array, threads)
    return triplets.distances_of(array)


class State:
    """A shard, or what is left of it, as a worker has it."""

    def __init__(self, triplets, cone, known_by=""):
        self.triplets, self.cone, self.known_by = triplets, cone, known_by
        self.used = time.monotonic()
        self._last = None, None  # a metric, and the distances under it

    def distances(self, metric, threads):
        """Return the distances under a metric; those of the last one are kept where they are listed."""
        known, dist = self._last
        if known is not None and known[1] == metric[1] and np.array_equal(known[0], metric[0]):
            return dist
        dist = distances(self.triplets, self.cone, metric, threads)
        if self.triplets.lists_pairs:  # a copy: in this process the array is whose it was, who may change it
            self._last = (metric[0].copy(), metric[1]), dist
        return dist

    @property
    def size(self):
        """About how many bytes it takes, or fewer where it shares its points."""
        triplets = self.triplets
        pairs = _PAIR * triplets.n_pairs if triplets.lists_pairs else 0
        return pairs + 8 * (triplets.dim + POINT) * triplets.n_points

    # -- what tasks ask for -------------------------------------------------------------------------------------------

    def evaluate(self, threads, metric, smoothing):
        """Return ((loss, alpha, spread), the matrix A): one evaluation."""
        sums, weights = self.triplets.sweep(self.distances(metric, threads), smoothing, threads)
        return (sums.loss, sums.alpha, sums.spread), self.cone.assemble(self.triplets, weights, threads)

    def hessian(self, threads, metric, step, smoothing):
        """Return the Hessian of the loss at a metric, times a step."""
        change = self.triplets.changes(self.cone, step, threads)
        weights = self.triplets.hessian_weights(self.distances(metric, threads), change, smoothing, threads)
        return self.cone.assemble(self.triplets, weights, threads)

    def largest_margin(self, threads, metric):
        """Return the largest margin."""
        return self.triplets.largest_margin(distances(self.triplets, self.cone, metric, threads))

    def numbers(self, threads):
        """Return the `Numbers`."""
        triplets = self.triplets
        typical = triplets.typical_square(threads) if triplets.n_pairs else 0.0
        return Numbers(triplets.n_pairs, triplets.n_triplets, triplets.total_weight, typical)

    def facts(self, threads):
        """Return the `Facts`."""
        triplets, square = self.triplets, self.triplets.largest_square
        nothing = np.zeros(self.cone.shape(triplets.dim))
        _, weights = triplets.sweep(distances(triplets, self.cone, (nothing, False), threads), 1.0, threads)
        return Facts(
            self.numbers(threads),
            n_points=triplets.n_points,
            largest_square=square,
            extent=triplets.extent(threads) if triplets.lists_pairs else 12 * square,  # also of lists of what is left
            pairs_at_a_point=triplets.most_pairs_at_a_point(),
            triplets_at_a_pair=triplets.most_triplets_at_a_pair(),
            magnitude=triplets.magnitude(weights, threads),
            grains=triplets.n_points if isinstance(triplets, NeverListed) else 0,
            known_by=self.known_by,
        )


# -- what a process remembers ------------------------------------------------------------------------------------------

_states = OrderedDict()  # (plan, shard, name of the steps) -> State; those used last are at the end
_lock = threading.RLock()
_making = {}  # (plan, shard) -> lock: two tasks of one shard do not make it twice


def forget(plan):
    """Drop all that is remembered of a plan; returns how much that was."""
    return keep_only(plan, ())


def keep_only(plan, shards):
    """Drop what is remembered of a plan's other shards; returns how much that was."""
    with _lock:
        # Of tuples: this may be called by a collection of garbage in the middle of anything, and change what is walked.
        gone = [key for key in tuple(_states) if key[0] == plan and key[1] not in shards]
        for key in gone:
            _states.pop(key, None)
        for key in [key for key in tuple(_making) if key[0] == plan and key[1] not in shards]:
            _making.pop(key, None)
        if not shards:
            forget_points(plan)
        return len(gone)


def perform(plan, shard, known_by, names, steps, operation, arguments, n_jobs=1):
    """Do some work of a shard: the task.

    Parameters
    ----------
    plan : Plan
    shard : int
    known_by : str or None
        The hash of what the shard was made of the first time; None: this is the first time.
    names : tuple of str
        Of its steps, one after the other: each says all steps up to there.
    steps : tuple of steps, or None
        The steps themselves; None: who does not know what is left after them answers `MISSING`.
    operation : str
        A method of `State`; or "narrow": take one more step, whose name and self are the arguments.
    arguments : tuple
    n_jobs : int
        Threads.
    """
    threads = Threads(n_jobs)
    with single_threaded_blas():
        state = _after(plan, shard, known_by, names, steps, threads)
        if state is None:
            return MISSING
        if operation == "narrow":
            return _narrow(plan, shard, state, *arguments, threads)
        return getattr(state, operation)(threads, *arguments)


def _after(plan, shard, known_by, names, steps, threads):
    """Return the state of a shard after some steps, made again where it is not known; None: it cannot be."""
    with _lock:
        lock = _making.setdefault((plan, shard), threading.Lock())
    with lock:
        taken, state = len(names), _get(plan, shard, names)
        while state is None and taken:  # what is dropped meanwhile is dropped: nothing is looked for twice
            taken -= 1
            state = _get(plan, shard, names[:taken])
        if taken < len(names) and steps is None:
            return None
        state = _base(plan, shard, known_by) if state is None else state
        for i in range(taken, len(names)):
            state = State(steps[i].apply(state.triplets, state.cone, threads)[0], state.cone)
            _put(plan, shard, names[: i + 1], state)
        return state


def _base(plan, shard, known_by):
    triplets, found = load(plan, shard)
    if known_by is not None and found != known_by:
        raise InputError(f"shard {shard}: the files that it is made of have changed since the work began")
    state = State(triplets, make_cone(plan.read()["cone"]), found)
    _put(plan, shard, (), state)
    return state


def _narrow(plan, shard, state, names, step, threads):
    """Take one more step, and remember what is left under its name; return what the driver has to know of it."""
    triplets, counts, matrix, linear, summed = step.apply(state.triplets, state.cone, threads)
    left = state if triplets is state.triplets else State(triplets, state.cone)
    _put(plan, shard, names, left)
    return left.numbers(threads), counts, matrix, linear, summed


def _get(plan, shard, names):
    with _lock:
        key = plan, shard, names[-1] if names else ""
        state = _states.get(key)
        if state is not None:
            with contextlib.suppress(KeyError):
                _states.move_to_end(key)
            state.used = time.monotonic()
        return state


def _put(plan, shard, names, state):
    with _lock:
        key = plan, shard, names[-1] if names else ""
        _states.pop(key, None)
        _states[key] = state  # at the end
        now = time.monotonic()
        for old in tuple(_states):
            other = _states.get(old)
            if other is not None and now - other.used > _IDLE:
                _states.pop(old, None)
        derived = [one for one in tuple(_states) if one[:2] == (plan, shard) and one[2]]
        whole = _states.get((plan, shard, ""))
        left = 0.0 if whole is None else _ROOM * whole.size
        for place, one in enumerate(reversed(derived)):
            state = _states.get(one)
            left -= 0 if state is None else state.size
            if place >= _DERIVED or (place > 1 and left < 0):
                _states.pop(one, None)
