"""Small changes to a module that make it wrong: one at a time, on its syntax tree.

Operators and comparisons are exchanged, terms are dropped, min and max swapped, checks removed. What follows stays as
it is, because nothing that is decided or bounded hangs on it (docs/reliability.md names the same kinds):

* what only counts work or words a message (`_ACCOUNTS`, `_QUIET`, ``__repr__``);
* statements that say how much is worked on at a time (`_SIZES`);
* < for <= and the like at 1 and at 1 - gamma: a margin that is at its limit has the alpha of the zone (`_LIMITS`);
* what a constant below `_HAIR` is added to or multiplied with: generous allowances for the last digits.

A `Mutant` is one changed function; its name is what was changed into what, so that it stays the same as lines move.
"""

from __future__ import annotations

import ast
import copy
import re
from dataclasses import dataclass

_ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
               ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}  # fmt: skip
_EDGE = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
_OPPOSITE = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
             ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}  # fmt: skip
_SWAPPED = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any"}
# What counts work or tells of it decides nothing.
_ACCOUNTS = {"passes", "events", "n_evaluated", "n_solved", "nbytes"}
_QUIET = {"shortened", "InputError", "ValueError", "_refusal", "warning", "debug", "info"}
_SIZES = re.compile(r"\b(_CHUNK|_ROOM|_CROWD|_BLOCK|memory_budget)\b")
_LIMITS = {"1.0", "1.0 - gamma", "1 - gamma"}
_HAIR = 1e-8


@dataclass(frozen=True)
class Mutant:
    """One change: where (module file, function, line), what into what, and how many alike came before it."""

    file: str
    function: str
    line: int
    old: str
    new: str
    number: int

    @property
    def name(self):
        """What stays the same when lines move."""
        more = f" ({self.number + 1})" if self.number else ""
        return f"{self.function}: {self.old} -> {self.new}{more}"


def _is_hair(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, float) and 0 < node.value < _HAIR


def _edits(node):
    """Give replacements of one node of a tree; None: the statement goes."""
    if isinstance(node, ast.BinOp) and (_is_hair(node.left) or _is_hair(node.right)):
        return
    if isinstance(node, ast.BinOp):
        if type(node.op) in _ARITHMETIC:
            yield ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right)
        if isinstance(node.op, ast.Add | ast.Sub):
            yield node.left
        if isinstance(node.op, ast.Add):
            yield node.right
    elif isinstance(node, ast.AugAssign):
        if type(node.op) in _ARITHMETIC:
            yield ast.AugAssign(node.target, _ARITHMETIC[type(node.op)](), node.value)
        yield None
    elif isinstance(node, ast.Compare):
        for place, op in enumerate(node.ops):
            for table in (_EDGE, _OPPOSITE):
                limit = place == 0 and table is _EDGE and {ast.unparse(s) for s in (node.left, node.comparators[0])}
                if type(op) in table and not (limit and limit & _LIMITS):
                    ops = [table[type(op)]() if n == place else other for n, other in enumerate(node.ops)]
                    yield ast.Compare(node.left, ops, node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        if len(node.values) > 2:
            for place in range(len(node.values)):
                yield ast.BoolOp(node.op, node.values[:place] + node.values[place + 1 :])
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        if not isinstance(node.operand, ast.Constant):
            yield node.operand
    elif isinstance(node, ast.Call):
        yield from _calls(node)
    elif isinstance(node, ast.Raise | ast.Continue):
        yield None
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.Constant) and type(node.value.value) is bool:
        yield ast.Return(ast.Constant(not node.value.value))


def _calls(node):
    called = node.func
    name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else None
    if name in _SWAPPED:
        swapped = copy.copy(called)
        setattr(swapped, "id" if isinstance(called, ast.Name) else "attr", _SWAPPED[name])
        yield ast.Call(swapped, node.args, node.keywords)
        if name in ("min", "max", "minimum", "maximum") and len(node.args) == 2:
            yield from (arg for arg in node.args if not isinstance(arg, ast.Constant | ast.Starred))
    elif name == "abs" and len(node.args) == 1:
        yield node.args[0]


def _quiet(node):
    """Is this a message, an account, an annotation or the like?"""
    if isinstance(node, ast.JoinedStr | ast.Raise):
        return not isinstance(node, ast.Raise)
    if isinstance(node, ast.Call):
        name = getattr(node.func, "id", getattr(node.func, "attr", None))
        return name in _QUIET
    if isinstance(node, ast.AugAssign | ast.Assign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return all(getattr(t, "id", getattr(t, "attr", None)) in _ACCOUNTS for t in targets)
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _of_events(node.value)


def _of_events(call):
    return "events" in ast.unparse(call.func)


def _places(body, inside=()):
    """Give (names of functions around, node) of every node in a function's body, but for quiet ones."""
    for node in body:
        if _quiet(node):
            continue
        if isinstance(node, ast.FunctionDef):
            yield from _places(node.body, (*inside, node))
            continue
        if isinstance(node, ast.ClassDef):
            yield from _places(node.body, (*inside, node))
            continue
        if any(isinstance(outer, ast.FunctionDef) for outer in inside):
            yield inside, node
        if isinstance(node, ast.Raise):
            continue
        fields = [value for name, value in ast.iter_fields(node) if name not in ("annotation", "returns")]
        nodes = [child for value in fields for child in (value if isinstance(value, list) else [value])]
        children = [child for child in nodes if isinstance(child, ast.AST)]
        yield from _places(children, inside)


def mutants(file, source):
    """Give (Mutant, function that makes its tree) for every change of a source."""
    tree, seen = ast.parse(source), {}
    lines = source.split("\n")
    for inside, node in _places(tree.body):
        if inside[-1].name == "__repr__" or _SIZES.search(lines[getattr(node, "lineno", 1) - 1]):
            continue
        for edit in range(sum(1 for _ in _edits(node))):
            new = list(_edits(node))[edit]
            shown = "pass" if new is None else ast.unparse(new)
            function = ".".join(outer.name for outer in inside)
            old = ast.unparse(node).split("\n")[0]
            if isinstance(node, ast.Raise):
                old = "raise " + old.removeprefix("raise ")[:60]
            key = function, old, shown
            number = seen[key] = seen.get(key, -1) + 1
            yield Mutant(file, function, node.lineno, old, shown, number), _maker(source, node, edit)


def _maker(source, node, edit):
    place = node.lineno, node.col_offset, node.end_lineno, node.end_col_offset, type(node)

    class Change(ast.NodeTransformer):
        done = False

        def visit(self, other):
            here = (getattr(other, "lineno", 0), getattr(other, "col_offset", 0), getattr(other, "end_lineno", 0),
                    getattr(other, "end_col_offset", 0), type(other))  # fmt: skip
            if not self.done and here == place:
                self.done = True
                new = list(_edits(other))[edit]
                return ast.copy_location(ast.Pass() if new is None else new, other)
            return self.generic_visit(other)

    def make():
        tree = Change().visit(ast.parse(source))
        return ast.fix_missing_locations(tree)

    return make
