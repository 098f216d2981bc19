"""What a problem takes of memory, and what a budget of it refuses, before any work."""

from __future__ import annotations

import numpy as np

from triscreen.errors import InputError
from triscreen.triplets.base import ONE_BY_ONE


class Memory:
    """Bytes of a `Problem`, and the checks of its ``memory_budget``."""

    @property
    def _bytes_per_lambda(self):
        return 0 if self.prior is None else 8 * int(np.prod(self.shape))

    def _bytes(self, cone, triplets, n_jobs, rows=1):
        return self._bytes_of_points(cone) + triplets.bytes_needed(dim=self.n_features, n_jobs=n_jobs, rows=rows)

    def _bytes_of_points(self, cone):
        # The points, centred, embedded, rows of the Laplacian; X as given, which `verify` wants to see unchanged; and
        # what solvers and paths keep in the size of M.
        n, dim = self.n_points, self.n_features
        return 8 * (7 * n * dim + self._elements * dim * (dim if cone.name == "psd" else 1))

    def check_one_by_one(self, what: str) -> None:
        """Refuse what needs numbers for each triplet if the memory budget does not allow them."""
        needed = self._bytes(self.cone, self.triplets, self.threads.n_jobs) + ONE_BY_ONE * self.triplets.n_triplets
        if self.memory_budget is not None and needed > self.memory_budget:
            raise InputError(
                f"memory_budget={self.memory_budget:.3g}: {what} looks at triplets one by one, which takes about "
                f"{needed:.3g} bytes for {self.triplets.n_triplets} of them; raise the budget"
            )

    def check_path(self, n_lambdas: int | None) -> None:
        """Refuse a path of so many lambdas (None: nobody knows) whose metrics the memory budget does not allow."""
        if self.memory_budget is None or n_lambdas is None:
            return
        kept = n_lambdas * self._bytes_per_lambda
        needed = kept + self._bytes(self.cone, self.triplets, self.threads.n_jobs, rows=None)
        if kept and needed > self.memory_budget:
            raise InputError(
                f"memory_budget={self.memory_budget:.3g}: {n_lambdas} metrics of full rank, which they are with a "
                f"prior, bring a path to about {needed:.3g} bytes; raise the budget, or ask for fewer lambdas"
            )

    def _check_memory(self, cone, triplets, n_jobs):
        n, dim, pairs = self.n_points, self.n_features, triplets.n_pairs
        needed = self._bytes(cone, triplets, n_jobs)
        if self.memory_budget is not None and needed > self.memory_budget:
            raise InputError(
                f"memory_budget={self.memory_budget:.3g}: {n} points of {dim} features with {pairs} pairs take about "
                f"{needed:.3g} bytes; {triplets.advice}"
            )
