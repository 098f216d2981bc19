"""The corpus that the guided fuzzing of loaders begins with: every file of it is read or refused as it should be."""

from __future__ import annotations

import pytest

import fuzz_loaders
from fuzz_loaders import LOADERS, SEEDS, Wrong, attempt, checked

READ = {"csv", "model", "npy", "npz", "numbers", "parquet", "path", "svm", "tsv", "txt", "checkpoint"}


def test_every_file_of_the_corpus(tmp_path):
    found = {file.name: attempt(file.read_bytes(), tmp_path) for file in sorted(SEEDS.iterdir())}
    assert {name for name, end in found.items() if end == "read"} == READ
    assert not list(tmp_path.iterdir())
    assert sum(file.stat().st_size for file in SEEDS.iterdir()) < 100_000


def test_checksums_are_made_right_again(tmp_path):
    data = (SEEDS / "npz").read_bytes()
    place = data.index(b"NUMPY") + 200
    broken = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
    assert attempt(broken, tmp_path) == "refused"
    plain = broken[1:]
    assert checked(plain) != plain
    assert attempt(bytes([data[0] + len(LOADERS) * 12]) + plain, tmp_path) == "read"


@pytest.mark.parametrize("fault", ["error", "words", "left"])
def test_what_is_wrong_is_found(tmp_path, monkeypatch, fault):
    import triscreen as ts

    def read(file):
        if fault == "error":
            raise KeyError("x")
        if fault == "words":
            raise ts.InputError("two\nlines")
        file.with_name("part").write_bytes(b"")

    monkeypatch.setattr(fuzz_loaders, "LOADERS", [("csv", read)])
    with pytest.raises((KeyError, Wrong)):
        attempt(b"\0abc", tmp_path)
