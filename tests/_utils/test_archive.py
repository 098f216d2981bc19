"""A file comes back exactly or is refused in one sentence, and no moment of a kill leaves half of one."""

from __future__ import annotations

import errno
import io
import json
import math
import os
import stat
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

import triscreen as ts
from archives import ARRAYS, contents, npy, peak, refusal, rewritten, same_array
from nightly import cases
from triscreen._utils import archive as files

META = {
    "lam": 0.1,
    "tol": math.nan,
    "end": [math.inf, -math.inf, -0.0],
    "name": "größe",
    "deep": {"k": None, "b": True},
}


def same_value(a, b):
    if isinstance(a, dict):
        return type(b) is dict and list(a) == list(b) and all(same_value(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return type(b) is list and len(a) == len(b) and all(map(same_value, a, b))
    return type(a) is type(b) and repr(a) == repr(b)


def same_content(content, kind, meta, arrays):
    found_kind, found_meta, found = content
    good = found_kind == kind and same_value(found_meta, meta) and list(found) == list(arrays)
    return good and all(same_array(found[name], arrays[name]) for name in arrays)


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "a.tsc"
    files.write(file, "test", META, ARRAYS)
    return file


@pytest.mark.parametrize(
    "array",
    [
        *(
            np.array([[0, 1, 2], [3, 4, 5]]).astype(code)
            for code in ("?", "b", "u8", "f2", ">f4", "f8", "g", "c16", "U")
        ),
        np.array([b"a", b"bcd"]),
        np.array(["2020-01-01", "NaT"], dtype="datetime64[s]"),
        np.array(3.5),
        np.zeros((0, 3)),
        np.zeros(0, dtype=np.int32),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(24.0).reshape(4, 6)[::2, ::-3],
        np.array([np.nan, -0.0, np.inf, 5e-324]),
        np.arange(300_000.0),
    ],
    ids=lambda array: f"{array.dtype.str}{array.shape}",
)
def test_an_array_comes_back_as_it_was(tmp_path, array):
    files.write(tmp_path / "a.tsc", "test", {}, {"A": array})
    _, _, arrays = files.read(tmp_path / "a.tsc", "test")
    assert same_array(arrays["A"], array)
    assert arrays["A"].flags.writeable
    assert arrays["A"].flags.f_contiguous >= array.flags.f_contiguous


def test_meta_and_names_come_back_as_they_were(file):
    assert same_content(files.read(file), "test", META, ARRAYS)
    assert same_content(files.read(str(file), "test"), "test", META, ARRAYS)


def test_every_float_comes_back_exactly(tmp_path):
    values = np.random.default_rng(0).integers(0, 2**63, size=2000).view(np.float64).tolist()
    values += [5e-324, 1.7976931348623157e308, 0.1 + 0.2]
    files.write(tmp_path / "a.tsc", "test", {"values": values}, {})
    assert same_value(files.read(tmp_path / "a.tsc")[1]["values"], values)


def test_numbers_of_numpy_and_tuples_in_meta(tmp_path):
    meta = {"a": np.float32(0.1), "b": np.int64(3), "c": np.bool_(True), "d": (1, np.float64("inf")), "e": np.str_("x")}
    files.write(tmp_path / "a.tsc", "test", meta, {})
    expected = {"a": float(np.float32(0.1)), "b": 3, "c": True, "d": [1, math.inf], "e": "x"}
    assert same_value(files.read(tmp_path / "a.tsc")[1], expected)


def test_others_can_read_it(file):
    """The header is strict JSON, infinity by the documented rule; numpy alone finds the arrays."""
    with zipfile.ZipFile(file) as archive:
        header = json.loads(archive.read("header.json"), parse_constant=pytest.fail)
    assert header["meta"]["end"] == [{"$float": "inf"}, {"$float": "-inf"}, -0.0]
    assert header["arrays"]["M"] == {"dtype": "<f8", "shape": [3, 4]}
    with np.load(file, allow_pickle=False) as data:
        assert np.array_equal(data["M"], ARRAYS["M"])


def test_the_same_input_gives_the_same_bytes(tmp_path, file, monkeypatch):
    monkeypatch.setattr("time.time", lambda: 2e9)
    files.write(tmp_path / "b.tsc", "test", META, {name: array.copy() for name, array in ARRAYS.items()})
    assert file.read_bytes() == (tmp_path / "b.tsc").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"file": None}, "file=None: file must be a path"),
        ({"file": "a\0b"}, "file must be a path"),
        ({"file": "."}, "is a folder or a device: file must be the name of a file"),
        ({"file": "missing/a.tsc"}, "missing' does not exist, make it first"),
        ({"kind": 3}, "kind=3: kind must be a text"),
        ({"meta": [1]}, "meta is a list: meta must be a dict"),
        ({"meta": {1: 2}}, "meta has the key 1: keys must be texts"),
        (
            {"meta": {"a": {"$float": "x"}}},
            "meta['a'] has the key '$float': keys must be texts that do not begin with $",
        ),
        ({"meta": {"a": [0, {1}]}}, "meta['a'][1] is {1} of type set"),
        ({"meta": {"a": np.ones(2)}}, "meta['a'] is array([1., 1.]) of type ndarray: put it among the arrays"),
        ({"meta": {"a": 1j}}, "meta['a'] is 1j of type complex"),
        ({"arrays": [1]}, "arrays is a list: arrays must be a dict"),
        ({"arrays": {"A": np.array([None])}}, "arrays['A'] has dtype object: it must hold numbers"),
        ({"arrays": {"A": np.zeros(2, dtype="i4,f8")}}, "no objects or records"),
        ({"arrays": {"A": [[1], [1, 2]]}}, "arrays['A'] is not a rectangular array"),
        ({"arrays": {"A": np.ma.masked_greater([1, 2], 1)}}, "arrays['A'] has masked entries"),
        *(
            ({"arrays": {name: np.ones(1)}}, "arrays has the name")
            for name in ("", "a/b", "a\\b", "a\0", "$f", 3, "\ud800")
        ),
    ],
    ids=str,
)
def test_what_cannot_be_kept_is_refused(tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    arguments = {"file": "a.tsc", "kind": "test", "meta": {}, "arrays": {}} | arguments
    assert words in refusal(lambda: files.write(**arguments))
    assert not contents(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with a name here")
def test_a_pipe_is_refused(tmp_path):
    """Not the null device: a mutant that runs as root would put a file in its place for the whole machine."""
    os.mkfifo(tmp_path / "pipe")
    assert "is a folder or a device" in refusal(files.write, tmp_path / "pipe", "test", {}, {})
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)


@pytest.mark.skipif(np.finfo(np.longdouble).eps == np.finfo(float).eps, reason="long double is double here")
def test_a_long_double_that_a_float_cannot_hold_is_refused(tmp_path):
    third = np.longdouble(1) / 3
    assert "meta['a'] is" in refusal(files.write, tmp_path / "a.tsc", "test", {"a": third}, {})


def test_missing_files_and_folders_are_refused(tmp_path):
    assert refusal(files.read, tmp_path / "b.tsc") == (
        f"file='{tmp_path}/b.tsc' does not exist: file must be a file that triscreen has written"
    )
    assert "is a folder or a device: file must be a file" in refusal(files.read, tmp_path)
    assert "file=3: file must be a path" in refusal(files.read, 3)


def test_files_of_others_are_refused(tmp_path):
    other = tmp_path / "other"
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("header.json", '{"format": "else"}')
    with zipfile.ZipFile(tmp_path / "zip2", "w") as archive:
        archive.writestr("readme.txt", "hello")
    np.savez(tmp_path / "a.npz", M=np.eye(2))
    strangers = [b"", b"PK", b"some text\n" * 20, bytes(100)]
    strangers += [(tmp_path / name).read_bytes() for name in ("zip", "zip2", "a.npz")]
    for data in strangers:
        other.write_bytes(data)
        assert refusal(files.read, other) == (
            f"file='{other}' is not a triscreen file: file must be a file that triscreen has written"
        )


def test_a_newer_format_is_refused(file):
    def newer(header, members):
        header["version"] = files.VERSION + 1
        members["index.bin"] = b"something new"

    rewritten(file, newer)
    assert (
        f"a.tsc' was written by a newer triscreen, format {files.VERSION + 1}: this one reads up to {files.VERSION}"
        in refusal(files.read, file)
    )


def test_another_kind_is_refused(file):
    assert "a.tsc' is of kind 'test': a file of kind 'path' is needed here" in refusal(files.read, file, "path")


@pytest.mark.parametrize(
    "change",
    [
        lambda header, members: members.pop("M.npy"),
        lambda header, members: members.update({"extra.npy": b""}),
        lambda header, members: header["arrays"].pop("M"),
        lambda header, members: header["arrays"]["M"].update(dtype="<i8"),
        lambda header, members: header["arrays"]["M"].update(shape=[4, 3]),
        lambda header, members: header.pop("meta"),
        lambda header, members: header.update(version="1"),
        lambda header, members: header["meta"].update(lam=math.nan),
        lambda header, members: members.update({"M.npy": members["M.npy"] + b"."}),
        lambda header, members: members.update({"M.npy": members["M.npy"][:-1]}),
    ],
)
def test_a_header_that_does_not_fit_is_refused(file, change):
    rewritten(file, change)
    assert "a.tsc' is damaged or cut short" in refusal(files.read, file)


def test_nothing_is_unpickled(file):
    def with_objects(header, members):
        stream = io.BytesIO()
        np.lib.format.write_array(stream, np.array([None]), allow_pickle=True)
        members["M.npy"] = stream.getvalue()
        header["arrays"]["M"] = {"dtype": "|O", "shape": [1]}

    rewritten(file, with_objects)
    assert "Object arrays cannot be loaded" in refusal(files.read, file)
    assert "pickle" not in Path(files.__file__).read_text().replace("allow_pickle=False", "").replace("pickled", "")


def test_a_file_cut_short_is_refused(file):
    data = file.read_bytes()
    for length in np.linspace(0, len(data) - 1, 250).astype(int):
        file.write_bytes(data[:length])
        assert "a.tsc" in refusal(files.read, file)


def test_a_flipped_byte_is_noticed_or_does_not_matter(file):
    """Every byte (in the night; else every third), so the records of the zip archive too."""
    data, noticed = file.read_bytes(), np.zeros(len(file.read_bytes()), dtype=bool)
    rng = np.random.default_rng(0)
    tried = range(0, len(data), cases(3, 1))
    for i in tried:
        damaged = bytearray(data)
        damaged[i] ^= rng.choice([1, 2, 8, 0x20, 0x80, 0xFF])
        file.write_bytes(damaged)
        try:
            content = files.read(file)
        except ts.InputError as err:
            noticed[i] = "is damaged or cut short" in str(err) or i < 41
        else:
            assert same_content(content, "test", META, ARRAYS), f"byte {i}"
            continue
        assert noticed[i], f"byte {i}"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():  # what the checksums cover
            start = data.index(b"{" if member.filename == "header.json" else b"\x93NUMPY", member.header_offset)
            assert all(noticed[i] for i in tried if start <= i < start + member.file_size)


def test_checksums_come_before_numpy(file):
    """A damaged shape must not make numpy ask for a petabyte."""
    data = file.read_bytes()
    damaged = data.replace(b"(3, 4), }" + b" " * 12, b"(3, 4000000000000), }")
    assert len(damaged) == len(data)
    assert damaged != data
    file.write_bytes(damaged)
    assert "the checksum of M.npy is wrong" in refusal(files.read, file)


BOMBS = {
    "a header of blanks": {"header.json": b'{"format": "triscreen"' + b" " * 30_000_000 + b"}"},
    "an array of zeros": {"M.npy": npy("<f8", (4_000_000,), bytes(32_000_000))},
    "an unknown member": {"more.npy": bytes(30_000_000)},
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_unpacks_to_more_than_the_file_is_refused_before_it_is_unpacked(file, name):
    """Files of triscreen are never compressed, so nothing in one is larger than the file."""
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()} | BOMBS[name]
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in members.items():
            archive.writestr(member, data, None if member in BOMBS[name] else zipfile.ZIP_STORED)
    assert file.stat().st_size < 1e5
    text, most = peak(files.read, file)
    assert "is compressed" in text
    assert most < 1e6


def test_a_file_cannot_ask_for_more_than_its_size(file):
    """Sizes that lie: in the records of the archive, in the header, in the arrays' own headers."""
    data = file.read_bytes()
    big = (10**12).to_bytes(8, "little")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        sizes = {member.file_size.to_bytes(4, "little") for member in archive.infolist()}
        starts = {member.header_offset.to_bytes(4, "little") for member in archive.infolist()}
    for old, new in [*((size, big[:4]) for size in sizes), *((s, bytes(4)) for s in starts if any(s))]:
        assert old in data
        file.write_bytes(data.replace(old, new))
        text, most = peak(files.read, file)
        assert "damaged or cut short" in text or "not a triscreen file" in text
        assert most < 1e6
    for dtype, shape in (("<f8", (10**12,)), ("<f8", (3, 5)), ("<U0", (10**12,)), ("<f8", (-1,)), ("<f8", (2**62, 8))):
        file.write_bytes(data)

        def change(header, members, dtype=dtype, shape=shape):
            members["M.npy"] = npy(dtype, shape, bytes(96))
            header["arrays"]["M"] = {"dtype": dtype, "shape": list(shape)}

        rewritten(file, change)
        text, most = peak(files.read, file)
        assert "damaged or cut short" in text
        assert most < 1e6


def test_members_that_overlap_are_refused(file):
    """One run of bytes that many members share is how a small archive holds a large one."""
    data = file.read_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        offsets = [member.header_offset for member in archive.infolist() if member.filename.endswith(".npy")]
    shared = data.replace(offsets[2].to_bytes(4, "little"), offsets[1].to_bytes(4, "little"))
    file.write_bytes(shared)
    assert "shorter than its parts" in refusal(files.read, file)


class Failing(io.FileIO):
    """A file whose n-th write fails, and every later one if it fails for good."""

    def __init__(self, path, n, error, for_good):
        super().__init__(path, "xb")
        self.n, self.error, self.for_good = n, error, for_good

    def write(self, data):
        self.n -= 1
        if self.n == 0 or (self.n < 0 and self.for_good):
            super().write(bytes(data)[: len(data) // 2])
            raise self.error
        return super().write(data)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=repr)
def test_a_failed_write_leaves_the_old_file(file, monkeypatch, error):
    """A full disk or Ctrl-C at any write, at the fsync and at the replacement."""
    before, opened = contents(file.parent), []

    def opening(n):
        def opener(path, mode):
            opened.append(Failing(path, n, error, isinstance(error, OSError)))
            return opened[-1]

        return opener

    monkeypatch.setattr(files, "open", opening(10**6), raising=False)
    files.write(file, "test", META, ARRAYS)
    n_writes = 10**6 - opened[0].n
    assert n_writes > 15
    patches = [(files, "open", opening(n)) for n in range(1, n_writes + 1)]
    patches += [(os, name, lambda *_: (_ for _ in ()).throw(error)) for name in ("fsync", "replace")]
    for patched in patches:
        with monkeypatch.context() as patch:
            patch.setattr(*patched)
            with pytest.raises(type(error)) as caught:
                files.write(file, "test", {"new": 1} | META, ARRAYS)
        assert str(caught.value) in ("", f"[Errno 28] No space left on device: '{file}'")
        assert contents(file.parent) == before


def test_it_is_on_the_disk_before_it_is_there(tmp_path, monkeypatch):
    calls = []
    for name in ("fsync", "replace"):
        kept = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args, kept=kept, name=name: (calls.append(name), kept(*args)))
    files.write(tmp_path / "a.tsc", "test", META, ARRAYS)
    assert calls[:2] == ["fsync", "replace"]


@pytest.mark.parametrize("call", [files.read, lambda file: files.write(file, "test", {}, {})], ids=["read", "write"])
@pytest.mark.parametrize("odd", ["loop", "fifo", "x" * 300, "file/in/it", "folder"])
def test_odd_paths_are_refused_in_one_sentence(tmp_path, call, odd):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    assert refusal(call, tmp_path / odd).startswith("file=")
    assert sorted(os.listdir(tmp_path)) == ["fifo", "file", "folder", "loop"]
    assert (tmp_path / "loop").is_symlink()


@pytest.mark.skipif(os.name == "nt", reason="links and modes are those of POSIX")
def test_a_link_stays_a_link_and_the_mode_is_the_usual_one(tmp_path, file):
    (tmp_path / "link").symlink_to(file)
    files.write(tmp_path / "link", "test", {"new": 1}, {})
    assert (tmp_path / "link").is_symlink()
    assert files.read(file)[1] == {"new": 1}
    (tmp_path / "plain").touch()
    assert file.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_fingerprints():
    a = np.arange(300_000.0).reshape(3, -1)
    known = files.fingerprint(a)
    assert len(known) == 32
    assert set(known) <= set("0123456789abcdef")
    assert files.fingerprint(np.asfortranarray(a)) == files.fingerprint(np.repeat(a, 2, axis=1)[:, ::2]) == known
    changed = a.copy()
    changed[-1, -1] += 1e-9
    others = [changed, a.T, a.ravel(), a.astype("f4"), a.view("i8"), a[:2], a[::-1], np.zeros((0, 3)), np.zeros((3, 0))]
    prints = [files.fingerprint(b) for b in others]
    prints += [files.fingerprint(a, a), files.fingerprint(), files.fingerprint(a[:1], a[1:]), known]
    assert len(set(prints)) == len(prints)
    assert files.fingerprint(np.array(["a", "é"]), np.array("2020", dtype="M8[Y]"), 3.0)
    assert "arrays[1] has dtype object" in refusal(files.fingerprint, a, np.array([None]))


def test_a_fingerprint_takes_no_copy_of_the_array():

    a = np.zeros((2000, 2000))
    for b in (a, a.T):
        tracemalloc.start()
        files.fingerprint(b)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < a.nbytes / 8
