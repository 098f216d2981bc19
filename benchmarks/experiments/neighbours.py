"""Seconds of the search for neighbours, next to scikit-learn's brute force and faiss."""

from __future__ import annotations

import numpy as np

from benchmarks.experiments import common
from benchmarks.experiments.common import ratios
from benchmarks.experiments.verdicts import show as spread

TITLE = "Seconds of the search for neighbours"
SIZES = tuple({"n": n, "d": d, "k": 10} for d in (10, 20, 80) for n in (8_000, 32_000))
SIZES += ({"n": 64_000, "d": 20, "k": 10}, {"n": 20_000, "d": 784, "k": 10, "data": "mnist"})
LABELS = {"triscreen": "triscreen", "sklearn": "scikit-learn", "faiss": "faiss (float32)"}


def cells(quick, seeds):
    sizes = ({"n": 3_000, "d": 5, "k": 3, "rounds": 2, "methods": ["triscreen", "sklearn"]},) if quick else SIZES
    return [{"kind": "neighbours", **size} for size in sizes]


def show(results):
    found = [one for one in map(results.get, cells(results.quick, results.seeds)) if one]
    if not found:
        return "Not run.\n", {}
    methods = [name for name in LABELS if any(name in one["methods"] for one in found)]
    rows = []
    for one in found:
        by = {name: numbers["seconds"] for name, numbers in one["methods"].items()}
        row = [f"{one['n']:,} x {one['d']}", one["k"], len(by["triscreen"])]
        for name in methods:
            text = spread(by[name], None) if name in by else ""
            row.append(
                text + (f" ({spread(ratios(by[name], by['triscreen']))})" if name != "triscreen" and text else "")
            )
        rows.append([*row, f"{1e9 * np.min(one['methods']['triscreen']['processor']) / one['n'] ** 2:.2f}"])
    header = ("points", "k", "rounds", *(LABELS[name] for name in methods), "ns x core a distance")
    lines = [
        "k nearest of the same class and k nearest of the others, for every point, all threads; synthetic classes, and "
        "mnist's first 20,000. Seconds, in brackets how many times those of triscreen; methods took turns. triscreen "
        "is exact in float64 with ties to the smaller index; faiss (IndexFlatL2) counts in float32, so that its "
        "neighbours are not always the nearest.",
        "",
        common.table(header, rows),
    ]
    return "\n".join(lines) + "\n", {}
