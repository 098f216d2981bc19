"""Shards on Dask: what a pass and a solution take on one and two workers, and without Dask."""

from __future__ import annotations

from benchmarks.experiments import common
from benchmarks.experiments.common import ratios, sig
from benchmarks.experiments.verdicts import show as spread

TITLE = "Seconds with Dask"
SIZES = ({"n": 50_000, "d": 32, "k": 5}, {"n": 20_000, "d": 200, "k": 5})
NAMES = {"0": "no Dask, one thread", "1": "one worker", "2": "two workers"}


def cells(quick, seeds):
    return [{"kind": "dask", **size} for size in (({"n": 600, "d": 4, "k": 2, "repeats": 2},) if quick else SIZES)]


def show(results):
    found = [one for one in map(results.get, cells(results.quick, results.seeds)) if one]
    if not found:
        return "Not run.\n", {}
    rows = []
    for one in found:
        for what, title in (("pass", "one pass"), ("solve", "one solution")):
            by = {workers: numbers[what] for workers, numbers in one["workers"].items()}
            rows.append((f"{one['n']:,} x {one['d']}, {one['pairs']:,} pairs", title,
                         *(spread([1e3 * value for value in by[workers]], "{:.0f}") for workers in NAMES),
                         spread(ratios(by["1"], by["2"])), spread(ratios(by["0"], by["1"]))))  # fmt: skip
        rows.append((f"{one['n']:,} x {one['d']}", "neighbours and set-up",
                     *(f"{1e3 * one['workers'][workers]['setup']:.0f}" for workers in NAMES), "", ""))  # fmt: skip
    header = ("", "milliseconds", *NAMES.values(), "two workers faster than one", "one worker faster than no Dask")
    shards = sorted({row[1] for row in found[0]["rounds"]})
    rounds = {(dim, count): seconds for dim, count, seconds in found[0]["rounds"]}
    lines = [
        "Workers are processes of one thread each on this machine, with its two cores for them and the driver: what is "
        "measured is what a round costs, not what a cluster gains. One solution: from nothing at lambda_max / 100 to "
        "the relative gap 1e-4. [distributed.md](distributed.md) has larger problems and what follows for clusters.",
        "",
        common.table(header, rows),
        "",
        "A round of tasks that return the d x d matrix they are sent, in milliseconds, two workers:",
        "",
        common.table(("d", *(f"{count} shards" for count in shards)),
                     [(dim, *(sig(1e3 * rounds[dim, count], 3) for count in shards))
                      for dim in sorted({dim for dim, _ in rounds})]),
    ]  # fmt: skip
    return "\n".join(lines) + "\n", {}
