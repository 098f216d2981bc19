"""The public surface has types."""

from __future__ import annotations

import inspect
from importlib.resources import files

import pytest

from public import parts, public_names


def untyped(function):
    """Return the parameters without a type, and "return"."""
    signature = inspect.signature(function)
    missing = [
        name
        for number, (name, parameter) in enumerate(signature.parameters.items())
        if parameter.annotation is parameter.empty and not (number == 0 and name in ("self", "cls"))
    ]
    made = function.__name__ == "__init__"
    return missing + ["return"] * (signature.return_annotation is signature.empty and not made)


@pytest.mark.parametrize("name", sorted(public_names()))
def test_a_public_name_has_types(name):
    missing = {part: untyped(function) for part, function in parts(name, public_names()[name])}
    assert {part: names for part, names in missing.items() if names} == {}


def test_type_checkers_may_look():
    assert (files("triscreen") / "py.typed").is_file()
