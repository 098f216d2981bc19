"""Scores of metrics, and choices by them."""

from triscreen.selection.choice import choose, choose_start
from triscreen.selection.scores import (
    comparison_error,
    neighbour_accuracy,
    neighbour_error,
    triplet_accuracy,
    vote_scores,
)

__all__ = [
    "choose",
    "choose_start",
    "comparison_error",
    "neighbour_accuracy",
    "neighbour_error",
    "triplet_accuracy",
    "vote_scores",
]
