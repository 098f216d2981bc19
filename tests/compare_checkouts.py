"""Do two checkouts compute the same numbers, bit for bit? For moves and renames, which must change none.

    python tests/compare_checkouts.py OLD NEW        folders of two checkouts; exit code 1 and the cases that differ

Each checkout solves the same problems through the public names: solutions and paths of both cones, both losses, all
kinds of triplets, every screening switch, a checkpoint and its resumption. Passes and iterations are compared, too;
seconds are not.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np


def switches(ts):
    """Every way of screening."""
    return {
        "none": None,
        "auto": "auto",
        "rrpb": ts.Screening(("rrpb", "mid"), every=3, ranges=False, active_set=False),
        "pgb": ts.Screening("pgb", every=5, ranges=False, active_set=False),
        "ranges": ts.Screening("mid", every=5, ranges=True, active_set=False),
        "both": ts.Screening("mid", every=2, ranges=True, active_set=True),
        "loss": ts.Screening("mid", every=5, at_start=False, ranges=False, active_set="loss"),
        "included": ts.Screening("mid", every=3, ranges=False, include_solution=True),
        "linear": ts.Screening("gb", rule="linear", every=4, ranges=True),
        "dear": ts.Screening(("cdgb", "dgb", "rpb"), rule="semidefinite", every=4, ranges=False, active_set=False),
    }


def problems(ts):
    """Name and problem."""
    rng = np.random.default_rng(0)
    y = np.arange(36) % 3
    X = rng.normal(size=(36, 4)) + 0.8 * rng.normal(size=(3, 4))[y]
    wide = rng.normal(size=(14, 30))
    rows = ts.knn_triplets(X, y, 4).indices()[::3]
    sets = {
        "knn": (X, ts.knn_triplets(X, y, 4)),
        "given": (X, ts.given_triplets(rows, rng.uniform(0.2, 3, len(rows)))),
        "all": (X, ts.all_triplets(X, y)),
        "lmnn": (X, ts.all_triplets(X, y, 3, rng.uniform(0.5, 2, 36))),
        "wide": (wide, ts.knn_triplets(wide, y[:14], 2)),
        "far": (X * 2.0**100, ts.knn_triplets(X, y, 4)),
    }
    losses = {"smooth": ts.SmoothedHinge(0.05), "hinge": ts.Hinge()}
    for (name, (points, T)), (loss, made), cone in itertools.product(sets.items(), losses.items(), ("psd", "diagonal")):
        yield f"{name} {loss} {cone}", ts.Problem(points, T, loss=made, cone=cone, n_jobs=1)


def told(*values):
    """A hash of numbers and arrays."""
    digest = hashlib.blake2b(digest_size=12)
    for value in values:
        digest.update(np.ascontiguousarray(value).tobytes() if isinstance(value, np.ndarray) else repr(value).encode())
    return digest.hexdigest()


def of_solution(sol):
    events = [{key: value for key, value in event.items() if key != "seconds"} for event in sol.screening]
    history = [np.asarray(values) for name, values in sorted(sol.history.items()) if name != "seconds"]
    numbers = [float(v) for v in (sol.lam, sol.primal, sol.dual, sol.gap, sol.rounding, sol.passes, sol.smoothing)]
    return told(sol.M, numbers, int(sol.n_iter), sol.stopped_by, json.dumps(events, sort_keys=True), *history)


def of_path(path):
    """Hashes of a path, and of what it says between its lambdas."""
    between = path.at(float(np.sqrt(path.lambdas[0]) * np.sqrt(path.lambdas[-1]))) if len(path) > 1 else path[0]
    return [told(path.stopped_by, path.scanned, path.screening_rates, *map(of_solution, path)), of_solution(between)]


def cases():
    """Name and hash of everything, of the checkout that is imported here."""
    import triscreen as ts

    warnings.simplefilter("ignore")
    for name, problem in problems(ts):
        top = problem.lambda_max()
        never_listed = name.startswith(("all", "lmnn"))
        for switch, screening in switches(ts).items():
            if never_listed and getattr(screening, "rule", "sphere") != "sphere":
                continue
            label = f"{name} {switch}"
            first = ts.solve(problem, 0.3 * top, tol=1e-4, screening=screening)
            yield f"{label} solve", of_solution(first)
            yield (
                f"{label} start",
                of_solution(ts.solve(problem, 0.05 * top, tol=1e-5, screening=screening, start=first)),
            )
            path = ts.solve_path(problem, ratio=0.8, n_lambdas=8, tol=1e-5, screening=screening)
            yield f"{label} path", of_path(path)
        for solver in ("bb", "newton") if never_listed else ("bb", "newton", "dual"):
            sol = ts.solve(problem, 1e-4 * top, tol=1e-3, solver=solver, max_iter=200)
            yield f"{name} {solver}", of_solution(sol)
        yield f"{name} guarantee", of_path(ts.solve_path(problem, guarantee=0.3, tol=1e-3, n_lambdas=6))
        with tempfile.TemporaryDirectory() as folder:
            ts.solve_path(problem, ratio=0.9, n_lambdas=3, checkpoint=folder)
            yield f"{name} resumed", of_path(ts.solve_path(problem, ratio=0.9, n_lambdas=7, checkpoint=folder))


def _each(value):
    return zip(("path", "between"), value, strict=True) if isinstance(value, list) else [(None, value)]


def main(folders):
    """Run both checkouts, and compare."""
    found = []
    for folder in folders:
        environment = {**os.environ, "PYTHONPATH": os.path.join(folder, "src")}
        out = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, check=True)
        found.append(json.loads(out.stdout))
        flat = [(f"{name} {i}".removesuffix(" None"), v) for name, value in found[-1].items() for i, v in _each(value)]
        found[-1] = dict(flat)
    differ = [name for name in found[0] | found[1] if found[0].get(name) != found[1].get(name)]
    print(f"{len(found[0])} and {len(found[1])} cases, {len(differ)} differ", *differ[:20], sep="\n  ")
    return 1 if differ else 0


if __name__ == "__main__":
    if len(sys.argv) == 3:
        sys.exit(main(sys.argv[1:]))
    print(json.dumps(dict(cases())))
