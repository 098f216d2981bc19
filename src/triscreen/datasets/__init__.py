"""Points and comparisons from files: which bytes (read), which rows (text), which columns (table)."""

from triscreen.datasets.read import EMBEDDED, files_of, read_comparisons, read_points
from triscreen.datasets.table import Points

__all__ = ["EMBEDDED", "Points", "files_of", "read_comparisons", "read_points"]
