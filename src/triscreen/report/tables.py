"""The parts of a page that are texts and tables, as HTML; every name from the data is escaped."""

from __future__ import annotations

from html import escape

_SHOWN, _MATRIX, _PAIRS = 15, 12, 20


def rows_of(rows, heads):
    """Return rows of texts as a table that scrolls by itself."""
    head = "".join(f'<th scope="col">{escape(str(cell))}</th>' for cell in heads)
    body = ["<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows]
    return f"<table>\n<tr>{head}</tr>\n" + "\n".join(body) + "\n</table>"


def section(name, title, said, inside):
    """Return a section: a title, a paragraph, and what is in it."""
    return (
        f'<h2>{escape(title)}</h2>\n<p class="lead">{escape(said)}</p>\n<div class="scroll" id="{name}" tabindex="0" '
        f'role="region" aria-label="{escape(title)}">{inside}</div>'
    )


def suspects(facts):
    """Return the points or comparisons that cost most; nothing where that is not known."""
    if facts.suspects is None or len(facts.suspects) == 1:
        return ""
    heads, *rows = facts.suspects
    points, of = "label" in heads[:2], heads.index("share of the loss" if "label" in heads[:2] else "cost")
    said = (
        "Points whose comparisons have most of the loss, at the lambda that this page opens with: a comparison counts "
        "for each of its three points. Beside them the labels of their five nearest others, by the learned metric, and "
        "their values of the features that weigh most; a wrong label shows here."
        if points
        else "Comparisons with the largest loss at the lambda that this page opens with: a wrong answer shows here."
    )
    said += f" The first {min(len(rows), _SHOWN)} of {len(rows):,}, the file has all of these."
    if heads[0] == "row":
        said += " Rows count from 0, the first after a header."
    told = "{:.1%}" if points else "{:.3g}"
    shown = [[*row[:of], told.format(row[of]), *(f"{value:g}" for value in row[of + 1 :])] for row in rows[:_SHOWN]]
    button = '<p><button type="button" id="suspects-file" data-name="suspects.csv">Save as CSV</button></p>'
    what = "labels" if points else "answers"
    return section("suspects", f"Suspicious {what}", said, rows_of(shown, heads)) + button


def influence(facts, rows, n_triplets):
    """Return who can move the metric most, as a section; nothing where more than a tenth have no useful bound."""
    points = facts.influence_of == "points"
    what, n, unknown = (
        "point" if points else "comparison",
        facts.n_points if points else n_triplets,
        facts.influence_open,
    )
    if not rows or (unknown or 0) > 0.1 * n:
        return ""
    said = (
        f"How far the metric could move, at most, if a {what} had not been there (at the lambda that this page opens "
        "with), as a share of its size; wrong labels and answers are often among the first. A bound, not an estimate."
    )
    if facts.influence_half is not None:
        said += f" Without any one of half of the {what}s it moves by at most {100 * facts.influence_half:.2g} %."
    if unknown:
        said += f" Of {unknown:,} of the {n:,} {what}s nothing is proven (bounds above 100 %): they are not listed."
    shown = [[name, f"{share:.1%}"] for name, share in rows]
    return section("influence", f"Which {what}s weigh most", said, rows_of(shown, (what, "of the size of the metric")))


def held_out(facts):
    """Return neighbours before and after, and the confusion of held-out points; nothing where there are none."""
    if facts.neighbours is None:
        return ""

    def told(near):
        return ", ".join(f"{name} ({label})" for name, label in near)

    mended, spoilt = facts.changed
    said = (
        f"Of {facts.n_test:,} held-out points, by {facts.k} nearest neighbours, learning mended {mended:,} and spoilt "
        f"{spoilt:,} at the lambda that this page opens with (which was chosen on them). Some points with their five "
        "nearest ones, mended ones first."
    )
    rows = [[name, label, told(before), told(after)] for name, label, before, after in facts.neighbours]
    heads = ("held-out point", "label", "nearest before", "nearest after")
    return section("neighbours", "Nearest neighbours, before and after", said, rows_of(rows, heads)) + _confusion(facts)


def _confusion(facts):
    names = sorted({row[place] for row in facts.confusion for place in (0, 1)})
    if len(facts.classes) <= _MATRIX:
        names = sorted(set(names) | set(facts.classes), key=lambda name: (*facts.classes, *names).index(name))
        counts = {(true, taken): n for true, taken, n in facts.confusion}
        rows = [[true, *(counts.get((true, taken), 0) for taken in names)] for true in names]
        said = (
            "Held-out points at the lambda that this page opens with: their labels (rows), and what they are taken for "
            "(columns)."
        )
        return section("confusion", "What is taken for what", said, rows_of(rows, ["", *names]))
    rows = [row for row in facts.confusion if row[0] != row[1]][:_PAIRS]
    if not rows:
        return ""
    said = (
        "Held-out points that are taken for another class, at the lambda that this page opens with, the most frequent "
        "first."
    )
    return section("confusion", "What is taken for what", said, rows_of(rows, ("label", "taken for", "points")))


def use(path, facts, t):
    """Return how to use the result: parameters, the command that made it, and three lines of Python."""
    file = facts.file or "my.path"
    scaled = "X" if facts.shift is None else "(X - path.facts.shift) * path.facts.factor"
    made = "" if facts.file else "  # after ts.save(path, 'my.path')"
    lines = (
        "import triscreen as ts\n"
        f"path = ts.load({file!r}){made}\n"
        f'Z = ({scaled}) @ path.components(<span class="number">{t}</span>).T'
        .replace("(X) @", "X @")
    )  # fmt: skip
    lines = "\n".join(line if "<span" in line else escape(line, quote=False) for line in lines.split("\n"))
    parts = []
    if facts.command:
        parts.append(_copied("command", "The command", escape(facts.command, quote=False)))
    parts.append(
        _copied("python", "Z has the learned distance as its Euclidean one, at the lambda of the slider", lines)
    )
    options = (path._recipe or {}).get("command") or {}
    rows = [[name, "" if value is None else value] for name, value in options.items()]
    rows += [["tol", f"{path.tol:g}"], ["metrics", path.cone], ["lambdas", len(path)]]
    parts.append("<details><summary>Parameters</summary>" + rows_of(rows, ("parameter", "value")) + "</details>")
    return '<h2>Use it</h2>\n<div id="use">' + "\n".join(parts) + "</div>"


def _copied(name, title, text):
    return (
        f'<p class="lead">{title}: <button type="button" class="copy" data-of="{name}">Copy</button></p>'
        f'<pre id="{name}" tabindex="0">{text}</pre>'
    )
