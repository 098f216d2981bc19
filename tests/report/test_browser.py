"""The report in a real browser: no error, and the slider moves every panel."""

from __future__ import annotations

import json
import shutil
import time

import numpy as np
import pytest
from sklearn.datasets import load_iris

import triscreen as ts
from triscreen.report import gather, write_report

webdriver = pytest.importorskip("selenium.webdriver")
CHROMIUM, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))
if not (CHROMIUM and DRIVER):
    pytest.skip("no browser: install Debian's chromium and chromium-driver", allow_module_level=True)

PANELS = ["points", "spectrum", "features", "gaps", "decided", "dynamic", "ranges", "errors", "loss", "work"]
QUIET = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync"]  # fmt: skip
# Everything that a panel draws, in pixels; plotly.js is asked for it only through the page itself.
DRAWN = """
const drawn = (c) => Array.from(c.querySelectorAll(".cartesianlayer g path:not(.crisp), .cartesianlayer image"))
  .map((e) => ["d", "transform", "x", "href"].map((name) => e.getAttribute(name) || "").join());
return Array.from(document.querySelectorAll(".chart")).map((c) => [c.id, drawn(c).join()]);
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    problem = ts.Problem(X[::2], ts.knn_triplets(X[::2], y[::2], k=5))
    path = ts.solve_path(problem, ratio=0.5, tol=1e-4)
    gather(path, problem, X[::2], y[::2], X[1::2], y[1::2], source="iris")
    file = tmp_path_factory.mktemp("page") / "report.html"
    write_report(path, file)
    return file


@pytest.fixture(scope="module")
def browser(page):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in [*QUIET, f"--user-data-dir={page.parent / 'profile'}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_window_size(1280, 900)
    driver.get(page.as_uri())
    yield driver
    driver.quit()


def drawn(browser):
    return dict(browser.execute_script(DRAWN))


def move(browser, value):
    browser.execute_async_script(
        "const done = arguments[1], s = document.getElementById('lambda'); s.value = arguments[0];"
        "s.dispatchEvent(new Event('input')); setTimeout(done, 600)", value)  # fmt: skip


def test_the_slider_moves_every_panel(browser):
    move(browser, 1)
    before, said = drawn(browser), browser.find_element("id", "now").text
    assert list(before) == PANELS
    assert all(before.values())
    move(browser, 6)
    after = drawn(browser)
    assert [name for name in PANELS if before[name] == after[name]] == []
    assert browser.find_element("id", "now").text != said
    assert "relative gap" in said


def test_keys_buttons_themes_and_no_error(browser):
    slider = browser.find_element("id", "lambda")
    browser.find_element("id", "best").click()
    best = int(slider.get_attribute("value"))
    data = json.loads(browser.execute_script("return document.getElementById('data').textContent"))
    assert best == data["best"]
    slider.send_keys("\ue014")  # the right arrow key
    assert int(slider.get_attribute("value")) == min(best + 1, len(data["frames"]) - 1)
    browser.find_element("id", "back").click()
    ink = "return getComputedStyle(document.body).color"
    light = browser.execute_script(ink)
    browser.find_element("id", "theme").click()
    assert browser.execute_script(ink) != light
    for width in (1280, 400):  # nothing sticks out at either size
        browser.set_window_size(width, 900)
        browser.execute_async_script("setTimeout(arguments[0], 500)")
        wide = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1]
    assert len(browser.print_page()) > 50_000  # as PDF, in base64
    unnamed = (
        "return document.querySelectorAll('button:not([aria-label]):empty, [role=img]:not([aria-labelledby])').length"
    )
    assert browser.execute_script(unnamed) == 0
    assert [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    asked = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [m["params"]["request"]["url"] for m in asked if m["method"] == "Network.requestWillBeSent"]
    assert [url for url in urls if url.startswith(("http:", "https:", "ws"))] == []


def shows(browser, script, place, wanted):
    """Wait for the panel to be drawn, which is not done when the page is loaded; then it has these texts."""
    deadline = time.monotonic() + 30
    while len(found := browser.execute_script(script, place)) < len(wanted) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert sorted(found) == sorted(wanted)


def test_names_from_the_data_are_no_markup(browser, tmp_path_factory):
    """Labels, features and the source are shown as they are, and nothing in them is run or drawn bold."""
    X, y = load_iris(return_X_y=True)
    labels = np.array(["<b>bold</b>", "<img src=x onerror='window.bad=1'>", "</script><script>window.bad=1</script>"])
    names = ["<b>one</b>", "a<br>b", "&lt;i&gt; & <i>", "<a href='javascript:window.bad=1'>link</a>"]
    problem = ts.Problem(X[::2], ts.knn_triplets(X[::2], y[::2], k=3))
    path = ts.solve_path(problem, ratio=0.4, tol=1e-3)
    source = "<script>window.bad=1</script>.csv"
    gather(path, problem, X[::2], labels[y[::2]], X[1::2], labels[y[1::2]], feature_names=names, source=source)
    file = tmp_path_factory.mktemp("names") / "report.html"
    write_report(path, file)
    browser.get(file.as_uri())
    texts = "return Array.from(document.querySelectorAll(arguments[0])).map((e) => e.textContent)"
    shows(browser, texts, "#points .legendtext", labels)
    shows(browser, texts, "#features .ytick text", names)
    assert browser.execute_script(texts, "h1") == [f"A metric for {source}"]
    marked = "return document.querySelectorAll('.chart a, .chart tspan[style*=bold], .chart img, img').length"
    assert browser.execute_script(marked) == 0
    move(browser, 2)
    shows(browser, texts, "#features .ytick text", names)
    assert browser.execute_script("return window.bad === undefined")
