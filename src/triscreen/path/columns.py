"""The numbers of a path, one per lambda each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from triscreen.path.row import Row


class Columns:
    """The arrays of a `Path`, made from its rows."""

    _rows: list[Row]
    n_triplets: int

    def _column(self, name: str) -> np.ndarray:
        return np.array([getattr(row, name) for row in self._rows])

    @property
    def lambdas(self) -> np.ndarray:
        """The lambdas, falling."""
        return self._column("lam")

    @property
    def primals(self) -> np.ndarray:
        """Objectives P(M)."""
        return self._column("primal")

    @property
    def duals(self) -> np.ndarray:
        """Dual objectives: no metric has a lower P than this."""
        return self._column("dual")

    @property
    def gaps(self) -> np.ndarray:
        """Gaps over all triplets."""
        return self._column("gap")

    @property
    def rel_gaps(self) -> np.ndarray:
        """Gaps over the primal (with a prior: or over the floor, see `Certificate`)."""
        return self._column("rel_gap")

    @property
    def losses(self) -> np.ndarray:
        """Objectives without the regulariser."""
        return self._column("loss")

    @property
    def n_iter(self) -> np.ndarray:
        """Iterations."""
        return self._column("n_iter")

    @property
    def passes(self) -> np.ndarray:
        """Pair work: all pairs once, distances and gradient, is one."""
        return self._column("passes")

    @property
    def scanned(self) -> np.ndarray:
        """Triplets looked at by screening rules and proofs, over all triplets."""
        return self._column("scanned")

    @property
    def seconds(self) -> np.ndarray:
        """Seconds."""
        return self._column("seconds")

    @property
    def screening_rates(self) -> np.ndarray:
        """Share of the triplets that were not in the problem that was solved: `safe_rates` and `proven_rates`."""
        return 1.0 - self._column("undecided")

    @property
    def safe_rates(self) -> np.ndarray:
        """Share of the triplets that were safe beforehand: spheres and ranges decided them, before what they left out.

        That is safe screening as the paper means it: whatever the solver then does, the optimum is the same.
        """
        return np.array([_safely(row, self.n_triplets) for row in self._rows], dtype=float)

    @property
    def proven_rates(self) -> np.ndarray:
        """Share of the triplets that were left out of the working set, and proven afterwards not to matter.

        By a tube that holds the solution, or by looking at all pairs once it was there.
        """
        return self.screening_rates - self.safe_rates


def _safely(row, n_triplets):
    """Return the share of the triplets that spheres and ranges decided for the whole problem."""
    events = [event for event in row.events if event.get("safe", row.share == 1.0)]  # old files do not say
    spheres = [event for event in events if event["rule"] != "range"]
    count = sum(event["L"] + event["R"] for event in events if event["rule"] == "range")
    if spheres:
        count += spheres[0]["tried"] - spheres[-1]["undecided"]
    return min(count / max(1, n_triplets), 1.0 - row.undecided)
