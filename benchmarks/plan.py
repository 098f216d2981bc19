"""In which order the cells of a run are measured, which are there already, and which are left out for want of time.

Without a limit of time: in the order they are listed. With one: first the first subsample of everything; then all
others of cells that took SHORT seconds at most and verdicts are made of (`experiments/verdicts.py`), or TINY seconds;
then the second and third of what else verdicts are made of, without which there is none; then the rest; the cheapest
first each time; last what experiments have for the time that is left (`more`). What a further subsample will take is
known from the first. A cell that would end too late is left out, and so are further subsamples of one that ended
without numbers (a peer that takes too long).
"""

from __future__ import annotations

import json

from benchmarks.cells import name_of

TINY, SHORT, LONGEST = 12.0, 45.0, 240.0  # seconds of a cell
DECIDE = ("race", "ranges", "sampled")  # kinds of cells that verdicts are made of
_UNKNOWN = 5.0


def one_commit(commit):
    """Whether this names the code."""
    return "changes" not in commit and "unknown" not in commit


def claim(folder, quick, seeds, commit, write):
    """Say in the folder what kind of run it holds, and return that; refuse one of the other kind.

    The time that was spent counts for one commit: for another one everything is measured again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "run.json"
    state = {"quick": quick, "seeds": seeds, "commit": commit, "spent": 0.0}
    if file.exists():
        known = json.loads(file.read_text())
        if known["quick"] != quick:
            kind = "a quick" if known["quick"] else "a full"
            raise ValueError(f"out={str(folder)!r} holds {kind} run: take another folder")
        state["seeds"] = max(seeds, known["seeds"])
        if known.get("commit") == commit:
            state["spent"] = known.get("spent", 0.0)
    write(file, state)
    return state


def _family(cell):
    """Return what subsamples of the same cell have in common."""
    return name_of({key: value for key, value in cell.items() if key != "seed"})


class Plan:
    """The cells that are to be measured, in turn.

    Parameters
    ----------
    cells : dict
        By name, in the order of the page.
    folder : path
        Where their files are, or will be.
    commit : str
        Files of another one do not count.
    spent : float
        Seconds that the run took so far.
    minutes : float, optional
        What it may take in all.
    last : sequence of str
        Names of the cells for the time that is left.
    """

    def __init__(self, cells, folder, commit, spent=0.0, minutes=None, last=()):
        self.last = frozenset(last)
        self.cells, self.folder, self.commit, self.spent = cells, folder, commit, spent
        self.until = None if minutes is None else 60.0 * minutes
        self._costs, self._pending, self._hopeless = {}, [], set()
        for name, cell in cells.items():
            record = self._read(name)
            if record is None or cell["kind"] == "speed":
                self._pending.append(name)
            else:
                self._note(cell, record)
        self.n_there = len(cells) - len(self._pending)
        self.n_taken, self.left = self.n_there, []

    def next(self, at_once=1, side_by_side=()):
        """Return the names of the cells to be measured now: one, or some of a kind that may run side by side."""
        for name in self._taken:
            record = self._read(name)
            if record is not None:
                self._note(self.cells[name], record)
        self._taken = []
        order = self._pending if self.until is None else sorted(self._pending, key=self._rank)
        while order and not self._taken:
            head = order[0]
            fits = self.until is None or (
                self.spent + self._cost(head) <= self.until and _family(self.cells[head]) not in self._hopeless
            )
            kind = self.cells[head]["kind"]
            mates = [name for name in order if self.cells[name]["kind"] == kind][:at_once]
            same = [name for name in mates if self.until is None or self._rank(name)[0] == self._rank(head)[0]]
            gone = [head] if not fits or kind not in side_by_side else same
            (self._taken if fits else self.left).extend(gone)
            order = [name for name in order if name not in gone]
        self._pending = [name for name in self._pending if name in order]
        self.n_taken += len(self._taken)
        return list(self._taken)

    _taken = ()

    def spend(self, seconds):
        """Count so many seconds."""
        self.spent += seconds

    def _read(self, name):
        """Return the record of a cell that this commit has measured, or None."""
        file = self.folder / f"{name}.json"
        if not file.exists():
            return None
        record = json.loads(file.read_text())
        return record if record["commit"] == self.commit else None

    def _note(self, cell, record):
        """Remember what a cell took."""
        self._costs.setdefault(_family(cell), record["seconds"] / record.get("at_once", 1))
        if "why" in record.get("result", ()):
            self._hopeless.add(_family(cell))

    def _cost(self, name):
        return self._costs.get(_family(self.cells[name]), LONGEST if name in self.last else _UNKNOWN)

    def _rank(self, name):
        """Return what is done first: (stage, cost, subsample)."""
        seed, cost = self.cells[name].get("seed", 0), self._cost(name)
        if name in self.last:
            return 4, cost, seed
        if seed == 0:
            return 0, 0.0, 0
        decides = self.cells[name]["kind"] in DECIDE
        if cost <= (SHORT if decides else TINY):
            return 1, cost, seed
        return (2 if decides and seed < 3 else 3), cost, seed
