"""``triscreen demo``, ``triscreen report`` and ``triscreen info``."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Annotated

import typer

from triscreen.cli.common import answer, command, from_file, say, values
from triscreen.cli.options import Debug, Json, Quiet
from triscreen.cli.outputs import check_files
from triscreen.errors import InputError


@command
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The report.")] = Path("triscreen-demo.html"),
    quiet: Quiet = False,
    debug: Debug = False,
):
    """Show all of it on handwritten digits: a path of certified metrics, what was proven, errors, and a report.

    It takes well under a minute.

    Example: triscreen demo
    """
    check_files({}, {"output": output})
    from rich.console import Console
    from sklearn.model_selection import train_test_split

    import triscreen as ts
    from triscreen._utils.progress import silent
    from triscreen.cli.story import Story
    from triscreen.datasets import read_points
    from triscreen.path.api import AUTO
    from triscreen.report import gather, write_report

    digits = read_points("digits")
    X, X_test, y, y_test = train_test_split(digits.X, digits.y, test_size=0.4, random_state=0, stratify=digits.y)
    problem = ts.Problem(X, ts.knn_triplets(X, y, k=5))
    console = Console(soft_wrap=True, highlight=False)
    if not quiet:
        console.print(
            f"Handwritten digits: {len(X):,} points of {X.shape[1]} pixels make {problem.triplets.n_triplets:,} "
            f"triplets 'a is closer to b than to c' over {problem.triplets.n_pairs:,} pairs.\n"
            "A metric is learned for ever smaller lambda, each one certified: no other is better by more than its gap."
        )
    with silent(quiet):
        path = ts.solve_path(problem, ratio=0.8, tol=1e-4, screening=AUTO)  # what is irrelevant is the story
        gather(path, problem, X, y, X_test, y_test, feature_names=digits.feature_names, source="digits")
    write_report(path, output)
    if not quiet:
        Story(path).show()
        console.print(
            "irrelevant: triplets proven not to matter, the solver never saw them; passes: work, in evaluations of all "
            "pairs;\nerror: of 3 nearest neighbours on the points held out."
        )
    say(f"wrote {str(output)!r}")
    return 0 if path.converged.all() else 1


@command
def report(
    file: Annotated[Path, typer.Argument(help="A file that triscreen path has written.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.", show_default=False)],
    debug: Debug = False,
):
    """Write the report of a path: one HTML file that needs nothing else.

    What it shows was gathered by triscreen path and is in the file: all of it, if that had --report too.

    Example: triscreen report wine.path -o wine.html
    """
    check_files({"file": file}, {"output": output})
    import triscreen as ts
    from triscreen.report import write_report

    with from_file(file, "file"):
        found = ts.load(file)
        if not isinstance(found, ts.Path):
            raise InputError(f"file={str(file)!r} holds a model: a report needs a path, make one with triscreen path")
        if not len(found):
            raise InputError(f"file={str(file)!r} holds a path without a lambda: there is nothing to report")
        write_report(found, output)
    if found.facts is None or found.facts.rates is None:
        say("without the panels that solve the problem again: triscreen path gathers them if it has --report")
    say(f"wrote {str(output)!r}")


@command
def info(
    file: Annotated[Path | None, typer.Argument(help="A model or a path.", show_default=False)] = None,
    json: Json = False,
    debug: Debug = False,
):
    """Say what a model or a path file holds; without a file, versions and what this machine offers.

    The second is what to send with a report of a bug.

    Example: triscreen info wine.model
    """
    found = _machine() if file is None else _content(file)
    if json:
        answer(found)
    else:
        values("this machine" if file is None else file.name, found)


def _machine():
    from importlib import metadata

    from threadpoolctl import threadpool_info

    import triscreen as ts
    from triscreen._utils.threads import cpu_count

    found = {"triscreen": ts.__version__, "python": platform.python_version(), "system": platform.platform()}
    installed = {package.name.lower(): package.version for package in metadata.distributions() if package.name}
    for name in ("numpy", "scipy", "scikit-learn", "numba", "typer", "rich", "plotly", "pyarrow"):
        found[name] = installed.get(name, "not installed")
    found["cores"] = f"{os.cpu_count()}, of which this process may use {cpu_count()}"
    blas = [f"{pool['internal_api']} {pool.get('version')}" for pool in threadpool_info() if pool["user_api"] == "blas"]
    found["blas"] = ", ".join(sorted(set(blas))) or "unknown"
    return found


def _content(file):
    import triscreen as ts

    with from_file(file, "file"):
        found = ts.load(file)
        return _path(found) if isinstance(found, ts.Path) else _model(found)


def _path(path):
    told = {"kind": "path", "lambdas": len(path), "triplets": path.n_triplets, "features": path.n_features,
            "cone": path.cone, "prior": _prior(path), "tol": path.tol, "stopped_by": path.stopped_by}  # fmt: skip
    if len(path):
        told.update(
            largest_lambda=float(path.lambdas[0]),
            smallest_lambda=float(path.lambdas[-1]),
            largest_relative_gap=float(path.rel_gaps.max()),
            converged=bool(path.converged.all()),
            mean_share_proven_irrelevant=float(path.screening_rates.mean()),
        )
    return told


def _prior(path):
    """Return what a path's prior is called: "none", or "a metric" where nobody has given it a name."""
    named = None if path.facts is None else path.facts.prior
    return named or ("a metric" if path.has_prior else "none")


def _model(found):
    from triscreen.cli.learn import begun

    steps = [step for _, step in found.steps] if hasattr(found, "steps") else [found]
    metric = steps[-1]
    told = {"kind": "model", "metric": type(metric).__name__}
    if len(steps) > 1:
        told["scale"] = steps[0].kind
        if hasattr(steps[0], "feature_names_in_"):
            told["feature_names"] = ", ".join(steps[0].feature_names_in_)
    if hasattr(metric, "components_"):
        told.update(features=metric.n_features_in_, rank=len(metric.components_), triplets=metric.n_triplets_,
                    **begun(metric), lam=metric.lam_, relative_gap=metric.rel_gap_,
                    converged=bool(metric.converged_))  # fmt: skip
    return told
