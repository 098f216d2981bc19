"""Exact nearest neighbours: candidates from float32 products of cells, their order from float64 differences.

`measured` is the one definition of a distance: the sum of squared differences, feature by feature, in float64. All
else only saves it, by bounds that hold in floating point. u = 2^-24; m axes; units as in
`triscreen.triplets._positions`.

Point i of a cell Q and point j of a cell C are said to be at c_Q + o_i and c_C + o_j, and no farther from there than
the slacks of their cells. Let a be o_i + (c_Q - c_C) in float32: off by at most u (2 |a| + |o_i|), of which the slack
of Q holds the second part. Let A = |a|^2 and L the largest |o_j|^2 of C. In float32, for any order of summation,

    | A + |o_j|^2 - 2 a'o_j  -  |a - o_j|^2 |  <=  2 u (m + 4) (1 + 4 m u) (A + L) + m 2^-100  =: e

(m u / (1 - m u) for the product and for A, u for |o_j|^2 and for the difference; the last term for underflow). A pair
is within a distance t only if |a - o_j| <= s + 2.1 u |a|, where s is t and both slacks; so, since (x + y)^2 <= (1 + h)
x^2 + (1 + 1/h) y^2, here with h = 8 u, only if |a - o_j|^2 <= (1 + 2^-20) s^2 + 2^-21 A. So a pair is dropped if

    |o_j|^2 - 2 a'o_j  >  (1 + 2^-20) s^2 - A + 2^-21 A + e,

and a whole row if the squared distance of a from the box of C, which is at most |a - o_j|^2, is above (1 + 2^-20) s^2
+ 2^-21 A + e. t comes from the k-th value so far: a float64 sum of d squares is right up to (d + 2) 2^-53 of itself,
and underflow.

Indices are unsigned where loops have to vectorise: for signed ones numba asks whether they count from the end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from triscreen._kernels.common import SUMS, compiled, inner

_U = np.uint64
_STRETCH = _U(64)  # products that are compared with a limit at once
_SHORT = _U(16)
_LANES = 64
_LONG = 48  # features from which on a sum that vectorises is tried before the one in order
_TINY = 2.0**-1020  # what a square may lose by underflow
_ABOVE = 1.0 + 2.0**-20


class Cells(NamedTuple):
    """Cell t holds the places bounds[t] to bounds[t + 1], as offsets from its centre."""

    offsets: np.ndarray  # (n * m,) float32: axis by axis within each cell
    squares: np.ndarray  # (n,) float32, |offset|^2
    wide: np.ndarray  # (n, m') float32, positions by more axes than cells have; m' = 0: there are none
    numbers: np.ndarray  # (n,) what the caller knows the points by
    rows: np.ndarray  # (n,) where they are in X
    X: np.ndarray  # (any, d) the points as given
    bounds: np.ndarray  # (cells + 1,)
    first: np.ndarray  # (cells,) the smallest number of a cell
    centres: np.ndarray  # (cells, m)
    halves: np.ndarray  # (cells, m) float32, half the widths of the box around the offsets
    spans: np.ndarray  # (cells, 3) the largest |offset|^2, the slack, the slack of wide


class Lists(NamedTuple):
    """The nearest points so far of the points of one cell, of two kinds: 0, of the own class, and 1, of others.

    Each is a heap by (distance, number), the last one on top. ``roots``: no nearer point is beyond this distance, the
    point's own slack included; infinite until a heap is full, -1 where a kind is not wanted.
    """

    values: np.ndarray  # (2 * points * k,)
    numbers: np.ndarray  # (2 * points * k,)
    counts: np.ndarray  # (2, points)
    roots: np.ndarray  # (2, points)
    facts: np.ndarray  # (4,) how long a list of either kind may become; products, and pairs looked at


class _Room(NamedTuple):
    """Where a cell is compared with another one."""

    places: np.ndarray  # (m * rows,) float32: 2 a, axis by axis
    seen: np.ndarray  # (2, rows) float32: A, and the squared distance from the other cell's box
    rows: np.ndarray  # (rows,) the points that are in reach
    rest: np.ndarray  # (rows,) A less what rounding may do
    products: np.ndarray  # (rows * columns,) float32
    lanes: np.ndarray  # (_LANES,) float32


@inner()
def measured(X, i, Y, j):
    """The squared distance of two points: the sum in the order of the features, in float64."""
    value = 0.0
    for c in range(_U(X.shape[1])):
        t = np.float64(X[i, c]) - np.float64(Y[j, c])
        value += t * t
    return value


@inner(fastmath=SUMS)
def _in_any_order(X, i, Y, j):
    """The same, added in any order: right up to (d + 2) 2^-53 of itself."""
    value = 0.0
    for c in range(_U(X.shape[1])):
        t = np.float64(X[i, c]) - np.float64(Y[j, c])
        value += t * t
    return value


@inner(fastmath=SUMS)
def _by_more_axes(X, i, Y, j):
    """The squared distance of two positions, in float32."""
    value = np.float32(0)
    for c in range(_U(X.shape[1])):
        t = X[i, c] - Y[j, c]
        value += t * t
    return value


@inner()
def _before(value, number, other_value, other_number):
    return value < other_value or (value == other_value and number < other_number)


@inner()
def _sink(values, numbers, top, size, value, number):
    """Put an entry in the place of the last one of the heap of this size that begins at ``top``."""
    place, below = 0, 1
    while below < size:
        one, other = top + below, top + below + 1
        if below + 1 < size and _before(values[one], numbers[one], values[other], numbers[other]):
            one, below = other, below + 1
        if _before(values[one], numbers[one], value, number):
            break
        values[top + place], numbers[top + place] = values[one], numbers[one]
        place, below = below, 2 * below + 1
    values[top + place], numbers[top + place] = value, number


@inner()
def _rise(values, numbers, top, count, value, number):
    """Add an entry to a heap of ``count``."""
    place = count
    while place > 0:
        above = top + (place - 1) // 2
        if _before(value, number, values[above], numbers[above]):
            break
        values[top + place], numbers[top + place] = values[above], numbers[above]
        place = (place - 1) // 2
    values[top + place], numbers[top + place] = value, number


@inner()
def _root(value, dim, scale, slack):
    """The distance, in the units of the cells, that a pair of this value or less is within; and the slack."""
    allowed = 1.0 + (dim + 4.0) * 2.0**-51
    return np.sqrt(allowed * value + dim * _TINY) * (scale * allowed) + slack


@inner()
def _limit(root, slack, rest):
    """What |o_j|^2 - 2 a'o_j comes to at most, rounded up to float32, for a point that is not beyond the root."""
    most = (root + slack) ** 2 * _ABOVE - rest
    return np.float32(most + abs(most) * 2.0**-22)


@inner(fastmath=SUMS)
def _see(offsets, start, n, shifts, halves, places, seen):
    """Write 2 a for n points seen from another cell, A, and their squared distances from its box."""
    for r in range(n):
        seen[0, r] = seen[1, r] = np.float32(0)
    for c in range(_U(shifts.size)):
        shift, half, at = np.float32(shifts[c]), halves[c], c * n
        for r in range(n):
            place = offsets[start + at + r] + shift
            places[at + r] = place + place
            seen[_U(0), r] += place * place
            far = max(abs(place) - half, np.float32(0))
            seen[_U(1), r] += far * far


@inner()
def _choose(cells, t, start, n, anchors, lists, room):
    """List the rows that may have a neighbour in cell t; return their number.

    Where a list is full of distances 0, only smaller numbers can be gained.
    """
    begin, end, axes = cells.bounds[t], cells.bounds[t + 1], cells.centres.shape[1]
    error, tiny = (axes + 4.0) * 2.0**-23 * (1.0 + axes * 2.0**-22), axes * 2.0**-100
    largest, slack, first, found = cells.spans[t, 0], cells.spans[t, 1], cells.first[t], 0
    k = lists.values.size // lists.counts.size
    for r in range(n):
        low, high, root = anchors[start + r, 0], anchors[start + r, 1], -1.0
        for kind in range(2):
            inside = low < end and high > begin
            outside = begin < low or end > high
            if lists.roots[kind, r] > root and (inside if kind == 0 else outside):
                full = lists.counts[kind, r] == lists.facts[kind]
                top = (kind * n + r) * k
                if not (full and lists.values[top] == 0.0 and lists.numbers[top] < first):
                    root = lists.roots[kind, r]
        square = np.float64(room.seen[0, r])
        doubt = error * (square + largest) + 2.0**-21 * square + tiny
        if root >= 0.0 and room.seen[1, r] <= (root + slack) ** 2 * _ABOVE + doubt:
            room.rows[found], room.rest[found] = r, square - doubt
            found += 1
    return found


@inner()
def _gather(places, n, axes, rows, found):
    """Keep the places of the rows found."""
    if found == n:
        return
    for c in range(axes):
        for a in range(found):
            places[c * found + a] = places[c * n + rows[a]]


@inner(fastmath=SUMS)
def _any_within(products, at, squares, s, n, limit):
    found = np.int32(0)
    for j in range(n):
        found |= np.int32(squares[s + j] - products[at + j] <= limit)
    return found != 0


@inner()
def _next(products, at, squares, s, stop, limit):
    """The first place from s on that is within the limit, or stop; ``at``: where the product of place 0 would be."""
    while s + _STRETCH <= stop and not _any_within(products, at + s, squares, s, _STRETCH, limit):
        s += _STRETCH
    while s + _SHORT <= stop and not _any_within(products, at + s, squares, s, _SHORT, limit):
        s += _SHORT
    while s < stop and not squares[s] - products[at + s] <= limit:
        s += _U(1)
    return s


@inner()
def _likely(products, at, squares, s, stop, size, lanes):
    """A limit that ``size`` places or a few more are within: of the least values of 64 lanes, the size-th."""
    for lane in range(_STRETCH):
        lanes[lane] = np.float32(np.inf)
    while s + _STRETCH <= stop:
        for lane in range(_STRETCH):
            value = squares[s + lane] - products[at + s + lane]
            lanes[lane] = value if value < lanes[lane] else lanes[lane]
        s += _STRETCH
    for place in range(1, lanes.size):
        value, to = lanes[place], min(place, size - 1)
        if place >= size and value >= lanes[size - 1]:
            continue
        while to > 0 and lanes[to - 1] > value:
            lanes[to] = lanes[to - 1]
            to -= 1
        lanes[to] = value
    return lanes[size - 1]


@inner()
def _far(value, X, i, Y, j, V, q, W, place, farthest):
    """Is a pair beyond the value for sure? By its positions, and by a sum that vectorises."""
    dim, axes, far = X.shape[1], V.shape[1], False
    if axes > 0:
        far = _by_more_axes(V, q, W, place) * (1.0 - (axes + 4) * 2.0**-23) > farthest
    if dim > _LONG and not far:
        far = _in_any_order(X, i, Y, j) > (1.0 + (dim + 4.0) * 2.0**-51) * value + dim * _TINY
    return far


@inner()
def _take(values, numbers, top, count, size, value, number):
    """Take a point up into the heap if it belongs to the nearest; return the heap's new count."""
    if count < size:
        _rise(values, numbers, top, count, value, number)
        count += 1
    elif _before(value, number, values[top], numbers[top]):
        _sink(values, numbers, top, size, value, number)
    return count


@inner()
def _scan(
    products, at, squares, s, stop, own, limit, lanes, values, numbers, top, count, size, X, i, Y, rows, ids, V, q, W,
    slack, between, wide, rest, scale,
):  # fmt: skip
    """Measure the places s to stop that are within the limit, which falls meanwhile; return (count, pairs looked at).

    A list that is short is filled by the likely ones first.
    """
    dim, work, farthest = X.shape[1], 0, np.inf
    long = dim > _LONG or V.shape[1] > 0
    passed, ahead = np.float32(-np.inf), np.float32(np.inf)
    if count < size and 2 * size < _LANES and stop - s >= _U(2 * _LANES):
        ahead = _likely(products, at, squares, s, stop, size + 1, lanes)  # one of them may be the point itself
    elif count == size:
        farthest = (_root(values[top], dim, scale, slack) + wide) ** 2 * _ABOVE
    while True:
        limit = min(limit, ahead)
        place = _next(products, at, squares, s, stop, limit)
        while place < stop:
            if place != own and squares[place] - products[at + place] > passed:
                work += 1
                j = rows[place]
                if not (count == size and long and _far(values[top], X, i, Y, j, V, q, W, place, farthest)):
                    count = _take(values, numbers, top, count, size, measured(X, i, Y, j), ids[place])
                if count == size:
                    root = _root(values[top], dim, scale, slack)
                    limit, farthest = min(_limit(root, between, rest), ahead), (root + wide) ** 2 * _ABOVE
            place = _next(products, at, squares, place + _U(1), stop, limit)
        if ahead == np.inf:
            return count, work
        passed, ahead = ahead, np.float32(np.inf)
        limit = _limit(_root(values[top], dim, scale, slack), between, rest) if count == size else ahead


@inner()
def _compare(cells, t, queries, tq, anchors, lists, room, found, scale):
    """Go through the products of the rows found with cell t: of the own class, and of other ones to both sides."""
    begin, end, start = cells.bounds[t], cells.bounds[t + 1], queries.bounds[tq]
    slack, between, wide = queries.spans[tq, 1], cells.spans[t, 1], queries.spans[tq, 2] + cells.spans[t, 2]
    values, numbers, counts, roots, facts = lists
    n, k = counts.shape[1], values.size // counts.size
    for a in range(found):
        r, rest = room.rows[a], room.rest[a]
        q, at = start + r, _U(a * (end - begin) - begin)
        low, high = min(max(anchors[q, 0], begin), end), min(max(anchors[q, 1], begin), end)
        for part in range(3):
            kind = min(part, 1)
            s, stop = (low, high) if part == 0 else (begin, low) if part == 1 else (high, end)
            if s >= stop or facts[kind] == 0:
                continue
            limit = _limit(roots[kind, r], between, rest)
            place = _next(room.products, at, cells.squares, _U(s), _U(stop), limit)
            if place >= _U(stop):
                continue
            top, size = (kind * n + r) * k, facts[kind]
            counts[kind, r], looked = _scan(
                room.products, at, cells.squares, place, _U(stop), _U(anchors[q, 2]), limit, room.lanes, values,
                numbers, top, counts[kind, r], size, queries.X, queries.rows[q], cells.X, cells.rows, cells.numbers,
                queries.wide, q, cells.wide, slack, between, wide, rest, scale,
            )  # fmt: skip
            facts[3] += looked
            if counts[kind, r] == size:
                roots[kind, r] = _root(values[top], queries.X.shape[1], scale, slack)


@inner()
def _reach(roots, anchors, start, begin, end):
    """The distance that no neighbour among the places begin to end is beyond, from any of the points from start on."""
    n, far = roots.shape[1], -1.0
    if begin < anchors[start + n - 1, 1] and end > anchors[start, 0]:
        for r in range(n):
            far = max(far, roots[0, r])
    if begin < anchors[start + n - 1, 0] or end > anchors[start, 1]:
        for r in range(n):
            far = max(far, roots[1, r])
    return far


@compiled()
def visit(cells, order, gaps, columns, queries, tq, anchors, lists, scale):
    """Let the points of cell tq of the queries look for neighbours in the cells in ``order`` that are not too far away.

    ``anchors`` (n, 3): where the class of a query begins and ends, and its own place, which is nobody's neighbour.
    ``columns``: points of the largest cell.
    """
    start, n, axes = queries.bounds[tq], lists.roots.shape[1], cells.centres.shape[1]
    room = _Room(
        np.empty(axes * n, np.float32),
        np.empty((2, n), np.float32),
        np.empty(n, np.int64),
        np.empty(n),
        np.empty(n * columns, np.float32),
        np.empty(_LANES, np.float32),
    )
    for t in order:
        begin, end = cells.bounds[t], cells.bounds[t + 1]
        reach = _reach(lists.roots, anchors, start, begin, end)
        if reach < 0.0 or gaps[t] > (reach + cells.spans[t, 1]) ** 2 * _ABOVE:
            continue
        shifts = queries.centres[tq] - cells.centres[t]
        _see(queries.offsets, _U(start * axes), _U(n), shifts, cells.halves[t], room.places, room.seen)
        found = _choose(cells, t, start, n, anchors, lists, room)
        if found == 0:
            continue
        _gather(room.places, n, axes, room.rows, found)
        others = cells.offsets[begin * axes : end * axes].reshape(axes, end - begin)
        places = room.places[: axes * found].reshape(axes, found).T
        np.dot(places, others, room.products[: found * (end - begin)].reshape(found, end - begin))
        lists.facts[2] += found * (end - begin)
        _compare(cells, t, queries, tq, anchors, lists, room, found, scale)


@compiled()
def between(centres, halves, centre, half, gaps, distances):
    """Write, for every cell, (at most) the squared distance of its box from one box, and that of the centres."""
    for t in range(gaps.size):
        gap = distance = 0.0
        for c in range(centre.size):
            apart = abs(centre[c] - centres[t, c])
            distance += apart * apart
            gap += max(apart * (1.0 - 2.0**-50) - half[c] - halves[t, c], 0.0) ** 2
        gaps[t], distances[t] = gap, distance


@compiled()
def finish(heap, ids, counts, kind, numbers, values):
    """Write the lists of one kind, nearest first; -1 and infinity where they end."""
    n, k = counts.shape[1], heap.size // counts.size
    for r in range(n):
        top, count = (kind * n + r) * k, counts[kind, r]
        for place in range(count, numbers.shape[1]):
            numbers[r, place], values[r, place] = -1, np.inf
        for last in range(count - 1, -1, -1):
            numbers[r, last], values[r, last] = ids[top], heap[top]
            _sink(heap, ids, top, last, heap[top + last], ids[top + last])


@compiled()
def compare_all(queries, asking, columns, codes, alone, widths, found, squares):
    """Write the nearest points of every query, of its class and of others, by measuring all of them.

    ``columns`` (d, n): the points, feature by feature, so that `measured` vectorises over points and stays what it is.
    ``alone``: the queries are the points, and none is its own neighbour. ``found``, ``squares``: two arrays each.
    """
    row, counts, limits = np.empty(codes.size), np.empty(2, np.int64), np.empty(2)
    for q in range(len(queries)):
        row[:] = 0.0
        for c in range(_U(len(columns))):
            place, column = np.float64(queries[q, c]), columns[c]
            for j in range(_U(row.size)):
                t = place - np.float64(column[j])
                row[j] += t * t
        for kind in range(2):  # nothing is "at least" NaN: whatever comes is taken until a list is full
            counts[kind], limits[kind] = 0, np.nan if widths[kind] > 0 else -1.0
        for j in range(row.size):
            value, kind = row[j], 0 if codes[j] == asking[q] else 1
            if value >= limits[kind] or (alone and j == q):
                continue
            numbers, values, count, size = found[kind][q], squares[kind][q], counts[kind], widths[kind]
            to = min(count, size - 1)
            while to > 0 and values[to - 1] > value:
                numbers[to], values[to] = numbers[to - 1], values[to - 1]
                to -= 1
            numbers[to], values[to] = j, value
            counts[kind] = min(count + 1, size)
            if counts[kind] == size:
                limits[kind] = values[size - 1]
        for kind in range(2):
            found[kind][q, counts[kind] :] = -1
            squares[kind][q, counts[kind] :] = np.inf
