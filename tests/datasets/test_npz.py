"""Arrays of npz and npy files take no more memory than they should: sizes come before anything is unpacked."""

from __future__ import annotations

import os
import tracemalloc
import zipfile

import numpy as np

from archives import npy, peak
from triscreen.datasets import read_points


def bomb(file, name, data, pack=zipfile.ZIP_DEFLATED):
    """An npz file with good X and y, one of them replaced or another member added."""
    np.savez(file, X=np.ones((4, 2)), y=np.array([0, 0, 1, 1]))
    with zipfile.ZipFile(file) as archive:
        members = {member: archive.read(member) for member in archive.namelist()} | {name: data}
    with zipfile.ZipFile(file, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content, pack if member == name else None)
    assert os.path.getsize(file) < 1e5
    return file


def test_an_npz_file_is_not_unpacked_before_its_sizes_are_known(tmp_path, monkeypatch):
    """Small files that would unpack to much: refused, or not looked at."""
    begin = npy("<f8", (4, 10**6))
    zeros = bytes(32_000_000)
    cases = {
        "more than it says": ("X.npy", npy("<f8", (4, 2), zeros), "does not take"),
        "less than it says": ("X.npy", npy("<f8", (4, 10**9), bytes(1000)), "does not take"),
        "labels": ("y.npy", npy("<i8", (4,), zeros), "does not take"),
        "a long header": ("X.npy", b"\x93NUMPY\x02\x00" + len(zeros).to_bytes(4, "little") + zeros, "begin"),
        "too much": ("X.npy", begin + zeros, "X.npy: it would take 32,000,128 bytes"),
        "packed by others": ("X.npy", begin + zeros, "is compressed otherwise"),
    }
    for name, (member, data, words) in cases.items():
        with monkeypatch.context() as patch:
            if name == "too much":
                patch.setattr("triscreen.datasets.read._UNPACKED", 10**6)
            pack = zipfile.ZIP_BZIP2 if name == "packed by others" else zipfile.ZIP_DEFLATED
            text, most = peak(read_points, bomb(tmp_path / "a.npz", member, data, pack))
        assert words in text, name
        assert most < 2e6, name
    tracemalloc.start()
    assert read_points(bomb(tmp_path / "b.npz", "other.npy", zeros)).X.shape == (4, 2)
    assert tracemalloc.get_traced_memory()[1] < 2e6
    tracemalloc.stop()


def test_reading_an_npz_file_takes_little_more_than_its_arrays(tmp_path):
    X = np.zeros((2000, 1000))
    X[:, 0] = np.arange(2000)
    np.savez_compressed(tmp_path / "a.npz", X=X, y=np.arange(2000) % 2, more=np.zeros((3000, 1000)))
    assert os.path.getsize(tmp_path / "a.npz") < 1e5
    tracemalloc.start()
    assert (read_points(tmp_path / "a.npz").X == X).all()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1.5 * X.nbytes


def test_an_npy_file_cannot_ask_for_more_than_its_size(tmp_path):
    for dtype, shape in (("<f8", (10**12, 2)), ("<f8", (-1, 2)), ("<U0", (10**12,)), ("<f8", (3, 2))):
        (tmp_path / "a.npy").write_bytes(npy(dtype, shape, bytes(64)))
        text, most = peak(read_points, tmp_path / "a.npy")
        assert "no npy file that can be read" in text
        assert most < 1e6
