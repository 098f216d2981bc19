"""The commands of ``triscreen`` within this process: much faster than a process each."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace
from unittest import mock

import numpy as np
import typer

from triscreen.cli.app import app

FUNCTIONS = {command.callback.__name__: command.callback for command in app.registered_commands}
COMMANDS = typer.main.get_command(app).commands
# What the parameters of all commands are: a new one has to be put into one of these, or tests fail.
READ = ("data", "comparisons", "model", "train", "file", "prior", "candidates", "validate")
WRITTEN = ("output", "report", "suspects", "checkpoint")
TEXTS = (
    "label",
    "names",
    "drop",
    "categories",
    "dates",
    "keep",
    "memory",
    "experiments",
    "scheduler",
    "lam",
)  # of type text or path, but no files


def invoke(*arguments, stdin=b""):
    """Run a command; return its exit code, stdout and stderr."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    given = SimpleNamespace(buffer=io.BytesIO(stdin))
    with mock.patch.multiple(sys, stdout=out, stderr=err, stdin=given):
        try:
            app(list(map(str, arguments)), prog_name="triscreen")
        except SystemExit as end:
            code = end.code or 0
        out.flush()
        err.flush()
    return SimpleNamespace(
        code=code, out=out.buffer.getvalue().decode(), err=err.buffer.getvalue().decode(errors="replace")
    )


def refusal(*arguments, code=2, **more):
    """Return the sentence of a command that fails, having said nothing else on stdout."""
    done = invoke(*arguments, **more)
    assert (done.code, done.out) == (code, ""), done
    assert "Traceback" not in done.err
    lines = done.err.splitlines()
    assert lines[-1].startswith("triscreen: error: ")
    assert "should not happen" not in lines[-1]
    return lines[-1]


def contents(folder):
    """Return everything in a folder: {name: bytes}."""
    return {str(file.relative_to(folder)): file.read_bytes() if file.is_file() else None for file in folder.rglob("*")}


def make_files(folder):
    """Write points, comparisons, a model and a path of them; return the names by the parameters that take them."""
    import triscreen as ts
    from triscreen.cli.learn import make_model

    rng = np.random.default_rng(0)
    y = np.arange(15) % 3
    X = rng.normal(size=(15, 2)) + 2 * np.stack([y == 1, y == 2], axis=1)
    for name in ("points", "train", "held"):
        rows = [f"{a!r},{b!r},c{label},n{i}" for i, ((a, b), label) in enumerate(zip(X.tolist(), y, strict=True))]
        (folder / f"{name}.csv").write_text("\n".join(["a,b,class,name", *rows, ""]), encoding="utf-8")
        X = X + 0.1
    rows = [rng.choice(15, 3, replace=False) for _ in range(30)]
    rows = [(a, b, c) if abs(X[a, 0] - X[b, 0]) < abs(X[a, 0] - X[c, 0]) else (a, c, b) for a, b, c in rows]
    (folder / "compared.csv").write_text("".join(f"{a},{b},{c}\n" for a, b, c in rows), encoding="utf-8")
    scaling = ts.Scaling().fit(X, feature_names=["a", "b"])
    metric = ts.TripletMetric(2).fit((X - scaling.shift_) * scaling.factor_, y)
    ts.save(make_model(scaling, metric), folder / "a.model")
    voting = ts.TripletClassifier(2, cv=2, candidates=(None,), ratios=2).fit((X - scaling.shift_) * scaling.factor_, y)
    ts.save(make_model(scaling, voting), folder / "a.voting")
    path = ts.solve_path(ts.Problem(X, ts.knn_triplets(X, y, 2)), n_lambdas=3, ratio=0.5, tol=1e-3)
    ts.save(path, folder / "a.path")
    ts.save(metric.get_mahalanobis_matrix(), folder / "a.metric")
    ts.save(metric.solution_, folder / "a.solution")
    return {"data": folder / "points.csv", "comparisons": folder / "compared.csv", "model": folder / "a.model",
            "train": folder / "train.csv", "file": folder / "a.path", "validate": folder / "held.csv",
            "prior": folder / "a.metric", "candidates": folder / "a.solution",
            "voting": folder / "a.voting"}  # fmt: skip
