"""The examples run, and show what they say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"


def run(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main()


def test_neighbours():
    errors = run("neighbours")
    assert errors["learned"] <= errors["Euclid"]


def test_comparisons():
    result = run("comparisons")
    assert result["found"] == ["alcohol", "color_intensity", "flavanoids"]
    assert result["score"] > result["euclid"] + 0.05


def test_clustering():
    scores = run("clustering")
    assert scores["learned"] > scores["Euclid"] + 0.1


def test_text_adapter():
    scores = run("text_adapter")
    if scores is None:
        pytest.skip("20newsgroups-tfidf.npz not found: set TRISCREEN_DATA to the folder that holds it")
    assert scores["adapted"] > scores["frozen"]
