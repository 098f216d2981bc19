"""Points and comparisons come in as they are in the file, or are refused in one sentence with the place."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import triscreen as ts
from triscreen.datasets import EMBEDDED, read_comparisons, read_points

X = np.array([[1.5, -2.0], [3.0, 4e-3], [0.0, 1.0], [7.0, 8.0]])
TEXTS = {
    "commas.csv": "a,b,label\n1.5,-2,x\n3,4e-3,y\n0,1,x\n7,8,y\n",
    "no header.csv": "1.5,-2,x\n3,4e-3,y\n0,1,x\n7,8,y\n",
    "label first.csv": "class;a;b\nx;1.5;-2\ny;3;4e-3\nx;0;1\ny;7;8",
    "tabs.tsv": "a\tb\tspecies\n1.5\t-2\tx\n3\t4e-3\ty\n0\t1\tx\n7\t8\ty\n",
    "blanks.txt": "1.5  -2 x\n\n3 4e-3   y\n0 1 x\n7 8 y\n",
    "windows.csv": "\ufeffa,b,label\r\n1.5,-2,x\r\n3,4e-3,y\r\n\r\n0,1,x\r\n7,8,y\r\n",
    "quotes.csv": '"a","b","label"\n"1.5","-2","x"\n3,4e-3,"y"\n0,1,x\n7,8,y\n',
    "numbers as names.csv": "0,1,label\n1.5,-2,x\n3,4e-3,y\n0,1,x\n7,8,y\n",
}


def refusal(call, *arguments, **more):
    with pytest.raises(ts.InputError) as caught:
        call(*arguments, **more)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def put(tmp_path):
    def put(text, name="a.csv"):
        file = tmp_path / name
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(file)

    return put


@pytest.mark.parametrize("name", TEXTS)
def test_tables_of_text(put, name):
    points = read_points(put(TEXTS[name], name))
    np.testing.assert_array_equal(points.X, X)
    assert points.y.tolist() == ["x", "y", "x", "y"]
    names = None if name in ("no header.csv", "blanks.txt") else ["0", "1"] if "numbers" in name else ["a", "b"]
    assert points.feature_names == names


@given(st.lists(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3), min_size=2))
def test_every_float_comes_back_exactly(rows):
    text = "\n".join(",".join(map(repr, row)) for row in rows)
    stdin, sys.stdin = sys.stdin, SimpleNamespace(buffer=io.BytesIO(text.encode()))
    try:
        points = read_points("-", labelled=False)
    finally:
        sys.stdin = stdin
    np.testing.assert_array_equal(points.X, rows)


def test_labels_by_name_by_number_and_by_default(put):
    file = put("a,y,c\n1,0,5\n2,1,6\n3,0,6\n")
    assert read_points(file).y.tolist() == [0, 1, 0]
    assert read_points(file, label="c").y.tolist() == [5, 6, 6]
    assert read_points(file, label=-1).label == "column 'c'"
    assert read_points(file, label="2").feature_names == ["a", "y"]
    assert read_points(file, labelled=False).X.shape == (3, 3)
    assert read_points(file, labelled=False).y is None
    assert read_points(file, drop=["a"]).feature_names == ["c"]
    assert read_points(file, features=["c", "a"]).X.tolist() == [[5, 1], [6, 2], [6, 3]]
    whole = put("1,1.0\n2,2.0\n3,1.0\n4,0.5\n5,0.5\n6,0.5\n7,0.5\n8,0.5")
    assert read_points(whole).y.tolist() == ["1.0", "2.0", "1.0", "0.5", "0.5", "0.5", "0.5", "0.5"]
    assert read_points(put("1,1.0\n2,2.0\n3,1.0")).y.tolist() == [1, 2, 1]


def test_a_column_of_names_is_no_feature(put):
    points = read_points(put("who,a,b\nann,1,2\nbob,3,4\n"), names="who", labelled=False)
    assert points.row_names == ["ann", "bob"]
    assert points.X.tolist() == [[1, 2], [3, 4]]


def test_arrays(tmp_path, put):
    y = np.array([0, 1, 0, 1])
    np.savez(tmp_path / "a.npz", X=X, y=y)
    np.savez(tmp_path / "b.npz", data=X.astype(np.float32), target=np.array(["p", "q", "p", "q"]))
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "table.npy", np.c_[X, y])
    for source in ("a.npz", "table.npy"):
        points = read_points(tmp_path / source)
        np.testing.assert_array_equal(points.X, X)
        assert points.y.tolist() == [0, 1, 0, 1]
    assert read_points(tmp_path / "b.npz").y.tolist() == ["p", "q", "p", "q"]
    np.testing.assert_array_equal(read_points(f"{tmp_path}/X.npy,{tmp_path}/y.npy").X, X)
    np.savez(tmp_path / "c.npz", X=X)
    assert "lacks the array y" in refusal(read_points, tmp_path / "c.npz")
    assert read_points(tmp_path / "c.npz", labelled=False).y is None
    np.savez(tmp_path / "d.npz", X=X, y=y[:3])
    assert "3 labels for 4 points" in refusal(read_points, tmp_path / "d.npz")
    np.savez(tmp_path / "e.npz", X=X.astype(object), y=y)
    assert "no npz file that can be read" in refusal(read_points, tmp_path / "e.npz")
    bad = X.copy()
    bad[2, 1] = np.nan
    np.savez(tmp_path / "f.npz", X=bad, y=y)
    assert "row 2, column 1 (from 0): the value is nan" in refusal(read_points, tmp_path / "f.npz")
    whole = (tmp_path / "a.npz").read_bytes()
    assert "no npz file that can be read" in refusal(read_points, put(whole[: len(whole) // 2], "cut.npz"))
    assert "no npy file that can be read" in refusal(read_points, put(b"\x93NUMPY\x01", "cut.npy"))


def test_svmlight(put):
    text = "+1 1:1.5 2:-2\n-1 1:3 2:4e-3  # a remark\n+1 2:1\n-1 1:7 2:8\n"
    points = read_points(put(text, "a.t"))
    np.testing.assert_array_equal(points.X, X)
    assert points.y.tolist() == [1, -1, 1, -1]
    assert read_points(put(text), n_features=5).X.shape == (4, 5)
    assert "line 3: '1 2:x' is not" in refusal(read_points, put("1 1:2\n-1 2:3\n1 2:x\n"))
    assert "looks continuous" in refusal(read_points, put("".join(f"{i + 0.5} 1:{i}\n" for i in range(9))))


def test_parquet_with_bytes_that_are_no_text(tmp_path):
    """Titles and texts are decoded when they are asked for: what is wrong in them is refused all the same."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    file = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"zzqq": [1.0, 2.0], "y": [0, 1]}), file)
    file.write_bytes(file.read_bytes().replace(b"zzqq", b"\xe1zqq"))
    assert "is no parquet file that can be read" in refusal(read_points, file)
    texts = pa.StringArray.from_buffers(2, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"\xe1x"))
    for column in (texts, pa.DictionaryArray.from_arrays(pa.array([0, 1]), texts)):
        parquet.write_table(pa.table({"a": [1.0, 2.0], "y": column}), file)
        assert "is no parquet file that can be read" in refusal(read_points, file)
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 4]), pa.array([1.0, 2.0, 3.0, 4.0]))
    parquet.write_table(pa.table({"v": lists, "y": [0, 1]}), file)
    assert read_points(file).X.shape == (2, 2)


def test_parquet(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table({"a": X[:, 0], "b": X[:, 1], "kind": ["x", "y", "x", "y"]})
    parquet.write_table(table, tmp_path / "a.parquet")
    points = read_points(tmp_path / "a.parquet")
    np.testing.assert_array_equal(points.X, X)
    assert (points.y.tolist(), points.feature_names) == (["x", "y", "x", "y"], ["a", "b"])
    assert "row 0, column 'kind': 'x' is not a number" in refusal(
        read_points, tmp_path / "a.parquet", label="a", drop=[]
    )
    parquet.write_table(pa.table({"a": [1.0, None], "y": [0, 1]}), tmp_path / "b.parquet")
    assert "row 1, column 'a': the value is missing" in refusal(read_points, tmp_path / "b.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "triscreen[parquet]" in refusal(read_points, tmp_path / "a.parquet")


@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_data_sets(name):
    points = read_points(name)
    assert len(points.X) == len(points.y)
    assert len(points.feature_names) == points.X.shape[1]
    assert name != "digits" or points.X.max() == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        (b"\x00\x01\x02" * 50, "is a binary file"),
        ("a,b,label\n", "has a header and no rows"),
        ("a,b,label\n1,2,x\n3,4,y,5\n1,1,x\n", "line 3: it has 4 columns, the first line has 3"),
        ("a,b,label\n1,2,x\n3,4\n1,1,x\n", "line 3: it has 2 columns, the first line has 3"),
        ("a,b,label\n1,2,x\n3,four,y\n1,1,x\n", "line 3, column 'b': 'four' is not a number"),
        ("1,2,x\n3,4,y\n1_0,1,x\n", "line 3, column 0 (from 0): '1_0' is not a number"),
        ("1.2,3.4a,x\n1,2,y\n1,2,x\n", "line 1, column 1 (from 0): '3.4a' is not a number"),
        ("a;b;label\n1,5;2;x\n3;4;y\n", "numbers have a point, not a comma"),
        ("a,b,label\n1,2,x\n\n3,,y\n1,1,x\n", "line 4, column 'b': the value is missing ('')"),
        ("a,b,label\n1,2,x\n3,NaN,y\n1,1,x\n", "line 3, column 'b': the value is missing ('NaN')"),
        ("a,b,label\n1,2,x\n3,-inf,y\n1,1,x\n", "line 3, column 'b': the value is -inf"),
        ("a,b,label\n1,2,x\n3,4,\n1,1,x\n", "line 3, column 'label': the value is missing"),
        ("a,b,c\n1,2,0.1\n3,4,0.2\n5,6,0.3\n", "column 'c' looks continuous (3 different values such as 0.1)"),
        ("a,b,id\n1,2,p\n3,4,q\n5,6,r\n", "column 'id' has a different value in every row"),
        ("label\nx\ny\nx\n", "no feature is left"),
        ("a,a,label\n1,2,x\n3,4,y\n1,2,x\n", "two columns called 'a'"),
        (",a,label\n0,2,x\n1,4,y\n2,5,x\n", "first column has no name and counts the rows"),
        ("größe,label\n1,x\n".encode("latin-1"), "line 1: the text is not UTF-8"),
    ],
)
def test_bad_tables_are_refused_with_the_place(put, text, words):
    assert words in refusal(read_points, put(text))


def test_bad_sources_and_columns(put, tmp_path):
    assert "does not exist: it must be a file" in refusal(read_points, tmp_path / "none.csv")
    assert "is a folder" in refusal(read_points, tmp_path)
    file = put("a,b,c\n1,2,0\n3,4,1\n")
    assert "label='z'" in refusal(read_points, file, label="z")
    assert "its columns are a, b, c" in refusal(read_points, file, label=3)
    assert "drop='z'" in refusal(read_points, file, drop=["z"])
    assert "lacks the column 'q'" in refusal(read_points, file, features=["a", "q"])


def test_comparisons(put):
    expected = [[0, 1, 2], [2, 1, 0]]
    for text in ("0,1,2\n2,1,0\n", "a,b,c\n0,1,2\n2,1,0\n", "0 1 2\n\n2 1 0\n", "0;1;2\n2;1;0"):
        assert read_comparisons(put(text)).tolist() == expected
    names = ["ann", "bob", "eve"]
    for text in ("ann,bob,eve\neve,bob,ann\n", "who,near,far\nann,bob,eve\neve, bob,ann\n"):
        assert read_comparisons(put(text), names).tolist() == expected


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        ("0,1\n", {}, "line 1: it has 2 columns"),
        ("0,1,2\n0,x,2\n", {}, "line 2: 'x' is not a whole number"),
        ("0,1,2\n0,1.5,2\n", {}, "line 2: '1.5' is not a whole number"),
        ("0,1,2\n0,1,9\n", {"n_points": 5}, "line 2: [0, 1, 9] must be numbers of points, between 0 and 4"),
        ("0,1,-1\n", {"n_points": 5}, "between 0 and 4"),
        ("a,b,c\na,b,d\n", {"names": ["a", "b", "c"]}, "line 2: 'd' is not the name of a point"),
        ("a,b,c\n", {"names": ["a", "b", "a"]}, "names has 'a' twice"),
        ("a,b,c\n", {}, "has no comparison"),
    ],
)
def test_bad_comparisons(put, text, arguments, words):
    assert words in refusal(read_comparisons, put(text), **arguments)


# -- what was asked for is done, or refused --------------------------------------------------------------------------


@pytest.fixture
def sources(tmp_path):
    """One source of each kind: {kind: its name}."""
    y = np.array([0, 1, 0, 1])
    text = "f,g,label\n" + "".join(f"{a!r},{b!r},{c}\n" for (a, b), c in zip(X.tolist(), y, strict=True))
    (tmp_path / "a.csv").write_text(text)
    np.savez(tmp_path / "a.npz", X=X, y=y, feature_names=["f", "g"])
    np.save(tmp_path / "table.npy", np.c_[X, y])
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    (tmp_path / "a.svm").write_text("".join(f"{c} 1:{a!r} 2:{b!r}\n" for (a, b), c in zip(X.tolist(), y, strict=True)))
    found = {"text": "a.csv", "npz": "a.npz", "npy": "table.npy", "svmlight": "a.svm"}
    found = {kind: str(tmp_path / name) for kind, name in found.items()}
    found["pair"] = f"{tmp_path}/X.npy,{tmp_path}/y.npy"
    found["embedded"] = "iris"
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        return found
    parquet.write_table(pa.table({"f": X[:, 0], "g": X[:, 1], "label": y}), tmp_path / "a.parquet")
    return {**found, "parquet": str(tmp_path / "a.parquet")}


def test_every_option_is_honoured_or_refused_for_every_kind_of_source(sources):
    """Drop, label, names and header, for each kind: another table, or a sentence with the option's name."""
    for kind, source in sources.items():
        whole = read_points(source)
        for option, value in (("drop", [0]), ("label", "nonsense"), ("label", 0), ("names", 0), ("header", False)):
            try:
                points = read_points(source, **{option: value})
            except ts.InputError:
                sentence = refusal(read_points, source, **{option: value})
                assert option in sentence or kind == "text", (kind, option, sentence)
                assert "source=" in sentence
                assert option != "drop", (kind, sentence)
                continue
            assert value != "nonsense", kind
            assert points.X.shape[1] == whole.X.shape[1] - 1, (kind, option)
        assert "drop=" in refusal(read_points, source, drop=["nonsense"])
        assert read_points(source, drop=[-1 if kind in ("embedded", "npz", "svmlight", "pair") else -2]).X.shape[1] == (
            whole.X.shape[1] - 1
        )


def test_features_are_dropped_and_chosen_by_name_where_labels_are_apart(sources):
    iris = read_points("iris")
    points = read_points("iris", drop=["sepal width (cm)"])
    assert points.feature_names == [name for name in iris.feature_names if "sepal width" not in name]
    np.testing.assert_array_equal(points.X, iris.X[:, [0, 2, 3]])
    np.testing.assert_array_equal(points.y, iris.y)
    np.testing.assert_array_equal(read_points("iris", features=points.feature_names[::-1]).X, points.X[:, ::-1])
    assert read_points("iris", label="target").y is not None
    assert "keeps its labels apart from the features, and they are called 'target'" in refusal(
        read_points, "iris", label="petal width (cm)"
    )
    assert read_points(sources["npz"], label="y", drop=["f"]).feature_names == ["g"]
    assert "lacks the column 'q'" in refusal(read_points, sources["npz"], features=["q"])
    for option in ("drop", "label", "names"):
        value = ["f"] if option == "drop" else "f"
        assert f"{option}='f': the model was learned from this column" in refusal(
            read_points, sources["text"], features=["f", "g"], labelled=False, **{option: value}
        )


def test_empty_arrays_say_what_they_lack(tmp_path):
    for shape, words in (((0, 5), "no rows"), ((5, 0), "no columns"), ((5,), "(n, d) numbers are needed")):
        np.save(tmp_path / "a.npy", np.zeros(shape))
        assert words in refusal(read_points, tmp_path / "a.npy")
        np.savez(tmp_path / "a.npz", X=np.zeros(shape), y=np.zeros(shape[0]))
        assert words in refusal(read_points, tmp_path / "a.npz")


def test_a_quote_that_is_not_closed_has_its_line(put):
    rows = "".join(f"{i},2,x\n" for i in range(40))
    for quoted in ('1,2,"x\n', '"1,2,x\n'):
        sentence = refusal(read_points, put(f"a,b,label\n{rows}{quoted}{rows}"))
        assert 'line 42: a quote (") that begins in this row is not closed' in sentence
    assert "a.csv', line 2: a quote" in refusal(read_comparisons, put('0,1,2\n0,"1,2\n'))
    # One inside of a cell is a sign like any other, and a quoted cell may go over lines.
    assert read_points(put('a,label\n1,5" pipe\n2,x\n3,x\n')).y.tolist() == ['5" pipe', "x", "x"]
    assert read_points(put('a,"b\nc",label\n1,2,x\n2,3,y\n3,4,x\n')).feature_names == ["a", "b\nc"]


def test_every_refusal_of_a_text_names_the_file(put):
    for text in ('a,b\n1,"2"3\n4,5\n', "a,b,label\n1,2,x\n3,y\n", "x" * 200_000 + ",1\n2,3\n", ",,\n,,\n", "\ufeff \n"):
        assert "a.csv'" in refusal(read_points, put(text))
        assert "a.csv'" in refusal(read_comparisons, put(text))


def test_misspelled_names_are_no_header(put):
    names = ["ann", "bob", "eve"]
    sentence = refusal(read_comparisons, put("anne,bobb,eva\nann,bob,eve\n"), names)
    assert "line 1: 'anne' is not the name of a point; a header has titles such as a, b, c" in sentence
    assert "line 1: 'ten' is not a whole number" in refusal(read_comparisons, put("ten,one,two\n0,1,2\n"))
    for header in ("anchor,positive,negative", "Query,Near,Far", "a,b,c"):
        assert read_comparisons(put(f"{header}\nann,bob,eve\n"), names).tolist() == [[0, 1, 2]]
    # Names that are titles, too, are names.
    assert len(read_comparisons(put("a,b,c\nc,b,a\n"), ["a", "b", "c"])) == 2
    assert "line 2: ['ann', 'bob', 'ann'] has a point twice" in refusal(
        read_comparisons, put("ann,bob,eve\nann,bob,ann\n"), names
    )


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))
def test_cells_are_no_formulas_and_different_texts_stay_different(text):
    from triscreen.datasets.table import is_number
    from triscreen.datasets.text import escaped

    cell = escaped(text)
    assert is_number(text) or cell[0] not in "=+-@\t\r"
    assert cell == text or (cell == f"'{text}" and escaped(cell) != cell)


def test_labels_are_taken_as_they_stand(put):
    points = read_points(put("a,label\n1,'-x\n2,-x\n3,'-x\n"))
    assert points.y.tolist() == ["'-x", "-x", "'-x"]


def test_numbers_that_grow_when_they_are_read_are_counted_as_they_are_kept(tmp_path, monkeypatch):
    """A byte becomes a float64, X and y together: from small files to gigabytes."""
    from triscreen.datasets import read

    monkeypatch.setattr(read, "_UNPACKED", 10_000)
    for n in (1300, 700):
        np.savez_compressed(tmp_path / "a.npz", X=np.ones((n, 1), "u1"), y=np.zeros(n, "u1"))
        size = (tmp_path / "a.npz").stat().st_size
        monkeypatch.setattr(read, "_RATIO", 10_000 / size / 2)
        assert "at most" in refusal(read_points, str(tmp_path / "a.npz"))
    (tmp_path / "a.svm").write_text("1 100000000:1\n2 3:1\n")
    assert "2 points of 100,000,000 features" in refusal(read_points, str(tmp_path / "a.svm"))


def test_wide_tables_are_read_column_by_column_only_once(put, monkeypatch):
    """Twice the columns cost twice the work, counted in looks at titles: not quadratic."""
    from triscreen.datasets import table, text

    looks = []

    class Titles(list):
        def __contains__(self, item):
            looks.append(len(self))
            return super().__contains__(item)

        def index(self, item):
            looks.append(len(self))
            return super().index(item)

        def count(self, item):
            looks.append(len(self))
            return super().count(item)

    def watched(titles, *arguments, **choice):
        roles = table.columns_of(Titles(titles), *arguments, **choice)
        return table.Columns(Titles(roles.features), roles.label, roles.names)

    monkeypatch.setattr(text, "columns_of", watched)
    n = 2000
    file = put(",".join([*(f"f{j}" for j in range(n)), "label"]) + "\n" + ("1," * n + "x\n") * 3)
    assert read_points(file, features=[f"f{j}" for j in range(n)]).X.shape == (3, n)
    assert sum(looks) < 20 * n
