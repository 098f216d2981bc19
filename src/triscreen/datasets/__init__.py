"""Points and comparisons from files: bytes (read), rows (text), columns (table), features, and all of it (points)."""

from triscreen.datasets.comparisons import read_comparisons
from triscreen.datasets.points import Points
from triscreen.datasets.read import EMBEDDED, files_of, read_points

__all__ = ["EMBEDDED", "Points", "files_of", "read_comparisons", "read_points"]
