from __future__ import annotations

import os
import signal
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from nightly import NIGHTLY

settings.register_profile("triscreen", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("triscreen")
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # a run in the background: the processes of tests must not inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config, items):
    """Of a test that is `thinned` to one in n, run these of its cases, and in the night all: the first, and by name."""
    seen, kept, left = set(), [], []
    for item in items:
        mark = None if NIGHTLY else item.get_closest_marker("thinned")
        test = item.nodeid.partition("[")[0]
        runs = mark is None or test not in seen or zlib.crc32(item.name.encode()) % mark.args[0] == 0
        (kept if runs else left).append(item)
        seen.add(test)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


@pytest.fixture(autouse=True)
def tubes_in_small_problems(request, monkeypatch):
    """Problems of tests are small, and "auto" would do without tubes: let these always pay, but in tests of that."""
    if "frugal" not in request.keywords:
        monkeypatch.setattr("triscreen.path.walk.Walk._pays", lambda *_: True)


@pytest.fixture(scope="session")
def segment():
    """The paper's segment data, scaled to [-1, 1], a random 90 % of it."""
    folder = os.environ.get("TRISCREEN_DATA")
    if not folder or not (Path(folder) / "segment.npz").exists():
        pytest.skip("segment.npz not found: set TRISCREEN_DATA to the folder that holds it")
    with np.load(Path(folder) / "segment.npz") as data:
        X, y = data["X"].astype(float), data["y"]
    low, high = X.min(axis=0), X.max(axis=0)
    X = np.where(high > low, 2 * (X - low) / np.where(high > low, high - low, 1) - 1, 0)
    rows = np.sort(np.random.default_rng(0).permutation(len(X))[: int(0.9 * len(X))])
    return X[rows], y[rows]
