"""``triscreen bench``: what this machine does, in a minute."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from triscreen.cli.common import answer, command, table
from triscreen.cli.options import Debug, Json, refuse_idle
from triscreen.cli.outputs import check_files
from triscreen.errors import InputError

PATH = {"ratio": 0.9, "n_lambdas": 40, "tol": 1e-4}


@command
def bench(
    ctx: typer.Context,
    experiments: Annotated[
        list[str] | None,
        typer.Argument(help="Experiments of the folder benchmarks, or all of them: all.", show_default=False),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="The smallest data only.")] = False,
    data: Annotated[Path | None, typer.Option(help="Folder of data sets, for experiments.", show_default=False)] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of results, for experiments.", show_default=False)
    ] = None,
    json: Json = False,
    debug: Debug = False,
):
    """Measure this machine on the embedded data sets: a path with and without screening, and one pass.

    With names of experiments (triscreen bench all): the paper's tables and figures and the peers, from a checkout.

    Example: triscreen bench --quick
    """
    refuse_idle(ctx)
    if experiments:
        check_files({"data": data}, {"output": output}, folders=("output",))
        return _experiments(experiments, quick, data, output)
    if data is not None or output is not None:
        raise InputError("data and output are for experiments: name some, or all of them with: triscreen bench all")
    from triscreen.datasets import EMBEDDED

    results = [_measure(name) for name in (EMBEDDED[:2] if quick else EMBEDDED)]
    if json:
        answer({"results": results})
        return
    rows = [
        [r["data"], f"{r['n_triplets']:,}", f"{r['path_seconds']:.2f}", f"{r['path_seconds_without']:.2f}",
         f"{r['path_seconds_without'] / r['path_seconds']:.1f}", f"{1e3 * r['pass_seconds']:.2f}",
         f"{1e3 * r['numpy_seconds']:.1f}", f"{r['numpy_seconds'] / r['pass_seconds']:.0f}"]
        for r in results
    ]  # fmt: skip
    print("paths of 40 lambdas, k=10, ratio 0.9, gap 1e-4; one pass through pairs, and by numpy triplet by triplet")
    table(["data", "triplets", "path s", "without screening", "ratio", "pass ms", "numpy ms", "ratio"], rows)


def _experiments(names, quick, data, output):
    """Run the folder benchmarks of the checkout that this package is in."""
    program = Path(__file__).parents[3] / "benchmarks" / "run.py"
    if not program.exists():
        raise InputError(f"experiments={names[0]!r}: they are in the folder benchmarks of a checkout, not in a package")
    options = [] if names == ["all"] else list(names)
    if quick:
        options.append("--quick")
    for name, value in (("--data", data), ("--out", output)):
        if value is not None:
            options += [name, str(value)]
    return subprocess.run([sys.executable, str(program), *options]).returncode


def _measure(name):
    """Return the seconds of paths and passes on one data set."""
    import numpy as np

    import triscreen as ts
    from triscreen._utils.threads import single_threaded_blas
    from triscreen.datasets import read_points

    points = read_points(name)
    X = ts.Scaling().fit_transform(points.X)
    problem = ts.Problem(X, ts.knn_triplets(X, points.y, k=10))
    ts.solve_path(problem, ratio=0.5, n_lambdas=3)  # compiles
    ts.solve_path(problem, ratio=0.5, n_lambdas=3, screening=None)
    lam, M = 0.01 * problem.lambda_max(), np.eye(X.shape[1])
    indices = problem.triplets.indices()

    def per_triplet():
        i, j, k = indices.T
        u, v = X[i] - X[k], X[i] - X[j]
        b = 1 - (np.einsum("ti,ti->t", u @ M, u) - np.einsum("ti,ti->t", v @ M, v))
        a = np.clip(b / 0.05, 0, 1)
        values = np.linalg.eigvalsh((u * a[:, None]).T @ u - (v * a[:, None]).T @ v)
        return np.sum(a * b - 0.025 * a * a) + lam / 2 * np.sum(M * M), values

    def per_triplet_on_one_thread():
        with single_threaded_blas():
            per_triplet()

    # On a busy machine BLAS threads can make numpy ten times slower than it has to be: it gets the better of both.
    assert abs(per_triplet()[0] / problem.certificate(M, lam).primal - 1) < 1e-9
    return {
        "data": name,
        "n_triplets": problem.triplets.n_triplets,
        "n_pairs": problem.triplets.n_pairs,
        "path_seconds": _best_of(2, lambda: ts.solve_path(problem, **PATH)),
        "path_seconds_without": _best_of(2, lambda: ts.solve_path(problem, screening=None, **PATH)),
        "pass_seconds": _best_of(10, lambda: problem.certificate(M, lam)),
        "numpy_seconds": min(_best_of(5, per_triplet), _best_of(5, per_triplet_on_one_thread)),
    }


def _best_of(times, work):
    spent = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        spent.append(time.perf_counter() - begin)
    return min(spent)
