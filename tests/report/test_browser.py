"""The report in a real browser: no error, and the slider moves every panel."""

from __future__ import annotations

import itertools
import json
import shutil
import time

import numpy as np
import pytest
from sklearn.datasets import load_iris

import triscreen as ts
from triscreen.report import gather, write_report, write_suspects

pytest.importorskip("selenium.webdriver")
from selenium.common.exceptions import (
    JavascriptException,
    NoSuchElementException,
    TimeoutException,
    WebDriverException,
)
from urllib3.exceptions import ReadTimeoutError

from browsing import Browser, twice

CHROMIUM, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))
if not (CHROMIUM and DRIVER):
    pytest.skip("no browser: install Debian's chromium and chromium-driver", allow_module_level=True)

PANELS = ["points", "alike", "spectrum", "features", "gaps", "decided", "dynamic", "ranges", "errors", "loss", "work"]
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
    ts.save(path, file.parent / "saved")
    return file


@pytest.fixture(scope="module")
def browser(page):
    opened = Browser(CHROMIUM, DRIVER, page.parent, page)
    yield opened
    opened.end()


def drawn(browser):
    return dict(browser.execute_script(DRAWN))


def move(browser, value):
    """Move the slider, and wait until the page says that it has drawn everything there."""
    browser.execute_script(
        "const s = document.getElementById('lambda'); s.value = arguments[0]; s.dispatchEvent(new Event('input'));",
        value,
    )
    said = until(lambda: browser.find_element("id", "now").text, lambda text: f"({value + 1} of " in text)
    assert f"({value + 1} of " in said


def until(looked, good):
    """Return the first look that is good, or the last one after a minute: a browser draws when it can."""
    deadline = time.monotonic() + 60
    while not good(seen := looked()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return seen


@twice
def test_the_slider_moves_every_panel(browser):
    move(browser, 1)
    before, said = (
        until(lambda: drawn(browser), lambda seen: seen and all(seen.values())),
        browser.find_element("id", "now").text,
    )
    assert list(before) == PANELS
    assert all(before.values())
    move(browser, 6)
    after = until(lambda: drawn(browser), lambda seen: all(seen[name] != before[name] for name in PANELS))
    assert [name for name in PANELS if before[name] == after[name]] == []
    assert browser.find_element("id", "now").text != said
    assert "relative gap" in said


@twice
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
    measured = (
        "return [document.documentElement.scrollWidth, innerWidth, document.querySelector('#loss svg').clientWidth]"
    )
    for width in (1280, 400):  # nothing sticks out at either size
        browser.set_window_size(width, 900)
        wide = until(lambda: browser.execute_script(measured), lambda wide: wide[0] <= wide[1] and wide[2] < wide[1])
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


@pytest.mark.parametrize("width", [400, 1280])
@twice
def test_nothing_is_printed_over_anything_and_the_slider_has_one_line(browser, page, width):
    """Texts of a chart, in its axes, titles and legend: no two of them share a spot."""
    spots = """
        const texts = (c) => Array.from(c.querySelectorAll("svg text"))
          .map((e) => [e.textContent, e.getBoundingClientRect()]).filter((e) => e[0].trim() && e[1].width)
          .map(([text, r]) => [text, r.left, r.right, r.top, r.bottom]);
        return Array.from(document.querySelectorAll(".chart")).map((c) => [c.id, texts(c)]);"""

    def clashes(charts):
        return [
            (chart, one[0], two[0])
            for chart, texts in charts
            for one, two in itertools.combinations(texts, 2)
            if min(one[2], two[2]) - max(one[1], two[1]) > 1 and min(one[4], two[4]) - max(one[3], two[3]) > 1
        ]

    browser.set_window_size(width, 900)
    narrow = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}  # windows have a least width
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", narrow)
    try:
        browser.get(page.as_uri())
        charts = until(
            lambda: browser.execute_script(spots), lambda seen: seen and all(t for _, t in seen) and not clashes(seen)
        )
        assert [chart for chart, texts in charts if len(texts) < 3] == []
        assert clashes(charts) == []
        browser.execute_script("D.rel_gaps[1] = 1e-16; draw()")  # labels as wide as this lay under the axis' title
        wide = "return Array.from(document.querySelectorAll('#gaps .ytick text')).map((e) => e.textContent)"
        until(lambda: browser.execute_script(wide), lambda labels: len(max(labels, key=len, default="")) > 4)
        charts = until(lambda: browser.execute_script(spots), lambda seen: not clashes(seen))
        assert clashes(charts) == []
        tops = (
            "return ['back', 'lambda', 'on', 'best'].map((id) => document.getElementById(id).getBoundingClientRect())"
        )
        rows = [(spot["top"], spot["bottom"]) for spot in browser.execute_script(tops)]
        assert max(top for top, _ in rows) < min(bottom for _, bottom in rows)
        wide = "return [document.documentElement.scrollWidth, innerWidth]"
        shown, inner = browser.execute_script(wide)
        assert shown <= inner == width
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.set_window_size(1280, 900)


@twice
def test_a_page_of_comparisons_shows_its_panels(browser, tmp_path_factory):
    rng = np.random.default_rng(0)
    X, rows = rng.normal(size=(60, 4)), np.array([rng.choice(60, 3, replace=False) for _ in range(400)])
    near, far = ((X[rows[:, 0]] - X[rows[:, c]])[:, 0] ** 2 for c in (1, 2))
    rows = np.where((near < far)[:, None], rows, rows[:, [0, 2, 1]])
    problem = ts.Problem(X, ts.given_triplets(rows[:300]))
    path = ts.solve_path(problem, ratio=0.4, tol=1e-3, n_lambdas=6)
    names = [f"item {i}" for i in range(60)]
    facts = gather(path, problem, X, None, comparisons_test=rows[300:], point_names=names, maps=False)
    file = tmp_path_factory.mktemp("compared") / "report.html"
    write_report(path, file)
    browser.get_log("browser")
    browser.get(file.as_uri())
    seen = until(lambda: drawn(browser), lambda seen: seen and all(seen.values()))
    assert set(seen) == set(PANELS) - {"alike", "dynamic", "ranges"}
    assert all(seen.values())
    cells = "return Array.from(document.querySelectorAll(arguments[0])).map((e) => e.textContent)"
    assert browser.execute_script(cells, "#suspects td:first-child") == [row[0] for row in facts.suspects[1:16]]
    assert all(name.startswith("item ") for name in browser.execute_script(cells, "#suspects td:first-child"))
    assert browser.execute_script("return document.querySelectorAll('#confusion, #neighbours').length") == 0
    move(browser, 4)
    after = until(lambda: drawn(browser), lambda new: all(new[name] != seen[name] for name in seen))
    assert [name for name in seen if seen[name] == after[name]] == []
    assert [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    assert file.stat().st_size < 6e6


@twice
def test_texts_and_tables_have_what_the_facts_have(browser, page):
    facts = ts.load(page.parent / "saved").facts
    browser.get(page.as_uri())
    cells = "return Array.from(document.querySelectorAll(arguments[0])).map((e) => e.textContent)"
    assert browser.execute_script(cells, "#suspects td:first-child") == [str(row[0]) for row in facts.suspects[1:16]]
    assert browser.execute_script(cells, "#neighbours td:first-child") == [row[0] for row in facts.neighbours]
    counts = [int(text) for text in browser.execute_script(cells, "#confusion td:not(:first-child)")]
    assert sum(counts) == facts.n_test
    assert round(sum(counts[::4]) / facts.n_test + facts.errors.min(), 9) == 1  # three classes: the diagonal


@twice
def test_neighbours_of_the_same_class_are_those_of_the_facts(browser, page):
    facts = ts.load(page.parent / "saved").facts
    browser.get(page.as_uri())
    move(browser, 3)
    said = "return ['#points .xtitle', '#points .x2title'].map((s) => document.querySelector(s).textContent)"
    shares = [facts.alike_before @ np.arange(6) / 375, facts.alike[3] @ np.arange(6) / 375]
    assert browser.execute_script(said) == [
        f"{when}: {share:.1%} alike".replace("%", " %") for when, share in zip(("before", "after"), shares, strict=True)
    ]
    bars = "return Array.from(document.querySelectorAll('#alike .point path')).map((e) => e.getBBox().height)"
    wanted = np.concatenate([facts.alike_before, facts.alike[3]]) / 150

    def off(heights):
        return np.abs(np.array(heights) / sum(heights) - wanted).max() if len(heights) == 12 else 1.0

    assert off(until(lambda: browser.execute_script(bars), lambda heights: off(heights) < 0.01)) < 0.01


@twice
def test_python_follows_the_slider_and_can_be_copied(browser, page):
    browser.get(page.as_uri())
    frames = json.loads(browser.execute_script("return document.getElementById('data').textContent"))["frames"]
    for place in (1, 4):
        move(browser, place)
        assert f"path.components({frames[place]}).T" in browser.find_element("id", "python").text
    browser.execute_script("window.setTimeout = () => 0")  # what the button says stays there
    button = browser.find_element("css selector", ".copy[data-of=python]")
    button.click()
    assert until(lambda: button.text, lambda text: text != "Copy") in ("Copied", "Selected")
    chosen = browser.execute_script("return getSelection().toString()")
    assert chosen.strip() == browser.find_element("id", "python").text.strip()


@twice
def test_suspects_are_saved_as_csv(browser, page):
    browser.get(page.as_uri())
    # What a click would save, taken where the page makes a file of it: reading a blob back may take a browser for ever.
    name, seen = browser.execute_script("""
        const parts = [], names = [], Real = Blob;
        window.Blob = function (of, kind) { parts.push(...of); return new Real(of, kind); };
        HTMLAnchorElement.prototype.click = function () { names.push(this.download); };
        document.getElementById("suspects-file").click();
        return [names.join(), parts.join("")];""")
    assert name.endswith(".csv")
    write_suspects(ts.load(page.parent / "saved"), page.parent / "suspects.csv")
    assert seen == (page.parent / "suspects.csv").read_text(encoding="utf-8")


@twice
def test_many_classes_and_many_decades_fit(browser, tmp_path_factory):
    """A few colours with a legend, at most some six ticks, and axes' titles beside each other, also on a telephone."""
    rng = np.random.default_rng(0)
    y = np.arange(180) % 60
    X = 3 * rng.normal(size=(60, 5))[y] + rng.normal(size=(180, 5))
    problem = ts.Problem(X[:120], ts.knn_triplets(X[:120], y[:120], k=1))
    path = ts.solve_path(problem, problem.lambda_max() * 10.0 ** -np.arange(9), tol=1e-2)
    gather(path, problem, X[:120], y[:120], X[120:], y[120:], maps=False)
    file = tmp_path_factory.mktemp("many") / "report.html"
    write_report(path, file)
    browser.set_window_size(500, 900)
    browser.get(file.as_uri())
    texts = "return Array.from(document.querySelectorAll(arguments[0])).map((e) => e.textContent)"
    shows(browser, texts, "#points .legendtext", ["50 other classes", *map(str, range(10))])
    assert 2 <= len(browser.execute_script(texts, "#loss .xtick text")) <= 6
    sizes = (
        "return Array.from(document.querySelectorAll(arguments[0])).map((e) => e.getBoundingClientRect())"
        ".map((r) => [r.left, r.right, r.top, r.bottom])"
    )

    def apart(one, two):
        return any(min(one[end], two[end]) <= max(one[end - 1], two[end - 1]) for end in (1, 3))

    # The two pictures, their titles and the legend: none lies on another, beside each other or one above the other.
    places = "#points .xtitle", "#points .x2title", "#points .legend", "#points .scatterlayer"

    def looked():
        return [size for place in places for size in browser.execute_script(sizes, place)]

    def clashes(parts):
        return [pair for pair in itertools.combinations(parts, 2) if not apart(*pair)]

    for width, beside in ((500, False), (1280, True)):
        browser.set_window_size(width, 900)
        parts = until(looked, lambda seen, beside=beside: (seen[0][2] == seen[1][2]) == beside and not clashes(seen))
        assert (len(parts), parts[0][2] == parts[1][2], clashes(parts)) == (5, beside, [])
    browser.set_window_size(500, 900)
    until(lambda: browser.execute_script(sizes, "#loss svg"), lambda seen: seen[0][1] < 500)
    ticks = browser.execute_script(
        "return Array.from(document.querySelectorAll('#loss .xtick text')).map((e) => [e.getBoundingClientRect().left, "
        "e.getBoundingClientRect().right])")  # fmt: skip
    assert all(left[1] < right[0] for left, right in itertools.pairwise(sorted(ticks)))
    browser.set_window_size(1280, 900)


def shows(browser, script, place, wanted):
    """Wait for the panel to be drawn, which is not done when the page is loaded; then it has these texts."""
    found = until(lambda: browser.execute_script(script, place), lambda found: len(found) >= len(wanted))
    assert sorted(found) == sorted(wanted)


@twice
def test_shares_of_hundreds_of_features_have_ticks_that_differ_and_no_ring_is_cut(browser, tmp_path_factory):
    rng = np.random.default_rng(0)
    X, rows = rng.normal(size=(40, 300)), np.array([rng.choice(40, 3, replace=False) for _ in range(200)])
    problem = ts.Problem(X, ts.given_triplets(rows))
    path = ts.solve_path(problem, ratio=0.5, tol=1e-2, n_lambdas=2)
    gather(path, problem, X, None, maps=False)
    file = tmp_path_factory.mktemp("wide") / "report.html"
    write_report(path, file)
    browser.get(file.as_uri())
    texts = "return Array.from(document.querySelectorAll(arguments[0])).map((e) => e.textContent)"
    for place in ("#features .xtick text", "#spectrum .ytick text"):
        ticks = until(lambda place=place: browser.execute_script(texts, place), lambda ticks: len(ticks) > 1)
        assert len(set(ticks)) == len(ticks) > 1
    cut = (
        "return ['gaps', 'decided', 'loss', 'work'].filter((id) => "
        "document.querySelector(`#${id} .scatterlayer`).parentNode.hasAttribute('clip-path'))"
    )
    assert browser.execute_script(cut) == []


@twice
def test_names_from_the_data_are_no_markup(browser, tmp_path_factory):
    """Labels, features and the source are shown as they are, and nothing in them is run or drawn bold."""
    X, y = load_iris(return_X_y=True)
    labels = np.array(["<b>bold</b>", "<img src=x onerror='window.bad=1'>", "</script><script>window.bad=1</script>"])
    names = ["<b>one</b>", "a<br>b", "&lt;i&gt; & <i>", "<a href='javascript:window.bad=1'>link</a>"]
    problem = ts.Problem(X[::2], ts.knn_triplets(X[::2], y[::2], k=3))
    path = ts.solve_path(problem, ratio=0.4, tol=1e-2, n_lambdas=4)
    source = "<script>window.bad=1</script>.csv"
    gather(path, problem, X[::2], labels[y[::2]], X[1::2], labels[y[1::2]], feature_names=names, source=source,
           maps=False)  # fmt: skip
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


class Patient:
    """Stands for a browser, and counts how often it was replaced."""

    restarts = 0

    def restart(self):
        self.restarts += 1


@pytest.mark.parametrize(
    "error", [TimeoutException("script timeout"), WebDriverException("tab crashed"), ReadTimeoutError(None, "/", "no")]
)
def test_a_browser_that_does_not_answer_is_replaced_once(error):
    runs = []

    @twice
    def fails(browser, times):
        runs.append(browser)
        if len(runs) <= times:
            raise error

    browser = Patient()
    with pytest.warns(UserWarning, match="did not answer"):
        fails(browser=browser, times=1)
    assert (len(runs), browser.restarts) == (2, 1)
    runs.clear()
    with pytest.warns(UserWarning, match="did not answer"), pytest.raises(type(error)):
        fails(browser=browser, times=2)
    assert (len(runs), browser.restarts) == (2, 2)


@pytest.mark.parametrize(
    "error", [AssertionError("wrong"), JavascriptException("x is not defined"), NoSuchElementException("#now")]
)
def test_what_is_wrong_with_a_page_is_never_tried_again(error):
    browser = Patient()

    @twice
    def fails(browser):
        raise error

    with pytest.raises(type(error)):
        fails(browser=browser)
    assert browser.restarts == 0
