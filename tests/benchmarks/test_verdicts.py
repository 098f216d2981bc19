"""Verdicts with a spread: holds, does not hold, undecided; and sections made of several subsamples."""

from __future__ import annotations

import re

import numpy as np
import pytest
from benchmarks.cells import name_of
from benchmarks.experiments import EXPERIMENTS, active, common, dask, neighbours, paths, rules, selection, totals
from benchmarks.experiments.verdicts import HOLDS, MISSED, OPEN, above, all_of, any_of, below, shares, show, spread
from scipy.stats import t as student

from benchmarks import page


def test_the_interval_is_students_for_the_mean():
    values = [1.0, 1.2, 1.1, 0.9, 1.3]
    found = spread(values)
    assert found.mean == pytest.approx(1.1)
    low, high = student.interval(0.95, 4, loc=np.mean(values), scale=np.std(values, ddof=1) / np.sqrt(5))
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        ([2.2, 2.25, 2.3], HOLDS),
        ([1.7, 1.75, 1.8], MISSED),
        ([1.7, 2.0, 2.4], OPEN),
        ([2.5, 2.5, 2.5], HOLDS),
        ([2.0, 2.0, 2.0], HOLDS),  # at the bar, without any spread
        ([0.0, 0.0, 0.0], MISSED),
        ([99.0, 99.0], OPEN),  # two subsamples say nothing
        ([99.0], OPEN),
        ([], OPEN),
        ([99.0, None, float("nan")], OPEN),  # what is not there does not count
    ],
)
def test_a_verdict_needs_an_interval_on_one_side_of_the_bar(values, outcome):
    assert above(values, 2.0) == outcome
    mirrored = {HOLDS: HOLDS, MISSED: MISSED, OPEN: OPEN}[outcome]
    assert below([None if value is None else -value for value in values], -2.0) == mirrored


def test_the_rate_of_wrong_verdicts_is_that_of_the_interval():
    """Where the mean is at the bar itself, each side is claimed in about 2.5 % of the runs."""
    rng = np.random.default_rng(0)
    found = [above(rng.normal(2.0, 0.3, 5), 2.0) for _ in range(4000)]
    for outcome in (HOLDS, MISSED):
        assert 0.015 < found.count(outcome) / len(found) < 0.035


def test_one_part_that_fails_is_enough_and_one_that_is_open_leaves_it_open():
    assert all_of(HOLDS, HOLDS) == HOLDS
    assert all_of(HOLDS, OPEN) == OPEN
    assert all_of(HOLDS, OPEN, MISSED) == MISSED
    assert all_of() == OPEN
    assert any_of(MISSED, HOLDS, OPEN) == HOLDS
    assert any_of(MISSED, OPEN) == OPEN
    assert any_of(MISSED, MISSED) == MISSED
    assert any_of() == OPEN


def test_a_spread_is_shown_where_there_is_one():
    assert show([1.0, 1.1, 1.2]) == "1.10 ± 0.25"
    assert show([1.0]) == "1.00"
    assert show([]) == ""
    assert show([12.3, 12.5, 12.1], None) == "12.30 ± 0.50"
    assert show([1234.0, 1434.0, 1334.0], None) == "1334 ± 248"
    assert show([0.0123456], None) == "0.0123"
    assert show([2.0, 2.0, 2.0], None) == "2.00 ± 0.00"
    assert shares([0.5, 0.6, 0.7], 0) == "60 ± 25 %"
    assert shares([0.5]) == "50.0 %"


# Sections, of records that are made up here.


def record(cell, result, commit="aaaaaaaaaaaa"):
    machine = {"cpu": "one", "cores": 2, "gigabytes": 1, "system": "Linux"}
    return {"cell": cell, "status": "ok", "result": {"cut": False, **result}, "seconds": 1.0, "limit": 60.0,
            "machine": machine, "versions": {"python": "3"}, "commit": commit, "date": "2026-01-01"}  # fmt: skip


def race(cell, factors, rng):
    """A race of ten lambdas in which each case takes about its factor."""

    def one(factor):
        seconds = (factor * (1 + 0.01 * rng.random(10))).tolist()
        rates = np.linspace(0.9, 0.7, 10).tolist()
        return {"seconds": seconds, "screening": 0.1 * sum(seconds), "n_iter": 10, "passes": 10.0 * factor,
                "converged": 10, "first_rate": rates, "last_rate": rates, "rates": [[rate] for rate in rates],
                "graded": 2, "worst_rel_gap": 1e-7}  # fmt: skip

    cases = {case: one(factors.get(case, 1.0)) for case in cell["cases"]}
    return {"n": 90, "d": 4, "triplets": 1000, "pairs": 100, "lambda_max": 1.0, "wanted": 10,
            "lambdas": np.geomspace(1, 0.1, 10).tolist(), "cases": cases}  # fmt: skip


def results_of(cells, factors, seeds):
    rng = np.random.default_rng(0)
    return page.Results([record(cell, race(cell, factors, rng)) for cell in cells], False, seeds)


def lines_of(text):
    return [line for line in text.splitlines() if line.startswith(common.CLAIM)]


@pytest.mark.parametrize(("seeds", "said"), [(5, "Here it holds"), (2, "Here it is *undecided*")])
def test_a_claim_of_two_times_is_decided_by_five_subsamples_and_not_by_two(seeds, said):
    pytest.importorskip("matplotlib")
    results = results_of(rules.races(False, seeds), {"pgb": 0.4, "gb+linear": 0.45}, seeds)
    text, _ = rules.show(results)
    (line,) = (line for line in lines_of(text) if "2 to 10 times" in line)
    assert said in line
    assert ("±" in line) == (seeds == 5)
    assert ("Mean of 5 subsamples" in text) == (seeds == 5)


def test_a_claim_about_all_data_sets_fails_on_one():
    pytest.importorskip("matplotlib")
    slow = dict.fromkeys(("gb", "pgb", "dgb", "rrpb", "rrpb+pgb"), 2.0)
    rng, cells = np.random.default_rng(0), totals.cells(False, 3)
    records = [record(cell, race(cell, slow if cell["data"] == "iris" else dict.fromkeys(slow, 0.5), rng))
               for cell in cells]  # fmt: skip
    text, _ = totals.show(page.Results(records, False, 3))
    (line,) = (line for line in lines_of(text) if "every bound is faster" in line)
    assert "**does not hold**: for certain on 4 of 5 data sets (wine, segment, satimage, phishing)" in line
    table = text.splitlines()
    assert "| subsamples | 3 | 3 | 3 | 3 | 3 | 3 |" in table


def test_the_active_set_is_shown_against_itself_and_against_no_screening():
    pytest.importorskip("matplotlib")
    factors = {"path.active": 2.0, "path.active+rrpb": 1.0, "path.active+rrpb+pgb": 1.0, "path.auto": 0.5}
    text, _ = active.show(results_of(active.cells(False, 3), factors, 3))
    rows = [line for line in text.splitlines() if line.startswith("| phishing")]
    assert len(rows) == 3  # against the active set, against none, passes
    assert re.search(r"1\.00 \(20\.\d s\).* 2\.00 ± 0\.0\d \(10 s\) / 3\.76", rows[0])
    assert re.search(r"\| 0\.50 ± 0\.0\d \| 1\.00", rows[1])
    assert "against no screening: 2.0" in text
    (line,) = lines_of(text)
    assert "**does not hold**" in line  # four times on one data set is asked


def test_the_page_counts_what_holds_what_does_not_and_what_is_undecided():
    texts = dict.fromkeys(EXPERIMENTS, "")
    texts["rules"] = "\n".join(
        common.claim(f"claim {k}.", outcome, "so") for k, outcome in enumerate((HOLDS, MISSED, OPEN))
    )
    assert page.claims(texts, False).splitlines()[2:] == [
        "| [Rules compared (segment)](#rules-compared-segment) | 1 of 3 | Claim 1. | Claim 2. |"
    ]


def test_the_page_says_whether_all_cells_are_of_one_commit():
    cells = rules.races(False, 2)
    one = [record(cell, {}) for cell in cells]
    assert "All cells of commit aaaaaaaaaaaa." in page.about(one, page.Results(one, False, 2))
    two = [one[0], record(cells[1], {}, "bbbbbbbbbbbb")]
    assert "**Cells of several commits**: aaaaaaaaaaaa, bbbbbbbbbbbb." in page.about(two, page.Results(two, False, 2))


def test_paths_say_whether_the_default_is_faster():
    cells = [cell for cell in paths.cells(False, 3) if cell["data"] in ("iris", "wine")]
    records = []
    for cell in cells:
        ways = {way: {"seconds": seconds + 0.001 * cell["seed"], "passes": 10.0, "overhead": 1.2, "lambdas": 30}
                for way, seconds in (("default", 1.0), ("none", 2.0 if cell["data"] == "iris" else 0.5))}  # fmt: skip
        records.append(record(cell, {"triplets": 1000, "ways": ways}))
    text, _ = paths.show(page.Results(records, False, 3))
    assert re.search(r"\| iris \| 0\.9 \| 1,000 \| 30 \| 3 \|.*\| 2\.00 ± 0\.00 \| yes \|", text)
    assert re.search(r"\| wine \|.*\| 0\.50 ± 0\.00 \| \*\*no\*\* \|", text)


def test_selections_say_in_how_many_splits_something_is_proven():
    cells = [cell for cell in selection.cells(False, 3) if cell["data"] == "wine"]
    records = [record(cell, {"cut": cell["seed"] == 2, "n": 160, "d": 13, "held_out": 18, "eps": 0.01, "decided": 0.9,
                             "error": 0.02, "gap": 0.01, "solved": 5, "evaluated": 9, "path": 1.0, "bounds": 0.1,
                             "search": 2.0}) for cell in cells]  # fmt: skip
    text, _ = selection.show(page.Results(records, False, 3))
    assert "| 2 of 3 |" in text


def test_neighbours_are_shown_next_to_the_others():
    cells = neighbours.cells(False, 5)[:1]
    methods = {name: {"seconds": [seconds, seconds + 0.01, seconds], "processor": [seconds] * 3}
               for name, seconds in (("triscreen", 1.0), ("sklearn", 3.0))}  # fmt: skip
    text, _ = neighbours.show(
        page.Results([record(cells[0], {"n": 8000, "d": 10, "k": 10, "methods": methods})], False, 5)
    )
    assert "scikit-learn" in text
    assert "faiss (" not in text.split("|", 1)[1]  # it was not there
    assert "(2.99 ± 0.03)" in text


def test_dask_is_shown_with_the_cost_of_a_round():
    cells = dask.cells(False, 5)[:1]
    workers = {key: {"setup": 1.0, "pass": [scale, scale * 1.01, scale], "solve": [10 * scale] * 3}
               for key, scale in (("0", 0.1), ("1", 0.1), ("2", 0.05))}  # fmt: skip
    rounds = [[32, 2, 0.01], [32, 8, 0.02], [200, 2, 0.03], [200, 8, 0.04]]
    found = {"n": 50000, "d": 32, "k": 5, "pairs": 500000, "workers": workers, "rounds": rounds}
    text, _ = dask.show(page.Results([record(cells[0], found)], False, 5))
    assert "| 32 | 10 | 20 |" in text
    assert "2.00 ± 0.0" in text


def test_names_of_cells_are_those_of_their_files():
    for experiment in (paths, selection, neighbours, dask):
        assert len({name_of(cell) for cell in experiment.cells(False, 5)}) == len(experiment.cells(False, 5))
