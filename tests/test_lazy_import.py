"""``import triscreen`` is at once, and everything is there when it is asked for."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import triscreen as ts


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_import_loads_nothing_but_the_standard_library():
    assert run("import sys, triscreen; print(*(m for m in ('numpy', 'numba', 'scipy') if m in sys.modules))") == []


def test_names_modules_and_star():
    """In any order, from a fresh process: functions, classes, and modules without an import of their own."""
    assert run("from triscreen import *; print(solve.__name__, Path.__name__, TripletMetric.__name__)") == [
        "solve", "Path", "TripletMetric",
    ]  # fmt: skip
    code = "import triscreen as ts; print(ts.path.__name__, ts.Path.__name__, ts.path.solve_path is ts.solve_path)"
    assert run(code) == ["triscreen.path", "Path", "True"]
    modules = [
        file.stem
        for file in Path(ts.__file__).parent.iterdir()
        if not file.name.startswith("__") and file.name != "py.typed"
    ]
    for name in modules:
        assert getattr(ts, name).__name__ == f"triscreen.{name}"
    for name in ts.__all__:
        assert getattr(ts, name).__name__ == name
        assert name in dir(ts)
    assert sorted(name for names in ts._HOMES.values() for name in names) == sorted(ts.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = ts.nonsense
    assert pickle.loads(pickle.dumps(ts.SmoothedHinge)) is ts.SmoothedHinge


def test_editors_see_the_same_names():
    import ast

    tree = ast.parse(Path(ts.__file__).read_text(encoding="utf-8"))
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name for node in checked.body for alias in node.names}
    assert seen == set(ts.__all__)
