"""From a problem and one lambda to a certified solution: one file per solver, one verb for all."""

from triscreen.solvers.api import solve
from triscreen.solvers.bb import BarzilaiBorwein
from triscreen.solvers.contract import Solution, State
from triscreen.solvers.dual import DualAscent
from triscreen.solvers.newton import Newton

__all__ = ["BarzilaiBorwein", "DualAscent", "Newton", "Solution", "State", "solve"]
