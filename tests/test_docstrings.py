"""Every public name says in its docstring what it takes, what it gives, how it is used and where it comes from."""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import inspect
import re
from functools import cache

import pytest

from public import parts, public_names

NAMES = public_names()


def sections(text):
    """Return {title: lines} of a numpydoc docstring."""
    pieces = re.split(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", inspect.cleandoc(text), flags=re.MULTILINE)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def described(found):
    """Return the names that Parameters and Attributes speak of: the words of lines that are not indented."""
    lines = "\n".join(found.get(title, "") for title in ("Parameters", "Attributes")).splitlines()
    heads = [line.split(" :")[0] for line in lines if line and not line.startswith(" ")]
    return {word for head in heads for word in re.findall(r"\w+", head)}


def asked(thing):
    """Return the names that have to be described: parameters; of results, which users do not make, their fields."""
    if dataclasses.is_dataclass(thing):
        return {field.name for field in dataclasses.fields(thing)}
    function = thing.__init__ if inspect.isclass(thing) else thing
    made_by_others = inspect.isclass(thing) and "; made by" in (thing.__doc__ or "")
    if made_by_others or not inspect.isfunction(inspect.unwrap(function)):
        return set()
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    signature = inspect.signature(function).parameters
    return {name for name, p in signature.items() if p.kind not in kinds and name not in ("self", "message")}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_parameters_and_returns(name):
    thing = NAMES[name]
    found = sections(thing.__doc__)
    assert asked(thing) - described(found) == set()
    if not inspect.isclass(thing) and inspect.signature(thing).return_annotation != "None":
        assert "Returns" in found or "Yields" in found


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_parameter_has_words(name):
    lines = [line for line in sections(NAMES[name].__doc__).get("Parameters", "").splitlines() if line]
    heads = [
        k for k, line in enumerate(lines) if not line.startswith((" ", "-")) and not line.endswith((",", "ignored"))
    ]
    assert [lines[k] for k in heads if not "".join(lines[k + 1 : k + 2]).startswith("    ")] == []


@cache
def collected(module):
    """Return {name: examples} of what `tests/test_doctests.py` runs of a module."""
    return {found.name: found.examples for found in doctest.DocTestFinder().find(importlib.import_module(module))}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_an_example_that_runs_and_shows_something(name):
    thing = NAMES[name]
    assert ">>> " in sections(thing.__doc__).get("Examples", "")
    examples = collected(thing.__module__)[f"{thing.__module__}.{thing.__qualname__}"]
    assert any(example.want for example in examples)
    assert [example.options for example in examples if example.options] == []  # none is skipped


@pytest.mark.parametrize("name", sorted(NAMES))
def test_references(name):
    assert re.search(r"KDD 2018|[Oo]urs|scikit-learn|docs/\w+", sections(NAMES[name].__doc__).get("References", ""))


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_public_method_says_what_it_does(name):
    methods = [(part, function) for part, function in parts(name, NAMES[name]) if not part.endswith("__init__")]
    assert [part for part, function in methods if not function.__doc__] == []
