"""Every solver says what it needs of a problem; a set that does not have it refuses, in a sentence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import triscreen as ts
from problems import comparisons
from triscreen.solvers.api import SOLVERS

Y = np.arange(20) % 2
X = np.random.default_rng(0).normal(size=(20, 3)) + Y[:, None]
SETS = {
    "knn": lambda: ts.knn_triplets(X, Y, 2),
    "given": lambda: ts.given_triplets(comparisons(0, n=20, m=60)[1]),
    "all": lambda: ts.all_triplets(X, Y),
    "lmnn": lambda: ts.all_triplets(X, Y, 2),
}


@dataclass(frozen=True)
class OneByOne:
    """An own solver that looks at triplets one by one and, like many, says nothing about it."""

    method: str = "sweep_alpha"

    def run(self, engine, lam, evaluation, monitor):
        alpha = np.zeros(engine.triplets.n_triplets)
        arguments = {
            "sweep_alpha": (evaluation.dist, alpha, 0.05, engine.threads),
            "ascend": (evaluation.dist, alpha, alpha, 0.05, 1.0, 0.0, engine.threads),
            "pair_numbers": (alpha == 0,),
        }[self.method]
        getattr(engine.triplets, self.method)(*arguments)
        monitor.saw(evaluation, 0.0)
        monitor.stop("stalled")
        return engine, evaluation


class Declared(OneByOne):
    """The same, with a declaration."""

    needs = ("triplets",)


def test_every_solver_of_ours_declares():
    for make in SOLVERS.values():
        assert make().needs in ((), ("triplets",))


@pytest.mark.parametrize("verb", ["solve", "solve_path"])
@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("solver", [*SOLVERS, Declared()], ids=str)
def test_a_solver_gets_what_it_needs_or_a_sentence(solver, kind, verb):
    problem = ts.Problem(X, SETS[kind]())
    lam = 0.3 * problem.lambda_max()
    needs = SOLVERS[solver]().needs if isinstance(solver, str) else solver.needs
    how = {"tol": 1e-2, "solver": solver}

    def call():
        if verb == "solve":
            return ts.solve(problem, lam, **how)
        return ts.solve_path(problem, lambdas=[lam], **how)

    if needs and not problem.triplets.lists_triplets:
        with pytest.raises(ts.InputError, match=r"^solver=.* never listed; use 'auto'"):
            call()
    elif isinstance(solver, str):
        assert np.all(call().converged)


@pytest.mark.parametrize("kind", ["all", "lmnn"])
@pytest.mark.parametrize("method", ["sweep_alpha", "ascend", "pair_numbers"])
def test_an_own_solver_that_declares_nothing_meets_a_sentence_too(kind, method):
    problem = ts.Problem(X, SETS[kind]())
    with pytest.raises(ts.InputError, match=rf"^{method} looks at triplets one by one.*needs = \('triplets',\)"):
        ts.solve(problem, 0.1 * problem.lambda_max(), solver=OneByOne(method))
    # So does what is left of such a set once pairs have been listed: it has weights that a plain list would lose.
    dist = problem.distances(np.eye(3))
    part = problem.triplets.reduce(
        problem.points, (dist, dist), (0.0, 0.0), 0.0, 0.0, 0.95, True, 0.05, problem.threads
    )
    if part.triplets is not None:
        with pytest.raises(ts.InputError, match="one by one"):
            part.triplets.sweep_alpha(dist, None, 0.05, problem.threads)
