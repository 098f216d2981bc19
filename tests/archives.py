"""What tests of files share: arrays to keep, files that lie, and how a refusal is looked at."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

import triscreen as ts

ARRAYS = {"M": np.arange(12.0).reshape(3, 4), "ids": np.arange(5), "größe 1": np.array(["x", "ÿ"])}


def same_array(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def refusal(call, *arguments):
    """Return the sentence of the InputError of a call."""
    with pytest.raises(ts.InputError) as caught:
        call(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def contents(folder):
    return {file.name: file.read_bytes() for file in Path(folder).iterdir()}


def rewritten(file, change):
    """Write a file anew with another header."""
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members["header.json"])
    change(header, members)
    members["header.json"] = json.dumps(header)
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def peak(call, *arguments):
    """Return (the sentence of the refusal, the most memory that it took)."""
    tracemalloc.start()
    try:
        return refusal(call, *arguments), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def npy(dtype, shape, data=b""):
    """The bytes of an npy file that may lie about its size."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": False, "shape": shape})
    return stream.getvalue() + data
