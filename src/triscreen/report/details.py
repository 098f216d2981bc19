"""What one lambda says of single points: which ones cost most, whom they are near, and which held-out ones go wrong."""

from __future__ import annotations

import csv
import io
import numbers
import os
from dataclasses import replace

import numpy as np

from triscreen._utils.archive import replacing
from triscreen._utils.threads import Threads
from triscreen.datasets.text import escaped
from triscreen.errors import InputError
from triscreen.path import Path
from triscreen.selection.scores import most_votes
from triscreen.triplets.neighbours import k_nearest

_SUSPECTS, _NEIGHBOURS, _EXAMPLES, _PAIRS = 1000, 5, 8, 400
_FEATURES = 5  # whose values are shown: those that weigh most
_BLOCK = 1 << 20  # triplets at a time


def opening(facts):
    """Return the place, among the lambdas shown, of the one that a page opens with: the best, or the middle one."""
    return len(facts.frames) // 2 if facts.errors is None else int(np.argmin(facts.errors))


def losses(problem, margins):
    """Return the loss of every triplet, times its weight."""
    gamma, short = getattr(problem.loss, "gamma", 0.0), 1.0 - margins
    alpha = np.clip(short / gamma, 0.0, 1.0) if gamma > 0 else (short > 0).astype(float)
    found, weights = alpha * short - 0.5 * gamma * alpha**2, getattr(problem.triplets, "weights", None)
    return found if weights is None else found * weights


def weights_of(path, t, spread):
    """Return the share of each feature in the mean squared distance by itself; spread: standard deviations, or None."""
    weights = np.square(path.components(t)).sum(axis=0) * (1.0 if spread is None else np.square(spread))
    return weights / (weights.sum() or 1.0)


def called(names, word):
    """Return a function from the number of a point to what it is called: its name, its row in a file, its number."""
    if names is None:
        return lambda i: f"{word} {i}"
    return lambda i: f"row {names[i]}" if _is_row(names[i]) else str(names[i])


def with_suspects(facts, path, problem, X, y, names):
    """Return facts with the points, or comparisons, that cost most at the lambda that a page opens with."""
    t = int(facts.frames[opening(facts)])
    cost, triplets = losses(problem, path[t].margins(problem)), problem.triplets
    if y is None:
        name, most = called(names, "row"), _most(cost)
        told = [[*map(name, triplets.indices(i, i + 1)[0].tolist()), _digits(cost[i])] for i in most.tolist()]
        return replace(facts, suspects=[["point", "should be closer to", "than to", "cost"], *told])
    points = np.zeros(len(X))
    for start in range(0, len(cost), _BLOCK):
        some = cost[start : start + _BLOCK]
        for column in triplets.indices(start, start + len(some)).T:
            points += np.bincount(column, some, minlength=len(X))
    y, most = np.asarray(y), _most(points)
    near = y[k_nearest(X @ path.components(t).T, min(_NEIGHBOURS, len(X) - 1), Threads(None))[0][most]]
    shown = np.argsort(-weights_of(path, t, facts.feature_spread), kind="stable")[:_FEATURES]
    values = X[np.ix_(most, shown)]
    if facts.shift is not None:
        shift = facts.shift[shown]
        values = values / facts.factor[shown] + shift
        values[np.abs(values) < 1e-12 * np.abs(shift)] = 0.0  # what rounding leaves of it
    rows = names is None or all(map(_is_row, names))
    told = []
    for i, labels, own in zip(most.tolist(), near, values, strict=True):
        found, counts = np.unique(labels, return_counts=True)
        other = f"{np.count_nonzero(labels != y[i])} of {len(labels)}"
        name = i if names is None else int(names[i]) if rows else str(names[i])
        told.append([name, str(y[i]), str(found[counts.argmax()]), other, _digits(points[i] / cost.sum()),
                     *map(_digits, own)])  # fmt: skip
    titles = [facts.feature_names[j] if facts.feature_names else f"feature {j}" for j in shown]
    heads = ["row" if rows else "point", "label", "its neighbours are", "other labels", "share of the loss", *titles]
    return replace(facts, suspects=[heads, *told])


def _most(cost):
    """Return the numbers of the largest costs, the largest first; none that cost nothing."""
    most = np.argsort(-cost, kind="stable")[:_SUSPECTS]
    return most[cost[most] > 0]


def _is_row(name):
    return isinstance(name, numbers.Integral)


def _digits(value):
    return float(f"{value:.6g}")


def with_held_out(facts, path, data, names):
    """Return facts with whom held-out points are near, before and after, and what they are taken for.

    data: X, y, X_test, y_test; names: functions from numbers of points, and of held-out ones, to what they are called.
    """
    X, y, X_test, y_test = (np.asarray(part) for part in data)
    L, k = path.components(int(facts.frames[opening(facts)])), min(max(facts.k, _NEIGHBOURS), len(X))
    near = [k_nearest(Z, k, Threads(None), Q)[0] for Z, Q in ((X, X_test), (X @ L.T, X_test @ L.T))]
    classes, codes = np.unique(y, return_inverse=True)
    before, after = (classes[most_votes(codes[found[:, : facts.k]], len(classes))] for found in near)
    wrong, now = before != y_test, after != y_test
    # Those that learning mends come first, then those that it spoils, then those that stay wrong.
    order = np.argsort(np.select([wrong & ~now, ~wrong & now, wrong & now], [0, 1, 2], 3), kind="stable")[:_EXAMPLES]
    examples = [
        [
            names[1](i),
            str(y_test[i]),
            *([[names[0](j), str(y[j])] for j in found[i, :_NEIGHBOURS].tolist()] for found in near),
        ]
        for i in order.tolist()
    ]
    pairs, counts = np.unique(np.stack([y_test.astype(str), after.astype(str)]), axis=1, return_counts=True)
    told = sorted(([*pair, int(n)] for pair, n in zip(pairs.T.tolist(), counts, strict=True)), key=lambda row: -row[2])
    if len(facts.classes) > _PAIRS**0.5:
        told = [row for row in told if row[0] != row[1]][:_PAIRS]
    return replace(facts, neighbours=examples, confusion=told,
                   changed=[int((wrong & ~now).sum()), int((~wrong & now).sum())])  # fmt: skip


def suspects_csv(facts):
    """Return the table of suspects as the text of a CSV file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(escaped, row) for row in facts.suspects)
    return text.getvalue()


def write_suspects(path: Path, file: str | os.PathLike[str]) -> None:
    """Write the points, or comparisons, that cost most at the lambda that a report opens with, as CSV.

    Wrong labels and answers are often among the first; at most 1,000 are written, the costliest first. Points have
    their row (from 0 on) or their name, and their values of the five features that weigh most.

    Parameters
    ----------
    path : Path
        With its `gather`-ed facts.
    file : path
        The CSV file; it appears when it is complete.

    References
    ----------
    docs/report.md; ours.

    Examples
    --------
    >>> import os, tempfile
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_iris
    >>> from triscreen.report import gather, write_suspects
    >>> X, y = load_iris(return_X_y=True)
    >>> problem = ts.Problem(X, ts.knn_triplets(X, y, k=3))
    >>> path = ts.solve_path(problem, ratio=0.5, tol=1e-3)
    >>> facts = gather(path, problem, X, y, maps=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_suspects(path, os.path.join(folder, "suspects.csv"))
    ...     with open(os.path.join(folder, "suspects.csv")) as file:
    ...         print(file.readline().strip())
    row,label,its neighbours are,other labels,share of the loss,feature 2,feature 3,feature 0,feature 1
    """
    if path.facts is None or path.facts.suspects is None:
        raise InputError("path has no suspects: call triscreen.report.gather(path, problem, X, y) first")
    with replacing(file) as stream:
        stream.write(suspects_csv(path.facts).encode("utf-8", "replace"))
