"""Comparisons by id: columns by title, lines of JSON, names in a file of their own."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from triscreen.datasets import read_comparisons, read_points
from triscreen.datasets.points import Points, look_like_codes
from triscreen.errors import InputError

NAMES = ["apple", "brick", "pear", "stone"]
ROWS = [[0, 2, 1], [1, 3, 2]]


def refusal(function, *arguments, **more):
    with pytest.raises(InputError) as caught:
        function(*arguments, **more)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def written(folder, text):
    (folder / "said").write_text(text, encoding="utf-8")
    return folder / "said"


@pytest.mark.parametrize(
    "text",
    [
        "apple,pear,brick\nbrick,stone,pear\n",
        "a,b,c\napple,pear,brick\nbrick,stone,pear\n",
        "# asked in May\nquery,positive,negative\napple,pear,brick\nbrick,stone,pear\n",
        "when,negative,query,positive\n1,brick,apple,pear\n2,pear,brick,stone\n",
        "Far;Near;Anchor\nbrick;pear;apple\npear;stone;brick\n",
        '{"query": "apple", "positive": "pear", "negative": "brick", "who": 7}\n\n'
        '{"negative": "pear", "positive": "stone", "query": "brick"}\n',
        '["apple", "pear", "brick"]\n["brick", "stone", "pear"]\n',
    ],
)
def test_every_way_to_say_it(text, tmp_path):
    assert read_comparisons(written(tmp_path, text), NAMES).tolist() == ROWS
    (tmp_path / "said").write_bytes(gzip.compress(text.encode()))
    assert read_comparisons(tmp_path / "said", NAMES).tolist() == ROWS
    for number, name in enumerate(NAMES):
        text = text.replace(name, str(number))
    text = text.replace('"0"', "0")  # numbers of JSON, too
    assert read_comparisons(written(tmp_path, text), n_points=4).tolist() == ROWS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("query,positive,negative\napple,pear\n", "line 2: it has 2 columns, the first line has 3"),
        ("query,positive,extra\napple,pear,brick\n", "line 1: 'query' is not the name of a point"),
        ("query,positive,negative\napple,pear,bric\n", "line 2: 'bric' is not the name of a point"),
        ('{"query": "apple", "positive": "pear"}\n', "line 1: '{"),
        ('{"query": "apple", "positive": ["pear"], "negative": "brick"}\n', "each with one point"),
        ('{"query": "apple", "positive": "pear", "negative": true}\n', "is no comparison"),
        ('["apple", "pear", "brick"]\n["apple"\n', "line 2: "),
        ('["apple", "pear", "apple"]\n', "has a point twice"),
    ],
)
def test_what_is_no_comparison(text, said, tmp_path):
    assert said in refusal(read_comparisons, written(tmp_path, text), NAMES)


def test_names_in_a_file_beside_an_array(tmp_path):
    np.save(tmp_path / "X.npy", np.arange(12.0).reshape(4, 3))
    for text in ("\n".join(NAMES), "item_id\n" + "\n".join(NAMES) + "\n"):
        (tmp_path / "ids.txt").write_text(text)
        points = read_points(tmp_path / "X.npy", labelled=False, names=str(tmp_path / "ids.txt"))
        assert points.row_names == points.source_names == NAMES
        assert points.X.shape == (4, 3)
    np.save(tmp_path / "ids.npy", np.array([7, 9, 8, 2]))
    points = read_points(tmp_path / "X.npy", labelled=False, names=str(tmp_path / "ids.npy"))
    assert points.row_names == ["7", "9", "8", "2"]
    (tmp_path / "ids.txt").write_text("a\nb\n")
    said = refusal(read_points, tmp_path / "X.npy", labelled=False, names=str(tmp_path / "ids.txt"))
    assert "has 2 names" in said
    assert "has 4 rows" in said
    np.save(tmp_path / "ids.npy", np.eye(4))
    said = refusal(read_points, tmp_path / "X.npy", labelled=False, names=str(tmp_path / "ids.npy"))
    assert "shape (4, 4) and type float64" in said


@pytest.mark.parametrize(
    ("title", "values", "found"),
    [
        ("zip_code", [10115, 10117, 10115, 80331, 80331], True),
        ("Code", [1, 2, 3, 1, 2], True),
        ("code", [1.5, 2, 3, 1, 2], False),
        ("code", [1, 2, 3, 4, 5], False),  # an id, perhaps
        ("decoded", [1, 2, 3, 1, 2], False),
        ("has_code", [0, 1, 0, 1, 1], False),  # yes or no
    ],
)
def test_columns_that_look_like_codes(title, values, found):
    points = Points(np.array(values, dtype=float)[:, None], None, [title], "here")
    assert look_like_codes(points) == ([title] if found else [])
