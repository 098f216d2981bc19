"""Files and folders that are nearly right: names, headers, order and formats, one thing wrong at a time."""

from __future__ import annotations

import io
import json
import os
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest

from triscreen._utils import archive, checkpoint
from triscreen._utils.archive import load, read, read_npy, write
from triscreen._utils.checkpoint import Checkpoint, entry_name, hash_of, look, state_name
from triscreen.errors import InputError

TABLE = np.arange(6.0).reshape(2, 3)


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@pytest.mark.parametrize("name", ["a/b", "a\\b", "$a", "", "x" * 101, "a\nb", 3, "/"])
def test_names_that_make_no_member_are_refused(tmp_path, name):
    with pytest.raises(InputError, match="arrays has the name"):
        write(tmp_path / "file", "kind", {}, {name: np.zeros(1)})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["x" * 100, "a b.c", "ä", "a$"])
def test_names_that_make_one_come_back(tmp_path, name):
    write(tmp_path / "file", "kind", {}, {name: np.arange(3)})
    np.testing.assert_array_equal(read(tmp_path / "file")[-1][name], np.arange(3))


def test_a_header_may_be_so_long_and_no_longer(tmp_path, monkeypatch):
    write(tmp_path / "file", "kind", {"text": "x" * 500}, {"a": np.zeros(1000)})
    with open(tmp_path / "file", "rb") as stream:
        start = stream.read(30)
    length = int.from_bytes(start[18:22], "little")
    monkeypatch.setattr(archive, "_LONGEST_HEADER", length)  # arrays may be longer
    assert len(read(tmp_path / "file")[-1]["a"]) == 1000
    write(tmp_path / "again", "kind", {"text": "x" * 500}, {"a": np.zeros(1000)})
    monkeypatch.setattr(archive, "_LONGEST_HEADER", length - 1)
    with pytest.raises(InputError, match="its header is too long"):
        read(tmp_path / "file")
    with pytest.raises(InputError, match=f"meta takes {length} bytes: at most {length - 1}"):
        write(tmp_path / "again", "kind", {"text": "x" * 500}, {"a": np.zeros(1000)})


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_does_not_know_are_refused(tmp_path, constant):
    write(tmp_path / "file", "kind", {"number": 1.5}, {})
    with zipfile.ZipFile(tmp_path / "file") as whole, zipfile.ZipFile(tmp_path / "other", "w") as other:
        for member in whole.infolist():
            other.writestr(member, whole.read(member).replace(b"1.5", constant.encode()))
    with pytest.raises(InputError, match=f"{constant} is not JSON"):
        read(tmp_path / "other")


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
@pytest.mark.parametrize("array", [TABLE, np.asfortranarray(TABLE), np.array(3.0), np.zeros((0, 4))], ids=str)
def test_both_npy_versions_are_read(version, array):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version)
    whole = stream.getvalue()
    found = read_npy(io.BytesIO(whole), len(whole))
    np.testing.assert_array_equal(found, array)
    assert found.flags.f_contiguous == array.flags.f_contiguous
    for change in (-1, 1):
        with pytest.raises(ValueError, match="does not take"):
            read_npy(io.BytesIO(whole), len(whole) + change)
    with pytest.raises(ValueError, match="longer than it says"):
        read_npy(io.BytesIO(whole + b"x"), len(whole))
    if array.size:
        with pytest.raises(ValueError, match="ends too early"):
            read_npy(io.BytesIO(whole[:-1]), len(whole))
    taken = 8 * array.size if 8 * array.size > len(whole) else len(whole)
    read_npy(io.BytesIO(whole), len(whole), taken)
    with pytest.raises(ValueError, match=f"would take {taken} bytes, and at most {taken - 1}"):
        read_npy(io.BytesIO(whole), len(whole), taken - 1)


def test_memory_is_counted_as_numbers_of_eight_bytes():
    whole = npy(np.zeros(1000, dtype=np.int8))
    read_npy(io.BytesIO(whole), len(whole), 8000)
    with pytest.raises(ValueError, match="would take 8,000 bytes"):
        read_npy(io.BytesIO(whole), len(whole), 7999)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda whole: b"\x93NUMPX" + whole[6:], "does not begin"),
        (lambda whole: whole[:8] + b"\0\0" + whole[10:], "does not begin"),
        (lambda whole: whole[:6] + b"\x02\0" + (2**16 + 1).to_bytes(4, "little") + whole[12:], "does not begin"),
        (lambda whole: whole[:6] + b"\x03\0" + (118).to_bytes(4, "little") + whole[12:], "npy version"),
    ],
)
def test_npy_files_that_begin_otherwise_are_refused(change, words):
    whole = change(npy(np.zeros(3)))
    with pytest.raises(ValueError, match=words):
        read_npy(io.BytesIO(whole), len(whole))


def test_types_without_size_and_objects_are_refused():
    for dtype in ("|V0", "|O", "<U0"):
        header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': (3,), }}".ljust(117).encode() + b"\n"
        whole = b"\x93NUMPY\x01\0" + len(header).to_bytes(2, "little") + header
        with pytest.raises(ValueError, match=r"does not take|Object arrays"):
            read_npy(io.BytesIO(whole), len(whole))


def a_run(folder, version, count, monkeypatch, identity=None):
    """A folder of an older format: entries bound to nothing."""
    monkeypatch.setattr(archive, "VERSION", version)
    folder.mkdir(exist_ok=True)
    write(folder / "checkpoint.tsc", "checkpoint", identity or {"lam": 0.5}, {})
    for number in range(count):
        write(folder / entry_name(number), "entry", {"step": number}, {"M": np.full(2, number)})
    monkeypatch.undo()


def test_a_run_of_the_first_format_goes_on(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    a_run(folder, 1, 3, monkeypatch)
    found = look(folder)
    assert (found.version, found.old, len(found.entries), found.state) == (1, 3, 3, None)
    assert [meta["step"] for meta, _ in found.entries] == [0, 1, 2]
    assert found.seals == [hash_of(meta, arrays) for meta, arrays in found.entries]
    with Checkpoint(folder, {"lam": 0.5}) as run:
        run.append({"step": 3}, {}, ({"x": 1}, {}))
        run.append({"step": 4}, {}, ({"x": 2}, {}))
    found = look(folder)
    assert (found.old, len(found.entries), found.state[0], found.states) == (3, 5, {"x": 2}, (4,))
    monkeypatch.setattr(archive, "VERSION", 1)
    write(folder / entry_name(5), "entry", {"step": 5}, {})
    monkeypatch.undo()
    with pytest.raises(InputError, match=r"'000005.tsc' is of format 1 and the files before are not"):
        look(folder)


def test_an_entry_of_the_first_format_does_not_fit_a_newer_run(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    a_run(folder, 1, 2, monkeypatch)
    write(folder / "checkpoint.tsc", "checkpoint", {"lam": 0.5}, {})
    with pytest.raises(InputError, match=r"'000000.tsc' is of format 1 and the files before are not"):
        look(folder)


@pytest.fixture
def folder(tmp_path):
    with Checkpoint(tmp_path / "run", {"lam": 0.5}) as run:
        for number in range(3):
            run.append({"step": number}, {"M": np.full(2, number)}, ({"state of": number}, {}))
    return tmp_path / "run"


def rewritten(file, kind, **changes):
    """The same file with something else in it, and with a seal that fits."""
    content = load(file)
    meta = {key: value for key, value in {**content.meta, **changes}.items() if value != "drop"}
    if "seal" in meta and "seal" not in changes:
        meta["seal"] = hash_of({key: meta[key] for key in meta if key != "seal"}, content.arrays)
    write(file, kind, meta, content.arrays)


@pytest.mark.parametrize(
    ("number", "changes", "words"),
    [
        (1, {"run": "another"}, "belongs to another run"),
        (1, {"number": 2}, "is the entry number 2"),
        (1, {"before": None}, "does not follow the entry before it"),
        (0, {"before": "seal"}, "does not follow the entry before it"),
        (1, {"seal": "wrong"}, "is not as the run wrote it"),
        (1, {"meta": [1]}, "is no entry of a checkpoint"),
        (1, {"more": 1}, "is no entry of a checkpoint"),
        (1, {"state": "drop"}, "is no entry of a checkpoint"),
    ],
)
def test_an_entry_with_one_thing_wrong_is_refused(folder, number, changes, words):
    rewritten(folder / entry_name(number), "entry", **changes)
    with pytest.raises(InputError, match=rf"'{entry_name(number)}' {words}"):
        look(folder)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"run": "another"}, "belongs to another run"),
        ({"number": 1}, "is not the state of the last entry"),
        ({"meta": {"state of": 9}}, "is not as the run wrote it"),
        ({"meta": [1]}, "is no state of a checkpoint"),
        ({"more": 1}, "is no state of a checkpoint"),
    ],
)
def test_a_state_with_one_thing_wrong_is_refused(folder, changes, words):
    rewritten(folder / state_name(2), "state", **changes)
    with pytest.raises(InputError, match=rf"'{state_name(2)}' {words}"):
        look(folder)


def test_states_of_what_is_to_come_may_be_there_but_no_later_ones(folder):
    run = look(folder).run
    write(folder / state_name(3), "state", {"run": run, "number": 3, "meta": {}}, {})
    assert look(folder).states == (2, 3)
    write(folder / state_name(4), "state", {"run": run, "number": 4, "meta": {}}, {})
    with pytest.raises(InputError, match="is not the state of the last entry"):
        look(folder)


def test_the_state_of_the_last_entry_must_be_there_if_it_has_one(folder):
    (folder / state_name(2)).unlink()
    with pytest.raises(InputError, match=rf"'{state_name(2)}' is missing"):
        look(folder)


def test_a_run_without_states_needs_none(tmp_path):
    with Checkpoint(tmp_path / "run", {"lam": 0.5}) as run:
        run.append({"step": 0}, {})
        assert len(run) == 1
        assert run.state() is None
        assert run.entries()[0][0] == {"step": 0}
    found = look(tmp_path / "run")
    assert (found.old, found.states, found.state, len(found.entries)) == (0, (), None, 1)


def test_states_of_earlier_entries_go_and_one_that_cannot_goes_later(folder, monkeypatch):
    assert sorted(item.name for item in folder.glob("state*")) == [state_name(2)]
    with Checkpoint(folder, {"lam": 0.5}) as run:
        unlink = checkpoint.Path.unlink

        def refuse(self, *arguments, **more):
            if self.name == state_name(2):
                raise PermissionError
            unlink(self, *arguments, **more)

        monkeypatch.setattr(checkpoint.Path, "unlink", refuse)
        run.append({"step": 3}, {}, ({}, {}))
        assert run._states == [2, 3]
        monkeypatch.undo()
        run.append({"step": 4}, {})
        assert run._states == []
        assert not list(folder.glob("state*"))


def test_entries_are_in_the_order_of_their_numbers_and_none_is_missing(folder):
    (folder / entry_name(1)).rename(folder / entry_name(1000000))
    with pytest.raises(InputError, match=r"holds '000002.tsc' but no '000001.tsc'"):
        look(folder)


def test_what_differs_of_an_identity_is_told(folder):
    with pytest.raises(InputError, match=r"lam was 0.5 and is now 0.25\)"):
        Checkpoint(folder, {"lam": 0.25})
    with pytest.raises(InputError, match=r"k was absent and is now 3\)"):
        Checkpoint(folder, {"lam": 0.5, "k": 3})
    with pytest.raises(InputError, match=r"; b was absent and is now 2; 1 more differ\)"):
        Checkpoint(folder, {"lam": 0.25, "b": 2, "c": 3})
    with pytest.raises(InputError, match=r"lam was 0\.5 and is now absent"):
        Checkpoint(folder, {})
    Checkpoint(folder, {"lam": 0.5}).close()


def test_an_npy_header_may_be_so_long_and_no_longer(monkeypatch):
    whole = npy(np.zeros(3))
    length = int.from_bytes(whole[8:10], "little")
    monkeypatch.setattr(archive, "_LONGEST_NPY_HEADER", length)
    assert read_npy(io.BytesIO(whole), len(whole)).tolist() == [0.0] * 3
    monkeypatch.setattr(archive, "_LONGEST_NPY_HEADER", length - 1)
    with pytest.raises(ValueError, match="does not begin"):
        read_npy(io.BytesIO(whole), len(whole))


@pytest.mark.parametrize(
    ("kind", "meta", "arrays", "words"),
    [
        (3, {}, {}, "kind=3: kind must be a text"),
        ("kind", [], {}, "meta is a list"),
        ("kind", {}, [], "arrays is a list"),
        ("kind", {"$a": 1}, {}, "meta has the key"),
        ("kind", {1: 1}, {}, "meta has the key"),
        ("kind", {"a": [{"b": object()}]}, {}, r"meta\['a'\]\[0\]\['b'\] is"),
        ("kind", {}, {"a": np.array([object()])}, "has dtype object"),
        ("kind", {}, {"a": np.ma.masked_array([1.0], [True])}, "has masked entries"),
        ("kind", {}, {"a": [[1.0], [1.0, 2.0]]}, "is not a rectangular array"),
    ],
)
def test_what_would_not_come_back_is_refused(tmp_path, kind, meta, arrays, words):
    with pytest.raises(InputError, match=words):
        write(tmp_path / "file", kind, meta, arrays)
    assert not list(tmp_path.iterdir())


def test_what_another_run_wrote_before_it_let_go_of_the_lock_is_seen(folder, monkeypatch):
    lock, done = Checkpoint._lock, []

    def late(self):
        if not done:
            done.append(True)
            with Checkpoint(folder, {"lam": 0.5}) as other:
                other.append({"step": 3}, {}, ({}, {}))
        return lock(self)

    monkeypatch.setattr(Checkpoint, "_lock", late)
    with Checkpoint(folder, {"lam": 0.5}) as run:
        assert len(run) == 4
        run.append({"step": 4}, {}, ({}, {}))
    assert [meta["step"] for meta, _ in look(folder).entries] == [0, 1, 2, 3, 4]


def members(*places):
    """Members of an archive that begin and are so long."""
    plain = {"filename": "ab.npy", "compress_type": 0}
    return [SimpleNamespace(header_offset=begin, file_size=size, compress_size=size, **plain) for begin, size in places]


def test_members_take_their_headers_and_their_bytes_and_end_before_the_list_of_them():
    whole = SimpleNamespace(start_dir=300)
    archive._check_members(whole, members((136, 64), (0, 100)), 300)  # 30 + 6 + 100 bytes, and then 30 + 6 + 64
    for some, start, size in (
        (members((135, 64), (0, 100)), 300, 300),
        (members((0, 100)), 135, 300),
        (members((0, 100)), 300, 135),
        (members((0, 0), (35, 10)), 300, 300),
    ):
        with pytest.raises(ValueError, match="shorter than its parts"):
            archive._check_members(SimpleNamespace(start_dir=start), some, size)
    for change in ({"compress_type": 8}, {"compress_size": 99}):
        (member,) = members((0, 100))
        vars(member).update(change)
        with pytest.raises(ValueError, match="is compressed"):
            archive._check_members(whole, [member], 300)


def test_files_that_vanish_while_they_are_written_are_told_of(folder, monkeypatch):
    with Checkpoint(folder, {"lam": 0.5}) as run:

        def gone(*_):
            raise FileNotFoundError

        monkeypatch.setattr(checkpoint, "write", gone)
        with pytest.raises(InputError, match="in use by another run, or somebody removes its files"):
            run.append({"step": 3}, {})
        monkeypatch.undo()
        run.append({"step": 3}, {})
    with pytest.raises(InputError, match="was closed"):
        run.append({"step": 4}, {})
    assert len(look(folder).entries) == 4


def test_a_link_that_leads_back_to_itself_is_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "link")
    with pytest.raises(InputError, match="is a link that leads back to itself"):
        write(tmp_path / "link", "kind", {}, {})


def test_large_arrays_are_read_piece_by_piece(tmp_path):
    array = np.arange(400_000.0)
    write(tmp_path / "file", "kind", {}, {"a": array})
    np.testing.assert_array_equal(read(tmp_path / "file")[-1]["a"], array)


@pytest.mark.parametrize("lacks", [os.W_OK, os.X_OK])
def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path, monkeypatch, lacks):
    monkeypatch.setattr(archive.os, "access", lambda _, asked: not asked & lacks)
    with pytest.raises(InputError, match="does not let you write"):
        write(tmp_path / "file", "kind", {}, {})


@pytest.mark.parametrize(("key", "value"), [("kind", 3), ("meta", 4), ("arrays", None), ("version", True)])
def test_a_header_whose_parts_are_of_another_type_is_refused(tmp_path, key, value):
    write(tmp_path / "file", "kind", {}, {})
    with zipfile.ZipFile(tmp_path / "file") as whole, zipfile.ZipFile(tmp_path / "other", "w") as other:
        (member,) = whole.infolist()
        other.writestr(member, json.dumps({**json.loads(whole.read(member)), key: value}))
    with pytest.raises(InputError, match=f"its {key} is {value}"):
        read(tmp_path / "other")


@pytest.mark.parametrize("item", [{"$float": "1.5"}, {"$float": "inf", "more": 1}, {"$other": 1}])
def test_what_stands_for_no_float_is_refused(tmp_path, item):
    write(tmp_path / "file", "kind", {"number": 1.5}, {})
    with zipfile.ZipFile(tmp_path / "file") as whole, zipfile.ZipFile(tmp_path / "other", "w") as other:
        (member,) = whole.infolist()
        other.writestr(member, json.dumps({**json.loads(whole.read(member)), "meta": item}))
    with pytest.raises(InputError, match="is not known here"):
        read(tmp_path / "other")


def test_masked_arrays_are_refused(tmp_path):
    with pytest.raises(InputError, match="has masked entries"):
        write(tmp_path / "file", "kind", {}, {"a": np.ma.array([1.0, 2.0], mask=[True, False])})


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="does not exist, make it first"):
        write(tmp_path / "folder" / "file", "kind", {}, {})


def test_a_file_that_cannot_be_opened_is_told_of(tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError(13, "Permission denied")

    write(tmp_path / "file", "kind", {}, {})
    monkeypatch.setattr(archive, "open", refused, raising=False)
    with pytest.raises(InputError, match="cannot be read: Permission denied"):
        read(tmp_path / "file")


def test_a_name_that_is_too_long_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(InputError, match=r"^where='.*: File name too long, take another name$"):
        archive.target(tmp_path / ("x" * 300), "where")


@pytest.mark.parametrize("array", [TABLE, np.asfortranarray(TABLE), np.zeros((0, 4))], ids=str)
def test_what_is_mapped_is_what_the_file_holds(tmp_path, array):
    np.save(tmp_path / "file.npy", array)
    with open(tmp_path / "file.npy", "rb") as stream:
        found = archive.map_npy(stream, (tmp_path / "file.npy").stat().st_size)
        np.testing.assert_array_equal(found, array, strict=True)
        assert isinstance(found, np.memmap) == (array.size > 0)


@pytest.mark.parametrize("shape", [(-1,), (-1, -5), (-5, -1), (-2, -3), (-1, 0)])
@pytest.mark.parametrize("read_or_map", [read_npy, archive.map_npy])
def test_arrays_with_a_side_below_zero_are_refused_whatever_the_product(tmp_path, shape, read_or_map):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    whole = b"\x93NUMPY\x01\0" + len(header).to_bytes(2, "little") + header + bytes(8 * abs(int(np.prod(shape))))
    (tmp_path / "file").write_bytes(whole)
    with open(tmp_path / "file", "rb") as stream, pytest.raises(ValueError, match="does not take"):
        read_or_map(stream, len(whole))
