"""Rigorous proofs for the metrics of a path, and what makes its problem that one."""

from __future__ import annotations

import warnings
from typing import Any

from triscreen._utils.progress import progress
from triscreen._utils.validation import as_count
from triscreen.errors import InputError, convergence_warning
from triscreen.path.identity import recipe_of
from triscreen.problem import Problem
from triscreen.verification import Verification, Verifier

_NAMES = {
    "points": "other points X",
    "triplets": "another kind of triplets",
    "set": "other triplets or weights",
    "loss": "another loss",
    "cone": "another cone",
    "prior": "another prior",
}


class Verified:
    """What a `Path` says of its problem, and `verify`."""

    _checked: Problem | None = None  # the last one that was found to be that of the path

    @property
    def recipe(self) -> dict[str, Any] | None:
        """What the problem was made of, as names and hashes; of ``triscreen path`` also its options; None: not known.

        It is saved with the path, so that others can make the problem again and see that it is the same.
        """
        if self._recipe is None and hasattr(self._problem, "hash_of_points"):  # not where points are elsewhere
            self._recipe = recipe_of(self._problem)
        return self._recipe

    def verify(self, problem: Problem | None = None, every: int = 1) -> list[Verification]:
        """Prove the gaps of this path in ball arithmetic, without the code that has solved it (`triscreen.verify`).

        Parameters
        ----------
        problem : Problem, optional
            Of the path; needed if that was loaded from a file. One of other points, triplets, loss, cone or prior is
            refused.
        every : int
            The first lambda, and every so many-th after it.

        Returns
        -------
        list of Verification
            A `ConvergenceWarning` tells of metrics that are not proven to have a relative gap of at most tol.

        Examples
        --------
        >>> import triscreen as ts
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> path = ts.solve_path(ts.Problem(X, ts.knn_triplets(X, y, k=3)), ratio=0.5)
        >>> all(proof.rel_gap <= 1e-6 for proof in path.verify())
        True
        """
        every, problem = as_count(every, "every"), self._check_problem(problem)
        verifier, proofs = Verifier(problem), []
        rows = self._rows[::every]
        with progress("verify", len(rows)) as show:
            for number, row in enumerate(rows):
                proofs.append(verifier(self.M(number * every), row.lam, smoothing=row.smoothing))
                show(float(number + 1))
        missed = [proof for proof in proofs if not proof.rel_gap <= self.tol]
        if missed:
            worst = max(missed, key=lambda proof: proof.rel_gap)
            warnings.warn(
                f"{len(missed)} of {len(proofs)} metrics are not proven to have a relative gap of at most "
                f"{self.tol:.2g}; the worst has {worst.rel_gap:.3g} at lam={worst.lam:.6g}: solve the path again, with "
                f"tol={self.tol / 2:.2g} or less, or accept what is proven",
                convergence_warning(),
                stacklevel=2,
            )
        return proofs

    def _check_recipe(self, problem):
        """Refuse a problem that is not the one this path was solved for."""
        if self.recipe is None or problem is self._problem or problem is self._checked:
            return
        if not hasattr(problem, "hash_of_points"):  # its points are elsewhere: whatever is proven of it is so by itself
            return
        mine = recipe_of(problem)
        wrong = next((words for name, words in _NAMES.items() if mine[name] != self.recipe.get(name)), None)
        if wrong:
            raise InputError(f"problem has {wrong} than this path was solved for: make it as it was made then")
        self._checked = problem
