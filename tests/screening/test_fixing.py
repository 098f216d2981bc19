"""Fixed triplets: one file sets what they leave behind, and both ways to it agree within the bound that they give."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import triscreen as ts
from problems import make_case, random_metric
from triscreen.screening import rules
from triscreen.screening.fixing import fix_by_difference, fix_by_sum

ROOT = Path(ts.__file__).parent
CONSTANTS = {"linear_matrix", "linear_weight", "linear_error"}
OWNERS = {"problem/engine.py", "problem/rounding.py"}


def writes(tree):
    """Yield what sets one of the constants: an assignment to it, setattr, or a call of what makes a fixed engine."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del) and node.attr in CONSTANTS:
            yield node.attr
        elif isinstance(node, ast.Call):
            if getattr(node.func, "id", None) == "setattr" and getattr(node.args[1], "value", None) in CONSTANTS:
                yield f"setattr {node.args[1].value}"
            elif getattr(node.func, "attr", None) == "with_fixed":
                yield "with_fixed"


@pytest.mark.parametrize("file", sorted(ROOT.rglob("*.py")), ids=lambda f: str(f.relative_to(ROOT)))
def test_nothing_but_fixing_makes_an_engine_with_fixed_triplets(file):
    own = file.relative_to(ROOT).as_posix()
    found = set(writes(ast.parse(file.read_text())))
    if own == "screening/fixing.py":
        assert found == {"with_fixed"}
    elif own in OWNERS:
        assert found <= CONSTANTS
    else:
        assert not found


@pytest.mark.parametrize("code", ["e.linear_matrix = 1", "e.r.linear_error += 1", "setattr(e, 'linear_weight', 1)"])
def test_a_write_is_found(code):
    assert list(writes(ast.parse(code)))


@pytest.mark.parametrize("cone", ["psd", "diagonal"])
@pytest.mark.parametrize("weighted", [False, True])
def test_by_difference_and_by_sum_agree_within_their_bounds_and_once_more(cone, weighted):
    problem = make_case(7, cone=cone, weighted=weighted).problem
    triplets, gamma = problem.triplets, problem.loss.gamma
    M, lam = random_metric(3, 3, cone, 0.3), 0.1 * problem.lambda_max()
    engine, dist = problem, problem.distances(problem.cone.project(M).factor)
    for _ in range(2):  # the second time from an engine that has fixed triplets already
        triplets = engine.triplets
        e = engine.evaluate(M, dist, lam, gamma)
        positive, negative = triplets.pair_numbers(np.ones(triplets.n_triplets, dtype=bool))
        margins = dist[negative] - dist[positive]
        zones = np.where(margins < 1 - gamma, rules.LINEAR, np.where(margins > 1, rules.ZERO, rules.UNDECIDED))
        zones[: triplets.n_triplets // 2] = rules.UNDECIDED
        left = triplets.let_go(zones.astype(np.int8), dist, gamma)
        pairs, less = left.pairs, engine.restrict(left.triplets, left.pairs)
        assert not left.strays
        by_sum = fix_by_sum(engine, less, left)
        error = engine.rounding.matrix(e.A, e.sums.alpha)
        swept = less.sweep(dist[pairs], gamma)
        by_difference = fix_by_difference(less, swept, e.A, error, by_sum.linear_weight)
        before = 0 if engine.linear_matrix is None else engine.linear_matrix
        apart = np.linalg.norm(by_sum.linear_matrix - by_difference.linear_matrix)
        assert left.linear > 0
        assert np.linalg.norm(by_sum.linear_matrix - before) > 0
        assert apart <= by_sum.rounding.linear_error + by_difference.rounding.linear_error
        for made in (by_sum, by_difference):
            assert made.rounding.triplets is made.triplets
            assert made.rounding.linear_error > engine.rounding.linear_error
            smaller = made.evaluate(M, dist[pairs], lam, gamma)
            assert (smaller.primal, smaller.gap) == pytest.approx((e.primal, e.gap), rel=1e-9, abs=1e-12)
        assert (less.linear_matrix is None) == (engine.linear_matrix is None)  # nothing is written in place
        engine, dist = by_sum, dist[pairs]
