"""What ``verbose`` shows, where, how often; and what whoever configures logging gets."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.base import clone

import triscreen as ts
from problems import comparisons
from triscreen._utils.logs import shown

Y = np.arange(30) % 2
X = np.random.default_rng(0).normal(size=(30, 3)) + Y[:, None]
POINTS, ROWS = comparisons(0, n=15, m=80)
LOGGER = logging.getLogger("triscreen")
# (fit with these parameters, lines that verbose=1 shows)
FITS = {
    "TripletMetric": (lambda **how: ts.TripletMetric(2, rounds=1, **how).fit(X, Y), 1),
    "TripletMetricCV": (lambda **how: ts.TripletMetricCV(2, ratios=3, cv=2, **how).fit(X, Y), 2 * 3 + 1),
    "ComparisonMetric": (lambda **how: ts.ComparisonMetric(POINTS, **how).fit(ROWS), 1),
}


class Kept(logging.Handler):
    """A handler of the user's: keeps what it gets."""

    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append(record)


@contextmanager
def configured(*handlers, level=logging.WARNING):
    """Within, the root logger has these handlers (pytest's are put away); what is done there must leave logging so."""
    root = logging.getLogger()
    before = root.handlers, root.level, LOGGER.level
    root.handlers = list(handlers)
    root.setLevel(level)
    LOGGER.setLevel(logging.NOTSET)
    try:
        yield
        assert (root.handlers, root.level) == (list(handlers), level)
        assert (LOGGER.handlers, LOGGER.level) == ([], logging.NOTSET)
    finally:
        root.handlers = before[0]
        root.setLevel(before[1])
        LOGGER.setLevel(before[2])


@pytest.mark.parametrize("name", FITS)
def test_verbose_shows_its_lines_once_and_on_stderr(name, capsys):
    fit, n_lines = FITS[name]
    with configured():
        fit()
        assert capsys.readouterr() == ("", "")
        fit(verbose=1)
        out, err = capsys.readouterr()
        assert out == ""
        assert len(err.splitlines()) == n_lines
        assert all(line.startswith("triscreen: ") for line in err.splitlines())
        fit(verbose=2)
        more = capsys.readouterr().err.splitlines()
        assert len(more) > n_lines
        assert set(err.splitlines()) <= set(more)
        fit()
        assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("name", FITS)
def test_records_are_there_without_verbose(name, capsys):
    fit, n_lines = FITS[name]
    for level, more in ((logging.INFO, False), (logging.DEBUG, True)):
        own = Kept()
        with configured(own, level=level):
            fit()
        records = [record for record in own.records if record.name.startswith("triscreen.")]
        assert sum(record.levelno == logging.INFO for record in records) == n_lines
        assert (len(records) > n_lines) is more
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("place", ["root", "triscreen", "triscreen.estimators"])
@pytest.mark.parametrize("name", FITS)
def test_a_handler_of_the_users_has_the_lines_for_itself(name, place, capsys):
    fit, n_lines = FITS[name]
    own, logger = Kept(), logging.getLogger(place)
    with configured():
        logger.addHandler(own)
        fit(verbose=1)
        logger.removeHandler(own)
    assert [record.levelno for record in own.records] == [logging.INFO] * n_lines
    with configured(own, level=logging.DEBUG):
        fit(verbose=1)
    assert logging.DEBUG in {record.levelno for record in own.records}  # verbose takes nothing away
    assert capsys.readouterr() == ("", "")


def test_a_null_handler_is_nobody(capsys):
    with configured(logging.NullHandler()):
        ts.TripletMetric(2, verbose=1).fit(X, Y)
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_levels_of_the_users_come_back():
    with configured():
        LOGGER.setLevel(logging.ERROR)
        try:
            ts.TripletMetric(2, verbose=1).fit(X, Y)
            assert LOGGER.level == logging.ERROR
        finally:
            LOGGER.setLevel(logging.NOTSET)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_nothing_is_left_after_an_error_or_an_interrupt(error, capsys):
    def fail(state):
        raise error("now")

    with configured():
        with pytest.raises((ValueError, ts.Interrupted)):
            ts.TripletMetric(2, verbose=1, callback=fail).fit(X, Y)
        capsys.readouterr()
        ts.TripletMetric(2).fit(X, Y)
        LOGGER.info("nobody asked")
    assert capsys.readouterr().err == ""


def test_a_fit_inside_a_fit_says_its_own_lines_once(capsys):
    def inner(verbose):
        seen = []

        def fit(state):
            if not seen:
                seen.append(clone(ts.TripletMetric(2, verbose=verbose)).fit(X, Y))

        return fit

    with configured():
        for verbose, lines in ((1, 2), (0, 1), (2, 2)):
            ts.TripletMetric(2, verbose=1, callback=inner(verbose)).fit(X, Y)
            said = [line for line in capsys.readouterr().err.splitlines() if " round 1:" in line]
            assert len(said) == lines


def test_threads_show_what_they_were_asked_to(capsys):
    """Of two fits at the same time the one with verbose shows its lines; the handler stays until the last one ends."""
    both, quiet_done = threading.Barrier(2, timeout=60), threading.Event()

    def fit(verbose):
        with shown(verbose):
            both.wait()
            if verbose == 1:
                quiet_done.wait(60)
            logging.getLogger("triscreen.test").info("verbose=%d", verbose)
            if verbose != 1:
                quiet_done.set()

    with configured():
        for other, lines in ((0, 1), (1, 2), (2, 2)):
            quiet_done.clear()
            if other == 1:
                quiet_done.set()
            threads = [threading.Thread(target=fit, args=(verbose,)) for verbose in (1, other)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(capsys.readouterr().err.splitlines()) == lines


def test_a_script_without_any_set_up(tmp_path):
    """As a user sees it: stdout is the user's own, and warnings of ours reach stderr without verbose."""
    code = (
        "import logging, triscreen as ts; from sklearn.datasets import load_iris; X, y = load_iris(return_X_y=True); "
        "ts.TripletMetric(verbose=1).fit(X, y); print('mine'); ts.TripletMetric().fit(X, y); "
        "logging.getLogger('triscreen').warning('attention')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "mine\n"
    first, second = done.stderr.splitlines()
    assert first.startswith("triscreen: round 1: ")
    assert second == "attention"
