"""Every field of `Screening` is checked, and means one thing."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

import triscreen as ts

FLAGS = ("at_start", "ranges", "include_solution", "active_set")
BAD = [None, 0, 1, 1.0, "yes", "no", "true", [], np.int64(1), np.ones(1)]
BAD_FIELDS = {
    "bounds": [None, (), [], "nonsense", ("mid", "nonsense"), 3, {"mid"}, [None], ("mid", 1)],
    "rule": [None, "nonsense", 1, ("sphere",), True],
    "every": [None, 0, -1, 1.5, "10", True, np.inf],
    **{name: [value for value in BAD if not (name == "active_set" and value == "loss")] for name in FLAGS},
}


def test_no_field_is_forgotten():
    assert set(BAD_FIELDS) == {field.name for field in fields(ts.Screening)}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD_FIELDS.items() for value in values])
def test_a_bad_value_is_refused_by_name(name, value):
    with pytest.raises(ts.InputError, match=f"^{name}="):
        ts.Screening(**{name: value})


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("value", [True, False])
def test_numpys_truth_is_pythons(name, value):
    made = ts.Screening(**{name: np.bool_(value)})
    assert getattr(made, name) is value
    assert made == ts.Screening(**{name: value})


def test_the_papers_set_is_still_known():
    assert ts.Screening(active_set="loss").active_set == "loss"
