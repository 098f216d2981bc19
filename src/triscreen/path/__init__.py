"""The regularisation path: which lambdas (grid), from one to the next (walk), all of them (solve_path), the result."""

from triscreen.path.api import solve_path
from triscreen.path.result import Path

__all__ = ["Path", "solve_path"]
