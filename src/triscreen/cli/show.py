"""``triscreen demo``, ``triscreen report`` and ``triscreen info``."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Annotated

import typer

from triscreen.cli.common import answer, command, from_file, say, values
from triscreen.cli.options import Debug, Json, Quiet, Suspects
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
    from triscreen.path.api import TOLD
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
        path = ts.solve_path(problem, ratio=0.8, tol=1e-4, screening=TOLD)
        gather(path, problem, X, y, X_test, y_test, feature_names=digits.feature_names, source="digits")
    write_report(path, output)
    if not quiet:
        Story(path).show()
        console.print(
            "safe: triplets that spheres and ranges decide beforehand; proven: left out of a working set, and proven\n"
            "afterwards not to matter; passes: work, in evaluations of all pairs; error: of 3 nearest neighbours on\n"
            "the points held out. What is proven is the training objective; the error is measured, not proven."
        )
    say(f"wrote {str(output)!r}")
    return 0 if path.converged.all() else 1


@command
def report(
    file: Annotated[Path, typer.Argument(help="A file that triscreen path has written.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The HTML file to write.", show_default=False)
    ] = None,
    suspects: Suspects = None,
    debug: Debug = False,
):
    """Write the report of a path: one HTML file that needs nothing else; or its suspicious labels as CSV.

    What it shows was gathered by triscreen path and is in the file: all of it, if that had --report too.

    Example: triscreen report wine.path -o wine.html
    """
    check_files({"file": file}, {"output": output, "suspects": suspects})
    if output is None and suspects is None:
        raise InputError("output is not given: say where to write with --output FILE, or -o FILE, or --suspects FILE")
    import triscreen as ts
    from triscreen.report import write_report, write_suspects

    with from_file(file, "file"):
        found = ts.load(file)
        if not isinstance(found, ts.Path):
            raise InputError(f"file={str(file)!r} holds a model: a report needs a path, make one with triscreen path")
        if not len(found):
            raise InputError(f"file={str(file)!r} holds a path without a lambda: there is nothing to report")
        if suspects is not None and (found.facts is None or found.facts.suspects is None):
            raise InputError(
                f"file={str(file)!r} holds no suspects: triscreen path gathers them, of --triplets knn or --comparisons"
            )
        if output is not None:
            write_report(found, output)
        if suspects is not None:
            write_suspects(found, suspects)
    if output is not None and (found.facts is None or found.facts.rates is None):
        say("without the panels that solve the problem again: triscreen path gathers them if it has --report")
    say("wrote " + " and ".join(repr(str(written)) for written in (output, suspects) if written is not None))


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
            mean_share_safe_beforehand=float(path.safe_rates.mean()),
            mean_share_proven_afterwards=float(path.proven_rates.mean()),
        )
        told.update(_best(path), **_columns(None if path.facts is None else path.facts.columns))
    return told


def _best(path):
    """Return what --lam best takes, where there are held-out errors."""
    from triscreen.estimators.of_path import best_of

    number = best_of(path)
    if number is None:
        return {}
    place = list(path.facts.frames).index(number)
    return {"best_lambda": float(path.lambdas[number]), "error_at_best_lambda": float(path.facts.errors[place])}


def _columns(told):
    """Return what is known of the columns of a file that features are made of."""
    if told is None:
        return {}
    kinds = {column["title"]: column["kind"] for column in told["columns"] if column["kind"] != "number"}
    named = ", ".join(f"{'a column' if title is None else title} ({kind})" for title, kind in kinds.items())
    return {"columns": named or "numbers", "missing": told["missing"]}


def _prior(path):
    """Return what a path's prior is called: "none", or "a metric" where nobody has given it a name."""
    named = None if path.facts is None else path.facts.prior
    return named or ("a metric" if path.has_prior else "none")


def _model(found):
    import numpy as np

    from triscreen.cli.telling import begun

    if isinstance(found, np.ndarray):
        return {"kind": "metric", "features": len(found), "cone": "diagonal" if found.ndim == 1 else "psd"}
    if hasattr(found, "rel_gap"):
        return {"kind": "solution", "features": len(found.M), "lam": found.lam, "relative_gap": found.rel_gap,
                "converged": bool(found.converged)}  # fmt: skip
    steps = [step for _, step in found.steps if not isinstance(step, str)] if hasattr(found, "steps") else [found]
    learned = [step for step in steps if hasattr(step, "get_mahalanobis_matrix")]
    metric = learned[-1] if learned else steps[-1]
    told = {"kind": "model", "metric": type(metric).__name__}
    if len(steps) > 2 or (len(steps) == 2 and not hasattr(steps[0], "factor_")):
        told["steps"] = ", ".join(type(step).__name__ for step in steps)
    elif len(steps) == 2:
        told["scale"] = steps[0].kind
    if hasattr(steps[0], "feature_names_in_"):
        told["feature_names"] = ", ".join(map(str, steps[0].feature_names_in_))
    told.update(_columns(getattr(steps[0], "columns_", None)))
    if not hasattr(metric, "components_"):
        return {**told, "fitted": False} if learned else told
    told.update(features=metric.n_features_in_, rank=len(metric.components_), triplets=metric.n_triplets_,
                **begun(metric), lam=metric.lam_, relative_gap=metric.rel_gap_,
                converged=bool(metric.converged_))  # fmt: skip
    if hasattr(metric, "vote_neighbors_"):
        told.update(classes=", ".join(map(str, metric.classes_)), points=len(metric.points_),
                    vote_neighbors=metric.vote_neighbors_, vote_weights=metric.vote_weights_)  # fmt: skip
    if getattr(metric, "error_before_", None) is not None:
        told.update(error_before=metric.error_before_[0], error_after=metric.error_after_[0])
    return told
