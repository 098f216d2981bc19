"""The order of a run's cells, one commit for all of them, and what is left out for want of time."""

from __future__ import annotations

import json

import pytest
from benchmarks.cells import name_of
from benchmarks.experiments import EXPERIMENTS

from benchmarks import plan, run


def cells_of(**costs):
    """Five subsamples of each."""
    return {name_of(cell): cell for cell in ({"kind": "race", "data": data, "seed": seed} for data in costs
                                             for seed in range(5))}  # fmt: skip


def walk(folder, minutes, commit="a", at_once=1, side_by_side=(), **costs):
    """Return what is measured, as (data, seed), and what is left out; each cell takes what it costs."""
    todo, taken = plan.Plan(cells_of(**costs), folder, commit, 0.0, minutes), []
    while names := todo.next(at_once, side_by_side):
        for name in names:
            cell = todo.cells[name]
            write(folder, name, cell, commit, costs[cell["data"]], len(names))
        todo.spend(max(costs[todo.cells[name]["data"]] for name in names))
        taken.append([(todo.cells[name]["data"], todo.cells[name]["seed"]) for name in names])
    return taken, [(todo.cells[name]["data"], todo.cells[name]["seed"]) for name in todo.left], todo


def write(folder, name, cell, commit, seconds=1.0, at_once=1):
    text = json.dumps({"cell": cell, "commit": commit, "seconds": seconds, "at_once": at_once})
    (folder / f"{name}.json").write_text(text)


def test_without_a_limit_cells_come_as_they_are_listed(tmp_path):
    taken, left, _ = walk(tmp_path, None, slow=100.0, quick=1.0)
    assert taken == [[(data, seed)] for data in ("slow", "quick") for seed in range(5)]
    assert left == []


def test_first_subsamples_then_quick_ones_then_three_of_the_rest_then_the_others(tmp_path):
    taken, left, _ = walk(tmp_path, 100, slow=100.0, slower=200.0, quick=1.0)
    flat = [one[0] for one in taken]
    assert flat[:3] == [("slow", 0), ("slower", 0), ("quick", 0)]
    assert flat[3:7] == [("quick", seed) for seed in range(1, 5)]
    assert flat[7:11] == [("slow", 1), ("slow", 2), ("slower", 1), ("slower", 2)]
    assert set(flat[11:]) == {(data, seed) for data in ("slow", "slower") for seed in (3, 4)}
    assert left == []


def test_what_no_verdict_is_made_of_waits_unless_it_is_tiny(tmp_path):
    costs = {("race", "slow"): 100.0, ("table", "short"): 30.0, ("table", "tiny"): 2.0}
    cells = {name_of(cell): cell for cell in ({"kind": kind, "data": data, "seed": seed} for kind, data in costs
                                              for seed in range(5))}  # fmt: skip
    todo, order = plan.Plan(cells, tmp_path, "a", 0.0, 100), []
    while names := todo.next():
        for name in names:
            write(tmp_path, name, cells[name], "a", costs[cells[name]["kind"], cells[name]["data"]])
            order.append(cells[name]["data"])
    assert order[3:] == ["tiny"] * 4 + ["slow"] * 2 + ["short"] * 4 + ["slow"] * 2


def test_what_would_end_too_late_is_left_out_and_what_still_fits_is_not(tmp_path):
    taken, left, todo = walk(tmp_path, 10, slow=100.0, slower=200.0, quick=1.0)
    flat = [one[0] for one in taken]
    assert todo.spent <= 600
    assert ("slow", 2) in flat
    assert ("slower", 1) in left
    assert len(flat) + len(left) == 15


def test_what_ended_without_numbers_is_not_tried_on_other_subsamples(tmp_path):
    cells = cells_of(lost=1.0, quick=1.0)
    todo, taken = plan.Plan(cells, tmp_path, "a", 0.0, 60), []
    while names := todo.next():
        for name in names:
            record = {"cell": cells[name], "commit": "a", "seconds": 1.0, "result": {"why": "over 60 s"}}
            if cells[name]["data"] == "quick":
                record["result"] = {"seconds": 1.0}
            (tmp_path / f"{name}.json").write_text(json.dumps(record))
            taken.append((cells[name]["data"], cells[name]["seed"]))
    assert [one for one in taken if one[0] == "lost"] == [("lost", 0)]
    assert len([one for one in taken if one[0] == "quick"]) == 5
    assert len(todo.left) == 4


def test_large_cells_come_last_and_only_where_there_is_time(tmp_path):
    cells = {**cells_of(slow=100.0), "large": {"kind": "race", "data": "large", "seed": 0}}
    for minutes, expected in ((3, False), (60, True)):
        todo, taken = plan.Plan(cells, tmp_path / "none", "a", 0.0, minutes, last=["large"]), []
        while names := todo.next():
            taken += names
            todo.spend(1.0)
        assert ("large" in taken) == expected
        assert ("large" in todo.left) != expected
        assert not expected or taken[-1] == "large"


def test_cells_of_another_commit_are_measured_again(tmp_path):
    name, cell = next(iter(cells_of(one=1).items()))
    write(tmp_path, name, cell, "b")
    assert plan.Plan({name: cell}, tmp_path, "a").n_there == 0
    assert plan.Plan({name: cell}, tmp_path, "b").n_there == 1


def test_a_run_that_goes_on_counts_what_it_took_before_and_begins_anew_for_another_commit(tmp_path):
    def claim(commit, **more):
        return plan.claim(tmp_path / "out", False, 5, commit, write=run._write, **more)

    state = claim("a")
    run._write(tmp_path / "out" / "run.json", {**state, "spent": 77.0})
    assert claim("a")["spent"] == 77.0
    assert claim("b")["spent"] == 0.0


def test_cells_of_one_thread_run_two_at_a_time_and_others_alone(tmp_path):
    taken, _, _ = walk(tmp_path, None, at_once=2, side_by_side=("race",), one=1.0)
    assert [len(names) for names in taken] == [2, 2, 1]
    folder = tmp_path / "alone"
    folder.mkdir()
    taken, _, _ = walk(folder, None, at_once=2, side_by_side=("table",), one=1.0)
    assert [len(names) for names in taken] == [1] * 5


@pytest.mark.parametrize("commit", ["0123456789ab with changes", "unknown"])
def test_a_full_run_wants_a_commit(tmp_path, monkeypatch, commit):
    monkeypatch.setattr(run, "_commit", lambda: commit)
    monkeypatch.setattr(run, "_here", lambda cell, options: ("ok", {}))
    with pytest.raises(ValueError, match="all cells of a full run are of one commit"):
        run.run(["exact"], out=tmp_path, isolate=False)
    counts = run.run(["exact"], out=tmp_path, isolate=False, anyway=True, say=lambda text: None)
    assert counts["done"] == len(EXPERIMENTS["exact"].cells(False, 5))


def test_a_run_of_no_minutes_leaves_everything_out_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "_commit", lambda: "a")
    said = []
    counts = run.run(["exact"], out=tmp_path, isolate=False, minutes=0.01, say=said.append)
    assert counts["left"] == len(EXPERIMENTS["exact"].cells(False, 5))
    assert "left out for want of time" in said[-1]


def test_a_run_measures_again_what_another_commit_left(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "_here", lambda cell, options: ("ok", {}))
    for commit, expected in (("a", 0), ("a", 12), ("b", 0)):
        monkeypatch.setattr(run, "_commit", lambda commit=commit: commit)
        counts = run.run(["exact"], out=tmp_path, isolate=False, say=lambda text: None)
        assert counts["there"] == expected
    assert {json.loads(file.read_text())["commit"] for file in tmp_path.glob("exact*.json")} == {"b"}


def test_two_cells_at_a_time_say_so_in_their_records(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "_commit", lambda: "a")
    monkeypatch.setattr(run, "_in_a_process", lambda cell, options: ("ok", {}))
    cells = [{"kind": "table", "table": name} for name in ("a", "b", "c")]
    monkeypatch.setattr(EXPERIMENTS["tables"], "cells", lambda quick, seeds: cells)
    assert run.run(["tables"], out=tmp_path, isolate=True, say=lambda text: None)["done"] == 3
    assert sorted(json.loads(file.read_text())["at_once"] for file in tmp_path.glob("table*.json")) == [1, 2, 2]


def test_the_commit_is_that_of_the_code(monkeypatch):
    monkeypatch.setattr(run.triscreen, "__file__", "/elsewhere/triscreen/__init__.py")
    assert run._commit().startswith("unknown (triscreen from elsewhere")
