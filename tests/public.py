"""The public names, and what they consist of: for the tests that count what is missing."""

from __future__ import annotations

import importlib
import inspect

import triscreen
from triscreen.problem.engine import Engine
from triscreen.triplets.base import TripletSet

# Beside `triscreen.__all__`: public modules whose names are reached through the module.
MODULES = [f"triscreen.{name}" for name in ("datasets", "distributed", "files", "report", "verification")]
# What users meet without making it themselves, and functions that are reached by their place only.
BESIDE = (
    "triscreen.estimators.onnx.to_onnx",
    "triscreen.path.api.PathState",
    "triscreen.path.influence.Influence",
    "triscreen.path.leave_one_out.LeaveOneOut",
    "triscreen.problem.problem.Estimate",
    "triscreen.triplets.base.TripletSet",
    "triscreen.verification.gaps.Ball",
    "triscreen.verification.neighbours.Neighbours",
)
# What parts of one's own keep to, and what they are given.
EXTENSION = (
    "triscreen.screening.config.OwnSphere",
    "triscreen.screening.config.OwnRule",
    "triscreen.solvers.contract.Solver",
    "triscreen.solvers.contract.Watch",
    "triscreen.problem.engine.Evaluation",
    "triscreen.problem.cones.Cone",
    "triscreen.problem.cones.Projection",
    "triscreen.problem.engine.Engine",
    "triscreen.screening.rules.Region",
    "triscreen.problem.rounding.gap_error",
)

# Methods that other stages of triscreen call: they have types and docstrings, but no place in the API reference.
FOR_US = {
    "at_prior", "check_lam", "check_one_by_one", "check_path", "checked", "from_arrays", "from_core", "start", "take",
    "to_arrays", "to_core", "into", "make", "arithmetic", "going_on", "out_of", "without_dual", "assemble_few",
}  # fmt: skip
# Classes whose methods are for those who change triscreen: a `Problem` is one, but users need not know them. A few they
# do: these are named in the docstring of the class, or here.
INSIDE = (Engine, TripletSet)
FOR_ALL = ("indices",)


def public_names():
    """Return {dotted name: object} of every function and class that is meant for users."""
    names = {f"triscreen.{name}": getattr(triscreen, name) for name in triscreen.__all__}
    known = {id(thing) for thing in names.values()}
    for module in MODULES:
        home = importlib.import_module(module)
        found = {f"{module}.{name}": getattr(home, name) for name in home.__all__}
        names |= {name: thing for name, thing in found.items() if id(thing) not in known}
    for place in (*BESIDE, *EXTENSION):
        home, _, name = place.rpartition(".")
        names[place] = getattr(importlib.import_module(home), name)
    return {name: thing for name, thing in names.items() if callable(thing)}


def parts(name, thing):
    """Yield (dotted name, function) of a function, or of the methods and properties of a class that are ours."""
    if not inspect.isclass(thing):
        yield name, thing
        return
    for part in sorted(set(dir(thing)) - set(dir(object)) | {"__init__"}):
        home = next((base for base in thing.__mro__ if part in vars(base)), None)
        protocol = part == "__init__" and vars(thing).get("_is_protocol")
        private = protocol or (part.startswith("_") and part not in ("__init__", "__call__"))
        inside = home in INSIDE and part not in FOR_ALL
        if home is None or inside or private or not home.__module__.startswith("triscreen"):
            continue
        found = vars(home)[part]
        found = getattr(found, "__func__", found)
        found = found.fget if isinstance(found, property) else getattr(found, "func", found)
        if inspect.isfunction(found):
            yield f"{name}.{part}", inspect.unwrap(found)
