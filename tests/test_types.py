"""The public surface has types."""

from __future__ import annotations

import inspect
import re
from importlib.resources import files

import pytest

from public import FOR_US, parts, public_names
from test_docstrings import described, sections

# Of these it has to be said what they hold.
BARE = re.compile(r"\b(list|dict|tuple|set|PathLike|Sequence|Iterable|Iterator)\b(?!\[)")


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


def attributes(thing):
    """Return {name: type, as it is written} of the attributes and properties of a class, "" where there is none."""
    written = {}
    for base in reversed(thing.__mro__):
        written |= vars(base).get("__annotations__", {})
        for name, found in vars(base).items():
            getter = getattr(found, "fget", getattr(found, "func", None))
            if inspect.isfunction(getter):
                written[name] = inspect.signature(getter).return_annotation
    return {name: "" if kind is inspect.Signature.empty else str(kind) for name, kind in written.items()}


@pytest.mark.parametrize("name", sorted(name for name, thing in public_names().items() if inspect.isclass(thing)))
def test_an_attribute_that_is_described_has_a_type(name):
    thing = public_names()[name]
    asked = described({"Attributes": sections(thing.__doc__).get("Attributes", "")})
    written = attributes(thing)
    assert {attribute for attribute in asked if not written.get(attribute)} == set()
    assert {attribute for attribute in asked if BARE.search(written[attribute])} == set()


@pytest.mark.parametrize("name", sorted(public_names()))
def test_a_type_says_what_is_inside(name):
    for part, function in parts(name, public_names()[name]):
        if part.rpartition(".")[2] not in FOR_US:
            signature = inspect.signature(function)
            written = {key: str(parameter.annotation) for key, parameter in signature.parameters.items()}
            written["return"] = str(signature.return_annotation)
            assert {key: kind for key, kind in written.items() if BARE.search(kind)} == {}, part


def test_type_checkers_may_look():
    assert (files("triscreen") / "py.typed").is_file()
