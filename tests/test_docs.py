"""What the README shows works as shown."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


def python_blocks(file):
    return re.findall(r"```python\n(.*?)```", (ROOT / file).read_text(), flags=re.DOTALL)


def test_the_readme_example():
    estimator, code = python_blocks("README.md")
    names = {}
    exec(estimator, names)
    assert names["model"][1].rel_gap_ <= 1e-3
    names = {}
    exec(code, names)
    sol = names["sol"]
    assert sol.converged
    assert sol.M.shape == (13, 13)
    said = float(re.search(r"True, (\S+)\n", code).group(1))
    assert sol.rel_gap == pytest.approx(said, rel=0.5)
    assert names["path"].converged.all()


def test_the_pages(tmp_path, monkeypatch):
    import triscreen as ts

    monkeypatch.chdir(tmp_path)

    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 2
    X[:, 0] += 2 * y
    problem = ts.Problem(X, ts.knn_triplets(X, y, 3))
    for page in sorted((ROOT / "docs").glob("*.md")):
        for code in python_blocks(page):
            exec(code, {"ts": ts, "problem": problem, "lam": 1.0, "folder": tmp_path / "checkpoint"})
