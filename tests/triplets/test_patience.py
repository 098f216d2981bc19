"""Long searches end when they are to: by Ctrl-C, by a deadline."""

from __future__ import annotations

import time

import numpy as np
import pytest

import triscreen as ts
from triscreen._utils import threads
from triscreen._utils.threads import Threads, deadline
from triscreen.triplets import neighbours
from triscreen.triplets.neighbours import nearest

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(3000, 4)), np.arange(3000) % 3


@pytest.fixture
def cells(monkeypatch):
    """Many cells; return the list of those that have asked."""
    asked, ask = [], neighbours._Search._ask

    def watched(self, cell):
        asked.append(cell)
        ask(self, cell)

    monkeypatch.setattr(neighbours, "cell_size", lambda axes: 32)
    monkeypatch.setattr(neighbours._Search, "_ask", watched)
    return asked


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_ends_a_search_with_the_cells_at_work(cells, n_jobs):
    def interrupt(share):
        if share > 0.1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        nearest(X, Y, 5, Threads(n_jobs), progress=interrupt)
    assert len(cells) < 30


def passing(monkeypatch, seconds):
    """Let time pass by so many seconds whenever somebody looks."""
    begin, looks = time.perf_counter(), iter(range(10**9))
    monkeypatch.setattr(threads.time, "perf_counter", lambda: begin + seconds * next(looks))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_deadline_ends_a_search_with_the_cells_at_work(cells, n_jobs, monkeypatch):
    passing(monkeypatch, 0.02)
    with pytest.raises(ts.OutOfTime), deadline(4.0):
        nearest(X, Y, 5, Threads(n_jobs))
    assert 0 < len(cells) < 94


@pytest.mark.parametrize("model", [ts.TripletMetric(5, max_seconds=4.0), ts.TripletMetricCV(5, max_seconds=4.0)])
def test_max_seconds_of_a_fit_are_for_its_search_too(cells, model, monkeypatch):
    passing(monkeypatch, 0.02)
    with pytest.raises(ts.OutOfTime, match="max_seconds=4: it was over while triplets were made"):
        model.fit(X, Y)
    assert len(cells) < 94
