"""``triscreen verify``."""

from __future__ import annotations

import warnings
from decimal import ROUND_CEILING, Context
from pathlib import Path
from typing import Annotated

import typer

from triscreen._utils.progress import silent
from triscreen.cli.common import about, answer, command, from_file, say, table
from triscreen.cli.made import hold_out, make_problem, points_of_neighbours, read_data
from triscreen.cli.options import Comparisons, Data, Debug, Json, Quiet
from triscreen.cli.outputs import check_files
from triscreen.cli.starts import read_start, words_of
from triscreen.errors import ConvergenceWarning, InputError

# How a table is read, where a path does not say.
_READING = {"missing": None, "categories": [], "dates": [], "decimal": "."}


@command
def verify(
    file: Annotated[Path, typer.Argument(help="A file that triscreen path has written.", show_default=False)],
    data: Data,
    comparisons: Comparisons = None,
    every: Annotated[int, typer.Option(help="Only every so many-th lambda.")] = 1,
    exact: Annotated[
        bool, typer.Option("--neighbors", help="Look for the neighbours again too, in exact arithmetic.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
):
    """Prove the gaps of a path again, in ball arithmetic and without the code that has solved it.

    The problem is made from the data as triscreen path made it, and must be the same to the bit.

    Example: triscreen verify wine.path wine --every 10
    """
    check_files({"file": file, "data": data, "comparisons": comparisons}, {})
    import triscreen as ts

    with from_file(file, "file"):
        found = ts.load(file)
    if not isinstance(found, ts.Path):
        raise InputError(f"file={str(file)!r} holds a model: triscreen path writes what can be verified")
    made = _made(found, file)
    if made["comparisons"] != (comparisons is not None):
        said = "was" if made["comparisons"] else "was not"
        raise InputError(f"comparisons={comparisons!r}: this path {said} solved for comparisons")
    problem, learned, start = _problem(found, made, data, comparisons, file, quiet)
    seen = None
    if exact:
        seen = _neighbours(problem, learned, start, made)
    with silent(quiet), about(data), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        proofs = found.verify(problem, every)
    missed = [proof for proof in proofs if not proof.rel_gap <= found.tol]
    if json:
        answer({"file": str(file), "tol": found.tol, "neighbours": None if seen is None else seen._asdict(),
                "proven": not missed, "lambdas": [_told(proof) for proof in proofs]})  # fmt: skip
    elif not quiet:
        names = ("lambda", "relative gap, at most", "distance to the optimum, at most", "|M - FF'|, at most")
        table(names, [(f"{p.lam:.6g}", _up(p.rel_gap), _up(p.radius), _up(p.moved)) for p in proofs])
    if seen is not None and not (quiet or json):
        say(f"{seen.anchors} anchors have the neighbours they should have; {seen.exact} searches needed exact "
            f"arithmetic, and rounding chose in {seen.rounded} of them")  # fmt: skip
    if missed:
        worst = max(missed, key=lambda proof: proof.rel_gap)
        say(
            f"{len(missed)} of {len(proofs)} metrics are not proven to have a relative gap of at most {found.tol:.2g}; "
            f"the worst has {_up(worst.rel_gap)} at lam={worst.lam:.6g}: run triscreen path again, with --tol "
            f"{found.tol / 2:.2g}"
        )
    elif not (quiet or json):
        say(f"{len(proofs)} metrics proven to have a relative gap of at most {found.tol:.2g}")
    return 1 if missed else 0


def _up(bound):
    """Write an upper bound with three digits, rounded up."""
    return f"{float(Context(prec=3, rounding=ROUND_CEILING).create_decimal(bound)):.3g}"


def _told(proof):
    names = ("lam", "rel_gap", "gap", "gap_low", "primal", "moved", "radius")
    return {name: getattr(proof, name) for name in names}


def _made(path, file):
    """Return the options that a path was made with, or refuse one that does not tell."""
    kinds = {"label": str, "names": str, "drop": list, "header": bool, "comparisons": bool, "k": int, "triplets": str,
             "scale": str, "gamma": float, "cone": str, "prior": str, "test_share": float, "seed": int}  # fmt: skip
    made = path.recipe.get("command") if isinstance(path.recipe, dict) else None
    if made is None:
        raise InputError(
            f"file={str(file)!r} does not say how its problem was made, as those of older versions and of Python: "
            "path.verify(problem) verifies it there"
        )
    if isinstance(made, dict):  # paths of before there were these
        made = {**_READING, **made}
    kinds.update({name: type(value) for name, value in _READING.items()}, missing=str)
    good = isinstance(made, dict) and made.keys() == kinds.keys()
    if not good or not all(isinstance(made[name], kind | None) for name, kind in kinds.items()):
        raise InputError(f"file={str(file)!r} holds what triscreen has not written (its recipe is no recipe)")
    return made


def _problem(path, made, data, comparisons, file, quiet):
    """Return (the problem as it was made, what it was made of, its start)."""
    choice = {name: made[name] for name in ("label", "drop", "header", *_READING)}
    rows, points = read_data(data, comparisons, made["names"], **choice, quiet=quiet)
    with from_file(file, "file"), silent(quiet):
        words_of(made["prior"], "prior", labelled=rows is None)
        learned, _, scaling = hold_out(points, rows, made["test_share"], made["seed"], made["scale"], path.facts)
        start = read_start(made["prior"], "prior", scaling, points.feature_names, made["cone"])
        wanted = made["triplets"], made["k"], made["gamma"], made["cone"]
        return make_problem(learned, *wanted, None, None, start), learned, start


def _neighbours(problem, learned, start, made):
    """Look for the neighbours again, in the space where the command looked for them."""
    from triscreen.verification import check_neighbours

    if learned.rows is not None:
        raise InputError("neighbors=True: the path was solved for comparisons, nobody has looked for neighbours")
    k, kind = made["k"], made["triplets"]
    Z = points_of_neighbours(learned, start, made["cone"])
    counts = {"knn": (k, k), "lmnn": (k, None), "all": (None, None)}[kind]
    return check_neighbours(Z, learned.y, problem.triplets, *counts)
