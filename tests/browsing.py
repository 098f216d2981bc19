"""A browser for tests, on machines so busy that one may not start, or not answer: then another one is tried, once."""

from __future__ import annotations

import functools
import itertools
import os
import signal
import time
import warnings
from contextlib import suppress

from selenium import webdriver
from selenium.common import exceptions
from urllib3.exceptions import HTTPError

QUIET = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync"]  # fmt: skip
PATIENCE = 60  # seconds that one answer may take
_SILENT = (exceptions.TimeoutException, exceptions.InvalidSessionIdException, exceptions.NoSuchWindowException,
           exceptions.SessionNotCreatedException, HTTPError, ConnectionError)  # fmt: skip
_GONE = ("not reachable", "disconnected", "crashed", "unable to receive message", "timed out", "failed to start")


def silent(err):
    """Tell whether an error says that there is no browser that answers, rather than something about the page."""
    told = err.msg or "" if isinstance(err, exceptions.WebDriverException) else ""
    return isinstance(err, _SILENT) or any(words in told.lower() for words in _GONE)


def twice(test):
    """Run a test again, once and in a new browser, where the first one no longer answers; nothing else is forgiven."""

    @functools.wraps(test)
    def run(browser, **others):
        try:
            return test(browser=browser, **others)
        except Exception as err:
            if not silent(err):
                raise
            warnings.warn(f"{test.__name__}: a browser that did not answer was replaced ({err!r:.200})", stacklevel=2)
        browser.restart()
        return test(browser=browser, **others)

    return run


class Browser:
    """Chromium with a page; what a driver of selenium can do, and `restart`."""

    def __init__(self, binary, driver, folder, page):
        self._start = functools.partial(_started, binary, driver)
        self._folder, self._page, self._numbers = folder, page, itertools.count()
        self._driver = None
        self.restart()

    def __getattr__(self, name):
        return getattr(self._driver, name)

    def get(self, url):
        """Open a page and wait for all of it: a driver that opens the same page again may come back too soon."""
        deadline = time.monotonic() + PATIENCE
        self._driver.get("about:blank")
        self._driver.get(url)
        while self._driver.execute_script("return [document.readyState, location.href]") != ["complete", url]:
            if time.monotonic() > deadline:
                raise exceptions.TimeoutException(f"{url} was not loaded in {PATIENCE} seconds")
            time.sleep(0.05)

    def restart(self):
        """Begin with a new one and a profile of its own; where that does not come up, with another one."""
        try:
            self._open()
        except Exception as err:
            if not silent(err):
                raise
            self._open()

    def _open(self):
        self.end()
        self._driver = self._start(self._folder / f"profile{next(self._numbers)}")
        self.get(self._page.as_uri())

    def end(self):
        """End it, if there is one, whether or not it answers: it has a group of processes of its own."""
        driver, self._driver = self._driver, None
        if driver is not None:
            with suppress(ProcessLookupError):
                os.killpg(driver.service.process.pid, signal.SIGKILL)
            driver.service.process.wait(PATIENCE)
            driver.service.stop()  # closes its files


def _started(binary, driver, profile):
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in [*QUIET, f"--user-data-dir={profile}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(driver, popen_kw={"start_new_session": True})
    made = webdriver.Chrome(options=options, service=service)
    made.set_window_size(1280, 900)
    made.set_script_timeout(PATIENCE)
    made.set_page_load_timeout(PATIENCE)
    return made
