"""What is certain about neighbours in all balls between two: against many shares, and every vote there can be."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from triscreen._kernels import certain


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    """Kernels that are for other kernels only are called as the functions that they are."""
    for name in ("_positive", "_nearer", "outcome"):
        kernel = getattr(certain, name)
        monkeypatch.setattr(certain, name, getattr(kernel, "py_func", kernel))


@pytest.mark.parametrize("seed", range(4))
def test_a_margin_is_positive_in_every_ball_or_not(seed):
    rng, seen = np.random.default_rng(seed), set()
    p = np.linspace(0, 1, 401)
    for _ in range(150):
        f1, f2 = rng.uniform(-0.2, 3, 2)
        size, s1, s2 = rng.uniform(0.1, 2, 3)
        off1, off2 = rng.uniform(0, 0.3, 2)
        k = rng.uniform(-1, 8)
        g = (1 - p) * (f1 - off1 * np.sqrt(size)) + p * (f2 - off2 * np.sqrt(size))
        square = (1 - p) ** 2 * s1 + p**2 * s2 + p * (1 - p) * k
        least = (np.sign(g) * g * g - size * square).min()
        if abs(least) < 1e-3:
            continue
        told = bool(certain._positive(f1, f2, size, s1, s2, k, off1, off2))
        assert told == (least > 0), (f1, f2, size, s1, s2, k, off1, off2)
        seen.add(told)
    assert seen == {True, False}


@pytest.mark.parametrize("seed", range(4))
def test_nearer_takes_every_doubt_to_the_safe_side(seed):
    """|H| and <H, Q> as they are, with their doubts: the answer of `_positive` for the worst of them."""
    rng, seen = np.random.default_rng(seed), set()
    for _ in range(150):
        u, v = rng.normal(size=(2, 3))
        s, other_s, dot = u @ u, v @ v, u @ v
        d1, d2, other1, other2 = rng.uniform(0, 3, 4)
        doubt, trace = 10 ** rng.uniform(-3, -1), rng.uniform(0.5, 2)
        balls = (0.02, 0.03, 0.05, 0.01, 0.02)
        size = (np.linalg.norm(np.outer(u, u) - np.outer(v, v)) + doubt) ** 2
        f1, f2 = other1 - d1 - trace * doubt, other2 - d2 - trace * doubt
        wanted = bool(certain._positive(f1, f2, size * (1 + 1e-6), *balls))
        loosely = bool(certain._positive(f1, f2, size * (1 - 1e-6), *balls))
        if wanted == loosely:
            found = certain._nearer(d1, d2, other1, other2, s, other_s, dot, doubt, trace, *balls)
            assert bool(found) == wanted
            seen.add(wanted)
    assert seen == {True, False}


def votes(sure, maybe, left):
    """Every result of a vote where so many of those that may come do."""
    ranges = [range(m + 1) for m in maybe]
    return [np.add(sure, more) for more in itertools.product(*ranges) if sum(more) == left]


@pytest.mark.parametrize("classes", [2, 3])
def test_a_vote_is_told_where_it_is_certain(classes):
    seen = set()
    for sure in itertools.product(range(3), repeat=classes):
        for maybe in itertools.product(range(3), repeat=classes):
            for left in range(sum(maybe) + 1):
                winners = {int(np.argmax(result)) for result in votes(sure, maybe, left)}  # ties: the first class
                for y in range(classes):
                    found = certain.outcome(np.array(sure), np.array(maybe), left, sum(maybe), y)
                    seen.add(found)
                    if found == 1:
                        assert winners == {y}
                    elif found == -1:
                        assert y not in winners
                    elif classes == 2:  # bounds of one class are those of the other
                        assert len(winners) == 2
    assert seen == {-1, 0, 1}
