"""A path as a page that people want to open."""

from triscreen.report.details import write_suspects
from triscreen.report.facts import gather
from triscreen.report.page import write_report

__all__ = ["gather", "write_report", "write_suspects"]
