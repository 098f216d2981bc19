"""The nightly attack finds what is wrong, adds up what it did, and can be repeated."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import probes
import pytest
from attack_bounds import attack
from attack_shards import sweep_shards

import night
from triscreen.path import balls
from triscreen.screening.by_triplet import Screener


def test_balls_and_decisions_of_some_paths():
    counts = Counter()
    for seed in range(12):
        attack(seed, counts)
    assert not counts["wrong"], counts
    assert counts["decisions"] > 20_000
    assert counts["hard"] > 1_500
    assert counts["predictions"] > 100


def test_nothing_leaves_shards_wrongly(monkeypatch):
    counts = sweep_shards(range(0, 40, 4))
    assert not counts["wrong"], counts
    assert counts["decisions"] > 1_000
    real = Screener._radius
    monkeypatch.setattr(Screener, "_radius", lambda self, *more: 0.3 * real(self, *more))
    assert sweep_shards(range(0, 40, 4))["wrong"]  # spheres that are too small are found


@pytest.mark.parametrize("what", ["radius", "center"])
def test_a_ball_that_is_too_small_is_found(monkeypatch, what):
    if what == "radius":
        real = balls.Between.square
        monkeypatch.setattr(balls.Between, "square", lambda self, p: 0.01 * real(self, p))
        monkeypatch.setattr(balls.Between, "reach", 1e-300)
    else:
        real = balls.Between.best
        monkeypatch.setattr(balls.Between, "best", lambda self, lam: _moved(real(self, lam)))
    counts = Counter()
    assert any(night.is_wrong(counts) or attack(seed, counts) for seed in range(20))


def _moved(ball):
    return balls.Ball(1.05 * ball.center, ball.square, ball.doubt)


def fine(seed, counts):
    counts.update(problems=1, decisions=seed)


def wrong_at_five(seed, counts):
    fine(seed, counts)
    if seed == 5:
        counts.update({"wrong": 1, "wrong: by hand, seed 5": 1})


def fails_at_five(seed, counts):
    fine(seed, counts)
    if seed == 5:
        raise RuntimeError("by hand")


@pytest.mark.parametrize("kind", [wrong_at_five, fails_at_five], ids=lambda kind: kind.__name__)
def test_it_ends_with_what_is_wrong_and_can_be_repeated(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(night, "KINDS", {"fine": fine, "other": kind})
    file = night.night(0.01, tmp_path, workers=1)
    assert file == tmp_path / "wrong-other-5.json"
    assert "by hand" in file.read_text()
    told = json.loads((tmp_path / "counts.json").read_text())
    assert told["kinds"]["fine"]["problems"] >= 5
    assert not any(":" in name for name in told["kinds"]["other"])
    if kind is wrong_at_five:
        assert night.is_wrong(night.again(file))
        assert night.main("again", str(file)) == 1


def test_nights_add_up_and_take_new_seeds(tmp_path, monkeypatch):
    seen = tmp_path / "seen"

    def seeing(seed, counts):
        with seen.open("a") as stream:
            stream.write(f"{seed}\n")
        counts.update(problems=1)

    monkeypatch.setattr(night, "KINDS", {"seeing": seeing})
    for _ in range(2):
        assert night.night(2e-5, tmp_path, workers=1) is None
    seeds = [int(line) for line in seen.read_text().split()]
    assert sorted(seeds) == list(range(len(seeds)))
    told = json.loads((tmp_path / "counts.json").read_text())
    assert told["kinds"]["seeing"]["problems"] == len(seeds) == told["next"]


def test_every_kind_has_seeds_that_repeat(monkeypatch):
    monkeypatch.setattr(probes, "MANY", probes.MANY)  # a night sets it
    for kind in night.KINDS:
        one, two = (night.attempt(kind, 22)[0] for _ in range(2))
        assert one == two
        assert not night.is_wrong(one)
        assert np.sum(list(one.values())) > 0


def test_a_night_may_be_of_some_kinds_only(tmp_path, monkeypatch):
    monkeypatch.setattr(night, "KINDS", {"fine": fine, "other": wrong_at_five})
    assert night.main("2e-5", str(tmp_path), "fine") == 0
    told = json.loads((tmp_path / "counts.json").read_text())["kinds"]
    assert told["fine"]["problems"] >= 1  # how many a moment has room for is the machine's affair
    assert not told["other"]
    with pytest.raises(SystemExit, match="kind 'fines' is none of fine, other"):
        night.main("2e-5", str(tmp_path), "fines")
