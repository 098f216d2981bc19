from __future__ import annotations

import numpy as np
import pytest

import triscreen as ts
from triscreen.triplets.labelled import KINDS, labelled_triplets

rng = np.random.default_rng(0)
X, y = rng.normal(size=(30, 3)), np.arange(30) % 3
WAYS = {
    "knn": lambda: ts.knn_triplets(X, y, 4),
    "lmnn": lambda: ts.all_triplets(X, y, 4),
    "all": lambda: ts.all_triplets(X, y),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_what_its_own_function_makes(kind):
    made, wanted = labelled_triplets(X, y, kind, 4), WAYS[kind]()
    assert type(made) is type(wanted)
    assert np.array_equal(made.indices(), wanted.indices())


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_those_of_anchors_and_0_is_no_anchor(kind):
    weights = np.where(np.arange(30) < 6, 0.0, 2.0)
    made, whole = labelled_triplets(X, y, kind, 4, weights), WAYS[kind]().indices()
    assert {tuple(row) for row in made.indices()} == {tuple(row) for row in whole[whole[:, 0] >= 6]}
    assert made.total_weight == 2.0 * made.n_triplets


@pytest.mark.parametrize("kind", KINDS)
def test_no_anchor_at_all_is_refused(kind):
    with pytest.raises(ts.InputError, match="no triplet is left"):
        labelled_triplets(X, y, kind, 4, np.zeros(30))


def test_an_unknown_kind_is_refused():
    with pytest.raises(ts.InputError, match="kind='nearest'"):
        labelled_triplets(X, y, "nearest", 4)
