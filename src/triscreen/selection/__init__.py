"""Scores of metrics, and choices by them."""

from triscreen.selection.choice import choose
from triscreen.selection.scores import comparison_error, neighbour_accuracy, neighbour_error, triplet_accuracy

__all__ = ["choose", "comparison_error", "neighbour_accuracy", "neighbour_error", "triplet_accuracy"]
