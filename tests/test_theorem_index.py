"""The index of docs/maths.md: every theorem has a function and a test, and both exist."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "maths.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([^|`]+) \| [^|`]+ \| `([^`|]+)` \| `([^`|]+)` \|$", PAGE, flags=re.MULTILINE)
# As LaTeX numbers the theorem environments of the arXiv version: within sections.
THEOREMS = [*(f"Theorem 3.{n}" for n in range(1, 11)), "Theorem 4.1"]


def found(name):
    """Return what a name stands for: "module: sphere", by the name it has in BOUNDS, or a dotted name."""
    module, colon, sphere = name.partition(": ")
    if colon:
        home = importlib.import_module(module)
        assert sphere in home.BOUNDS, f"{module} has no sphere {sphere}"
        return home.BOUNDS[sphere] if isinstance(home.BOUNDS, dict) else getattr(home, sphere)
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            thing = getattr(thing, part)
        return thing
    raise AssertionError(f"there is no {name}")


def test_every_row_of_the_index_is_read():
    table = PAGE.split("## Index", 1)[1]
    assert len(ROWS) == len(re.findall(r"^\| ", table, flags=re.MULTILINE)) - 1  # but for its head


@pytest.mark.parametrize("name", sorted({row[1] for row in ROWS}))
def test_a_function_of_the_index_exists(name):
    assert found(name).__doc__, f"{name} says nothing about itself"


@pytest.mark.parametrize("name", sorted({row[2] for row in ROWS}))
def test_a_test_of_the_index_exists(name):
    file, test = name.split("::")
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"there is no {name}"


@pytest.mark.parametrize("theorem", THEOREMS)
def test_every_theorem_of_the_paper_has_a_row(theorem):
    assert any(re.match(rf"{re.escape(theorem)}( |$)", row[0]) for row in ROWS)


def test_every_sphere_and_rule_has_a_row():
    from triscreen.screening.rules import RULES
    from triscreen.screening.spheres import BOUNDS

    names = {row[1] for row in ROWS}
    assert {f"triscreen.screening.spheres: {name}" for name in BOUNDS} <= names
    assert all(any(rule in row[1].rsplit(".", 1)[-1] for row in ROWS) for rule in RULES)


def test_a_theorem_named_in_a_docstring_is_one_of_the_papers():
    for file in sorted((ROOT / "src").rglob("*.py")):
        for number in re.findall(r"Theorem (\d[\d.]*\d)", file.read_text(encoding="utf-8")):
            assert f"Theorem {number}" in THEOREMS, f"{file.name}: the paper has no Theorem {number}"
