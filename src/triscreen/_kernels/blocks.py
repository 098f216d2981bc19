"""Work per triplet, O(1) each: from pair distances to loss, dual sums and pair weights.

The triplets of an anchor are all its positives times all its negatives: implied, never listed. With b = 1 - margin and
smoothing s > 0, alpha = clip(b / s, 0, 1). A sweep adds to ``sums``

    sums[:, 0] += w (alpha b - (s/2) alpha^2)      the smoothed hinge loss
    sums[:, 1] += w alpha
    sums[:, 2] += w alpha (1 - alpha)

(row 0 the totals, row 1 the errors made in adding them)

and gives each pair its weight: the sum of w alpha over triplets where it is the negative pair, minus the same
where it is the positive one (w = 1 here).

Which triplets may leave their zone: two ends of a tube of metrics give two distances per pair; margins are linear in M,
so over the tube's axis a margin lies between its values at the ends, and off the axis it moves by at most radius * |H|.
The norm is bounded by pairs alone: |H|^2 = |u|^4 + |v|^4 - 2 (u'v)^2 <= |u|^4 + |v|^4.
"""

from __future__ import annotations

import numpy as np

from triscreen._kernels.common import LINEAR, SUMS, UNDECIDED, ZERO, compiled, inner, join, off_zone

_VECTOR = 4  # numbers that a processor works on at once, as compiled


@compiled(fastmath=SUMS)
def sweep_blocks(dist, ptr, split, smoothing, pair_weights, sums, start, stop):
    """Sweep the anchors start <= i < stop; their pairs are ptr[i]..split[i] (positive)..ptr[i + 1] (negative)."""
    inverse = 1.0 / smoothing
    half = 0.5 * smoothing
    part = np.zeros(3)
    longest = 0
    for i in range(start, stop):
        longest = max(longest, ptr[i + 1] - split[i])
    # Rows of an anchor are filled up to whole vectors by negatives that are infinitely far: alpha is zero there.
    size = longest + _VECTOR - 1
    far, far_weights, losses, spreads = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    for i in range(start, stop):
        loss = 0.0
        linear = 0.0
        spread = 0.0
        begin, middle, end = ptr[i], split[i], ptr[i + 1]
        width = end - middle
        filled = (width + _VECTOR - 1) // _VECTOR * _VECTOR
        nearest, farthest = np.inf, -np.inf
        for n in range(width):
            value = dist[middle + n]
            far[n] = value
            nearest = value if value < nearest else nearest
            farthest = value if value > farthest else farthest
        far[width:filled] = np.inf
        for n in range(filled):
            far_weights[n], losses[n], spreads[n] = 0.0, 0.0, 0.0
        n_linear = 0
        for p in range(begin, middle):
            positive = dist[p]
            total = 0.0
            most = 1.0 - (nearest - positive)
            if not most > 0.0:  # every triplet of this pair has zero loss
                total = 0.0
            elif (1.0 - (farthest - positive)) * inverse >= 1.0:  # every one is linear
                total = width
                loss += total * (most - half)
                n_linear += 1
            else:
                for n in range(filled):
                    b = 1.0 - (far[n] - positive)
                    b = 0.0 if b < 0.0 else b
                    a = b * inverse
                    a = 1.0 if a > 1.0 else a
                    total += a
                    far_weights[n] += a
                    losses[n] += a * (b - half * a)
                    spreads[n] += a * (1.0 - a)
            pair_weights[p] = -total
            linear += total
        if n_linear > 0:
            spare = 0.0  # how much farther than the nearest
            for n in range(width):
                spare += far[n] - nearest
            loss -= n_linear * spare
        for n in range(filled):
            loss += losses[n]
            spread += spreads[n]
        for n in range(width):
            pair_weights[middle + n] = far_weights[n] + n_linear
        part[0], part[1], part[2] = loss, linear, spread
        join(sums, part)


@compiled(fastmath=SUMS)
def corner_blocks(dist, other, ptr, split, gamma, start, stop):
    """Sum of (a - b)^2 over the triplets of some anchors whose alphas are within (0, 1) at the margins of both."""
    inverse = 1.0 / gamma
    total = 0.0
    for i in range(start, stop):
        begin, middle, end = ptr[i], split[i], ptr[i + 1]
        far, far_other = dist[middle:end], other[middle:end]
        for p in range(begin, middle):
            near, near_other = dist[p], other[p]
            part = 0.0
            for n in range(end - middle):
                a, b = (1.0 - (far[n] - near)) * inverse, (1.0 - (far_other[n] - near_other)) * inverse
                inside = (a > 0.0) & (a < 1.0) & (b > 0.0) & (b < 1.0)
                part += (a - b) * (a - b) if inside else 0.0
            total += part
    return total


@compiled()
def largest_margin_blocks(dist, ptr, split):
    """The largest margin of any triplet: per anchor the farthest negative minus the nearest positive."""
    best = -np.inf
    for i in range(split.size):
        if ptr[i] < split[i] and split[i] < ptr[i + 1]:
            nearest = dist[ptr[i]]
            for p in range(ptr[i], split[i]):
                nearest = min(nearest, dist[p])
            for n in range(split[i], ptr[i + 1]):
                best = max(best, dist[n] - nearest)
    return best


@compiled()
def block_indices(ptr, split, second, start_anchor, start, out):
    """Write the triplets start, start + 1, ... of a block set into the rows of out; returns nothing."""
    t = 0
    skip = start
    for i in range(start_anchor, split.size):
        for p in range(ptr[i], split[i]):
            for n in range(split[i], ptr[i + 1]):
                if skip > 0:
                    skip -= 1
                    continue
                if t == out.shape[0]:
                    return
                out[t, 0] = i
                out[t, 1] = second[p]
                out[t, 2] = second[n]
                t += 1


@compiled()
def block_pairs(ptr, split, keep, positive, negative):
    """Write the two pair numbers of every triplet of a block set that the mask keeps."""
    t = 0
    n_kept = 0
    for i in range(split.size):
        for p in range(ptr[i], split[i]):
            for n in range(split[i], ptr[i + 1]):
                if keep[t]:
                    positive[n_kept] = p
                    negative[n_kept] = n
                    n_kept += 1
                t += 1


@compiled()
def sphere_blocks(
    values, errors, lengths, ptr, split, norms, radius, gamma, zones, whole, counts, start, stop, offset
):  # fmt: skip
    """The sphere rule for the anchors start <= i < stop of a block set; offset: their first triplet.

    A positive pair is tried with all negative ones at once, by |H| <= |u|^2 + |v|^2 (``lengths`` are the pairs'
    |delta|^2, or more); whole[p] is the zone of all its triplets where that tells. The others are looked at one by one,
    with their own norms.
    """
    t = offset
    limit = 1.0 - gamma
    for i in range(start, stop):
        middle, end = split[i], ptr[i + 1]
        width = end - middle
        far, doubts = values[middle:end], errors[middle:end]
        lowest, highest = np.inf, -np.inf
        for n in range(middle, end):
            doubt = errors[n] + radius * lengths[n]
            low, high = values[n] - doubt, values[n] + doubt
            lowest = low if low < lowest else lowest
            highest = high if high > highest else highest
            whole[n] = UNDECIDED
        for p in range(ptr[i], middle):
            value, error = values[p], errors[p]
            doubt = error + radius * lengths[p]
            zone = (
                ZERO if lowest - (value + doubt) > 1.0 else LINEAR if highest - (value - doubt) < limit else UNDECIDED
            )
            whole[p] = zone
            own, here = norms[t : t + width], zones[t : t + width]
            n_linear = n_zero = 0
            if zone != UNDECIDED:
                fresh = 0
                for n in range(width):
                    fresh += here[n] == UNDECIDED
                    here[n] = here[n] if here[n] != UNDECIDED else zone
                counts[zone - LINEAR] += fresh
            else:
                for n in range(width):
                    margin = far[n] - value
                    doubt = (error + doubts[n]) + radius * own[n]
                    is_zero = margin - doubt > 1.0
                    is_linear = (margin + doubt < limit) & (not is_zero)
                    open_ = here[n] == UNDECIDED
                    n_zero += is_zero & open_
                    n_linear += is_linear & open_
                    here[n] = here[n] if not open_ else ZERO * is_zero + LINEAR * is_linear
                counts[0] += n_linear
                counts[1] += n_zero
            t += width


@compiled()
def leaving_blocks(dist, ptr, split, zones, whole, smoothing, used, counts, start, stop, offset):
    """What goes of the anchors start <= i < stop of a block set when its decided triplets may go.

    used[p] = 1 for the pairs of undecided triplets; a triplet stays if both of its pairs do. Added to counts: how many
    go in zone L; and how many (at least) are decided, going or not, whose alpha at these distances is not that of their
    zone. ``whole`` as `sphere_blocks` leaves it. Rows of zones are looked at without branches.
    """
    inverse = 1.0 / smoothing
    n_linear = n_off = 0
    t = offset
    for i in range(start, stop):
        begin, middle, end = ptr[i], split[i], ptr[i + 1]
        width = end - middle
        far, needed = dist[middle:end], used[middle:end]
        nearest, farthest = np.inf, -np.inf
        for n in range(width):
            needed[n] = False
            nearest = far[n] if far[n] < nearest else nearest
            farthest = far[n] if far[n] > farthest else farthest
        first = t
        for p in range(begin, middle):
            zone, near = whole[p], dist[p]
            used[p] = False
            if zone == LINEAR:
                n_linear += width
                n_off += off_zone(farthest - near, zone, inverse)
            elif zone == ZERO:
                n_off += off_zone(nearest - near, zone, inverse)
            else:
                here, any_here = zones[t : t + width], False
                for n in range(width):
                    is_open = here[n] == UNDECIDED
                    any_here |= is_open
                    needed[n] |= is_open
                used[p] = any_here
                linear = off = 0
                for n in range(width):
                    b = 1.0 - (far[n] - near)
                    is_linear = here[n] == LINEAR
                    off += (is_linear & (b * inverse < 1.0)) | ((here[n] == ZERO) & (b > 0.0))
                    linear += is_linear
                n_linear += linear
                n_off += off
            t += width
        t = first
        for p in range(begin, middle):
            if used[p]:  # what stays in zone L does not go
                here, linear = zones[t : t + width], 0
                for n in range(width):
                    linear += (here[n] == LINEAR) & needed[n]
                n_linear -= linear
            t += width
    counts[0] += n_linear
    counts[1] += n_off


@compiled()
def departing_blocks(dist, ptr, split, zones, smoothing, used, weights):
    """Weights that the triplets of a block set which go in zone L give to the pairs; a triplet stays if both are used.

    Returns how many go whose alpha at these distances is not that of their zone.
    """
    inverse = 1.0 / smoothing
    n_off = t = 0
    weights[:] = 0.0
    for i in range(split.size):
        for p in range(ptr[i], split[i]):
            for n in range(split[i], ptr[i + 1]):
                if zones[t] != UNDECIDED and not (used[p] and used[n]):
                    n_off += off_zone(dist[n] - dist[p], zones[t], inverse)
                    if zones[t] == LINEAR:
                        weights[n] += 1.0
                        weights[p] -= 1.0
                t += 1
    return n_off


@compiled()
def narrow_blocks(ptr, split, second, used, pairs, seconds, sizes, points):
    """List the used pairs of a block set, and their second points; returns how many there are.

    ``sizes[i]`` are how many positive and negative ones an anchor has, points[i] = 1 for the points that they need.
    """
    count = 0
    points[:] = False
    for i in range(split.size):
        begin = count
        for p in range(ptr[i], ptr[i + 1]):
            if p == split[i]:
                sizes[i, 0] = count - begin
            pairs[count], seconds[count] = p, second[p]
            points[second[p]] |= used[p]
            count += used[p]
        if split[i] == ptr[i + 1]:
            sizes[i, 0] = count - begin
        sizes[i, 1] = count - begin - sizes[i, 0]
        points[i] |= count > begin
    return count


@compiled()
def kept_blocks(ptr, split, used, zones, norms, kept_zones, kept_norms):
    """Copy zones and norms of the triplets of a block set whose two pairs are both used."""
    t = place = longest = 0
    for i in range(split.size):
        longest = max(longest, ptr[i + 1] - split[i])
    columns = np.empty(longest + 1, np.int64)
    for i in range(split.size):
        width = ptr[i + 1] - split[i]
        n_columns = 0
        for n in range(width):
            columns[n_columns] = n
            n_columns += used[split[i] + n]
        for p in range(ptr[i], split[i]):
            if used[p]:
                for k in range(n_columns):
                    kept_zones[place + k], kept_norms[place + k] = zones[t + columns[k]], norms[t + columns[k]]
                place += n_columns
            t += width


@compiled()
def block_hull(ptr, split, used, numbers):
    """Write the numbers of the triplets of a block set whose two pairs are both used."""
    t = 0
    n_found = 0
    for i in range(split.size):
        for p in range(ptr[i], split[i]):
            if used[p]:
                for n in range(split[i], ptr[i + 1]):
                    if used[n]:
                        numbers[n_found] = t + n - split[i]
                        n_found += 1
            t += ptr[i + 1] - split[i]


@inner()
def _stays(low_1, high_1, low_2, high_2, reach, error, low, both):
    """Do margins between these bounds, at the two ends of a tube, stay above 1 or below low while they move by reach?

    ``reach`` is the square of that. One test for one triplet and for many at once: rounding is monotone, so whatever is
    true of bounds is true of each margin between them.
    """
    above = (low_1 if low_1 < low_2 else low_2) - 1.0 - error
    below = low - (high_1 if high_1 > high_2 else high_2) - error
    away = below if both & (below > above) else above
    return (away > 0.0) & (away * away > reach)


@compiled()
def undecided_blocks(
    first, second, squares, ptr, split, radius, error, low, both, zones, offset, used, start, stop
):  # fmt: skip
    """used[p] = 1 for every pair of an anchor's triplets that are not proven to keep their zone.

    Proven: above 1 everywhere, or (if ``both``) below ``low`` everywhere, or decided in zones (if there are any; the
    anchors' first triplet is number ``offset``). ``first`` and ``second`` are the distances at the two ends, and
    ``squares`` the pairs' |delta|^4.

    Each positive pair is tried with all negative ones at once, then each negative pair with all positive ones that are
    left. Only triplets of two pairs that are left are looked at one by one, some tenth of them.
    """
    square = radius * radius
    longest = 0
    for i in range(start, stop):
        longest = max(longest, ptr[i + 1] - ptr[i])
    rows, columns, seen = np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(longest, np.bool_)
    far_1, far_2, far = np.empty(longest), np.empty(longest), np.empty(longest)
    t = offset
    for i in range(start, stop):
        begin, middle, end = ptr[i], split[i], ptr[i + 1]
        n_rows = n_columns = 0
        low_1 = low_2 = np.inf
        high_1 = high_2 = -np.inf
        most = 0.0
        for n in range(middle, end):
            a, b, c = first[n], second[n], squares[n]
            low_1 = a if a < low_1 else low_1
            high_1 = a if a > high_1 else high_1
            low_2 = b if b < low_2 else low_2
            high_2 = b if b > high_2 else high_2
            most = c if c > most else most
            used[n] = False
        for p in range(begin, middle):
            a, b = first[p], second[p]
            reach = square * (most + squares[p])
            used[p] = False
            rows[n_rows] = p
            n_rows += not _stays(low_1 - a, high_1 - a, low_2 - b, high_2 - b, reach, error, low, both)
        if n_rows > 0:
            low_1 = low_2 = np.inf
            high_1 = high_2 = -np.inf
            most = 0.0
            for r in range(n_rows):
                a, b, c = first[rows[r]], second[rows[r]], squares[rows[r]]
                low_1 = a if a < low_1 else low_1
                high_1 = a if a > high_1 else high_1
                low_2 = b if b < low_2 else low_2
                high_2 = b if b > high_2 else high_2
                most = c if c > most else most
            for n in range(middle, end):
                a, b, c = first[n], second[n], squares[n]
                reach = square * (c + most)
                columns[n_columns], seen[n_columns] = n, False
                far_1[n_columns], far_2[n_columns], far[n_columns] = a, b, c
                n_columns += not _stays(a - high_1, a - low_1, b - high_2, b - low_2, reach, error, low, both)
        for r in range(n_rows):
            a, b, c, hit = first[rows[r]], second[rows[r]], squares[rows[r]], False
            place = t + (rows[r] - begin) * (end - middle) - middle
            for k in range(n_columns):
                one, two, reach = far_1[k] - a, far_2[k] - b, square * (far[k] + c)
                flag = not _stays(one, one, two, two, reach, error, low, both)
                if zones.size > 0:
                    flag &= zones[place + columns[k]] == UNDECIDED
                seen[k] |= flag
                hit |= flag
            used[rows[r]] = hit
        for k in range(n_columns):
            used[columns[k]] = seen[k]
        t += (middle - begin) * (end - middle)


@compiled()
def quadratic_blocks(dist, ptr, split, smoothing, used):
    """used[p] = 1 for every pair of a triplet in the quadratic part of the loss; returns the number of triplets."""
    count = 0
    for i in range(split.size):
        used[ptr[i] : ptr[i + 1]] = False
        for p in range(ptr[i], split[i]):
            for n in range(split[i], ptr[i + 1]):
                b = 1.0 - (dist[n] - dist[p])
                if 0.0 < b < smoothing:
                    used[p] = used[n] = True
                    count += 1
    return count


@compiled(fastmath=SUMS)
def hessian_blocks(dist, change, ptr, split, smoothing, pair_weights, start, stop):
    """Pair weights of the Hessian of the loss times a step under which the pairs' distances change so."""
    inverse = 1.0 / smoothing
    for i in range(start, stop):
        begin, middle, end = ptr[i], split[i], ptr[i + 1]
        far, far_change, weights = dist[middle:end], change[middle:end], pair_weights[middle:end]
        weights[:] = 0.0
        for p in range(begin, middle):
            near, near_change = dist[p], change[p]
            total = 0.0
            for n in range(end - middle):
                b = 1.0 - (far[n] - near)
                weight = (far_change[n] - near_change) * inverse if (b > 0.0) & (b < smoothing) else 0.0
                weights[n] += weight
                total += weight
            pair_weights[p] = -total
