"""What is learned of columns is part of a model: new files become features as the first one did."""

from __future__ import annotations

import csv
import io
import shlex
import subprocess
import sys

import numpy as np
import pytest

import triscreen as ts
from commands import invoke, refusal

RNG = np.random.default_rng(3)


@pytest.fixture(scope="module")
def pets(tmp_path_factory):
    """A table with gaps and categories, and a model of it."""
    folder = tmp_path_factory.mktemp("pets")
    rows = ["id,weight,colour,label"]
    for number in range(30):
        weight = "" if number == 7 else f"{5 * (number % 2) + RNG.normal():.3f}"
        rows.append(f"p{number},{weight},{'red' if RNG.random() < 0.5 else 'blue'},{'dog' if number % 2 else 'cat'}")
    (folder / "pets.csv").write_text("\n".join(rows) + "\n")
    done = invoke("fit", folder / "pets.csv", "-o", folder / "m", "--lam-ratio", 0.1, "--drop", "id", "--missing",
                  "median", "--categories", "colour", "-q")  # fmt: skip
    assert done.code == 0, done.err
    return folder


def cells(text):
    return list(csv.reader(io.StringIO(text)))


def test_a_model_applies_medians_and_categories_to_new_files(pets, tmp_path):
    (tmp_path / "new.csv").write_text("colour,weight,id\nblue,,=1+1\nred,3,b\n")
    done = invoke("transform", pets / "m", tmp_path / "new.csv", "--keep", "id", "--keep", "weight")
    assert done.code == 0, done.err
    head, first, second = cells(done.out)
    assert head[:2] == ["id", "weight"]
    assert first[:2] == ["'=1+1", ""]  # nothing that a spreadsheet would run
    assert second[:2] == ["b", "3"]
    weights = np.array([float(row[1]) for row in cells((pets / "pets.csv").read_text())[1:] if row[1]])
    X = np.array([[np.median(weights), 1.0, 0.0], [3.0, 0.0, 1.0]])
    scaling, metric = ts.load(pets / "m")
    wanted = (X - scaling.shift_) * scaling.factor_ @ metric.components_.T
    np.testing.assert_allclose(np.array([first[2:], second[2:]], dtype=float), wanted, atol=1e-12)
    done = invoke("transform", pets / "m", tmp_path / "new.csv", "--missing", "drop")
    assert len(cells(done.out)) == 2
    assert "1 of 2 rows" in done.err


def test_a_model_without_medians_knows_none(tmp_path):
    assert invoke("fit", "iris", "--lam-ratio", 0.1, "-o", tmp_path / "m", "-q").code == 0
    (tmp_path / "new.csv").write_text("1,2,3,4\n1,,3,4\n2,2,2,2\n")
    said = refusal("transform", tmp_path / "m", tmp_path / "new.csv", "--missing", "median")
    assert "the model knows no medians" in said
    said = refusal("transform", tmp_path / "m", tmp_path / "new.csv")
    assert "line 2, column 1 (from 0): the value is missing" in said


def test_evaluate_and_path_take_the_same_columns(pets, tmp_path):
    done = invoke("evaluate", pets / "m", pets / "pets.csv", "-q")
    assert done.code == 0, done.err
    words = (pets / "pets.csv", "--drop", "id", "--missing", "median", "--categories", "colour")
    done = invoke("path", *words, "-o", tmp_path / "p", "--n-lambdas", 5, "-q")
    assert done.code == 0, done.err
    assert ts.load(tmp_path / "p").recipe["command"]["categories"] == ["colour"]
    pytest.importorskip("flint")
    done = invoke("verify", tmp_path / "p", pets / "pets.csv", "-q")
    assert done.code == 0, done.err


def test_validation_points_are_prepared_like_those_learned_from(pets, tmp_path):
    (tmp_path / "val.csv").write_text("id,weight,colour,label\na,,red,dog\nb,1,red,cat\nc,4,red,dog\n")
    words = (pets / "pets.csv", "--drop", "id", "--missing", "median", "--categories", "colour", "--n-lambdas", 3)
    done = invoke("path", *words, "--validate", tmp_path / "val.csv", "-o", tmp_path / "p", "-q")
    assert done.code == 0, done.err  # blue is no colour there, and a column of features all the same


def test_comparisons_of_rows_that_were_left_out_are_left_out(tmp_path):
    X = RNG.normal(size=(12, 2))
    rows = ["name,a,b"] + [f"n{i},{x[0]:.3f},{'' if i == 4 else f'{x[1]:.3f}'}" for i, x in enumerate(X)]
    (tmp_path / "x.csv").write_text("\n".join(rows) + "\n")
    said = [(0, 1, 2), (4, 5, 6), (7, 8, 4), (9, 10, 11), (5, 6, 7)]
    (tmp_path / "n.csv").write_text("\n".join(f"n{a},n{b},n{c}" for a, b, c in said))
    (tmp_path / "i.csv").write_text("\n".join(f"{a},{b},{c}" for a, b, c in said))
    made = []
    for file, names in (("n.csv", ["--names", "name"]), ("i.csv", ["--drop", "name"])):
        words = ["fit", tmp_path / "x.csv", "--comparisons", tmp_path / file, *names, "--lam-ratio", 0.1]
        done = invoke(*words, "--missing", "drop", "-o", tmp_path / "m")
        assert done.code == 0, done.err
        assert "2 of 5 comparisons are of rows that lack a value: left out" in done.err
        made.append(ts.load(tmp_path / "m")[-1].get_mahalanobis_matrix())
    np.testing.assert_array_equal(*made)


def test_npy_carries_no_columns_along(pets, tmp_path):
    said = refusal("transform", pets / "m", pets / "pets.csv", "--keep", "id", "-o", tmp_path / "z.npy")
    assert "keep='id': an npy file holds numbers only" in said


def modules(*words):
    """Return the packages that a command has imported by its end."""
    code = (
        "import sys; sys.argv = ['triscreen', *sys.argv[1:]]\n"
        "import atexit; atexit.register(lambda: print('\\n@', *{name.partition('.')[0] for name in sys.modules}))\n"
        "from triscreen.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("@")[2].split()), done.stdout.rpartition("\n@")[0]


def test_help_imports_no_numbers_and_transform_no_learning(pets, tmp_path):
    """Most of the time of a short command is imports: 0.3 and 1.5 s of processor time are what they may take."""
    heavy = {"numba", "scipy", "sklearn", "pandas", "dask", "plotly", "pyarrow"}
    found, text = modules("--help")
    assert "transform" in text
    assert not found & {"numpy", *heavy}
    assert not modules("transform", "--help")[0] & {"numpy", *heavy}
    found, text = modules("transform", pets / "m", pets / "pets.csv")
    assert len(cells(text.strip() + "\n")) == 31
    assert "numpy" in found
    assert not found & heavy


def test_transform_is_that_of_the_estimators(pets, tmp_path):
    for kind, dtype in (("npy", np.float32), ("npy", np.float64)):
        X = RNG.normal(size=(300, 4)).astype(dtype)
        np.save(tmp_path / "X.npy", X)
        assert invoke("fit", "iris", "--lam-ratio", 0.1, "-o", tmp_path / "m", "-q").code == 0
        out = tmp_path / f"z.{kind}"
        assert invoke("transform", tmp_path / "m", tmp_path / "X.npy", "-o", out, "--components", 2).code == 0
        scaling, metric = ts.load(tmp_path / "m")
        del scaling.feature_names_in_
        found = np.load(out)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, metric.transform(scaling.transform(X))[:, :2], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["none", "minmax", "standard", "libsvm"])
def test_scaling_of_float32_is_that_of_float64(kind, monkeypatch):
    from triscreen.cli.made import fit_scaling, put

    monkeypatch.setattr("triscreen.datasets.features._BLOCK", 64)
    X = (RNG.normal(size=(500, 5)) * [1, 10, 0.1, 1, 0] + [0, 100, 3, 1e4, 0.3]).astype(np.float32)
    wanted = ts.Scaling(kind).fit(X.astype(float))
    found = fit_scaling(kind, X)
    np.testing.assert_allclose(found.shift_, wanted.shift_, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.factor_, wanted.factor_, rtol=1e-9)
    Z = put(found, X)
    assert Z.dtype == np.float32
    np.testing.assert_allclose(Z, wanted.transform(X.astype(float)), atol=1e-3 if kind == "none" else 1e-5)


def test_points_in_float32_are_mapped_without_all_of_them_in_float64(tmp_path):
    """1e6 x 768 would become 6 GB twice: here in proportion."""
    import tracemalloc

    X = RNG.normal(size=(40_000, 64)).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    words = ("--comparisons", tmp_path / "said.csv", "--lam-ratio", 0.5, "-q")
    (tmp_path / "said.csv").write_text("0,1,2\n3,4,5\n6,7,8\n")
    assert invoke("fit", tmp_path / "X.npy", *words, "-o", tmp_path / "m").code == 0
    tracemalloc.start()
    try:
        done = invoke("transform", tmp_path / "m", tmp_path / "X.npy", "--components", 1, "-o", tmp_path / "z.npy")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert done.code == 0, done.err
    assert peak < 4 * X.nbytes  # blocks of 8 MB, and a mask of them; all of it in float64 twice would be as much again


def test_a_refusal_ends_with_all_options_that_the_columns_need(tmp_path):
    """One look at a table of the world says them all, and with them it is read."""
    rows = ["size;when;first colour;note;ok;label"]
    for number in range(60):
        gap = "" if number == 30 else f"{number % 2},{number}"
        rows.append(
            f"{gap};2024-01-{number % 28 + 1:02};{'red' if number % 3 else 'blue'};n{number};yes;{'ab'[number % 2]}"
        )
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    fit = ("fit", tmp_path / "t.csv", "--label", "label", "--lam-ratio", 0.1, "--dry-run")
    said = refusal(*fit)
    options = "--decimal , --dates when --categories 'first colour' --drop note --missing median"
    assert said.endswith(f"; all that the columns seem to need: {options}")
    done = invoke(*fit, *shlex.split(options))
    assert done.code == 0, done.err
    said = refusal(*fit, *shlex.split(options.replace("--dates when ", "").replace(" --missing median", "")))
    assert said.endswith("all that the columns seem to need: --dates when --missing median")
    said = refusal(*fit, *shlex.split(options.replace("--dates when ", "")))
    assert "--dates when" in said
    assert "all that" not in said


def test_options_that_no_line_would_hold_are_counted(tmp_path):
    """Hundreds of columns of text: a sentence stays one that can be read."""
    rows = [",".join(f"{word}{column}" for column in range(300)) for word in ("a", "b", "c")]
    (tmp_path / "t.csv").write_text("\n".join([*rows, ""]))
    said = refusal("path", tmp_path / "t.csv", "--label", "0", "-o", tmp_path / "out")
    assert said.endswith("; the columns seem to need 299 options: take a file with fewer columns")
    assert len(said) < 1000
