"""What makes a run of `solve_path` this one: a checkpoint belongs to the run with the same identity.

Names of classes and of their numbers stand here as texts, so that renaming an attribute changes no identity.
"""

from __future__ import annotations

import re

import numpy as np

from triscreen._utils.archive import fingerprint
from triscreen.problem.losses import Hinge, SmoothedHinge
from triscreen.problem.units import POINT
from triscreen.screening import Screening
from triscreen.solvers.bb import BarzilaiBorwein
from triscreen.solvers.dual import DualAscent
from triscreen.solvers.newton import Newton

_NUMBERS = {
    Hinge: ("Hinge", lambda it: {}),
    SmoothedHinge: ("SmoothedHinge", lambda it: {"gamma": it.gamma}),
    BarzilaiBorwein: ("BarzilaiBorwein", lambda it: {"memory": it.memory, "max_search": it.max_search}),
    DualAscent: ("DualAscent", lambda it: {"steps": it.steps, "decay": it.decay}),
    Newton: (
        "Newton",
        lambda it: {
            "first": it.first,
            "between": it.between,
            "cg_tol": it.cg_tol,
            "max_cg": it.max_cg,
            "gradient": it.gradient,
        },
    ),
    Screening: (
        "Screening",
        lambda it: {
            "bounds": it.bounds,
            "rule": it.rule,
            "every": it.every,
            "at_start": it.at_start,
            "ranges": it.ranges,
            "active_set": it.active_set,
            "include_solution": it.include_solution,
        },
    ),
}


def identity_of(problem, grid, tol, max_iter, solver, screening, version=2):
    """Return the identity of a run, as text and numbers; version: of the format that a checkpoint has."""
    triplets = problem.triplets
    # Known by the points as they are inside (centred, in the span of the data), in the user's scale.
    kind, known_by = triplets.fingerprint(lambda points: problem.units.out(points, POINT), version)
    own = {"problem": known_by}
    if version > 1:
        own.update({"triplets": kind, "features": problem.n_features})
    if problem.prior is not None:
        own["prior"] = fingerprint(problem.prior.matrix)
    own.update({"loss": described(problem.loss), "cone": problem.cone.name})
    if not triplets.lists_pairs and problem.memory_budget is not None:
        own["memory"] = [problem.memory_budget, problem.threads.n_jobs]  # they decide about blocks and lists
    return {
        **own,
        **grid.identity(),
        "tol": tol,
        "max_iter": max_iter,
        "solver": described(solver, version),
        "screening": described(screening, version),
    }


def recipe_of(problem):
    """Return what a problem is made of, as names and hashes: who has the same data can make it again and compare."""
    kind, arrays = problem.triplets.identity()
    return {
        "points": problem.hash_of_points,
        "n_points": problem.n_points,
        "triplets": kind,
        "set": fingerprint(*arrays),
        "loss": described(problem.loss),
        "cone": problem.cone.name,
        "prior": None if problem.prior is None else fingerprint(problem.prior.matrix),
    }


def _numbers_of(thing):
    """Return what an own object holds, arrays by their content: as text they would be cut short."""
    values = getattr(thing, "__dict__", {}).items()
    return {name: fingerprint(value) if isinstance(value, np.ndarray) else value for name, value in values}


def described(thing, version=2):
    """Return a text that is the same in the next process and in later versions: no addresses, no attributes' names."""
    if type(thing) in _NUMBERS:
        name, numbers = _NUMBERS[type(thing)]
        return f"{name}({', '.join(f'{key}={described(value, version)}' for key, value in numbers(thing).items())})"
    own = type(thing).__repr__ is object.__repr__ and version > 1  # an own solver: its class says too little
    text = f"{type(thing).__qualname__}({_numbers_of(thing)})" if own else repr(thing)
    return re.sub(r" at 0x[0-9a-f]+", "", text)
