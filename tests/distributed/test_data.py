"""Data that workers can read, from everywhere to the same bits; exact neighbours by blocks; what is refused."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from kinds import labelled

import triscreen as ts
from triscreen._utils.threads import Threads
from triscreen.distributed import frame, neighbours, order, shards, source, store, sums
from triscreen.distributed.here import Here
from triscreen.triplets.neighbours import nearest


def solved(problem):
    return ts.solve(problem, 0.01 * problem.lambda_max())


@pytest.fixture(scope="module")
def reference():
    X, y = labelled(n=70)
    return solved(ts.distributed.problem(None, X, y, k=3, n_shards=3))


def parts(folder, X, y, count=3):
    folder.mkdir()
    bounds = np.linspace(0, len(X), count + 1).astype(int)
    for i in range(count):
        np.save(folder / f"X-{i:03d}.npy", X[bounds[i] : bounds[i + 1]])
        np.save(folder / f"y-{i:03d}.npy", y[bounds[i] : bounds[i + 1]])
    return folder


# -- the same bits from everywhere -------------------------------------------------------------------------------------


def test_a_folder_of_parts(tmp_path, reference):
    folder = parts(tmp_path / "parts", *labelled(n=70))
    problem = ts.distributed.problem(None, folder, k=3, n_shards=3)
    assert np.array_equal(solved(problem).M, reference.M)
    assert problem.folder == folder / "triscreen"
    other = ts.distributed.problem(None, str(folder), k=3, n_shards=3, folder=tmp_path / "work")
    assert np.array_equal(solved(other).M, reference.M)
    assert other.triplets.same_as(problem.triplets)


def test_a_folder_of_parquet(tmp_path, reference):
    X, y = labelled(n=70)
    for i, rows in enumerate((slice(0, 30), slice(30, 70))):
        table = pd.DataFrame(X[rows]).rename(columns=str).assign(label=np.array(list("abc"))[y[rows]])
        table.to_parquet(tmp_path / f"part-{i}.parquet")
    problem = ts.distributed.problem(None, tmp_path, "label", k=3, n_shards=3)
    assert np.array_equal(solved(problem).M, reference.M)
    with pytest.raises(ts.InputError, match=r"y='kind': part-0.parquet has no such column"):
        ts.distributed.problem(None, tmp_path, "kind")
    with pytest.raises(ts.InputError, match="y must be the name of the column"):
        ts.distributed.problem(None, tmp_path)


def test_dask_collections(reference):
    dask_array = pytest.importorskip("dask.array")
    import dask.dataframe as dask_table

    X, y = labelled(n=70)
    blocks = dask_array.from_array(X, chunks=(20, -1))
    problem = ts.distributed.problem(None, blocks, dask_array.from_array(y, chunks=20), k=3, n_shards=3)
    assert np.array_equal(solved(problem).M, reference.M)
    table = dask_table.from_pandas(pd.DataFrame(X).rename(columns=str).assign(label=y), npartitions=3)
    problem = ts.distributed.problem(None, table, "label", k=3, n_shards=3)
    assert np.array_equal(solved(problem).M, reference.M)
    with pytest.raises(ts.InputError, match="must have whole rows"):
        ts.distributed.problem(None, blocks.rechunk((20, 2)), y)
    with pytest.raises(ts.InputError, match="name of the column of labels"):
        ts.distributed.problem(None, table, y)


def test_float32_is_what_it_is():
    X, y = labelled(n=70)
    X = X.astype(np.float32)
    problem, plain = ts.distributed.problem(None, X, y, k=3, n_shards=3), ts.Problem(X, ts.knn_triplets(X, y, 3))
    assert problem.lambda_max() == pytest.approx(plain.lambda_max(), rel=1e-12)


def test_blocks_of_rows_change_little(monkeypatch, reference):
    monkeypatch.setattr(frame, "_BLOCK", 60)
    X, y = labelled(n=70)
    assert len(frame.blocks_of(*X.shape)) == 7
    sol = solved(ts.distributed.problem(None, X, y, k=3, n_shards=3))
    assert np.linalg.norm(sol.M - reference.M) <= 2 * np.sqrt(2 * (sol.gap + sol.rounding) / sol.lam)


@pytest.mark.parametrize("block", [1 << 23, 300])
def test_the_span_is_found_block_by_block(monkeypatch, block):
    monkeypatch.setattr(frame, "_BLOCK", block)
    X, y = labelled(n=40, d=4)
    Z = 1e12 * np.c_[X, X @ np.random.default_rng(1).normal(size=(4, 26))]  # and units of their own
    problem, plain = ts.distributed.problem(None, Z, y, k=3, n_shards=2), ts.Problem(Z, ts.knn_triplets(Z, y, 3))
    assert problem.basis.shape == plain.basis.shape == (30, 4)
    assert problem.units == plain.units
    assert problem.units.exponent > 30
    assert solved(problem).primal == pytest.approx(solved(plain).primal, rel=2e-6)
    few = ts.distributed.problem(None, Z[:12], y[:12], k=2, n_shards=2)  # fewer points than dimensions
    assert few.basis.shape == (30, 4)
    monkeypatch.setattr("triscreen.problem.span._FAITHFUL", 1e-20)  # a rotation that loses a digit is no good
    assert ts.distributed.problem(None, Z, y, k=3, n_shards=2).basis is None
    assert ts.Problem(Z, ts.knn_triplets(Z, y, 3)).basis is None


def test_the_temporary_folder_goes_with_the_problem():
    X, y = labelled(n=40)
    problem = ts.distributed.problem(None, X, y, k=2, n_shards=2)
    folder, plan = problem.folder, problem.triplets.plan
    solved(problem)
    assert folder.exists()
    assert any(key[0] == plan for key in shards._states)
    del problem
    assert not folder.exists()
    assert not any(key[0] == plan for key in shards._states)


# -- neighbours --------------------------------------------------------------------------------------------------------


def sources(X, y, folder):
    made, _ = source.open_source(X, y, folder)
    return made, store.keep(made.folder, "codes", made.codes.astype(np.int32))


@pytest.mark.parametrize("k", [1, 4, 30])
def test_neighbours_by_blocks_are_exact_to_the_last_tie(monkeypatch, tmp_path, k):
    X = np.random.default_rng(0).integers(0, 3, size=(150, 3)).astype(float)  # ties, and points on each other
    y = np.repeat([0, 1, 2, 3], [60, 50, 39, 1])
    y = y[np.random.default_rng(1).permutation(150)]
    monkeypatch.setattr(neighbours, "ASKING", 40)
    monkeypatch.setattr(neighbours, "ASKED", 8 * 3 * 45)
    made, codes = sources(X, y, tmp_path)
    found = neighbours.nearest_on(Here(), made, codes, "x", k, (True, False))
    for table, wanted in zip(found, nearest(X, made.codes, k, Threads(1)), strict=True):
        width = min(table.shape[1], wanted.shape[1])
        assert np.array_equal(table[:, :width], wanted[:, :width])
        assert (table[:, width:] < 0).all()
        assert (wanted[:, width:] < 0).all()
    assert not list(tmp_path.glob("near-*"))


def test_a_search_goes_on_where_it_was(monkeypatch, tmp_path):
    X, y = labelled(n=100)
    monkeypatch.setattr(neighbours, "ASKING", 30)
    made, codes = sources(X, y, tmp_path)
    done = []

    class Fragile(Here):
        def map(self, title, function, jobs, places=None, arrived=None, long=False):
            def counted(number, answer):
                arrived(number, answer)
                done.append(number)
                if len(done) == 2:
                    raise RuntimeError("the lights go out")

            return super().map(title, function, jobs, places, counted)

    with pytest.raises(RuntimeError, match="lights"):
        neighbours.nearest_on(Fragile(), made, codes, "x", 3, (True,))
    (table,) = neighbours.nearest_on(Fragile(), made, codes, "x", 3, (True,))
    assert len(done) == 4
    assert np.array_equal(neighbours.nearest_on(None, made, codes, "x", 3, (True,))[0], table)  # nobody has to work
    assert np.array_equal(table, nearest(X, made.codes, 3, Threads(1), (True,))[0])


def test_what_was_found_and_is_damaged_is_not_believed(tmp_path):
    """No bit of the file is out of reach: neither of the numbers nor of what says which of them is where."""
    rng, file = np.random.default_rng(0), tmp_path / "near.npz"
    arrays = [rng.integers(0, 99, (5, 2)).astype(kind) for kind in (np.int32, np.float64) * 2]
    neighbours._keep(file, arrays)
    content = file.read_bytes()
    assert all(map(np.array_equal, neighbours._kept(file), arrays))
    flips = enumerate(content)
    damaged = [content[:place] + bytes([byte ^ 1 << place % 8]) + content[place + 1 :] for place, byte in flips]
    believed, damaged = 0, [*damaged, *(content[:end] for end in range(0, len(content), 50))]
    for some in damaged:
        file.write_bytes(some)
        found = neighbours._kept(file)
        believed += found is not None  # dates of members, and the like
        assert found is None or (len(found) == 4 and all(map(np.array_equal, found, arrays)))
    assert believed < len(damaged) / 4
    file.write_bytes(content)
    file.rename(tmp_path / "other.npz")
    assert neighbours._kept(tmp_path / "other.npz") is None


def test_near_anchors_go_together(tmp_path):
    rng = np.random.default_rng(0)
    centres = 50 * rng.normal(size=(4, 3))
    kind = rng.integers(0, 4, 400)
    made, _ = sources(centres[kind] + rng.normal(size=(400, 3)), np.arange(400) % 2, tmp_path)
    found = order.near_to_each_other(Here(), made, np.arange(400), 4)
    assert np.array_equal(np.sort(found), np.arange(400))
    heaps = [len(np.unique(kind[quarter])) for quarter in np.array_split(found, 4)]
    assert sum(heaps) < 10  # 16 in any other order, and 4 if all heaps were as large


def test_sums_keep_their_digits():
    parts = [np.array([1.0, 1.0]), np.array([1e17, -1.0]), np.array([1.0, 1e-20]), np.array([-1e17, 0.0])]
    assert sums.added(parts).tolist() == [2.0, 1e-20]


def test_sums_of_many_numbers_are_off_by_a_unit_or_two():
    """Over several blocks, of any size and order in memory: against the exact sums."""
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(130, 150)) * 10.0 ** rng.integers(-9, 9, size=(130, 150)) for _ in range(9)]
    parts[3], parts[5] = np.asfortranarray(parts[3]), -parts[1]
    found = sums.added(parts)
    exact = np.array([math.fsum(values) for values in zip(*(part.ravel() for part in parts), strict=True)])
    assert found.shape == (130, 150)
    assert np.all(np.abs(found.ravel() - exact) <= 2 * np.spacing(np.abs(exact)))


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"k": 0}, "k=0: k must be"),
        ({"n_shards": 1.5}, "n_shards=1.5"),
        ({"triplets": "some"}, "triplets='some'"),
        ({"client": "tcp://nowhere"}, "client='tcp://nowhere': client must be a dask.distributed.Client, or None"),
        ({"folder": 3}, "folder=3: folder must be a path"),
        ({"patience": -1}, "patience=-1"),
        ({"y": np.zeros(70)}, "y has one class only"),
        ({"y": np.zeros(3)}, "y has 3 labels"),
        ({"weights": -np.ones(70)}, "one finite weight for each of the 70 points"),
        ({"comparisons": [[0, 1, 2]]}, "comparisons is given: pass either it or y"),
        ({"comparisons": [[0, 1, 99]], "y": None}, "comparisons go up to 99: X has 70 points"),
        ({"comparisons": [[0, 1, 2], [4, 4, 2]], "y": None}, "comparisons\\[1\\] is \\[4, 4, 2\\]"),
        ({"X": np.full((70, 2), np.nan)}, "X\\[0, 0\\] is nan"),
        ({"X": "no such folder"}, "there is no such folder"),
        ({"loss": ts.SmoothedHinge(1e5), "triplets": "all"}, "gamma=100000"),
        ({"prior": np.eye(3)}, "prior has shape"),
    ],
)
def test_bad_arguments_get_one_sentence(change, words):
    X, y = labelled(n=70)
    given = {"client": None, "X": X, "y": y, "k": 3, **change}
    with pytest.raises(ts.InputError, match=words) as caught:
        ts.distributed.problem(given.pop("client"), given.pop("X"), given.pop("y"), **given)
    assert "\n" not in str(caught.value)


def test_bad_parts_get_one_sentence(tmp_path):
    X, y = labelled(n=70)
    folder = parts(tmp_path / "parts", X, y)
    np.save(folder / "y-001.npy", y[:5])
    with pytest.raises(ts.InputError, match=r"y-001.npy' has shape \(5,\): X-001.npy has 23 points"):
        ts.distributed.problem(None, folder)
    (folder / "y-001.npy").unlink()
    with pytest.raises(ts.InputError, match=r"y-001.npy' cannot be read"):
        ts.distributed.problem(None, folder)
    np.save(folder / "X-002.npy", X[:, :2])
    with pytest.raises(ts.InputError, match=r"X-002.npy' has shape \(70, 2\): every part"):
        ts.distributed.problem(None, folder, np.arange(140) % 2)
    (folder / "X-002.npy").write_bytes(b"\x93NUMPY and then nothing")
    with pytest.raises(ts.InputError, match=r"X-002.npy' cannot be read"):
        ts.distributed.problem(None, folder)
    broken = X.copy()
    broken[40, 3] = np.inf
    with pytest.raises(ts.InputError, match=r"X\[40, 3\] is inf"):
        ts.distributed.problem(None, parts(tmp_path / "more", broken, y))
    with pytest.raises(ts.InputError, match="must hold parts"):
        ts.distributed.problem(None, tmp_path)


def test_a_part_that_changes_under_way_is_noticed(tmp_path):
    X, y = labelled(n=70)
    folder = parts(tmp_path / "parts", X, y)
    problem = ts.distributed.problem(None, folder, k=3, n_shards=3)
    lam = 0.01 * problem.lambda_max()
    rows = np.load(folder / "X-001.npy")
    rows[3] += 1.0
    np.save(folder / "X-001.npy", rows)
    shards.forget(problem.triplets.plan)
    with pytest.raises(ts.InputError, match="the files that it is made of have changed since the work began"):
        ts.solve(problem, lam)
    np.save(folder / "X-001.npy", rows[:-1])
    with pytest.raises(ts.InputError, match=r"X-001.npy' has shape \(22, 5\) .* it had 23 rows"):
        ts.solve(problem, lam)


@pytest.mark.parametrize(("kind", "title"), [("knn", "neighbours"), ("knn", "load"), ("all", "load")])
def test_a_part_that_changes_before_the_shards_are_made_is_noticed(tmp_path, monkeypatch, kind, title):
    """In the middle of a search for neighbours, say: nothing of that is kept for the next start."""
    X, y = labelled(n=70)
    folder, ask = parts(tmp_path / "parts", X, y), Here.map
    rows = np.load(folder / "X-001.npy")

    def changing(self, name, *arguments, **named):
        if name == title:
            np.save(folder / "X-001.npy", rows[::-1])
        return ask(self, name, *arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Here, "map", changing)
        with pytest.raises(ts.InputError, match="X: its files have changed since the work began"):
            ts.distributed.problem(None, folder, None, kind, 3, n_shards=3)
    np.save(folder / "X-001.npy", rows)
    found, wanted = (ts.distributed.problem(None, *data, kind, 3, n_shards=3) for data in ((folder, None), (X, y)))
    assert np.array_equal(solved(found).M, solved(wanted).M)


def test_a_start_that_fails_leaves_no_shards_behind():
    before, (X, y) = set(shards._states), labelled(n=70)
    with pytest.raises(ts.InputError, match="gamma=100000: sums over such triplets are exact for gamma up to "):
        ts.distributed.problem(None, X, y, "all", n_shards=2, loss=ts.SmoothedHinge(1e5))
    assert set(shards._states) <= before


@pytest.mark.parametrize(
    ("kind", "table"), [("knn", "weights"), ("all", "weights"), ("all", "codes"), ("lmnn", "same")]
)
def test_a_table_that_changes_under_way_is_noticed(tmp_path, kind, table):
    X, y = labelled(n=70)
    weights = np.linspace(0.5, 2.0, 70) if table == "weights" else None
    problem = ts.distributed.problem(None, X, y, kind, 3, n_shards=3, folder=tmp_path, weights=weights)
    file = tmp_path / problem.triplets.plan.read()["tables"][table]
    rows = np.load(file)
    rows[5] = rows[6] if table != "same" else rows[5][::-1]
    np.save(file, rows)
    shards.forget(problem.triplets.plan)
    with pytest.raises(ts.InputError, match="the files that it is made of have changed since the work began"):
        problem.lambda_max(), ts.solve(problem, 1.0)


def test_what_was_damaged_between_two_starts_is_written_again(tmp_path):
    X, y = labelled(n=70)
    named = {"k": 3, "n_shards": 3, "folder": tmp_path}
    sol = solved(ts.distributed.problem(None, X, y, **named))
    for file in tmp_path.iterdir():
        content = bytearray(file.read_bytes())
        content[-9] ^= 1
        file.write_bytes(content)
    store.read_text.cache_clear()
    assert np.array_equal(solved(ts.distributed.problem(None, X, y, **named)).M, sol.M)


def test_the_memory_of_a_search_counts_all_blocks(monkeypatch):
    """A worker of many threads searches in as many blocks at once."""
    asked = []
    monkeypatch.setattr(neighbours, "ASKING", 40)
    monkeypatch.setattr(neighbours, "ASKED", 8 * 5 * 45)
    monkeypatch.setattr(Here, "check_memory", lambda _, what, kept, working: asked.append((what, len(kept), working)))
    X, y = labelled(n=70)
    ts.distributed.problem(None, X, y, k=3, n_shards=3)
    assert [one[:2] for one in asked] == [("points", 4), ("shards", 3)]
    assert asked[0][2] >= 8 * 5 * (45 + 40)


def test_a_damaged_plan_is_noticed(tmp_path):
    X, y = labelled(n=70)
    problem = ts.distributed.problem(None, X, y, k=3, n_shards=3, folder=tmp_path)
    lam = 0.01 * problem.lambda_max()
    shards.forget(problem.triplets.plan)
    store.read_text.cache_clear()
    file = tmp_path / problem.triplets.plan.file
    file.write_bytes(file.read_bytes().replace(b"knn", b"all"))
    with pytest.raises(ts.InputError, match=r"plan-.* cannot be read: its content has changed"):
        ts.solve(problem, lam)
