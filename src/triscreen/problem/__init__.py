"""X + triplets + loss + cone: one evaluation, one certificate."""

from triscreen.problem.problem import Certificate, Problem

__all__ = ["Certificate", "Problem"]
