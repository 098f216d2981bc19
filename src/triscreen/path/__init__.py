"""The regularisation path: which lambdas (grid), from one to the next (walk), all of them (solve_path), the result."""

from triscreen.path.result import Path
from triscreen.path.solve_path import solve_path

__all__ = ["Path", "solve_path"]
