"""What commands say of data that are not what they seem: known comparisons, numbers of rows, labels to carry along."""

from __future__ import annotations

import json

import numpy as np
import pytest

from commands import invoke
from triscreen.datasets import read_points
from triscreen.datasets.points import Points, look_like_ids
from triscreen.datasets.seals import seals

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def patients(tmp_path_factory):
    """A table with ids, and two sets of comparisons of its rows, of which the second has 7 of the first."""
    folder = tmp_path_factory.mktemp("patients")
    X, sick = RNG.normal(size=(40, 2)), RNG.integers(0, 2, 40)
    X[:, 0] += 3 * sick
    ids = 1000 + RNG.permutation(40)
    lines = [f"{ids[i]},{X[i, 0]:.6f},{X[i, 1]:.6f},{'ill' if sick[i] else 'well'}" for i in range(40)]
    (folder / "points.csv").write_text("\n".join(["patient_id,a,b,diagnosis", *lines, ""]))
    rows = RNG.integers(0, 40, (200, 3))
    rows = rows[[len(set(row)) == 3 for row in rows.tolist()]]
    near, far = (abs(X[rows[:, 0], 0] - X[rows[:, c], 0]) for c in (1, 2))
    rows = np.unique(np.where((near < far)[:, None], rows, rows[:, [0, 2, 1]]), axis=0)
    np.savetxt(folder / "first.csv", rows[:100], "%d", ",")
    np.savetxt(folder / "second.csv", rows[93:150], "%d", ",")
    more = ("--drop", "patient_id", "--drop", "diagnosis")
    for name, words in (("judged.model", (*more, "--comparisons", folder / "first.csv")),
                        ("labelled.model", ("--drop", "patient_id", "--lam-ratio", "0.1"))):  # fmt: skip
        assert invoke("fit", folder / "points.csv", *words, "-o", folder / name).code == 0
    return folder


@pytest.mark.parametrize(("name", "known", "total"), [("first.csv", 100, 100), ("second.csv", 7, 57)])
def test_comparisons_that_a_model_was_learned_from_are_known_again(patients, name, known, total):
    words = ("evaluate", patients / "judged.model", patients / "points.csv", "--comparisons", patients / name)
    done = invoke(*words, "--json")
    assert (done.code, json.loads(done.out)["n_learned_from"]) == (0, known)
    assert f"{known} of these {total} comparisons are among those that the model was learned from" in done.err
    assert "learned from" not in invoke(*words, "--quiet", "--json").err


def test_other_comparisons_get_no_such_word(patients, tmp_path):
    turned = np.loadtxt(patients / "first.csv", int, delimiter=",")[:, [1, 0, 2]]
    known = {tuple(row) for row in np.loadtxt(patients / "first.csv", int, delimiter=",").tolist()}
    np.savetxt(tmp_path / "other.csv", [row for row in turned.tolist() if tuple(row) not in known], "%d", ",")
    done = invoke(
        "evaluate", patients / "judged.model", patients / "points.csv", "--comparisons", tmp_path / "other.csv"
    )
    assert done.code == 0
    assert "learned from" not in done.err


def test_lambda_by_folds_of_comparisons_says_the_error_before_and_after(patients, tmp_path):
    """--cv was refused with --comparisons, and nothing was said of any error."""
    words = ("fit", patients / "points.csv", "--drop", "patient_id", "--drop", "diagnosis",
             "--comparisons", patients / "first.csv", "--cv", 2, "-o", tmp_path / "m")  # fmt: skip
    done = invoke(*words)
    assert done.code == 0, done
    told = json.loads(invoke(*words, "--json").out)
    before, after = (100 * told[f"error_{name}"] for name in ("before", "after"))
    assert "held-out comparisons in the wrong order: " in done.err
    assert f"{before:.1f}% (" in done.err
    assert f"-> {after:.1f}% (" in done.err
    assert f"of {told['n_held_out']} comparisons, 95 % interval" in done.err
    assert told["error_after_interval"][0] <= told["error_after"] <= told["error_after_interval"][1]
    low, high = json.loads(invoke(*words[:-2], "--dry-run", "--json").out)["passes"]
    assert 0 < low < high
    assert "error_before" not in json.loads(invoke(*words[:-4], "-o", tmp_path / "m", "--json").out)
    assert "cv='2': it has no effect with --lam-ratio" in invoke(*words, "--lam-ratio", 0.1).err


def test_seals_tell_comparisons_apart():
    X = RNG.normal(size=(30, 3))
    rows = np.array([(a, b, c) for a in range(30) for b in range(30) for c in range(30) if len({a, b, c}) == 3])
    found = seals(X, rows)
    assert len(np.unique(found)) == len(rows)
    order = RNG.permutation(30)
    np.testing.assert_array_equal(seals(X[order], np.argsort(order)[rows]), found)  # points count, not their numbers
    X[0, 0] = 0.0
    zero = seals(X, rows[:5])
    X[0, 0] = -0.0
    np.testing.assert_array_equal(seals(X, rows[:5]), zero)


def test_a_column_of_ids_is_told_of(patients, tmp_path):
    words = ("fit", patients / "points.csv", "--lam-ratio", "0.1", "-o", tmp_path / "m")
    done = invoke(*words)
    assert "warning: column 'patient_id' of" in done.err
    assert "tells rows apart, but is taken for a feature: --drop patient_id leaves it out" in done.err
    assert "tells rows apart" not in invoke(*words, "--drop", "patient_id").err


def test_a_column_of_many_categories_is_told_of(tmp_path):
    file = tmp_path / "many.csv"
    file.write_text("kind,x,label\n" + "".join(f"k{i % 60},{i % 7},{'ab'[i % 2]}\n" for i in range(180)))
    words = ("fit", file, "--categories", "kind", "--dry-run")
    assert "warning: column 'kind' of" in invoke(*words).err
    assert "becomes 60 features, one for each value: the more features, the longer" in invoke(*words).err


@pytest.mark.parametrize(
    ("title", "values", "is_one"),
    [
        ("patient_id", [7, 3, 9, 11, 5], True),
        ("ID", [7, 3, 9, 11, 5], True),
        ("row number", [7, 3, 9, 11, 5], True),
        ("age", [3, 4, 5, 6, 7], True),  # counts the rows
        (None, [0, 1, 2, 3, 4], True),
        ("age", [7, 3, 9, 11, 5], False),
        ("patient_id", [7, 3, 9, 11, 7], False),  # some come twice
        ("patient_id", [7, 3, 9, 11, 5.5], False),
        ("acid", [7, 3, 9, 11, 5], False),
        ("id", [1, 2, 3], False),  # too few to tell
    ],
)
def test_what_looks_like_an_id(title, values, is_one):
    X = np.column_stack([np.resize([0.5, 0.25], len(values)), values])
    points = Points(X, None, None if title is None else ["x", title], "points")
    assert look_like_ids(points) == ([title or "1"] if is_one else [])


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer"])
def test_measurements_do_not_look_like_ids(name):
    assert look_like_ids(read_points(name)) == []


@pytest.mark.parametrize("column", ["patient_id", "diagnosis"])
def test_labels_are_carried_along_under_their_name(patients, column):
    done = invoke("transform", patients / "labelled.model", patients / "points.csv", "--label", column)
    assert done.code == 0, done.err
    head, *lines = done.out.splitlines()
    table = [line.split(",") for line in (patients / "points.csv").read_text().splitlines()]
    assert head.split(",")[-1] == column
    assert [line.split(",")[-1] for line in lines] == [row[table[0].index(column)] for row in table[1:]]
