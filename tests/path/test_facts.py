"""The facts of a path: names that are written once, read as attributes or as a mapping, and kept in its file."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest

import triscreen as ts
from triscreen.path.facts import Facts

# One value for each of them, as `gather` and ``triscreen path`` set them.
WHOLE = Facts(
    source="mine", n_points=3, n_pairs=2, feature_names=["a", "b"], classes=["x", "y"], k=3, left_out=["errors"],
    n_test=4, error_of="neighbours", error_before=0.5, feature_spread=np.ones(2), sample_classes=np.arange(3),
    frames=np.arange(2), errors=np.zeros(2), before=np.zeros((3, 2), np.float32), after=np.ones((2, 3, 2), np.float32),
    stops=np.array([1]), rates={"gb + sphere": [0.5]}, dynamic_iterations=np.arange(2),
    dynamic=np.array([[0.1, np.nan]]), ranges=np.ones((1, 2)), prior="within",
    scale="standard", shift=np.zeros(2), factor=np.ones(2), band_lambdas=np.array([2.0, 1.0]), band_lower=np.zeros(1),
    band_upper=np.ones(1), influence_of="points", influence_names=["row 1"], influence_shares=np.ones(1),
    suspects=[["row"], ["1"]], neighbours=[["row 1", "x"]], confusion=[["x", "y", 2]], changed=[3, 1],
    command="triscreen path", file="my.path", coloured=np.arange(2), alike_of="learned", alike_before=np.arange(6),
    alike=np.ones((2, 6)), influence_half=0.25, influence_open=1,
    columns={"missing": "error", "columns": []},
)  # fmt: skip


@pytest.fixture
def path():
    X, y = [[0.0, 1.0], [1.0, 0.0], [3.0, 2.0], [4.5, 0.0]], [0, 0, 1, 1]
    return ts.solve_path(ts.Problem(X, ts.knn_triplets(X, y, k=1)), ratio=0.5, n_lambdas=2)


def test_facts_are_a_mapping_of_what_there_is():
    assert set(WHOLE) == {item.name for item in fields(Facts)}
    some = Facts(k=3, errors=np.zeros(2))
    assert dict(some).keys() == {"source", "left_out", "k", "errors"}
    assert (some["k"], some.get("n_test"), "n_test" in some, len(some)) == (3, None, False, 4)
    for name in ("n_test", "to_arrays", "nonsense"):
        with pytest.raises(KeyError, match=name):
            some[name]
    with pytest.raises(FrozenInstanceError):
        some.k = 4


def test_every_fact_is_kept_in_the_file(path, tmp_path):
    path.facts = WHOLE
    ts.save(path, tmp_path / "file")
    again = ts.load(tmp_path / "file").facts
    assert list(again) == list(WHOLE)
    for name, value in WHOLE.items():
        np.testing.assert_array_equal(again[name], value)
        assert type(again[name]) is type(value)


def test_files_of_other_versions_are_read(path):
    """Earlier ones name facts that are None; later ones may have facts that are not known here."""
    path.facts = replace(WHOLE, classes=None)
    meta, arrays = path.to_arrays()
    meta["facts"].update(classes=None, feature_names=None, novel=1)
    arrays["facts novelties"] = np.ones(2)
    again = ts.Path.from_arrays(meta, arrays).facts
    assert again.classes is again.feature_names is None
    assert again.keys() == WHOLE.keys() - {"classes", "feature_names"}
