"""numba's cache of compiled kernels: where it does not work, kernels do."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numba
import numpy as np
import pytest

import triscreen
from triscreen._kernels import common
from triscreen._kernels.pairs import pair_distances

ROOT = Path(triscreen.__file__).parent
# A kernel that compiles quickly, with two signatures, after all of triscreen has been imported.
SCRIPT = """
import numpy as np
import triscreen as ts
from triscreen._kernels.pairs import pair_distances

for kind in (np.int32, np.int64):
    out = np.empty(2)
    pair_distances(np.array([[0.0], [3.0]]), np.array([0, 1, 2], kind), np.array([1, 0], kind), out, 0, 2)
    assert out.tolist() == [9.0, 9.0]
print("hits", sum(pair_distances.stats.cache_hits.values()))
"""


def start(script=SCRIPT, **environment):
    return subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **{name: str(value) for name, value in environment.items()}},
    )


def outcome(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.strip(), err.strip().splitlines()


def test_import_and_kernels_work_where_nothing_can_be_written_and_one_line_says_so():
    """As with a read-only installation and no home; permissions would not stop a superuser, so the probe fails here."""
    nowhere = "import tempfile\ndef fail(*_, **__): raise PermissionError('read-only')\ntempfile.TemporaryFile = fail\n"
    out, err = outcome(start(nowhere + SCRIPT))
    assert out == "hits 0"
    assert len(err) == 1
    assert "NUMBA_CACHE_DIR" in err[0]


def test_import_from_an_archive_works(tmp_path):
    archive = tmp_path / "triscreen.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for file in ROOT.rglob("*.py"):
            packed.write(file, Path("triscreen") / file.relative_to(ROOT))
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"), "/dev/null/nowhere")
    script = f"import sys\nsys.path.insert(0, {str(archive)!r})\n{SCRIPT}assert '.zip' in ts.__file__\n"
    out, err = outcome(start(script, **nowhere))
    assert out == "hits 0"
    assert len(err) == 1
    assert "NUMBA_CACHE_DIR" in err[0]


def hits(caplog):
    """Compile a kernel, or take it from the cache; return how often that helped, and what was said."""
    kernel = common.compiled()(pair_distances.py_func)
    for kind in (np.int32, np.int64):
        out = np.empty(2)
        kernel(np.array([[0.0], [3.0]]), np.array([0, 1, 2], kind), np.array([1, 0], kind), out, 0, 2)
        assert out.tolist() == [9.0, 9.0]
    return sum(kernel.stats.cache_hits.values()), [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize("damage", ["empty", "cut", "garbage", "one file for all", "a folder"])
def test_a_damaged_cache_costs_time_only(tmp_path, damage, monkeypatch, caplog):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(common, "_said", False)
    assert hits(caplog) == (0, [])
    assert hits(caplog) == (2, [])
    files = list(tmp_path.rglob("*.nb?"))
    assert len(files) == 3  # an index and two signatures
    data = [file for file in files if file.suffix == ".nbc"]
    for file in files:
        if damage == "empty":
            file.write_bytes(b"")
        elif damage == "cut":
            file.write_bytes(file.read_bytes()[:-100])
        elif damage == "garbage":
            file.write_bytes(b"garbage" * 100)
        elif damage == "one file for all" and file in data:
            file.write_bytes(data[0].read_bytes())  # as if two processes had taken the same name at once
        elif damage == "a folder":
            file.unlink()
            file.mkdir()
    found, said = hits(caplog)
    assert found == (damage == "one file for all")
    if damage == "a folder":  # it cannot be mended
        assert len(said) == 1
        assert "NUMBA_CACHE_DIR" in said[0]
    else:
        assert said == []
        assert hits(caplog) == (2, [])  # it has been


def test_processes_that_compile_at_once_share_an_empty_cache(tmp_path):
    for out, err in [outcome(process) for process in [start(NUMBA_CACHE_DIR=tmp_path) for _ in range(2)]]:
        assert out.startswith("hits")
        assert err == []
