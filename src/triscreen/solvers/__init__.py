"""From a problem and one lambda to a certified solution: one file per solver, one verb for all."""

from triscreen.solvers.base import Solution, State
from triscreen.solvers.bb import BarzilaiBorwein
from triscreen.solvers.solve import solve

__all__ = ["BarzilaiBorwein", "Solution", "State", "solve"]
