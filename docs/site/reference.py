"""The API reference: a page for every public name (tests/public.py), made anew for every build."""

from __future__ import annotations

import inspect
import re
from functools import cache

from pages import replace

import triscreen
from public import EXTENSION, FOR_US, parts, public_names

# Headings in the order of the way of the data; a home without one comes last, under its own name.
HEADINGS = {
    "triplets": "Triplets: who is compared with whom",
    "problem": "The problem and its certificate",
    "problem.losses": "Losses",
    "screening": "Screening",
    "solvers": "One lambda",
    "path": "All lambdas",
    "selection": "Choosing lambda",
    "estimators": "Estimators for scikit-learn",
    "persistence": "Saving and loading",
    "verification": "Rigorous verification",
    "distributed": "Many machines",
    "datasets": "Reading data",
    "report": "The report",
    "files": "Files",
    "errors": "Errors and warnings",
    "extension": "Parts of your own",
}
INTRODUCTIONS = {
    HEADINGS["extension"]: [
        "What they keep to, and what they are given; the first four are protocols for type checkers: nothing has",
        "to inherit from them. How to write one: :doc:`contributing`, and the examples of the gallery,",
        ":doc:`/gallery/plot_11_own_sphere` and :doc:`/gallery/plot_12_own_rule`.",
    ]
}


def home_of(name):
    """Return the heading's key that a public name belongs under."""
    if name in EXTENSION:
        return "extension"
    first, _, rest = name.partition(".")
    homes = [home for home, names in triscreen._HOMES.items() if rest in names]
    home = homes[0] if homes else rest.rpartition(".")[0]
    while home not in HEADINGS and "." in home:
        home = home.rpartition(".")[0]
    return home or first


def groups():
    """Return {heading: [names]} of every public name."""
    found = {home: [] for home in HEADINGS}
    for name in sorted(public_names(), key=str.lower):
        found.setdefault(home_of(name), []).append(name)
    found["extension"] = list(EXTENSION)  # in their own order
    return {HEADINGS.get(home, home): names for home, names in found.items() if names}


@cache
def places():
    """Return {name as types say it: dotted name} of every public class."""
    return {name.rpartition(".")[2]: name for name, thing in public_names().items() if inspect.isclass(thing)}


def link(word):
    """Return a link to the page of a class, or the word where there is none."""
    return f":py:obj:`{word} <{places()[word]}>`" if word in places() else word


def write(folder):
    """Write the list, and a page for each name."""
    names = public_names()
    lines = ["API reference", "=============", "", "Every public name, made from its docstring.", ""]
    for heading, members in groups().items():
        lines += [heading, "-" * len(heading), "", *INTRODUCTIONS.get(heading, ())]
        lines += ["", ".. toctree::", "   :hidden:", ""]
        lines += [f"   {name}" for name in members]
        lines += ["", ".. autosummary::", *(["   :nosignatures:"] if members[0] in EXTENSION else []), ""]
        lines += [f"   {name}" for name in members] + [""]
        for name in members:
            replace(folder / f"{name}.rst", page_of(name, names[name]))
    replace(folder / "api.rst", "\n".join(lines))


def page_of(name, thing):
    """Return the page of one name; of a class with those of its methods and properties that are for users."""
    home, _, own = name.rpartition(".")
    title = name.removeprefix("triscreen.")
    lines = [title, "=" * len(title), "", f".. currentmodule:: {home}", ""]
    if not inspect.isclass(thing):
        return "\n".join([*lines, f".. autofunction:: {own}", ""])
    methods = [part.rpartition(".")[2] for part, _ in parts(name, thing) if not part.endswith("__init__")]
    methods = [method for method in methods if method not in FOR_US and method != "__call__"]
    lines += [f".. autoclass:: {own}{'()' if vars(thing).get('_is_protocol') else ''}"]
    if inspect.isfunction(vars(thing).get("__call__")):
        lines += ["   :special-members: __call__"]
    if methods:
        lines += ["", "   .. rubric:: Methods and properties", ""]
        lines += [
            line
            for method in methods
            for line in (f"   .. auto{'property' if is_property(thing, method) else 'method'}:: {method}", "")
        ]
    return "\n".join([*lines, ""])


def is_property(thing, name):
    """Is this a property of the class?"""
    return not callable(getattr(thing, name))


def escaped(app, what, name, obj, options, lines):
    """Docstrings are written to be read as they are: |M|, components_ and a * b are no markup; names go together."""
    lines[:] = in_one(lines)
    code = False
    for number, line in enumerate(lines):
        words = line.strip()
        code = words.startswith((">>>", "...")) or (code and bool(words))
        if not code:
            lines[number] = typed(as_written(line), number > 0 and lines[number - 1].startswith("---"))


def as_written(line):
    """Return a line in which nothing but its bullet, and what stands between ticks, is markup."""
    bullet, line = re.fullmatch(r"(\s*\* )?(.*)", line).groups(default="")
    pieces = re.split(r"(``.+?``|`[^`]+`)", line)
    pieces[::2] = [plain(piece) for piece in pieces[::2]]
    return bullet + "".join(pieces)


def typed(line, first):
    """Return a line whose classes are links: a parameter and its type, or what the first line of a section returns."""
    head, colon, kind = line.partition(" : ")
    if colon and re.fullmatch(r"[\w\\]+(, [\w\\]+)*", head):
        return head + colon + re.sub(r"\b[A-Z]\w+\b", lambda found: link(found.group()), kind)
    return link(line) if first else line


def in_one(lines):
    """Return lines in which names that are described together are one head, on one line: numpydoc reads it so."""
    found = []
    for line in lines:
        if found and re.fullmatch(r"\w+(, \w+)*,", found[-1]) and re.match(r"\w+(, \w+)*(,$| :)", line):
            found[-1] += " " + line
        else:
            found.append(line)
    return found


def plain(text):
    """Return text in which bars, trailing underscores and stars, but for those around a word, are themselves."""
    stressed = r"(?<![\w*])(\*\w+\*)(?![\w*])"
    pieces = re.split(stressed, text)
    pieces[::2] = [re.sub(r"([|*])", r"\\\1", piece) for piece in pieces[::2]]
    text = "".join(pieces)
    return re.sub(r"(?<=[\w\]])_(?=\W|$)", r"\\_", text)
