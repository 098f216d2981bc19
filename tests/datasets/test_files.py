"""Files as they are in the world: gaps, categories, dates, decimal commas, comments, gz, vectors, maps of npy."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from triscreen.datasets import read_points
from triscreen.datasets.features import Preparation
from triscreen.datasets.points import wide_categories
from triscreen.errors import InputError

PETS = """# weighed in spring
name;weight;colour;tame;born;label
rex;30,5;brown;true;2020-01-01;dog
tom;4,5;black;false;2021-01-01;cat
ada;;brown;yes;2020-01-03;dog
# the one with three legs
kim;5,5;white;;2021-01-02;cat
lou;28;brown;true;2020-01-02;dog
"""
ALL = {"drop": ["name"], "decimal": ",", "categories": ["colour"], "dates": ["born"]}


def written(folder, text=PETS, name="pets.csv"):
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_a_decimal_comma_where_commas_separate_columns(tmp_path):
    """It was one column without a name, and the labels were blamed."""
    file = written(tmp_path, "age,weight,label\n1,2,a\n2,1,b\n")
    assert "so its numbers have points; leave it out" in refusal(file, decimal=",")
    for text in ("1,5 2,5 a\n2,5 1 b\n", "1,5;2,5;a\n2,5;1;b\n"):
        assert read_points(written(tmp_path, text), decimal=",").X.tolist() == [[1.5, 2.5], [2.5, 1.0]]


def refusal(*arguments, **more):
    with pytest.raises(InputError) as caught:
        read_points(*arguments, **more)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_everything_at_once(tmp_path):
    points = read_points(written(tmp_path), missing="median", keep=["name"], **{**ALL, "drop": []})
    assert points.feature_names == ["weight", "colour=black", "colour=brown", "colour=white", "tame", "born"]
    day = (np.array(["2020-01-01", "2021-01-01", "2020-01-03", "2021-01-02", "2020-01-02"], "M8[D]")).astype(float)
    # the median of the weights is 16.75, and more are tame than not
    wanted = [[30.5, 0, 1, 0, 1], [4.5, 1, 0, 0, 0], [16.75, 0, 1, 0, 1], [5.5, 0, 0, 1, 1], [28, 0, 1, 0, 1]]
    np.testing.assert_array_equal(points.X, np.column_stack([wanted, day]))
    assert points.y.tolist() == ["dog", "cat", "dog", "cat", "dog"]
    assert points.kept == {"name": ["rex", "tom", "ada", "kim", "lou"]}


def test_a_gap_is_refused_with_its_line_and_the_option(tmp_path):
    text = refusal(written(tmp_path), **ALL)
    assert "line 5, column 'weight': the value is missing ('')" in text
    assert "2 of 5 rows" in text
    assert "--missing median" in text
    assert "--missing drop" in text


def test_drop_leaves_out_rows_with_gaps_and_those_without_a_label(tmp_path):
    text = PETS + "eve;3,5;black;no;2021-01-04;\n"
    points = read_points(written(tmp_path, text), missing="drop", names="name", **{**ALL, "drop": []})
    assert points.rows.tolist() == [0, 1, 4]
    assert points.row_names == ["rex", "tom", "lou"]
    assert points.source_names == ["rex", "tom", "ada", "kim", "lou", "eve"]
    assert points.feature_names[1:3] == ["colour=black", "colour=brown"]  # white is nobody's any more
    assert "line 9, column 'label': the value is missing" in refusal(written(tmp_path, text), missing="median", **ALL)
    assert "none is left" in refusal(written(tmp_path, "a,label\n?,x\n,y\n"), missing="drop")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"decimal": "."}, "line 3, column 'weight': '30,5' is not a number, and numbers have a point"),
        (
            {"categories": []},
            "'brown' is not a number, and features are numbers (take the column for categories: --cat",
        ),
        ({"dates": []}, "'2020-01-01' is not a number, and dates become numbers, days since 1970, where you say so"),
        ({"missing": "mean"}, "missing='mean': it must be one of error, drop, median"),
        ({"decimal": ";"}, "decimal=';': it must be . or ,"),
        ({"categories": ["color"]}, "categories='color': source="),
        ({"dates": ["colour"], "categories": []}, "'brown' is no date such as 2024-12-31"),
        ({"categories": ["name", "colour"], "drop": []}, "categories='name': the column has 5 values in 5 rows"),
    ],
)
def test_what_is_refused(more, said, tmp_path):
    assert said in refusal(written(tmp_path), **{"missing": "median", **ALL, **more})


def test_days_that_are_none_and_zones(tmp_path):
    file = written(tmp_path, "when,label\n2024-02-30,a\n2024-01-01,b\n")
    assert "line 2, column 'when': '2024-02-30' is no day of the calendar" in refusal(file, dates=["when"])
    file = written(tmp_path, "when,label\n1970-01-02T12:00:00+0200,a\n1970-01-02 06:00,b\n")
    assert read_points(file, dates=["all"]).X.ravel().tolist() == [1 + 10 / 24, 1.25]


def test_what_was_learned_is_applied_to_new_files(tmp_path):
    first = read_points(written(tmp_path), missing="median", **ALL)
    known = Preparation.of(first.preparation.plain())
    assert known == first.preparation
    new = written(tmp_path, "born,tame,colour,weight\n2020-01-01,,brown,\n2020-01-01,no,black,7.5\n", "new.csv")
    wanted = {"labelled": False, "features": known.titles, "known": known}
    points = read_points(new, **wanted)
    np.testing.assert_array_equal(points.X[:, :5], [[16.75, 0, 1, 0, 1], [7.5, 1, 0, 0, 0]])
    assert points.feature_names == first.feature_names
    strange = written(tmp_path, "born,tame,colour,weight\n2020-01-01,no,pink,1\n", "new.csv")
    assert "line 2, column 'colour': 'pink' is a category that the model has not seen" in refusal(strange, **wanted)
    assert "the model knows what its columns are" in refusal(new, **wanted, categories=["colour"])


@pytest.mark.parametrize(
    "damage",
    [
        {"missing": "mean"},
        {"columns": []},
        {"columns": [{"title": "a", "kind": "code", "values": [], "fill": None, "size": 1}]},
        {"columns": [{"title": "a", "kind": "category", "values": [], "fill": None, "size": 1}]},
        {"columns": [{"title": "a", "kind": "number", "values": [], "fill": "x", "size": 1}]},
    ],
)
def test_what_is_no_preparation_is_refused(damage):
    good = {"missing": "error", "columns": [{"title": "a", "kind": "number", "values": [], "fill": 1.0, "size": 1}]}
    Preparation.of(good)
    with pytest.raises(ValueError, match=r"none|not"):
        Preparation.of({**good, **damage})


def test_comments_are_lines_and_never_cells(tmp_path):
    text = 'a,b,label\n1,2,"x\n# y"\n#9,9,z\n3,4,#k\n5,6,"x\n# y"\n'
    points = read_points(written(tmp_path, text))
    assert points.X.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert points.y.tolist() == ["x\n# y", "#k", "x\n# y"]
    assert "line 4, column 'a': 'p'" in refusal(written(tmp_path, "# one\na,label\n1,x\np,y\n"))


@pytest.mark.parametrize("name", ["pets.tsv.gz", "pets.csv.gz", "no-ending"])
def test_gz_is_seen_from_the_bytes(name, tmp_path):
    sign = "\t" if "tsv" in name else ","
    text = "a;b;label\n1.5;2;x\n2.5;3;y\n3.5;4;x\n".replace(";", sign)
    (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    assert read_points(tmp_path / name).X.tolist() == [[1.5, 2], [2.5, 3], [3.5, 4]]


def test_gz_that_is_cut_or_unpacks_to_too_much(tmp_path, monkeypatch):
    packed = gzip.compress(b"a,label\n" + b"1,x\n2,y\n" * 5000)
    (tmp_path / "a.gz").write_bytes(packed[:-20])
    assert "is no gz file that can be read" in refusal(tmp_path / "a.gz")
    monkeypatch.setattr("triscreen.datasets.read._UNPACKED", 1000)
    (tmp_path / "a.gz").write_bytes(packed)
    assert "unpacks to more than" in refusal(tmp_path / "a.gz")


def test_npy_stays_on_the_disk_and_float32_stays_float32(tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", np.arange(50) % 3)
    for points in (
        read_points(tmp_path / "X.npy", labelled=False),
        read_points(f"{tmp_path / 'X.npy'},{tmp_path / 'y.npy'}"),
    ):
        base = points.X
        while base is not None and not isinstance(base, np.memmap):
            base = base.base
        assert base is not None
        assert points.X.dtype == np.float32
        np.testing.assert_array_equal(points.X, X)
    np.save(tmp_path / "X.npy", X.astype(np.float16))
    assert read_points(tmp_path / "X.npy", labelled=False).X.dtype == np.float32
    (tmp_path / "X.npy").write_bytes((tmp_path / "X.npy").read_bytes()[:-4])
    assert "is no npy file that can be read" in refusal(tmp_path / "X.npy")


def test_gaps_in_arrays(tmp_path):
    X = np.array([[1.0, 2.0], [np.nan, 4.0], [5.0, 6.0], [9.0, 8.0]])
    np.savez(tmp_path / "a.npz", X=X, y=[0, 1, 0, 1])
    assert "row 1, column 0 (from 0): the value is nan" in refusal(tmp_path / "a.npz")
    assert read_points(tmp_path / "a.npz", missing="drop").y.tolist() == [0, 0, 1]
    assert read_points(tmp_path / "a.npz", missing="median").X[1].tolist() == [5.0, 4.0]


def test_parquet_with_vectors_gaps_categories_and_dates(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    vectors = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    table = pa.table(
        {
            "emb": pa.array(vectors, pa.list_(pa.float32())),
            "size": pa.array([1, None, 3]),
            "ok": pa.array([True, False, True]),
            "when": pa.array([0, 1, 2], pa.date32()),
            "kind": pa.array(["x", "y", "x"]).dictionary_encode(),
            "label": ["p", "q", "p"],
        }
    )
    file = tmp_path / "a.parquet"
    parquet.write_table(table, file)
    points = read_points(file, missing="median", categories=["kind"], dates=["when"])
    wanted = [[1, 2, 1, 1, 0, 1, 0], [3, 4, 2, 0, 1, 0, 1], [5, 6, 3, 1, 2, 1, 0]]
    np.testing.assert_array_equal(points.X, wanted)
    assert points.feature_names == ["emb[0]", "emb[1]", "size", "ok", "when", "kind=x", "kind=y"]
    assert "row 1, column 'size': the value is missing" in refusal(file, categories=["kind"], dates=["when"])
    assert "holds dates: dates become numbers" in refusal(file, categories=["kind"], missing="drop")
    alone = pa.table({"emb": pa.array(vectors, pa.list_(pa.float32(), 2)), "label": ["p", "q", "p"]})
    parquet.write_table(alone, file)
    points = read_points(file)
    assert points.X.dtype == np.float32
    np.testing.assert_array_equal(points.X, vectors)
    parquet.write_table(pa.table({"emb": [[1.0], [2.0, 3.0]], "label": ["p", "q"]}), file)
    assert "column 'emb' holds lists of 1, 2 items" in refusal(file)
    parquet.write_table(pa.table({"emb": [[1.0], None, [3.0]], "label": ["p", "q", "p"]}), file)
    assert read_points(file, missing="drop").rows.tolist() == [0, 2]
    assert "a vector lacks numbers, and has no median" in refusal(file, missing="median")


@pytest.mark.parametrize(("cell", "words"), [("4.5_1", "--categories"), ("2024-12-31", "--dates")])
@pytest.mark.parametrize(
    ("title", "named"), [("two\nlines", "1"), ("it's", "'it'\"'\"'s'"), ("b" * 90, "1"), ("b c", "'b c'")]
)
def test_a_hint_is_one_line_that_a_shell_takes(tmp_path, cell, words, title, named):
    file = tmp_path / "points.csv"
    file.write_text(f'a,"{title}",class\n1,2,u\n3,{cell},v\n5,{cell},u\n')
    with pytest.raises(InputError) as caught:
        read_points(str(file))
    said = str(caught.value)
    assert "\n" not in said
    assert f"{words} {named}" in said


def test_days_are_no_categories_unless_named(tmp_path):
    """--categories all made a feature of every day: hundreds of features, and a fit that took minutes for seconds."""
    file = written(tmp_path, "when,colour,label\n2024-01-01,red,a\n2024-01-02,blue,b\n2024-01-01,red,b\n")
    assert "column 'when' holds dates: dates become numbers" in refusal(file, categories=["all"])
    assert "--dates when" in refusal(file, categories=["all"])
    names = ["when", "colour=blue", "colour=red"]
    assert read_points(file, categories=["all"], dates=["all"]).feature_names == names
    named = read_points(file, categories=["when", "colour"])
    assert named.feature_names == ["when=2024-01-01", "when=2024-01-02", *names[1:]]
    assert wide_categories(named) == []
    many = "kind,label\n" + "".join(f"k{i % 60},{'ab'[i % 2]}\n" for i in range(180))
    assert wide_categories(read_points(written(tmp_path, many), categories=["kind"])) == [("kind", 60)]


def test_a_folder_of_parquet_files_is_one_table(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    table = pandas.DataFrame({"a": rng.normal(size=20), "b": np.arange(20), "kind": list("xy") * 10})
    (tmp_path / "parts").mkdir()
    table.to_parquet(tmp_path / "whole.parquet")
    table[:7].to_parquet(tmp_path / "parts" / "one.parquet")
    table[7:].to_parquet(tmp_path / "parts" / "two.parquet")
    whole, parts = (read_points(tmp_path / name, "kind") for name in ("whole.parquet", "parts"))
    assert np.array_equal(whole.X, parts.X)
    assert np.array_equal(whole.y, parts.y)
    assert whole.feature_names == parts.feature_names
    table[7:].drop(columns="b").to_parquet(tmp_path / "parts" / "two.parquet")
    with pytest.raises(InputError, match=r"two.parquet' has other columns than .*one.parquet'"):
        read_points(tmp_path / "parts", "kind")
    np.save(tmp_path / "parts" / "X-0.npy", np.eye(3))
    with pytest.raises(InputError, match=r"must hold parts X-\*.npy with y-\*.npy, or \*.parquet"):
        read_points(tmp_path / "parts", "kind")
