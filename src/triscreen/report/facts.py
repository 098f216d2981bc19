"""What a report is made of: numbers and small arrays, kept with the path, so that a report needs nothing else."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from triscreen._utils.progress import progress, silent
from triscreen._utils.threads import deadline
from triscreen._utils.validation import as_positive
from triscreen.errors import InputError, OutOfTime
from triscreen.estimators.scaling import Scaling
from triscreen.path import Path
from triscreen.path.facts import Facts
from triscreen.problem import Problem
from triscreen.report import maps as screening_maps
from triscreen.report.details import called, opening, with_held_out, with_suspects
from triscreen.report.measures import Measured, mapped, measure_of
from triscreen.report.planes import flat, plane_of, turned_one_by_one
from triscreen.selection.bounds import comparison_bounds, votes_over

_FRAMES, _POINTS = 60, 600
_COLOURS, _PICKED = 12, 10  # classes that have a colour each; with more of them the largest few have one
_FITTED = 5000  # points that a plane is made for, at most
_NAMED = 12  # points or comparisons that can move the metric most
# Maps solve the problem again at so many lambdas, at fewer from _MANY triplets on, and not at all from _MOST on.
_STOPS, _FEW_STOPS, _MANY, _MOST = 16, 8, 300_000, 3_000_000
_LISTED = 30_000_000  # triplets whose losses are looked at one by one, at most


def gather(
    path: Path,
    problem: Problem,
    X: ArrayLike,
    y: ArrayLike | None,
    X_test: ArrayLike | None = None,
    y_test: ArrayLike | None = None,
    comparisons_test: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    source: str = "",
    k: int = 3,
    maps: bool = True,
    max_seconds: float | None = None,
    point_names: Sequence[str | int] | None = None,
    test_names: Sequence[str | int] | None = None,
    scaling: Scaling | None = None,
) -> Facts:
    """Collect what `write_report` shows, and keep it as ``path.facts``; `triscreen.save` saves it with the path.

    Parameters
    ----------
    path : Path
        What is shown; it keeps what is collected.
    problem : Problem
        The one that the path solves.
    X, y : arrays
        Its points, and their labels (None: no labels, no errors and no colours).
    X_test, y_test : arrays, optional
        Held-out points: their k-nearest-neighbour error says which lambda is good.
    comparisons_test : array, shape (m, 3), optional
        Or held-out comparisons of the points X: the share of them in the wrong order says it.
    feature_names : list of str, optional
        Of the columns of X; by default they have numbers.
    source : str
        What the data are called.
    k : int
        Neighbours that vote.
    maps : bool
        Whether to solve the problem again at some lambdas, to show what each sphere proves.
    max_seconds : float, optional
        Of lambdas that would be shown, as many as there is time for, spread over the path: at least one.
    point_names : list of str or of int, optional
        What the points X are called, or their rows in a file (from 0 on); by default their numbers.
    test_names : list of str or of int, optional
        The same of the points X_test; by default "held-out" and their numbers.
    scaling : Scaling, optional
        What X was scaled by: values of features are then shown as they were before.

    Returns
    -------
    Facts
        Its ``left_out`` says in words what there was no time for.

    References
    ----------
    docs/report.md; ours.

    Examples
    --------
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_iris
    >>> from triscreen.report import gather
    >>> X, y = load_iris(return_X_y=True)
    >>> problem = ts.Problem(X[::2], ts.knn_triplets(X[::2], y[::2], k=3))
    >>> path = ts.solve_path(problem, ratio=0.5, tol=1e-3)
    >>> facts = gather(path, problem, X[::2], y[::2], X[1::2], y[1::2], source="iris", maps=False)
    >>> facts is path.facts, facts.source
    (True, 'iris')
    """
    max_seconds = as_positive(max_seconds, "max_seconds", none="no limit")
    end = inf if max_seconds is None else time.perf_counter() + max_seconds
    X = np.asarray(X, dtype=float)
    if not len(path):
        raise InputError("path has no lambda: there is nothing to report")
    if X.shape != (len(X), path.n_features) or len(X) != problem.n_points:
        raise InputError(f"X has shape {X.shape}: the path was learned from {problem.n_points} points of "
                         f"{path.n_features} features")  # fmt: skip
    facts = Facts(
        source=str(source),
        n_points=len(X),
        n_pairs=problem.triplets.n_pairs,
        feature_names=None if feature_names is None else [str(name) for name in feature_names],
        feature_spread=X.std(axis=0),
        k=k,
        prior=None if problem.prior is None else "a metric",
    )
    if scaling is not None:
        facts = replace(facts, scale=scaling.kind, shift=scaling.shift_, factor=scaling.factor_)
    facts, sample, codes = _with_classes(facts, y)
    facts, measure = measure_of(facts, X, y, X_test, y_test, comparisons_test)
    with progress("facts") as show:
        facts = _with_frames(facts, path, (X, codes, sample), measure, end, show)
        if facts.errors is not None and problem.triplets.lists_triplets:
            show("what the error is at least and at most")
            facts = _with_band(facts, path, problem, (X, y, X_test, y_test), comparisons_test, end)
        facts = _with_influence(facts, path, problem, y, point_names, end)
        facts = _with_details(facts, path, problem, (X, y, X_test, y_test), (point_names, test_names), end)
        triplets = problem.triplets
        if maps and len(path) > 1 and triplets.lists_triplets and triplets.n_triplets < _MOST:
            facts = _with_maps(facts, path, problem, end, show)
    path.facts = facts
    return facts


def _with_classes(facts, y):
    """Return (facts with the classes of labels, the numbers of the points to show, codes of classes); y may be None."""
    if y is None:
        return facts, _sample(np.zeros(facts.n_points, dtype=int), _POINTS), None
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    facts, sample = replace(facts, classes=[str(name) for name in classes]), _sample(codes, _POINTS)
    if len(classes) > _COLOURS:  # half of the picture is of a few of them
        picked = np.sort(np.argsort(-counts, kind="stable")[:_PICKED])
        chosen = np.isin(codes, picked)
        halves = [np.flatnonzero(chosen), np.flatnonzero(~chosen)]
        sample = np.sort(np.concatenate([half[_sample(codes[half], _POINTS // 2)] for half in halves]))
        facts = replace(facts, coloured=picked)
    return replace(facts, sample_classes=codes[sample]), sample, codes


def _with_frames(facts, path, points, measure, end, show):
    """Return facts with views of the points and errors at some lambdas, as many as there is time for.

    points: all of them, the codes of their classes (or None), and the numbers of those to show.
    """
    X, codes, sample = points
    some = _sample(np.zeros(len(X), dtype=int) if codes is None else codes, _FITTED)

    def view(L):
        return flat(mapped(X[sample], L), plane_of(mapped(X[some], L), None if codes is None else codes[some]))

    left_out = list(facts.left_out)
    if measure is not None and time.perf_counter() >= end:
        measure = None
        left_out.append("errors")
    before = Measured() if measure is None else measure(None)
    views, seen, wanted = {}, {}, _spread(len(path), _FRAMES)
    for t in _in_time(_coarse_to_fine(wanted), end):
        L = path.components(t)
        views[t], seen[t] = view(L), before if measure is None else measure(L)
        show(f"errors and pictures of {len(views)} of {len(wanted)} lambdas")
    if len(views) < len(wanted):
        left_out.append(f"{len(wanted) - len(views)} of the {len(wanted)} lambdas to show")
    frames, first = np.array(sorted(views)), view(None)
    return replace(
        facts,
        left_out=left_out,
        error_before=before.error,
        errors=None if before.error is None else np.array([seen[t].error for t in frames]),
        frames=frames,
        before=first.astype(np.float32),
        after=turned_one_by_one([views[t] for t in frames], first),
        alike_of=None if before.alike is None else facts.alike_of,
        alike_before=before.alike,
        alike=None if before.alike is None else np.array([seen[t].alike for t in frames]),
    )


def _with_band(facts, path, problem, data, comparisons_test, end):
    """Return facts with bounds of the error between the lambdas too, if there is time for that."""
    try:
        with silent(), deadline(None if end == inf else max(end - time.perf_counter(), 1e-3)):
            if facts.error_of == "comparisons":
                bounds = comparison_bounds(path, data[0], comparisons_test, problem)
            else:
                bounds = votes_over(path, problem, *data, min(facts.k, len(data[0])))
    except OutOfTime:
        return replace(facts, left_out=[*facts.left_out, "the error between lambdas"])
    return replace(facts, band_lambdas=bounds.lambdas, band_lower=bounds.lower, band_upper=bounds.upper)


def _with_influence(facts, path, problem, y, names, end):
    """Return facts with who can move the metric most at the lambda that is shown first, where that is known."""
    if not problem.triplets.lists_triplets or time.perf_counter() >= end:
        return facts
    try:
        with deadline(None if end == inf else max(end - time.perf_counter(), 1e-3)):
            found = path.influence(int(facts.frames[opening(facts)]), problem)
    except OutOfTime:
        return replace(facts, left_out=[*facts.left_out, "who could move the metric most"])
    except InputError:  # neighbours that somebody else has found
        return facts
    if not found.size > 0:
        return facts

    name = called(names, "row")

    def told(index):
        if found.of == "points":
            return name(index) + ("" if y is None else f" ({np.asarray(y)[index]})")
        a, b, c = problem.triplets.indices(index, index + 1)[0].tolist()
        return f"{name(a)} is closer to {name(b)} than to {name(c)}"

    shares = found.bounds / found.size
    bounded = np.flatnonzero(shares <= 1)[:_NAMED]  # a larger bound says nothing
    return replace(
        facts,
        influence_of=found.of,
        influence_names=[told(i) for i in found.indices[bounded].tolist()],
        influence_shares=shares[bounded],
        influence_half=float(np.median(shares)),
        influence_open=int(np.count_nonzero(shares > 1)),
    )


def _with_details(facts, path, problem, data, names, end):
    """Return facts with what the lambda that is shown first says of single points, where there is time for it."""
    suspects = problem.triplets.lists_triplets and problem.triplets.n_triplets < _LISTED
    if time.perf_counter() >= end:
        return replace(facts, left_out=[*facts.left_out, "suspects"]) if suspects else facts
    if suspects:
        facts = with_suspects(facts, path, problem, *data[:2], names[0])
    if facts.errors is not None and facts.error_of == "neighbours":
        facts = with_held_out(
            facts, path, data, [called(some, word) for some, word in zip(names, ("row", "held-out"), strict=True)]
        )
    return facts


def _with_maps(facts, path, problem, end, show):
    """Return facts with what screening can prove from some of the solutions, as many as there is time for."""
    few = problem.triplets.n_triplets >= _MANY
    wanted = 1 + _spread(len(path) - 1, _FEW_STOPS if few else _STOPS)
    done = {}
    for t in _in_time(_coarse_to_fine(wanted), end, least=0):
        left = None if end == inf else max(end - time.perf_counter(), 1e-3)
        rates = screening_maps.rates_by_sphere(problem, path, [t], max_seconds=left)
        dynamic = screening_maps.dynamic_map(problem, path, [t], max_seconds=left)[1]
        ranges = screening_maps.range_map(problem, path, [t])
        if time.perf_counter() < end:  # otherwise its solves may have been cut short
            done[t] = rates, dynamic[0], ranges[0]
        show(f"what spheres prove at {len(done)} of {len(wanted)} lambdas")
    if len(done) < len(wanted):
        missing = f"{len(wanted) - len(done)} of the {len(wanted)} lambdas of the maps"
        facts = replace(facts, left_out=[*facts.left_out, missing])
    if not done:
        return facts
    stops = np.array(sorted(done))
    rates, dynamic, ranges = zip(*(done[t] for t in stops), strict=True)
    longest = max(map(len, dynamic))
    return replace(
        facts,
        stops=stops,
        rates={name: [rate[name][0] for rate in rates] for name in rates[0]},
        dynamic_iterations=screening_maps.EVERY * np.arange(longest),
        dynamic=np.array([np.pad(row, (0, longest - len(row)), constant_values=np.nan) for row in dynamic]),
        ranges=np.array(ranges)[:, facts.frames],
    )


def _in_time(items, end, least=1):
    """Yield items while there is time, so many at least: the next one is expected to take as long as the last."""
    now, last = time.perf_counter(), 0.0
    for place, item in enumerate(items):
        if place >= least and now + last >= end:
            return
        yield item
        begin, now = now, time.perf_counter()
        last = now - begin


def _coarse_to_fine(values):
    """Return the values in another order, such that however many come first are spread over all of them."""
    sizes = (2**power + 1 for power in range(1 + len(values).bit_length()))
    return list(dict.fromkeys(values[place].item() for size in sizes for place in _spread(len(values), size)))


def _spread(n, most):
    """Return at most so many of 0 ... n - 1, evenly, the first and the last among them."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(int))


def _sample(codes, most):
    """Return the numbers of at most so many points, every class with its share."""
    if len(codes) <= most:
        return np.arange(len(codes))
    order = np.argsort(codes, kind="stable")
    return np.sort(order[_spread(len(codes), most)])
