"""What a search did, step by step: in a checkpoint, so that one that was killed goes on where it was.

A `Step` is all that one cut changed: the metric that was made, what is decided on the pieces there, and the errors at
single lambdas that were known by then. A search is a function of its paths and its points, so one that meets its own
steps takes them in place of its arithmetic, and ends with the same bits; which lambda comes next does not depend on
eps or on limits, so the steps of a search that was ended by these serve the next one, too.

An entry of the checkpoint is {"kind", "side", "places", "points", "made", "lefts"} and arrays: "M" and "factor" of the
metric as it is inside, "row factor" (with a solve), "outcomes 0", "left 0 0" and so on of the pieces.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from triscreen._utils.archive import fingerprint
from triscreen._utils.checkpoint import Checkpoint, entry_name
from triscreen.errors import InputError
from triscreen.path.checkpoint import entry_of, row_of
from triscreen.path.row import Row, of_prior
from triscreen.selection.judge import Verdict

CUT, SHARPEN, FINAL, SETTLE = "cut", "sharpen", "final", "settle"
_KINDS = {CUT: 2, SHARPEN: None, FINAL: 0, SETTLE: 0}  # and how many verdicts each has


@dataclass(frozen=True, eq=False)
class Made:
    """A metric that was made: a solution, if it has a row.

    M and factor are as they are inside; key and smoothing are those of its end, tol is what it was solved to.
    """

    key: float
    M: np.ndarray = field(repr=False)
    factor: np.ndarray = field(repr=False)
    smoothing: float
    row: Row | None = field(default=None, repr=False)
    tol: float = 0.0


@dataclass(frozen=True, eq=False)
class Step:
    """What one cut changed.

    Attributes
    ----------
    kind : str
        "cut": a piece in two; "sharpen": an end was solved again; "final": a piece is as good as it can be;
        "settle": the lambda that was chosen has its solution.
    places : list of int
        Numbers of the pieces that change: the one that is cut, or those at the end.
    made : Made or None
    verdicts : list of Verdict
        Of the two halves, or of these pieces.
    side : int
        Number of the path.
    points : list of [int, float, float]
        Side, key and error at most, of single lambdas.
    """

    kind: str
    places: list
    made: Made | None = None
    verdicts: list = field(default_factory=list)
    side: int = 0
    points: list = field(default_factory=list)

    @property
    def is_solved(self):
        """Did it take a solve?"""
        return self.made is not None and self.made.row is not None

    def fits(self, pieces):
        """Can it be taken where these are the pieces?"""
        if max(self.places, default=-1) >= len(pieces):
            return False
        own = [pieces[place] for place in self.places]
        if self.kind == CUT:
            return len(own) == 1 and own[0].low < self.made.key < own[0].high
        return self.kind == FINAL or all(self.made.key in (piece.high, piece.low) for piece in own)


class Journal:
    """The steps of a search, those that are known already first.

    Parameters
    ----------
    folder : path, optional
        Of the checkpoint; None: nothing is kept.
    sides : list of Side
    """

    def __init__(self, folder, sides):
        self._sides, self._known, self._settled, self._taken = sides, [], {}, 0
        self._folder, self._open = folder, None
        if folder is not None:
            identity = {"search": 1, "sides": [_identity(side) for side in sides]}
            self._open = Checkpoint(folder, identity, accept=self._take_up)
            self._known, self._settled = self._open.accepted

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._open is not None:
            self._open.close()

    @property
    def next(self):
        """The `Step` that comes next, if it is known already."""
        return self._known[self._taken] if self._taken < len(self._known) else None

    def settled(self, side, key):
        """Return the `Step` that settled a key at this place of the search, if it is known."""
        return self._settled.get((self._taken, side, key))

    def keep(self, step):
        """Keep a step that was not known; it is on the disk then."""
        if self._open is not None:
            self._open.append(*_as_entry(step, self._taken))

    def took(self):
        """Count a step of the search."""
        self._taken += 1

    def refusal(self, why, number=None):
        """Return the error that refuses an entry; by default that of the next step."""
        number = self._numbers[self._taken] if number is None else number
        return InputError(f"checkpoint={str(self._folder)!r}: {entry_name(number)!r} {why}; use another folder (the "
                          "folder is left as it is)")  # fmt: skip

    def _take_up(self, found):
        known, settled, self._numbers = [], {}, []
        for number, (meta, arrays) in enumerate(found.entries):
            try:
                step, after = self._read(number, meta, arrays)
            except (AttributeError, KeyError, TypeError, ValueError, IndexError) as err:
                raise self.refusal(f"is no step of a search ({err})", number) from None
            if step.kind == SETTLE:
                settled[after, step.side, step.made.key] = step
            else:
                known.append(step)
                self._numbers.append(number)
        return known, settled

    def _read(self, number, meta, arrays):
        kind, places, side, after = meta["kind"], meta["places"], self._sides[meta["side"]], meta["after"]
        problem, made = side.problem, None
        if meta["made"] is not None:
            key, smoothing, tol, told = (meta["made"][name] for name in ("key", "smoothing", "tol", "row"))
            row = None
            if told is not None:
                row = replace(row_of(number, {"row": told}, {"factor": arrays["row factor"]}, str(self._folder)),
                              **of_prior(problem))  # fmt: skip
            M, factor = arrays["M"], arrays["factor"]
            for array in (M, factor):
                if array.dtype != np.float64 or not np.isfinite(array).all() or len(array) != problem.shape[0]:
                    raise ValueError("a metric that does not fit")
            if M.shape != problem.shape or smoothing not in problem.loss.smoothings or not key > 0 or not tol >= 0:
                raise ValueError("a metric that does not fit")
            made = Made(key, M, factor, smoothing, row, tol)
        verdicts = []
        for i, count in enumerate(meta["lefts"]):
            outcomes = arrays[f"outcomes {i}"]
            if outcomes.dtype != np.int8 or outcomes.shape != side.pieces[0].verdict.outcomes.shape:
                raise ValueError("predictions that do not fit")
            left = None if count is None else tuple(arrays[f"left {i} {j}"] for j in range(count))
            verdicts.append(Verdict(outcomes, left))
        if _KINDS[kind] not in (None, len(verdicts)) or (made is None) != (kind == FINAL) or type(after) is not int:
            raise ValueError("parts are missing")
        if not all(type(place) is int and place >= 0 for place in places):
            raise ValueError("pieces that do not fit")
        points = [(self._sides[number] and number, float(key), float(error)) for number, key, error in meta["points"]]
        return Step(kind, places, made, verdicts, meta["side"], points), after


def _as_entry(step, after):
    """Return (numbers, arrays) of a step that came after so many others."""
    meta = {"kind": step.kind, "side": step.side, "places": step.places, "points": step.points, "after": after,
            "made": None, "lefts": []}  # fmt: skip
    arrays, made = {}, step.made
    if made is not None:
        arrays.update({"M": made.M, "factor": made.factor})
        told = None
        if made.row is not None:
            numbers, factor = entry_of(made.row)
            told, arrays["row factor"] = numbers["row"], factor["factor"]
        meta["made"] = {"key": made.key, "smoothing": made.smoothing, "tol": made.tol, "row": told}
    for i, verdict in enumerate(step.verdicts):
        arrays[f"outcomes {i}"] = verdict.outcomes
        meta["lefts"].append(None if verdict.left is None else len(verdict.left))
        arrays.update({f"left {i} {j}": array for j, array in enumerate(verdict.left or ())})
    return meta, arrays


def _identity(side):
    """Return what makes the search of one path this one: its problem, its metrics, and what is asked about them."""
    path = side.path
    return {
        "problem": path.recipe if path.recipe is not None else "elsewhere",
        "path": fingerprint(path.lambdas, *(row.factor for row in path._rows)),
        "keys": fingerprint(np.array([side.pieces[0].high, *(piece.low for piece in side.pieces)])),
        "tol": path.tol,
        "asked": side.judge.fingerprint(),
    }
