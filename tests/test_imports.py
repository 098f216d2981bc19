"""Imports point one way, from people down to points: docs/architecture.md has the same stages, in words."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import triscreen

ROOT = Path(triscreen.__file__).parent
# A module may import only from its own stage and from stages further up this list.
STAGES = [
    "errors",
    "_utils",
    "verification",
    "_kernels",
    "triplets",
    "problem",
    "distributed",
    "screening",
    "solvers",
    "path",
    "selection",
    "datasets",
    "estimators",
    "persistence",
    "report",
    "cli",
]


def stage_of(module):
    return module.split(".")[1] if "." in module else "__init__"


def imported(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.name}: imports are absolute here"
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("file", sorted(ROOT.rglob("*.py")), ids=lambda f: str(f.relative_to(ROOT)))
def test_a_module_imports_only_stages_above_its_own(file):
    own = file.relative_to(ROOT).with_suffix("").parts[0]
    if own in ("__init__", "__main__", "files"):  # public names of what lies below
        return
    assert own in STAGES, f"{own} has no place in the way of the data"
    for module in imported(file):
        if module == "triscreen":
            assert own == "cli", f"{file.name} imports all of triscreen"  # commands are users of it
        elif module.split(".")[0] == "triscreen":
            assert STAGES.index(stage_of(module)) <= STAGES.index(own), f"{file.name} imports {module}"


@pytest.mark.parametrize("file", sorted(ROOT.rglob("*.py")), ids=lambda f: str(f.relative_to(ROOT)))
def test_only_commands_print_and_nothing_private_of_scikit_learn_is_used(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print" or file.parent.name == "cli", (
                f"{file.name}:{node.lineno} prints: log instead"
            )
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "sklearn":
            names = [*node.module.split("."), *(alias.name for alias in node.names)]
            assert not any(name.startswith("_") for name in names), f"{file.name} imports {'.'.join(names)}"


def test_import_is_light():
    """Scikit-learn, scipy.linalg and friends are loaded when needed, not by ``import triscreen``."""
    code = (
        "import sys, triscreen; print([m for m in ('sklearn', 'pandas', 'scipy.linalg', 'rich') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
