"""Every example in a docstring runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import triscreen

MODULES = [*sorted(m.name for m in pkgutil.walk_packages(triscreen.__path__, "triscreen.")), "triscreen"]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_public_names_have_docstrings_with_examples():
    for name in ("knn_triplets", "given_triplets", "Problem", "solve", "SmoothedHinge"):
        assert ">>>" in getattr(triscreen, name).__doc__
