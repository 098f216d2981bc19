"""What a path says about its points, one by one."""

from __future__ import annotations

import numbers

from numpy.typing import ArrayLike

from triscreen._utils.validation import shortened
from triscreen.errors import InputError
from triscreen.path.influence import Influence, influence
from triscreen.path.leave_one_out import LeaveOneOut, leave_one_out
from triscreen.problem import Problem


class EachPoint:
    """Methods of a `Path` that leave points out; see docs/selection.md."""

    def leave_one_out(
        self, t: int, X: ArrayLike, y: ArrayLike, k: int = 3, problem: Problem | None = None
    ) -> LeaveOneOut:
        """Predict every point by the fit on all others: the exact leave-one-out error of metric and neighbours.

        For each point, triplets are those of the other n - 1 (of `knn_triplets`: neighbours chosen anew; of
        `given_triplets`: the comparisons without it), lambda and prior are the same, and the k nearest of the others
        vote, as in `validation_bounds`. Most predictions follow from the solution of the whole by a ball that holds the
        optimum without the point; the others are solved, from there and as far as needed (`triscreen.path.steps`).

        Parameters
        ----------
        t : int
            The number of a lambda of the path.
        X, y : arrays, shapes (n, d) and (n,)
            The points that the path was learned on, and their labels.
        k : int
            Neighbours that vote.
        problem : Problem, optional
            Of the path; needed if that was loaded from a file.

        Returns
        -------
        LeaveOneOut

        Raises
        ------
        Interrupted
            On Ctrl-C; its ``result`` is what was decided so far.

        Examples
        --------
        >>> import triscreen as ts
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> path = ts.solve_path(ts.Problem(X, ts.knn_triplets(X, y, k=3)), ratio=0.7, n_lambdas=20)
        >>> found = path.leave_one_out(-1, X, y)
        >>> len(found.predictions), bool(found.error < 0.1), bool(found.n_solves < 60)
        (150, True, True)
        """
        return leave_one_out(self, self._check_number(t), X, y, k, self._check_problem(problem))

    def influence(self, t: int, problem: Problem | None = None) -> Influence:
        """Bound how far the optimal metric moves without each point's triplets, or without each given comparison.

        Where labels are wrong the largest bounds are: a point among others of another class pulls at all of them. The
        triplets of a point are those that it has any role in, and nobody moves up in its place.

        Parameters
        ----------
        t : int
            The number of a lambda of the path.
        problem : Problem, optional
            Of the path; needed if that was loaded from a file.

        Returns
        -------
        Influence
            ``indices`` and ``bounds``, the largest first.

        Examples
        --------
        >>> import triscreen as ts
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> y[7] = 2  # a mistake
        >>> path = ts.solve_path(ts.Problem(X, ts.knn_triplets(X, y, k=3)), ratio=0.7, n_lambdas=20)
        >>> found = path.influence(10)
        >>> int(found.indices[0]), len(found)
        (7, 150)
        """
        return influence(self, self._check_number(t), self._check_problem(problem))

    def _check_number(self, t):
        """Return the number of a lambda of the path, counted from its beginning."""
        n = len(self)
        if isinstance(t, bool) or not isinstance(t, numbers.Integral) or not -n <= t < n:
            raise InputError(f"t={shortened(t)}: this path has {n} lambdas, so t must be a whole number below that")
        return int(t) % n
