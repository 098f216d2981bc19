"""Tables for notebooks."""

from __future__ import annotations

from html import escape


def html_table(caption, names, rows):
    """Return an HTML table with a sentence above it; every cell is a text."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
