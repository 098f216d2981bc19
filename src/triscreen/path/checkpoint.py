"""What `solve_path` keeps in a checkpoint: a `Row` for each lambda, and the state of the walk for the last one.

An entry is ({"row": numbers of the row}, {"factor": F}), its state what `state_of` gives. In format 1 the state was
in the last entry itself: its numbers as "walk", its arrays with the prefix "state ". What is read is checked here:
types, shapes, finite numbers, and each lambda against the grid; metrics of format 1, whose entries are bound to
nothing, by their certificates over all triplets.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np

from triscreen._utils.checkpoint import entry_name, look
from triscreen.errors import InputError
from triscreen.path.row import NUMBERS, Row, of_prior
from triscreen.path.walk import Last
from triscreen.problem.units import LAMBDA, MATRIX, METRIC, STEP
from triscreen.screening.working_set import Reference

# What a problem knows of its prior is not kept: a run's identity has that.
_NAMES = {item.name for item in fields(Row)} - {"factor", "floor", "prior_error", "pull"}
_OLD = "state "
_LATER = {"changes"}  # what entries before format 6 lack


def entry_of(row):
    """Return (numbers, arrays) of a row."""
    return {"row": {name: getattr(row, name) for name in sorted(_NAMES)}}, {"factor": row.factor}


def kept_losses(folder):
    """Return the losses of the lambdas that the checkpoint of a path holds already; none where there is none."""
    return [row_of(number, *entry, _named(folder)).loss for number, entry in enumerate(look(folder).entries)]


def take_up(found, folder, problem, grid):
    """Return (rows, state of the walk or None) of what was found in a folder, or refuse it."""
    name, rows = _named(folder), []
    for number, (meta, arrays) in enumerate(found.entries):
        row = replace(row_of(number, meta, arrays, name), **of_prior(problem))
        wrong = _misfit(row, rows, problem, grid)
        if not wrong and number < found.old:
            wrong = _unproven(row, problem)
        if wrong:
            raise _refusal(name, f"{entry_name(number)!r} {wrong}")
        rows.append(row)
    if not rows:
        return rows, None
    state = found.state or _old_state(*found.entries[-1])
    if state is None:
        raise InputError(f"{name}: its last lambda lacks the state to go on from; use another folder")
    wrong = _wrong_state(*state, rows, problem)
    if wrong:
        raise _refusal(name, f"the state of the last lambda does not fit: {wrong}")
    return rows, state


def row_of(number, meta, arrays, name):
    """Return the row of an entry whose numbers are numbers."""
    told, factor = meta.get("row"), arrays.get("factor")
    if type(told) is not dict or not _NAMES - _LATER <= told.keys() <= _NAMES or factor is None:
        raise _refusal(name, f"{entry_name(number)!r} is no entry of a path")
    good = {key: _is_number(told[key]) for key in NUMBERS}
    good["n_iter"] = type(told["n_iter"]) is int
    good["stopped_by"] = type(told["stopped_by"]) is str
    good["events"] = type(told["events"]) is list and all(type(event) is dict for event in told["events"])
    changes = told.get("changes", [])
    good["changes"] = type(changes) is list and all(_are_numbers(item, 2) and min(item) >= 0 for item in changes)
    good["lam"] = good["lam"] and 0 < told["lam"] < math.inf
    good["loss"] = good["loss"] and math.isfinite(told["loss"])
    good["primal"] = good["primal"] and math.isfinite(told["primal"])
    bad = next((key for key in good if not good[key]), None)
    if bad:
        raise _refusal(name, f"{entry_name(number)!r} has {bad}={told[bad]!r:.40}")
    return Row(**{**told, "changes": tuple(map(tuple, changes))}, factor=factor)


def _misfit(row, rows, problem, grid):
    """Return what is wrong about a row after those before, or None."""
    dim, factor = problem.triplets.dim, row.factor
    if not row.scale > 0:
        return f"has primal={row.primal!r}, and a gap is relative to that"
    if factor.ndim != len(problem.cone.shape(dim)) or factor.shape[0] != dim:
        return f"has a metric of shape {factor.shape}, and the points have {dim} dimensions"
    if factor.dtype != np.float64 or not np.isfinite(factor).all():
        return "has a metric that is not of finite numbers"
    try:
        with np.errstate(all="ignore"):
            lam = grid.next(rows)
    except (ArithmeticError, LookupError, ValueError):
        return "comes after the end of the path"
    if not abs(row.lam - lam) <= 1e-9 * lam:
        return f"has lam={row.lam!r}, and {lam!r} comes next"
    return None


def _unproven(row, problem):
    """Return what is wrong about a row of format 1: its metric must have the objective and the gap that it claims."""
    M = np.square(row.factor)
    if row.factor.ndim == 2:
        F = row.factor if problem.basis is None else problem.basis @ row.factor
        M = F @ F.T
    with np.errstate(all="ignore"):
        proof = problem.certificate(M, row.lam)
        doubt = 1e-9 * abs(proof.primal) + proof.rounding + row.rounding
        if not (abs(proof.primal - row.primal) <= doubt and proof.gap <= 1.01 * row.gap + doubt):
            return f"claims a gap of {row.gap:.3g} at the objective {row.primal:.6g}, which does not hold here"
    return None


def _old_state(meta, arrays):
    """Return the state of the walk that an entry of format 1 holds, or None."""
    if type(meta.get("walk")) is not dict:
        return None
    return meta["walk"], {name[len(_OLD) :]: array for name, array in arrays.items() if name.startswith(_OLD)}


def _wrong_state(meta, arrays, rows, problem):
    """Return what is wrong about the state of a walk, or None; see `state_of` for its layout."""
    layout = {"points", "references", "until", "error", "eta", "known", "wait", "working", "last"}
    if meta.keys() != layout:
        return f"it lacks or adds {sorted(meta.keys() ^ layout)}"
    points, references = meta["points"], meta["references"]
    smoothings = problem.loss.smoothings
    good = {
        "points": _are_numbers(points) and 1 <= len(points) <= 2 and points[-1] == rows[-1].lam and min(points) > 0,
        "references": type(references) is list and len(references) <= 2 and all(
            _are_numbers(item, 3) and item[0] > 0 and item[1] in smoothings and item[2] >= 0 for item in references
        ),
        "until": _is_number(meta["until"]) and meta["until"] > 0,
        "error": _is_number(meta["error"]) and meta["error"] >= 0,
        "eta": _is_number(meta["eta"]) and meta["eta"] > 0,
        "known": type(meta["known"]) is bool and (bool(references) or not meta["known"]),
        "wait": _are_numbers(meta["wait"], 2) and all(type(item) is int and item >= 0 for item in meta["wait"]),
        "working": meta["working"] is None or (_are_working(meta["working"]) and bool(references)),
        "last": _are_numbers(meta["last"], 3) and meta["last"][0] in smoothings,
    }  # fmt: skip
    bad = next((key for key in good if not good[key]), None)
    if bad:
        return f"{bad}={meta[bad]!r:.40}"
    names = [f"point {letter}{i}" for i in range(len(points)) for letter in "MA"]
    names += [f"reference {letter}{i}" for i in range(len(references)) for letter in "MA"]
    shape = problem.shape
    for name in names:
        if name not in arrays or arrays[name].shape != shape:
            return f"{name!r} is missing or has another shape than {shape}"
    extra = arrays.keys() - {*names, "weights"}
    strange = next((name for name in arrays if arrays[name].dtype != np.float64), None) or min(extra, default=None)
    if strange or not all(np.isfinite(array).all() for array in arrays.values()):
        return f"{strange!r} is not known" if strange else "its arrays are not finite"
    return None


def state_of(walk):
    """Return (numbers, arrays) from which `restore` lets a walk go on, to the same bits; in the units of the user."""
    last, out = walk.last, walk.problem.units.out
    meta = {
        "points": [out(solution[0], LAMBDA) for solution in walk.solutions],
        "references": [[out(r.lam, LAMBDA), r.sums.smoothing, out(r.error, MATRIX)] for r in walk.references],
        "until": out(walk.until, LAMBDA),
        "error": walk.error,
        "eta": out(walk.eta, STEP),
        "known": walk.known,
        "wait": [walk.wait, walk.patience],
        "working": None if walk.working is None else [out(walk.shape[0], METRIC), walk.shape[1]],
        "last": [last.smoothing, last.primal, out(last.error, MATRIX)],
    }
    arrays = {} if last.weights is None else {"weights": last.weights}
    for i, (_, M, A) in enumerate(walk.solutions):
        arrays[f"point M{i}"], arrays[f"point A{i}"] = out(M, METRIC), out(A, MATRIX)
    for i, reference in enumerate(walk.references):
        arrays[f"reference M{i}"], arrays[f"reference A{i}"] = out(reference.M, METRIC), out(reference.A, MATRIX)
    return meta, arrays


def restore(walk, state, folder):
    """Let a walk go on from a state that was taken up."""
    try:
        with np.errstate(all="ignore"):
            _set_state(walk, *state)
        weights = None if walk.known else walk.last.weights  # they are used where the last point is no reference
        base = walk.problem if walk.working is None else walk.working.engine
        if weights is not None and base.triplets.lists_pairs and weights.shape != (base.triplets.n_pairs,):
            raise ValueError(f"it has {len(weights)} weights for {base.triplets.n_pairs} pairs")
    except (ArithmeticError, LookupError, TypeError, ValueError) as err:
        raise _refusal(_named(folder), f"the state of the last lambda does not fit: {err}") from err


def _set_state(walk, meta, arrays):
    into = walk.problem.units.into

    def pair(kind, i):
        return into(arrays[f"{kind} M{i}"], METRIC), into(arrays[f"{kind} A{i}"], MATRIX)

    walk.solutions = [(into(lam, LAMBDA), *pair("point", i)) for i, lam in enumerate(meta["points"])]
    walk.references = []
    for i, (lam, smoothing, error) in enumerate(meta["references"]):
        M, A = pair("reference", i)
        made = Reference.at(walk.problem, M, into(lam, LAMBDA), smoothing, A, into(error, MATRIX))
        walk.references.append(made)
    walk.until, walk.eta = into(meta["until"], LAMBDA), into(meta["eta"], STEP)
    walk.error, walk.known = meta["error"], meta["known"]
    walk.wait, walk.patience = meta["wait"]
    smoothing, primal, error = meta["last"]
    walk.last = Last(smoothing, primal, into(error, MATRIX), arrays.get("weights"))
    if meta["working"] is not None:
        radius, straight = meta["working"]
        walk.working = walk.make_working_set(into(radius, METRIC), straight)


def _is_number(value):
    return value == value if type(value) is float else type(value) is int and abs(value) < 2**63


def _are_numbers(values, length=None):
    return type(values) is list and length in (None, len(values)) and all(map(_is_number, values))


def _are_working(values):
    return type(values) is list and len(values) == 2 and _is_number(values[0]) and type(values[1]) is bool


def _named(folder):
    return f"checkpoint={str(folder)!r}"


def _refusal(name, why):
    return InputError(f"{name}: {' '.join(str(why).split())}; use another folder (the folder is left as it is)")
